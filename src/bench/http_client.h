/* One HTTP/1.1 connection, kept alive, one request at a time; http and https. */
#ifndef HEARTH_BENCH_HTTP_CLIENT_H
#define HEARTH_BENCH_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct http_client http_client;

err_code http_client_open(int timeout_s, http_client **out, error *err);
void http_client_close(http_client *c);

typedef struct http_request {
    const char *url;
    const char *const *headers; /* "Name: value", ends with NULL; a name with nothing after the colon is not sent */
    span body;                  /* POST; without data GET */
    /* Bytes of the body, as they come; status is the answer's. */
    void (*on_body)(void *context, int status, span bytes, uint64_t now_ns);
    void *context;
    bool (*cancelled)(void *context); /* asked about every second; may be NULL */
} http_request;

typedef struct http_outcome {
    int status;          /* 0: the connection ended before an answer began */
    uint64_t start_ns;   /* just before the request is handed over */
    uint64_t end_ns;     /* the answer is complete, or has failed */
    bool new_connection; /* this request opened one */
} http_outcome;

/* Fails when the answer did not come whole: ERR_LIMIT = timed out, ERR_CANCELLED, ERR_IO = no connection, closed before
 * the headers, cut. The outcome is filled in all cases. A status such as 500 is no failure here. */
err_code http_client_send(http_client *c, const http_request *request, http_outcome *outcome, error *err);

#endif
