/* Quantising the input of a layer as its checkpoint means it (W4A4, W8A8), for measuring what that costs. The input is
 * rounded to codes and back to fp32, so that the product itself is the ordinary one.
 *
 *   NVFP4       blocks of 16: scale = E4M3(largest / 6 / input_scale), code = E2M1(x / (scale * input_scale));
 *               a block whose scale rounds to zero is zero
 *   FP8         code = E4M3(x / input_scale)
 *   FP8_BLOCK   blocks of 128, scale = max(largest, 1e-10) / 448 of this row, code = E4M3(x / scale)
 *
 * All in double, rounded to fp32 once at the end. One implementation for all tables; a row depends on itself alone. */
#ifndef HEARTH_OPS_QUANTISE_INPUT_H
#define HEARTH_OPS_QUANTISE_INPUT_H

#include "ops/ops.h"

/* Whether the checkpoint quantises the inputs of w. */
bool input_is_quantised(const matrix *w);

/* One row x [w->cols] of an input that is quantised: out [w->cols], may be x. codes [w->cols], one a byte, and scales
 * [blocks] (NVFP4: values of the E4M3 scales; FP8_BLOCK: scales) may be NULL. */
void quantise_input_row(float *out, const float *x, const matrix *w, uint8_t *codes, double *scales);

/* out[rows, w->cols]; x may be out. */
void quantise_input(pool *p, float *out, const float *x, const matrix *w, int rows);

#endif
