/* Normalising histories and tools; message.h has the contract, docs/messages.md every form with its meaning.
 *
 * One pass over the messages, one new node for each. The new tree shares the immutable nodes of the request's tree:
 * a value that moves unchanged is placed with a copy of its head only, so a 100 kB history costs a few hundred
 * allocations. Limits on fields and calls keep the small linear searches below from becoming quadratic. */
#include "text/message.h"

#include <stdlib.h>
#include <string.h>

typedef struct normalizer {
    arena *a;
    error *err;
    json *out;         /* the new array */
    json *last;        /* last message of out, NULL at the start */
    uint32_t index;    /* of the message at hand, in the request */
    json *system_text; /* content of the first message, ours to change */
    buffer system;     /* its text once several leading system messages are joined */
} normalizer;

/* ---- small tools */

static const char *type_name(const json *value) {
    static const char *const names[] = {"null", "false", "true", "a number", "a string", "an array", "an object"};
    return value ? names[value->type] : "nothing";
}

/* Absent, null, "", [], {} and false all say "not used": many clients send every field they know. */
static bool is_empty(const json *value) {
    if (!value) return true;
    switch (value->type) {
        case JSON_NULL:
        case JSON_FALSE:
            return true;
        case JSON_STRING:
            return value->text.size == 0;
        case JSON_ARRAY:
        case JSON_OBJECT:
            return value->count == 0;
        default:
            return false;
    }
}

static bool is_null(const json *value) { return !value || value->type == JSON_NULL; }

/* The same value, free to stand in another tree; its children are shared. */
static json *placed(arena *a, const json *value) {
    json *copy = arena_alloc(a, sizeof *copy);
    *copy = *value;
    copy->next = NULL;
    copy->key = (span){0};
    return copy;
}

static void set(json *object, const char *key, json *value) { json_set(object, span_text(key), value); }

static void set_text(arena *a, json *object, const char *key, span text) { set(object, key, json_new_string(a, text)); }

static span arena_span(arena *a, const buffer *text) {
    return span_make(arena_copy(a, text->data ? text->data : "", text->size), text->size);
}

static span arena_printf(arena *a, const char *format, uint32_t x, uint32_t y) {
    buffer text = {0};
    buffer_printf(&text, format, x, y);
    span copy = arena_span(a, &text);
    buffer_deinit(&text);
    return copy;
}

static span join(arena *a, const char *before, span x, const char *between, span y, const char *after) {
    buffer text = {0};
    buffer_text(&text, before);
    buffer_append(&text, x.data, x.size);
    buffer_text(&text, between);
    buffer_append(&text, y.data, y.size);
    buffer_text(&text, after);
    span copy = arena_span(a, &text);
    buffer_deinit(&text);
    return copy;
}

static span concat(arena *a, span x, span y) {
    if (!x.size) return y;
    return y.size ? join(a, "", x, "", y, "") : x;
}

/* ---- content */

typedef struct content {
    span text, reasoning;
} content;

static err_code part_text(const normalizer *n, uint32_t at, const json *part, const char *field, span *text) {
    const json *value = json_get(part, field);
    if (!json_is(value, JSON_STRING))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content[%u].%s: expected a string, got %s", n->index, at, field,
                 type_name(value));
    *text = value->text;
    return ERR_OK;
}

/* A text part that also carries a picture would lose it. */
static err_code refuse_media(const normalizer *n, uint32_t at, const json *part) {
    static const char *const fields[] = {"image", "image_url", "video", "video_url", "input_audio", "audio", "file"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!is_empty(json_get(part, fields[i])))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content[%u].%s: only text is supported", n->index, at,
                     fields[i]);
    return ERR_OK;
}

static err_code read_part(const normalizer *n, uint32_t at, const json *part, bool assistant, content *c) {
    if (json_is(part, JSON_STRING)) {
        c->text = concat(n->a, c->text, part->text);
        return ERR_OK;
    }
    if (!json_is(part, JSON_OBJECT))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content[%u]: expected an object, got %s", n->index, at,
                 type_name(part));
    const json *type = json_get(part, "type");
    if (!is_null(type) && type->type != JSON_STRING)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content[%u].type: expected a string, got %s", n->index, at,
                 type_name(type));
    const char *field = NULL;
    if (is_null(type) || json_string_is(type, "text") || json_string_is(type, "input_text") ||
        json_string_is(type, "output_text"))
        field = "text";
    else if (json_string_is(type, "refusal"))
        field = "refusal";
    bool reasoning = false;
    if (!field && assistant && (json_string_is(type, "thinking") || json_string_is(type, "reasoning"))) {
        reasoning = true;
        field = json_get(part, "thinking") ? "thinking" : json_get(part, "reasoning") ? "reasoning" : "text";
    }
    if (!field)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content[%u]: %.*s parts are not supported", n->index, at,
                 (int)(type->text.size < 64 ? type->text.size : 64), type->text.data);
    ERR_TRY(refuse_media(n, at, part));
    span text;
    ERR_TRY(part_text(n, at, part, field, &text));
    span *to = reasoning ? &c->reasoning : &c->text;
    *to = concat(n->a, *to, text);
    return ERR_OK;
}

/* Parts are joined through a buffer once there are several: concat alone would copy a long list quadratically. */
static err_code read_parts(const normalizer *n, const json *parts, bool assistant, content *c) {
    if (parts->count == 1) return read_part(n, 0, parts->first, assistant, c);
    buffer text = {0}, reasoning = {0};
    err_code code = ERR_OK;
    uint32_t at = 0;
    for (const json *part = parts->first; part && code == ERR_OK; part = part->next, at++) {
        content one = {0};
        code = read_part(n, at, part, assistant, &one);
        buffer_append(&text, one.text.data, one.text.size);
        buffer_append(&reasoning, one.reasoning.data, one.reasoning.size);
    }
    c->text = arena_span(n->a, &text);
    c->reasoning = arena_span(n->a, &reasoning);
    buffer_deinit(&text);
    buffer_deinit(&reasoning);
    return code;
}

static err_code read_content(const normalizer *n, const json *message, bool assistant, content *c) {
    *c = (content){{"", 0}, {"", 0}};
    const json *value = json_get(message, "content");
    if (json_is(value, JSON_STRING))
        c->text = value->text;
    else if (json_is(value, JSON_ARRAY))
        ERR_TRY(read_parts(n, value, assistant, c));
    else if (!is_null(value))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].content: expected a string, null or a list of text parts, got %s",
                 n->index, type_name(value));
    return ERR_OK;
}

/* ---- fields of every message */

static const char *const read_fields[] = {"role",       "content",       "reasoning_content", "reasoning", "thinking",
                                          "tool_calls", "function_call", "tool_call_id",      "refusal"};

static bool is_read_field(span key) {
    for (size_t i = 0; i < sizeof read_fields / sizeof *read_fields; i++)
        if (span_is(key, read_fields[i])) return true;
    return false;
}

/* Fields that would change the answer if they were honoured and that nothing here honours. */
static err_code refuse_fields(const normalizer *n, const json *message) {
    static const char *const media[] = {"audio", "image", "images", "image_url", "video", "videos", "files"};
    for (size_t i = 0; i < sizeof media / sizeof *media; i++)
        if (!is_empty(json_get(message, media[i])))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].%s: only text is supported", n->index, media[i]);
    static const char *const partial[] = {"prefix", "partial"};
    for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
        if (!is_empty(json_get(message, partial[i])))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].%s: continuing a message is not supported", n->index,
                     partial[i]);
    return ERR_OK;
}

/* Of a message without a content key: the first unknown field that holds something, which is then most likely the
 * content under a wrong name ("text", "parts", "contents"). */
static err_code refuse_misnamed_content(const normalizer *n, const json *message) {
    if (json_get(message, "content")) return ERR_OK;
    for (size_t i = 2; i < sizeof read_fields / sizeof *read_fields; i++)
        if (!span_is(span_text(read_fields[i]), "tool_call_id") && !is_empty(json_get(message, read_fields[i])))
            return ERR_OK;
    for (const json *field = message->first; field; field = field->next)
        if (!is_read_field(field->key) && !span_is(field->key, "name") && !span_is(field->key, "id") &&
            !is_empty(field))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u]: no content, and the field \"%.*s\" is not known", n->index,
                     (int)(field->key.size < 64 ? field->key.size : 64), field->key.data);
    return ERR_OK;
}

/* name, cache_control, annotations and the like: the template sees them as they came. */
static void pass_other_fields(const normalizer *n, const json *message, json *to) {
    for (const json *field = message->first; field; field = field->next) {
        if (is_read_field(field->key) || field->type == JSON_NULL || json_get_span(to, field->key)) continue;
        json_set(to, field->key, placed(n->a, json_get_span(message, field->key)));
    }
}

static err_code refuse_assistant_fields(const normalizer *n, const json *message) {
    static const char *const fields[] = {"tool_calls", "function_call", "reasoning_content",
                                         "reasoning",  "thinking",      "refusal"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!is_empty(json_get(message, fields[i])))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].%s: only assistant messages may have it", n->index, fields[i]);
    return ERR_OK;
}

static json *message_new(const normalizer *n, const char *role, span text) {
    json *message = json_new(n->a, JSON_OBJECT);
    set_text(n->a, message, "role", span_text(role));
    set_text(n->a, message, "content", text);
    return message;
}

static void append(normalizer *n, json *message) {
    json_append(n->out, message);
    n->last = message;
}

/* ---- system and user */

static bool last_has_role(const normalizer *n, const char *role) {
    return n->last && json_string_is(json_get(n->last, "role"), role);
}

/* Leading system messages become one. The text is collected beside the tree and put into its node at the end. */
static void merge_system(normalizer *n, span text) {
    if (text.size == 0) return;
    span first = n->system_text->text;
    if (n->system.size == 0) buffer_append(&n->system, first.data, first.size);
    if (n->system.size) buffer_text(&n->system, "\n\n");
    buffer_append(&n->system, text.data, text.size);
}

static err_code add_plain(normalizer *n, const json *message, const char *role) {
    content c;
    ERR_TRY(refuse_assistant_fields(n, message));
    ERR_TRY(read_content(n, message, false, &c));
    bool system = strcmp(role, "system") == 0;
    if (system && last_has_role(n, "system")) {
        merge_system(n, c.text);
        return ERR_OK;
    }
    if (system && n->last) {
        role = "user";
        c.text = join(n->a, "<system>\n", c.text, "", (span){0}, "\n</system>");
    }
    json *out = message_new(n, role, c.text);
    if (!n->last) n->system_text = (json *)(uintptr_t)json_get(out, "content");
    pass_other_fields(n, message, out);
    append(n, out);
    return ERR_OK;
}

/* ---- assistant: reasoning */

/* Clients that know several servers send the same text under several names; two texts cannot both be honoured. */
static err_code read_reasoning(const normalizer *n, const json *message, span *text) {
    static const char *const fields[] = {"reasoning_content", "reasoning", "thinking"};
    const char *from = text->size ? "content" : NULL;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json *value = json_get(message, fields[i]);
        if (is_empty(value)) continue;
        if (value->type != JSON_STRING)
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].%s: expected a string, got %s", n->index, fields[i],
                     type_name(value));
        if (from && !span_equal(*text, value->text))
            ERR_FAIL(n->err, ERR_INVALID, "messages[%u].%s: differs from the reasoning in %s", n->index, fields[i],
                     from);
        *text = value->text;
        from = fields[i];
    }
    return ERR_OK;
}

/* ---- assistant: calls */

typedef struct ranked {
    const json *member;
    uint32_t place;
} ranked;

static int by_key(const void *x, const void *y) {
    const ranked *a = x, *b = y;
    size_t shorter = a->member->key.size < b->member->key.size ? a->member->key.size : b->member->key.size;
    int order = shorter ? memcmp(a->member->key.data, b->member->key.data, shorter) : 0;
    if (order) return order;
    if (a->member->key.size != b->member->key.size) return a->member->key.size < b->member->key.size ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int by_place(const void *x, const void *y) {
    const ranked *a = x, *b = y;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* A repeated key keeps its first place and its last value, as in a Python dict. Sorted, since a request may hold an
 * object of a million members. */
static json *unique_members(arena *a, const json *object) {
    if (object->count < 2) return placed(a, object);
    ranked *members = mem_zero(object->count, sizeof *members);
    uint32_t count = 0;
    for (const json *member = object->first; member; member = member->next, count++)
        members[count] = (ranked){member, count};
    qsort(members, count, sizeof *members, by_key);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept && span_equal(members[kept - 1].member->key, members[i].member->key))
            members[kept - 1].member = members[i].member;
        else
            members[kept++] = members[i];
    }
    json *unique;
    if (kept == count) {
        unique = placed(a, object);
    } else {
        qsort(members, kept, sizeof *members, by_place);
        unique = json_new(a, JSON_OBJECT);
        for (uint32_t i = 0; i < kept; i++) json_set(unique, members[i].member->key, placed(a, members[i].member));
    }
    free(members);
    return unique;
}

static bool is_blank(span text) {
    for (size_t i = 0; i < text.size; i++)
        if (!memchr(" \t\r\n", text.data[i], 4)) return false;
    return true;
}

/* What a model once produced must not end its conversation, so nothing is refused here. */
static json *read_arguments(arena *a, const json *value) {
    if (is_null(value) || (value->type == JSON_STRING && is_blank(value->text))) return json_new(a, JSON_OBJECT);
    if (value->type == JSON_OBJECT) return unique_members(a, value);
    const json *parsed = NULL;
    if (value->type == JSON_STRING && json_parse(a, value->text, JSON_DEPTH_DEFAULT, &parsed, NULL) == ERR_OK) {
        if (parsed->type == JSON_OBJECT) return unique_members(a, parsed);
        if (parsed->type == JSON_NULL) return json_new(a, JSON_OBJECT);
    }
    json *kept = json_new(a, JSON_OBJECT);
    set(kept, "arguments", placed(a, value));
    return kept;
}

/* function: {"name", "arguments"}; path for messages. */
static err_code read_call(const normalizer *n, uint32_t at, const json *function, const json *id, json **out) {
    const json *name = json_get(function, "name");
    if (!json_is(name, JSON_STRING) || name->text.size == 0)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls[%u]: expected a function name, got %s", n->index, at,
                 json_is(name, JSON_STRING) ? "an empty string" : type_name(name));
    if (!is_null(id) && id->type != JSON_STRING)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls[%u].id: expected a string, got %s", n->index, at,
                 type_name(id));
    json *inner = json_new(n->a, JSON_OBJECT);
    set(inner, "name", placed(n->a, name));
    set(inner, "arguments", read_arguments(n->a, json_get(function, "arguments")));
    *out = json_new(n->a, JSON_OBJECT);
    if (is_empty(id))
        set_text(n->a, *out, "id", arena_printf(n->a, "call_%u_%u", n->index, at));
    else
        set(*out, "id", placed(n->a, id));
    set_text(n->a, *out, "type", span_text("function"));
    set(*out, "function", inner);
    return ERR_OK;
}

static err_code read_tool_call(const normalizer *n, uint32_t at, const json *call, json **out) {
    if (!json_is(call, JSON_OBJECT))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls[%u]: expected an object, got %s", n->index, at,
                 type_name(call));
    const json *type = json_get(call, "type");
    if (!is_null(type) && !json_string_is(type, "function"))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls[%u].type: only \"function\" calls are supported",
                 n->index, at);
    const json *function = json_get(call, "function");
    if (is_null(function)) function = call; /* {"name", "arguments"} without the envelope */
    return read_call(n, at, function, json_get(call, "id"), out);
}

static err_code read_tool_calls(const normalizer *n, const json *message, json **out) {
    *out = NULL;
    const json *calls = json_get(message, "tool_calls"), *legacy = json_get(message, "function_call");
    if (is_null(calls) && is_null(legacy)) return ERR_OK;
    if (!is_null(calls) && calls->type != JSON_ARRAY)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls: expected an array, got %s", n->index, type_name(calls));
    uint32_t count = is_null(calls) ? 0 : calls->count;
    if (count > MESSAGE_CALLS_MAX)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_calls: %u calls, the limit is %d", n->index, count,
                 MESSAGE_CALLS_MAX);
    if (count && !is_null(legacy))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u]: tool_calls and function_call exclude each other", n->index);
    if (!count && is_null(legacy)) return ERR_OK;
    *out = json_new(n->a, JSON_ARRAY);
    json *call;
    if (!count) {
        ERR_TRY(read_call(n, 0, legacy, NULL, &call));
        json_append(*out, call);
        return ERR_OK;
    }
    uint32_t at = 0;
    for (const json *item = calls->first; item; item = item->next, at++) {
        ERR_TRY(read_tool_call(n, at, item, &call));
        json_append(*out, call);
    }
    return ERR_OK;
}

static err_code add_assistant(normalizer *n, const json *message) {
    content c;
    ERR_TRY(read_content(n, message, true, &c));
    const json *refusal = json_get(message, "refusal");
    if (!is_null(refusal) && refusal->type != JSON_STRING)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].refusal: expected a string, got %s", n->index, type_name(refusal));
    if (!is_null(refusal)) c.text = concat(n->a, c.text, refusal->text);
    ERR_TRY(read_reasoning(n, message, &c.reasoning));
    json *calls;
    ERR_TRY(read_tool_calls(n, message, &calls));
    json *out = message_new(n, "assistant", c.text);
    if (c.reasoning.size) set_text(n->a, out, "reasoning_content", c.reasoning);
    if (calls) set(out, "tool_calls", calls);
    pass_other_fields(n, message, out);
    append(n, out);
    return ERR_OK;
}

/* ---- tool results
 *
 * Templates such as Qwen's print results without their ids: their order alone tells the model which call each one
 * answers. So a run of results is put in the order of the calls before it, as far as the ids say so. */

static err_code read_result(const normalizer *n, const json *message, json **out) {
    if (!n->last) ERR_FAIL(n->err, ERR_INVALID, "messages[%u]: a tool result cannot open a conversation", n->index);
    const json *id = json_get(message, "tool_call_id");
    if (!is_null(id) && id->type != JSON_STRING)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u].tool_call_id: expected a string, got %s", n->index, type_name(id));
    content c;
    ERR_TRY(refuse_assistant_fields(n, message));
    ERR_TRY(read_content(n, message, false, &c));
    *out = message_new(n, "tool", c.text);
    if (!is_empty(id)) set(*out, "tool_call_id", placed(n->a, id));
    pass_other_fields(n, message, *out);
    return ERR_OK;
}

/* slots[i] is the result of the i-th call. False when a result's id is that of no call or of one answered already. */
static bool match_ids(const json *calls, json **results, uint32_t count, json **slots) {
    for (uint32_t i = 0; i < count; i++) {
        const json *id = json_get(results[i], "tool_call_id");
        if (!id) continue;
        uint32_t slot = 0;
        const json *call = calls->first;
        while (call && (slots[slot] || !span_equal(json_get(call, "id")->text, id->text))) call = call->next, slot++;
        if (!call) return false;
        slots[slot] = results[i];
    }
    return true;
}

/* Results without an id answer the calls that are left, in order. False when there are more of them than calls. */
static bool match_rest(arena *a, const json *calls, json **results, uint32_t count, json **slots) {
    uint32_t slot = 0;
    const json *call = calls->first;
    for (uint32_t i = 0; i < count; i++) {
        if (json_get(results[i], "tool_call_id")) continue;
        while (call && slots[slot]) call = call->next, slot++;
        if (!call) return false;
        slots[slot] = results[i];
        set(results[i], "tool_call_id", placed(a, json_get(call, "id")));
    }
    return true;
}

static void add_results(normalizer *n, json **results, uint32_t count) {
    const json *calls = json_get(n->last, "tool_calls");
    uint32_t slot_count = calls ? calls->count : 0;
    json **slots = mem_zero(slot_count, sizeof *slots);
    bool ordered = slot_count && match_ids(calls, results, count, slots);
    ordered = ordered && match_rest(n->a, calls, results, count, slots);
    for (uint32_t i = 0; ordered && i < slot_count; i++)
        if (slots[i]) append(n, slots[i]);
    for (uint32_t i = 0; !ordered && i < count; i++) append(n, results[i]);
    free(slots);
}

/* ---- the array */

static const char *role_of(const json *message) {
    static const struct {
        const char *given, *meant;
    } roles[] = {{"system", "system"},       {"developer", "system"}, {"user", "user"},
                 {"assistant", "assistant"}, {"tool", "tool"},        {"function", "tool"}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (json_string_is(json_get(message, "role"), roles[i].given)) return roles[i].meant;
    return NULL;
}

static err_code check_message(const normalizer *n, const json *message) {
    if (!json_is(message, JSON_OBJECT))
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u]: expected an object, got %s", n->index, type_name(message));
    if (message->count > MESSAGE_FIELDS_MAX)
        ERR_FAIL(n->err, ERR_INVALID, "messages[%u]: %u fields, the limit is %d", n->index, message->count,
                 MESSAGE_FIELDS_MAX);
    const json *role = json_get(message, "role");
    if (!role_of(message)) {
        span given = json_is(role, JSON_STRING) ? role->text : span_text(type_name(role));
        ERR_FAIL(n->err, ERR_INVALID,
                 "messages[%u].role: expected system, developer, user, assistant, tool or function, got %.*s", n->index,
                 (int)(given.size < 64 ? given.size : 64), given.data);
    }
    ERR_TRY(refuse_fields(n, message));
    return refuse_misnamed_content(n, message);
}

static bool is_result(const json *message) {
    const char *role = message ? role_of(message) : NULL;
    return role && strcmp(role, "tool") == 0;
}

/* Takes the run of tool results that starts at *message; leaves *message and n->index at its last one. */
static err_code add_run(normalizer *n, const json **message) {
    uint32_t count = 0, length = 1;
    for (const json *next = (*message)->next; is_result(next); next = next->next) length++;
    json **results = mem_zero(length, sizeof *results);
    err_code code = ERR_OK;
    for (;;) {
        code = check_message(n, *message);
        if (code == ERR_OK) code = read_result(n, *message, &results[count]);
        if (code != ERR_OK || ++count == length) break;
        *message = (*message)->next;
        n->index++;
    }
    if (code == ERR_OK) add_results(n, results, count);
    free(results);
    return code;
}

static err_code add_messages(normalizer *n, const json *messages) {
    for (const json *message = messages->first; message; message = message->next, n->index++) {
        if (is_result(message)) {
            ERR_TRY(add_run(n, &message));
            continue;
        }
        ERR_TRY(check_message(n, message));
        if (json_string_is(json_get(message, "role"), "assistant"))
            ERR_TRY(add_assistant(n, message));
        else
            ERR_TRY(add_plain(n, message, role_of(message)));
    }
    return ERR_OK;
}

err_code messages_normalize(arena *a, const json *messages, const json **out, error *err) {
    if (!json_is(messages, JSON_ARRAY) || messages->count == 0)
        ERR_FAIL(err, ERR_INVALID, "messages: expected a non-empty array, got %s",
                 json_is(messages, JSON_ARRAY) ? "an empty one" : type_name(messages));
    if (messages->count > MESSAGES_MAX)
        ERR_FAIL(err, ERR_INVALID, "messages: %u messages, the limit is %d", messages->count, MESSAGES_MAX);
    normalizer n = {.a = a, .err = err, .out = json_new(a, JSON_ARRAY)};
    err_code code = add_messages(&n, messages);
    if (code == ERR_OK && n.system.size) n.system_text->text = arena_span(a, &n.system);
    buffer_deinit(&n.system);
    if (code == ERR_OK) *out = n.out;
    return code;
}

/* ---- tools */

/* The name stands between "<function=" and ">" on one line, in the prompt as in the answer. */
static bool is_tool_name(span name) {
    if (name.size == 0 || name.size > TOOL_NAME_MAX) return false;
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] < 0x20 || name.data[i] == '<' || name.data[i] == '>') return false;
    return name.data[0] != ' ' && name.data[name.size - 1] != ' ';
}

static err_code check_tool(const json *tool, uint32_t at, error *err) {
    if (!json_is(tool, JSON_OBJECT))
        ERR_FAIL(err, ERR_INVALID, "tools[%u]: expected an object, got %s", at, type_name(tool));
    const json *type = json_get(tool, "type"), *function = json_get(tool, "function");
    if (!is_null(type) && !json_string_is(type, "function"))
        ERR_FAIL(err, ERR_INVALID, "tools[%u].type: only \"function\" tools are supported", at);
    if (!json_is(function, JSON_OBJECT))
        ERR_FAIL(err, ERR_INVALID, "tools[%u].function: expected an object, got %s", at, type_name(function));
    const json *name = json_get(function, "name"), *parameters = json_get(function, "parameters");
    if (!json_is(name, JSON_STRING))
        ERR_FAIL(err, ERR_INVALID, "tools[%u].function.name: expected a string, got %s", at, type_name(name));
    if (!is_tool_name(name->text))
        ERR_FAIL(err, ERR_INVALID,
                 "tools[%u].function.name: expected 1 to %d bytes on one line, without < and > or spaces at the ends",
                 at, TOOL_NAME_MAX);
    if (!is_null(parameters) && parameters->type != JSON_OBJECT)
        ERR_FAIL(err, ERR_INVALID, "tools[%u].function.parameters: expected an object, got %s", at,
                 type_name(parameters));
    return ERR_OK;
}

err_code tools_normalize(arena *a, const json *tools, const json **out, error *err) {
    (void)a; /* nothing needs to be rewritten so far: the template prints tools as the client spelt them */
    *out = NULL;
    if (is_null(tools)) return ERR_OK;
    if (tools->type != JSON_ARRAY) ERR_FAIL(err, ERR_INVALID, "tools: expected an array, got %s", type_name(tools));
    if (tools->count > TOOLS_MAX)
        ERR_FAIL(err, ERR_INVALID, "tools: %u tools, the limit is %d", tools->count, TOOLS_MAX);
    uint32_t at = 0;
    for (const json *tool = tools->first; tool; tool = tool->next, at++) ERR_TRY(check_tool(tool, at, err));
    if (tools->count) *out = tools;
    return ERR_OK;
}
