/* Shared by the GPU check and the GPU bench: seeded random numbers, buffers that live until the end of the program,
 * exact conversions of the small number formats, results counted, and graphs timed with events. */
#ifndef HEARTH_TESTS_GPU_SUPPORT_CUH
#define HEARTH_TESTS_GPU_SUPPORT_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda_ops.h"

#define CUDA_DO(call)                                                                              \
    do {                                                                                           \
        cudaError_t cuda_status = (call);                                                          \
        if (cuda_status != cudaSuccess) {                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cuda_status)); \
            printf("0 passed, 1 failed\n");                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OP_DO(call)                                                                 \
    do {                                                                            \
        error op_error;                                                             \
        if ((call) != ERR_OK) {                                                     \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, op_error.message); \
            printf("0 passed, 1 failed\n");                                         \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static uint64_t random_state = 1;

static inline uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t x = random_state ^ (random_state >> 29);
    return (uint32_t)((x * 0xbf58476d1ce4e5b9ull) >> 32);
}

/* Uniform in -1..1. */
static inline float random_unit(void) { return (float)random_bits() * (2.0f / 4294967296.0f) - 1.0f; }

static inline uint16_t bf16_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float bf16_value(uint16_t b) {
    uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float e4m3_value(uint8_t b) {
    int e = b >> 3 & 15, m = b & 7;
    float v = e ? ldexpf(8.0f + (float)m, e - 10) : ldexpf((float)m, -9);
    return b >> 7 ? -v : v;
}

static inline float e2m1_value(int code) {
    static const float magnitude[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

static inline void *host_buffer(size_t bytes) {
    void *p = calloc(bytes, 1);
    if (p == NULL) exit(3);
    return p;
}

/* Device memory, freed when the program ends; `fill` is the poison byte. */
static inline void *device_buffer(size_t bytes, int fill) {
    void *p;
    CUDA_DO(cudaMalloc(&p, bytes + 16));
    CUDA_DO(cudaMemset(p, fill, bytes + 16));
    return p;
}

static inline void *device_copy(const void *host, size_t bytes) {
    void *p = device_buffer(bytes, 0);
    CUDA_DO(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    return p;
}

static inline void *host_copy(const void *device, size_t bytes) {
    void *p = host_buffer(bytes);
    CUDA_DO(cudaMemcpy(p, device, bytes, cudaMemcpyDeviceToHost));
    return p;
}

static inline float *random_floats(size_t count, float scale) {
    float *p = (float *)host_buffer(count * sizeof *p);
    for (size_t i = 0; i < count; i++) p[i] = random_unit() * scale;
    return p;
}

static int cases_passed, cases_failed;

static inline void case_result(bool ok, const char *what, double value, double limit) {
    printf("%-4s %-78s %.3g (limit %.3g)\n", ok ? "ok" : "FAIL", what, value, limit);
    if (ok)
        cases_passed++;
    else
        cases_failed++;
}

/* Mean square error over mean square of the reference; not a number fails. */
static inline void case_close(const char *what, const float *got, const double *want, size_t count, double limit) {
    double error = 0, power = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)got[i] - want[i];
        error += d * d;
        power += want[i] * want[i];
    }
    double nmse = error / power;
    case_result(nmse <= limit, what, nmse, limit);
}

static inline void case_equal(const char *what, const void *a, const void *b, size_t bytes) {
    size_t different = 0;
    for (size_t i = 0; i < bytes; i++) different += ((const uint8_t *)a)[i] != ((const uint8_t *)b)[i];
    case_result(different == 0, what, (double)different, 0);
}

/* ---- timing */

static inline int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Milliseconds per replay: median and the half range between the quartiles. */
typedef struct timing {
    float median_ms, spread_ms;
} timing;

static inline timing time_graph(cudaGraphExec_t graph, cudaStream_t stream, int repeats) {
    float times[101];
    cudaEvent_t start, stop;
    CUDA_DO(cudaEventCreate(&start));
    CUDA_DO(cudaEventCreate(&stop));
    if (repeats > 101) repeats = 101;
    for (int i = 0; i < 3; i++) CUDA_DO(cudaGraphLaunch(graph, stream));
    for (int i = 0; i < repeats; i++) {
        CUDA_DO(cudaEventRecord(start, stream));
        CUDA_DO(cudaGraphLaunch(graph, stream));
        CUDA_DO(cudaEventRecord(stop, stream));
        CUDA_DO(cudaEventSynchronize(stop));
        CUDA_DO(cudaEventElapsedTime(&times[i], start, stop));
    }
    qsort(times, (size_t)repeats, sizeof times[0], compare_floats);
    CUDA_DO(cudaEventDestroy(start));
    CUDA_DO(cudaEventDestroy(stop));
    timing t = {times[repeats / 2], (times[repeats * 3 / 4] - times[repeats / 4]) / 2};
    return t;
}

static inline void graph_begin(cudaStream_t stream) {
    CUDA_DO(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static inline cudaGraphExec_t graph_end(cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_DO(cudaStreamEndCapture(stream, &graph));
    CUDA_DO(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_DO(cudaGraphDestroy(graph));
    return exec;
}

/* Exits with the closing line when there is no GPU to run on. */
static inline void need_gpu(int skipped) {
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return;
    printf("skip: no CUDA device: %s\n", status == cudaSuccess ? "none found" : cudaGetErrorString(status));
    printf("0 passed, 0 failed, %d skipped\n", skipped);
    exit(0);
}

static inline int multiprocessor_count(void) {
    int count;
    CUDA_DO(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

#endif
