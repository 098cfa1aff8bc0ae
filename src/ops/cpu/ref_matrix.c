/* Embedding rows and matrix products of the scalar oracle. */
#include <stdlib.h>

#include "base/memory.h"
#include "format/minifloat.h"
#include "ops/cpu/ref.h"

void ref_embed(pool *p, float *out, const matrix *table, const int32_t *ids, int rows) {
    (void)p;
    HEARTH_ASSERT(table->form == MATRIX_PLAIN);
    for (int r = 0; r < rows; r++)
        ref_widen(out + (int64_t)r * table->cols, table->type, table->data, (int64_t)ids[r] * table->cols, table->cols);
}

/* The numbers of one row that take part in the sum. */
static void widen_weights(float *out, const matrix *w, int row) {
    const uint8_t *codes = (const uint8_t *)w->data + (int64_t)row * (w->form == MATRIX_NVFP4 ? w->cols / 2 : w->cols);
    if (w->form == MATRIX_PLAIN) {
        ref_widen(out, w->type, w->data, (int64_t)row * w->cols, w->cols);
    } else if (w->form == MATRIX_NVFP4) {
        const uint8_t *scales = (const uint8_t *)w->block_scales + (int64_t)row * (w->cols / NVFP4_BLOCK);
        for (int k = 0; k < w->cols; k++)
            out[k] = e2m1_to_f32(e2m1_code(codes, k)) * e4m3_to_f32(scales[k / NVFP4_BLOCK]);
    } else if (w->form == MATRIX_FP8) {
        for (int k = 0; k < w->cols; k++) out[k] = e4m3_to_f32(codes[k]);
    } else {
        int across = (w->cols + FP8_BLOCK - 1) / FP8_BLOCK;
        const float *scales = (const float *)w->block_scales + (int64_t)(row / FP8_BLOCK) * across;
        for (int k = 0; k < w->cols; k++) out[k] = e4m3_to_f32(codes[k]) * scales[k / FP8_BLOCK];
    }
}

/* One row of W is widened once and meets every row of x: the order inside a dot product does not depend on `rows`. */
void ref_matmul(pool *p, float *out, const float *x, const matrix *w, int rows) {
    (void)p;
    bool scaled = w->form == MATRIX_NVFP4 || w->form == MATRIX_FP8;
    float *wide = mem_alloc((size_t)w->cols * sizeof *wide);
    for (int n = 0; n < w->rows; n++) {
        widen_weights(wide, w, n);
        for (int r = 0; r < rows; r++) {
            float sum = ref_dot(wide, x + (int64_t)r * w->cols, w->cols);
            out[(int64_t)r * w->rows + n] = scaled ? w->scale * sum : sum;
        }
    }
    free(wide);
}
