/* The streamed answer: engine events to chat.completion.chunk objects as Server-Sent Events.
 *
 * Every event is "data: " and one line of JSON and a blank line, with bare LF: clients that split at "\n\n" see nothing
 * until the end of the body if lines end in CR LF. The shape, in order: a chunk with the role alone; text deltas; for each
 * call one delta with index, id, type, name and empty arguments, then its arguments in pieces; a chunk with an empty delta
 * and the finish_reason; the usage if asked for; [DONE]. */
#ifndef HEARTH_SERVE_SSE_H
#define HEARTH_SERVE_SSE_H

#include "hearth.h"
#include "serve/api_error.h"
#include "serve/reply_parts.h"

#define SSE_KEEP_ALIVE ": keep-alive\n\n"

typedef struct sse {
    buffer prefix; /* what each chunk begins with, written once */
    bool include_usage;
} sse;

void sse_init(sse *s, const reply_identity *identity, bool include_usage);
void sse_deinit(sse *s);
void sse_begin(const sse *s, buffer *out);
/* HEARTH_EVENT_REASONING to _FINISH; FINISH writes all that ends a stream. CALL_END writes nothing. */
void sse_event(const sse *s, buffer *out, const hearth_event *event);
/* An error after the stream began: one event with the error object; the body ends after it, without [DONE]. */
void sse_error(buffer *out, const api_error *e);

#endif
