/* What the files of the model share: the opened model, its workspace, and one layer's run. Private to src/model. */
#ifndef HEARTH_MODEL_MODEL_INTERNAL_H
#define HEARTH_MODEL_MODEL_INTERNAL_H

#include "model/model.h"
#include "model/weights.h"

enum { LOGIT_BLOCK = 16 }; /* rows of the head's bounce buffer */

/* Rows of activations, all fp32, [rows_max, width]. The families attention, gdn and mlp are never alive together and
 * share their memory. */
typedef struct workspace {
    float *x;      /* hidden: the residual stream */
    float *normed; /* hidden */
    float *branch; /* hidden: what a block adds to x */
    float *final;  /* hidden: after the final norm */
    struct {
        float *qg, *k, *v, *q, *gate, *mix;
    } attention;
    struct {
        float *raw, *mixed, *a, *b, *z, *mix;
    } gdn;
    struct {
        float *gate, *up;
    } mlp;
    float *quantised;      /* the widest input; where activations are quantised */
    float *pair;           /* 2 * hidden: the MTP layer's input */
    float *head_in;        /* [LOGIT_BLOCK, hidden] */
    float *head_out;       /* [LOGIT_BLOCK, vocab_rows] */
    gdn_stash *stash;      /* [gdn_layers], each for tree_rows_max rows */
    int32_t *ids;          /* [rows_max] */
    int32_t *parents;      /* [tree_rows_max]: copies, since model_commit looks at them after the caller's are gone */
    int32_t *depth;        /* [tree_rows_max] */
    int32_t *mtp_depth;    /* [rows_max] */
    int32_t *path;         /* [tree_rows_max] */
    segment *segments;     /* [segments_max] in row order: trees, then chains */
    int *place;            /* [segments_max]: the caller's segment i is segments[place[i]] */
    sequence **tree_owner; /* [segments_max]: of the caller's segment i, while it is a tree that may be committed */
} workspace;

/* The rows that operators see. */
typedef struct step {
    const kv_pool *kv;
    const segment *segments;
    int segment_count, rows;
} step;

struct model {
    model_config config;
    checkpoint *ckpt;
    quant_config *quant;
    arena *memory;
    weights weights;
    const ops *ops;
    pool *pool;
    model_activations activations;
    int rows_max, segments_max, tree_rows_max;
    attention_shape attention;
    gdn_shape gdn;
    kv_pool kv;  /* the caller's pool of this call, with the checkpoint's scales */
    void *block; /* the workspace's memory */
    size_t block_bytes;
    workspace work;
};

/* forward.c: one layer on work.x. index counts the layers of its kind (attention layers of the KV pool, GDN layers). */
void model_run_layer(model *m, const layer_weights *w, const step *s, int index);
/* forward.c: out[rows, w->rows] = w x, x quantised first where the model's activations are and the matrix says so. */
void model_linear(model *m, float *out, const float *x, const matrix *w, int rows);
/* forward.c: the pool as operators see it, until the next call. */
const kv_pool *model_scaled_kv(model *m, const kv_pool *kv);
/* forward.c: out[rows, vocab_rows] = head x. */
void model_run_head(model *m, const matrix *head, float *out, const float *x, int rows);
/* forward.c: depth[i] of each node from its parents; a programmer's mistake in them is asserted. */
void model_tree_depth(const int32_t *parents, int count, int32_t *depth);
/* forward.c: every id must be a row of the embedding. */
err_code model_check_tokens(const model *m, const int32_t *tokens, int count, error *err);

#endif
