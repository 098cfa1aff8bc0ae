/* The answer to one turn, put together from streamed deltas the way OpenAI's clients do.
 *
 * `message` is everything that came; `rest` is what came after the first delta that carried something, which is what
 * TPOT is about: the first delta's time is TTFT. */
#ifndef HEARTH_BENCH_REPLY_H
#define HEARTH_BENCH_REPLY_H

#include "base/json.h"
#include "bench/event_stream.h"

enum { REPLY_CALLS_MAX = 1024 };

typedef struct reply_call {
    int64_t index;
    buffer id, type, name, arguments; /* data is NULL when the field never came */
} reply_call;

typedef struct reply_message {
    buffer content, reasoning;
    reply_call *calls; /* owned, by ascending index */
    size_t call_count, call_capacity;
} reply_message;

typedef struct reply_usage {
    bool known, cached_known;
    int64_t prompt_tokens, cached_tokens, completion_tokens;
} reply_usage;

typedef struct reply {
    reply_message message, rest;
    buffer finish_reason; /* empty until it came */
    buffer error_text;    /* an error object inside the stream, or an event that cannot be read; empty = none */
    bool malformed;       /* a delta that no client can merge, such as arguments given as an object */
    bool done;            /* data: [DONE] came */
    reply_usage usage;
    uint64_t first_ns; /* arrival of the first delta with content, reasoning or a call; 0 = none came */
    uint64_t events;   /* events with data, [DONE] included */
} reply;

void reply_deinit(reply *r);

/* One event's data, which arrived at now_ns. Never fails: what is wrong is noted in error_text. */
void reply_event(reply *r, span data, uint64_t now_ns);

typedef enum {
    CALLS_AS_SENT, /* [{"id", "type", "function": {"name", "arguments": text}}] */
    CALLS_PARSED,  /* the same, but arguments that are a JSON object become one: what templates take */
    CALLS_INDEXED, /* as sent, with "index" first: the deltas put together */
} calls_form;
/* The calls as JSON, fields that never came left out; NULL when there are none. In the arena, borrowing from m. */
json *reply_calls_json(arena *a, const reply_message *m, calls_form form);

#endif
