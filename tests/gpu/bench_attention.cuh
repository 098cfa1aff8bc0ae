/* Bench of attention: the 16 layers of one 27B step, each with a pool of its own, at three context lengths. Bytes: the
 * keys and values of the context. */
#ifndef HEARTH_TESTS_GPU_BENCH_ATTENTION_CUH
#define HEARTH_TESTS_GPU_BENCH_ATTENTION_CUH

#include "gpu_support.cuh"

enum { ATT_LAYERS = 16, ATT_HEADS = 24, ATT_KV = 4, ATT_ROWS = 16, ATT_CONTEXT_MAX = 32768 };

static __global__ void fill_kv(uint32_t *to, int64_t words, uint32_t mask) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < words; i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15ull;
        to[i] = (uint32_t)((h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ull >> 32) & mask;
    }
}

static void bench_attention_type(cuda_kv_type type, double bandwidth, cudaStream_t stream) {
    static const int contexts[] = {1024, 16384, 32768}, rows[] = {1, 4, 8, 16};
    static const int32_t tree[ATT_ROWS] = {-1, 0, 1, 1, 0, 4, 5, 2, 3, 3, 0, 10, 6, 12, 13, 9};
    size_t element = type == CUDA_KV_E4M3 ? 1 : 2;
    int page_count = ATT_CONTEXT_MAX / CUDA_PAGE + 1;
    size_t layer_bytes = (size_t)page_count * ATT_KV * CUDA_PAGE * CUDA_HEAD_DIM * element;
    size_t out = (size_t)ATT_ROWS * ATT_HEADS * CUDA_HEAD_DIM;
    uint8_t *k = (uint8_t *)device_buffer(layer_bytes * ATT_LAYERS, 0);
    uint8_t *v = (uint8_t *)device_buffer(layer_bytes * ATT_LAYERS, 0);
    uint32_t mask = type == CUDA_KV_E4M3 ? 0xbfbfbfbfu : 0xbfffbfffu; /* magnitudes below two */
    fill_kv<<<1024, 256>>>((uint32_t *)k, (int64_t)(layer_bytes * ATT_LAYERS / 4), mask);
    fill_kv<<<1024, 256>>>((uint32_t *)v, (int64_t)(layer_bytes * ATT_LAYERS / 4), mask);
    int32_t *pages = (int32_t *)host_buffer((size_t)page_count * 4);
    for (int i = 0; i < page_count; i++) pages[i] = (int32_t)((int64_t)i * 101 % page_count);
    cuda_attention_step s = {};
    s.heads = ATT_HEADS, s.kv_heads = ATT_KV, s.type = type, s.k_scale = s.v_scale = 1;
    float *q = random_floats(out, 2);
    s.q = (float *)device_copy(q, out * 4), s.gate = (float *)device_copy(q, out * 4);
    s.out = device_buffer(out * 2, 0), s.segment_count = 1;
    s.workspace =
        device_buffer(cuda_attention_workspace(ATT_ROWS, ATT_HEADS, ATT_CONTEXT_MAX / CUDA_ATTENTION_RANGE + 1), 0);
    cuda_attention_segment seg = {0, 1, 0, (int32_t *)device_copy(pages, (size_t)page_count * 4),
                                  (int32_t *)device_copy(tree, sizeof tree)};
    for (int c = 0; c < 3; c++)
        for (int r = 0; r < 4; r++) {
            seg.count = rows[r];
            seg.length = contexts[c] - 1;
            s.rows = rows[r];
            s.range_count = (contexts[c] + 16 + CUDA_ATTENTION_RANGE - 1) / CUDA_ATTENTION_RANGE;
            s.segments = (cuda_attention_segment *)device_copy(&seg, sizeof seg);
            graph_begin(stream);
            for (int l = 0; l < ATT_LAYERS; l++) {
                s.k = k + (size_t)l * layer_bytes, s.v = v + (size_t)l * layer_bytes;
                OP_DO(cuda_attention(&s, stream, &op_error));
            }
            timing t = time_graph(graph_end(stream), stream, 31);
            double bytes = 2.0 * ATT_LAYERS * contexts[c] * ATT_KV * CUDA_HEAD_DIM * (double)element;
            printf(
                "attention %s context %5d rows %2d: %.3f ms +- %.3f for %d layers, %.2f us each, floor %.3f ms, %.0f "
                "%%\n",
                element == 1 ? "E4M3" : "bf16", contexts[c], rows[r], t.median_ms, t.spread_ms, ATT_LAYERS,
                t.median_ms / ATT_LAYERS * 1e3, bytes / bandwidth * 1e3, 100 * bytes / bandwidth * 1e3 / t.median_ms);
        }
    CUDA_DO(cudaFree(k));
    CUDA_DO(cudaFree(v));
}

static void bench_attention(double bandwidth, cudaStream_t stream) {
    bench_attention_type(CUDA_KV_E4M3, bandwidth, stream);
    bench_attention_type(CUDA_KV_BF16, bandwidth, stream);
}

#endif
