/* Memory: allocations that cannot fail, an arena per request, and a growable byte buffer.
 *
 * Small allocations that fail end the process with a message: on the systems Hearth runs on they do not fail one by
 * one, and code that pretends otherwise is never tested. Large ones (weights, KV, snapshots) are planned at start and
 * use memory_map, which reports failure. Sizes that come from a file or a request must be checked before they get here. */
#ifndef HEARTH_BASE_MEMORY_H
#define HEARTH_BASE_MEMORY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* malloc, calloc, realloc and strdup that abort on failure. Free with free(). count * size must not overflow (asserted). */
void *mem_alloc(size_t size);
void *mem_zero(size_t count, size_t size);
void *mem_grow(void *old, size_t count, size_t size);
char *mem_copy(const void *data, size_t size); /* owned copy with a NUL after it */

/* size bytes of zeroed memory, 64-byte aligned (whole pages), straight from the system. Release with memory_unmap and
 * the same size. `what` names the memory in the error. Huge pages are asked for where that helps. */
err_code memory_map(size_t size, const char *what, void **out, error *err);
void memory_unmap(void *data, size_t size);

/* Arena: many small allocations released together. 16-byte alignment. Under AddressSanitizer a red zone lies between
 * allocations. Not thread-safe; one owner. */
typedef struct arena arena;
arena *arena_create(void);
void arena_destroy(arena *a);
void arena_reset(arena *a); /* forgets everything, keeps the first block */
void *arena_alloc(arena *a, size_t size);
char *arena_copy(arena *a, const void *data, size_t size); /* with a NUL after it */
size_t arena_used(const arena *a);                         /* bytes handed out since create or reset */

/* Byte buffer. Zero-initialise ({0}); data is NUL-terminated whenever it is not NULL. */
typedef struct buffer {
    char *data; /* owned */
    size_t size, capacity;
} buffer;
void buffer_deinit(buffer *b);
void buffer_clear(buffer *b);                  /* size 0, memory kept */
char *buffer_reserve(buffer *b, size_t extra); /* room for extra more bytes; returns the end */
void buffer_append(buffer *b, const void *data, size_t size);
void buffer_text(buffer *b, const char *text); /* NUL-terminated text */
void buffer_char(buffer *b, char c);
void buffer_printf(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *buffer_take(buffer *b); /* the data, now the caller's (free()), never NULL; the buffer is empty again */

/* A borrowed run of bytes; not NUL-terminated. */
typedef struct span {
    const char *data;
    size_t size;
} span;
static inline span span_make(const char *data, size_t size) { return (span){data, size}; }
span span_text(const char *text); /* of a NUL-terminated string */
bool span_equal(span a, span b);
bool span_is(span a, const char *text);
bool span_starts(span a, span prefix);
ptrdiff_t span_find(span haystack, span needle); /* offset of the first occurrence, or -1 */

#endif
