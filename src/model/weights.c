/* Binding tensors to their places in the model; see weights.h.
 *
 * The model's structure is walked once and each tensor asked for by its published name (binder.h). What nobody asked for is
 * unknown and refused, except the vision tower, which a text model ignores. */
#include "model/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/binder.h"

/* The walk: a binder, and where it is. */
typedef struct walk {
    binder b;
    const model_config *config;
    const char *root;             /* "model.language_model." or "model." */
    char prefix[BINDER_NAME_MAX]; /* of the layer being bound */
} walk;

static matrix need_matrix(walk *at, const char *prefix, const char *module, int rows, int cols) {
    return binder_matrix(&at->b, prefix, module, rows, cols, MATRIX_OF_LAYER);
}

static float *need_vector(walk *at, const char *prefix, const char *name, int size) {
    const tensor *t = binder_need(&at->b, prefix, name, (int64_t[]){size}, 1);
    float *x = t ? binder_vector(&at->b, t) : NULL;
    int bad = 0;
    for (int i = 0; x && i < size; i++) bad += !isfinite(x[i]);
    if (bad) binder_problem(&at->b, "%s: %d of %d numbers are NaN or infinite", t->name, bad, size);
    return x;
}

/* A zero-centred norm: the scale is 1 + w. */
static const float *need_norm(walk *at, const char *prefix, const char *name, int size) {
    float *scale = need_vector(at, prefix, name, size);
    for (int i = 0; scale && i < size; i++) scale[i] += 1.0f;
    return scale;
}

/* Scales of an FP8 KV cache, and one for queries that some exports write and nothing here needs. */
static void bind_kv_scales(walk *at, attention_weights *out) {
    binder *b = &at->b;
    const char *p = at->prefix;
    float k = binder_scale(b, p, "self_attn.k_proj.k_scale", binder_scale(b, p, "self_attn.k_scale", 0));
    float v = binder_scale(b, p, "self_attn.v_proj.v_scale", binder_scale(b, p, "self_attn.v_scale", 0));
    binder_scale(b, p, "self_attn.q_proj.q_scale", binder_scale(b, p, "self_attn.q_scale", 0));
    out->kv_scaled = k > 0 && v > 0;
    if ((k > 0) != (v > 0)) binder_problem(b, "%sself_attn has a scale for %s only", p, k > 0 ? "keys" : "values");
    out->k_cache_scale = k > 0 ? k : 1;
    out->v_cache_scale = v > 0 ? v : 1;
}

static void bind_attention(walk *at, attention_weights *w) {
    const model_config *c = at->config;
    const char *p = at->prefix;
    int q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    w->q = need_matrix(at, p, "self_attn.q_proj", 2 * q, c->hidden);
    w->k = need_matrix(at, p, "self_attn.k_proj", kv, c->hidden);
    w->v = need_matrix(at, p, "self_attn.v_proj", kv, c->hidden);
    w->o = need_matrix(at, p, "self_attn.o_proj", c->hidden, q);
    w->q_norm = need_norm(at, p, "self_attn.q_norm.weight", c->head_dim);
    w->k_norm = need_norm(at, p, "self_attn.k_norm.weight", c->head_dim);
    bind_kv_scales(at, w);
}

static void bind_gdn(walk *at, gdn_weights *w) {
    const model_config *c = at->config;
    const char *p = at->prefix;
    int heads = c->value_heads, values = heads * c->value_dim;
    w->qkv = need_matrix(at, p, "linear_attn.in_proj_qkv", c->channels, c->hidden);
    w->z = need_matrix(at, p, "linear_attn.in_proj_z", values, c->hidden);
    w->b = need_matrix(at, p, "linear_attn.in_proj_b", heads, c->hidden);
    w->a = need_matrix(at, p, "linear_attn.in_proj_a", heads, c->hidden);
    w->out = need_matrix(at, p, "linear_attn.out_proj", c->hidden, values);
    const tensor *taps =
        binder_need(&at->b, p, "linear_attn.conv1d.weight", (int64_t[]){c->channels, 1, c->conv_taps}, 3);
    w->taps = taps ? binder_vector(&at->b, taps) : NULL;
    w->dt_bias = need_vector(at, p, "linear_attn.dt_bias", heads);
    w->norm = need_vector(at, p, "linear_attn.norm.weight", c->value_dim);
    float *a_log = need_vector(at, p, "linear_attn.A_log", heads);
    for (int i = 0; a_log && i < heads; i++) a_log[i] = (float)-exp((double)a_log[i]);
    w->neg_exp_a = a_log;
}

/* One layer under at->prefix. */
static void bind_layer(walk *at, bool full_attention, layer_weights *w) {
    const model_config *c = at->config;
    const char *p = at->prefix;
    w->full_attention = full_attention;
    w->norm_in = need_norm(at, p, "input_layernorm.weight", c->hidden);
    w->norm_mlp = need_norm(at, p, "post_attention_layernorm.weight", c->hidden);
    if (full_attention)
        bind_attention(at, &w->attention);
    else
        bind_gdn(at, &w->gdn);
    w->mlp.gate = need_matrix(at, p, "mlp.gate_proj", c->ffn, c->hidden);
    w->mlp.up = need_matrix(at, p, "mlp.up_proj", c->ffn, c->hidden);
    w->mlp.down = need_matrix(at, p, "mlp.down_proj", c->hidden, c->ffn);
}

static matrix need_head(walk *at, const char *prefix) {
    return binder_matrix(&at->b, prefix, "lm_head", at->config->vocab_rows, at->config->hidden, MATRIX_OF_VOCABULARY);
}

/* A tied head may be there once more in a packed form of its own: then it is what runs. A second plain one says that the
 * configuration does not fit. */
static bool head_is_embedding(walk *at) {
    const tensor *plain = checkpoint_find(at->b.ckpt, "lm_head.weight");
    if (!at->config->tied_head || !binder_has_matrix(&at->b, "", "lm_head")) return at->config->tied_head;
    if (!plain || plain->type == DTYPE_U8 || plain->type == DTYPE_F8_E4M3) return false;
    binder_find(&at->b, "", "lm_head.weight");
    binder_problem(&at->b, "lm_head.weight is there though tie_word_embeddings is true");
    return true;
}

static void bind_main(walk *at, weights *w) {
    const model_config *c = at->config;
    bool tied = head_is_embedding(at);
    w->embed = binder_plain_matrix(&at->b, at->root, "embed_tokens", c->vocab_rows, c->hidden, MATRIX_OF_VOCABULARY);
    if (!tied) at->b.bytes = 0; /* a step reads a few rows of the table, not all of it */
    w->norm = need_norm(at, at->root, "norm.weight", c->hidden);
    for (int i = 0; i < c->layers; i++) {
        snprintf(at->prefix, sizeof at->prefix, "%slayers.%d.", at->root, i);
        bind_layer(at, c->full_attention[i], &w->layers[i]);
    }
    w->head = tied ? w->embed : need_head(at, "");
    w->step_bytes = at->b.bytes;
}

static void bind_mtp(walk *at, mtp_weights *w, const matrix *head) {
    const model_config *c = at->config;
    w->fc = need_matrix(at, "mtp.", "fc", c->hidden, 2 * c->hidden);
    w->norm_embedding = need_norm(at, "mtp.", "pre_fc_norm_embedding.weight", c->hidden);
    w->norm_hidden = need_norm(at, "mtp.", "pre_fc_norm_hidden.weight", c->hidden);
    w->norm = need_norm(at, "mtp.", "norm.weight", c->hidden);
    snprintf(at->prefix, sizeof at->prefix, "mtp.layers.0.");
    bind_layer(at, true, &w->layer);
    w->head = binder_has_matrix(&at->b, "mtp.", "lm_head") ? need_head(at, "mtp.") : *head;
}

/* The scales of all layers of the KV pool, in its order. */
static void gather_kv_scales(const model_config *c, arena *memory, weights *w) {
    size_t count = (size_t)(c->attention_layers + c->mtp_layers);
    float *k = arena_alloc(memory, count * sizeof *k), *v = arena_alloc(memory, count * sizeof *v);
    int n = 0;
    w->kv_scaled = c->attention_layers > 0;
    for (int i = 0; i < c->layers; i++) {
        const attention_weights *a = &w->layers[i].attention;
        if (!c->full_attention[i]) continue;
        w->kv_scaled &= a->kv_scaled;
        k[n] = a->k_cache_scale, v[n++] = a->v_cache_scale;
    }
    if (c->mtp_layers) k[n] = w->mtp.layer.attention.k_cache_scale, v[n] = w->mtp.layer.attention.v_cache_scale;
    w->k_cache_scale = k, w->v_cache_scale = v;
}

static bool starts_with(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* Text-only exports drop the tower but keep its config; a tower without config is something we do not know. */
static bool ignored(const walk *at, const tensor *t) {
    return at->config->vision && (starts_with(t->name, "model.visual.") || starts_with(t->name, "visual."));
}

static void check_unused(walk *at) {
    binder *b = &at->b;
    for (int i = 0; i < checkpoint_count(b->ckpt); i++) {
        const tensor *t = checkpoint_at(b->ckpt, i);
        if (!b->used[i] && !ignored(at, t)) binder_problem(b, "%.150s is unknown (%s)", t->name, t->file);
    }
}

static err_code report(binder *b, error *err) {
    int rest = b->problem_count - b->problems_shown;
    if (b->misfits)
        binder_warn(b,
                    "%s and %d other matrices are stored otherwise than the configuration (%s) says; the tensors count",
                    b->misfit, b->misfits - 1, quant_config_name(b->quant));
    if (!b->problem_count) return ERR_OK;
    if (rest) buffer_printf(&b->problems, "; and %d more", rest);
    ERR_FAIL(err, ERR_FORMAT, "tensors do not fit the model (%d): %s", b->problem_count, b->problems.data);
}

static uint64_t matrix_bytes(const walk *at) {
    uint64_t sum = 0;
    for (int i = 0; i < checkpoint_count(at->b.ckpt); i++) {
        const tensor *t = checkpoint_at(at->b.ckpt, i);
        if (!ignored(at, t)) sum += t->bytes;
    }
    return sum;
}

err_code weights_bind(const weights_source *source, arena *memory, weights *out, error *err) {
    const checkpoint *ckpt = source->ckpt;
    const model_config *config = source->config;
    walk at = {.config = config,
               .b = {.ckpt = ckpt,
                     .quant = source->quant,
                     .memory = memory,
                     .progress = source->progress,
                     .progress_context = source->progress_context}};
    bool nested = checkpoint_find(ckpt, "model.language_model.embed_tokens.weight") != NULL;
    at.root = nested ? "model.language_model." : "model.";
    at.b.used = mem_zero((size_t)checkpoint_count(ckpt), sizeof *at.b.used);
    at.b.to_look_at = matrix_bytes(&at);
    *out = (weights){.layers = arena_alloc(memory, (size_t)config->layers * sizeof *out->layers)};
    memset(out->layers, 0, (size_t)config->layers * sizeof *out->layers);
    bind_main(&at, out);
    if (config->mtp_layers) bind_mtp(&at, &out->mtp, &out->head);
    gather_kv_scales(config, memory, out);
    check_unused(&at);
    err_code code = report(&at.b, err);
    out->quantised_inputs = at.b.quantised_inputs;
    out->warnings = at.b.warnings;
    out->warning_count = at.b.warning_count < WARNINGS_MAX ? at.b.warning_count : WARNINGS_MAX;
    buffer_deinit(&at.b.problems);
    free(at.b.used);
    return code;
}
