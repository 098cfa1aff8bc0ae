/* Binding a matrix in whichever layout the checkpoint stores it. What is there decides, tensor by tensor:
 *
 *   X.weight BF16, F16, F32                                                              plain
 *   X.weight U8 [N, K/2], X.weight_scale E4M3 [N, K/16], X.weight_scale_2                NVFP4 (ModelOpt)
 *   X.weight_packed U8 [N, K/2], X.weight_scale E4M3 [N, K/16], X.weight_global_scale    NVFP4 (compressed-tensors); the
 *                                                                                        global scale is a divisor
 *   X.weight E4M3 [N, K], X.weight_scale                                                 FP8, one scale (ModelOpt)
 *   X.weight E4M3 [N, K], X.weight_scale_inv BF16 or F32 [ceil N/128, ceil K/128]        FP8 in blocks
 *
 * Beside them X.input_scale (ModelOpt) or X.input_global_scale (a divisor again) say how the layer's input was meant to be
 * quantised. They are kept in the matrix, except where the configuration calls the layer W4A16: then the number is a
 * left-over of calibration and using it would be a mistake. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/minifloat.h"
#include "model/binder.h"
#include "ops/quantise_input.h"

typedef struct module {
    const char *prefix, *name;
    int rows, cols;
} module;

static const tensor *find_part(binder *b, const module *m, const char *part) {
    char name[BINDER_NAME_MAX];
    snprintf(name, sizeof name, "%s%s", m->name, part);
    return binder_find(b, m->prefix, name);
}

/* One of the numbers that belong to a packed matrix; `missing` adds a problem when it is not there. */
static float scale_part(binder *b, const module *m, const char *part, bool missing) {
    char name[BINDER_NAME_MAX];
    snprintf(name, sizeof name, "%s%s", m->name, part);
    float value = binder_scale(b, m->prefix, name, 0);
    if (value == 0 && missing) {
        binder_problem(b, "%s%s is missing", m->prefix, name);
        return 1;
    }
    return value;
}

static bool expect_shape(binder *b, const tensor *t, int64_t rows, int64_t cols) {
    char is[64], want[64];
    if (t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols) return true;
    binder_shape_text(is, t->shape, t->rank);
    binder_shape_text(want, (int64_t[]){rows, cols}, 2);
    binder_problem(b, "%s is %s, must be %s", t->name, is, want);
    return false;
}

static bool expect_type(binder *b, const tensor *t, dtype type) {
    if (t->type == type) return true;
    binder_problem(b, "%s has dtype %s, must be %s", t->name, dtype_name(t->type), dtype_name(type));
    return false;
}

/* codes [rows, cols / 2] with block scales [rows, cols / 16]; the global scale is the caller's. */
static bool bind_nvfp4(binder *b, const module *m, const tensor *codes, matrix *out) {
    const tensor *scales = find_part(b, m, ".weight_scale");
    if (!scales) {
        binder_problem(b, "%s%s.weight_scale is missing", m->prefix, m->name);
        return false;
    }
    if (m->cols % NVFP4_BLOCK) {
        binder_problem(b, "%s: rows of %d are not whole blocks of %d", codes->name, m->cols, NVFP4_BLOCK);
        return false;
    }
    bool good = expect_type(b, codes, DTYPE_U8);
    good &= expect_type(b, scales, DTYPE_F8_E4M3);
    good &= expect_shape(b, codes, m->rows, m->cols / 2);
    good &= expect_shape(b, scales, m->rows, m->cols / NVFP4_BLOCK);
    *out = (matrix){.type = DTYPE_U8,
                    .rows = m->rows,
                    .cols = m->cols,
                    .data = codes->data,
                    .form = MATRIX_NVFP4,
                    .block_scales = scales->data};
    b->bytes += codes->bytes + scales->bytes;
    return good;
}

static bool bind_modelopt_nvfp4(binder *b, const module *m, const tensor *codes, matrix *out) {
    bool good = bind_nvfp4(b, m, codes, out);
    out->scale = scale_part(b, m, ".weight_scale_2", true);
    out->input_scale = (double)scale_part(b, m, ".input_scale", false);
    return good;
}

static bool bind_compressed(binder *b, const module *m, const tensor *codes, matrix *out) {
    bool good = bind_nvfp4(b, m, codes, out);
    float input = scale_part(b, m, ".input_global_scale", false);
    out->scale = 1.0f / scale_part(b, m, ".weight_global_scale", true);
    out->input_scale = input > 0 ? 1.0 / (double)input : 0;
    return good;
}

/* Scales of any float type become fp32: there are few. */
static bool bind_fp8_blocks(binder *b, const module *m, const tensor *codes, const tensor *scales, matrix *out) {
    bool good = expect_shape(b, scales, (m->rows + FP8_BLOCK - 1) / FP8_BLOCK, (m->cols + FP8_BLOCK - 1) / FP8_BLOCK);
    if (scales->type != DTYPE_BF16 && scales->type != DTYPE_F16 && scales->type != DTYPE_F32) {
        binder_problem(b, "%s has dtype %s (known: BF16, F16, F32)", scales->name, dtype_name(scales->type));
        return false;
    }
    if (!good) return false;
    out->form = MATRIX_FP8_BLOCK;
    out->block_scales = binder_vector(b, scales);
    b->bytes += codes->bytes + scales->count * sizeof(float);
    return true;
}

static bool bind_fp8(binder *b, const module *m, const tensor *codes, matrix *out) {
    const tensor *blocks = find_part(b, m, ".weight_scale_inv");
    bool good = expect_shape(b, codes, m->rows, m->cols);
    *out = (matrix){
        .type = DTYPE_F8_E4M3, .rows = m->rows, .cols = m->cols, .data = codes->data, .form = MATRIX_FP8, .scale = 1};
    if (blocks) return bind_fp8_blocks(b, m, codes, blocks, out) && good;
    out->scale = scale_part(b, m, ".weight_scale", true);
    out->input_scale = (double)scale_part(b, m, ".input_scale", false);
    b->bytes += codes->bytes;
    return good;
}

static bool bind_plain(binder *b, const module *m, matrix *out) {
    char name[BINDER_NAME_MAX];
    snprintf(name, sizeof name, "%s.weight", m->name);
    const tensor *t = binder_need(b, m->prefix, name, (int64_t[]){m->rows, m->cols}, 2);
    if (t) *out = (matrix){.type = t->type, .rows = m->rows, .cols = m->cols, .data = t->data};
    return t != NULL;
}

/* The configuration may only be noted: what is stored is what runs. */
static void compare_with_config(binder *b, const char *module_name, matrix *w) {
    quant_algo says = quant_config_of(b->quant, module_name);
    bool fits;
    switch (w->form) {
        case MATRIX_NVFP4:
            fits = says == QUANT_NVFP4 || says == QUANT_W4A16_NVFP4;
            break;
        case MATRIX_FP8:
            fits = says == QUANT_FP8;
            break;
        case MATRIX_FP8_BLOCK:
            fits = says == QUANT_FP8_BLOCK;
            break;
        default:
            fits = says == QUANT_NONE;
    }
    if (says == QUANT_W4A16_NVFP4) w->input_scale = 0;
    b->quantised_inputs += input_is_quantised(w);
    if (!fits && b->misfits++ == 0) snprintf(b->misfit, sizeof b->misfit, "%.200s", module_name);
}

/* A global scale stored as its reciprocal gives weights of thousands. */
static void check_size(binder *b, const char *name, const matrix *w) {
    const double code_max = w->form == MATRIX_NVFP4 ? 6.0 * 448.0 : 448.0, size_max = 1000;
    if ((w->form == MATRIX_NVFP4 || w->form == MATRIX_FP8) && (double)w->scale * code_max > size_max)
        binder_warn(b, "%s: its scale %g allows weights up to %g: is it stored as its reciprocal?", name,
                    (double)w->scale, (double)w->scale * code_max);
}

bool binder_has_matrix(const binder *b, const char *prefix, const char *module_name) {
    char plain[2 * BINDER_NAME_MAX], packed[2 * BINDER_NAME_MAX];
    snprintf(plain, sizeof plain, "%s%s.weight", prefix, module_name);
    snprintf(packed, sizeof packed, "%s%s.weight_packed", prefix, module_name);
    return checkpoint_find(b->ckpt, plain) || checkpoint_find(b->ckpt, packed);
}

static matrix bind(binder *b, const module *m, bool packed_too, matrix_role role) {
    char name[2 * BINDER_NAME_MAX];
    matrix w = {0};
    bool good;
    const tensor *packed = packed_too ? find_part(b, m, ".weight_packed") : NULL;
    const tensor *t = packed ? packed : find_part(b, m, ".weight");
    if (packed)
        good = bind_compressed(b, m, packed, &w);
    else if (t && packed_too && t->type == DTYPE_U8)
        good = bind_modelopt_nvfp4(b, m, t, &w);
    else if (t && packed_too && t->type == DTYPE_F8_E4M3)
        good = bind_fp8(b, m, t, &w);
    else
        good = bind_plain(b, m, &w);
    if (!good) return (matrix){0};
    if (packed_too) {
        snprintf(name, sizeof name, "%s%s", m->prefix, m->name);
        compare_with_config(b, name, &w);
        check_size(b, name, &w);
    }
    weight_check(b, t->name, &w, role);
    return w;
}

matrix binder_matrix(binder *b, const char *prefix, const char *name, int rows, int cols, matrix_role role) {
    return bind(b, &(module){prefix, name, rows, cols}, true, role);
}

matrix binder_plain_matrix(binder *b, const char *prefix, const char *name, int rows, int cols, matrix_role role) {
    return bind(b, &(module){prefix, name, rows, cols}, false, role);
}
