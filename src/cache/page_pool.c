/* See page_pool.h. */
#include "cache/page_pool.h"

#include <stdlib.h>
#include <string.h>

err_code page_pool_init(page_pool *p, const model_config *config, dtype type, int page_count, error *err) {
    HEARTH_ASSERT(page_count > 0);
    *p = (page_pool){0};
    ERR_TRY(model_kv_init(config, type, page_count, &p->kv, err));
    p->free_pages = mem_zero((size_t)page_count, sizeof *p->free_pages);
    p->references = mem_zero((size_t)page_count, sizeof *p->references);
    /* Lowest page on top: a pool that is hardly used touches little memory. */
    for (int i = 0; i < page_count; i++) p->free_pages[i] = page_count - 1 - i;
    p->free_count = page_count;
    return ERR_OK;
}

void page_pool_deinit(page_pool *p) {
    if (p->references) model_kv_deinit(&p->kv);
    free(p->free_pages);
    free(p->references);
    *p = (page_pool){0};
}

int page_pool_used(const page_pool *p) { return p->kv.page_count - p->free_count; }

int32_t page_acquire(page_pool *p) {
    if (!p->free_count) return -1;
    int32_t page = p->free_pages[--p->free_count];
    HEARTH_ASSERT(p->references[page] == 0);
    p->references[page] = 1;
    return page;
}

void page_retain(page_pool *p, int32_t page) {
    HEARTH_ASSERT(p->references[page] > 0);
    p->references[page]++;
}

void page_release(page_pool *p, int32_t page) {
    HEARTH_ASSERT(p->references[page] > 0);
    if (--p->references[page] == 0) p->free_pages[p->free_count++] = page;
}

void page_copy(page_pool *p, int32_t from, int32_t to) {
    const kv_pool *kv = &p->kv;
    size_t bytes = (size_t)kv->kv_heads * KV_PAGE * (size_t)kv->head_dim * dtype_size(kv->type);
    for (int layer = 0; layer < kv->layers; layer++) {
        size_t base = (size_t)layer * (size_t)kv->page_count;
        memcpy((char *)kv->k + (base + (size_t)to) * bytes, (char *)kv->k + (base + (size_t)from) * bytes, bytes);
        memcpy((char *)kv->v + (base + (size_t)to) * bytes, (char *)kv->v + (base + (size_t)from) * bytes, bytes);
    }
}
