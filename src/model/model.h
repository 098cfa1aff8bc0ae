/* The Qwen3.5 / 3.6 text model and its MTP layer: plain C, a loop over layers calling operators (ops.h).
 *
 * A model is immutable after open except for its workspace: one model_forward at a time, from one thread. */
#ifndef HEARTH_MODEL_MODEL_H
#define HEARTH_MODEL_MODEL_H

#include "format/checkpoint.h"
#include "model/config.h"
#include "ops/ops.h"

typedef struct model model;

/* Exact: inputs of matrices are fp32. Quantised: those that the checkpoint quantises are rounded as it says (W4A4, W8A8),
 * which is slower and shows what that costs. */
typedef enum { ACTIVATIONS_EXACT, ACTIVATIONS_QUANTISED } model_activations;

typedef struct model_options {
    const ops *ops;                /* NULL = ops_cpu_best() */
    pool *pool;                    /* borrowed; NULL = run on the caller */
    int rows_max;                  /* rows of one step; the workspace is sized for it; 0 = 256 */
    int segments_max;              /* 0 = 64 */
    model_activations activations; /* QUANTISED fails where the checkpoint quantises no input */
    int tree_rows_max;             /* rows of all trees of one step: the stash is sized for it; 0 = min(rows_max, 64) */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes bound; may be NULL */
    void *progress_context;
} model_options;

/* Reads config and tensors, binds every weight by name, converts small vectors (norm scales, taps, gates) to fp32.
 * Every layout of docs/formats.md is known. Missing, mis-shaped and unknown tensors (model.visual.* is known and ignored),
 * numbers that cannot be right (NaN scales, a matrix of zeros) are ERR_FORMAT naming tensor, shapes and numbers. */
err_code model_open(const char *dir, const model_options *options, model **out, error *err);
void model_close(model *m);
const model_config *model_get_config(const model *m);
uint64_t model_weight_bytes(const model *m); /* read per step */
uint64_t model_workspace_bytes(const model *m);
const char *model_quantization(const model *m); /* as the checkpoint calls it, "ModelOpt NVFP4"; "none" */
/* What the KV cache is stored as unless someone asks: FP8 where the checkpoint has scales for it, else bf16. */
dtype model_kv_default(const model *m);
/* What was found while binding that can be run but looks wrong, one line each, without a newline. */
int model_warning_count(const model *m);
const char *model_warning(const model *m, int index);

/* Sizes of one sequence's state, in floats. */
int64_t model_recurrent_count(const model_config *c); /* gdn_layers * value_heads * key_dim * value_dim */
int64_t model_conv_count(const model_config *c);      /* gdn_layers * (conv_taps - 1) * channels */
/* KV pool layers: attention layers, then the MTP layer. type: DTYPE_F32, DTYPE_BF16 or DTYPE_F8_E4M3. An FP8 pool is read
 * and written with the scales of the checkpoint whose model runs on it, 1 where it has none. bytes = what model_kv_init
 * will take for page_count pages. */
uint64_t model_kv_page_bytes(const model_config *c, dtype type);
err_code model_kv_init(const model_config *c, dtype type, int page_count, kv_pool *out,
                       error *err); /* kv_pool memory, zeroed */
void model_kv_deinit(kv_pool *kv);

typedef struct model_segment {
    sequence *seq; /* chain: length, recurrent and conv advance by count on success */
    int count;
    const int32_t *tokens;  /* [count], each < vocab_rows (checked: ERR_INVALID) */
    const int32_t *parents; /* tree, or NULL for a chain; parents[i] < i, -1 = the committed end */
    const capture *captures;
    int capture_count;
    int logits_from; /* rows logits_from .. count-1 want logits; count = none */
    float *logits;   /* [count - logits_from, vocab_rows], caller's memory; may be NULL when none */
    float *hidden;   /* [count, hidden] after the final norm, caller's memory, or NULL */
} model_segment;

/* Runs the segments as one step over kv. A tree leaves its stash in the model's workspace until the next forward.
 * Rows of all segments together must not exceed rows_max, those of trees tree_rows_max, and a sequence may appear in one
 * segment only (asserted). Fails only on bad tokens, before anything is written. */
err_code model_forward(model *m, const kv_pool *kv, const model_segment *segments, int segment_count, error *err);

/* After model_forward with a tree as segment `segment_index` of the step: commits nodes path[0..count), root first, each
 * the child of the one before (asserted): replays recurrent and conv state, moves KV rows to slots length .., advances
 * length. Once per tree and step. The MTP layer's KV is left alone, since accepted tokens are run again there with the
 * target's hidden rows. */
void model_commit(model *m, const kv_pool *kv, int segment_index, const int32_t *path, int count);

/* The MTP layer: out[i] (after mtp.norm) of pairs (hidden[i], tokens[i]), tokens[i] being the token that follows the one
 * whose final-norm hidden row is hidden[i]. Slots and RoPE positions from `position` on, in the MTP layer of kv, through
 * seq->pages; chain only unless parents is given (then slots position + i, logical position + depth, all ancestors inside
 * this call). logits as in model_segment, through mtp.lm_head where the checkpoint has one. Writes no other state; seq is
 * not changed, and a tree waiting for model_commit stays valid. count <= rows_max. */
err_code model_mtp_forward(model *m, const kv_pool *kv, const sequence *seq, int position, int count,
                           const int32_t *tokens, const float *hidden, const int32_t *parents, float *out,
                           int logits_from, float *logits, error *err);

#endif
