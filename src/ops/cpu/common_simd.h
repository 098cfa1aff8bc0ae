/* What the kernels share, on top of the register layer (included before this file): sums of 16 lanes, dot products,
 * widened loads, norms and the exponential family. */
#ifndef HEARTH_OPS_CPU_COMMON_SIMD_H
#define HEARTH_OPS_CPU_COMMON_SIMD_H

#include <math.h>

#include "ops/ops.h"

/* Loops over registers must unroll completely, or the arrays they index would live in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

SIMD int int_min(int a, int b) { return a < b ? a : b; }
SIMD int round_up(int a, int unit) { return (a + unit - 1) / unit * unit; }

/* ---- sums of 16 lanes in the order of the contract: i + i+8, then i+4, i+2, i+1. Both layers have AVX, so these use
 * 256-bit registers whatever VL is: the first step folds 16 lanes to 8. */

SIMD __m256 fold16(const float *a) { return _mm256_add_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8)); }

/* The sum of one block of 16. */
SIMD float sum16(const float *a) {
    __m256 s8 = fold16(a);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* The low, then the high halves of a and b added: [a, b] with half the lanes each. */
SIMD __m256 fold8(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
SIMD __m256 fold4(__m256 a, __m256 b) {
    __m256d x = _mm256_castps_pd(a), y = _mm256_castps_pd(b);
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
}
SIMD __m256 fold2(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

/* Sums of 8 consecutive blocks of 16, transposing on the way: 3.6 instructions a sum instead of about 10. */
SIMD __m256 sum16x8(const float *a) {
    __m256 ae = fold8(fold16(a), fold16(a + 64)), bf = fold8(fold16(a + 16), fold16(a + 80));
    __m256 cg = fold8(fold16(a + 32), fold16(a + 96)), dh = fold8(fold16(a + 48), fold16(a + 112));
    return fold2(fold4(ae, bf), fold4(cg, dh));
}

/* The first n of 8 sums. */
SIMD void store8(float *out, __m256 sums, int n) {
    if (n >= 8) {
        _mm256_storeu_ps(out, sums);
    } else {
        float copy[8];
        _mm256_storeu_ps(copy, sums);
        memcpy(out, copy, (size_t)n * sizeof *copy);
    }
}

/* Dot product of two rows, in the order of the contract. */
SIMD float dot(const float *a, const float *b, int count) {
    vf sum[PARTS];
    float lane[16];
    UNROLL for (int p = 0; p < PARTS; p++) sum[p] = v_zero();
    int k = 0;
    for (; k + 16 <= count; k += 16) {
        UNROLL for (int p = 0; p < PARTS; p++) sum[p] = v_fma(v_load(a + k + p * VL), v_load(b + k + p * VL), sum[p]);
    }
    UNROLL for (int p = 0; p < PARTS; p++) {
        const int n = count - k - p * VL;
        if (n > 0) sum[p] = v_fma(v_load_n(a + k + p * VL, n), v_load_n(b + k + p * VL, n), sum[p]);
        v_store(lane + p * VL, sum[p]);
    }
    return sum16(lane);
}

/* ---- stored numbers as fp32, VL at a time; a new storage format is one more case here */

SIMD vf widen(dtype type, const char *row, size_t k) {
    if (type == DTYPE_BF16) return v_bf16(row + 2 * k);
    if (type == DTYPE_F16) return v_f16(row + 2 * k);
    return v_load((const float *)(const void *)(row + 4 * k));
}

SIMD vf widen_n(dtype type, const char *row, size_t k, int n) {
    if (type == DTYPE_BF16) return v_bf16_n(row + 2 * k, n);
    if (type == DTYPE_F16) return v_f16_n(row + 2 * k, n);
    return v_load_n((const float *)(const void *)(row + 4 * k), n);
}

SIMD void widen_elements(dtype type, float *out, const char *row, size_t k, int count, int padded) {
    int i = 0;
    for (; i + VL <= count; i += VL) v_store(out + i, widen(type, row, k + (size_t)i));
    for (; i < padded; i += VL) v_store_n(out + i, widen_n(type, row, k + (size_t)i, count - i), padded - i);
}

/* out[0..count) = elements k .. of a row, then zeros up to `padded`. */
static inline void widen_row(dtype type, float *out, const void *row, size_t k, int count, int padded) {
    if (type == DTYPE_BF16) {
        widen_elements(DTYPE_BF16, out, row, k, count, padded);
    } else if (type == DTYPE_F16) {
        widen_elements(DTYPE_F16, out, row, k, count, padded);
    } else {
        widen_elements(DTYPE_F32, out, row, k, count, padded);
    }
}

/* ---- norm */

/* out = x / sqrt(mean x^2 + eps) * scale; out may be x */
SIMD void norm_row(float *out, const float *x, const float *scale, int width, float eps) {
    const vf root = v_set(sqrtf(dot(x, x, width) / (float)width + eps));
    int i = 0;
    for (; i + VL <= width; i += VL) v_store(out + i, v_mul(v_div(v_load(x + i), root), v_load(scale + i)));
    if (i < width) {
        const int n = width - i;
        v_store_n(out + i, v_mul(v_div(v_load_n(x + i, n), root), v_load_n(scale + i, n)), n);
    }
}

/* ---- exp and what follows from it
 *
 * Both instruction sets compute the same bits. exp: x = n ln 2 + r, |r| <= ln 2 / 2, polynomial in r, times 2^n. ln: the
 * mantissa in [sqrt(1/2), sqrt(2)) less 1, polynomial. Coefficients: Cephes (Moshier), expf.c and logf.c. */

/* NaN stays NaN: max and min return their second operand then. */
SIMD vf v_exp(vf x) {
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
    const vf n = v_round(v_mul(x, v_set(1.44269504088896341f)));
    vf r = v_fma(n, v_set(-0.693359375f), x);
    r = v_fma(n, v_set(2.12194440e-4f), r);
    vf y = v_set(1.9875691500e-4f);
    y = v_fma(y, r, v_set(1.3981999507e-3f));
    y = v_fma(y, r, v_set(8.3334519073e-3f));
    y = v_fma(y, r, v_set(4.1665795894e-2f));
    y = v_fma(y, r, v_set(1.6666665459e-1f));
    y = v_fma(y, r, v_set(5.0000001201e-1f));
    y = v_add(v_fma(v_mul(r, r), y, r), v_set(1.0f));
    return v_scale2(y, n);
}

SIMD vf v_sigmoid(vf x) { return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp(v_sub(v_zero(), x)))); }

SIMD vf v_silu(vf x) { return v_mul(x, v_sigmoid(x)); }

/* ln x for normal x >= 1 */
SIMD vf v_ln(vf x) {
    const vf one = v_set(1.0f);
    vf e = v_exponent(x), m = v_mantissa(x);
    e = v_where_above(m, 1.41421356f, v_add(e, one), e);
    m = v_where_above(m, 1.41421356f, v_mul(m, v_set(0.5f)), m);
    const vf f = v_sub(m, one), f2 = v_mul(f, f);
    vf y = v_set(7.0376836292e-2f);
    y = v_fma(y, f, v_set(-1.1514610310e-1f));
    y = v_fma(y, f, v_set(1.1676998740e-1f));
    y = v_fma(y, f, v_set(-1.2420140846e-1f));
    y = v_fma(y, f, v_set(1.4249322787e-1f));
    y = v_fma(y, f, v_set(-1.6668057665e-1f));
    y = v_fma(y, f, v_set(2.0000714765e-1f));
    y = v_fma(y, f, v_set(-2.4999993993e-1f));
    y = v_fma(y, f, v_set(3.3333331174e-1f));
    y = v_mul(v_mul(y, f), f2);
    y = v_fma(e, v_set(-2.12194440e-4f), y);
    y = v_fma(f2, v_set(-0.5f), y);
    return v_fma(e, v_set(0.693359375f), v_add(f, y));
}

/* ln(1 + e^x) = ln u + (e^x - (u - 1)) / u with u = 1 + e^x rounded: the second term restores what rounding lost. */
SIMD vf v_softplus(vf x) {
    const vf y = v_exp(v_min(v_set(20.0f), x)), u = v_add(v_set(1.0f), y);
    const vf lost = v_div(v_sub(y, v_sub(u, v_set(1.0f))), u);
    return v_where_above(x, 20.0f, x, v_add(v_ln(u), lost));
}

#endif
