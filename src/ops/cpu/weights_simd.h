/* Rows of a weight matrix as registers of fp32, for the matrix products; compiled per instruction set (see simd_avx512.h).
 * A new weight form is one more case in weight, weight_n and the operator's choice of task. */
#ifndef HEARTH_OPS_CPU_WEIGHTS_SIMD_H
#define HEARTH_OPS_CPU_WEIGHTS_SIMD_H

#include "format/minifloat.h"

/* Form and type of a matrix in one number, a constant in every specialised loop. */
typedef enum { WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, WEIGHT_NVFP4, WEIGHT_FP8, WEIGHT_FP8_BLOCK } weight_kind;

SIMD weight_kind weight_kind_of(const matrix *w) {
    if (w->form == MATRIX_NVFP4) return WEIGHT_NVFP4;
    if (w->form == MATRIX_FP8) return WEIGHT_FP8;
    if (w->form == MATRIX_FP8_BLOCK) return WEIGHT_FP8_BLOCK;
    HEARTH_ASSERT(w->type == DTYPE_BF16 || w->type == DTYPE_F16 || w->type == DTYPE_F32);
    return w->type == DTYPE_BF16 ? WEIGHT_BF16 : w->type == DTYPE_F16 ? WEIGHT_F16 : WEIGHT_F32;
}

/* Bytes of count elements of a row, without scales. */
SIMD size_t weight_bytes(weight_kind kind, size_t count) {
    return kind == WEIGHT_F32 ? 4 * count : kind <= WEIGHT_BF16 ? 2 * count : kind == WEIGHT_NVFP4 ? count / 2 : count;
}

/* The rows of a matrix from one row and column on; the column is a multiple of 128, or 0. FP8_BLOCK: up to the end of its
 * row of blocks, so that all rows have the same scales. */
typedef struct weight_rows {
    const char *data, *scales;
    size_t stride, scale_stride; /* bytes from one row to the next */
} weight_rows;

SIMD weight_rows weight_rows_at(weight_kind kind, const matrix *w, int row, size_t k) {
    const size_t cols = (size_t)w->cols, at = (size_t)row;
    weight_rows r = {.stride = weight_bytes(kind, cols), .scales = w->block_scales ? w->block_scales : w->data};
    r.data = (const char *)w->data + at * r.stride + weight_bytes(kind, k);
    if (kind == WEIGHT_NVFP4) {
        r.scale_stride = cols / NVFP4_BLOCK;
        r.scales += at * r.scale_stride + k / NVFP4_BLOCK;
    } else if (kind == WEIGHT_FP8_BLOCK) {
        const size_t across = (cols + FP8_BLOCK - 1) / FP8_BLOCK;
        r.scales += (at / FP8_BLOCK * across + k / FP8_BLOCK) * sizeof(float);
    }
    return r;
}

/* From i rows further on, in the same row of blocks. */
SIMD weight_rows weight_rows_skip(weight_rows r, int i) {
    r.data += (size_t)i * r.stride;
    r.scales += (size_t)i * r.scale_stride;
    return r;
}

SIMD vf weight_block_scale(weight_rows r, size_t k) {
    float scale;
    memcpy(&scale, r.scales + k / FP8_BLOCK * sizeof scale, sizeof scale);
    return v_set(scale);
}

/* Elements k .. k+VL-1 of row i of r; k is a multiple of VL. */
SIMD vf weight(weight_kind kind, weight_rows r, int i, size_t k) {
    const char *at = r.data + (size_t)i * r.stride + weight_bytes(kind, k);
    if (kind == WEIGHT_NVFP4) {
        uint8_t scale = (uint8_t)r.scales[(size_t)i * r.scale_stride + k / NVFP4_BLOCK];
        return v_mul(v_e2m1(at), v_set(e4m3_to_f32(scale)));
    }
    if (kind == WEIGHT_FP8) return v_e4m3(at);
    if (kind == WEIGHT_FP8_BLOCK) return v_mul(v_e4m3(at), weight_block_scale(r, k));
    return widen(kind == WEIGHT_BF16 ? DTYPE_BF16 : kind == WEIGHT_F16 ? DTYPE_F16 : DTYPE_F32, at, 0);
}

/* The same for n elements and zeros. NVFP4 rows have no such end: their length is a multiple of 16. */
SIMD vf weight_n(weight_kind kind, weight_rows r, int i, size_t k, int n) {
    if (n <= 0) return v_zero();
    const char *at = r.data + (size_t)i * r.stride + weight_bytes(kind, k);
    if (kind == WEIGHT_NVFP4) return weight(kind, r, i, k);
    if (kind == WEIGHT_FP8) return v_e4m3_n(at, n);
    if (kind == WEIGHT_FP8_BLOCK) return v_mul(v_e4m3_n(at, n), weight_block_scale(r, k));
    return widen_n(kind == WEIGHT_BF16 ? DTYPE_BF16 : kind == WEIGHT_F16 ? DTYPE_F16 : DTYPE_F32, at, 0, n);
}

/* out[0..count) = the first elements of a row, then zeros up to `padded`. */
SIMD void weight_elements(weight_kind kind, weight_rows r, float *out, int count, int padded) {
    int j = 0;
    for (; j + VL <= count; j += VL) v_store(out + j, weight(kind, r, 0, (size_t)j));
    for (; j < padded; j += VL) v_store_n(out + j, weight_n(kind, r, 0, (size_t)j, count - j), padded - j);
}

/* Elements k .. k+count-1 of a row of the matrix. */
static inline void weight_row(weight_kind kind, const matrix *w, float *out, int row, size_t k, int count, int padded) {
    switch (kind) {
        case WEIGHT_NVFP4:
            weight_elements(WEIGHT_NVFP4, weight_rows_at(WEIGHT_NVFP4, w, row, k), out, count, padded);
            break;
        case WEIGHT_FP8:
            weight_elements(WEIGHT_FP8, weight_rows_at(WEIGHT_FP8, w, row, k), out, count, padded);
            break;
        case WEIGHT_FP8_BLOCK:
            weight_elements(WEIGHT_FP8_BLOCK, weight_rows_at(WEIGHT_FP8_BLOCK, w, row, k), out, count, padded);
            break;
        default:
            widen_row(w->type, out, (const char *)w->data + (size_t)row * weight_bytes(kind, (size_t)w->cols), k, count,
                      padded);
            break;
    }
}

#endif
