/* The tensors of a checkpoint bound to their places in the model, by name and shape.
 *
 * Matrices stay where they are, in the mapped file, each in the layout it is stored in (plain, NVFP4, FP8). Small vectors
 * become fp32 with what can be computed once already done: 1 + w of zero-centred norms, -exp(A_log). */
#ifndef HEARTH_MODEL_WEIGHTS_H
#define HEARTH_MODEL_WEIGHTS_H

#include "base/memory.h"
#include "format/checkpoint.h"
#include "format/quant_config.h"
#include "model/config.h"
#include "ops/ops.h"

typedef struct attention_weights {
    matrix q, k, v, o;            /* q: [heads * 2 * head_dim, hidden], per head query then gate */
    const float *q_norm, *k_norm; /* [head_dim], 1 + w */
    bool kv_scaled;               /* the checkpoint has scales for this layer's FP8 KV cache; else they are 1 */
    float k_cache_scale, v_cache_scale;
} attention_weights;

typedef struct gdn_weights {
    matrix qkv, z, b, a, out;
    const float *taps;      /* [channels, conv_taps] */
    const float *neg_exp_a; /* [value_heads], -exp(A_log) */
    const float *dt_bias;   /* [value_heads] */
    const float *norm;      /* [value_dim], plain w */
} gdn_weights;

typedef struct mlp_weights {
    matrix gate, up, down;
} mlp_weights;

typedef struct layer_weights {
    bool full_attention;
    const float *norm_in, *norm_mlp; /* [hidden], 1 + w, as all norms below */
    attention_weights attention;     /* where full_attention */
    gdn_weights gdn;                 /* elsewhere */
    mlp_weights mlp;
} layer_weights;

typedef struct mtp_weights {
    matrix fc; /* [hidden, 2 * hidden]: embedding half first */
    const float *norm_embedding, *norm_hidden, *norm;
    layer_weights layer;
    matrix head; /* mtp.lm_head where the checkpoint has one, else the model's head */
} mtp_weights;

typedef struct weights {
    matrix embed, head; /* head = embed when tied */
    const float *norm;
    layer_weights *layers;                      /* [config.layers] */
    mtp_weights mtp;                            /* where config.mtp_layers = 1 */
    const float *k_cache_scale, *v_cache_scale; /* [layers of the KV pool]: value = E4M3 code * scale */
    bool kv_scaled;  /* every attention layer of the main model has them from the checkpoint */
    char **warnings; /* [warning_count]: what runs but looks wrong */
    int warning_count;
    int quantised_inputs; /* matrices whose inputs the checkpoint quantises */
    uint64_t step_bytes;  /* bytes of all matrices and vectors that one step of the main model reads */
} weights;

typedef struct weights_source {
    const checkpoint *ckpt;
    const quant_config *quant;
    const model_config *config;
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes looked at; may be NULL */
    void *progress_context;
} weights_source;

/* Binds everything; vectors, scales of FP8 blocks and warnings live in memory, the matrices borrow from the checkpoint.
 * All problems (missing, mis-shaped, unknown tensors, dtypes that this build cannot read, numbers that cannot be right)
 * are collected; the error names the first ones and counts the rest. */
err_code weights_bind(const weights_source *source, arena *memory, weights *out, error *err);

#endif
