/* See nfc.h.
 *
 * The text is cut before inert characters: nothing before such a character can interact with it. A stretch is the
 * inert character before the first one that is not, and all that follow up to the next inert one; only stretches are
 * decomposed, ordered and composed.
 *
 * The ordering of combining marks is our own: utf8proc_map orders by insertion, so that a megabyte of marks in falling
 * order, which anyone may send, would take minutes. */
#include "text/nfc.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum { ORDER_BY_INSERTION_MAX = 32, DECOMPOSED_MAX = 4, COMBINING_CLASSES = 256 };

void nfc_deinit(nfc *n) {
    buffer_deinit(&n->out);
    buffer_deinit(&n->stretch);
    free(n->changes);
    free(n->points);
    *n = (nfc){0};
}

/* The large ranges of everyday text; the test checks every code point of them against utf8proc. */
bool nfc_is_inert(uint32_t c) {
    if (c < 0x300) return true;
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0388, 0x0482}, {0x048A, 0x052F}, {0x1E00, 0x1F6F}, {0x2002, 0x20CF}, {0x212C, 0x2328},   {0x232B, 0x2ADB},
        {0x2E80, 0x3029}, {0x3041, 0x3096}, {0x309B, 0xA48C}, {0xAC00, 0xD7A3}, {0x1F000, 0x1FAFF}, {0x20000, 0x2F7FF},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i].first; i++)
        if (c <= ranges[i].last) return true;
    return false;
}

/* Offset of the first character at or after `at` whose being inert equals `inert`, or the size of the text. */
static size_t next_with(span text, size_t at, bool inert) {
    while (at < text.size) {
        if ((signed char)text.data[at] >= 0) {
            if (inert) return at;
            at++;
            continue;
        }
        uint32_t c;
        int size = utf8_decode(text.data + at, text.size - at, &c);
        HEARTH_ASSERT(size > 0);
        if (nfc_is_inert(c) == inert) return at;
        at += (size_t)size;
    }
    return text.size;
}

static size_t character_start(span text, size_t at) {
    do at--;
    while (((unsigned char)text.data[at] & 0xC0) == 0x80);
    return at;
}

static int combining_class(int32_t c) { return utf8proc_get_property(c)->combining_class; }

static void order_by_insertion(int32_t *marks, size_t count) {
    for (size_t i = 1; i < count; i++) {
        int32_t mark = marks[i];
        size_t j = i;
        for (; j > 0 && combining_class(marks[j - 1]) > combining_class(mark); j--) marks[j] = marks[j - 1];
        marks[j] = mark;
    }
}

static void order_by_counting(int32_t *marks, size_t count) {
    size_t starts[COMBINING_CLASSES + 1] = {0};
    for (size_t i = 0; i < count; i++) starts[combining_class(marks[i]) + 1]++;
    for (size_t i = 1; i <= COMBINING_CLASSES; i++) starts[i] += starts[i - 1];
    int32_t *copy = mem_alloc(count * sizeof *copy);
    memcpy(copy, marks, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) marks[starts[combining_class(copy[i])]++] = copy[i];
    free(copy);
}

/* Canonical ordering: marks between two starters stand in order of their class, equal classes as they came. */
static void order_marks(int32_t *points, size_t count) {
    for (size_t i = 0; i < count;) {
        size_t start = i;
        while (i < count && combining_class(points[i]) != 0) i++;
        if (i - start > ORDER_BY_INSERTION_MAX)
            order_by_counting(points + start, i - start);
        else if (i - start > 1)
            order_by_insertion(points + start, i - start);
        if (i == start) i++;
    }
}

static size_t decompose(nfc *n, span text) {
    if (n->point_capacity < (text.size + 1) * DECOMPOSED_MAX) {
        n->point_capacity = (text.size + 1) * DECOMPOSED_MAX;
        n->points = mem_grow(n->points, n->point_capacity, sizeof *n->points);
    }
    size_t count = 0;
    int bound_class = 0;
    for (size_t i = 0; i < text.size;) {
        uint32_t c = 0;
        i += (size_t)utf8_decode(text.data + i, text.size - i, &c);
        utf8proc_ssize_t size = utf8proc_decompose_char((utf8proc_int32_t)c, n->points + count, DECOMPOSED_MAX,
                                                        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &bound_class);
        HEARTH_ASSERT(size >= 0 && size <= DECOMPOSED_MAX);
        count += (size_t)size;
    }
    return count;
}

static span normalize_stretch(nfc *n, span text) {
    size_t count = decompose(n, text);
    order_marks(n->points, count);
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(n->points, (utf8proc_ssize_t)count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    HEARTH_ASSERT(composed >= 0);
    buffer_clear(&n->stretch);
    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        char *end = buffer_reserve(&n->stretch, 4);
        n->stretch.size += (size_t)utf8_encode((uint32_t)n->points[i], end);
    }
    return span_make(n->stretch.data, n->stretch.size);
}

static void add_change(nfc *n, size_t source_start, size_t source_end, size_t out_size) {
    if (n->change_count == n->change_capacity) {
        n->change_capacity = n->change_capacity ? n->change_capacity * 2 : 16;
        n->changes = mem_grow(n->changes, n->change_capacity, sizeof *n->changes);
    }
    n->changes[n->change_count++] = (nfc_change){source_start, source_end, n->out.size, n->out.size + out_size};
}

span nfc_normalize(nfc *n, span text) {
    n->change_count = 0;
    buffer_clear(&n->out);
    size_t copied = 0; /* source bytes that stand in n->out */
    for (size_t at = 0; (at = next_with(text, at, false)) < text.size;) {
        size_t start = at > 0 ? character_start(text, at) : 0;
        at = next_with(text, at, true);
        span source = span_make(text.data + start, at - start);
        span result = normalize_stretch(n, source);
        if (span_equal(source, result)) continue;
        buffer_append(&n->out, text.data + copied, start - copied);
        add_change(n, start, at, result.size);
        buffer_append(&n->out, result.data, result.size);
        copied = at;
    }
    if (n->change_count == 0) return text;
    buffer_append(&n->out, text.data + copied, text.size - copied);
    return span_make(n->out.data, n->out.size);
}
