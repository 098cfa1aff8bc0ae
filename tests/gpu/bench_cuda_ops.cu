/* Bench of the CUDA operators: bytes that must move, time as the median of graph replays over buffers that rotate beyond
 * the L2 cache, and the share of the read bandwidth measured in the same run. */
#include "bench_attention.cuh"
#include "bench_gdn.cuh"
#include "bench_small_m.cuh"

/* ---- read bandwidth */

static __global__ void read_all(const uint4 *from, int64_t count, uint32_t *sink) {
    uint32_t sum = 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 7 * step < count; i += 8 * step) {
        uint4 v[8];
        for (int j = 0; j < 8; j++) v[j] = __ldcs(from + i + j * step);
        for (int j = 0; j < 8; j++) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    for (; i < count; i += step) sum ^= from[i].x;
    if (sum == 0x12345678) *sink = sum;
}

static double read_bandwidth(const void *memory, int64_t bytes, cudaStream_t stream) {
    uint32_t *sink = (uint32_t *)device_buffer(4, 0);
    double best = 0;
    for (int per = 2; per <= 8; per *= 2) {
        graph_begin(stream);
        read_all<<<multiprocessor_count() * per, 256, 0, stream>>>((const uint4 *)memory, bytes / 16, sink);
        cudaGraphExec_t graph = graph_end(stream);
        timing t = time_graph(graph, stream, 15);
        double rate = (double)bytes / (t.median_ms * 1e-3);
        printf("read %d CTAs a multiprocessor: %.3f ms +- %.3f, %.3f TB/s\n", per, t.median_ms, t.spread_ms,
               rate / 1e12);
        if (rate > best) best = rate;
    }
    return best;
}

/* Norm of a step's 129 rows of 5120 and one argmax over the vocabulary: launches, not bytes, are the cost. */
static void bench_rows(cudaStream_t stream) {
    static const int rows[] = {1, 8, 16};
    float *x = (float *)device_buffer((size_t)16 * 248320 * 4, 0), *scale = (float *)device_buffer(5120 * 4, 0);
    void *out = device_buffer(16 * 5120 * 2, 0), *workspace = device_buffer(16 * 16, 0);
    int32_t *ids = (int32_t *)device_buffer(16 * 4, 0);
    for (int r = 0; r < 3; r++) {
        graph_begin(stream);
        for (int i = 0; i < 129; i++) OP_DO(cuda_rms_norm(out, x, scale, rows[r], 5120, 1e-6f, stream, &op_error));
        timing norm = time_graph(graph_end(stream), stream, 31);
        graph_begin(stream);
        for (int i = 0; i < 20; i++) OP_DO(cuda_argmax(ids, x, rows[r], 248077, 248320, workspace, stream, &op_error));
        timing most = time_graph(graph_end(stream), stream, 31);
        printf("rows %2d: rms_norm %.2f us each, argmax %.2f us each\n", rows[r], norm.median_ms / 129 * 1e3,
               most.median_ms / 20 * 1e3);
    }
}

int main(void) {
    need_gpu(1);
    cudaStream_t stream;
    CUDA_DO(cudaStreamCreate(&stream));
    step_weights weights = make_step_weights();
    double bandwidth = read_bandwidth(weights.memory, weights.bytes, stream);
    bench_small_matmul(&weights, bandwidth, stream);
    bench_gdn(bandwidth, stream);
    bench_attention(bandwidth, stream);
    bench_rows(stream);
    printf("0 failed\n");
    return 0;
}
