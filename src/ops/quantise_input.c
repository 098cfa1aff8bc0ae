/* See quantise_input.h. */
#include "ops/quantise_input.h"

#include <math.h>

#include "format/minifloat.h"

bool input_is_quantised(const matrix *w) {
    return w->form == MATRIX_FP8_BLOCK || (w->form != MATRIX_PLAIN && w->input_scale > 0);
}

static double largest_of(const float *x, int count) {
    double largest = 0;
    for (int i = 0; i < count; i++) {
        double a = fabs((double)x[i]);
        if (isnan(a)) return a;
        if (a > largest) largest = a;
    }
    return largest;
}

/* A block of NVFP4 with a given step; NaN spoils its block, as it does where the scale is computed. */
static void nvfp4_block(float *out, const float *x, double step, uint8_t *codes) {
    for (int i = 0; i < NVFP4_BLOCK; i++) {
        uint8_t code = isnan(step) || step == 0 ? 0 : f64_to_e2m1((double)x[i] / step);
        out[i] = isnan(step) ? NAN : (float)((double)e2m1_to_f32(code) * step);
        if (codes) codes[i] = code;
    }
}

static void fp8_run(float *out, const float *x, int count, double scale, uint8_t *codes) {
    for (int i = 0; i < count; i++) {
        uint8_t code = f64_to_e4m3((double)x[i] / scale);
        out[i] = (float)((double)e4m3_to_f32(code) * scale);
        if (codes) codes[i] = code;
    }
}

void quantise_input_row(float *out, const float *x, const matrix *w, uint8_t *codes, double *scales) {
    HEARTH_ASSERT(input_is_quantised(w));
    int block = w->form == MATRIX_NVFP4 ? NVFP4_BLOCK : w->form == MATRIX_FP8 ? w->cols : FP8_BLOCK;
    for (int k = 0, n = 0; k < w->cols; k += block, n++) {
        int count = w->cols - k < block ? w->cols - k : block;
        uint8_t *to = codes ? codes + k : NULL;
        double scale = w->input_scale;
        if (w->form == MATRIX_NVFP4) {
            scale = (double)e4m3_to_f32(f64_to_e4m3(largest_of(x + k, count) / 6.0 / w->input_scale));
            nvfp4_block(out + k, x + k, scale * w->input_scale, to);
        } else {
            if (w->form == MATRIX_FP8_BLOCK) scale = fmax(largest_of(x + k, count), 1e-10) / 448.0;
            fp8_run(out + k, x + k, count, scale, to);
        }
        if (scales) scales[n] = scale;
    }
}

typedef struct quantise_job {
    float *out;
    const float *x;
    const matrix *w;
} quantise_job;

static void quantise_task(void *context, int row) {
    const quantise_job *job = context;
    size_t at = (size_t)row * (size_t)job->w->cols;
    quantise_input_row(job->out + at, job->x + at, job->w, NULL, NULL);
}

void quantise_input(pool *p, float *out, const float *x, const matrix *w, int rows) {
    quantise_job job = {out, x, w};
    pool_run(p, rows, quantise_task, &job);
}
