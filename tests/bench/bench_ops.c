/* Speed of the CPU operators at real shapes, each against the peak that this program measures in the same run: bytes
 * against a plain read loop, flops against a loop of independent FMAs.
 *
 *   bench_ops [THREADS]        HEARTH_ISA=scalar|avx2|avx512 chooses the table
 *
 * Every line: operator, shape, median time of the repetitions, spread (lowest to highest), rate, share of the peak. With
 * one thread the time is that thread's CPU time, so that a busy machine disturbs the figures less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "ops/ops.h"

enum { REPETITIONS = 7, POOL_BYTES = 512 << 20 /* beyond any cache we run on, or close to it */ };

static const ops *table;
static pool *threads;
static char *big; /* POOL_BYTES of plausible weights */
static double peak_read, peak_flops;

static uint64_t now_ns(void) {
    struct timespec t;
    if (pool_threads(threads) > 1) return clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static float *zeros(size_t count) {
    void *p;
    error err;
    if (memory_map(count * sizeof(float), "bench", &p, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return p;
}

static float *ramp(size_t count) {
    float *x = zeros(count);
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 7 % 64) / 64.0f - 0.5f;
    return x;
}

/* ---- peaks */

typedef unsigned long long word8 __attribute__((vector_size(64)));
static volatile unsigned long long sink;
enum { PEAK_TASKS = 64, FMA_ROUNDS = 100000 };

#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

WIDEST static void read_task(void *context, int index) {
    (void)context;
    const word8 *p = (const word8 *)(const void *)(big + (size_t)index * (POOL_BYTES / PEAK_TASKS));
    word8 a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < POOL_BYTES / PEAK_TASKS / sizeof *p; i += 4)
        a += p[i], b += p[i + 1], c += p[i + 2], d += p[i + 3];
    a += b + c + d;
    sink = a[0] + a[7];
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Enough independent chains to cover the latency of an FMA. */
__attribute__((target("avx512f"))) static void fma_avx512(void *context, int index) {
    (void)context, (void)index;
    const __m512 x = _mm512_set1_ps(0.5f);
    __m512 a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x, k = x, l = x;
    for (int r = 0; r < FMA_ROUNDS; r++) {
        a = _mm512_fmadd_ps(a, x, x), b = _mm512_fmadd_ps(b, x, x), c = _mm512_fmadd_ps(c, x, x);
        d = _mm512_fmadd_ps(d, x, x), e = _mm512_fmadd_ps(e, x, x), f = _mm512_fmadd_ps(f, x, x);
        g = _mm512_fmadd_ps(g, x, x), h = _mm512_fmadd_ps(h, x, x), i = _mm512_fmadd_ps(i, x, x);
        j = _mm512_fmadd_ps(j, x, x), k = _mm512_fmadd_ps(k, x, x), l = _mm512_fmadd_ps(l, x, x);
        __asm__ volatile(""
                         : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h), "+v"(i), "+v"(j),
                           "+v"(k), "+v"(l));
    }
    a += b + c + d + e + f + g + h + i + j + k + l;
    sink = (unsigned long long)a[0];
}

__attribute__((target("avx2,fma"))) static void fma_avx2(void *context, int index) {
    (void)context, (void)index;
    const __m256 x = _mm256_set1_ps(0.5f);
    __m256 a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x, k = x, l = x;
    for (int r = 0; r < FMA_ROUNDS; r++) {
        a = _mm256_fmadd_ps(a, x, x), b = _mm256_fmadd_ps(b, x, x), c = _mm256_fmadd_ps(c, x, x);
        d = _mm256_fmadd_ps(d, x, x), e = _mm256_fmadd_ps(e, x, x), f = _mm256_fmadd_ps(f, x, x);
        g = _mm256_fmadd_ps(g, x, x), h = _mm256_fmadd_ps(h, x, x), i = _mm256_fmadd_ps(i, x, x);
        j = _mm256_fmadd_ps(j, x, x), k = _mm256_fmadd_ps(k, x, x), l = _mm256_fmadd_ps(l, x, x);
        __asm__ volatile(""
                         : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h), "+v"(i), "+v"(j),
                           "+v"(k), "+v"(l));
    }
    a += b + c + d + e + f + g + h + i + j + k + l;
    sink = (unsigned long long)a[0];
}
#endif

static double best_seconds(int tasks, void (*task)(void *, int)) {
    double best = 1e9;
    for (int r = 0; r < REPETITIONS; r++) {
        const uint64_t start = now_ns();
        pool_run(threads, tasks, task, NULL);
        const double s = (double)(now_ns() - start) / 1e9;
        best = s < best ? s : best;
    }
    return best;
}

static void measure_peaks(void) {
    peak_read = POOL_BYTES / best_seconds(PEAK_TASKS, read_task) / 1e9;
    printf("table %s, %d threads; read %.1f GB/s", table->name, pool_threads(threads), peak_read);
#if defined(__x86_64__)
    if (strcmp(table->name, "scalar") != 0) {
        const int lanes = strcmp(table->name, "avx512") == 0 ? 16 : 8, tasks = 16 * pool_threads(threads);
        const double flops = 2.0 * 12 * lanes * FMA_ROUNDS * tasks;
        peak_flops = flops / best_seconds(tasks, lanes == 16 ? fma_avx512 : fma_avx2) / 1e9;
        printf(", fp32 FMA %.1f GFLOP/s", peak_flops);
    }
#endif
    printf("\n");
}

/* ---- lines */

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times `operation` and prints a line. bytes: what must be read (and written); flops: 0 where bytes are what counts. */
static void report(const char *name, void (*operation)(void *context), void *context, double bytes, double flops) {
    double ms[REPETITIONS];
    operation(context);
    for (int r = 0; r < REPETITIONS; r++) {
        const uint64_t start = now_ns();
        operation(context);
        ms[r] = (double)(now_ns() - start) / 1e6;
    }
    qsort(ms, REPETITIONS, sizeof *ms, compare_doubles);
    const double median = ms[REPETITIONS / 2];
    printf("%-44s %9.3f ms (%.3f..%.3f)", name, median, ms[0], ms[REPETITIONS - 1]);
    if (flops > 0) {
        printf("  %7.1f GFLOP/s", flops / median / 1e6);
        if (peak_flops > 0) printf(" %3.0f %%", 100 * flops / median / 1e6 / peak_flops);
    } else {
        printf("  %7.1f GB/s    %3.0f %%", bytes / median / 1e6, 100 * bytes / median / 1e6 / peak_read);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- matrix products */

typedef struct matmul_call {
    matrix w;
    float *x, *out;
    int rows;
} matmul_call;

static void call_matmul(void *context) {
    const matmul_call *c = context;
    table->matmul(threads, c->out, c->x, &c->w, c->rows);
}

static void bench_matmul(void) {
    static const struct {
        dtype type;
        int n, k, m;
    } shapes[] = {
        {DTYPE_BF16, 248320, 1024, 1}, {DTYPE_BF16, 51200, 5120, 1},  {DTYPE_BF16, 14848, 17408, 1},
        {DTYPE_F32, 25600, 5120, 1},   {DTYPE_BF16, 17408, 5120, 4},  {DTYPE_BF16, 17408, 5120, 8},
        {DTYPE_BF16, 17408, 5120, 16}, {DTYPE_BF16, 4096, 5120, 64},  {DTYPE_BF16, 4096, 5120, 256},
        {DTYPE_F16, 3584, 1024, 256},  {DTYPE_BF16, 1024, 3584, 512},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int n = shapes[i].n, k = shapes[i].k, m = shapes[i].m;
        char name[96];
        matmul_call c = {{.type = shapes[i].type, .rows = n, .cols = k, .data = big},
                         ramp((size_t)m * (size_t)k),
                         zeros((size_t)m * (size_t)n),
                         m};
        const double weights = (double)n * k;
        snprintf(name, sizeof name, "matmul %s [%d, %d] x %d", dtype_name(shapes[i].type), n, k, m);
        report(name, call_matmul, &c, weights * (shapes[i].type == DTYPE_F32 ? 4 : 2), m >= 16 ? 2 * weights * m : 0);
        memory_unmap(c.x, (size_t)m * (size_t)k * 4);
        memory_unmap(c.out, (size_t)m * (size_t)n * 4);
    }
}

/* ---- attention of the 27B shape: 24 query heads, 4 KV heads, 256 dims */

typedef struct attention_call {
    attention_shape shape;
    kv_pool kv;
    sequence seq;
    segment seg;
    float *q, *gate, *out;
} attention_call;

/* Every layer once, so that the cache of the layer before is no help. */
static void call_attention(void *context) {
    const attention_call *c = context;
    for (int layer = 0; layer < c->kv.layers; layer++)
        table->attention(threads, c->out, c->q, c->gate, &c->shape, &c->kv, layer, &c->seg, 1);
}

static void bench_attention(int length, int rows, dtype type, int layers) {
    enum { HEADS = 24, KV_HEADS = 4, DIM = 256 };
    const int pages = (length + rows) / KV_PAGE + 1;
    const size_t width = (size_t)rows * HEADS * DIM;
    int32_t *list = mem_alloc((size_t)pages * sizeof *list);
    for (int i = 0; i < pages; i++) list[i] = i;
    attention_call c = {
        .shape = {HEADS, KV_HEADS, DIM, 64, NULL},
        .kv = {.type = type,
               .layers = layers,
               .kv_heads = KV_HEADS,
               .head_dim = DIM,
               .page_count = pages,
               .k = big,
               .v = big + POOL_BYTES / 2},
        .seq = {.pages = list, .length = length},
        .q = ramp(width),
        .gate = ramp(width),
        .out = zeros(width),
    };
    c.seg = (segment){.seq = &c.seq, .count = rows};
    const double keys = length + (rows + 1) / 2.0, size = type == DTYPE_F32 ? 4 : 2;
    char name[96];
    snprintf(name, sizeof name, "attention %s, %d rows after %d, %d layers", dtype_name(type), rows, length, layers);
    report(name, call_attention, &c, 2.0 * layers * (length + rows) * KV_HEADS * DIM * size,
           rows >= 16 ? 4.0 * layers * rows * keys * HEADS * DIM : 0);
    memory_unmap(c.q, width * 4), memory_unmap(c.gate, width * 4), memory_unmap(c.out, width * 4);
    free(list);
}

/* ---- Gated DeltaNet of the 27B shape: 16 key heads, 48 value heads, 128 dims */

typedef struct gdn_call {
    gdn_shape shape;
    sequence seq;
    segment seg;
    int layers;
    float *mixed, *out, *taps, *heads, *values;
} gdn_call;

static void call_gdn(void *context) {
    const gdn_call *c = context;
    for (int layer = 0; layer < c->layers; layer++)
        table->gdn(threads, c->values, c->mixed, c->heads, c->heads, c->values + (size_t)c->seg.count * 48 * 128,
                   c->heads, c->heads, c->taps, 1e-6f, &c->shape, layer, &c->seg, 1, NULL, NULL);
}

static void call_conv(void *context) {
    const gdn_call *c = context;
    table->conv(threads, c->out, c->mixed, c->taps, &c->shape, 0, &c->seg, 1);
}

static void bench_gdn(int rows, int layers) {
    enum { CHANNELS = 10240, VALUES = 48 * 128 };
    const size_t state = (size_t)layers * VALUES * 128, n = (size_t)rows;
    gdn_call c = {.shape = {16, 48, 128, 128, 4},
                  .layers = layers,
                  .mixed = ramp(n * CHANNELS),
                  .out = zeros(n * CHANNELS),
                  .taps = ramp(CHANNELS * 4),
                  .heads = ramp(n * 48 + 48),
                  .values = ramp(n * VALUES * 2)};
    for (size_t i = 0; i < n * 48 + 48; i++) c.heads[i] = -0.5f;
    c.seq = (sequence){.recurrent = zeros(state), .conv = zeros((size_t)layers * 3 * CHANNELS)};
    c.seg = (segment){.seq = &c.seq, .count = rows};
    char name[96];
    snprintf(name, sizeof name, "gdn %d rows, %d layers", rows, layers);
    /* per token and element of the state: product, FMA, FMA, FMA */
    report(name, call_gdn, &c, 2.0 * (double)state * 4, rows >= 16 ? 7.0 * rows * (double)state : 0);
    snprintf(name, sizeof name, "conv %d rows", rows);
    report(name, call_conv, &c, 2.0 * (double)n * CHANNELS * 4, 0);
    memory_unmap(c.mixed, n * CHANNELS * 4), memory_unmap(c.out, n * CHANNELS * 4), memory_unmap(c.taps, CHANNELS * 16);
    memory_unmap(c.heads, (n * 48 + 48) * 4), memory_unmap(c.values, n * VALUES * 8);
    memory_unmap(c.seq.recurrent, state * 4), memory_unmap(c.seq.conv, (size_t)layers * 3 * CHANNELS * 4);
}

/* ---- rows */

typedef struct rows_call {
    float *x, *y, *out;
    int rows, width;
} rows_call;

static void call_rms_norm(void *context) {
    const rows_call *c = context;
    table->rms_norm(threads, c->out, c->x, c->y, c->rows, c->width, 1e-6f);
}

static void call_swiglu(void *context) {
    const rows_call *c = context;
    table->swiglu(threads, c->out, c->x, c->y, (int64_t)c->rows * c->width);
}

static void bench_rows(int rows, int width) {
    const size_t count = (size_t)rows * (size_t)width;
    rows_call c = {ramp(count), ramp(count), zeros(count), rows, width};
    char name[96];
    snprintf(name, sizeof name, "rms_norm %d x %d", rows, width);
    report(name, call_rms_norm, &c, 2.0 * (double)count * 4, 0);
    snprintf(name, sizeof name, "swiglu %d x %d", rows, width);
    report(name, call_swiglu, &c, 3.0 * (double)count * 4, 0);
    memory_unmap(c.x, count * 4), memory_unmap(c.y, count * 4), memory_unmap(c.out, count * 4);
}

int main(int argc, char **argv) {
    error err;
    table = ops_cpu_best();
    if (pool_create(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, &threads, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    big = (char *)zeros(POOL_BYTES / 4);
    for (size_t i = 0; i < POOL_BYTES / 2; i++)
        ((uint16_t *)(void *)big)[i] = (uint16_t)(0x3c00 + (i * 2654435761u >> 20 & 0x83ff));
    measure_peaks();
    bench_matmul();
    bench_attention(16384, 1, DTYPE_BF16, 6);
    bench_attention(16384, 16, DTYPE_BF16, 2);
    bench_attention(4096, 1, DTYPE_F32, 8);
    bench_attention(2048, 256, DTYPE_BF16, 1);
    bench_gdn(1, 32);
    bench_gdn(256, 2);
    bench_rows(1, 5120);
    bench_rows(256, 5120);
    pool_destroy(threads);
    memory_unmap(big, POOL_BYTES);
    return 0;
}
