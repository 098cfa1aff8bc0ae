/* Server-Sent Events, read as they arrive, in pieces of any size.
 *
 * Lines may end in LF, CR LF or CR; `data:` with or without a space after it; several data lines of one event are joined
 * by a newline; comments and the other fields are passed over. An event that the end of the stream cuts off is dropped,
 * as the standard says (WHATWG HTML, 9.2.6). */
#ifndef HEARTH_BENCH_EVENT_STREAM_H
#define HEARTH_BENCH_EVENT_STREAM_H

#include "base/memory.h"

enum { EVENT_BYTES_MAX = 64 << 20 }; /* of one event */

/* data borrows from the stream until the function returns. */
typedef err_code (*event_function)(void *context, span data, error *err);

typedef struct event_stream {
    event_function on_event; /* called for every event that has data; its failure ends event_stream_feed */
    void *context;
    buffer line, data; /* owned */
    bool has_data, after_cr, began;
} event_stream; /* zero-initialise, set on_event and context */

void event_stream_deinit(event_stream *s);
err_code event_stream_feed(event_stream *s, span bytes, error *err);

#endif
