/* A pool that counts memory without having any: ids with reference counts, charged to a byte budget.
 *
 * It stands in for the pools of KV pages and states wherever the cache runs without a model: `bench cache` measures what
 * a budget is worth for a model that is not there, and tests check every reference. Two pools may share one budget, which
 * is how pages and snapshots compete for the same bytes. */
#ifndef HEARTH_CACHE_ID_POOL_H
#define HEARTH_CACHE_ID_POOL_H

#include <stdint.h>

typedef struct byte_budget {
    uint64_t max, used, peak;
} byte_budget;

typedef struct id_pool {
    byte_budget *budget; /* borrowed */
    uint64_t item_bytes;
    int32_t *references; /* [count]; 0 = free */
    int32_t *free_ids;   /* stack */
    int count, free_count, used, peak;
} id_pool;

/* As many ids as the whole budget could pay for, at most ids_max. */
void id_pool_init(id_pool *p, byte_budget *budget, uint64_t item_bytes, int ids_max);
void id_pool_deinit(id_pool *p);

int32_t id_acquire(id_pool *p); /* one reference; -1 when ids or bytes are used up */
void id_retain(id_pool *p, int32_t id);
void id_release(id_pool *p, int32_t id);

#endif
