/* HTTP/1.1 request framing (RFC 9112): bytes to a request head, and the chunked transfer coding. No sockets.
 *
 * Why own code: evhttp of libevent 2.1.12 ends the process ("illegal connection state") when bytes arrive while a request
 * is being answered and reading is on, and reading must be on to notice a client that leaves; its time limits count
 * inactivity only, so one byte a second lives for ever; its error pages are HTML. A request head is small enough to be
 * read strictly: what two parsers could read differently (both lengths, folded lines, a bare CR or LF, blanks before the
 * colon) is refused, so that nothing can be smuggled past a proxy in front. */
#ifndef HEARTH_SERVE_HTTP_MESSAGE_H
#define HEARTH_SERVE_HTTP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

enum { HTTP_HEADERS_MAX = 64 };

typedef struct http_header {
    span name, value; /* value without blanks around it */
} http_header;

typedef struct http_head {
    span method, path; /* path: still percent-encoded, without the query */
    int minor;         /* HTTP/1.minor */
    http_header headers[HTTP_HEADERS_MAX];
    int header_count;
    bool keep_alive, chunked, expect_continue;
    uint64_t content_length; /* 0 when chunked or absent */
} http_head;

/* What is wrong: an HTTP status and a static sentence. */
typedef struct http_fault {
    int status;
    const char *message;
} http_fault;

/* Size of the head including its empty line, or 0 when the end has not arrived. *scanned: bytes already looked at,
 * 0 at first, so that a head that comes byte by byte is read once. */
size_t http_head_end(span bytes, size_t *scanned);
/* Whether bytes can still become a request: the first one must be a letter (a TLS hello is not). */
bool http_head_plausible(span bytes);
/* Parses a whole head (http_head_end bytes). Spans borrow from it. */
bool http_head_parse(span bytes, http_head *head, http_fault *fault);
/* Value of a header, names compared without case; {NULL, 0} when absent. */
span http_head_get(const http_head *head, const char *name);
/* Percent-decodes a path into out. False for a broken escape, NUL, or a control character. */
bool http_path_decode(span path, buffer *out);

/* Decoder of the chunked coding; zero-initialise. Extensions and trailers are read and dropped. */
typedef struct http_chunks {
    int state;
    uint64_t left;    /* data bytes of the current chunk still to come */
    size_t overhead;  /* bytes of size lines and trailers, bounded */
    int digits;       /* of the current size */
    size_t line_size; /* of the current trailer line */
} http_chunks;

typedef enum { HTTP_CHUNKS_MORE, HTTP_CHUNKS_DONE, HTTP_CHUNKS_FAULT } http_chunks_result;
/* Consumes bytes (*used of them), appending data to body, which may grow to body_max. */
http_chunks_result http_chunks_feed(http_chunks *c, span bytes, size_t *used, buffer *body, size_t body_max,
                                    http_fault *fault);

#endif
