/* The arithmetic that the oracle's operators share.
 *
 * The two inner loops are compiled twice: with the FMA instruction where the CPU has it, and with libm's fmaf elsewhere.
 * Both give the same bits, since a fused multiply-add is exactly rounded; the second is merely slow. */
#include <math.h>

#include "ops/cpu/ref.h"

#define INLINE static inline __attribute__((always_inline))

float ref_sum_lanes(const float lane[16]) {
    float s[8];
    for (int i = 0; i < 8; i++) s[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++) s[i] = s[i] + s[i + 4];
    for (int i = 0; i < 2; i++) s[i] = s[i] + s[i + 2];
    return s[0] + s[1];
}

INLINE float dot_body(const float *a, const float *b, int count) {
    float lane[16] = {0};
    int k = 0;
    for (; k + 16 <= count; k += 16)
        for (int i = 0; i < 16; i++) lane[i] = fmaf(a[k + i], b[k + i], lane[i]);
    if (k < count) { /* the tail, padded with zeros */
        float tail_a[16] = {0}, tail_b[16] = {0};
        for (int i = 0; k + i < count; i++) tail_a[i] = a[k + i], tail_b[i] = b[k + i];
        for (int i = 0; i < 16; i++) lane[i] = fmaf(tail_a[i], tail_b[i], lane[i]);
    }
    return ref_sum_lanes(lane);
}

INLINE void axpy_body(float *restrict acc, float x, const float *restrict row, int count) {
    for (int i = 0; i < count; i++) acc[i] = fmaf(x, row[i], acc[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float dot_fma(const float *a, const float *b, int count) {
    return dot_body(a, b, count);
}
__attribute__((target("avx2,fma"))) static void axpy_fma(float *acc, float x, const float *row, int count) {
    axpy_body(acc, x, row, count);
}
static int has_fma(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define dot_fma dot_body
#define axpy_fma axpy_body
static int has_fma(void) { return 0; }
#endif

float ref_dot(const float *a, const float *b, int count) {
    return has_fma() ? dot_fma(a, b, count) : dot_body(a, b, count);
}

void ref_axpy(float *acc, float x, const float *row, int count) {
    if (has_fma())
        axpy_fma(acc, x, row, count);
    else
        axpy_body(acc, x, row, count);
}

float ref_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

float ref_silu(float x) { return x * ref_sigmoid(x); }

/* log(1 + e^x); past 20 it is x to the last bit, and e^x would overflow soon after. */
float ref_softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

/* Weights may lie unaligned in a mapped file, hence memcpy. */
void ref_widen(float *out, dtype type, const void *data, int64_t first, int count) {
    if (type == DTYPE_F32) {
        memcpy(out, (const char *)data + 4 * first, 4 * (size_t)count);
        return;
    }
    HEARTH_ASSERT(type == DTYPE_BF16 || type == DTYPE_F16);
    const char *from = (const char *)data + 2 * first;
    for (int i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, 2);
        out[i] = type == DTYPE_BF16 ? bf16_to_f32(h) : f16_to_f32(h);
    }
}
