/* Norm, residual addition and the gated activation of the scalar oracle. */
#include <math.h>

#include "ops/cpu/ref.h"

void ref_rms_norm(pool *p, float *out, const float *x, const float *scale, int rows, int width, float eps) {
    (void)p;
    for (int r = 0; r < rows; r++, out += width, x += width) {
        float root = sqrtf(ref_dot(x, x, width) / (float)width + eps);
        for (int i = 0; i < width; i++) out[i] = x[i] / root * scale[i];
    }
}

void ref_add(pool *p, float *x, const float *y, int64_t count) {
    (void)p;
    for (int64_t i = 0; i < count; i++) x[i] += y[i];
}

void ref_swiglu(pool *p, float *out, const float *gate, const float *up, int64_t count) {
    (void)p;
    for (int64_t i = 0; i < count; i++) out[i] = ref_silu(gate[i]) * up[i];
}
