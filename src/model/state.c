/* Sizes of a sequence's state, and the KV pool's memory. */
#include <string.h>

#include "base/memory.h"
#include "model/model.h"

int64_t model_recurrent_count(const model_config *c) {
    return (int64_t)c->gdn_layers * c->value_heads * c->key_dim * c->value_dim;
}

int64_t model_conv_count(const model_config *c) { return (int64_t)c->gdn_layers * (c->conv_taps - 1) * c->channels; }

/* K alone, or V alone. */
static uint64_t half_bytes(const kv_pool *kv) {
    uint64_t rows = (uint64_t)kv->layers * (uint64_t)kv->page_count * (uint64_t)kv->kv_heads * KV_PAGE;
    return rows * (uint64_t)kv->head_dim * dtype_size(kv->type);
}

static kv_pool describe(const model_config *c, dtype type, int page_count) {
    return (kv_pool){.type = type,
                     .layers = c->attention_layers + c->mtp_layers,
                     .kv_heads = c->kv_heads,
                     .head_dim = c->head_dim,
                     .page_count = page_count};
}

uint64_t model_kv_page_bytes(const model_config *c, dtype type) {
    kv_pool one = describe(c, type, 1);
    return 2 * half_bytes(&one);
}

err_code model_kv_init(const model_config *c, dtype type, int page_count, kv_pool *out, error *err) {
    HEARTH_ASSERT(page_count > 0 && (type == DTYPE_F32 || type == DTYPE_BF16 || type == DTYPE_F8_E4M3));
    kv_pool kv = describe(c, type, page_count);
    uint64_t bytes = half_bytes(&kv);
    ERR_TRY(memory_map(bytes, "KV cache (keys)", &kv.k, err));
    err_code code = memory_map(bytes, "KV cache (values)", &kv.v, err);
    if (code) {
        memory_unmap(kv.k, bytes);
        return code;
    }
    *out = kv;
    return ERR_OK;
}

void model_kv_deinit(kv_pool *kv) {
    uint64_t bytes = half_bytes(kv);
    memory_unmap(kv->k, bytes);
    memory_unmap(kv->v, bytes);
    *kv = (kv_pool){0};
}
