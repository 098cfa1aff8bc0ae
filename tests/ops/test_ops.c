/* Every vector kernel against the scalar oracle, and the properties that the rest of Hearth builds on: the bits of a row
 * do not depend on threads, on other rows or sequences, on how a chain is cut, or on whether it ran in a tree.
 *
 * A `world` is a random step: shapes, sequences with some committed history, segments (trees, then chains) and the rows'
 * inputs. `run` puts it through the attention and Gated DeltaNet operators on a copy of the state and keeps everything
 * that they wrote, so that two runs can be compared as a whole. HEARTH_SEED repeats a failing run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "format/minifloat.h"
#include "ops/ops.h"
#include "support.h"

/* Under ThreadSanitizer everything is some thirty times slower, and what it looks for shows in a few rounds. */
#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 1, KINDS = 2 };
#else
enum { ROUNDS = 6, KINDS = 3 };
#endif

enum { SEQUENCES_MAX = 5, LAYERS = 2, LAYER = 1, CAPTURES_MAX = 3, VARIANTS_MAX = 2 };

/* ---- random numbers */

static uint64_t seed, rng;

static uint32_t random_bits(void) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (uint32_t)(rng >> 32);
}
static int random_int(int low, int high) { return low + (int)(random_bits() % (uint32_t)(high - low + 1)); }
static float random_float(float scale) { return ((float)random_bits() / 2147483648.0f - 1.0f) * scale; }

static float *random_floats(int64_t count, float scale) {
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 127) & ~(size_t)63);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) x[i] = random_float(scale);
    return x;
}

static float *floats(int64_t count) {
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 127) & ~(size_t)63);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) x[i] = NAN; /* what no operator writes must not be read */
    return x;
}

static float *floats_copy(const float *from, int64_t count) {
    float *x = floats(count);
    memcpy(x, from, (size_t)count * sizeof *x);
    return x;
}

/* ---- tables and pools */

static const ops *variants[VARIANTS_MAX];
static int variant_count;
static pool *pools[5]; /* by threads; [1] is a pool of one */

static void add_variant(const char *name) {
    setenv("HEARTH_ISA", name, 1);
    const ops *best = ops_cpu_best();
    unsetenv("HEARTH_ISA");
    if (strcmp(best->name, name) == 0) {
        variants[variant_count++] = best;
    } else {
        print_message("skip: this CPU does not run the %s kernels\n", name);
    }
}

static int setup(void **state) {
    (void)state;
    const char *given = getenv("HEARTH_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_ns();
    rng = seed * 0x9e3779b97f4a7c15u | 1;
    print_message("HEARTH_SEED=%llu\n", (unsigned long long)seed);
    add_variant("avx2");
    add_variant("avx512");
    for (int t = 1; t <= 4; t++) {
        if (pool_create(t, &pools[t], NULL) != ERR_OK) return -1;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int t = 1; t <= 4; t++) pool_destroy(pools[t]);
    return 0;
}

/* ---- comparison */

static void expect_bits(const char *what, const float *a, const float *b, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        fail_msg("%s: element %lld of %lld: %.9g and %.9g differ (HEARTH_SEED=%llu)", what, (long long)i,
                 (long long)count, (double)a[i], (double)b[i], (unsigned long long)seed);
    }
}

/* Where exp is involved: normalised mean square error. NaN (never written) must agree. */
static void expect_close(const char *what, const float *a, const float *b, int64_t count) {
    double square = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        square += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    if (!(square <= 1e-11 * size))
        fail_msg("%s: normalised error %.3g (HEARTH_SEED=%llu)", what, square / size, (unsigned long long)seed);
}

/* ---- matrix products */

static matrix random_matrix(dtype type, int rows, int cols, char **memory) {
    const size_t count = (size_t)rows * (size_t)cols, size = type == DTYPE_F32 ? 4 : 2;
    *memory = mem_alloc(count * size + 1);
    char *data = *memory + 1; /* files give no alignment */
    for (size_t i = 0; i < count; i++) {
        float x = random_float(1);
        uint16_t h = type == DTYPE_BF16 ? f32_to_bf16(x) : f32_to_f16(x);
        memcpy(data + i * size, type == DTYPE_F32 ? (const void *)&x : &h, size);
    }
    return (matrix){.type = type, .rows = rows, .cols = cols, .data = data};
}

static void check_matmul(dtype type, int n, int k, int m) {
    char *memory, what[96];
    matrix w = random_matrix(type, n, k, &memory);
    float *x = random_floats((int64_t)m * k, 1), *expected = floats((int64_t)m * n), *out = floats((int64_t)m * n);
    ops_cpu_scalar()->matmul(NULL, expected, x, &w, m);
    for (int v = 0; v < variant_count; v++) {
        snprintf(what, sizeof what, "%s %s [%d, %d] x %d rows", variants[v]->name, dtype_name(type), n, k, m);
        const int threads = random_int(1, 4);
        variants[v]->matmul(pools[threads], out, x, &w, m);
        expect_bits(what, out, expected, (int64_t)m * n);
        /* rows on their own, the first at an address that is only 4-byte aligned when k is odd */
        const int first = random_int(0, m - 1), count = random_int(1, m - first);
        variants[v]->matmul(pools[threads], out, x + (int64_t)first * k, &w, count);
        expect_bits(what, out, expected + (int64_t)first * n, (int64_t)count * n);
    }
    free(memory), free(x), free(expected), free(out);
}

static void matmul_matches(void **state) {
    (void)state;
    static const dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    static const int shapes[][3] = {
        /* W rows, columns, x rows: edges of the tiles, blocks and ways */
        {1, 1, 1},      {7, 16, 1},      {8, 15, 2},  {9, 17, 3},    {48, 768, 9},   {49, 769, 64},
        {47, 1537, 65}, {96, 1600, 130}, {33, 31, 8}, {257, 100, 4}, {64, 2048, 12}, {131, 257, 67},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int t = 0; t < 3; t++) check_matmul(types[t], shapes[s][0], shapes[s][1], shapes[s][2]);
    }
    for (int i = 0; i < 10 * ROUNDS; i++)
        check_matmul(types[i % 3], random_int(1, 150), random_int(1, i % 4 ? 300 : 1700),
                     random_int(1, i % 5 ? 20 : 140));
}

/* Subnormal weights, infinities and NaN must come through as the scalar oracle has them. */
static void matmul_special_weights(void **state) {
    (void)state;
    static const uint16_t codes[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0x3c00, 0x7c00, 0x7e01, 0x7f80};
    enum { N = 10, K = 5 };
    uint16_t data[N * K];
    float x[12 * K], expected[12 * N], out[12 * N];
    for (int i = 0; i < N * K; i++) data[i] = i % K == 2 ? codes[i / K] : 0;
    for (int i = 0; i < 12 * K; i++) x[i] = random_float(2);
    for (int t = 0; t < 2; t++) {
        matrix w = {.type = t ? DTYPE_F16 : DTYPE_BF16, .rows = N, .cols = K, .data = data};
        ops_cpu_scalar()->matmul(NULL, expected, x, &w, 12);
        for (int v = 0; v < variant_count; v++) {
            for (int m = 1; m <= 12; m += 11) {
                variants[v]->matmul(NULL, out, x, &w, m);
                expect_bits(variants[v]->name, out, expected, m * N);
            }
        }
    }
}

/* ---- rows */

static void rows_match(void **state) {
    (void)state;
    for (int i = 0; i < 7 * ROUNDS; i++) {
        const int rows = random_int(1, i % 4 ? 9 : 90), width = random_int(1, i % 3 ? 70 : 1100);
        const int64_t count = (int64_t)rows * width;
        float *x = random_floats(count, 3), *y = random_floats(count, 3), *scale = random_floats(width, 2);
        float *expected = floats(count), *out = floats(count), *copy;
        char *memory;
        matrix table = random_matrix(i % 3 == 0 ? DTYPE_BF16 : i % 3 == 1 ? DTYPE_F16 : DTYPE_F32, 37, width, &memory);
        int32_t ids[90];
        for (int r = 0; r < rows; r++) ids[r] = random_int(0, 36);
        const ops *ref = ops_cpu_scalar();
        for (int v = 0; v < variant_count; v++) {
            const ops *o = variants[v];
            pool *p = pools[random_int(1, 4)];
            ref->rms_norm(NULL, expected, x, scale, rows, width, 1e-6f);
            copy = floats_copy(x, count);
            o->rms_norm(p, copy, copy, scale, rows, width, 1e-6f); /* in place */
            expect_bits("rms_norm", copy, expected, count);
            ref->embed(NULL, expected, &table, ids, rows);
            o->embed(p, out, &table, ids, rows);
            expect_bits("embed", out, expected, count);
            memcpy(expected, x, (size_t)count * sizeof *x);
            memcpy(copy, x, (size_t)count * sizeof *x);
            ref->add(NULL, expected, y, count);
            o->add(p, copy, y, count);
            expect_bits("add", copy, expected, count);
            ref->swiglu(NULL, expected, x, y, count);
            memcpy(copy, x, (size_t)count * sizeof *x);
            o->swiglu(p, copy, copy, y, count); /* in place */
            expect_close("swiglu", copy, expected, count);
            free(copy);
        }
        free(x), free(y), free(scale), free(expected), free(out), free(memory);
    }
}

/* The error of silu in units of the last place of the exact value. */
static double silu_ulps(float x, float got) {
    const double exact = (double)x / (1.0 + exp(-(double)x));
    int exponent;
    frexp(exact, &exponent);
    return fabs(got - exact) / ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

static void silu_is_accurate(void **state) {
    (void)state;
    enum { COUNT = 200000 };
    float *x = floats(COUNT), *one = floats(COUNT), *out = floats(COUNT);
    for (int i = 0; i < COUNT; i++) {
        one[i] = 1;
        x[i] = i % 4 == 0   ? random_float(1e-3f)
               : i % 4 == 1 ? random_float(1)
               : i % 4 == 2 ? random_float(20)
                            : random_float(87);
    }
    for (int v = 0; v < variant_count; v++) {
        double worst = 0;
        variants[v]->swiglu(pools[2], out, x, one, COUNT);
        for (int i = 0; i < COUNT; i++) worst = fmax(worst, silu_ulps(x[i], out[i]));
        print_message("%s: silu within %.2f ulp\n", variants[v]->name, worst);
        assert_true(worst <= 3); /* exp, sum, quotient and product each add to it */
    }
    free(x), free(one), free(out);
}

static void silu_edges(void **state) {
    (void)state;
    static const float x[] = {0.0f,     -0.0f,  1e-40f, 88.0f,   89.0f,    1000.0f, 3e38f,
                              INFINITY, -86.0f, -88.0f, -104.0f, -1000.0f, -3e38f,  NAN};
    enum { COUNT = sizeof x / sizeof *x };
    float one[COUNT], expected[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++) one[i] = 1;
    ops_cpu_scalar()->swiglu(NULL, expected, x, one, COUNT);
    for (int v = 0; v < variant_count; v++) {
        variants[v]->swiglu(NULL, out, x, one, COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (isnan(expected[i])) {
                assert_true(isnan(out[i]));
            } else if (out[i] != expected[i]) {
                assert_true(fabsf(out[i] - expected[i]) <= 3e-7f * fabsf(expected[i]) + 1e-37f);
            }
        }
    }
}

/* ---- a step */

typedef struct world {
    attention_shape attention;
    gdn_shape gdn;
    dtype kv_type;
    float k_cache_scale[LAYERS], v_cache_scale[LAYERS];
    int sequence_count, page_count, rows;
    int channels, q_width, kv_width, value_width;
    int64_t recurrent_size, conv_size, kv_size; /* elements of a whole state, and of a whole pool */
    int length[SEQUENCES_MAX];                  /* committed */
    int32_t *pages[SEQUENCES_MAX];
    segment segments[SEQUENCES_MAX]; /* seq and captures' memory are filled in by run */
    int segment_sequence[SEQUENCES_MAX], segment_count;
    capture captures[SEQUENCES_MAX][CAPTURES_MAX];
    int32_t *parents[SEQUENCES_MAX], *depth[SEQUENCES_MAX];
    float *inv_freq, *q_scale, *k_scale, *taps, *neg_exp_a, *dt_bias, *norm_scale;
    float *qg, *k, *v, *raw, *mixed, *a, *b, *z; /* [rows, ...] */
} world;

typedef struct step_state {
    void *k, *v; /* pools */
    float *recurrent[SEQUENCES_MAX], *conv[SEQUENCES_MAX];
} step_state;

/* Everything a run wrote. */
typedef struct outcome {
    step_state state;
    float *q, *gate, *attention, *conv, *gdn; /* [rows, ...] */
    gdn_stash stash;
    float *captured[SEQUENCES_MAX][CAPTURES_MAX][2];
} outcome;

static const float eps = 1e-6f;
static size_t kv_bytes(const world *w) { return (size_t)w->kv_size * dtype_size(w->kv_type); }

static void random_shapes(world *w, int kind) {
    static const int heads[][2] = {{4, 2}, {6, 1}, {12, 2}, {3, 3}, {2, 1}, {8, 1}, {5, 1}};
    const int h = random_int(0, 6);
    w->attention.heads = heads[h][0];
    w->attention.kv_heads = heads[h][1];
    w->attention.head_dim = kind == 0 ? random_int(1, 50) * 2 : kind == 1 ? 64 : 256;
    w->attention.rotary_dim = kind == 0 ? random_int(0, w->attention.head_dim / 2) * 2 : w->attention.head_dim / 4;
    w->gdn.key_heads = random_int(1, 3);
    w->gdn.value_heads = w->gdn.key_heads * random_int(1, 3);
    w->gdn.key_dim = kind == 0 ? random_int(1, 40) : kind == 1 ? 32 : 128;
    w->gdn.value_dim = kind == 0 ? random_int(1, 150) : kind == 1 ? 32 : 128;
    w->gdn.conv_taps = kind == 0 ? random_int(2, 5) : 4;
    w->kv_type = (dtype[]){DTYPE_F32, DTYPE_BF16, DTYPE_F8_E4M3}[random_int(0, 2)];
    for (int i = 0; i < LAYERS; i++) w->k_cache_scale[i] = random_float(0.01f) + 0.02f;
    for (int i = 0; i < LAYERS; i++) w->v_cache_scale[i] = random_float(0.01f) + 0.02f;
    w->q_width = w->attention.heads * w->attention.head_dim;
    w->kv_width = w->attention.kv_heads * w->attention.head_dim;
    w->value_width = w->gdn.value_heads * w->gdn.value_dim;
    w->channels = 2 * w->gdn.key_heads * w->gdn.key_dim + w->value_width;
    w->recurrent_size = (int64_t)LAYERS * w->value_width * w->gdn.key_dim;
    w->conv_size = (int64_t)LAYERS * (w->gdn.conv_taps - 1) * w->channels;
}

/* Rows of one segment: a tree for the first `trees` sequences, else a chain with captures. */
static void random_segment(world *w, int s, bool tree) {
    segment *seg = &w->segments[s];
    seg->row = w->rows;
    seg->count = random_int(1, tree ? 20 : random_int(0, 2) ? 40 : 90);
    w->segment_sequence[s] = s;
    w->rows += seg->count;
    if (tree) {
        w->parents[s] = mem_alloc((size_t)seg->count * sizeof(int32_t));
        w->depth[s] = mem_alloc((size_t)seg->count * sizeof(int32_t));
        for (int i = 0; i < seg->count; i++) {
            const int parent = i ? random_int(random_int(0, 3) ? 0 : -1, i - 1) : -1;
            w->parents[s][i] = parent;
            w->depth[s][i] = parent < 0 ? 0 : w->depth[s][parent] + 1;
        }
        seg->parents = w->parents[s];
        seg->depth = w->depth[s];
        return;
    }
    seg->capture_count = random_int(0, CAPTURES_MAX);
    for (int c = 0, after = 0; c < seg->capture_count; c++) {
        after = random_int(after < seg->count ? after + 1 : after, seg->count);
        w->captures[s][c].after = after;
    }
}

static void random_inputs(world *w) {
    const gdn_shape *g = &w->gdn;
    w->inv_freq = random_floats(w->attention.rotary_dim / 2 + 1, 1);
    w->q_scale = random_floats(w->attention.head_dim, 2);
    w->k_scale = random_floats(w->attention.head_dim, 2);
    w->taps = random_floats((int64_t)w->channels * g->conv_taps, 1);
    w->neg_exp_a = random_floats(g->value_heads, 1);
    w->dt_bias = random_floats(g->value_heads, 3);
    w->norm_scale = random_floats(g->value_dim, 2);
    for (int h = 0; h < g->value_heads; h++) w->neg_exp_a[h] = -fabsf(w->neg_exp_a[h]);
    w->dt_bias[0] = random_int(0, 1) ? 95.0f : -95.0f; /* softplus at its ends */
    w->qg = random_floats((int64_t)w->rows * 2 * w->q_width, 1);
    w->k = random_floats((int64_t)w->rows * w->kv_width, 1);
    w->v = random_floats((int64_t)w->rows * w->kv_width, 1);
    w->raw = random_floats((int64_t)w->rows * w->channels, 1);
    w->mixed = random_floats((int64_t)w->rows * w->channels, 1);
    w->a = random_floats((int64_t)w->rows * g->value_heads, 2);
    w->b = random_floats((int64_t)w->rows * g->value_heads, 2);
    w->z = random_floats((int64_t)w->rows * w->value_width, 2);
}

/* Pages of a sequence that are scattered over the pool. */
static void random_pages(world *w) {
    int needed[SEQUENCES_MAX];
    w->page_count = 1;
    for (int s = 0; s < w->sequence_count; s++) {
        needed[s] = (w->length[s] + w->segments[s].count) / KV_PAGE + 1;
        w->page_count += needed[s];
    }
    int32_t *order = mem_alloc((size_t)w->page_count * sizeof *order);
    for (int i = 0; i < w->page_count; i++) {
        const int j = random_int(0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int s = 0, at = 0; s < w->sequence_count; at += needed[s++]) {
        w->pages[s] = mem_alloc((size_t)needed[s] * sizeof *order);
        memcpy(w->pages[s], order + at, (size_t)needed[s] * sizeof *order);
    }
    free(order);
    w->kv_size = (int64_t)LAYERS * w->page_count * w->kv_width * KV_PAGE;
}

static world *world_create(int kind) {
    world *w = mem_zero(1, sizeof *w);
    random_shapes(w, kind);
    w->sequence_count = w->segment_count = random_int(1, SEQUENCES_MAX);
    const int trees = random_int(0, w->sequence_count);
    for (int s = 0; s < w->sequence_count; s++) {
        w->length[s] = random_int(0, 3) ? random_int(0, 130) : random_int(0, 2) ? random_int(500, 1100) : 0;
        random_segment(w, s, s < trees);
    }
    random_pages(w);
    random_inputs(w);
    w->attention.inv_freq = w->inv_freq;
    return w;
}

static void world_destroy(world *w) {
    for (int s = 0; s < SEQUENCES_MAX; s++) free(w->pages[s]), free(w->parents[s]), free(w->depth[s]);
    free(w->inv_freq), free(w->q_scale), free(w->k_scale), free(w->taps), free(w->neg_exp_a), free(w->dt_bias);
    free(w->norm_scale), free(w->qg), free(w->k), free(w->v), free(w->raw), free(w->mixed), free(w->a), free(w->b);
    free(w->z), free(w);
}

static step_state state_random(const world *w) {
    step_state s = {.k = floats(w->kv_size), .v = floats(w->kv_size)};
    for (int64_t i = 0; i < w->kv_size; i++) {
        const float k = random_float(1), v = random_float(1);
        if (w->kv_type == DTYPE_F32) {
            ((float *)s.k)[i] = k, ((float *)s.v)[i] = v;
        } else if (w->kv_type == DTYPE_F8_E4M3) {
            ((uint8_t *)s.k)[i] = f32_to_e4m3(k * 40), ((uint8_t *)s.v)[i] = f32_to_e4m3(v * 40);
        } else {
            ((uint16_t *)s.k)[i] = f32_to_bf16(k), ((uint16_t *)s.v)[i] = f32_to_bf16(v);
        }
    }
    for (int i = 0; i < w->sequence_count; i++) {
        s.recurrent[i] = random_floats(w->recurrent_size, 1);
        s.conv[i] = random_floats(w->conv_size, 1);
    }
    return s;
}

static step_state state_copy(const world *w, const step_state *from) {
    step_state s = {.k = floats(w->kv_size), .v = floats(w->kv_size)};
    memcpy(s.k, from->k, kv_bytes(w));
    memcpy(s.v, from->v, kv_bytes(w));
    for (int i = 0; i < w->sequence_count; i++) {
        s.recurrent[i] = floats_copy(from->recurrent[i], w->recurrent_size);
        s.conv[i] = floats_copy(from->conv[i], w->conv_size);
    }
    return s;
}

static void state_destroy(step_state *s) {
    free(s->k), free(s->v);
    for (int i = 0; i < SEQUENCES_MAX; i++) free(s->recurrent[i]), free(s->conv[i]);
}

static sequence sequence_of(const world *w, const step_state *s, int i) {
    return (sequence){.pages = w->pages[i], .length = w->length[i], .recurrent = s->recurrent[i], .conv = s->conv[i]};
}

static outcome run(const ops *o, pool *p, const world *w, const step_state *initial) {
    const gdn_shape *g = &w->gdn;
    const int64_t rows = w->rows;
    outcome x = {.state = state_copy(w, initial)};
    sequence sequences[SEQUENCES_MAX];
    segment segments[SEQUENCES_MAX];
    capture captures[SEQUENCES_MAX][CAPTURES_MAX];
    for (int i = 0; i < w->segment_count; i++) {
        sequences[i] = sequence_of(w, &x.state, w->segment_sequence[i]);
        segments[i] = w->segments[i];
        segments[i].seq = &sequences[i];
        segments[i].captures = captures[i];
        for (int c = 0; c < segments[i].capture_count; c++) {
            x.captured[i][c][0] = floats(w->recurrent_size);
            x.captured[i][c][1] = floats(w->conv_size);
            captures[i][c] = (capture){w->captures[i][c].after, x.captured[i][c][0], x.captured[i][c][1], NULL};
        }
    }
    x.q = floats(rows * w->q_width), x.gate = floats(rows * w->q_width), x.attention = floats(rows * w->q_width);
    x.conv = floats(rows * w->channels), x.gdn = floats(rows * w->value_width);
    x.stash = (gdn_stash){floats(rows * w->channels), floats(rows * g->key_heads * g->key_dim),
                          floats(rows * w->value_width), floats(rows * g->value_heads), floats(rows * g->value_heads)};
    kv_pool kv = {.type = w->kv_type,
                  .layers = LAYERS,
                  .kv_heads = w->attention.kv_heads,
                  .head_dim = w->attention.head_dim,
                  .page_count = w->page_count,
                  .k = x.state.k,
                  .v = x.state.v,
                  .k_scale = w->k_cache_scale,
                  .v_scale = w->v_cache_scale};
    o->qkv_store(p, x.q, x.gate, w->qg, w->k, w->v, w->q_scale, w->k_scale, eps, &w->attention, &kv, LAYER, segments,
                 w->segment_count);
    o->attention(p, x.attention, x.q, x.gate, &w->attention, &kv, LAYER, segments, w->segment_count);
    o->conv(p, x.conv, w->raw, w->taps, g, LAYER, segments, w->segment_count);
    o->gdn(p, x.gdn, w->mixed, w->a, w->b, w->z, w->neg_exp_a, w->dt_bias, w->norm_scale, eps, g, LAYER, segments,
           w->segment_count, &x.stash, w->raw);
    return x;
}

static void outcome_destroy(outcome *x) {
    state_destroy(&x->state);
    free(x->q), free(x->gate), free(x->attention), free(x->conv), free(x->gdn);
    free(x->stash.raw), free(x->stash.k), free(x->stash.v), free(x->stash.gate), free(x->stash.beta);
    for (int i = 0; i < SEQUENCES_MAX * CAPTURES_MAX * 2; i++) free((&x->captured[0][0][0])[i]);
}

typedef void (*comparison)(const char *what, const float *a, const float *b, int64_t count);

static void expect_kv(const world *w, const step_state *a, const step_state *b) {
    assert_memory_equal(a->k, b->k, kv_bytes(w));
    assert_memory_equal(a->v, b->v, kv_bytes(w));
}

/* `loose` compares what exp is involved in. */
static void expect_same_outcome(const world *w, const outcome *a, const outcome *b, comparison loose) {
    const int64_t rows = w->rows;
    expect_kv(w, &a->state, &b->state);
    expect_bits("q", a->q, b->q, rows * w->q_width);
    expect_bits("gate", a->gate, b->gate, rows * w->q_width);
    loose("attention", a->attention, b->attention, rows * w->q_width);
    loose("conv", a->conv, b->conv, rows * w->channels);
    loose("gdn", a->gdn, b->gdn, rows * w->value_width);
    expect_bits("stash raw", a->stash.raw, b->stash.raw, rows * w->channels);
    expect_bits("stash k", a->stash.k, b->stash.k, rows * w->gdn.key_heads * w->gdn.key_dim);
    expect_bits("stash v", a->stash.v, b->stash.v, rows * w->value_width);
    loose("stash gate", a->stash.gate, b->stash.gate, rows * w->gdn.value_heads);
    loose("stash beta", a->stash.beta, b->stash.beta, rows * w->gdn.value_heads);
    for (int i = 0; i < w->sequence_count; i++) {
        loose("recurrent state", a->state.recurrent[i], b->state.recurrent[i], w->recurrent_size);
        expect_bits("conv state", a->state.conv[i], b->state.conv[i], w->conv_size);
    }
    for (int i = 0; i < w->segment_count; i++) {
        for (int c = 0; c < w->segments[i].capture_count; c++) {
            loose("captured recurrent", a->captured[i][c][0], b->captured[i][c][0], w->recurrent_size);
            expect_bits("captured conv", a->captured[i][c][1], b->captured[i][c][1], w->conv_size);
        }
    }
}

static void step_matches_oracle(void **state) {
    (void)state;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        world *w = world_create(round % KINDS);
        step_state initial = state_random(w);
        outcome expected = run(ops_cpu_scalar(), NULL, w, &initial);
        outcome got[VARIANTS_MAX];
        for (int v = 0; v < variant_count; v++) {
            got[v] = run(variants[v], pools[1], w, &initial);
            expect_same_outcome(w, &got[v], &expected, expect_close);
        }
        /* The vector tables share every formula, exp included. */
        if (variant_count == 2) expect_same_outcome(w, &got[0], &got[1], expect_bits);
        for (int v = 0; v < variant_count; v++) outcome_destroy(&got[v]);
        outcome_destroy(&expected);
        state_destroy(&initial);
        world_destroy(w);
    }
}

static void threads_change_nothing(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        world *w = world_create(round % KINDS);
        step_state initial = state_random(w);
        for (int v = 0; v < variant_count; v++) {
            outcome one = run(variants[v], pools[1], w, &initial);
            for (int t = 2; t <= 4; t++) {
                outcome many = run(variants[v], pools[t], w, &initial);
                expect_same_outcome(w, &many, &one, expect_bits);
                outcome_destroy(&many);
            }
            outcome_destroy(&one);
        }
        state_destroy(&initial);
        world_destroy(w);
    }
}

/* ---- the same rows as another step */

static float *gather(const float *from, const int *rows, int count, int width) {
    float *x = floats((int64_t)count * width);
    for (int i = 0; i < count; i++)
        memcpy(x + (int64_t)i * width, from + (int64_t)rows[i] * width, (size_t)width * sizeof *x);
    return x;
}

/* A step of one chain: the given rows of w, in order, on sequence `sequence_index` after `length` tokens. Borrows the rest
 * of w. */
static world chain_of(const world *w, int sequence_index, int length, const int *rows, int count) {
    world c = *w;
    c.rows = count;
    c.segment_count = 1;
    c.segments[0] = (segment){.count = count};
    c.segment_sequence[0] = sequence_index;
    c.length[sequence_index] = length;
    c.qg = gather(w->qg, rows, count, 2 * w->q_width);
    c.k = gather(w->k, rows, count, w->kv_width);
    c.v = gather(w->v, rows, count, w->kv_width);
    c.raw = gather(w->raw, rows, count, w->channels);
    c.mixed = gather(w->mixed, rows, count, w->channels);
    c.a = gather(w->a, rows, count, w->gdn.value_heads);
    c.b = gather(w->b, rows, count, w->gdn.value_heads);
    c.z = gather(w->z, rows, count, w->value_width);
    return c;
}

static void chain_destroy(world *c) {
    free(c->qg), free(c->k), free(c->v), free(c->raw), free(c->mixed), free(c->a), free(c->b), free(c->z);
}

/* Row i of a equals row j of b. */
static void expect_same_row(const world *w, const outcome *a, int i, const outcome *b, int j) {
    const int64_t q = w->q_width, c = w->channels, v = w->value_width;
    expect_bits("row: q", a->q + i * q, b->q + j * q, q);
    expect_bits("row: attention", a->attention + i * q, b->attention + j * q, q);
    expect_bits("row: conv", a->conv + i * c, b->conv + j * c, c);
    expect_bits("row: gdn", a->gdn + i * v, b->gdn + j * v, v);
}

static void expect_same_sequence(const world *w, const step_state *a, const step_state *b, int i) {
    expect_bits("recurrent state", a->recurrent[i], b->recurrent[i], w->recurrent_size);
    expect_bits("conv state", a->conv[i], b->conv[i], w->conv_size);
}

/* A chain of the step, cut in two and without the other sequences. */
static void check_chain_cut(const ops *o, const world *w, const step_state *initial, const outcome *whole, int s) {
    const segment *seg = &w->segments[s];
    int rows[128];
    for (int i = 0; i < seg->count; i++) rows[i] = seg->row + i;
    const int cut = random_int(0, seg->count);
    world first = chain_of(w, s, w->length[s], rows, cut);
    world second = chain_of(w, s, w->length[s] + cut, rows + cut, seg->count - cut);
    if (!cut) first.segment_count = 0;
    if (cut == seg->count) second.segment_count = 0;
    outcome a = run(o, pools[1], &first, initial), b = run(o, pools[3], &second, &a.state);
    for (int i = 0; i < cut; i++) expect_same_row(w, &a, i, whole, seg->row + i);
    for (int i = cut; i < seg->count; i++) expect_same_row(w, &b, i - cut, whole, seg->row + i);
    expect_same_sequence(w, &b.state, &whole->state, s);
    for (int c = 0; c < seg->capture_count; c++) {
        if (w->captures[s][c].after != cut) continue;
        float *const *captured = whole->captured[s][c];
        const int64_t r = w->recurrent_size / LAYERS * LAYER, k = w->conv_size / LAYERS * LAYER;
        expect_bits("captured recurrent", captured[0] + r, a.state.recurrent[s] + r, w->recurrent_size / LAYERS);
        expect_bits("captured conv", captured[1] + k, a.state.conv[s] + k, w->conv_size / LAYERS);
    }
    outcome_destroy(&a), outcome_destroy(&b);
    chain_destroy(&first), chain_destroy(&second);
}

/* A node of a tree, its path run as a chain; and the path committed from the stash. */
static void check_tree_path(const ops *o, const world *w, const step_state *initial, const outcome *whole, int s) {
    const segment *seg = &w->segments[s];
    const int node = random_int(0, seg->count - 1), count = seg->depth[node] + 1;
    int rows[128];
    int32_t path[128];
    for (int i = count - 1, n = node; i >= 0; i--, n = seg->parents[n]) path[i] = rows[i] = seg->row + n;
    world chain = chain_of(w, s, w->length[s], rows, count);
    outcome alone = run(o, pools[2], &chain, initial);
    for (int i = 0; i < count; i++) expect_same_row(w, &alone, i, whole, rows[i]);
    expect_same_sequence(w, &whole->state, initial, s);
    step_state committed = state_copy(w, initial);
    sequence seq = sequence_of(w, &committed, s);
    o->gdn_commit(pools[2], &seq, &w->gdn, LAYER, &whole->stash, path, count);
    expect_same_sequence(w, &committed, &alone.state, s);
    state_destroy(&committed);
    outcome_destroy(&alone);
    chain_destroy(&chain);
}

static void cuts_and_trees_change_nothing(void **state) {
    (void)state;
    for (int round = 0; round < 3 * ROUNDS; round++) {
        world *w = world_create(round % KINDS);
        step_state initial = state_random(w);
        for (int v = -1; v < variant_count; v++) {
            const ops *o = v < 0 ? ops_cpu_scalar() : variants[v];
            outcome whole = run(o, pools[2], w, &initial);
            for (int s = 0; s < w->segment_count; s++)
                (w->segments[s].parents ? check_tree_path : check_chain_cut)(o, w, &initial, &whole, s);
            outcome_destroy(&whole);
        }
        state_destroy(&initial);
        world_destroy(w);
    }
}

/* More scores than one wave holds, so that units are run in several. */
static void long_context(void **state) {
    (void)state;
    world *w = mem_zero(1, sizeof *w);
    random_shapes(w, 1);
    w->attention.heads = 16;
    w->attention.kv_heads = 2;
    w->q_width = 16 * w->attention.head_dim;
    w->kv_width = 2 * w->attention.head_dim;
    w->sequence_count = w->segment_count = 2;
    w->length[0] = 1500 * ROUNDS;
    w->length[1] = 3500 * ROUNDS;
    random_segment(w, 0, true);
    random_segment(w, 1, false);
    random_pages(w);
    random_inputs(w);
    w->attention.inv_freq = w->inv_freq;
    step_state initial = state_random(w);
    outcome last = {0};
    for (int v = 0; v < variant_count; v++) {
        outcome whole = run(variants[v], pools[4], w, &initial);
        check_tree_path(variants[v], w, &initial, &whole, 0);
        check_chain_cut(variants[v], w, &initial, &whole, 1);
        if (v) expect_same_outcome(w, &whole, &last, expect_bits), outcome_destroy(&last);
        last = whole;
    }
    if (variant_count) outcome_destroy(&last);
    state_destroy(&initial);
    world_destroy(w);
}

static void isa_can_be_capped(void **state) {
    (void)state;
    setenv("HEARTH_ISA", "scalar", 1);
    assert_string_equal(ops_cpu_best()->name, "scalar");
    setenv("HEARTH_ISA", "avx2", 1);
    assert_string_not_equal(ops_cpu_best()->name, "avx512");
    unsetenv("HEARTH_ISA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isa_can_be_capped),
        cmocka_unit_test(matmul_matches),
        cmocka_unit_test(matmul_special_weights),
        cmocka_unit_test(rows_match),
        cmocka_unit_test(silu_is_accurate),
        cmocka_unit_test(silu_edges),
        cmocka_unit_test(step_matches_oracle),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(cuts_and_trees_change_nothing),
        cmocka_unit_test(long_context),
    };
    return cmocka_run_group_tests_name("ops", tests, setup, teardown);
}
