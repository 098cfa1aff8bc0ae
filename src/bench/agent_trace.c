/* See agent_trace.h. Every line is checked when it is read, so that the replay can rely on the shape. */
#include "bench/agent_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

typedef struct reader {
    const char *path;
    size_t line;
    trace *out;
    size_t conversations_max, turns_max;
    trace_conversation *open; /* the conversation being read; NULL before the first and in those left out */
    span open_id;
    int64_t rows;       /* lines of the open conversation so far */
    trace_turn pending; /* the odd line, waiting for its even one */
    size_t turn_capacity, conversation_capacity;
} reader;

/* Looks a member up and checks its type. Absent and null are the same, and an error when it is required. */
static err_code member(const reader *r, const json *row, const char *name, json_type type, bool required,
                       const json **out, error *err) {
    static const char *const types[] = {"null",     "a boolean", "a boolean", "a number",
                                        "a string", "an array",  "an object"};
    const json *value = json_get(row, name);
    *out = value && value->type != JSON_NULL ? value : NULL;
    if (!*out && required) ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `%s` is missing", r->path, r->line, name);
    if (*out && value->type != type)
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `%s` must be %s", r->path, r->line, name, types[type]);
    return ERR_OK;
}

static err_code check_results(const reader *r, const json *results, error *err) {
    uint32_t i = 0;
    for (const json *item = results->first; item; item = item->next, i++)
        if (!json_is(json_get(item, "tool_call_id"), JSON_STRING) || !json_is(json_get(item, "content"), JSON_STRING))
            ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `tool_results[%u]` must have the strings tool_call_id and content",
                     r->path, r->line, i);
    if (!i) ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `tool_results` is empty", r->path, r->line);
    return ERR_OK;
}

static err_code check_calls(const reader *r, const json *calls, error *err) {
    uint32_t i = 0;
    for (const json *item = calls ? calls->first : NULL; item; item = item->next, i++) {
        const json *function = json_get(item, "function");
        if (!json_is(json_get(function, "name"), JSON_STRING) || !json_get(function, "arguments"))
            ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `tool_calls[%u]` must have function.name and function.arguments",
                     r->path, r->line, i);
    }
    return ERR_OK;
}

static void push_turn(reader *r) {
    trace_conversation *c = r->open;
    if (c->turn_count == r->turn_capacity) {
        r->turn_capacity = r->turn_capacity ? r->turn_capacity * 2 : 64;
        c->turns = mem_grow(c->turns, r->turn_capacity, sizeof *c->turns);
    }
    c->turns[c->turn_count++] = r->pending;
    r->out->turn_count++;
}

static err_code read_assistant(reader *r, const json *row, error *err) {
    ERR_TRY(member(r, row, "tool_calls", JSON_ARRAY, false, &r->pending.calls, err));
    ERR_TRY(check_calls(r, r->pending.calls, err));
    ERR_TRY(member(r, row, "reasoning_content", JSON_STRING, false, &r->pending.reasoning, err));
    ERR_TRY(member(r, row, "content", JSON_STRING, false, &r->pending.content, err));
    r->pending.number = (int)r->rows;
    if (r->open && (!r->turns_max || r->open->turn_count < r->turns_max)) push_turn(r);
    return ERR_OK;
}

static err_code read_prompt(reader *r, const json *row, span role, error *err) {
    r->pending = (trace_turn){0};
    if (span_is(role, "tool") && r->rows > 1) {
        ERR_TRY(member(r, row, "tool_results", JSON_ARRAY, true, &r->pending.results, err));
        return check_results(r, r->pending.results, err);
    }
    if (!span_is(role, "user"))
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `role` of turn %lld must be %s", r->path, r->line, (long long)r->rows,
                 r->rows > 1 ? "tool or user" : "user");
    ERR_TRY(member(r, row, "content", JSON_STRING, true, &r->pending.user, err));
    const json *system, *tools;
    ERR_TRY(member(r, row, "system", JSON_STRING, false, &system, err));
    ERR_TRY(member(r, row, "tools", JSON_ARRAY, false, &tools, err));
    if (r->rows == 1 && r->open) {
        r->open->system = system;
        r->open->tools = tools;
    }
    return ERR_OK;
}

/* A conversation that ends on an odd line has a question without an answer. */
static err_code end_conversation(const reader *r, error *err) {
    if (r->rows % 2)
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: conversation '%.*s' ends without an assistant line", r->path, r->line,
                 (int)(r->open_id.size < 100 ? r->open_id.size : 100), r->open_id.data);
    return ERR_OK;
}

static err_code begin_conversation(reader *r, span id, error *err) {
    ERR_TRY(end_conversation(r, err));
    trace *t = r->out;
    for (size_t i = 0; i < t->count; i++)
        if (span_equal(t->conversations[i].id, id))
            ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `conversation_id` was seen before: lines of one must be adjacent",
                     r->path, r->line);
    r->open = NULL;
    r->open_id = id;
    r->rows = 0;
    if (r->conversations_max && t->count == r->conversations_max) return ERR_OK;
    if (t->count == r->conversation_capacity) {
        r->conversation_capacity = r->conversation_capacity ? r->conversation_capacity * 2 : 16;
        t->conversations = mem_grow(t->conversations, r->conversation_capacity, sizeof *t->conversations);
    }
    r->turn_capacity = 0;
    r->open = &t->conversations[t->count++];
    *r->open = (trace_conversation){.id = id};
    return ERR_OK;
}

static err_code read_row(reader *r, span text, error *err) {
    const json *row, *id, *turn, *role;
    error inner;
    if (json_parse(r->out->memory, text, JSON_DEPTH_DEFAULT, &row, &inner) != ERR_OK)
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: %s", r->path, r->line, inner.message);
    if (row->type != JSON_OBJECT) ERR_FAIL(err, ERR_FORMAT, "%s:%zu: not a JSON object", r->path, r->line);
    ERR_TRY(member(r, row, "conversation_id", JSON_STRING, true, &id, err));
    ERR_TRY(member(r, row, "turn", JSON_NUMBER, true, &turn, err));
    ERR_TRY(member(r, row, "role", JSON_STRING, true, &role, err));
    if (!r->open_id.data || !span_equal(id->text, r->open_id)) ERR_TRY(begin_conversation(r, id->text, err));
    int64_t number;
    if (!json_integer(turn, &number) || number != ++r->rows)
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `turn` must be %lld here", r->path, r->line, (long long)r->rows);
    bool answer = r->rows % 2 == 0;
    if (answer != span_is(role->text, "assistant"))
        ERR_FAIL(err, ERR_FORMAT, "%s:%zu: `role` of turn %lld must %sbe assistant", r->path, r->line,
                 (long long)r->rows, answer ? "" : "not ");
    return answer ? read_assistant(r, row, err) : read_prompt(r, row, role->text, err);
}

static bool is_blank(span line) {
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r') return false;
    return true;
}

static err_code read_lines(reader *r, error *err) {
    span rest = span_make(r->out->text.data, r->out->text.size);
    while (rest.size) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end ? (size_t)(end - rest.data) : rest.size;
        r->line++;
        span line = span_make(rest.data, size);
        if (!is_blank(line)) ERR_TRY(read_row(r, line, err));
        rest = span_make(rest.data + size + (end ? 1 : 0), rest.size - size - (end ? 1 : 0));
    }
    ERR_TRY(end_conversation(r, err));
    if (!r->out->turn_count) ERR_FAIL(err, ERR_FORMAT, "%s: no conversation in it", r->path);
    return ERR_OK;
}

err_code trace_read(const char *path, size_t conversations_max, size_t turns_max, trace *out, error *err) {
    *out = (trace){.memory = arena_create()};
    reader r = {.path = path, .out = out, .conversations_max = conversations_max, .turns_max = turns_max};
    err_code code = file_read(path, TRACE_BYTES_MAX, &out->text, err);
    if (code == ERR_OK) code = read_lines(&r, err);
    if (code != ERR_OK) trace_deinit(out);
    return code;
}

void trace_deinit(trace *t) {
    for (size_t i = 0; i < t->count; i++) free(t->conversations[i].turns);
    free(t->conversations);
    buffer_deinit(&t->text);
    arena_destroy(t->memory);
    *t = (trace){0};
}

/* The transcript. Members stand in the order in which the official client writes them. */

static void set(arena *a, json *object, const char *key, const json *value) {
    json_set(object, span_text(key), json_clone(a, value));
}

static json *add_message(transcript *t, const char *role) {
    json *message = json_new(t->memory, JSON_OBJECT);
    json_set(message, span_text("role"), json_new_string(t->memory, span_text(role)));
    json_append(t->messages, message);
    return message;
}

static void add_answer(transcript *t, const trace_turn *turn) {
    json *message = add_message(t, "assistant");
    if (turn->content) set(t->memory, message, "content", turn->content);
    if (turn->calls) set(t->memory, message, "tool_calls", turn->calls);
    if (turn->reasoning) set(t->memory, message, "reasoning_content", turn->reasoning);
}

void transcript_begin(transcript *t, const trace_conversation *c) {
    t->memory = arena_create();
    t->messages = json_new(t->memory, JSON_ARRAY);
    if (c->system) set(t->memory, add_message(t, "system"), "content", c->system);
}

void transcript_extend(transcript *t, const trace_conversation *c, size_t at) {
    HEARTH_ASSERT(at < c->turn_count);
    if (at) add_answer(t, &c->turns[at - 1]);
    const trace_turn *turn = &c->turns[at];
    if (turn->user) {
        set(t->memory, add_message(t, "user"), "content", turn->user);
        return;
    }
    for (const json *result = turn->results->first; result; result = result->next) {
        json *message = add_message(t, "tool");
        set(t->memory, message, "content", json_get(result, "content"));
        set(t->memory, message, "tool_call_id", json_get(result, "tool_call_id"));
    }
}

void transcript_end(transcript *t) { arena_destroy(t->memory); }
