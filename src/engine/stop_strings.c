/* See stop_strings.h. */
#include "engine/stop_strings.h"

#include <stdlib.h>
#include <string.h>

void stop_strings_init(stop_strings *s, const char *const *items, int count) {
    *s = (stop_strings){.count = count};
    if (!count) return;
    s->items = mem_zero((size_t)count, sizeof *s->items);
    s->sizes = mem_zero((size_t)count, sizeof *s->sizes);
    for (int i = 0; i < count; i++) {
        s->sizes[i] = strlen(items[i]);
        HEARTH_ASSERT(s->sizes[i] > 0);
        s->items[i] = mem_copy(items[i], s->sizes[i]);
    }
}

void stop_strings_deinit(stop_strings *s) {
    for (int i = 0; i < s->count; i++) free(s->items[i]);
    free(s->items);
    free(s->sizes);
    buffer_deinit(&s->held);
    *s = (stop_strings){0};
}

/* Length of the longest stop string that ends exactly at `end` of the held text, 0 = none. */
static size_t match_at(const stop_strings *s, size_t end) {
    size_t longest = 0;
    for (int i = 0; i < s->count; i++)
        if (s->sizes[i] <= end && s->sizes[i] > longest &&
            !memcmp(s->held.data + end - s->sizes[i], s->items[i], s->sizes[i]))
            longest = s->sizes[i];
    return longest;
}

/* Where the longest end of the held text that begins a stop string starts. */
static size_t hold_from(const stop_strings *s) {
    size_t size = s->held.size, from = size;
    for (int i = 0; i < s->count; i++) {
        size_t length = s->sizes[i] - 1 < size ? s->sizes[i] - 1 : size;
        for (; length > size - from; length--)
            if (!memcmp(s->held.data + size - length, s->items[i], length)) from = size - length;
    }
    return from;
}

bool stop_strings_feed(stop_strings *s, span text, buffer *out) {
    if (s->hit) return true;
    if (!s->count) {
        buffer_append(out, text.data, text.size);
        return false;
    }
    size_t old = s->held.size;
    buffer_append(&s->held, text.data, text.size);
    for (size_t end = old + 1; end <= s->held.size; end++) {
        size_t length = match_at(s, end);
        if (!length) continue;
        buffer_append(out, s->held.data, end - length);
        buffer_clear(&s->held);
        return s->hit = true;
    }
    size_t from = hold_from(s);
    buffer_append(out, s->held.data, from);
    memmove(s->held.data, s->held.data + from, s->held.size - from);
    s->held.size -= from;
    s->held.data[s->held.size] = 0;
    return false;
}

void stop_strings_flush(stop_strings *s, buffer *out) {
    buffer_append(out, s->held.data, s->held.size);
    buffer_clear(&s->held);
}
