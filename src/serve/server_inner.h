/* What the files of the server share; see server.h. Everything here belongs to the loop's thread except where said. */
#ifndef HEARTH_SERVE_SERVER_INNER_H
#define HEARTH_SERVE_SERVER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/api_error.h"
#include "serve/job.h"
#include "serve/serve_metrics.h"
#include "serve/server.h"

/* Who answers an exchange later: http_exchange.user points here. */
typedef struct owner owner;
struct owner {
    void (*gone)(owner *o);     /* the client left: the exchange must not be used any more */
    void (*writable)(owner *o); /* may be NULL */
    bool logs;                  /* writes the log line itself */
};

typedef struct chat chat;

struct server {
    server_options options;
    struct event_base *base;
    http_server *http;
    serve_metrics metrics;
    hearth_engine *engine; /* NULL while loading */
    hearth_info info;
    job_queue *jobs;

    chat *chats; /* all answers being made, also those whose client left */
    bool forced; /* stopped by force */
    bool draining;
    uint64_t drain_start_ns;
    bool drain_cancelled;
    struct event *wake_event, *drain_tick;

    /* Crossing threads. */
    int wake_fd; /* eventfd */
    atomic_int stops;
    atomic_uint_fast64_t progress_done, progress_total;
    _Atomic(hearth_engine *) loaded;
    pthread_mutex_t ready_lock;
    chat *ready, *ready_last; /* chats whose request has events, in order */
};

void server_wake(server *s); /* any thread */

/* Answers of JSON; CORS headers are added. headers: further lines or NULL. */
void server_reply(server *s, http_exchange *x, int status, const char *type, const char *headers, span body);
void server_reply_error(server *s, http_exchange *x, const api_error *e);
void server_stream_begin(server *s, http_exchange *x, const char *headers);
/* One line for a request that is over, and its count. details: "" or " key=value...". status 499 = client left. */
void server_record(server *s, span method, const char *path, int status, const char *details);

/* Handlers: the body is there, the engine too. */
void api_chat(server *s, http_exchange *x);
void api_models(server *s, http_exchange *x);
void api_model(server *s, http_exchange *x); /* /v1/models/ID */
void api_tokenize(server *s, http_exchange *x);
void api_detokenize(server *s, http_exchange *x);

void chats_take_ready(server *s); /* after a wake */
void chats_cancel_all(server *s); /* the drain time is over */
void chats_destroy_all(server *s);

#endif
