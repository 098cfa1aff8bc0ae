/* Streams from a server that may send anything: the same answer however the bytes are cut, and no crash. */
#include <stdint.h>

#include "bench/reply.h"

static err_code on_event(void *context, span data, error *err) {
    (void)err;
    reply_event(context, data, 1);
    return ERR_OK;
}

static void read_all(reply *r, span bytes, size_t step) {
    event_stream s = {.on_event = on_event, .context = r};
    for (size_t at = 0; at < bytes.size; at += step) {
        size_t size = bytes.size - at < step ? bytes.size - at : step;
        HEARTH_ASSERT(event_stream_feed(&s, span_make(bytes.data + at, size), NULL) == ERR_OK);
    }
    event_stream_deinit(&s);
}

static void write_all(const reply *r, buffer *out) {
    arena *a = arena_create();
    json *calls = reply_calls_json(a, &r->message, CALLS_PARSED), *rest = reply_calls_json(a, &r->rest, CALLS_INDEXED);
    buffer_append(out, r->message.content.data, r->message.content.size);
    buffer_append(out, r->message.reasoning.data, r->message.reasoning.size);
    if (calls) json_write(out, calls, JSON_COMPACT);
    if (rest) json_write(out, rest, JSON_COMPACT);
    buffer_append(out, r->finish_reason.data, r->finish_reason.size);
    buffer_append(out, r->error_text.data, r->error_text.size);
    buffer_printf(out, "%llu %d %d", (unsigned long long)r->events, r->done, r->malformed);
    arena_destroy(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > 1 << 16) return 0;
    span bytes = span_make((const char *)data + 1, size - 1);
    reply whole = {0}, pieces = {0};
    buffer a = {0}, b = {0};
    read_all(&whole, bytes, bytes.size ? bytes.size : 1);
    read_all(&pieces, bytes, 1 + data[0] % 17);
    write_all(&whole, &a);
    write_all(&pieces, &b);
    HEARTH_ASSERT(span_equal(span_make(a.data, a.size), span_make(b.data, b.size)));
    buffer_deinit(&a);
    buffer_deinit(&b);
    reply_deinit(&whole);
    reply_deinit(&pieces);
    return 0;
}
