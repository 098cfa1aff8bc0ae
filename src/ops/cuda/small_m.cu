/* Small-M matrix product with NVFP4 weights: y[m, n] = scale * sum_k x[m, k] W[n, k], m <= 64.
 *
 * The weights are read once, at memory speed; everything else must hide behind that. Weights are the A operand of
 * mma.sync m16n8k16, eight rows of x the B operand, so that one row costs what eight cost. A CTA owns a part: up to 18
 * tiles of 16 rows (nvfp4_plan), all of K or one of `split` runs of it. Its eight warps split K: warp w takes k64 group w
 * of every 512-column chunk and keeps accumulators for all tiles of the part, so that a chunk's activations, loaded
 * straight from global memory into B fragments, serve all tiles. At the end the eight partial sums are added in order
 * through shared memory, and those of the CTAs of a part in order through the cluster (bulk route) or global memory
 * (portable route). Neither M, the bucket (MT), nor the route enters the order of sums.
 *
 * Unpacking: cuda_ops.h and nvfp4_pack.c describe the words. Scales are multiplied in before the product (bf16 codes
 * alone would be subnormal), exactly.
 *
 * Two ways of moving the weights into slots of up to ten tiles. Bulk: a producer warp fills a slot with one bulk copy,
 * ahead of the consumers and, since weights do not depend on the previous kernel, before that one has ended. Portable:
 * each warp fills its own share of the slots with cp.async; no barrier between warps at all.
 *
 * What was tried and lost is in docs/cuda.md. */
#include "ops/cuda/cuda_common.cuh"

enum {
    WARPS = 8,
    CONSUMERS = WARPS * 32,
    GROUP_BYTES = 576,
    GROUP_CODES = 512,
    CHUNK_COLS = 512,
    RING = 4,      /* portable: slots */
    SUM_UNITS = 8, /* tiles x column groups summed in one round */
    SUM_FLOATS = WARPS * SUM_UNITS * 128,
    ARRIVALS_PER_PART = 16,                  /* sub-blocks of a part x passes over m */
    ARRIVALS_MAX = 1024 * ARRIVALS_PER_PART, /* the same place for every plan: it must stay zero between products */
    SLOTS_MAX = 8,
};

struct matmul_params {
    const uint8_t *w;
    const __nv_bfloat16 *x;
    void *y;
    float *partial;     /* portable route, split: [parts, ARRIVALS_PER_PART, split, units * 128] */
    unsigned *arrivals; /* [parts, ARRIVALS_PER_PART] */
    float scale;
    int rows, cols, m, chunks, tiles, part_tiles, parts, split, epilogue;
    int slots; /* bulk route */
};

/* ---- the walk over a CTA's weights, the same for whoever copies and whoever computes */

/* Position: sub-block (t0) of a part, pass over m (m0), chunk, tile in the sub-block. */
struct weight_walk {
    int part, part_step, chunk0, chunk1, m_step, block_tiles;
    int m0, t0, chunk, tile, in_part, in_block;
};

static __device__ __forceinline__ void walk_part(const matmul_params &p, weight_walk &w) {
    w.in_part = min(p.part_tiles, p.tiles - w.part * p.part_tiles);
    w.in_block = min(w.block_tiles, w.in_part);
}

static __device__ __forceinline__ weight_walk walk_begin(const matmul_params &p, int m_step, int block_tiles) {
    weight_walk w;
    int rank = blockIdx.x % p.split;
    w.part = blockIdx.x / p.split;
    w.part_step = gridDim.x / p.split;
    w.chunk0 = p.chunks * rank / p.split;
    w.chunk1 = p.chunks * (rank + 1) / p.split;
    w.m_step = m_step;
    w.block_tiles = block_tiles;
    w.m0 = w.t0 = w.tile = 0;
    w.chunk = w.chunk0;
    if (w.part < p.parts) walk_part(p, w);
    return w;
}

static __device__ __forceinline__ bool walk_done(const matmul_params &p, const weight_walk &w) {
    return w.part >= p.parts;
}

static __device__ __forceinline__ const uint8_t *walk_at(const matmul_params &p, const weight_walk &w) {
    int64_t tile = (int64_t)w.part * p.part_tiles * p.chunks + (int64_t)w.chunk * w.in_part + w.t0 + w.tile;
    return p.w + tile * NVFP4_TILE_BYTES;
}

/* To the next sub-block. */
static __device__ __forceinline__ void walk_block(const matmul_params &p, weight_walk &w) {
    w.tile = 0;
    w.chunk = w.chunk0;
    w.t0 += w.block_tiles;
    if (w.t0 >= w.in_part) {
        w.t0 = 0;
        w.m0 += w.m_step;
        if (w.m0 >= p.m) {
            w.m0 = 0;
            w.part += w.part_step;
            if (w.part < p.parts) walk_part(p, w);
        }
    }
    w.in_block = min(w.block_tiles, w.in_part - w.t0);
}

static __device__ __forceinline__ void walk_next(const matmul_params &p, weight_walk &w, int step) {
    w.tile += step;
    if (w.tile < w.in_block) return;
    w.tile = 0;
    if (++w.chunk == w.chunk1) walk_block(p, w);
}

/* ---- slots: 2 SP tiles of one chunk each; a warp reads its own group of every tile */

/* One warp's group of two consecutive tiles. */
struct tile_pair {
    uint4 codes[2];
    uint32_t scales[2];
};

static __device__ __forceinline__ tile_pair pair_load(uint32_t at) {
    tile_pair t;
    int lane = threadIdx.x % 32;
    for (int i = 0; i < 2; i++) {
        t.codes[i] = shared_load16(at + i * NVFP4_TILE_BYTES + lane * 16);
        t.scales[i] = shared_load2(at + i * NVFP4_TILE_BYTES + GROUP_CODES + lane * 2);
    }
    return t;
}

/* Portable: a warp fills its own share of the slots, RING - 1 ahead of where it reads. */
template <int SP>
struct ring_stream {
    uint32_t base; /* of the warp's group in slot 0 */
    int slot;
    weight_walk ahead;

    __device__ __forceinline__ void fill(const matmul_params &p) {
        if (!walk_done(p, ahead)) {
            int lane = threadIdx.x % 32, count = min(2 * SP, ahead.in_block - ahead.tile);
            const uint8_t *from = walk_at(p, ahead) + threadIdx.x / 32 * GROUP_BYTES;
            uint32_t to = base + slot * (2 * SP * NVFP4_TILE_BYTES);
            for (int tile = 0; tile < count; tile++)
                copy16_async(to + tile * NVFP4_TILE_BYTES + lane * 16, from + tile * NVFP4_TILE_BYTES + lane * 16);
            for (int i = lane; i < 4 * count; i += 32) {
                int at = i / 4 * NVFP4_TILE_BYTES + GROUP_CODES + i % 4 * 16;
                copy16_async(to + at, from + at);
            }
            walk_next(p, ahead, 2 * SP);
        }
        copy_commit();
        slot = slot + 1 == RING ? 0 : slot + 1;
    }

    /* The oldest slot; `slot` is the one to fill next. */
    __device__ __forceinline__ uint32_t take(const matmul_params &) {
        copy_wait<RING - 2>();
        __syncwarp(); /* the other lanes' copies have landed */
        return base + (slot + 1 == RING ? 0 : slot + 1) * (2 * SP * NVFP4_TILE_BYTES);
    }

    /* The slot taken has been read: the one before it is free for certain, and filled. */
    __device__ __forceinline__ void release(const matmul_params &p) {
        __syncwarp();
        fill(p);
    }
};

#if HAVE_SM90
/* Bulk: slots filled by the producer warp. full, empty: arrays of mbarriers. */
template <int SP>
struct slot_stream {
    uint32_t base, full, empty;
    int slot, phase;

    __device__ __forceinline__ void advance(const matmul_params &p) {
        if (++slot == p.slots) {
            slot = 0;
            phase ^= 1;
        }
    }

    __device__ __forceinline__ uint32_t take(const matmul_params &) {
        mbarrier_wait(full + 8 * slot, phase);
        return base + slot * (2 * SP * NVFP4_TILE_BYTES) + threadIdx.x / 32 * GROUP_BYTES;
    }

    __device__ __forceinline__ void release(const matmul_params &p) {
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(empty + 8 * slot);
        advance(p);
    }

    /* The producer: one lane, as far ahead as there are free slots. */
    __device__ __forceinline__ void produce(const matmul_params &p, weight_walk w) {
        for (; !walk_done(p, w); walk_next(p, w, 2 * SP)) {
            int bytes = min(2 * SP, w.in_block - w.tile) * NVFP4_TILE_BYTES;
            mbarrier_wait(empty + 8 * slot, phase ^ 1);
            mbarrier_expect(full + 8 * slot, bytes);
            bulk_copy(base + slot * (2 * SP * NVFP4_TILE_BYTES), walk_at(p, w), bytes, full + 8 * slot);
            advance(p);
        }
    }
};
#endif

/* ---- arithmetic of one group */

/* Eight codes to four bf16 pairs times the row's scale. */
static __device__ __forceinline__ void unpack_word(uint32_t *pair, uint32_t w, uint32_t scale) {
    const uint32_t mask = 0x81c081c0u;
    pair[0] = mul_bf16x2(w & mask, scale);
    pair[1] = mul_bf16x2((w << 6) & mask, scale);
    pair[2] = mul_bf16x2(__funnelshift_r(w, w, 4) & mask, scale);
    pair[3] = mul_bf16x2(((w >> 6) ^ (w << 2)) & mask, scale);
}

/* A scale byte to a pair of equal bf16. */
static __device__ __forceinline__ uint32_t unpack_scale(uint32_t code) {
    return code * 0x00100010u + (235u << 7) * 0x00010001u;
}

/* The A fragments of one group: a[j] for columns 16 t + 4 j .. + 3 of each lane. */
static __device__ __forceinline__ void unpack_group(uint32_t (*a)[4], const uint4 &codes, uint32_t scales) {
    uint32_t low[8], high[8], s0 = unpack_scale(scales & 255), s1 = unpack_scale(scales >> 8);
    unpack_word(low, codes.x, s0);
    unpack_word(low + 4, codes.y, s0);
    unpack_word(high, codes.z, s1);
    unpack_word(high + 4, codes.w, s1);
#pragma unroll
    for (int j = 0; j < 4; j++)
        a[j][0] = low[2 * j], a[j][1] = high[2 * j], a[j][2] = low[2 * j + 1], a[j][3] = high[2 * j + 1];
}

/* Two tiles: acc[mt], acc[MT + mt] += 16 rows x 64 columns times x. x[mt]: the lane's 16 columns of row 8 mt + lane / 4.
 * The tiles take turns, since each product waits for the one before it on the same accumulator. */
template <int MT>
static __device__ __forceinline__ void pair_product(float (*acc)[4], const tile_pair &t, const uint32_t (*x)[8]) {
    uint32_t a[2][4][4];
    unpack_group(a[0], t.codes[0], t.scales[0]);
    unpack_group(a[1], t.codes[1], t.scales[1]);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) mma_bf16(acc[i], a[i / MT][j], x[i % MT][2 * j], x[i % MT][2 * j + 1]);
}

template <int MT>
static __device__ __forceinline__ void load_x(uint32_t (*x)[8], const matmul_params &p, int m0, int chunk) {
    int lane = threadIdx.x % 32, col = chunk * CHUNK_COLS + threadIdx.x / 32 * 64 + lane % 4 * 16;
#pragma unroll
    for (int mt = 0; mt < MT; mt++) {
        int row = m0 + mt * 8 + lane / 4;
        uint4 v[2] = {};
        if (row < p.m && col < p.cols) {
            const uint4 *from = (const uint4 *)(p.x + (int64_t)row * p.cols + col);
            v[0] = from[0];
            v[1] = from[1];
        }
        x[mt][0] = v[0].x, x[mt][1] = v[0].y, x[mt][2] = v[0].z, x[mt][3] = v[0].w;
        x[mt][4] = v[1].x, x[mt][5] = v[1].y, x[mt][6] = v[1].z, x[mt][7] = v[1].w;
    }
}

/* ---- sums and results */

/* Item `at` of a sub-block: unit (tile, eight rows of x), lane and column bit of an accumulator; it holds weight rows
 * lane / 4 and lane / 4 + 8 of the tile. */
template <int MT>
static __device__ __forceinline__ void store_item(const matmul_params &p, const weight_walk &w, int at, float2 v) {
    int unit = at / 64, lane = at % 64 / 2;
    int m = w.m0 + unit % MT * 8 + lane % 4 * 2 + at % 2, tile = w.part * p.part_tiles + w.t0 + unit / MT;
    int n = tile * 16 + lane / 4;
    if (m >= p.m) return;
    v.x *= p.scale, v.y *= p.scale;
    int64_t row = (int64_t)m * p.rows;
    if (p.epilogue == MATMUL_SWIGLU) {
        ((__nv_bfloat16 *)p.y)[row / 2 + tile * 8 + lane / 4] = __float2bfloat16(silu_of(v.x) * v.y);
        return;
    }
    for (int half = 0; half < 2; half++) {
        float value = half ? v.y : v.x;
        if (n + 8 * half >= p.rows) continue;
        if (p.epilogue == MATMUL_BF16)
            ((__nv_bfloat16 *)p.y)[row + n + 8 * half] = __float2bfloat16(value);
        else if (p.epilogue == MATMUL_ADD)
            ((float *)p.y)[row + n + 8 * half] += value;
        else
            ((float *)p.y)[row + n + 8 * half] = value;
    }
}

/* Shared memory after the streams' part. */
struct sum_space {
    float *warps;          /* [WARPS][SUM_UNITS][32][4] */
    float2 *cta;           /* split: this CTA's sums of a sub-block, by item */
    uint32_t ready, taken; /* split, bulk: mbarriers that every CTA of the cluster arrives at */
    int phase;
};

/* Sums over the eight warps, SUM_UNITS units a round; each result goes to `cta`, or straight to y when K is whole. */
template <int MT, int TB>
static __device__ __forceinline__ void sum_warps(const matmul_params &p, const weight_walk &w, float (*acc)[4],
                                                 const sum_space &s) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, units = w.in_block * MT;
#pragma unroll
    for (int u0 = 0; u0 < TB * MT; u0 += SUM_UNITS) {
        if (u0 >= units) continue;
#pragma unroll
        for (int u = 0; u < SUM_UNITS && u0 + u < TB * MT; u++)
            *(float4 *)&s.warps[((warp * SUM_UNITS + u) * 32 + lane) * 4] =
                make_float4(acc[u0 + u][0], acc[u0 + u][1], acc[u0 + u][2], acc[u0 + u][3]);
        barrier_of(CONSUMERS);
        for (int item = threadIdx.x; item < SUM_UNITS * 64; item += CONSUMERS) {
            int from = item / 2 * 4 + item % 2, at = u0 * 64 + item;
            float2 v = make_float2(0, 0);
            for (int i = 0; i < WARPS; i++) {
                v.x += s.warps[i * SUM_UNITS * 128 + from];
                v.y += s.warps[i * SUM_UNITS * 128 + from + 2];
            }
            if (at >= units * 64) continue;
            if (p.split == 1)
                store_item<MT>(p, w, at, v);
            else
                s.cta[at] = v;
        }
        barrier_of(CONSUMERS);
    }
}

/* Split K, portable: sums travel through global memory; the CTA that comes last adds them in order. */
template <int MT, int TB>
static __device__ __forceinline__ void sum_global(const matmul_params &p, const weight_walk &w, const sum_space &s) {
    __shared__ unsigned last;
    int items = w.in_block * MT * 64, rank = blockIdx.x % p.split;
    int block = w.part * ARRIVALS_PER_PART + w.m0 / (MT * 8) * ((p.part_tiles + TB - 1) / TB) + w.t0 / TB;
    float2 *partial = (float2 *)p.partial + (int64_t)block * p.split * (NVFP4_PART_TILES_MAX * 2 * 64);
    int64_t stride = NVFP4_PART_TILES_MAX * 2 * 64;
    for (int i = threadIdx.x; i < items; i += CONSUMERS) partial[rank * stride + i] = s.cta[i];
    __threadfence();
    barrier_of(CONSUMERS);
    if (threadIdx.x == 0) last = atomicAdd(&p.arrivals[block], 1) == (unsigned)p.split - 1;
    barrier_of(CONSUMERS);
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0) p.arrivals[block] = 0;
    for (int i = threadIdx.x; i < items; i += CONSUMERS) {
        float2 v = __ldcg(&partial[i]);
        for (int r = 1; r < p.split; r++) {
            float2 more = __ldcg(&partial[r * stride + i]);
            v.x += more.x, v.y += more.y;
        }
        store_item<MT>(p, w, i, v);
    }
}

#if HAVE_SM90
/* Every CTA of the cluster has come this far. */
static __device__ __forceinline__ void cluster_meet(uint32_t barrier, int split, int phase) {
    barrier_of(CONSUMERS);
    if ((int)threadIdx.x < split) cluster_arrive_at(cluster_address(barrier, threadIdx.x));
    mbarrier_wait_cluster(barrier, phase);
}

/* Split K, bulk: each CTA adds its share of the items, reading the others' shared memory. */
template <int MT>
static __device__ __forceinline__ void sum_cluster(const matmul_params &p, const weight_walk &w, sum_space &s) {
    int items = w.in_block * MT * 64, rank = blockIdx.x % p.split;
    uint32_t cta = shared_address(s.cta);
    cluster_meet(s.ready, p.split, s.phase);
    for (int i = rank * CONSUMERS + threadIdx.x; i < items; i += p.split * CONSUMERS) {
        float2 v = cluster_load8(cluster_address(cta + i * 8, 0));
        for (int r = 1; r < p.split; r++) {
            float2 more = cluster_load8(cluster_address(cta + i * 8, r));
            v.x += more.x, v.y += more.y;
        }
        store_item<MT>(p, w, i, v);
    }
    cluster_meet(s.taken, p.split, s.phase); /* before the sums are overwritten or the CTA ends */
    s.phase ^= 1;
}
#endif

/* ---- kernels */

/* Accumulators of one sub-block, from the first chunk to the last. A slot's pairs are one straight run of code, so that
 * unpacking, loads and products of neighbours overlap; tiles past the end of a short sub-block are computed from
 * whatever the slot holds and never stored. */
template <int MT, int SP, int RUNS, class STREAM>
static __device__ __forceinline__ void sub_block(const matmul_params &p, const weight_walk &w, STREAM &stream,
                                                 float (*acc)[4]) {
    uint32_t x[MT][8], next_x[MT][8];
    load_x<MT>(next_x, p, w.m0, w.chunk0);
    for (int chunk = w.chunk0; chunk < w.chunk1; chunk++) {
#pragma unroll
        for (int i = 0; i < MT * 8; i++) x[i / 8][i % 8] = next_x[i / 8][i % 8];
        if (chunk + 1 < w.chunk1) load_x<MT>(next_x, p, w.m0, chunk + 1);
#pragma unroll
        for (int run = 0; run < RUNS; run++) {
            if (run * 2 * SP >= w.in_block) continue;
            uint32_t at = stream.take(p);
            tile_pair next = pair_load(at);
#pragma unroll
            for (int i = 0; i < SP; i++) {
                tile_pair now = next;
                if (i + 1 < SP)
                    next = pair_load(at + (i + 1) * 2 * NVFP4_TILE_BYTES);
                else
                    stream.release(p);
                pair_product<MT>(&acc[(run * SP + i) * 2 * MT], now, x);
            }
        }
    }
}

template <int MT, int SP, int RUNS>
__global__ void __launch_bounds__(CONSUMERS) small_matmul_portable(const __grid_constant__ matmul_params p) {
    enum { TB = 2 * SP * RUNS };
    extern __shared__ __align__(128) uint8_t shared[];
    ring_stream<SP> stream = {shared_address(shared) + threadIdx.x / 32 * GROUP_BYTES, 0, walk_begin(p, MT * 8, TB)};
    weight_walk w = stream.ahead;
    sum_space sums = {};
    sums.warps = (float *)(shared + RING * 2 * SP * NVFP4_TILE_BYTES);
    sums.cta = (float2 *)(sums.warps + SUM_FLOATS);
    next_may_start();
    for (int i = 0; i < RING - 1; i++) stream.fill(p);
    wait_for_previous();
    for (; !walk_done(p, w); walk_block(p, w)) {
        float acc[TB * MT][4] = {};
        sub_block<MT, SP, RUNS>(p, w, stream, acc);
        sum_warps<MT, TB>(p, w, acc, sums);
        if (p.split > 1) sum_global<MT, TB>(p, w, sums);
    }
}

template <int MT, int SP, int RUNS>
__global__ void __launch_bounds__(CONSUMERS + 32, 1) small_matmul_bulk(const __grid_constant__ matmul_params p) {
#if HAVE_SM90
    enum { TB = 2 * SP * RUNS };
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ __align__(8) uint64_t barriers[2 * SLOTS_MAX + 2];
    uint32_t barrier = shared_address(barriers);
    slot_stream<SP> stream = {shared_address(shared), barrier, barrier + 8 * SLOTS_MAX, 0, 0};
    weight_walk w = walk_begin(p, MT * 8, TB);
    sum_space sums = {};
    sums.warps = (float *)(shared + p.slots * 2 * SP * NVFP4_TILE_BYTES);
    sums.cta = (float2 *)(sums.warps + SUM_FLOATS);
    sums.ready = barrier + 16 * SLOTS_MAX;
    sums.taken = sums.ready + 8;
    next_may_start();
    if (threadIdx.x == 0) {
        for (int i = 0; i < p.slots; i++) {
            mbarrier_init(stream.full + 8 * i, 1);
            mbarrier_init(stream.empty + 8 * i, WARPS);
        }
        mbarrier_init(sums.ready, p.split);
        mbarrier_init(sums.taken, p.split);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (p.split > 1) cluster_arrive();
    if (threadIdx.x >= CONSUMERS) {
        if (threadIdx.x == CONSUMERS) stream.produce(p, w);
        return;
    }
    if (p.split > 1) cluster_wait();
    wait_for_previous();
    for (; !walk_done(p, w); walk_block(p, w)) {
        float acc[TB * MT][4] = {};
        sub_block<MT, SP, RUNS>(p, w, stream, acc);
        sum_warps<MT, TB>(p, w, acc, sums);
        if (p.split > 1) sum_cluster<MT>(p, w, sums);
    }
#endif
}

/* ---- launchers */

static int64_t partial_bytes(const nvfp4_plan *plan) {
    return (int64_t)plan->parts * ARRIVALS_PER_PART * plan->split * (NVFP4_PART_TILES_MAX * 2 * 64) * sizeof(float2);
}

size_t cuda_small_matmul_workspace(const nvfp4_plan *plan) {
    if (plan->split == 1) return 0;
    return (size_t)partial_bytes(plan) + ARRIVALS_MAX * sizeof(unsigned);
}

static matmul_params params_of(const small_matmul *a) {
    const nvfp4_plan *plan = &a->w->plan;
    matmul_params p = {};
    p.w = (const uint8_t *)a->w->data;
    p.x = (const __nv_bfloat16 *)a->x;
    p.y = a->y;
    p.arrivals = (unsigned *)a->workspace;
    p.partial = (float *)((uint8_t *)a->workspace + ARRIVALS_MAX * sizeof(unsigned));
    p.scale = a->w->scale * 256.0f; /* see nvfp4_pack.c */
    p.rows = plan->rows, p.cols = plan->cols, p.m = a->m, p.chunks = plan->chunks, p.tiles = plan->tiles;
    p.part_tiles = plan->part_tiles, p.parts = plan->parts, p.split = plan->split, p.epilogue = a->epilogue;
    return p;
}

static int shared_bytes_max(void) {
    int device = 0, bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    return bytes;
}

template <int MT, int SP, int RUNS>
static err_code launch_matmul(const small_matmul *a, void *stream, error *err) {
    enum { TB = 2 * SP * RUNS, SLOT_BYTES = 2 * SP * NVFP4_TILE_BYTES };
    matmul_params p = params_of(a);
    int grid = min(p.parts, a->w->plan.multiprocessors / p.split) * p.split;
    size_t sums = SUM_FLOATS * sizeof(float) + (p.split > 1 ? (size_t)TB * MT * 64 * sizeof(float2) : 0);
    void *args[] = {&p};
    if (a->route == ROUTE_PORTABLE)
        return cuda_launch((const void *)small_matmul_portable<MT, SP, RUNS>, grid, CONSUMERS, 1,
                           sums + RING * SLOT_BYTES, stream, args, err);
    p.slots = min((shared_bytes_max() - 1024 - (int)sums) / SLOT_BYTES, (int)SLOTS_MAX);
    return cuda_launch((const void *)small_matmul_bulk<MT, SP, RUNS>, grid, CONSUMERS + 32, p.split,
                       sums + (size_t)p.slots * SLOT_BYTES, stream, args, err);
}

/* Slots of three pairs fit most parts (17 = 6 + 6 + 5 tiles); those of 7..8 and 9..10 tiles fill one slot a chunk. */
err_code cuda_small_matmul(const small_matmul *a, void *stream, error *err) {
    HEARTH_ASSERT(a->m >= 1 && a->m <= SMALL_M_MAX);
    if (a->route == ROUTE_BULK && device_major() < 9)
        ERR_FAIL(err, ERR_UNSUPPORTED, "bulk copies need compute capability 9.0, the device has %d.x", device_major());
    int tiles = a->w->plan.part_tiles, pairs = tiles == 7 || tiles == 8 ? 4 : tiles == 9 || tiles == 10 ? 5 : 3;
    if (a->m <= 8)
        return pairs == 4   ? launch_matmul<1, 4, 1>(a, stream, err)
               : pairs == 5 ? launch_matmul<1, 5, 1>(a, stream, err)
                            : launch_matmul<1, 3, 3>(a, stream, err);
    if (a->m <= 16)
        return pairs == 4   ? launch_matmul<2, 4, 1>(a, stream, err)
               : pairs == 5 ? launch_matmul<2, 5, 1>(a, stream, err)
               : tiles <= 6 ? launch_matmul<2, 3, 1>(a, stream, err)
                            : launch_matmul<2, 3, 2>(a, stream, err);
    return launch_matmul<4, 2, 1>(a, stream, err);
}
