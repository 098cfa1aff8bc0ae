/* Bench of the small-M product on the 257 matrices of one 27B step, as one dependent chain and shape by shape. */
#ifndef HEARTH_TESTS_GPU_BENCH_SMALL_M_CUH
#define HEARTH_TESTS_GPU_BENCH_SMALL_M_CUH

#include "gpu_support.cuh"

enum { STEP_MATRICES = 257, STEP_SHAPES = 6 };
static const int step_shapes[STEP_SHAPES][2] = {{16384, 5120}, {14336, 5120}, {5120, 6144},
                                                {34816, 5120}, {5120, 17408}, {248320, 5120}};

typedef struct step_weights {
    uint8_t *memory;
    int64_t bytes;
    nvfp4_matrix matrix[STEP_MATRICES];
    int shape[STEP_MATRICES];
    void *x[2], *workspace;
} step_weights;

/* Random codes; scales 1 to 3.75. */
static __global__ void fill_weights(uint32_t *to, int64_t words) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < words; i += (int64_t)gridDim.x * blockDim.x) {
        uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15ull;
        h = (h ^ (h >> 32)) * 0xbf58476d1ce4e5b9ull;
        uint32_t r = (uint32_t)(h >> 32);
        to[i] = i % 144 < 128 ? r : 0x50505050u + (r & 0x0f0f0f0fu);
    }
}

static __global__ void fill_bf16(uint16_t *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t r = (uint32_t)i * 2654435761u;
    r = (r ^ r >> 15) * 2246822519u;
    if (i < count) to[i] = (uint16_t)(0x3f00u | (r >> 16 & 0x80ff)); /* +- 0.5 .. 2 */
}

static step_weights make_step_weights(void) {
    step_weights s = {};
    int count = 0, sms = multiprocessor_count();
    for (int layer = 0; layer < 64; layer++)
        for (int i = 0; i < 4; i++) s.shape[count++] = i == 0 ? layer % 4 == 3 : i + 1;
    s.shape[count++] = 5;
    size_t workspace = 0;
    for (int i = 0; i < STEP_MATRICES; i++) {
        nvfp4_matrix *w = &s.matrix[i];
        w->plan = nvfp4_plan_make(step_shapes[s.shape[i]][0], step_shapes[s.shape[i]][1], sms);
        w->scale = 0.25f / sqrtf((float)w->plan.cols) / 4;
        if (cuda_small_matmul_workspace(&w->plan) > workspace) workspace = cuda_small_matmul_workspace(&w->plan);
        s.bytes += w->plan.bytes;
    }
    s.memory = (uint8_t *)device_buffer((size_t)s.bytes, 0);
    fill_weights<<<4096, 256>>>((uint32_t *)s.memory, s.bytes / 4);
    int64_t at = 0;
    for (int i = 0; i < STEP_MATRICES; i++) {
        s.matrix[i].data = s.memory + at;
        at += s.matrix[i].plan.bytes;
    }
    for (int i = 0; i < 2; i++) {
        s.x[i] = device_buffer((size_t)SMALL_M_MAX * 248320 * 2, 0);
        fill_bf16<<<(SMALL_M_MAX * 20480 + 255) / 256, 256>>>((uint16_t *)s.x[i], SMALL_M_MAX * 20480);
    }
    s.workspace = device_buffer(workspace, 0);
    CUDA_DO(cudaDeviceSynchronize());
    return s;
}

static void queue_product(const step_weights *s, int i, int m, cuda_route route, cudaStream_t stream) {
    matmul_epilogue epilogue = s->shape[i] == 3 ? MATMUL_SWIGLU : MATMUL_BF16;
    small_matmul args = {&s->matrix[i], s->x[i % 2], s->x[(i + 1) % 2], s->workspace, m, epilogue, route};
    OP_DO(cuda_small_matmul(&args, stream, &op_error));
}

static timing time_chain(const step_weights *s, int shape, int m, cuda_route route, cudaStream_t stream, int repeats) {
    graph_begin(stream);
    for (int i = 0; i < STEP_MATRICES; i++)
        if (shape < 0 || s->shape[i] == shape) queue_product(s, i, m, route, stream);
    cudaGraphExec_t graph = graph_end(stream);
    timing t = time_graph(graph, stream, repeats);
    CUDA_DO(cudaGraphExecDestroy(graph));
    return t;
}

static void bench_small_matmul(const step_weights *s, double bandwidth, cudaStream_t stream) {
    static const int widths[] = {1, 2, 4, 8, 16, 32, 64};
    double floor_ms = (double)s->bytes / bandwidth * 1e3;
    printf("floor: %.3f GB / %.3f TB/s = %.3f ms\n", (double)s->bytes / 1e9, bandwidth / 1e12, floor_ms);
    for (int route = 0; route < 2; route++)
        for (int i = 0; i < 7; i++) {
            timing t = time_chain(s, -1, widths[i], (cuda_route)route, stream, 31);
            printf("chain of %d products, %s, m %2d: %.3f ms +- %.3f, %.2f x floor\n", STEP_MATRICES,
                   route ? "bulk" : "portable", widths[i], t.median_ms, t.spread_ms, t.median_ms / floor_ms);
        }
    for (int shape = 0; shape < STEP_SHAPES; shape++)
        for (int i = 0; i < 5; i += i == 0 ? 3 : 1) {
            double bytes = 0, count = 0;
            for (int j = 0; j < STEP_MATRICES; j++)
                if (s->shape[j] == shape) bytes += (double)s->matrix[j].plan.bytes, count++;
            timing b = time_chain(s, shape, widths[i], ROUTE_BULK, stream, 9);
            timing a = time_chain(s, shape, widths[i], ROUTE_PORTABLE, stream, 9);
            printf("shape %6d x %5d m %2d: bulk %.2f us %.2f TB/s, portable %.2f us %.2f TB/s\n", step_shapes[shape][0],
                   step_shapes[shape][1], widths[i], b.median_ms / count * 1e3, bytes / b.median_ms / 1e9,
                   a.median_ms / count * 1e3, bytes / a.median_ms / 1e9);
        }
}

#endif
