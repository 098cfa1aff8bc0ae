/* KV pages: one pool of fixed pages for all sequences, shared by reference count.
 *
 * A page belongs to nobody in particular: every sequence whose token path runs through it holds one reference. Pages that
 * are full are never written again, so they may be shared; the page that holds the end of a running sequence has one
 * holder, which is why a fork copies it. One thread. */
#ifndef HEARTH_CACHE_PAGE_POOL_H
#define HEARTH_CACHE_PAGE_POOL_H

#include "base/memory.h"
#include "model/model.h"

typedef struct page_pool {
    kv_pool kv;          /* owned */
    int32_t *free_pages; /* stack of free_count page numbers */
    int32_t *references; /* per page; 0 = free */
    int free_count;
} page_pool;

/* Reserves page_count pages (model_kv_page_bytes each). On failure *p is empty and deinit is allowed. */
err_code page_pool_init(page_pool *p, const model_config *config, dtype type, int page_count, error *err);
void page_pool_deinit(page_pool *p);
int page_pool_used(const page_pool *p);

int32_t page_acquire(page_pool *p); /* one reference; -1 when no page is free */
void page_retain(page_pool *p, int32_t page);
void page_release(page_pool *p, int32_t page);
void page_copy(page_pool *p, int32_t from, int32_t to); /* K and V of every layer */

#endif
