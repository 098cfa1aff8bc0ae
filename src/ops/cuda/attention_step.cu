/* Attention for decode and verification over paged keys and values, FP8 or bf16.
 *
 * A CTA owns one KV head and one absolute range of 256 logical positions. A range that is committed altogether serves
 * all query heads of that KV head and all nodes of a tree at once (up to 96 query rows, six tiles of 16): keys and
 * values are read once. Where a range reaches into the tree, each node has its own path, so each gets a CTA of its own
 * that gathers slots by logical position. Both run the same code on tiles of 64 positions in the same order, and a query
 * row never depends on its neighbours in a tile: a node has the bits of a chain.
 *
 * Tile: eight warps; scores by warp w for positions 8 w .. 8 w + 7; running maximum and sum in registers, the same in
 * every warp; weights in bf16 through shared memory; output columns 32 w .. 32 w + 31 by warp w. Tiles are fetched one
 * ahead with cp.async. Products run in bf16 with fp32 sums; E4M3 widens to bf16 exactly. Dimensions (for scores) and
 * columns (for outputs) are permuted among lanes so that a lane reads whole words of consecutive elements.
 *
 * A second kernel combines the ranges of each row and head in order and applies the gate. */
#include "ops/cuda/cuda_common.cuh"

enum {
    ATT_WARPS = 8,
    ATT_THREADS = ATT_WARPS * 32,
    TILE = CUDA_PAGE,
    HEAD = CUDA_HEAD_DIM,
    RANGE = CUDA_ATTENTION_RANGE,
    Q_STRIDE = HEAD * 2 + 16, /* bytes; the paddings keep a warp's words in different banks */
    P_STRIDE = TILE * 2 + 16,
    GROUP_MAX = 6, /* query heads of a KV head */
};

struct attention_params {
    cuda_attention_step step;
    float *partial; /* [ranges, rows, heads, 256] */
    float *weights; /* [ranges, rows, heads, 2]: maximum (base 2) and sum */
    int group;
};

template <bool FP8>
struct kv_layout {
    enum { ROW = FP8 ? HEAD : 2 * HEAD, K_STRIDE = ROW + (FP8 ? 64 : 16), V_STRIDE = ROW + 16 };
    enum { K_BYTES = TILE * K_STRIDE, STAGE = TILE * (K_STRIDE + V_STRIDE) };
};

/* ---- a sequence's logical positions */

/* Depth of node i: tokens of the path before it that are not committed. */
static __device__ __forceinline__ int node_depth(const cuda_attention_segment &seg, int i) {
    int depth = 0;
    for (i = seg.parents[i]; i >= 0; i = seg.parents[i]) depth++;
    return depth;
}

/* What a CTA works on. */
struct attention_work {
    int kv_head, range, first_row, rows; /* rows of the segment */
    int last;                            /* position of the last key */
};

/* False when there is nothing to do. Work of a KV head: the committed ranges, then two ranges for every node. */
static __device__ __forceinline__ bool find_work(const attention_params &p, const cuda_attention_segment &seg,
                                                 attention_work &w) {
    int index = blockIdx.x / p.step.kv_heads, whole = seg.length / RANGE;
    w.kv_head = blockIdx.x % p.step.kv_heads;
    if (index < whole) {
        w.range = index, w.first_row = 0, w.rows = seg.count, w.last = (index + 1) * RANGE - 1;
        return true;
    }
    index -= whole;
    if (index / 2 >= seg.count) return false;
    w.range = whole + index % 2, w.first_row = index / 2, w.rows = 1;
    w.last = seg.length + node_depth(seg, w.first_row);
    return w.range * RANGE <= w.last;
}

/* ---- tiles of keys and values */

static __device__ __forceinline__ void copy16_or_zero(uint32_t to, const void *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

/* Positions first .. first + 63; path[d]: node at depth d of a single row. */
template <bool FP8>
static __device__ __forceinline__ void tile_fetch(const attention_params &p, const cuda_attention_segment &seg,
                                                  const attention_work &w, const int *path, int first, uint32_t stage) {
    typedef kv_layout<FP8> L;
    enum { PIECES = L::ROW / 16 };
    for (int i = threadIdx.x; i < TILE * PIECES; i += ATT_THREADS) {
        int row = i / PIECES, piece = i % PIECES * 16, position = first + row;
        bool valid = position <= w.last;
        int slot = !valid ? 0 : position < seg.length ? position : seg.length + path[position - seg.length];
        int64_t page = seg.pages[slot / CUDA_PAGE];
        int64_t at = ((page * p.step.kv_heads + w.kv_head) * CUDA_PAGE + slot % CUDA_PAGE) * L::ROW + piece;
        copy16_or_zero(stage + row * L::K_STRIDE + piece, (const uint8_t *)p.step.k + at, valid);
        copy16_or_zero(stage + L::K_BYTES + row * L::V_STRIDE + piece, (const uint8_t *)p.step.v + at, valid);
    }
    copy_commit();
}

/* Two E4M3 codes, each in the high byte of a half, to two bf16. */
static __device__ __forceinline__ uint32_t widen_e4m3(uint32_t x) {
    return mul_bf16x2((x & 0x80008000u) | ((x >> 4) & 0x07f007f0u), 0x7b807b80u); /* 2^120 */
}

static __device__ __forceinline__ uint32_t shared_load4(uint32_t at) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
    return v;
}

static __device__ __forceinline__ uint2 shared_load8(uint32_t at) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
    return v;
}

/* 16 consecutive dimensions of one key as eight pairs. */
template <bool FP8>
static __device__ __forceinline__ void key_pairs(uint32_t *pair, uint32_t at) {
    uint4 a = shared_load16(at);
    if (FP8) {
        uint32_t word[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            pair[2 * i] = widen_e4m3(__byte_perm(word[i], 0, 0x1404));
            pair[2 * i + 1] = widen_e4m3(__byte_perm(word[i], 0, 0x3424));
        }
    } else {
        uint4 b = shared_load16(at + 16);
        pair[0] = a.x, pair[1] = a.y, pair[2] = a.z, pair[3] = a.w;
        pair[4] = b.x, pair[5] = b.y, pair[6] = b.z, pair[7] = b.w;
    }
}

/* Columns j = 0..3 of two neighbouring positions as pairs (position, position + 1). */
template <bool FP8>
static __device__ __forceinline__ void value_pairs(uint32_t *pair, uint32_t at, int stride) {
    if (FP8) {
        uint32_t a = shared_load4(at), b = shared_load4(at + stride);
#pragma unroll
        for (int j = 0; j < 4; j++) pair[j] = widen_e4m3(__byte_perm(a, b, (4 + j) << 12 | j << 4));
    } else {
        uint2 a = shared_load8(at), b = shared_load8(at + stride);
        pair[0] = __byte_perm(a.x, b.x, 0x5410), pair[1] = __byte_perm(a.x, b.x, 0x7632);
        pair[2] = __byte_perm(a.y, b.y, 0x5410), pair[3] = __byte_perm(a.y, b.y, 0x7632);
    }
}

/* ---- one tile */

/* Scores of the warp's eight positions. score[mt]: rows g and g + 8, positions 2 t and 2 t + 1. */
template <int MT, bool FP8>
static __device__ __forceinline__ void tile_scores(float (*score)[4], uint32_t q, uint32_t keys, int tiles) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    float odd[MT][4] = {};
#pragma unroll
    for (int mt = 0; mt < MT; mt++) score[mt][0] = score[mt][1] = score[mt][2] = score[mt][3] = 0;
#pragma unroll
    for (int block = 0; block < HEAD / 64; block++) {
        uint32_t pair[8];
        key_pairs<FP8>(pair, keys + (8 * warp + g) * kv_layout<FP8>::K_STRIDE + (block * 64 + 16 * t) * (FP8 ? 1 : 2));
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            if (mt >= tiles) continue;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t at = q + (mt * 16 + g) * Q_STRIDE + (block * 64 + 16 * t + 8 * half) * 2;
                uint4 low = shared_load16(at), high = shared_load16(at + 8 * Q_STRIDE);
                uint32_t a0[4] = {low.x, high.x, low.y, high.y}, a1[4] = {low.z, high.z, low.w, high.w};
                float *sum = block % 2 ? odd[mt] : score[mt];
                mma_bf16(sum, a0, pair[4 * half], pair[4 * half + 1]);
                mma_bf16(sum, a1, pair[4 * half + 2], pair[4 * half + 3]);
            }
        }
    }
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
        for (int i = 0; i < 4; i++) score[mt][i] += odd[mt][i];
}

/* out[mt][j] += weights times values; j: columns 8 t + j and 8 t + 4 + j of the warp's 32. */
template <int MT, bool FP8>
static __device__ __forceinline__ void tile_values(float (*out)[4][4], uint32_t weights, uint32_t values, int tiles) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    const int stride = kv_layout<FP8>::V_STRIDE;
#pragma unroll
    for (int step = 0; step < TILE / 16; step++) {
        uint32_t low[4], high[4], at = values + (16 * step + 2 * t) * stride + (32 * warp + 4 * g) * (FP8 ? 1 : 2);
        value_pairs<FP8>(low, at, stride);
        value_pairs<FP8>(high, at + 8 * stride, stride);
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            if (mt >= tiles) continue;
            uint32_t from = weights + (mt * 16 + g) * P_STRIDE + (16 * step + 2 * t) * 2;
            uint32_t a[4] = {shared_load4(from), shared_load4(from + 8 * P_STRIDE), shared_load4(from + 16),
                             shared_load4(from + 8 * P_STRIDE + 16)};
#pragma unroll
            for (int j = 0; j < 4; j++) mma_bf16(out[mt][j], a, low[j], high[j]);
        }
    }
}

/* Reduces over the four lanes that share a row. */
static __device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Running softmax of the lane's rows g and g + 8 of every tile of 16. */
template <int MT>
struct running {
    float highest[MT][2], sum[MT][2], factor[MT][2];
};

/* Scores to weights in shared memory, and what earlier sums are multiplied by. per_warp: [2][ATT_WARPS][MT * 16]. */
template <int MT>
static __device__ __forceinline__ void tile_softmax(running<MT> &r, float (*score)[4], uint8_t *weights,
                                                    float *per_warp, int tiles, int first, int last, float scale) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    int position = first + 8 * warp + 2 * t;
    float *sums = per_warp + ATT_WARPS * MT * 16;
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
        for (int h = 0; h < 2; h++) {
            float *s = &score[mt][2 * h];
            s[0] = position <= last ? s[0] * scale : -INFINITY;
            s[1] = position + 1 <= last ? s[1] * scale : -INFINITY;
            float most = quad_max(fmaxf(s[0], s[1]));
            if (t == 0 && mt < tiles) per_warp[warp * MT * 16 + mt * 16 + g + 8 * h] = most;
        }
    __syncthreads();
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
        for (int h = 0; h < 2; h++) {
            if (mt >= tiles) continue;
            int row = mt * 16 + g + 8 * h;
            float most = r.highest[mt][h];
            for (int i = 0; i < ATT_WARPS; i++) most = fmaxf(most, per_warp[i * MT * 16 + row]);
            r.factor[mt][h] = exp2f(r.highest[mt][h] - most); /* a tile has at least one key: most is finite */
            r.highest[mt][h] = most;
            __nv_bfloat162 w =
                __floats2bfloat162_rn(exp2f(score[mt][2 * h] - most), exp2f(score[mt][2 * h + 1] - most));
            *(__nv_bfloat162 *)(weights + row * P_STRIDE + (8 * warp + 2 * t) * 2) = w;
            float sum = quad_sum(__low2float(w) + __high2float(w));
            if (t == 0) sums[warp * MT * 16 + row] = sum;
        }
    __syncthreads();
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
        for (int h = 0; h < 2; h++) {
            if (mt >= tiles) continue;
            float sum = r.sum[mt][h] * r.factor[mt][h];
            for (int i = 0; i < ATT_WARPS; i++) sum += sums[i * MT * 16 + mt * 16 + g + 8 * h];
            r.sum[mt][h] = sum;
        }
}

/* ---- kernels */

/* Query row q of the CTA: head q % group of row q / group. */
static __device__ __forceinline__ int64_t query_at(const attention_params &p, const cuda_attention_segment &seg,
                                                   const attention_work &w, int q) {
    int64_t row = seg.row + w.first_row + q / p.group;
    return row * p.step.heads + w.kv_head * p.group + q % p.group;
}

static __device__ __forceinline__ void load_queries(const attention_params &p, const cuda_attention_segment &seg,
                                                    const attention_work &w, uint8_t *q, int tiles) {
#pragma unroll 8
    for (int i = threadIdx.x; i < tiles * 16 * (HEAD / 4); i += ATT_THREADS) {
        int row = i / (HEAD / 4), four = i % (HEAD / 4);
        float4 v = make_float4(0, 0, 0, 0);
        if (row < w.rows * p.group) v = *(const float4 *)(p.step.q + query_at(p, seg, w, row) * HEAD + 4 * four);
        __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(v.x, v.y), __floats2bfloat162_rn(v.z, v.w)};
        *(uint2 *)(q + row * Q_STRIDE + four * 8) = *(uint2 *)pair;
    }
}

template <int MT>
static __device__ __forceinline__ void store_partial(const attention_params &p, const cuda_attention_segment &seg,
                                                     const attention_work &w, float (*out)[4][4], const running<MT> &r,
                                                     int tiles) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    int64_t range_at = (int64_t)w.range * p.step.rows * p.step.heads;
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
        for (int h = 0; h < 2; h++) {
            int row = mt * 16 + g + 8 * h;
            if (mt >= tiles || row >= w.rows * p.group) continue;
            int64_t at = range_at + query_at(p, seg, w, row);
            float *to = p.partial + at * HEAD + 32 * warp + 8 * t;
            *(float4 *)to = make_float4(out[mt][0][2 * h], out[mt][1][2 * h], out[mt][2][2 * h], out[mt][3][2 * h]);
            *(float4 *)(to + 4) =
                make_float4(out[mt][0][2 * h + 1], out[mt][1][2 * h + 1], out[mt][2][2 * h + 1], out[mt][3][2 * h + 1]);
            if (warp == 0 && t == 0) *(float2 *)(p.weights + at * 2) = make_float2(r.highest[mt][h], r.sum[mt][h]);
        }
}

template <int MT, bool FP8>
__global__ void __launch_bounds__(ATT_THREADS) attention_range(const __grid_constant__ attention_params p) {
    typedef kv_layout<FP8> L;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ int path[CUDA_ATTENTION_ROWS_MAX];
    uint8_t *q = shared + 2 * L::STAGE, *weights = q + MT * 16 * Q_STRIDE;
    float *per_warp = (float *)(weights + MT * 16 * P_STRIDE);
    uint32_t stage = shared_address(shared);
    next_may_start();
    wait_for_previous();
    const cuda_attention_segment seg = p.step.segments[blockIdx.y];
    attention_work w;
    if (!find_work(p, seg, w)) return;
    if (threadIdx.x == 0 && w.last >= seg.length)
        for (int i = w.first_row, d = w.last - seg.length; d >= 0; d--, i = seg.parents[i]) path[d] = i;
    __syncthreads();
    int first = w.range * RANGE, end = min(first + RANGE, w.last + 1), tiles = (w.rows * p.group + 15) / 16;
    tile_fetch<FP8>(p, seg, w, path, first, stage);
    load_queries(p, seg, w, q, tiles);
    float out[MT][4][4] = {}, scale = p.step.k_scale * rsqrtf((float)HEAD) * 1.4426950408889634f;
    running<MT> r;
    for (int mt = 0; mt < MT; mt++)
        for (int h = 0; h < 2; h++) r.highest[mt][h] = -INFINITY, r.sum[mt][h] = 0;
    for (int tile = 0; first < end; first += TILE, tile ^= 1) {
        copy_wait<0>();
        __syncthreads();
        if (first + TILE < end) tile_fetch<FP8>(p, seg, w, path, first + TILE, stage + (tile ^ 1) * L::STAGE);
        float score[MT][4];
        uint32_t keys = stage + tile * L::STAGE;
        tile_scores<MT, FP8>(score, shared_address(q), keys, tiles);
        tile_softmax<MT>(r, score, weights, per_warp, tiles, first, w.last, scale);
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
            for (int i = 0; i < 16 && mt < tiles; i++) out[mt][i / 4][i % 4] *= r.factor[mt][i % 4 / 2];
        tile_values<MT, FP8>(out, shared_address(weights), keys + L::K_BYTES, tiles);
    }
    store_partial<MT>(p, seg, w, out, r, tiles);
}

/* One row and head: the ranges in order, the gate. */
static __global__ void __launch_bounds__(HEAD) attention_combine(const __grid_constant__ attention_params p) {
    next_may_start();
    wait_for_previous();
    int head = blockIdx.x % p.step.heads, i = blockIdx.x / p.step.heads;
    const cuda_attention_segment seg = p.step.segments[blockIdx.y];
    if (i >= seg.count) return;
    int ranges = (seg.length + node_depth(seg, i)) / RANGE + 1;
    int64_t at = (int64_t)(seg.row + i) * p.step.heads + head, stride = (int64_t)p.step.rows * p.step.heads;
    const float2 *weights = (const float2 *)p.weights;
    float most = -INFINITY, sum = 0, out = 0;
#pragma unroll 8
    for (int r = 0; r < ranges; r++) most = fmaxf(most, weights[r * stride + at].x);
#pragma unroll 16
    for (int r = 0; r < ranges; r++) {
        float2 weight = weights[r * stride + at];
        float part = p.partial[(r * stride + at) * HEAD + threadIdx.x], factor = exp2f(weight.x - most);
        sum = fmaf(factor, weight.y, sum);
        out = fmaf(factor, part, out);
    }
    float gate = sigmoid_of(p.step.gate[at * HEAD + threadIdx.x]);
    ((__nv_bfloat16 *)p.step.out)[at * HEAD + threadIdx.x] = __float2bfloat16(out / sum * p.step.v_scale * gate);
}

/* ---- launchers */

/* A node's path may reach one range past the committed ones. */
static size_t partial_rows(int rows, int heads, int range_count) {
    return (size_t)rows * (size_t)heads * (size_t)(range_count + 1);
}

size_t cuda_attention_workspace(int rows, int heads, int range_count) {
    return partial_rows(rows, heads, range_count) * (HEAD + 2) * sizeof(float);
}

template <int MT, bool FP8>
static err_code launch_ranges(attention_params *p, int grid, void *stream, error *err) {
    typedef kv_layout<FP8> L;
    size_t shared = 2 * L::STAGE + MT * 16 * (Q_STRIDE + P_STRIDE) + 2 * ATT_WARPS * MT * 16 * sizeof(float);
    void *args[] = {p};
    return cuda_launch_2d((const void *)attention_range<MT, FP8>, grid, p->step.segment_count, ATT_THREADS, shared,
                          stream, args, err);
}

template <bool FP8>
static err_code launch_for_rows(attention_params *p, int grid, int most, void *stream, error *err) {
    int tiles = (most * p->group + 15) / 16;
    return tiles <= 1   ? launch_ranges<1, FP8>(p, grid, stream, err)
           : tiles <= 3 ? launch_ranges<3, FP8>(p, grid, stream, err)
                        : launch_ranges<6, FP8>(p, grid, stream, err);
}

err_code cuda_attention(const cuda_attention_step *step, void *stream, error *err) {
    HEARTH_ASSERT(step->heads % step->kv_heads == 0 && step->heads / step->kv_heads <= GROUP_MAX);
    attention_params p = {};
    p.step = *step;
    p.group = step->heads / step->kv_heads;
    p.partial = (float *)step->workspace;
    p.weights = p.partial + partial_rows(step->rows, step->heads, step->range_count) * HEAD;
    int most = min(step->rows, (int)CUDA_ATTENTION_ROWS_MAX), grid = step->kv_heads * (step->range_count + 2 * most);
    ERR_TRY(step->type == CUDA_KV_E4M3 ? launch_for_rows<true>(&p, grid, most, stream, err)
                                       : launch_for_rows<false>(&p, grid, most, stream, err));
    void *args[] = {&p};
    return cuda_launch_2d((const void *)attention_combine, step->heads * most, step->segment_count, HEAD, 0, stream,
                          args, err);
}
