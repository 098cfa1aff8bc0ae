/* Gated DeltaNet for decode and verification: the recurrence over a chain or a tree, and the replay of an accepted path.
 *
 * A CTA owns 32 columns of one value head's state S [128 keys, 128 values] for all rows of a segment: columns never mix
 * in S *= decay; u = beta (v - S^T k); S += k u^T; o = S^T q. A warp has eight columns; a lane eight keys (kl + 16 i) of
 * four columns, 32 registers. S^T k and S^T q of the old state are summed together (o = decay S^T q + u (k q) needs no
 * second pass), over 16 lanes by halving: every step both adds and halves the values a lane carries.
 *
 * Rows run in order; a node whose parent is not the node before it reloads its parent's state, which was saved when that
 * node was computed: the first four branch points in shared memory, more of them in global memory. The convolution, norms
 * and gates of up to 16 rows are prepared in shared memory first; 12 CTAs repeat the work of a key head, which costs less
 * than a launch. The gated norm spans a head's four CTAs: outputs go to global memory and the CTA that comes last does the
 * norm. In a chain the conv state of the key head is advanced by the last of the CTAs that read it. */
#include "ops/cuda/cuda_common.cuh"

enum {
    DIM = CUDA_GDN_DIM,
    TAPS = CUDA_GDN_TAPS,
    SLICES = 4, /* CTAs of a head */
    COLS = DIM / SLICES,
    GDN_THREADS = 128,
    BATCH = 16, /* rows prepared at once */
    KEYS_PER_LANE = 8,
    SHARED_SAVES = 4, /* branch points kept in shared memory; the rest go to global memory */
};

/* ---- the token update */

/* A lane's part of the state: keys kl + 16 i, columns col .. col + 3. */
struct state_slice {
    float s[KEYS_PER_LANE][4];
};

static __device__ __forceinline__ int lane_key() { return threadIdx.x % 32 / 2; }
static __device__ __forceinline__ int lane_col() {
    return threadIdx.x / 32 * 8 + threadIdx.x % 2 * 4;
} /* in the slice */

static __device__ __forceinline__ void state_load(state_slice &t, const float *head, int slice) {
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++) {
        float4 v = *(const float4 *)(head + (lane_key() + 16 * i) * DIM + slice * COLS + lane_col());
        t.s[i][0] = v.x, t.s[i][1] = v.y, t.s[i][2] = v.z, t.s[i][3] = v.w;
    }
}

static __device__ __forceinline__ void state_store(const state_slice &t, float *head, int slice) {
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++)
        *(float4 *)(head + (lane_key() + 16 * i) * DIM + slice * COLS + lane_col()) =
            make_float4(t.s[i][0], t.s[i][1], t.s[i][2], t.s[i][3]);
}

/* A saved state: the first few in shared memory, where only the lane that wrote a value reads it. */
static __device__ __forceinline__ void branch_save(const state_slice &t, float4 *shared, float *global_head, int save,
                                                   int slice) {
    if (save >= SHARED_SAVES) {
        state_store(t, global_head, slice);
        return;
    }
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++)
        shared[(save * KEYS_PER_LANE + i) * GDN_THREADS + threadIdx.x] =
            make_float4(t.s[i][0], t.s[i][1], t.s[i][2], t.s[i][3]);
}

static __device__ __forceinline__ void branch_load(state_slice &t, const float4 *shared, const float *global_head,
                                                   int save, int slice) {
    if (save >= SHARED_SAVES) {
        state_load(t, global_head, slice);
        return;
    }
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++) {
        float4 v = shared[(save * KEYS_PER_LANE + i) * GDN_THREADS + threadIdx.x];
        t.s[i][0] = v.x, t.s[i][1] = v.y, t.s[i][2] = v.z, t.s[i][3] = v.w;
    }
}

/* Keeps the half of v[0 .. 2n) that bit `mask` of the lane chooses, summed with the other lane's. */
template <int N>
static __device__ __forceinline__ void halve(float *v, int mask) {
    bool upper = (threadIdx.x & mask) != 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float keep = upper ? v[N + i] : v[i], give = upper ? v[i] : v[N + i];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, mask);
    }
}

/* One token. q, k [128] of the key head; v of the slice's columns; returns the lane's output: column
 * lane_col() + (lane / 8 & 1) * 2 + (lane / 4 & 1), valid in lanes with bit 4 set. */
static __device__ __forceinline__ float token(state_slice &t, const float *q, const float *k, const float *v,
                                              float decay, float beta, float kq) {
    float sum[8] = {}, key[KEYS_PER_LANE]; /* S^T k, then S^T q */
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++) {
        float query = q[lane_key() + 16 * i];
        key[i] = k[lane_key() + 16 * i];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            sum[c] = fmaf(t.s[i][c], key[i], sum[c]);
            sum[4 + c] = fmaf(t.s[i][c], query, sum[4 + c]);
        }
    }
    halve<4>(sum, 16);
    halve<2>(sum, 8);
    halve<1>(sum, 4);
    sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], 2);
    float u[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        float sk = __shfl_sync(0xffffffffu, sum[0], c / 2 * 8 + c % 2 * 4 + threadIdx.x % 2);
        u[c] = beta * fmaf(-decay, sk, v[lane_col() + c]);
    }
#pragma unroll
    for (int i = 0; i < KEYS_PER_LANE; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) t.s[i][c] = fmaf(key[i], u[c], decay * t.s[i][c]);
    float low = threadIdx.x & 4 ? u[1] : u[0], high = threadIdx.x & 4 ? u[3] : u[2];
    return fmaf(threadIdx.x & 8 ? high : low, kq, decay * sum[0]);
}

/* ---- preparing rows */

struct gdn_params {
    cuda_gdn_step step;
    cuda_gdn_stash stash;
    float *outputs;     /* [rows, value_heads, 128] before the norm */
    unsigned *arrivals; /* [segments, value_heads + key_heads] */
    int channels, group;
};

struct row_batch {
    float q[BATCH][DIM], k[BATCH][DIM], v[BATCH][COLS];
    float decay[BATCH], beta[BATCH], kq[BATCH];
    int window[BATCH][TAPS]; /* oldest first: row of the step, or -1 - row of the committed window */
};

/* The raw input `back` steps before node i (ops.h, conv): a row of the step, or -1 - row of the committed window. */
static __device__ __forceinline__ int window_row(const cuda_gdn_segment &seg, const int *parents, int i, int back) {
    for (; back > 0 && i >= 0; back--) i = parents[i];
    return i >= 0 ? seg.row + i : -1 - (TAPS - 2 - back);
}

static __device__ __forceinline__ float raw_at(const gdn_params &p, const cuda_gdn_segment &seg, int row, int channel) {
    return row >= 0 ? p.step.raw[(int64_t)row * p.step.raw_stride + channel]
                    : seg.conv[(int64_t)(-1 - row) * p.channels + channel];
}

/* The four inputs of row r, zeros past the batch's end. */
static __device__ __forceinline__ float4 window_at(const gdn_params &p, const cuda_gdn_segment &seg,
                                                   const row_batch &rows, int r, int count, int channel) {
    if (r >= count) return make_float4(0, 0, 0, 0);
    const int *w = rows.window[r];
    return make_float4(raw_at(p, seg, w[0], channel), raw_at(p, seg, w[1], channel), raw_at(p, seg, w[2], channel),
                       raw_at(p, seg, w[3], channel));
}

static __device__ __forceinline__ float conv_of(const float4 &taps, const float4 &x) {
    return silu_of(fmaf(taps.w, x.w, fmaf(taps.z, x.z, fmaf(taps.y, x.y, fmaf(taps.x, x.x, 0)))));
}

/* The convolution of a batch: thread c has channel c of q and k for every row, and column c % 32 of v for every fourth.
 * The loads of four rows are under way at once. */
static __device__ __forceinline__ void conv_batch(const gdn_params &p, const cuda_gdn_segment &seg, row_batch &rows,
                                                  int first, int count, int q_channel, int k_channel, int v_channel,
                                                  bool keeps, bool stash) {
    enum { AT_ONCE = GDN_THREADS / COLS };
    const float4 *taps = (const float4 *)p.step.taps;
    float4 q_taps = taps[q_channel], k_taps = taps[k_channel], v_taps = taps[v_channel];
    for (int r = 0; r < count; r += AT_ONCE) {
        float4 q[AT_ONCE], k[AT_ONCE];
        int v_row = r + threadIdx.x / COLS;
        float4 v = window_at(p, seg, rows, v_row, count, v_channel);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            q[i] = window_at(p, seg, rows, r + i, count, q_channel);
            k[i] = window_at(p, seg, rows, r + i, count, k_channel);
        }
        if (v_row < count) rows.v[v_row][threadIdx.x % COLS] = conv_of(v_taps, v);
        if (v_row < count && stash) p.stash.raw[(int64_t)(seg.row + first + v_row) * p.channels + v_channel] = v.w;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (r + i >= count) continue;
            rows.q[r + i][threadIdx.x] = conv_of(q_taps, q[i]);
            rows.k[r + i][threadIdx.x] = conv_of(k_taps, k[i]);
            float *kept = p.stash.raw + (int64_t)(seg.row + first + r + i) * p.channels;
            if (keeps) kept[q_channel] = q[i].w, kept[k_channel] = k[i].w;
        }
    }
}

static __device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) x += __shfl_xor_sync(0xffffffffu, x, mask);
    return x;
}

/* q and k of one row, by one warp: normalised in place; and their product. */
static __device__ __forceinline__ void normalise_row(row_batch &rows, int r) {
    int lane = threadIdx.x % 32;
    float qq = 0, kk = 0, kq = 0, q[4], k[4];
    for (int i = 0; i < 4; i++) {
        q[i] = rows.q[r][lane + 32 * i];
        k[i] = rows.k[r][lane + 32 * i];
        qq = fmaf(q[i], q[i], qq);
        kk = fmaf(k[i], k[i], kk);
    }
    qq = sqrtf(warp_sum(qq) + 1e-6f);
    kk = sqrtf(warp_sum(kk) + 1e-6f);
    for (int i = 0; i < 4; i++) {
        q[i] = q[i] / qq / sqrtf((float)DIM);
        k[i] = k[i] / kk;
        rows.q[r][lane + 32 * i] = q[i];
        rows.k[r][lane + 32 * i] = k[i];
        kq = fmaf(q[i], k[i], kq);
    }
    kq = warp_sum(kq);
    if (lane == 0) rows.kq[r] = kq;
}

/* Rows first .. first + count - 1 of the segment. `keeps`: this CTA writes what its key head leaves in the stash. */
static __device__ __forceinline__ void prepare(const gdn_params &p, const cuda_gdn_segment &seg, const int *parents,
                                               row_batch &rows, int first, int count, int head, int slice, bool stash) {
    int key_head = head / p.group, key_channels = p.step.key_heads * DIM, column = slice * COLS + threadIdx.x % COLS;
    bool keeps = stash && slice == 0 && head % p.group == 0;
    if ((int)threadIdx.x < count * TAPS)
        rows.window[threadIdx.x / TAPS][threadIdx.x % TAPS] =
            window_row(seg, parents, first + threadIdx.x / TAPS, TAPS - 1 - threadIdx.x % TAPS);
    __syncthreads();
    int channel = key_head * DIM + threadIdx.x, value_channel = 2 * key_channels + head * DIM + column;
    conv_batch(p, seg, rows, first, count, channel, key_channels + channel, value_channel, keeps, stash);
    for (int r = threadIdx.x / COLS; stash && r < count; r += GDN_THREADS / COLS)
        p.stash.v[((int64_t)(seg.row + first + r) * p.step.value_heads + head) * DIM + column] =
            rows.v[r][threadIdx.x % COLS];
    if (threadIdx.x < count) {
        int64_t at = (int64_t)(seg.row + first + threadIdx.x) * p.step.value_heads + head;
        float x = p.step.a[at] + p.step.dt_bias[head], softplus = x > 20 ? x : log1pf(expf(x));
        float decay = expf(p.step.neg_exp_a[head] * softplus), beta = sigmoid_of(p.step.b[at]);
        rows.decay[threadIdx.x] = decay;
        rows.beta[threadIdx.x] = beta;
        if (stash && slice == 0) p.stash.gate[at] = decay, p.stash.beta[at] = beta;
    }
    __syncthreads();
    for (int r = threadIdx.x / 32; r < count; r += GDN_THREADS / 32) {
        normalise_row(rows, r);
        for (int i = threadIdx.x % 32; keeps && i < DIM; i += 32)
            p.stash.k[((int64_t)(seg.row + first + r) * p.step.key_heads + key_head) * DIM + i] = rows.k[r][i];
    }
    __syncthreads();
}

/* ---- after the rows */

/* The window after node `last` for `count` channels from `first`. */
static __device__ __forceinline__ void advance_conv(const gdn_params &p, const cuda_gdn_segment &seg,
                                                    const int *parents, int first, int count) {
    int channel = first + threadIdx.x;
    if ((int)threadIdx.x >= count) return;
    float window[TAPS - 1];
    for (int t = 0; t < TAPS - 1; t++)
        window[t] = raw_at(p, seg, window_row(seg, parents, seg.count - 1, TAPS - 2 - t), channel);
    for (int t = 0; t < TAPS - 1; t++) seg.conv[(int64_t)t * p.channels + channel] = window[t];
}

/* Gated norm of one head, a warp a row. */
static __device__ __forceinline__ void gated_norm(const gdn_params &p, const cuda_gdn_segment &seg, int head) {
    int lane = threadIdx.x % 32;
    for (int r = threadIdx.x / 32; r < seg.count; r += GDN_THREADS / 32) {
        int64_t row = seg.row + r, at = (row * p.step.value_heads + head) * DIM;
        float o[4], squares = 0;
        for (int i = 0; i < 4; i++) {
            o[i] = __ldcg(&p.outputs[at + lane + 32 * i]);
            squares = fmaf(o[i], o[i], squares);
        }
        float root = sqrtf(warp_sum(squares) / DIM + p.step.eps);
        for (int i = 0; i < 4; i++) {
            float z = p.step.z[row * p.step.z_stride + head * DIM + lane + 32 * i];
            float normed = o[i] / root * p.step.norm_scale[lane + 32 * i];
            ((__nv_bfloat16 *)p.step.out)[at + lane + 32 * i] = __float2bfloat16(normed * silu_of(z));
        }
    }
}

/* True in the CTA that is the last of `expected` to come here; all of them have then published their writes. */
static __device__ __forceinline__ bool comes_last(unsigned *arrivals, int expected) {
    __shared__ unsigned last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrivals, 1) == (unsigned)expected - 1;
        if (last) *arrivals = 0;
    }
    __syncthreads();
    bool is_last = last;
    __syncthreads();
    if (is_last) __threadfence();
    return is_last;
}

/* ---- kernels */

static __global__ void __launch_bounds__(GDN_THREADS) gdn_rows(const __grid_constant__ gdn_params p) {
    extern __shared__ float4 branches[];
    __shared__ row_batch rows;
    __shared__ int parents[CUDA_GDN_ROWS_MAX], saves[CUDA_GDN_ROWS_MAX];
    int slice = blockIdx.x % SLICES, head = blockIdx.x / SLICES % p.step.value_heads;
    int index = blockIdx.x / (SLICES * p.step.value_heads), lane = threadIdx.x % 32;
    next_may_start();
    wait_for_previous();
    const cuda_gdn_segment seg = p.step.segments[index];
    int64_t head_at = (int64_t)head * DIM * DIM, head_size = (int64_t)p.step.value_heads * DIM * DIM;
    bool tree = seg.parents != NULL, stash = tree && p.stash.k != NULL;
    state_slice state;
    state_load(state, seg.recurrent + head_at, slice);
    for (int i = threadIdx.x; i < seg.count; i += GDN_THREADS) {
        parents[i] = tree ? seg.parents[i] : i - 1;
        saves[i] = tree ? seg.saves[i] : -1;
    }
    __syncthreads();
    for (int first = 0; first < seg.count; first += BATCH) {
        int count = min(BATCH, seg.count - first);
        prepare(p, seg, parents, rows, first, count, head, slice, stash);
        for (int r = 0; r < count; r++) {
            int i = first + r, parent = parents[i];
            if (parent != i - 1) {
                int save = parent < 0 ? 0 : saves[parent];
                if (parent < 0)
                    state_load(state, seg.recurrent + head_at, slice);
                else
                    branch_load(state, branches, seg.branches + save * head_size + head_at, save, slice);
            }
            float o = token(state, rows.q[r], rows.k[r], rows.v[r], rows.decay[r], rows.beta[r], rows.kq[r]);
            if ((lane & 18) == 16)
                p.outputs[((int64_t)(seg.row + i) * p.step.value_heads + head) * DIM + slice * COLS + lane_col() +
                          (lane / 8 & 1) * 2 + (lane / 4 & 1)] = o;
            if (saves[i] >= 0)
                branch_save(state, branches, seg.branches + saves[i] * head_size + head_at, saves[i], slice);
        }
        __syncthreads();
    }
    unsigned *arrivals = p.arrivals + index * (p.step.value_heads + p.step.key_heads);
    if (!tree) {
        int key_head = head / p.group, key_channels = p.step.key_heads * DIM;
        state_store(state, seg.recurrent + head_at, slice);
        advance_conv(p, seg, parents, 2 * key_channels + head * DIM + slice * COLS, COLS);
        if (comes_last(arrivals + p.step.value_heads + key_head, p.group * SLICES)) {
            advance_conv(p, seg, parents, key_head * DIM, DIM);
            advance_conv(p, seg, parents, key_channels + key_head * DIM, DIM);
        }
    }
    if (comes_last(arrivals + head, SLICES)) gated_norm(p, seg, head);
}

/* A path's rows of the stash into one layer's window. */
static __device__ __forceinline__ void commit_conv(float *conv, const float *raw, int channels, const int32_t *path,
                                                   int count, int channel) {
    float window[TAPS - 1];
    for (int t = 0; t < TAPS - 1; t++) {
        int from = count - (TAPS - 1) + t;
        window[t] = from >= 0 ? raw[(int64_t)path[from] * channels + channel]
                              : conv[(int64_t)(from + TAPS - 1) * channels + channel];
    }
    for (int t = 0; t < TAPS - 1; t++) conv[(int64_t)t * channels + channel] = window[t];
}

static __global__ void __launch_bounds__(GDN_THREADS) gdn_replay(const __grid_constant__ cuda_gdn_commit_args p) {
    __shared__ float k[DIM], v[COLS];
    int slice = blockIdx.x % SLICES, head = blockIdx.x / SLICES % p.value_heads;
    int64_t layer = blockIdx.x / (SLICES * p.value_heads);
    int group = p.value_heads / p.key_heads, key_head = head / group,
        channels = (2 * p.key_heads + p.value_heads) * DIM;
    next_may_start();
    wait_for_previous();
    int count = *p.path_count;
    if (count == 0) return;
    float *state_at = p.recurrent + layer * p.recurrent_stride + (int64_t)head * DIM * DIM;
    state_slice state;
    state_load(state, state_at, slice);
    for (int n = 0; n < count; n++) {
        int64_t row = p.path[n], at = row * p.value_heads + head;
        k[threadIdx.x] = p.stash.k[layer * p.k_stride + (row * p.key_heads + key_head) * DIM + threadIdx.x];
        if (threadIdx.x < COLS) v[threadIdx.x] = p.stash.v[layer * p.v_stride + at * DIM + slice * COLS + threadIdx.x];
        __syncthreads();
        token(state, k, k, v, p.stash.gate[layer * p.gate_stride + at], p.stash.beta[layer * p.gate_stride + at], 0);
        __syncthreads();
    }
    state_store(state, state_at, slice);
    float *conv = p.conv + layer * p.conv_stride;
    const float *raw = p.stash.raw + layer * p.raw_stride;
    if (threadIdx.x < COLS)
        commit_conv(conv, raw, channels, p.path, count, (2 * p.key_heads + head) * DIM + slice * COLS + threadIdx.x);
    if (slice == 0 && head % group == 0) {
        commit_conv(conv, raw, channels, p.path, count, key_head * DIM + threadIdx.x);
        commit_conv(conv, raw, channels, p.path, count, (p.key_heads + key_head) * DIM + threadIdx.x);
    }
}

/* ---- launchers */

/* The same for every number of segments: it must stay zero between launches. */
static size_t arrivals_bytes(int heads) { return (size_t)heads * CUDA_GDN_SEGMENTS_MAX * sizeof(unsigned); }

size_t cuda_gdn_workspace(int key_heads, int value_heads, int rows) {
    return arrivals_bytes(key_heads + value_heads) + (size_t)rows * (size_t)value_heads * DIM * sizeof(float);
}

err_code cuda_gdn(const cuda_gdn_step *step, void *stream, error *err) {
    HEARTH_ASSERT(step->value_heads % step->key_heads == 0 && step->segment_count > 0 &&
                  step->segment_count <= CUDA_GDN_SEGMENTS_MAX);
    gdn_params p = {};
    p.step = *step;
    if (step->stash != NULL) p.stash = *step->stash;
    p.arrivals = (unsigned *)step->workspace;
    p.outputs = (float *)((uint8_t *)step->workspace + arrivals_bytes(step->key_heads + step->value_heads));
    p.channels = (2 * step->key_heads + step->value_heads) * DIM;
    p.group = step->value_heads / step->key_heads;
    void *args[] = {&p};
    return cuda_launch((const void *)gdn_rows, step->value_heads * SLICES * step->segment_count, GDN_THREADS, 1,
                       SHARED_SAVES * COLS * DIM * sizeof(float), stream, args, err);
}

err_code cuda_gdn_commit(const cuda_gdn_commit_args *a, void *stream, error *err) {
    cuda_gdn_commit_args p = *a;
    void *args[] = {&p};
    return cuda_launch((const void *)gdn_replay, a->value_heads * SLICES * a->layers, GDN_THREADS, 1, 0, stream, args,
                       err);
}
