/* See reply.h. Deltas of calls merge by index: id, type and name replace, arguments are appended. */
#include "bench/reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void message_deinit(reply_message *m) {
    buffer_deinit(&m->content);
    buffer_deinit(&m->reasoning);
    for (size_t i = 0; i < m->call_count; i++) {
        buffer_deinit(&m->calls[i].id);
        buffer_deinit(&m->calls[i].type);
        buffer_deinit(&m->calls[i].name);
        buffer_deinit(&m->calls[i].arguments);
    }
    free(m->calls);
}

void reply_deinit(reply *r) {
    message_deinit(&r->message);
    message_deinit(&r->rest);
    buffer_deinit(&r->finish_reason);
    buffer_deinit(&r->error_text);
    *r = (reply){0};
}

/* The first thing that goes wrong is the cause; what follows is not noted. */
static void note_error(reply *r, const char *what, span detail) {
    if (r->error_text.size) return;
    buffer_text(&r->error_text, what);
    size_t size = detail.size < 300 ? detail.size : 300;
    utf8_repair(&r->error_text, span_make(detail.data, utf8_complete(span_make(detail.data, size))));
}

static reply_call *find_call(reply_message *m, int64_t index) {
    size_t at = 0;
    while (at < m->call_count && m->calls[at].index < index) at++;
    if (at < m->call_count && m->calls[at].index == index) return &m->calls[at];
    if (m->call_count == REPLY_CALLS_MAX) return NULL;
    if (m->call_count == m->call_capacity) {
        m->call_capacity = m->call_capacity ? m->call_capacity * 2 : 4;
        m->calls = mem_grow(m->calls, m->call_capacity, sizeof *m->calls);
    }
    memmove(m->calls + at + 1, m->calls + at, (m->call_count - at) * sizeof *m->calls);
    m->call_count++;
    m->calls[at] = (reply_call){.index = index};
    return &m->calls[at];
}

/* Replaces (or extends) the field by a delta's string. False when it is there and is no string. */
static bool take_text(buffer *field, const json *value, bool append) {
    if (!value || value->type == JSON_NULL) return true;
    if (value->type != JSON_STRING) return false;
    if (!append) buffer_clear(field);
    buffer_append(field, value->text.data, value->text.size);
    return true;
}

static bool merge_call(reply_message *m, const json *delta) {
    int64_t index = 0;
    json_integer(json_get(delta, "index"), &index);
    reply_call *call = find_call(m, index);
    const json *function = json_get(delta, "function");
    return call && take_text(&call->id, json_get(delta, "id"), false) &&
           take_text(&call->type, json_get(delta, "type"), false) &&
           take_text(&call->name, json_get(function, "name"), false) &&
           take_text(&call->arguments, json_get(function, "arguments"), true);
}

static const json *delta_reasoning(const json *delta) {
    const json *named = json_get(delta, "reasoning_content");
    return json_is(named, JSON_STRING) ? named : json_get(delta, "reasoning");
}

static bool merge_delta(reply_message *m, const json *delta) {
    bool good = take_text(&m->content, json_get(delta, "content"), true) &&
                take_text(&m->reasoning, delta_reasoning(delta), true);
    const json *calls = json_get(delta, "tool_calls");
    for (const json *call = json_is(calls, JSON_ARRAY) ? calls->first : NULL; call && good; call = call->next)
        good = merge_call(m, call);
    return good;
}

static bool has_text(const json *value) { return json_is(value, JSON_STRING) && value->text.size; }

/* A delta that only names the role carries nothing. */
static bool carries(const json *delta) {
    const json *calls = json_get(delta, "tool_calls");
    return has_text(json_get(delta, "content")) || has_text(delta_reasoning(delta)) ||
           (json_is(calls, JSON_ARRAY) && calls->count);
}

static void take_delta(reply *r, const json *delta, uint64_t now_ns) {
    bool good = merge_delta(&r->message, delta);
    if (r->first_ns) good = merge_delta(&r->rest, delta) && good;
    if (!r->first_ns && carries(delta)) r->first_ns = now_ns;
    if (good) return;
    r->malformed = true;
    note_error(r, "a delta that cannot be merged: ", delta->source);
}

static void take_usage(reply_usage *u, const json *usage) {
    if (!json_is(usage, JSON_OBJECT)) return;
    u->known = json_integer(json_get(usage, "prompt_tokens"), &u->prompt_tokens) &&
               json_integer(json_get(usage, "completion_tokens"), &u->completion_tokens);
    u->cached_known =
        json_integer(json_get(json_get(usage, "prompt_tokens_details"), "cached_tokens"), &u->cached_tokens);
}

static void take_error(reply *r, const json *failure) {
    const json *message = json_get(failure, "message");
    note_error(r, "error in the stream: ", json_is(message, JSON_STRING) ? message->text : failure->source);
}

static void take_event(reply *r, const json *event, uint64_t now_ns) {
    const json *failure = json_get(event, "error"), *choice = json_at(json_get(event, "choices"), 0);
    if (failure && failure->type != JSON_NULL) take_error(r, failure);
    if (json_is(json_get(choice, "delta"), JSON_OBJECT)) take_delta(r, json_get(choice, "delta"), now_ns);
    const json *finish = json_get(choice, "finish_reason");
    if (has_text(finish)) take_text(&r->finish_reason, finish, false);
    take_usage(&r->usage, json_get(event, "usage"));
}

void reply_event(reply *r, span data, uint64_t now_ns) {
    r->events++;
    if (span_is(data, "[DONE]")) {
        r->done = true;
        return;
    }
    arena *a = arena_create();
    const json *event;
    error err;
    if (json_parse(a, data, JSON_DEPTH_DEFAULT, &event, &err) != ERR_OK)
        note_error(r, "an event that is not JSON: ", data);
    else if (!json_is(event, JSON_OBJECT))
        note_error(r, "an event that is not an object: ", data);
    else
        take_event(r, event, now_ns);
    arena_destroy(a);
}

static void set_text(arena *a, json *object, const char *key, const buffer *field) {
    if (field->data) json_set(object, span_text(key), json_new_string(a, span_make(field->data, field->size)));
}

static json *arguments_json(arena *a, const buffer *arguments, bool parse) {
    span text = span_make(arguments->data, arguments->size);
    const json *parsed;
    bool object =
        parse && json_parse(a, text, JSON_DEPTH_DEFAULT, &parsed, NULL) == ERR_OK && parsed->type == JSON_OBJECT;
    return object ? json_clone(a, parsed) : json_new_string(a, text);
}

json *reply_calls_json(arena *a, const reply_message *m, calls_form form) {
    if (!m->call_count) return NULL;
    json *calls = json_new(a, JSON_ARRAY);
    for (size_t i = 0; i < m->call_count; i++) {
        const reply_call *c = &m->calls[i];
        json *call = json_new(a, JSON_OBJECT), *function = json_new(a, JSON_OBJECT);
        if (form == CALLS_INDEXED) json_set(call, span_text("index"), json_new_integer(a, c->index));
        set_text(a, call, "id", &c->id);
        set_text(a, call, "type", &c->type);
        set_text(a, function, "name", &c->name);
        if (c->arguments.data)
            json_set(function, span_text("arguments"), arguments_json(a, &c->arguments, form == CALLS_PARSED));
        json_set(call, span_text("function"), function);
        json_append(calls, call);
    }
    return calls;
}
