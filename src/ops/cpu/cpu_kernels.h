/* The functions that fill the CPU tables: one set per instruction set, with the contracts of ops.h. Compiled from the
 * *_simd.h files by <family>_<isa>.c; put together by ops_best.c. */
#ifndef HEARTH_OPS_CPU_CPU_KERNELS_H
#define HEARTH_OPS_CPU_CPU_KERNELS_H

#include "ops/ops.h"

#define CPU_KERNELS(isa)                                                                                           \
    void embed_##isa(pool *p, float *out, const matrix *table, const int32_t *ids, int rows);                      \
    void rms_norm_##isa(pool *p, float *out, const float *x, const float *scale, int rows, int width, float eps);  \
    void matmul_##isa(pool *p, float *out, const float *x, const matrix *w, int rows);                             \
    void add_##isa(pool *p, float *x, const float *y, int64_t count);                                              \
    void swiglu_##isa(pool *p, float *out, const float *gate, const float *up, int64_t count);                     \
    void qkv_store_##isa(pool *p, float *q, float *gate, const float *qg, const float *k, const float *v,          \
                         const float *q_scale, const float *k_scale, float eps, const attention_shape *shape,      \
                         const kv_pool *kv, int layer, const segment *segments, int segment_count);                \
    void attention_##isa(pool *p, float *out, const float *q, const float *gate, const attention_shape *shape,     \
                         const kv_pool *kv, int layer, const segment *segments, int segment_count);                \
    void conv_##isa(pool *p, float *out, const float *raw, const float *taps, const gdn_shape *shape, int layer,   \
                    const segment *segments, int segment_count);                                                   \
    void gdn_##isa(pool *p, float *out, const float *mixed, const float *a, const float *b, const float *z,        \
                   const float *neg_exp_a, const float *dt_bias, const float *norm_scale, float eps,               \
                   const gdn_shape *shape, int layer, const segment *segments, int segment_count,                  \
                   const gdn_stash *stash, const float *raw);                                                      \
    void gdn_commit_##isa(pool *p, const sequence *seq, const gdn_shape *shape, int layer, const gdn_stash *stash, \
                          const int32_t *path, int path_count);

CPU_KERNELS(avx2)
CPU_KERNELS(avx512)

#endif
