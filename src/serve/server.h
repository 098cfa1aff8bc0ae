/* The OpenAI-compatible server over one engine. docs/http-api.md is its contract.
 *
 * server_run's thread is the event loop: it owns the sockets and everything of this module. Engine threads only ring:
 * the request's `ready` callback puts the answer on a list and writes an eventfd; the loop then takes the events. Work
 * on text that may be large (tokenising, parsing bodies of megabytes) is done by one worker thread, so that /health and
 * /metrics answer at once whatever the load. The server can run before the engine is loaded: it answers 503 until then. */
#ifndef HEARTH_SERVE_SERVER_H
#define HEARTH_SERVE_SERVER_H

#include "base/error.h"
#include "hearth.h"
#include "serve/http.h"

typedef struct server_options {
    const char *host;
    int port;                    /* 0 = any */
    const char *const *api_keys; /* borrowed for the server's life; none = open to everyone */
    int api_key_count;
    const char *cors_origin; /* NULL = no CORS headers */
    http_limits limits;
    int drain_ms;      /* how long running requests may go on after server_stop */
    int keep_alive_ms; /* silence on a stream after which a comment is sent */
} server_options;
server_options server_options_default(void);

typedef struct server server;
/* Listens at once. SIGPIPE must be ignored by the process. */
err_code server_create(const server_options *options, server **out, error *err);
int server_port(const server *s);
/* Loading, from any thread: progress for /health, then the engine, which the caller keeps and closes after the server. */
void server_set_progress(server *s, uint64_t done_bytes, uint64_t total_bytes);
void server_set_engine(server *s, hearth_engine *engine);

/* Serves until stopped. True: every answer was finished or cancelled; false: stopped by force. */
bool server_run(server *s);
/* From any thread or a signal handler. First call: drain; second: end now. */
void server_stop(server *s);
void server_destroy(server *s);

#endif
