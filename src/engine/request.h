/* A request inside the engine, and the queue of events its caller reads.
 *
 * Life: queued -> preparing (text thread) -> waiting -> prefill -> decode (engine thread) -> done. One thread at a time
 * works on a request; the queues in engine.h hand it over. The caller's side is the event queue alone.
 *
 * A request has two holders, caller and engine, and lives until both have let go, so that destroying never waits for a
 * step to end. Locks: `lock` guards the events, `ready_lock` is held while `ready` runs, so that destroy can promise that
 * it will not run again. Neither is held while the engine's lock is taken, nor the other way round. */
#ifndef HEARTH_ENGINE_REQUEST_H
#define HEARTH_ENGINE_REQUEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "cache/prefix_cache.h"
#include "decode/sampler.h"
#include "engine/generation.h"
#include "hearth.h"

enum { MESSAGE_ENDS_MAX = 8, STOP_STRINGS_MAX = 16, STOP_STRING_BYTES_MAX = 1024 };

typedef struct event_node event_node;

struct hearth_request {
    hearth_engine *engine;
    atomic_int holders;
    atomic_bool cancelled;

    /* The caller's side. */
    pthread_mutex_t lock, ready_lock;
    pthread_cond_t changed;
    event_node *first, *last; /* not taken yet */
    event_node *current;      /* the caller reads its text */
    bool ended;               /* the last event is queued or taken */
    void (*ready)(void *context);
    void *ready_context;

    /* As asked; all owned copies. */
    char *messages, *tools, *template_kwargs; /* NUL-terminated, NULL = absent */
    size_t messages_size, tools_size, template_kwargs_size;
    char **stop;
    int stop_count;
    bool tool_calls, raw_output, ignore_stop_ids;
    int max_tokens; /* resolved once the prompt is counted */
    sampler_params sampling;

    /* Made by the text thread, or given as prompt_ids. */
    arena *json;  /* parsed tools, which the output parser borrows */
    int32_t *ids; /* the prompt, owned */
    int count, history;
    int message_ends[MESSAGE_ENDS_MAX]; /* of the last messages, ascending */
    int message_end_count;
    generation *generation;

    /* Engine thread. */
    hearth_request *next; /* in a queue */
    cache_run *run;
    int position;       /* prompt ids computed or reused */
    int32_t next_token; /* decode: chosen, not yet run */
    hearth_usage usage;
    uint64_t created_ns, preparing_ns, prepared_ns, admitted_ns, first_ns;
};

typedef struct request_queue {
    hearth_request *first, *last;
    int count;
} request_queue;
void request_queue_push(request_queue *q, hearth_request *r);
hearth_request *request_queue_pop(request_queue *q); /* NULL when empty */
/* Takes the cancelled ones out, as a list linked by next. */
hearth_request *request_queue_take_cancelled(request_queue *q);

/* Checks and copies params; *out has the caller as its one holder. */
hearth_status request_create(hearth_engine *engine, const hearth_request_params *params, hearth_request **out,
                             hearth_error *error);
void request_hold(hearth_request *r);
void request_drop(hearth_request *r); /* one holder less; the last one frees */
/* Queues an event with a copy of text and calls ready. Ignored after the last event. */
void request_push(hearth_request *r, const hearth_event *event, span text);

hearth_timing request_timing(const hearth_request *r, uint64_t now_ns);

/* ---- errors of hearth.h */
hearth_status hearth_fail(hearth_error *error, hearth_status status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* From a lower layer's error about a request: a limit or malformed JSON is the caller's doing. param is the field the
 * message starts with ("messages[3].content: ..."), when it does. */
void hearth_error_from_request(hearth_error *out, const error *from);
hearth_status hearth_status_from(err_code code);

#endif
