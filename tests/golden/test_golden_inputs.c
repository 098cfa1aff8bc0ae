/* Quantised inputs against the reference: codes, scales and products of single layers, where every number is settled; and
 * the logits of short prompts through the whole model, which mostly escape the chaos that one flipped code starts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/minifloat.h"
#include "golden_files.h"
#include "model/binder.h"
#include "model_lab.h"
#include "ops/quantise_input.h"
#include "support.h"

enum { ROWS = 4, SHORT_PROMPTS = 4, SHORT_PROMPTS_EQUAL = 2, IDS_MAX = 8 };

static const char *const CASES[] = {"tiny-b-nvfp4", "tiny-b-mixed", "tiny-b-ct",
                                    "tiny-b-fp8",   "mini-nvfp4",   "mini-spec-nvfp4"};

typedef struct quant_case {
    const char *ckpt;
    char dir[1024]; /* of the golden numbers */
    json_file info;
    error err;
} quant_case;

static bool open_case(quant_case *c, const char *name) {
    char relative[256];
    *c = (quant_case){.ckpt = golden_checkpoint(name)};
    snprintf(relative, sizeof relative, "oracle/golden/%s/quant", name);
    const char *dir = test_need_shared(relative);
    if (!c->ckpt || !dir) return false;
    snprintf(c->dir, sizeof c->dir, "%s", dir);
    c->info = json_load(c->dir, "golden.json");
    return true;
}

static npy load_part(const quant_case *c, const json *linear, const char *part) {
    char file[128];
    span files = golden_get(linear, "files")->text;
    snprintf(file, sizeof file, "%.*s_%s.npy", (int)files.size, files.data, part);
    return npy_load(c->dir, file);
}

/* Zero has two codes. */
static void expect_codes(const matrix *w, const uint8_t *codes, const npy *want, const char *name) {
    bool packed = w->form == MATRIX_NVFP4;
    for (int i = 0; i < ROWS * w->cols; i++) {
        int sign = packed ? 8 : 0x80, is = codes[i];
        int should = packed ? e2m1_code(want->data, i) : ((const uint8_t *)want->data)[i];
        if (is == should || ((is | should) & ~sign) == 0) continue;
        fail_msg("%s: code %d of row %d is %#x, golden %#x", name, i % w->cols, i / w->cols, (unsigned)is,
                 (unsigned)should);
    }
}

static void expect_scales(const matrix *w, const double *scales, int blocks, const npy *want, const char *name) {
    for (int i = 0; w->form != MATRIX_FP8 && i < ROWS * blocks; i++) {
        double should = w->form == MATRIX_NVFP4 ? (double)e4m3_to_f32(((const uint8_t *)want->data)[i])
                                                : (double)((const float *)want->data)[i];
        if (!(fabs(scales[i] - should) <= 1e-6 * should))
            fail_msg("%s: scale %d is %.9g, golden %.9g", name, i, scales[i], should);
    }
}

static double expect_products(const ops *table, const matrix *w, const float *x, const npy *want) {
    float *y = lab_floats((int64_t)ROWS * w->rows);
    double largest = 0, worst = 0;
    table->matmul(NULL, y, x, w, ROWS);
    for (int i = 0; i < ROWS * w->rows; i++) {
        double should = (double)((const float *)want->data)[i];
        largest = fmax(largest, fabs(should));
        worst = fmax(worst, fabs((double)y[i] - should));
    }
    free(y);
    assert_true(worst <= 1e-3 * largest);
    return worst / largest;
}

static double check_linear(quant_case *c, binder *b, const json *linear) {
    char name[256];
    span module = golden_get(linear, "name")->text;
    snprintf(name, sizeof name, "%.*s", (int)module.size, module.data);
    matrix w = binder_matrix(b, "", name, (int)golden_integer(linear, "out"), (int)golden_integer(linear, "in"),
                             MATRIX_OF_VOCABULARY);
    assert_int_equal(b->problem_count, 0);
    assert_true(input_is_quantised(&w));
    npy x = load_part(c, linear, "x"), codes_want = load_part(c, linear, "codes"), y = load_part(c, linear, "y");
    npy scales_want = w.form == MATRIX_FP8 ? (npy){.rank = 0} : load_part(c, linear, "scales");
    int block = w.form == MATRIX_NVFP4 ? NVFP4_BLOCK : FP8_BLOCK, blocks = (w.cols + block - 1) / block;
    float *rounded = lab_floats((int64_t)ROWS * w.cols);
    uint8_t *codes = mem_zero((size_t)(ROWS * w.cols), 1);
    double *scales = mem_zero((size_t)(ROWS * blocks), sizeof *scales);
    for (int r = 0; r < ROWS; r++)
        quantise_input_row(rounded + r * w.cols, npy_row(&x, r), &w, codes + r * w.cols,
                           w.form == MATRIX_FP8 ? NULL : scales + r * blocks);
    expect_codes(&w, codes, &codes_want, name);
    expect_scales(&w, scales, blocks, &scales_want, name);
    double worst =
        fmax(expect_products(ops_cpu_scalar(), &w, rounded, &y), expect_products(ops_cpu_best(), &w, rounded, &y));
    npy_free(&x), npy_free(&codes_want), npy_free(&y), npy_free(&scales_want);
    free(rounded), free(codes), free(scales);
    return worst;
}

static void test_linears(void **state) {
    quant_case c;
    error err;
    binder b = {.memory = arena_create()};
    checkpoint *ckpt = NULL;
    quant_config *quant = NULL;
    double worst = 0;
    int count = 0;
    if (!open_case(&c, *state)) {
        arena_destroy(b.memory);
        skip();
    }
    if (checkpoint_open(c.ckpt, &ckpt, &err) || quant_config_read(c.ckpt, &quant, &err)) fail_msg("%s", err.message);
    b.ckpt = ckpt;
    b.quant = quant;
    b.used = mem_zero((size_t)checkpoint_count(ckpt), sizeof *b.used);
    for (const json *l = golden_get(c.info.root, "linears")->first; l; l = l->next, count++)
        worst = fmax(worst, check_linear(&c, &b, l));
    print_message("%-15s %d linears: codes and scales equal, products within %.2g of the largest\n",
                  (const char *)*state, count, worst);
    free(b.used);
    buffer_deinit(&b.problems);
    arena_destroy(b.memory);
    quant_config_free(quant);
    checkpoint_close(ckpt);
    json_file_free(&c.info);
}

/* FP8 KV cache, as the reference's mode says. */
static void test_prompts(void **state) {
    quant_case c;
    if (!open_case(&c, *state)) skip();
    lab l;
    int equal = 0, index = 0;
    npy last = npy_load(c.dir, "logits_last.npy");
    lab_open(&l, c.ckpt, &(lab_place){.kv_type = DTYPE_F8_E4M3, .activations = ACTIVATIONS_QUANTISED}, 16, 8);
    float *row = lab_floats(l.c->vocab_rows);
    print_message("%-15s", (const char *)*state);
    for (const json *p = golden_get(c.info.root, "prompts")->first; index < SHORT_PROMPTS; p = p->next, index++) {
        int32_t ids[IDS_MAX];
        int count = golden_ints(p, "ids", ids, IDS_MAX);
        agent a = lab_agent(&l, 16);
        double worst = 0;
        lab_chain(&l, &a, ids, count, count - 1, row, NULL);
        for (int i = 0; i < l.c->vocab_rows; i++)
            worst = fmax(worst, fabs((double)row[i] - (double)npy_row(&last, golden_integer(p, "last_row"))[i]));
        equal += worst <= 1e-3;
        print_message(" %d tokens: %.2g", count, worst);
        agent_free(&a);
    }
    print_message("\n");
    assert_true(equal >= SHORT_PROMPTS_EQUAL);
    free(row);
    npy_free(&last);
    lab_close(&l);
    json_file_free(&c.info);
}

/* A checkpoint that quantises no inputs is not run as if it did. */
static void test_refused(void **state) {
    (void)state;
    error err = {0};
    model *m;
    const model_options options = {.activations = ACTIVATIONS_QUANTISED};
    assert_int_equal(model_open("tests/golden/small", &options, &m, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the checkpoint (none) quantises none"));
}

int main(void) {
    enum { CASE_COUNT = sizeof CASES / sizeof *CASES };
    struct CMUnitTest tests[2 * CASE_COUNT + 1];
    for (int i = 0; i < CASE_COUNT; i++) {
        tests[i] = (struct CMUnitTest){CASES[i], test_linears, NULL, NULL, (void *)CASES[i]};
        tests[CASE_COUNT + i] = (struct CMUnitTest){CASES[i], test_prompts, NULL, NULL, (void *)CASES[i]};
    }
    tests[2 * CASE_COUNT] = (struct CMUnitTest)cmocka_unit_test(test_refused);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
