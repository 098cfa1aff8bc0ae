/* Matrix products with packed weights: the scalar oracle against plain sums in double precision, the vector kernels
 * against the oracle bit for bit, on every shape of tile and whatever the number of rows. HEARTH_SEED repeats a run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "format/minifloat.h"
#include "ops/ops.h"
#include "support.h"

static uint64_t seed, rng;
static const ops *variants[2];
static int variant_count;
static pool *workers;

static uint32_t random_bits(void) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (uint32_t)(rng >> 32);
}
static int random_int(int low, int high) { return low + (int)(random_bits() % (uint32_t)(high - low + 1)); }
static float random_float(void) { return (float)random_bits() / 2147483648.0f - 1.0f; }

static int setup(void **state) {
    (void)state;
    static const char *const names[] = {"avx2", "avx512"};
    const char *given = getenv("HEARTH_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_ns();
    rng = seed * 0x9e3779b97f4a7c15u | 1;
    print_message("HEARTH_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < 2; i++) {
        setenv("HEARTH_ISA", names[i], 1);
        const ops *best = ops_cpu_best();
        if (strcmp(best->name, names[i]) == 0)
            variants[variant_count++] = best;
        else
            print_message("skip: this CPU does not run the %s kernels\n", names[i]);
        unsetenv("HEARTH_ISA");
    }
    return pool_create(3, &workers, NULL) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    pool_destroy(workers);
    return 0;
}

/* A matrix whose memory starts at an odd address, as in a mapped file. */
typedef struct packed {
    matrix w;
    char *codes;
    void *scales;
} packed;

static packed random_packed(matrix_form form, int rows, int cols) {
    packed p = {.w = {.form = form, .rows = rows, .cols = cols, .scale = 1}};
    int64_t bytes = (int64_t)rows * (form == MATRIX_NVFP4 ? cols / 2 : cols), scales;
    p.codes = mem_alloc((size_t)bytes + 1);
    for (int64_t i = 1; i <= bytes; i++) {
        p.codes[i] = (char)random_bits();
        if (form != MATRIX_NVFP4 && (p.codes[i] & 0x7f) == 0x7f) p.codes[i] = 0;
    }
    p.w.type = form == MATRIX_NVFP4 ? DTYPE_U8 : DTYPE_F8_E4M3;
    p.w.data = p.codes + 1;
    if (form == MATRIX_FP8_BLOCK) {
        scales = (int64_t)((rows + 127) / 128) * ((cols + 127) / 128);
        float *to = p.scales = mem_alloc((size_t)scales * sizeof *to);
        for (int64_t i = 0; i < scales; i++) to[i] = 0.001f + fabsf(random_float());
        p.w.block_scales = to;
    } else {
        p.w.scale = fabsf(random_float()) * 0.01f + 1e-4f;
    }
    if (form == MATRIX_NVFP4) {
        scales = (int64_t)rows * cols / 16;
        uint8_t *to = p.scales = mem_alloc((size_t)scales + 1);
        for (int64_t i = 1; i <= scales; i++) to[i] = (uint8_t)random_int(0, 0x7e);
        p.w.block_scales = to + 1;
    }
    return p;
}

static void packed_free(packed *p) { free(p->codes), free(p->scales); }

/* The number that a code stands for, from the definition of the layout. */
static double element(const matrix *w, int n, int k) {
    const uint8_t *codes = w->data;
    int64_t at = (int64_t)n * w->cols + k;
    if (w->form == MATRIX_NVFP4) {
        static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
        int code = k % 2 ? codes[at / 2] >> 4 : codes[at / 2] & 15;
        double scale = e4m3_to_f32(((const uint8_t *)w->block_scales)[at / 16]);
        return (code & 8 ? -1 : 1) * values[code & 7] * scale * (double)w->scale;
    }
    double value = e4m3_to_f32(codes[at]);
    if (w->form == MATRIX_FP8) return value * (double)w->scale;
    return value * (double)((const float *)w->block_scales)[n / 128 * ((w->cols + 127) / 128) + k / 128];
}

static void expect_sums(const matrix *w, const float *x, const float *got, int rows) {
    for (int r = 0; r < rows; r++) {
        for (int n = 0; n < w->rows; n++) {
            double sum = 0, size = 0;
            for (int k = 0; k < w->cols; k++) {
                double term = element(w, n, k) * (double)x[(int64_t)r * w->cols + k];
                sum += term, size += fabs(term);
            }
            double is = (double)got[(int64_t)r * w->rows + n];
            if (!(fabs(is - sum) <= size * 1e-6))
                fail_msg("form %d [%d, %d]: output [%d, %d] is %.9g, should be %.9g (HEARTH_SEED=%llu)", (int)w->form,
                         w->rows, w->cols, r, n, is, sum, (unsigned long long)seed);
        }
    }
}

static void expect_bits(const ops *table, const matrix *w, const float *got, const float *want, int rows) {
    for (int64_t i = 0; i < (int64_t)rows * w->rows; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0 && got[i] != want[i])
            fail_msg("%s form %d [%d, %d] x %d rows: output %lld is %.9g, the oracle's %.9g (HEARTH_SEED=%llu)",
                     table->name, (int)w->form, w->rows, w->cols, rows, (long long)i, (double)got[i], (double)want[i],
                     (unsigned long long)seed);
}

static void check(matrix_form form, int n, int k, int rows) {
    packed p = random_packed(form, n, k);
    float *x = mem_alloc((size_t)(rows * k) * sizeof *x), *want = mem_alloc((size_t)(rows * n) * sizeof *want);
    float *got = mem_alloc((size_t)(rows * n) * sizeof *got);
    for (int i = 0; i < rows * k; i++) x[i] = random_float();
    ops_cpu_scalar()->matmul(NULL, want, x, &p.w, rows);
    expect_sums(&p.w, x, want, rows);
    for (int v = 0; v < variant_count; v++) {
        variants[v]->matmul(workers, got, x, &p.w, rows);
        expect_bits(variants[v], &p.w, got, want, rows);
        const int first = random_int(0, rows - 1), count = random_int(1, rows - first);
        variants[v]->matmul(NULL, got, x + (int64_t)first * k, &p.w, count);
        expect_bits(variants[v], &p.w, got, want + (int64_t)first * n, count);
    }
    packed_free(&p);
    free(x), free(want), free(got);
}

static const int shapes[][3] = {
    {1, 16, 1},     {7, 16, 2},     {8, 32, 3},    {9, 112, 4},   {130, 128, 1}, {48, 768, 9},
    {49, 784, 5},   {257, 144, 8},  {64, 1552, 3}, {137, 256, 9}, {33, 800, 66}, {260, 272, 12},
    {40, 1104, 24}, {41, 1168, 25}, {17, 640, 6},  {19, 1040, 7},
};

static void nvfp4_products(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(MATRIX_NVFP4, shapes[i][0], shapes[i][1], shapes[i][2]);
    for (int i = 0; i < 20; i++) check(MATRIX_NVFP4, random_int(1, 150), 16 * random_int(1, 60), random_int(1, 14));
}

/* Their rows may end anywhere. */
static void fp8_products(void **state) {
    (void)state;
    for (int form = MATRIX_FP8; form <= MATRIX_FP8_BLOCK; form++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            check((matrix_form)form, shapes[i][0], shapes[i][1], shapes[i][2]);
            check((matrix_form)form, shapes[i][0], shapes[i][1] - random_int(1, 15), shapes[i][2]);
        }
        for (int i = 0; i < 20; i++)
            check((matrix_form)form, random_int(1, 300), random_int(1, 900), random_int(1, 14));
    }
}

/* One row for every code: the kernels know all of them, at every place of a block. */
static void all_codes(void **state) {
    (void)state;
    uint8_t fp8[256 * 40] = {0}, fp4[256 * 8], scales[256];
    float x[40], want[256], got[256];
    for (int place = 0; place < 40; place++) {
        memset(fp8, 0, sizeof fp8);
        memset(x, 0, sizeof x);
        x[place] = 1;
        for (int c = 0; c < 256; c++) fp8[c * 40 + place] = (c & 0x7f) == 0x7f ? 0 : (uint8_t)c;
        matrix w = {.type = DTYPE_F8_E4M3, .form = MATRIX_FP8, .rows = 256, .cols = 40, .data = fp8, .scale = 1};
        for (int c = 0; c < 256; c++) want[c] = e4m3_to_f32((c & 0x7f) == 0x7f ? 0 : (uint8_t)c);
        for (int v = 0; v < variant_count; v++) {
            variants[v]->matmul(NULL, got, x, &w, 1);
            expect_bits(variants[v], &w, got, want, 1);
        }
    }
    for (int place = 0; place < 16; place++) {
        memset(x, 0, sizeof x);
        x[place] = 1;
        for (int c = 0; c < 256; c++) {
            memset(fp4 + c * 8, c % 16 * 17, 8);
            scales[c] = (uint8_t)(c / 16 * 8);
            want[c] = e2m1_to_f32((uint8_t)(c % 16)) * e4m3_to_f32(scales[c]);
        }
        matrix w = {.type = DTYPE_U8,
                    .form = MATRIX_NVFP4,
                    .rows = 256,
                    .cols = 16,
                    .data = fp4,
                    .block_scales = scales,
                    .scale = 1};
        for (int v = 0; v < variant_count; v++) {
            variants[v]->matmul(NULL, got, x, &w, 1);
            expect_bits(variants[v], &w, got, want, 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvfp4_products),
        cmocka_unit_test(fp8_products),
        cmocka_unit_test(all_codes),
    };
    return cmocka_run_group_tests_name("packed", tests, setup, teardown);
}
