/* The forward pass: a loop over layers on the rows of a step.
 *
 *   x = embed(ids)
 *   each layer:  x += mixer(norm(x));  x += mlp(norm(x))      mixer: gated attention or Gated DeltaNet
 *   final = norm(x);  logits = head final                      for the rows that want them
 *
 * A step's segments are put in row order with trees first, because the stash of tree rows is indexed by row and would
 * otherwise have to be as large as a prefill chunk. Chains and trees take the same path through everything here; only the
 * operators that look backwards (attention, conv, gdn) follow the parents. */
#include <string.h>

#include "model/model_internal.h"
#include "ops/quantise_input.h"

void model_linear(model *m, float *out, const float *x, const matrix *w, int rows) {
    if (m->activations == ACTIVATIONS_QUANTISED && input_is_quantised(w)) {
        quantise_input(m->pool, m->work.quantised, x, w, rows);
        x = m->work.quantised;
    }
    m->ops->matmul(m->pool, out, x, w, rows);
}

/* ---- blocks: work.normed -> work.branch */

static void run_attention(model *m, const attention_weights *w, const step *s, int layer) {
    const ops *o = m->ops;
    workspace *b = &m->work;
    model_linear(m, b->attention.qg, b->normed, &w->q, s->rows);
    model_linear(m, b->attention.k, b->normed, &w->k, s->rows);
    model_linear(m, b->attention.v, b->normed, &w->v, s->rows);
    o->qkv_store(m->pool, b->attention.q, b->attention.gate, b->attention.qg, b->attention.k, b->attention.v, w->q_norm,
                 w->k_norm, m->config.norm_eps, &m->attention, s->kv, layer, s->segments, s->segment_count);
    o->attention(m->pool, b->attention.mix, b->attention.q, b->attention.gate, &m->attention, s->kv, layer, s->segments,
                 s->segment_count);
    model_linear(m, b->branch, b->attention.mix, &w->o, s->rows);
}

static void run_gdn(model *m, const gdn_weights *w, const step *s, int layer) {
    const ops *o = m->ops;
    workspace *b = &m->work;
    model_linear(m, b->gdn.raw, b->normed, &w->qkv, s->rows);
    model_linear(m, b->gdn.z, b->normed, &w->z, s->rows);
    model_linear(m, b->gdn.b, b->normed, &w->b, s->rows);
    model_linear(m, b->gdn.a, b->normed, &w->a, s->rows);
    o->conv(m->pool, b->gdn.mixed, b->gdn.raw, w->taps, &m->gdn, layer, s->segments, s->segment_count);
    o->gdn(m->pool, b->gdn.mix, b->gdn.mixed, b->gdn.a, b->gdn.b, b->gdn.z, w->neg_exp_a, w->dt_bias, w->norm,
           m->config.norm_eps, &m->gdn, layer, s->segments, s->segment_count, &b->stash[layer], b->gdn.raw);
    model_linear(m, b->branch, b->gdn.mix, &w->out, s->rows);
}

static void run_mlp(model *m, const mlp_weights *w, const step *s) {
    const ops *o = m->ops;
    workspace *b = &m->work;
    model_linear(m, b->mlp.gate, b->normed, &w->gate, s->rows);
    model_linear(m, b->mlp.up, b->normed, &w->up, s->rows);
    o->swiglu(m->pool, b->mlp.gate, b->mlp.gate, b->mlp.up, (int64_t)s->rows * m->config.ffn);
    model_linear(m, b->branch, b->mlp.gate, &w->down, s->rows);
}

void model_run_layer(model *m, const layer_weights *w, const step *s, int index) {
    const ops *o = m->ops;
    workspace *b = &m->work;
    int hidden = m->config.hidden;
    int64_t count = (int64_t)s->rows * hidden;
    o->rms_norm(m->pool, b->normed, b->x, w->norm_in, s->rows, hidden, m->config.norm_eps);
    if (w->full_attention)
        run_attention(m, &w->attention, s, index);
    else
        run_gdn(m, &w->gdn, s, index);
    o->add(m->pool, b->x, b->branch, count);
    o->rms_norm(m->pool, b->normed, b->x, w->norm_mlp, s->rows, hidden, m->config.norm_eps);
    run_mlp(m, &w->mlp, s);
    o->add(m->pool, b->x, b->branch, count);
}

void model_run_head(model *m, const matrix *head, float *out, const float *x, int rows) {
    model_linear(m, out, x, head, rows);
}

static void run_layers(model *m, const step *s) {
    int attention = 0, gdn = 0;
    m->ops->embed(m->pool, m->work.x, &m->weights.embed, m->work.ids, s->rows);
    for (int i = 0; i < m->config.layers; i++) {
        const layer_weights *w = &m->weights.layers[i];
        model_run_layer(m, w, s, w->full_attention ? attention++ : gdn++);
    }
    m->ops->rms_norm(m->pool, m->work.final, m->work.x, m->weights.norm, s->rows, m->config.hidden, m->config.norm_eps);
}

/* ---- laying out a step */

const kv_pool *model_scaled_kv(model *m, const kv_pool *kv) {
    m->kv = *kv;
    m->kv.k_scale = m->weights.k_cache_scale;
    m->kv.v_scale = m->weights.v_cache_scale;
    return &m->kv;
}

err_code model_check_tokens(const model *m, const int32_t *tokens, int count, error *err) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= m->config.vocab_rows)
            ERR_FAIL(err, ERR_INVALID, "token %d has id %d, the vocabulary has %d rows", i, (int)tokens[i],
                     m->config.vocab_rows);
    return ERR_OK;
}

void model_tree_depth(const int32_t *parents, int count, int32_t *depth) {
    for (int i = 0; i < count; i++) {
        HEARTH_ASSERT(parents[i] >= -1 && parents[i] < i);
        depth[i] = parents[i] < 0 ? 0 : depth[parents[i]] + 1;
    }
}

static void check_captures(const model_segment *in) {
    HEARTH_ASSERT(!in->parents || !in->capture_count);
    for (int i = 0; i < in->capture_count; i++) {
        HEARTH_ASSERT(in->captures[i].after >= 1 && in->captures[i].after <= in->count);
        HEARTH_ASSERT(!i || in->captures[i].after > in->captures[i - 1].after);
    }
}

static void place_segment(model *m, const model_segment *in, segment *out, int row) {
    workspace *w = &m->work;
    check_captures(in);
    *out = (segment){
        .seq = in->seq, .row = row, .count = in->count, .captures = in->captures, .capture_count = in->capture_count};
    memcpy(w->ids + row, in->tokens, (size_t)in->count * sizeof *w->ids);
    if (!in->parents) return;
    memcpy(w->parents + row, in->parents, (size_t)in->count * sizeof *w->parents);
    model_tree_depth(in->parents, in->count, w->depth + row);
    out->parents = w->parents + row;
    out->depth = w->depth + row;
}

static void check_segments(const model *m, const model_segment *in, int count) {
    int rows = 0, tree_rows = 0;
    HEARTH_ASSERT(count >= 1 && count <= m->segments_max);
    for (int i = 0; i < count; i++) {
        HEARTH_ASSERT(in[i].count >= 1 && in[i].logits_from >= 0 && in[i].logits_from <= in[i].count);
        HEARTH_ASSERT(in[i].logits || in[i].logits_from == in[i].count);
        for (int j = 0; j < i; j++) HEARTH_ASSERT(in[j].seq != in[i].seq);
        rows += in[i].count;
        tree_rows += in[i].parents ? in[i].count : 0;
    }
    HEARTH_ASSERT(rows <= m->rows_max && tree_rows <= m->tree_rows_max);
}

static step lay_out(model *m, const kv_pool *kv, const model_segment *in, int count) {
    workspace *w = &m->work;
    step s = {.kv = kv, .segments = w->segments};
    for (int trees = 1; trees >= 0; trees--) {
        for (int i = 0; i < count; i++) {
            if ((in[i].parents != NULL) != trees) continue;
            w->place[i] = s.segment_count;
            w->tree_owner[i] = trees ? in[i].seq : NULL;
            place_segment(m, &in[i], &w->segments[s.segment_count++], s.rows);
            s.rows += in[i].count;
        }
    }
    for (int i = count; i < m->segments_max; i++) w->tree_owner[i] = NULL;
    return s;
}

/* ---- what the caller gets */

static void copy_rows(const model *m, float *to, int row, int count) {
    size_t hidden = (size_t)m->config.hidden;
    if (to) memcpy(to, m->work.final + (size_t)row * hidden, (size_t)count * hidden * sizeof *to);
}

static void deliver_hidden(const model *m, const model_segment *in, int row) {
    copy_rows(m, in->hidden, row, in->count);
    for (int i = 0; i < in->capture_count; i++)
        copy_rows(m, in->captures[i].hidden, row + in->captures[i].after - 1, 1);
}

/* Rows of several segments pass the head together, LOGIT_BLOCK at a time, so that its weights are not read once per
 * segment; `to` remembers where each row of the block belongs. */
typedef struct logit_block {
    float *to[LOGIT_BLOCK];
    int count;
} logit_block;

static void flush_block(model *m, logit_block *block) {
    size_t vocab = (size_t)m->config.vocab_rows;
    if (block->count) model_run_head(m, &m->weights.head, m->work.head_out, m->work.head_in, block->count);
    for (int i = 0; i < block->count; i++)
        memcpy(block->to[i], m->work.head_out + (size_t)i * vocab, vocab * sizeof(float));
    block->count = 0;
}

static void add_rows(model *m, logit_block *block, const model_segment *in, int row) {
    for (int i = in->logits_from; i < in->count; i++) {
        copy_rows(m, m->work.head_in + (size_t)block->count * (size_t)m->config.hidden, row + i, 1);
        block->to[block->count++] = in->logits + (size_t)(i - in->logits_from) * (size_t)m->config.vocab_rows;
        if (block->count == LOGIT_BLOCK) flush_block(m, block);
    }
}

static void deliver_logits(model *m, const model_segment *in, int count) {
    const workspace *w = &m->work;
    if (count == 1) {
        int rows = in->count - in->logits_from;
        const float *x = w->final + (size_t)in->logits_from * (size_t)m->config.hidden;
        if (rows) model_run_head(m, &m->weights.head, in->logits, x, rows);
        return;
    }
    logit_block block = {.count = 0};
    for (int i = 0; i < count; i++) add_rows(m, &block, &in[i], w->segments[w->place[i]].row);
    flush_block(m, &block);
}

err_code model_forward(model *m, const kv_pool *kv, const model_segment *segments, int segment_count, error *err) {
    check_segments(m, segments, segment_count);
    for (int i = 0; i < segment_count; i++) ERR_TRY(model_check_tokens(m, segments[i].tokens, segments[i].count, err));
    step s = lay_out(m, model_scaled_kv(m, kv), segments, segment_count);
    run_layers(m, &s);
    deliver_logits(m, segments, segment_count);
    for (int i = 0; i < segment_count; i++) {
        deliver_hidden(m, &segments[i], m->work.segments[m->work.place[i]].row);
        if (!segments[i].parents) segments[i].seq->length += segments[i].count;
    }
    return ERR_OK;
}

/* ---- committing an accepted path */

/* Moves one token's K or V rows, all heads of one layer. */
static void move_slot(const kv_pool *kv, void *base, const sequence *seq, int layer, int from, int to) {
    size_t row = (size_t)kv->head_dim * dtype_size(kv->type), head = row * KV_PAGE;
    size_t page = head * (size_t)kv->kv_heads, first = (size_t)layer * (size_t)kv->page_count;
    char *source = (char *)base + (first + (size_t)seq->pages[from / KV_PAGE]) * page + (size_t)(from % KV_PAGE) * row;
    char *target = (char *)base + (first + (size_t)seq->pages[to / KV_PAGE]) * page + (size_t)(to % KV_PAGE) * row;
    for (int h = 0; h < kv->kv_heads; h++) memcpy(target + (size_t)h * head, source + (size_t)h * head, row);
}

/* A node's slot is never before its target, and both ascend: no row is overwritten before it has moved. */
static void move_path(const model *m, const kv_pool *kv, const sequence *seq, const int32_t *path, int count) {
    for (int layer = 0; layer < m->config.attention_layers; layer++) {
        for (int i = 0; i < count; i++) {
            if (path[i] == i) continue;
            move_slot(kv, kv->k, seq, layer, seq->length + path[i], seq->length + i);
            move_slot(kv, kv->v, seq, layer, seq->length + path[i], seq->length + i);
        }
    }
}

void model_commit(model *m, const kv_pool *kv, int segment_index, const int32_t *path, int count) {
    workspace *w = &m->work;
    HEARTH_ASSERT(segment_index >= 0 && segment_index < m->segments_max);
    sequence *seq = w->tree_owner[segment_index];
    HEARTH_ASSERT(seq && count >= 0);
    w->tree_owner[segment_index] = NULL;
    const segment *seg = &w->segments[w->place[segment_index]];
    for (int i = 0; i < count; i++) {
        HEARTH_ASSERT(path[i] >= 0 && path[i] < seg->count && seg->parents[path[i]] == (i ? path[i - 1] : -1));
        w->path[i] = seg->row + path[i];
    }
    for (int layer = 0; count && layer < m->config.gdn_layers; layer++)
        m->ops->gdn_commit(m->pool, seq, &m->gdn, layer, &w->stash[layer], w->path, count);
    move_path(m, kv, seq, path, count);
    seq->length += count;
}
