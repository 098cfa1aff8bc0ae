/* Operator contracts. An operator is a closed piece of mathematics on rows of fp32: formula, shapes, what it writes.
 *
 * Everything that runs is a segment: a run of tokens of one sequence with a parent per token. A step is a list of
 * segments of different sequences, in ascending order of `row`; together they cover the step's rows exactly, trees
 * before chains (so that the stash holds the tree rows alone). A segment is either
 *   a chain (parents NULL): known tokens; row i continues row i-1; state advances and is committed as it runs;
 *   a tree: row i continues row parents[i] (< i), or the committed state when parents[i] = -1; the committed recurrent
 *   and convolution state is not touched, KV rows are written to the slots past the committed ones.
 *
 * Bits. For one instruction-set table the result of a row depends on that row's inputs alone: not on the other rows, the
 * number of rows, threads, segment splits or whether it ran in a chain or a tree. Every reduction therefore has one
 * order, fixed by absolute indices:
 *   dot products over k: 16 partial sums, lane = k mod 16, each a chain of fused multiply-adds in ascending k; a tail
 *     shorter than 16 is padded with zeros; the lanes are added as a tree (i + i+8, then i+4, i+2, i+1);
 *   a chain of fused multiply-adds starts from zero;
 *   everything else is rounded operation by operation, as the formula is written (no contraction, no reciprocals):
 *     x / sqrt(m + eps) * scale is a square root, a division and a product;
 *   attention over keys: ascending logical position; see attention;
 *   recurrence: token by token.
 * The scalar oracle follows the same orders with fmaf, so variants can be compared bit for bit where no transcendental
 * function is involved. exp, sigmoid, silu, softplus: one implementation per table, fp32, <= 2 ulp.
 *
 * Aliasing: outputs never overlap inputs unless a contract says so. Rows are packed (row stride = width).
 * Pointers of weights may be unaligned (mapped files). Activations, KV and states are aligned to their element only (a
 * caller's rows may start anywhere): kernels load unaligned, which costs nothing where the data happens to be aligned. */
#ifndef HEARTH_OPS_OPS_H
#define HEARTH_OPS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/threads.h"
#include "format/dtype.h"

/* How a matrix stores its numbers. Packed codes are exact numbers; every form says where its scales enter the product.
 *
 *   PLAIN      type F32, F16 or BF16                        y = sum_k w x, widened exactly
 *   NVFP4      type U8: E2M1 codes [rows, cols / 2], the    y = scale * sum_k (code * block scale) x: that product is
 *              even element in the low half; block scales   exact in fp32 (2 + 4 significand bits), the sum is
 *              E4M3 [rows, cols / 16]; cols % 16 = 0        multiplied once at the end
 *   FP8        type F8_E4M3 [rows, cols]                    y = scale * sum_k code x
 *   FP8_BLOCK  type F8_E4M3; block scales fp32              y = sum_k w x with w = code * block scale, rounded to fp32
 *              [ceil(rows / 128), ceil(cols / 128)]
 *
 * NaN codes, and scales that are NaN, infinite or negative, do not occur: the model refuses them when it loads. */
typedef enum { MATRIX_PLAIN, MATRIX_NVFP4, MATRIX_FP8, MATRIX_FP8_BLOCK } matrix_form;
enum { NVFP4_BLOCK = 16, FP8_BLOCK = 128 };

/* A weight matrix y = W x, W [rows, cols] row-major. */
typedef struct matrix {
    dtype type;
    int rows, cols;
    const void *data; /* borrowed, as block_scales */
    matrix_form form;
    const void *block_scales;
    float scale; /* NVFP4 and FP8 */
    double
        input_scale; /* of a quantised input (quantise_input.h); 0 = it is not quantised. matmul does not look at it */
} matrix;

/* KV cache: pages of KV_PAGE token slots, one pool for all sequences. In each attention layer (the MTP layer is the last
 * one) page p holds K [kv_heads, KV_PAGE, head_dim] and V the same, of type `type`: DTYPE_F32, DTYPE_BF16, or DTYPE_F8_E4M3
 * with one scale per layer for K and one for V: stored is the code of x / scale, read is code * scale rounded to fp32. */
enum { KV_PAGE = 64 };
/* Largest head sizes of attention and Gated DeltaNet; the model layer refuses larger ones. */
enum { HEAD_DIM_MAX = 512, GDN_DIM_MAX = 256, CONV_TAPS_MAX = 8 };
typedef struct kv_pool {
    dtype type;
    int layers, kv_heads, head_dim, page_count;
    void *k, *v; /* [layers, page_count, kv_heads, KV_PAGE, head_dim]; owned by whoever made the pool */
    const float *k_scale, *v_scale; /* [layers], of FP8; NULL = 1. The model fills in the checkpoint's when it runs */
} kv_pool;

/* A recurrent state captured after `after` tokens of a chain segment (1..count). Pointers have the layout of sequence. */
typedef struct capture {
    int after;
    float *recurrent, *conv;
    float *hidden; /* [hidden_size]: row after-1 after the final norm; may be NULL */
} capture;

/* One sequence's state. The memory belongs to the cache layer; operators read and write it through these pointers. */
typedef struct sequence {
    const int32_t *pages; /* slot s lives in row s % KV_PAGE of page pages[s / KV_PAGE]; enough pages for the step */
    int length;           /* committed tokens: slots and positions 0 .. length-1 */
    float *recurrent;     /* [gdn_layers, value_heads, key_dim, value_dim] fp32, o = S^T q */
    float *conv;          /* [gdn_layers, conv_taps - 1, channels] fp32, raw inputs, oldest first */
} sequence;

typedef struct segment {
    const sequence *seq;
    int row, count;          /* rows row .. row+count-1 of the step */
    const int32_t *parents;  /* [count] or NULL for a chain */
    const int32_t *depth;    /* [count] tree: logical position = length + depth; NULL for a chain (row i: length + i) */
    const capture *captures; /* chain only, ascending */
    int capture_count;
} segment;

/* Attention geometry. Query head h reads KV head h / (heads / kv_heads). */
typedef struct attention_shape {
    int heads, kv_heads, head_dim, rotary_dim;
    const float *inv_freq; /* [rotary_dim / 2] */
} attention_shape;

/* Gated DeltaNet geometry. Value head j reads key head j / (value_heads / key_heads).
 * channels = 2 * key_heads * key_dim + value_heads * value_dim, laid out q | k | v. */
typedef struct gdn_shape {
    int key_heads, value_heads, key_dim, value_dim, conv_taps;
} gdn_shape;

/* What a tree leaves behind so that an accepted path can be replayed into the committed state, per GDN layer. */
typedef struct gdn_stash {
    /* Indexed by the step's row; room for the step's tree rows, which come first. */
    float *raw;  /* [rows, channels] raw convolution inputs */
    float *k;    /* [rows, key_heads, key_dim] normalised */
    float *v;    /* [rows, value_heads, value_dim] */
    float *gate; /* [rows, value_heads] exp(g) */
    float *beta; /* [rows, value_heads] */
} gdn_stash;

typedef struct ops {
    const char *name; /* "scalar", "avx2", "avx512" */

    /* out[r] = table[ids[r]] as fp32; out [rows, table.cols]. Ids are in range; the table is PLAIN. */
    void (*embed)(pool *p, float *out, const matrix *table, const int32_t *ids, int rows);

    /* out[r,i] = x[r,i] / sqrt(mean_i x[r,i]^2 + eps) * scale[i]; the sum of squares in the order of dot products.
     * out may equal x. Zero-centred norms pass scale = 1 + w. */
    void (*rms_norm)(pool *p, float *out, const float *x, const float *scale, int rows, int width, float eps);

    /* out[r,n] = sum_k W[n,k] x[r,k], as the form of W says; x [rows, W.cols], out [rows, W.rows]. */
    void (*matmul)(pool *p, float *out, const float *x, const matrix *w, int rows);

    /* x[i] += y[i] */
    void (*add)(pool *p, float *x, const float *y, int64_t count);

    /* out[i] = silu(gate[i]) * up[i]; out may equal gate or up. */
    void (*swiglu)(pool *p, float *out, const float *gate, const float *up, int64_t count);

    /* Per row and query head of `qg` [rows, heads, 2 * head_dim] (query, then gate): q [rows, heads, head_dim] =
     * rope(rms_norm(query, q_scale)), gate [rows, heads * head_dim] copied. k [rows, kv_heads, head_dim]: normed with
     * k_scale and rotated, then K and V [rows, kv_heads, head_dim] stored to their slots as pool->type. Slot of row i of a
     * segment: length + i. Position: length + i in a chain, length + depth[i] in a tree. RoPE rotates pairs
     * (i, i + rotary_dim/2) of the first rotary_dim dims: x1 cos - x2 sin, x2 cos + x1 sin; angle = position *
     * inv_freq[i], sine and cosine of the angle computed in double, then rounded. layer: index in the pool. */
    void (*qkv_store)(pool *p, float *q, float *gate, const float *qg, const float *k, const float *v,
                      const float *q_scale, const float *k_scale, float eps, const attention_shape *shape,
                      const kv_pool *kv, int layer, const segment *segments, int segment_count);

    /* out[r, h] = softmax(q k / sqrt(head_dim)) V over the row's keys, then times sigmoid(gate).
     * Keys of row i in logical order: slots 0 .. length-1, then its own path: a chain's slots length .. length+i, or a
     * tree's slots length + (ancestors of i from the root, and i). K and V are read as stored.
     * Order: score = dot product times 1/sqrt(head_dim); maximum over all keys; p = exp(score - max); sum of p with 16
     * lanes by logical position mod 16 as in dot products; out accumulated by fused multiply-add in ascending position,
     * one chain per element; divided by the sum at the end. Scores need memory that grows with the context: a kernel
     * keeps it per thread or computes them twice. */
    void (*attention)(pool *p, float *out, const float *q, const float *gate, const attention_shape *shape,
                      const kv_pool *kv, int layer, const segment *segments, int segment_count);

    /* Depthwise causal convolution with SiLU: out[r,c] = silu(sum_t taps[c,t] * window[t,c]), window = the last
     * conv_taps raw rows of the row's path, oldest first, ending with raw[r]; before them the committed conv state.
     * The sum is a chain of fused multiply-adds from the oldest tap. A chain advances layer `layer` of the conv state and
     * writes it to its captures. raw, out [rows, channels]; taps [channels, conv_taps] fp32. */
    void (*conv)(pool *p, float *out, const float *raw, const float *taps, const gdn_shape *shape, int layer,
                 const segment *segments, int segment_count);

    /* The gated delta rule. mixed [rows, channels] (after conv): q, k l2-normalised per head (x / sqrt(sum x^2 + 1e-6),
     * q also / sqrt(key_dim)); beta = sigmoid(b), decay = exp(-exp(A_log) softplus(a + dt_bias)); a, b [rows, value_heads];
     * per value head, token by token: S *= decay; u = beta (v - S^T k); S += k u^T; o = S^T q.
     * S^T x: per element a chain of fused multiply-adds in ascending key index; S += k u^T is one fused multiply-add.
     * out[r] = rms_norm(o, norm_scale) * silu(z); z, out [rows, value_heads * value_dim]; norm per head over value_dim.
     * A chain advances the recurrent state of `layer` and writes captures; a tree leaves it and fills stash (if not NULL)
     * for its rows. neg_exp_a = -exp(A_log) [value_heads], computed once at load. */
    void (*gdn)(pool *p, float *out, const float *mixed, const float *a, const float *b, const float *z,
                const float *neg_exp_a, const float *dt_bias, const float *norm_scale, float eps,
                const gdn_shape *shape, int layer, const segment *segments, int segment_count, const gdn_stash *stash,
                const float *raw);

    /* Replays nodes path[0..path_count) (row numbers in the stash, root first) of a tree into the committed recurrent
     * and conv state of seq, layer `layer`: the same bits as running them as a chain. */
    void (*gdn_commit)(pool *p, const sequence *seq, const gdn_shape *shape, int layer, const gdn_stash *stash,
                       const int32_t *path, int path_count);
} ops;

/* The scalar oracle: fills every slot, readable, slow. */
const ops *ops_cpu_scalar(void);
/* The fastest table this CPU can run. HEARTH_ISA=scalar|avx2|avx512 in the environment caps it (tests, bug reports);
 * NULL when it holds another word. */
const ops *ops_cpu_best(void);

#endif
