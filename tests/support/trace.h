/* The first conversation of the recorded agent trace as the client sends it, for tests and benches. */
#ifndef HEARTH_TESTS_TRACE_H
#define HEARTH_TESTS_TRACE_H

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

enum { TRACE_ROWS_MAX = 512 };

typedef struct trace {
    arena *memory;
    buffer text;
    const json *rows[TRACE_ROWS_MAX]; /* user, assistant, tool, assistant, tool ... */
    int count;
} trace;

static inline void trace_close(trace *t) {
    if (t->memory) arena_destroy(t->memory);
    buffer_deinit(&t->text);
    *t = (trace){0};
}

static inline err_code trace_open(trace *t, const char *path, error *err) {
    *t = (trace){.memory = arena_create()};
    ERR_TRY(file_read(path, 64 << 20, &t->text, err));
    for (char *line = t->text.data, *end; (end = strchr(line, '\n')) && t->count < TRACE_ROWS_MAX; line = end + 1) {
        const json *row;
        ERR_TRY(json_parse(t->memory, span_make(line, (size_t)(end - line)), JSON_DEPTH_DEFAULT, &row, err));
        const json *id = json_get(row, "conversation_id");
        if (t->count && !span_equal(id->text, json_get(t->rows[0], "conversation_id")->text)) break;
        t->rows[t->count++] = row;
    }
    return ERR_OK;
}

/* Requests of the conversation: one before each recorded answer. */
static inline int trace_turns(const trace *t) { return t->count / 2; }

static inline json *trace_share(arena *a, const json *value) {
    json *copy = arena_alloc(a, sizeof *copy);
    *copy = *value;
    copy->next = NULL;
    return copy;
}

static inline json *trace_message(arena *a, json *messages, const char *role) {
    json *m = json_new(a, JSON_OBJECT);
    json_set(m, span_text("role"), json_new_string(a, span_text(role)));
    json_append(messages, m);
    return m;
}

static inline void trace_set(arena *a, json *m, const char *key, const json *value) {
    if (value) json_set(m, span_text(key), trace_share(a, value));
}

/* The messages of request `turn` (from 0). */
static inline json *trace_messages(arena *a, const trace *t, int turn) {
    json *messages = json_new(a, JSON_ARRAY);
    trace_set(a, trace_message(a, messages, "system"), "content", json_get(t->rows[0], "system"));
    trace_set(a, trace_message(a, messages, "user"), "content", json_get(t->rows[0], "content"));
    for (int i = 1; i <= 2 * turn; i++) {
        const json *row = t->rows[i], *results = json_get(row, "tool_results");
        if (!results) {
            json *m = trace_message(a, messages, "assistant");
            trace_set(a, m, "tool_calls", json_get(row, "tool_calls"));
            trace_set(a, m, "reasoning_content", json_get(row, "reasoning_content"));
        }
        for (const json *r = results ? results->first : NULL; r; r = r->next) {
            json *m = trace_message(a, messages, "tool");
            trace_set(a, m, "content", json_get(r, "content"));
            trace_set(a, m, "tool_call_id", json_get(r, "tool_call_id"));
        }
    }
    return messages;
}

#endif
