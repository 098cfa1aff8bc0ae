/* See id_pool.h. */
#include "cache/id_pool.h"

#include <stdlib.h>

#include "base/memory.h"

void id_pool_init(id_pool *p, byte_budget *budget, uint64_t item_bytes, int ids_max) {
    HEARTH_ASSERT(item_bytes > 0 && ids_max > 0);
    uint64_t affordable = budget->max / item_bytes;
    *p = (id_pool){.budget = budget, .item_bytes = item_bytes};
    p->count = affordable < (uint64_t)ids_max ? (int)affordable : ids_max;
    p->references = mem_zero((size_t)p->count + 1, sizeof *p->references);
    p->free_ids = mem_zero((size_t)p->count + 1, sizeof *p->free_ids);
    for (int i = 0; i < p->count; i++) p->free_ids[i] = p->count - 1 - i;
    p->free_count = p->count;
}

void id_pool_deinit(id_pool *p) {
    free(p->references);
    free(p->free_ids);
    *p = (id_pool){0};
}

int32_t id_acquire(id_pool *p) {
    byte_budget *b = p->budget;
    if (!p->free_count || b->max - b->used < p->item_bytes) return -1;
    int32_t id = p->free_ids[--p->free_count];
    HEARTH_ASSERT(p->references[id] == 0);
    p->references[id] = 1;
    b->used += p->item_bytes;
    if (b->used > b->peak) b->peak = b->used;
    if (++p->used > p->peak) p->peak = p->used;
    return id;
}

void id_retain(id_pool *p, int32_t id) {
    HEARTH_ASSERT(id >= 0 && id < p->count && p->references[id] > 0);
    p->references[id]++;
}

void id_release(id_pool *p, int32_t id) {
    HEARTH_ASSERT(id >= 0 && id < p->count && p->references[id] > 0);
    if (--p->references[id]) return;
    p->free_ids[p->free_count++] = id;
    p->budget->used -= p->item_bytes;
    p->used--;
}
