/* Operators on an NVIDIA GPU: contracts in plain C; the kernels are the .cu files beside this header.
 *
 * Every launcher queues work on `stream` (a cudaStream_t, NULL = default stream) and returns at once; ERR_INTERNAL
 * carries CUDA's message when a launch is refused. Pointers are device memory unless said otherwise, 16-byte aligned,
 * borrowed until the work is done. Launchers allocate nothing and may be captured into a graph. Each kernel starts with
 * programmatic dependent launch allowed (sm_90): it prefetches weights while its predecessor ends and reads activations
 * only after that one has finished.
 *
 * Bits. A row's result depends on that row's inputs alone: not on the number of rows, the width bucket, the route or
 * whether a node ran in a tree or a chain. They do depend on the matrix plan, hence on the number of multiprocessors. */
#ifndef HEARTH_OPS_CUDA_CUDA_OPS_H
#define HEARTH_OPS_CUDA_CUDA_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"

/* ---- small-M matrix product with NVFP4 weights */

/* Layout of a packed NVFP4 matrix W [rows, cols].
 *
 * A tile is 16 rows x 512 columns = eight k64 groups; a group is 512 bytes of codes, then 64 of scales (4608 bytes a
 * tile, as many as the checkpoint's codes and scales). A part is `part_tiles` tiles of consecutive rows, stored chunk
 * (512 columns) by chunk, so that a CTA reads one contiguous run. Inside a group, lane l of a warp owns block l % 4 (16
 * columns) of rows l / 4 and l / 4 + 8: 16 bytes of codes, which are its A fragments of four m16n8k16 products, and two
 * scale bytes. nvfp4_pack.c has the order of bits. */
typedef struct nvfp4_plan {
    int rows, cols; /* cols a multiple of 64 */
    int chunks;     /* of 512 columns, the last one padded with zeros */
    int tiles;      /* of 16 rows, the last one padded with zeros */
    int part_tiles, parts;
    int split; /* CTAs that share a part, each with a run of chunks: 1 or 2 */
    int multiprocessors;
    int64_t bytes; /* of the packed matrix */
} nvfp4_plan;

enum { NVFP4_TILE_BYTES = 4608, NVFP4_PART_TILES_MAX = 18, SMALL_M_MAX = 64 };

/* Chooses part_tiles and split so that the parts fill `multiprocessors` evenly and the activations are read seldom. */
nvfp4_plan nvfp4_plan_make(int rows, int cols, int multiprocessors);

/* Packs one matrix on the host; out has plan->bytes. codes [rows, cols / 2]: two E2M1 codes a byte, the even column in
 * the low half. scales [rows, cols / 16] E4M3. pair_rows: the first half of the rows is a gate and the second an up
 * projection; they are interleaved eight by eight so that MATMUL_SWIGLU finds both in one lane (rows a multiple of 16).
 * ERR_FORMAT when a scale is not a number. */
err_code nvfp4_pack(uint8_t *out, const nvfp4_plan *plan, const uint8_t *codes, const uint8_t *scales, bool pair_rows,
                    error *err);

typedef struct nvfp4_matrix {
    nvfp4_plan plan;
    const void *data; /* [plan.bytes] */
    float scale;      /* the global scale, a factor */
} nvfp4_matrix;

typedef enum {
    MATMUL_F32,    /* y [m, rows] fp32 */
    MATMUL_BF16,   /* y [m, rows] bf16 */
    MATMUL_ADD,    /* y [m, rows] fp32, y += product */
    MATMUL_SWIGLU, /* y [m, rows / 2] bf16 = silu(gate) * up; packed with pair_rows */
} matmul_epilogue;

/* How weights reach the multiprocessors. Same bits. */
typedef enum {
    ROUTE_PORTABLE, /* cp.async by each warp; sm_80 and newer */
    ROUTE_BULK,     /* bulk copies by a producer warp, clusters for a split K; sm_90 and newer */
} cuda_route;

/* y[m, n] = epilogue(scale * sum_k x[m, k] W[n, k]). m 1..64. x [m, cols] bf16. Products exact, sums in fp32: in each
 * CTA eight partial sums (k64 groups congruent mod 8, ascending), added in order; then the CTAs of a part in order.
 * y does not overlap x. workspace: cuda_small_matmul_workspace bytes, zero before the first use, shared by products on
 * one stream; used by the portable route when plan.split > 1. */
typedef struct small_matmul {
    const nvfp4_matrix *w;
    const void *x;
    void *y;
    void *workspace;
    int m;
    matmul_epilogue epilogue;
    cuda_route route;
} small_matmul;

size_t cuda_small_matmul_workspace(const nvfp4_plan *plan);
err_code cuda_small_matmul(const small_matmul *args, void *stream, error *err);

/* ---- Gated DeltaNet: decode and verification */

/* The mathematics is `conv` and `gdn` of ops.h. Sizes are compiled in: key and value dimension 128, 4 taps; value head j
 * reads key head j / (value_heads / key_heads). The recurrence runs token by token in fp32, the sums over keys in one
 * fixed order, so that a tree's node has the bits of the chain that leads to it, and gdn_commit those of the step. */
enum { CUDA_GDN_DIM = 128, CUDA_GDN_TAPS = 4, CUDA_GDN_ROWS_MAX = 64, CUDA_GDN_SEGMENTS_MAX = 64 };

/* One sequence's rows in a step; an array of these in device memory. */
typedef struct cuda_gdn_segment {
    int row, count; /* 1..CUDA_GDN_ROWS_MAX */
    const int32_t
        *parents; /* [count], parents[i] < i, -1 = the committed state; NULL: a chain, which advances the state */
    const int32_t *saves; /* tree: [count] index in `branches` of node i's state, -1 when no child but i + 1 needs it */
    float *recurrent;     /* this layer's [value_heads, 128, 128], o = S^T q */
    float *conv;          /* this layer's [3, channels], oldest first */
    float *branches;      /* [saved nodes, value_heads, 128, 128]; free again after the launch */
} cuda_gdn_segment;

typedef struct cuda_gdn_stash { /* as gdn_stash in ops.h, device memory, indexed by the step's row */
    float *raw, *k, *v, *gate, *beta;
} cuda_gdn_stash;

typedef struct cuda_gdn_step {
    int key_heads, value_heads, rows;
    int raw_stride, z_stride;         /* floats from row to row of raw and z */
    const float *raw;                 /* [rows, channels] inputs of the convolution: q | k | v */
    const float *z, *a, *b;           /* z [rows, value_heads * 128]; a, b [rows, value_heads] */
    const float *taps;                /* [channels, 4] */
    const float *neg_exp_a, *dt_bias; /* [value_heads] */
    const float *norm_scale;          /* [128] */
    float eps;
    void *out;                        /* [rows, value_heads * 128] bf16 */
    const cuda_gdn_segment *segments; /* device memory */
    int segment_count;
    const cuda_gdn_stash *stash; /* host memory; written for the rows of trees; NULL: not kept */
    void *workspace;             /* cuda_gdn_workspace bytes, zero before the first use */
} cuda_gdn_step;

size_t cuda_gdn_workspace(int key_heads, int value_heads, int rows);
/* One layer, all segments. A chain of count rows writes its recurrent and conv state. */
err_code cuda_gdn(const cuda_gdn_step *step, void *stream, error *err);

/* Replays path[0 .. path_count) (rows of the stash, root first; device memory) into the states of all layers. Strides
 * in floats from layer to layer; stash of layer 0. */
typedef struct cuda_gdn_commit_args {
    int key_heads, value_heads, layers;
    float *recurrent, *conv;
    int64_t recurrent_stride, conv_stride;
    cuda_gdn_stash stash;
    int64_t raw_stride, k_stride, v_stride, gate_stride; /* beta as gate */
    const int32_t *path, *path_count;
} cuda_gdn_commit_args;
err_code cuda_gdn_commit(const cuda_gdn_commit_args *args, void *stream, error *err);

/* ---- attention: decode and verification */

/* The mathematics is `attention` of ops.h, head_dim 256, except that queries and softmax weights are rounded to bf16
 * before they meet the keys and values (sums in fp32). Logical positions are cut into absolute ranges of
 * CUDA_ATTENTION_RANGE; a range's partial result depends on its keys in logical order alone, and ranges are combined in
 * order: a node has the bits of the chain that leads to it. */
enum { CUDA_HEAD_DIM = 256, CUDA_PAGE = 64, CUDA_ATTENTION_RANGE = 256, CUDA_ATTENTION_ROWS_MAX = 16 };

typedef enum {
    CUDA_KV_BF16,
    CUDA_KV_E4M3, /* value = code * k_scale or v_scale */
} cuda_kv_type;

/* One sequence's rows in a step; an array of these in device memory. */
typedef struct cuda_attention_segment {
    int row, count;         /* 1..CUDA_ATTENTION_ROWS_MAX */
    int length;             /* committed tokens; node i lies in slot length + i */
    const int32_t *pages;   /* page of slot s is pages[s / CUDA_PAGE] */
    const int32_t *parents; /* [count], parents[i] < i, -1 = the committed tokens alone */
} cuda_attention_segment;

typedef struct cuda_attention_step {
    int heads, kv_heads;   /* heads / kv_heads at most 6 */
    int rows, range_count; /* range_count: of the longest sequence, its rows included, rounded up */
    const float *q;        /* [rows, heads, 256], normed and rotated */
    const float *gate;     /* [rows, heads, 256] */
    cuda_kv_type type;
    const void *k, *v; /* one layer's [pages, kv_heads, CUDA_PAGE, 256] */
    float k_scale, v_scale;
    void *out;                              /* [rows, heads, 256] bf16 */
    const cuda_attention_segment *segments; /* device memory */
    int segment_count;
    void *workspace; /* cuda_attention_workspace bytes */
} cuda_attention_step;

size_t cuda_attention_workspace(int rows, int heads, int range_count);
err_code cuda_attention(const cuda_attention_step *step, void *stream, error *err);

/* ---- rows */

/* out[r, i] = x[r, i] / sqrt(mean_i x[r, i]^2 + eps) * scale[i]; x [rows, width] fp32, out bf16. Zero-centred norms pass
 * scale = 1 + w. */
err_code cuda_rms_norm(void *out, const float *x, const float *scale, int rows, int width, float eps, void *stream,
                       error *err);

/* ids[r] = the first index of the largest of x[r, 0 .. count), x [rows, stride] fp32, not NaN. workspace: 16 bytes a
 * row, zero before the first use. */
err_code cuda_argmax(int32_t *ids, const float *x, int rows, int count, int stride, void *workspace, void *stream,
                     error *err);

#ifdef __cplusplus
}
#endif

#endif
