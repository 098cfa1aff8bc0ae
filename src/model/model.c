/* Opening a model: config, tensors, shapes, and one block of memory for the workspace.
 *
 * The workspace is laid out by one function that runs twice, first to measure and then to place, so that the size that is
 * printed and reserved cannot differ from what is used. */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include "model/model_internal.h"

/* A cursor over the block; base NULL while measuring. */
typedef struct layout {
    char *base;
    size_t used;
} layout;

static void *take(layout *l, size_t count, size_t size) {
    void *at = l->base ? l->base + l->used : NULL;
    l->used += (count * size + 63) & ~(size_t)63;
    return at;
}

static float *take_rows(layout *l, int rows, int64_t width) { return take(l, (size_t)rows * (size_t)width, 4); }

static void place_attention(const model *m, workspace *w, layout *l) {
    const model_config *c = &m->config;
    int q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, rows = m->rows_max;
    w->attention.qg = take_rows(l, rows, 2 * (int64_t)q);
    w->attention.k = take_rows(l, rows, kv);
    w->attention.v = take_rows(l, rows, kv);
    w->attention.q = take_rows(l, rows, q);
    w->attention.gate = take_rows(l, rows, q);
    w->attention.mix = take_rows(l, rows, q);
}

static void place_gdn(const model *m, workspace *w, layout *l) {
    const model_config *c = &m->config;
    int values = c->value_heads * c->value_dim, rows = m->rows_max;
    w->gdn.raw = take_rows(l, rows, c->channels);
    w->gdn.mixed = take_rows(l, rows, c->channels);
    w->gdn.a = take_rows(l, rows, c->value_heads);
    w->gdn.b = take_rows(l, rows, c->value_heads);
    w->gdn.z = take_rows(l, rows, values);
    w->gdn.mix = take_rows(l, rows, values);
}

static void place_mlp(const model *m, workspace *w, layout *l) {
    w->mlp.gate = take_rows(l, m->rows_max, m->config.ffn);
    w->mlp.up = take_rows(l, m->rows_max, m->config.ffn);
}

/* The three families one over the other. */
static void place_blocks(const model *m, workspace *w, layout *l) {
    static void (*const families[])(const model *, workspace *, layout *) = {place_attention, place_gdn, place_mlp};
    size_t start = l->used, end = start;
    for (int i = 0; i < 3; i++) {
        l->used = start;
        families[i](m, w, l);
        if (l->used > end) end = l->used;
    }
    l->used = end;
}

static void place_stash(const model *m, workspace *w, layout *l) {
    const model_config *c = &m->config;
    gdn_stash *all = take(l, (size_t)c->gdn_layers, sizeof *all);
    int rows = m->tree_rows_max;
    w->stash = all;
    for (int i = 0; i < c->gdn_layers; i++) {
        gdn_stash s = {
            .raw = take_rows(l, rows, c->channels),
            .k = take_rows(l, rows, c->key_heads * c->key_dim),
            .v = take_rows(l, rows, c->value_heads * c->value_dim),
            .gate = take_rows(l, rows, c->value_heads),
            .beta = take_rows(l, rows, c->value_heads),
        };
        if (all) all[i] = s;
    }
}

static int widest_input(const model_config *c) {
    const int widths[] = {2 * c->hidden, c->ffn, c->heads * c->head_dim, c->value_heads * c->value_dim};
    int widest = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) widest = widths[i] > widest ? widths[i] : widest;
    return widest;
}

static void place_workspace(const model *m, workspace *w, layout *l) {
    const model_config *c = &m->config;
    w->x = take_rows(l, m->rows_max, c->hidden);
    w->normed = take_rows(l, m->rows_max, c->hidden);
    w->branch = take_rows(l, m->rows_max, c->hidden);
    w->final = take_rows(l, m->rows_max, c->hidden);
    place_blocks(m, w, l);
    w->pair = take_rows(l, c->mtp_layers ? m->rows_max : 0, 2 * (int64_t)c->hidden);
    if (m->activations == ACTIVATIONS_QUANTISED) w->quantised = take_rows(l, m->rows_max, widest_input(c));
    w->head_in = take_rows(l, LOGIT_BLOCK, c->hidden);
    w->head_out = take_rows(l, LOGIT_BLOCK, c->vocab_rows);
    place_stash(m, w, l);
    w->ids = take(l, (size_t)m->rows_max, sizeof *w->ids);
    w->parents = take(l, (size_t)m->tree_rows_max, sizeof *w->parents);
    w->depth = take(l, (size_t)m->tree_rows_max, sizeof *w->depth);
    w->mtp_depth = take(l, (size_t)m->rows_max, sizeof *w->mtp_depth);
    w->path = take(l, (size_t)m->tree_rows_max, sizeof *w->path);
    w->segments = take(l, (size_t)m->segments_max, sizeof *w->segments);
    w->place = take(l, (size_t)m->segments_max, sizeof *w->place);
    w->tree_owner = take(l, (size_t)m->segments_max, sizeof *w->tree_owner);
}

static err_code open_workspace(model *m, error *err) {
    layout measure = {0};
    place_workspace(m, &m->work, &measure);
    m->block_bytes = measure.used;
    ERR_TRY(memory_map(m->block_bytes, "workspace", &m->block, err));
    place_workspace(m, &m->work, &(layout){.base = m->block});
    return ERR_OK;
}

/* theta^(-2i / rotary_dim), rounded to fp32 as the models were trained with. */
static const float *inverse_frequencies(const model_config *c, arena *memory) {
    float *out = arena_alloc(memory, (size_t)c->rotary_dim / 2 * sizeof *out);
    for (int i = 0; i < c->rotary_dim / 2; i++) out[i] = (float)pow(c->rope_theta, -2.0 * i / c->rotary_dim);
    return out;
}

static void set_shapes(model *m) {
    const model_config *c = &m->config;
    m->attention =
        (attention_shape){c->heads, c->kv_heads, c->head_dim, c->rotary_dim, inverse_frequencies(c, m->memory)};
    m->gdn = (gdn_shape){c->key_heads, c->value_heads, c->key_dim, c->value_dim, c->conv_taps};
}

static void set_options(model *m, const model_options *o) {
    m->ops = o->ops ? o->ops : ops_cpu_best();
    m->pool = o->pool;
    m->activations = o->activations;
    m->rows_max = o->rows_max ? o->rows_max : 256;
    m->segments_max = o->segments_max ? o->segments_max : 64;
    m->tree_rows_max = o->tree_rows_max ? o->tree_rows_max : m->rows_max < 64 ? m->rows_max : 64;
    HEARTH_ASSERT(m->rows_max > 0 && m->segments_max > 0 && m->tree_rows_max > 0);
}

static err_code open_parts(model *m, const char *dir, const model_options *o, error *err) {
    if (!m->ops) ERR_FAIL(err, ERR_INVALID, "HEARTH_ISA=%s: known are scalar, avx2 and avx512", getenv("HEARTH_ISA"));
    ERR_TRY(model_config_read(dir, &m->config, err));
    ERR_TRY(quant_config_read(dir, &m->quant, err));
    ERR_TRY(checkpoint_open(dir, &m->ckpt, err));
    weights_source source = {m->ckpt, m->quant, &m->config, o->progress, o->progress_context};
    ERR_TRY(weights_bind(&source, m->memory, &m->weights, err));
    if (o->progress) o->progress(o->progress_context, m->weights.step_bytes, m->weights.step_bytes);
    if (m->activations == ACTIVATIONS_QUANTISED && !m->weights.quantised_inputs)
        ERR_FAIL(err, ERR_UNSUPPORTED,
                 "%s: quantised activations were asked for, but the checkpoint (%s) quantises none", dir,
                 quant_config_name(m->quant));
    set_shapes(m);
    return open_workspace(m, err);
}

err_code model_open(const char *dir, const model_options *options, model **out, error *err) {
    static const model_options defaults;
    const model_options *o = options ? options : &defaults;
    model *m = mem_zero(1, sizeof *m);
    m->memory = arena_create();
    set_options(m, o);
    err_code code = open_parts(m, dir, o, err);
    if (code) {
        model_close(m);
        return code;
    }
    *out = m;
    return ERR_OK;
}

void model_close(model *m) {
    if (!m) return;
    memory_unmap(m->block, m->block_bytes);
    checkpoint_close(m->ckpt);
    quant_config_free(m->quant);
    arena_destroy(m->memory);
    free(m);
}

const model_config *model_get_config(const model *m) { return &m->config; }
uint64_t model_weight_bytes(const model *m) { return m->weights.step_bytes; }
const char *model_quantization(const model *m) { return quant_config_name(m->quant); }
dtype model_kv_default(const model *m) { return m->weights.kv_scaled ? DTYPE_F8_E4M3 : DTYPE_BF16; }
int model_warning_count(const model *m) { return m->weights.warning_count; }
const char *model_warning(const model *m, int index) {
    HEARTH_ASSERT(index >= 0 && index < m->weights.warning_count);
    return m->weights.warnings[index];
}
uint64_t model_workspace_bytes(const model *m) { return m->block_bytes; }
