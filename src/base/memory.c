/* Allocation, arena, buffer and span helpers; see memory.h. */
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature) /* clang's way of saying what gcc says with __SANITIZE_ADDRESS__ */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define RED_ZONE 16
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define RED_ZONE 0
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

static void *checked(void *p) {
    if (!p) {
        fputs("hearth: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *mem_alloc(size_t size) { return checked(malloc(size ? size : 1)); }

void *mem_zero(size_t count, size_t size) { return checked(calloc(count ? count : 1, size ? size : 1)); }

void *mem_grow(void *old, size_t count, size_t size) {
    size_t bytes;
    HEARTH_ASSERT(!__builtin_mul_overflow(count, size, &bytes));
    return checked(realloc(old, bytes ? bytes : 1));
}

char *mem_copy(const void *data, size_t size) {
    char *copy = mem_alloc(size + 1);
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
}

err_code memory_map(size_t size, const char *what, void **out, error *err) {
    void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) ERR_FAIL(err, ERR_MEMORY, "%s: cannot map %zu bytes: %s", what, size, strerror(errno));
    if (size >= (4u << 20)) madvise(p, size, MADV_HUGEPAGE); /* advice: failure costs only speed */
    *out = p;
    return ERR_OK;
}

void memory_unmap(void *data, size_t size) {
    if (data) munmap(data, size ? size : 1);
}

/* Arena: a list of blocks, the newest first; a large request gets a block of its own. */

typedef struct block {
    struct block *next;
    size_t size, used; /* bytes after the header */
} block;

struct arena {
    block *first; /* newest */
    size_t used;
};

enum { BLOCK_SIZE = 64 * 1024 - 64, ALIGN = 16 };

static char *block_data(block *b) { return (char *)b + ((sizeof *b + ALIGN - 1) & ~(size_t)(ALIGN - 1)); }

static block *block_create(size_t size, block *next) {
    block *b = mem_alloc(sizeof *b + ALIGN + size);
    b->next = next;
    b->size = size;
    b->used = 0;
    POISON(block_data(b), size);
    return b;
}

arena *arena_create(void) {
    arena *a = mem_zero(1, sizeof *a);
    a->first = block_create(BLOCK_SIZE, NULL);
    return a;
}

static void block_destroy(block *b) {
    UNPOISON(block_data(b), b->size);
    free(b);
}

void arena_reset(arena *a) {
    while (a->first->next) {
        block *next = a->first->next;
        block_destroy(a->first);
        a->first = next;
    }
    a->first->used = 0;
    POISON(block_data(a->first), a->first->size);
    a->used = 0;
}

void arena_destroy(arena *a) {
    if (!a) return;
    arena_reset(a);
    block_destroy(a->first);
    free(a);
}

void *arena_alloc(arena *a, size_t size) {
    HEARTH_ASSERT(size < SIZE_MAX / 2);
    size_t need = ((size ? size : 1) + ALIGN - 1 + RED_ZONE) & ~(size_t)(ALIGN - 1);
    if (a->first->size - a->first->used < need)
        a->first = block_create(need > BLOCK_SIZE ? need : BLOCK_SIZE, a->first);
    char *p = block_data(a->first) + a->first->used;
    a->first->used += need;
    a->used += need;
    UNPOISON(p, size);
    return p;
}

char *arena_copy(arena *a, const void *data, size_t size) {
    char *copy = arena_alloc(a, size + 1);
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
}

size_t arena_used(const arena *a) { return a->used; }

void buffer_deinit(buffer *b) {
    free(b->data);
    *b = (buffer){0};
}

void buffer_clear(buffer *b) {
    b->size = 0;
    if (b->data) b->data[0] = 0;
}

char *buffer_reserve(buffer *b, size_t extra) {
    HEARTH_ASSERT(extra < SIZE_MAX / 4 && b->size < SIZE_MAX / 4);
    size_t need = b->size + extra + 1;
    if (need > b->capacity) {
        size_t capacity = b->capacity ? b->capacity * 2 : 64;
        if (capacity < need) capacity = need;
        b->data = mem_grow(b->data, capacity, 1);
        b->capacity = capacity;
    }
    return b->data + b->size;
}

void buffer_append(buffer *b, const void *data, size_t size) {
    char *end = buffer_reserve(b, size);
    if (size) memcpy(end, data, size);
    b->size += size;
    b->data[b->size] = 0;
}

void buffer_text(buffer *b, const char *text) { buffer_append(b, text, strlen(text)); }

void buffer_char(buffer *b, char c) { buffer_append(b, &c, 1); }

void buffer_printf(buffer *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    HEARTH_ASSERT(length >= 0);
    vsnprintf(buffer_reserve(b, (size_t)length), (size_t)length + 1, format, again);
    b->size += (size_t)length;
    va_end(again);
    va_end(args);
}

char *buffer_take(buffer *b) {
    buffer_reserve(b, 0);
    b->data[b->size] = 0;
    char *data = b->data;
    *b = (buffer){0};
    return data;
}

span span_text(const char *text) { return (span){text, strlen(text)}; }

bool span_equal(span a, span b) { return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0); }

bool span_is(span a, const char *text) { return span_equal(a, span_text(text)); }

bool span_starts(span a, span prefix) {
    return a.size >= prefix.size && (prefix.size == 0 || memcmp(a.data, prefix.data, prefix.size) == 0);
}

ptrdiff_t span_find(span haystack, span needle) {
    if (needle.size == 0) return 0;
    const char *hit = haystack.size ? memmem(haystack.data, haystack.size, needle.data, needle.size) : NULL;
    return hit ? hit - haystack.data : -1;
}
