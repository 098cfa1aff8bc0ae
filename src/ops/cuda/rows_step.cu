/* Small operators on rows: RMS norm, which rounds to bf16 for the product that follows, and argmax over the vocabulary.
 *
 * Norm: a CTA a row; each thread sums every 512th square, warps and then the CTA are summed in a fixed order. Argmax: 32
 * CTAs a row; value and index travel as one 64-bit key whose order is that of (value, lower index), so the largest key
 * does not depend on who comes first; the CTA that comes last writes the id and clears the row's workspace. */
#include "ops/cuda/cuda_common.cuh"

enum { ROW_THREADS = 512, ROW_WARPS = ROW_THREADS / 32, ARGMAX_CTAS = 32 };

static __global__ void __launch_bounds__(ROW_THREADS)
    rms_norm_rows(__nv_bfloat16 *out, const float *x, const float *scale, int width, float eps) {
    __shared__ float sums[ROW_WARPS];
    next_may_start();
    wait_for_previous();
    const float *row = x + (int64_t)blockIdx.x * width;
    float sum = 0;
#pragma unroll 10
    for (int i = threadIdx.x; i < width; i += ROW_THREADS) sum = fmaf(row[i], row[i], sum);
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < ROW_WARPS; i++) sum += sums[i];
    float root = sqrtf(sum / (float)width + eps);
#pragma unroll 10
    for (int i = threadIdx.x; i < width; i += ROW_THREADS)
        out[(int64_t)blockIdx.x * width + i] = __float2bfloat16(row[i] / root * scale[i]);
}

typedef unsigned long long argmax_key;

/* Larger for a larger value, then for a lower index; never 0. */
static __device__ __forceinline__ argmax_key key_of(float value, int index) {
    uint32_t bits = __float_as_uint(value + 0.0f); /* -0 counts as 0 */
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (argmax_key)bits << 32 | (uint32_t)~index;
}

static __device__ __forceinline__ argmax_key larger(argmax_key a, argmax_key b) { return a > b ? a : b; }

/* best: per row the largest key so far and the CTAs that have come. */
static __global__ void __launch_bounds__(ROW_THREADS)
    argmax_rows(int32_t *ids, const float *x, int count, int stride, argmax_key *best) {
    __shared__ argmax_key keys[ROW_WARPS];
    next_may_start();
    wait_for_previous();
    int row = blockIdx.x / ARGMAX_CTAS, part = blockIdx.x % ARGMAX_CTAS;
    argmax_key key = 0;
#pragma unroll 8
    for (int i = part * ROW_THREADS + threadIdx.x; i < count; i += ARGMAX_CTAS * ROW_THREADS)
        key = larger(key, key_of(x[(int64_t)row * stride + i], i));
    for (int mask = 16; mask > 0; mask /= 2) key = larger(key, __shfl_xor_sync(0xffffffffu, key, mask));
    if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = key;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < ROW_WARPS; i++) key = larger(key, keys[i]);
    atomicMax(&best[2 * row], key);
    __threadfence();
    if (atomicAdd(&best[2 * row + 1], 1ull) != ARGMAX_CTAS - 1) return;
    __threadfence();
    ids[row] = (int32_t) ~(uint32_t)atomicExch(&best[2 * row], 0ull);
    best[2 * row + 1] = 0;
}

/* ---- launchers */

err_code cuda_rms_norm(void *out, const float *x, const float *scale, int rows, int width, float eps, void *stream,
                       error *err) {
    void *args[] = {&out, &x, &scale, &width, &eps};
    return cuda_launch((const void *)rms_norm_rows, rows, ROW_THREADS, 1, 0, stream, args, err);
}

err_code cuda_argmax(int32_t *ids, const float *x, int rows, int count, int stride, void *workspace, void *stream,
                     error *err) {
    HEARTH_ASSERT(count > 0 && count <= stride);
    void *args[] = {&ids, &x, &count, &stride, &workspace};
    return cuda_launch((const void *)argmax_rows, rows * ARGMAX_CTAS, ROW_THREADS, 1, 0, stream, args, err);
}
