/* The multi-token prediction layer: one attention layer that guesses the token after the next.
 *
 *   x = fc [norm_e(embed(token)) ; norm_h(hidden)], one layer, mtp.norm, head
 *
 * It has KV rows of its own (the last layer of the pool) but no recurrent state, so it never disturbs a tree that waits
 * for its commit: the stash, its segments and its depths are not touched here. */
#include <string.h>

#include "model/model_internal.h"

/* work.pair = [norm_e(embed(tokens)) ; norm_h(hidden)] */
static void make_pairs(model *m, const int32_t *tokens, const float *hidden, int count) {
    workspace *w = &m->work;
    const mtp_weights *mtp = &m->weights.mtp;
    int width = m->config.hidden;
    float eps = m->config.norm_eps;
    size_t row = (size_t)width * sizeof(float);
    m->ops->embed(m->pool, w->x, &m->weights.embed, tokens, count);
    m->ops->rms_norm(m->pool, w->normed, w->x, mtp->norm_embedding, count, width, eps);
    m->ops->rms_norm(m->pool, w->branch, hidden, mtp->norm_hidden, count, width, eps);
    for (int i = 0; i < count; i++) {
        memcpy(w->pair + (size_t)i * 2 * (size_t)width, w->normed + (size_t)i * (size_t)width, row);
        memcpy(w->pair + ((size_t)i * 2 + 1) * (size_t)width, w->branch + (size_t)i * (size_t)width, row);
    }
}

err_code model_mtp_forward(model *m, const kv_pool *kv, const sequence *seq, int position, int count,
                           const int32_t *tokens, const float *hidden, const int32_t *parents, float *out,
                           int logits_from, float *logits, error *err) {
    workspace *w = &m->work;
    const mtp_weights *mtp = &m->weights.mtp;
    HEARTH_ASSERT(m->config.mtp_layers && position >= 0 && count >= 1 && count <= m->rows_max);
    HEARTH_ASSERT(logits_from >= 0 && logits_from <= count && (logits || logits_from == count));
    ERR_TRY(model_check_tokens(m, tokens, count, err));
    if (parents) model_tree_depth(parents, count, w->mtp_depth);
    sequence here = {.pages = seq->pages, .length = position};
    segment seg = {.seq = &here, .count = count, .parents = parents, .depth = parents ? w->mtp_depth : NULL};
    step s = {.kv = model_scaled_kv(m, kv), .segments = &seg, .segment_count = 1, .rows = count};
    make_pairs(m, tokens, hidden, count);
    model_linear(m, w->x, w->pair, &mtp->fc, count);
    model_run_layer(m, &mtp->layer, &s, m->config.attention_layers);
    m->ops->rms_norm(m->pool, out, w->x, mtp->norm, count, m->config.hidden, m->config.norm_eps);
    if (logits_from < count)
        model_run_head(m, &mtp->head, logits, out + (size_t)logits_from * (size_t)m->config.hidden,
                       count - logits_from);
    return ERR_OK;
}
