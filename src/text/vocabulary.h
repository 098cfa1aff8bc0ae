/* Vocabulary: token id -> bytes, bytes -> id.
 *
 * Filled once while a tokenizer opens, then immutable. Finding a word is the hottest step of encoding, so the hash slot
 * holds words of up to 8 bytes (nine in ten of a source text) whole: one cache line settles them. */
#ifndef HEARTH_TEXT_VOCABULARY_H
#define HEARTH_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct vocabulary_slot {
    uint64_t key; /* the bytes when size <= 8, else their hash */
    int32_t id;
    uint32_t size; /* bytes; 0: free */
} vocabulary_slot;

typedef struct vocabulary {
    int32_t count;    /* ids are 0 .. count-1; some may be holes */
    uint32_t *starts; /* owned [count]: offset in bytes */
    uint32_t *sizes;  /* owned [count]: 0 for a hole */
    buffer bytes;
    vocabulary_slot *slots; /* owned, memory_map; power of two, at most half full */
    size_t slot_mask;
    uint32_t size_max; /* longest findable entry */
} vocabulary;

/* Ids 0 .. count-1, all holes; room for `entries` findable ones. */
err_code vocabulary_init(vocabulary *v, int32_t count, size_t entries, error *err);
void vocabulary_deinit(vocabulary *v);
void vocabulary_set_bytes(vocabulary *v, int32_t id, span bytes);    /* the id must be a hole; bytes not empty */
bool vocabulary_set_findable(vocabulary *v, int32_t id, span bytes); /* false: these bytes have an id already */

static inline bool vocabulary_has(const vocabulary *v, int32_t id) {
    return id >= 0 && id < v->count && v->sizes[id] != 0;
}
static inline span vocabulary_bytes(const vocabulary *v, int32_t id) {
    if (!vocabulary_has(v, id)) return span_make(NULL, 0);
    return span_make(v->bytes.data + v->starts[id], v->sizes[id]);
}
int32_t vocabulary_find(const vocabulary *v, span word); /* id or -1 */

#endif
