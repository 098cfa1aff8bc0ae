/* Fuzz target: request heads and chunked bodies. The first byte chooses the size of the pieces; the same input in one
 * piece and in many must end the same. */
#include <stdint.h>
#include <string.h>

#include "serve/http_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static http_chunks_result decode(span in, size_t piece, buffer *body, size_t *used) {
    http_chunks chunks = {0};
    http_fault fault;
    http_chunks_result result = HTTP_CHUNKS_MORE;
    *used = 0;
    while (*used < in.size && result == HTTP_CHUNKS_MORE) {
        size_t took, take = in.size - *used < piece ? in.size - *used : piece;
        result = http_chunks_feed(&chunks, span_make(in.data + *used, take), &took, body, 1 << 16, &fault);
        *used += took;
    }
    return result;
}

static size_t head_end_by_pieces(span in, size_t piece) {
    size_t scanned = 0, end = 0;
    for (size_t have = piece; !end; have += piece) {
        if (have > in.size) have = in.size;
        end = http_head_end(span_make(in.data, have), &scanned);
        if (have == in.size) break;
    }
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t piece = data[0] % 7 + 1;
    span in = span_make((const char *)data + 1, size - 1);

    size_t scanned = 0, end = http_head_end(in, &scanned);
    HEARTH_ASSERT(head_end_by_pieces(in, piece) == end);
    http_head head;
    http_fault fault = {0};
    if (end && http_head_parse(span_make(in.data, end), &head, &fault)) {
        buffer path = {0};
        http_path_decode(head.path, &path);
        buffer_deinit(&path);
        HEARTH_ASSERT(!(head.chunked && head.content_length));
        in = span_make(in.data + end, in.size - end);
    } else if (end) {
        HEARTH_ASSERT(fault.status >= 400 && fault.message);
    }

    buffer whole = {0}, pieces = {0};
    size_t used_whole, used_pieces;
    http_chunks_result result = decode(in, in.size + 1, &whole, &used_whole);
    HEARTH_ASSERT(decode(in, piece, &pieces, &used_pieces) == result);
    HEARTH_ASSERT(used_whole == used_pieces && whole.size == pieces.size);
    HEARTH_ASSERT(!whole.size || !memcmp(whole.data, pieces.data, whole.size));
    buffer_deinit(&whole);
    buffer_deinit(&pieces);
    return 0;
}
