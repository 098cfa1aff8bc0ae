/* The scalar oracle: every slot of struct ops in the plainest form that keeps the contract's order of operations.
 *
 * It runs on the caller alone and favours being readable; only its two inner loops (ref_math.c) care about speed, because
 * every other kernel and the whole model are tested against it. */
#ifndef HEARTH_OPS_CPU_REF_H
#define HEARTH_OPS_CPU_REF_H

#include "ops/ops.h"

/* ref_math.c */
float ref_dot(const float *a, const float *b, int count);        /* 16 lanes, as the contract says */
void ref_axpy(float *acc, float x, const float *row, int count); /* acc[i] = fma(x, row[i], acc[i]) */
float ref_sum_lanes(const float lane[16]);                       /* i + i+8, then i+4, i+2, i+1 */
float ref_sigmoid(float x);
float ref_silu(float x);
float ref_softplus(float x);
void ref_widen(float *out, dtype type, const void *data, int64_t first, int count); /* elements first.. as fp32 */

/* ref_matrix.c */
void ref_embed(pool *p, float *out, const matrix *table, const int32_t *ids, int rows);
void ref_matmul(pool *p, float *out, const float *x, const matrix *w, int rows);

/* ref_rows.c */
void ref_rms_norm(pool *p, float *out, const float *x, const float *scale, int rows, int width, float eps);
void ref_add(pool *p, float *x, const float *y, int64_t count);
void ref_swiglu(pool *p, float *out, const float *gate, const float *up, int64_t count);

/* ref_attention.c */
void ref_qkv_store(pool *p, float *q, float *gate, const float *qg, const float *k, const float *v,
                   const float *q_scale, const float *k_scale, float eps, const attention_shape *shape,
                   const kv_pool *kv, int layer, const segment *segments, int segment_count);
void ref_attention(pool *p, float *out, const float *q, const float *gate, const attention_shape *shape,
                   const kv_pool *kv, int layer, const segment *segments, int segment_count);

/* ref_gdn.c */
void ref_conv(pool *p, float *out, const float *raw, const float *taps, const gdn_shape *shape, int layer,
              const segment *segments, int segment_count);
void ref_gdn(pool *p, float *out, const float *mixed, const float *a, const float *b, const float *z,
             const float *neg_exp_a, const float *dt_bias, const float *norm_scale, float eps, const gdn_shape *shape,
             int layer, const segment *segments, int segment_count, const gdn_stash *stash, const float *raw);
void ref_gdn_commit(pool *p, const sequence *seq, const gdn_shape *shape, int layer, const gdn_stash *stash,
                    const int32_t *path, int path_count);

#endif
