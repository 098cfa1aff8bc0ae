/* Binding tensors by name; see weights.h.
 *
 * The binder walks the model's structure and asks for each tensor by its published name. It never stops at the first
 * problem: a checkpoint in an unknown layout is understood from the list. Every tensor that was asked for is marked, and
 * what remains unmarked at the end is unknown and refused, except the vision tower, which a text model ignores. */
#include "model/weights.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROBLEMS_SHOWN = 8, PROBLEMS_BYTES = 420, NAME_MAX_BYTES = 256 };

typedef struct binder {
    const checkpoint *ckpt;
    const model_config *config;
    arena *memory;
    bool *used; /* [checkpoint_count] */
    buffer problems;
    int problem_count, shown;
    uint64_t bytes;              /* bound so far */
    const char *root;            /* "model.language_model." or "model." */
    char prefix[NAME_MAX_BYTES]; /* of the layer being bound */
} binder;

__attribute__((format(printf, 2, 3))) static void problem(binder *b, const char *format, ...) {
    char line[NAME_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    b->problem_count++;
    bool full = b->shown == PROBLEMS_SHOWN || b->problems.size + strlen(line) > PROBLEMS_BYTES;
    if (full && b->shown) return; /* counted only: the message has room for so much */
    buffer_printf(&b->problems, "%s%s", b->shown++ ? "; " : "", line);
}

static void show_shape(char out[64], const int64_t *shape, int rank) {
    size_t n = (size_t)snprintf(out, 64, "[");
    for (int i = 0; i < rank && n < 48; i++)
        n += (size_t)snprintf(out + n, 64 - n, i ? ",%lld" : "%lld", (long long)shape[i]);
    snprintf(out + n, 64 - n, "]");
}

static int index_of(const binder *b, const tensor *t) { return (int)(t - checkpoint_at(b->ckpt, 0)); }

static const tensor *find(binder *b, const char *prefix, const char *name) {
    char full[2 * NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const tensor *t = checkpoint_find(b->ckpt, full);
    if (t) b->used[index_of(b, t)] = true;
    return t;
}

static bool same_shape(const tensor *t, const int64_t *shape, int rank) {
    return t->rank == rank && !memcmp(t->shape, shape, (size_t)rank * sizeof *shape);
}

/* The tensor if it is there, of the wanted shape and of a type this build reads; else NULL and a problem. */
static const tensor *need(binder *b, const char *prefix, const char *name, const int64_t *shape, int rank) {
    const tensor *t = find(b, prefix, name);
    if (!t) {
        problem(b, "%s%s is missing", prefix, name);
        return NULL;
    }
    if (!same_shape(t, shape, rank)) {
        char is[64], want[64];
        show_shape(is, t->shape, t->rank);
        show_shape(want, shape, rank);
        problem(b, "%s is %s, must be %s", t->name, is, want);
        return NULL;
    }
    if (t->type != DTYPE_BF16 && t->type != DTYPE_F16 && t->type != DTYPE_F32) {
        problem(b, "%s has dtype %s (known: BF16, F16, F32)", t->name, dtype_name(t->type));
        return NULL;
    }
    b->bytes += t->bytes;
    return t;
}

static matrix need_matrix(binder *b, const char *prefix, const char *name, int rows, int cols) {
    const tensor *t = need(b, prefix, name, (int64_t[]){rows, cols}, 2);
    return t ? (matrix){.type = t->type, .rows = rows, .cols = cols, .data = t->data} : (matrix){0};
}

static float element(const tensor *t, uint64_t i) {
    float f;
    uint16_t h;
    if (t->type == DTYPE_F32) {
        memcpy(&f, (const char *)t->data + 4 * i, 4);
        return f;
    }
    memcpy(&h, (const char *)t->data + 2 * i, 2);
    return t->type == DTYPE_BF16 ? bf16_to_f32(h) : f16_to_f32(h);
}

/* An fp32 copy, 64-byte aligned as kernels want it. */
static float *copy_vector(binder *b, const tensor *t) {
    uintptr_t at = (uintptr_t)arena_alloc(b->memory, t->count * sizeof(float) + 63);
    float *out = (float *)((at + 63) & ~(uintptr_t)63);
    for (uint64_t i = 0; i < t->count; i++) out[i] = element(t, i);
    return out;
}

static float *need_vector(binder *b, const char *prefix, const char *name, int size) {
    const tensor *t = need(b, prefix, name, (int64_t[]){size}, 1);
    return t ? copy_vector(b, t) : NULL;
}

/* A zero-centred norm: the scale is 1 + w. */
static const float *need_norm(binder *b, const char *prefix, const char *name, int size) {
    float *scale = need_vector(b, prefix, name, size);
    for (int i = 0; scale && i < size; i++) scale[i] += 1.0f;
    return scale;
}

static void bind_attention(binder *b, attention_weights *w) {
    const model_config *c = b->config;
    const char *p = b->prefix;
    int q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    w->q = need_matrix(b, p, "self_attn.q_proj.weight", 2 * q, c->hidden);
    w->k = need_matrix(b, p, "self_attn.k_proj.weight", kv, c->hidden);
    w->v = need_matrix(b, p, "self_attn.v_proj.weight", kv, c->hidden);
    w->o = need_matrix(b, p, "self_attn.o_proj.weight", c->hidden, q);
    w->q_norm = need_norm(b, p, "self_attn.q_norm.weight", c->head_dim);
    w->k_norm = need_norm(b, p, "self_attn.k_norm.weight", c->head_dim);
}

static void bind_gdn(binder *b, gdn_weights *w) {
    const model_config *c = b->config;
    const char *p = b->prefix;
    int heads = c->value_heads, values = heads * c->value_dim;
    w->qkv = need_matrix(b, p, "linear_attn.in_proj_qkv.weight", c->channels, c->hidden);
    w->z = need_matrix(b, p, "linear_attn.in_proj_z.weight", values, c->hidden);
    w->b = need_matrix(b, p, "linear_attn.in_proj_b.weight", heads, c->hidden);
    w->a = need_matrix(b, p, "linear_attn.in_proj_a.weight", heads, c->hidden);
    w->out = need_matrix(b, p, "linear_attn.out_proj.weight", c->hidden, values);
    const tensor *taps = need(b, p, "linear_attn.conv1d.weight", (int64_t[]){c->channels, 1, c->conv_taps}, 3);
    w->taps = taps ? copy_vector(b, taps) : NULL;
    w->dt_bias = need_vector(b, p, "linear_attn.dt_bias", heads);
    w->norm = need_vector(b, p, "linear_attn.norm.weight", c->value_dim);
    float *a_log = need_vector(b, p, "linear_attn.A_log", heads);
    for (int i = 0; a_log && i < heads; i++) a_log[i] = (float)-exp((double)a_log[i]);
    w->neg_exp_a = a_log;
}

/* One layer under b->prefix. */
static void bind_layer(binder *b, bool full_attention, layer_weights *w) {
    const model_config *c = b->config;
    const char *p = b->prefix;
    w->full_attention = full_attention;
    w->norm_in = need_norm(b, p, "input_layernorm.weight", c->hidden);
    w->norm_mlp = need_norm(b, p, "post_attention_layernorm.weight", c->hidden);
    if (full_attention)
        bind_attention(b, &w->attention);
    else
        bind_gdn(b, &w->gdn);
    w->mlp.gate = need_matrix(b, p, "mlp.gate_proj.weight", c->ffn, c->hidden);
    w->mlp.up = need_matrix(b, p, "mlp.up_proj.weight", c->ffn, c->hidden);
    w->mlp.down = need_matrix(b, p, "mlp.down_proj.weight", c->hidden, c->ffn);
}

static void bind_main(binder *b, weights *w) {
    const model_config *c = b->config;
    w->embed = need_matrix(b, b->root, "embed_tokens.weight", c->vocab_rows, c->hidden);
    if (!c->tied_head) b->bytes = 0; /* a step reads a few rows of the table, not all of it */
    w->norm = need_norm(b, b->root, "norm.weight", c->hidden);
    for (int i = 0; i < c->layers; i++) {
        snprintf(b->prefix, sizeof b->prefix, "%slayers.%d.", b->root, i);
        bind_layer(b, c->full_attention[i], &w->layers[i]);
    }
    if (c->tied_head && find(b, "", "lm_head.weight"))
        problem(b, "lm_head.weight is there though tie_word_embeddings is true");
    w->head = c->tied_head ? w->embed : need_matrix(b, "", "lm_head.weight", c->vocab_rows, c->hidden);
    w->step_bytes = b->bytes;
}

static void bind_mtp(binder *b, mtp_weights *w, const matrix *head) {
    const model_config *c = b->config;
    w->fc = need_matrix(b, "mtp.", "fc.weight", c->hidden, 2 * c->hidden);
    w->norm_embedding = need_norm(b, "mtp.", "pre_fc_norm_embedding.weight", c->hidden);
    w->norm_hidden = need_norm(b, "mtp.", "pre_fc_norm_hidden.weight", c->hidden);
    w->norm = need_norm(b, "mtp.", "norm.weight", c->hidden);
    snprintf(b->prefix, sizeof b->prefix, "mtp.layers.0.");
    bind_layer(b, true, &w->layer);
    bool own = checkpoint_find(b->ckpt, "mtp.lm_head.weight") != NULL;
    w->head = own ? need_matrix(b, "mtp.", "lm_head.weight", c->vocab_rows, c->hidden) : *head;
}

static bool starts_with(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* Text-only exports drop the tower but keep its config; a tower without config is something we do not know. */
static bool ignored(const binder *b, const tensor *t) {
    return b->config->vision && (starts_with(t->name, "model.visual.") || starts_with(t->name, "visual."));
}

static void check_unused(binder *b) {
    for (int i = 0; i < checkpoint_count(b->ckpt); i++) {
        const tensor *t = checkpoint_at(b->ckpt, i);
        if (!b->used[i] && !ignored(b, t)) problem(b, "%.150s is unknown (%s)", t->name, t->file);
    }
}

static err_code report(binder *b, error *err) {
    int rest = b->problem_count - b->shown;
    if (!b->problem_count) return ERR_OK;
    if (rest) buffer_printf(&b->problems, "; and %d more", rest);
    ERR_FAIL(err, ERR_FORMAT, "tensors do not fit the model (%d): %s", b->problem_count, b->problems.data);
}

err_code weights_bind(const checkpoint *ckpt, const model_config *config, arena *memory, weights *out, error *err) {
    binder b = {.ckpt = ckpt, .config = config, .memory = memory};
    bool nested = checkpoint_find(ckpt, "model.language_model.embed_tokens.weight") != NULL;
    b.root = nested ? "model.language_model." : "model.";
    b.used = mem_zero((size_t)checkpoint_count(ckpt), sizeof *b.used);
    *out = (weights){.layers = arena_alloc(memory, (size_t)config->layers * sizeof *out->layers)};
    memset(out->layers, 0, (size_t)config->layers * sizeof *out->layers);
    bind_main(&b, out);
    if (config->mtp_layers) bind_mtp(&b, &out->mtp, &out->head);
    check_unused(&b);
    err_code code = report(&b, err);
    buffer_deinit(&b.problems);
    free(b.used);
    return code;
}
