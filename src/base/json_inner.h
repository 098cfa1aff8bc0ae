/* Shared by the JSON sources only: the stack of open containers and the search for bytes that need care.
 *
 * Reading, writing and copying a tree all walk it with this stack instead of recursion, so that a deep document costs
 * heap memory, which is bounded by its size, and never overflows a thread's stack. */
#ifndef HEARTH_BASE_JSON_INNER_H
#define HEARTH_BASE_JSON_INNER_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

typedef struct json_frame {
    const json *from; /* walking: where we are */
    json *to;         /* building: the open container */
} json_frame;

typedef struct json_stack {
    json_frame *frames; /* owned */
    size_t count, capacity;
} json_stack;

static inline void json_push(json_stack *stack, const json *from, json *to) {
    if (stack->count == stack->capacity) {
        stack->capacity = stack->capacity ? stack->capacity * 2 : 32;
        stack->frames = mem_grow(stack->frames, stack->capacity, sizeof *stack->frames);
    }
    stack->frames[stack->count++] = (json_frame){from, to};
}

static inline json_frame json_top(const json_stack *stack) { return stack->frames[stack->count - 1]; }

static inline bool json_is_container(const json *value) {
    return value->type == JSON_ARRAY || value->type == JSON_OBJECT;
}

#define JSON_EACH_BYTE(byte) (0x0101010101010101u * (byte))
enum { JSON_HIGH_STOP = 1, JSON_HIGH_PASS = 0 }; /* are bytes from 0x80 up special? */

/* First byte of p[0..end) that is a quote, a backslash, a control character or (JSON_HIGH_STOP) not ASCII.
 *
 * Eight bytes at once: x - 0x20 borrows into a byte's top bit exactly when the byte is below 0x20, and x ^ quote is
 * below 1 exactly for a quote. A borrow may also mark the byte above a marked one, but the lowest mark, which is the
 * one we use, is always right. */
static inline const char *json_scan_plain(const char *p, const char *end, int high) {
    const uint64_t top = JSON_EACH_BYTE(0x80);
    for (; end - p >= 8; p += 8) {
        uint64_t x;
        memcpy(&x, p, 8);
        uint64_t quote = x ^ JSON_EACH_BYTE('"'), backslash = x ^ JSON_EACH_BYTE('\\');
        uint64_t special = ((x - JSON_EACH_BYTE(0x20)) & ~x) | ((quote - JSON_EACH_BYTE(1)) & ~quote) |
                           ((backslash - JSON_EACH_BYTE(1)) & ~backslash) | (high ? x : 0);
        special &= top;
        if (special) return p + (__builtin_ctzll(special) >> 3);
    }
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == '"' || c == '\\' || (high && c >= 0x80)) break;
    }
    return p;
}

#endif
