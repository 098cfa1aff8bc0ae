/* HTTP/1.1 server on libevent's loop: connections, limits and deadlines. Knows nothing of models or JSON.
 *
 * One thread (the loop's) owns every socket. A connection is read all the time, also while its request is being
 * answered: that is how a client that leaves is noticed at once, in any phase. Requests on one connection are answered
 * one after the other. What protects the others from a bad client:
 * - a request head and body must arrive within their deadlines, counted from the first byte, not from the last;
 * - at the connection limit a new connection takes the place of the one that has been sending its request, or been
 *   idle, for the longest; only when every connection is being answered is the new one refused with 503;
 * - a client that does not read is not written to beyond unsent_high, and is dropped when it reads nothing for stall_ms;
 * - after an early answer (413, 401) the rest of the upload is read and dropped for a moment, so that the client gets to
 *   see the answer instead of a reset. */
#ifndef HEARTH_SERVE_HTTP_H
#define HEARTH_SERVE_HTTP_H

#include <event2/event.h>

#include "base/error.h"
#include "serve/http_message.h"

typedef struct http_limits {
    size_t head_max, body_max;
    size_t bodies_max;  /* all bodies held at once */
    size_t unsent_high; /* of one response; the writer is asked to pause above it */
    int connections_max;
    int head_ms;  /* the whole head; a body must keep up 16 KiB/s after as long a grace */
    int idle_ms;  /* between requests */
    int stall_ms; /* without progress in sending */
} http_limits;
http_limits http_limits_default(void);

typedef struct http_server http_server;

/* One request and its answer. Valid from the `head` hook until the answer is complete or `gone` returned. */
typedef struct http_exchange {
    http_head head;
    span body;
    buffer path; /* decoded; "" when the head could not be read */
    uint64_t start_ns;
    int status; /* of the answer; 0 while there is none */
    bool gone;  /* the client left before the answer was complete */
    /* The hooks' own. */
    void *user;
    const char *note; /* static; for the log */
} http_exchange;

typedef struct http_hooks {
    void *context;
    void (*head)(void *context, http_exchange *x);    /* may answer at once: the body is not read then */
    void (*request)(void *context, http_exchange *x); /* body is complete; answer now or later */
    void (*fault)(void *context, http_exchange *x, int status, const char *message); /* must answer */
    void (*writable)(void *context, http_exchange *x); /* less than half of unsent_high is left */
    void (*ended)(void *context, http_exchange *x);    /* answered, or gone; the last call about x */
} http_hooks;

err_code http_server_create(struct event_base *base, const char *host, int port, const http_limits *limits,
                            const http_hooks *hooks, http_server **out, error *err);
void http_server_destroy(http_server *h); /* every connection is closed; answers under way count as gone */
int http_server_port(const http_server *h);
int http_server_connections(const http_server *h);
uint64_t http_server_refused(const http_server *h); /* connections refused or displaced at the limit */
/* Stops accepting; idle connections close, others after their answer. True when no request is under way. */
bool http_server_drain(http_server *h);

/* Answers. headers: further header lines, each ended by CR LF, or NULL. */
void http_reply(http_exchange *x, int status, const char *type, const char *headers, span body);
void http_stream_begin(http_exchange *x, int status, const char *type, const char *headers);
/* Sends data as it stands now; last ends the body in the same write. */
void http_stream_write(http_exchange *x, span data, bool last);
bool http_congested(http_exchange *x); /* above unsent_high: `writable` will be called */
/* Moves the body out, for work that may outlive the exchange. x->body is empty then. */
void http_take_body(http_exchange *x, buffer *out);

#endif
