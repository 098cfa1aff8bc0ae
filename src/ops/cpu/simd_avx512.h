/* The register layer of the CPU kernels for AVX-512 (F, BW, VL, DQ). simd_avx2.h has the same names.
 *
 * Kernels are written once, in *_simd.h, against this layer and compiled per instruction set. `vf` is a register of VL
 * floats; a block of 16 lanes, the unit of every reduction order, is PARTS registers. Functions ending in _n take a
 * count of valid lanes (any value; 0 or less is none, VL or more is all): loads fill the rest with zeros, stores leave
 * the rest of memory alone. */
#ifndef HEARTH_OPS_CPU_SIMD_AVX512_H
#define HEARTH_OPS_CPU_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define ISA(name) name##_avx512
#define SIMD static inline __attribute__((always_inline, unused))

enum { VL = 16, PARTS = 1, REGISTERS = 32 };
typedef __m512 vf;

SIMD __mmask16 lanes(int n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1); }

SIMD vf v_zero(void) { return _mm512_setzero_ps(); }
SIMD vf v_set(float x) { return _mm512_set1_ps(x); }
SIMD vf v_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD vf v_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(lanes(n), p); }
SIMD void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
SIMD void v_store_n(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, lanes(n), a); }
SIMD vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SIMD vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SIMD vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
/* a where the lane is below n, else b */
SIMD vf v_pick_n(vf a, vf b, int n) { return _mm512_mask_blend_ps(lanes(n), b, a); }
/* yes where x > limit, else no */
SIMD vf v_where_above(vf x, float limit, vf yes, vf no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_GT_OQ), no, yes);
}
SIMD vf v_where_nan(vf x, vf yes, vf no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), no, yes);
}
SIMD vf v_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* a * 2^n, n integral; right also where the result is subnormal or overflows */
SIMD vf v_scale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }
/* x = mantissa * 2^exponent, mantissa in [1, 2), for finite x > 0 */
SIMD vf v_exponent(vf x) { return _mm512_getexp_ps(x); }
SIMD vf v_mantissa(vf x) { return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src); }

/* A bf16 is the upper half of a float: one permutation of words puts each there, with zeros below. */
SIMD vf bf16_widen(__m256i u) {
    const __m512i to_upper = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4,
                                              0, 3, 0, 2, 0, 1, 0, 0, 0);
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, to_upper, _mm512_castsi256_si512(u)));
}
SIMD vf v_bf16(const void *p) { return bf16_widen(_mm256_loadu_si256(p)); }
SIMD vf v_bf16_n(const void *p, int n) { return bf16_widen(_mm256_maskz_loadu_epi16(lanes(n), p)); }
SIMD vf v_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
SIMD vf v_f16_n(const void *p, int n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes(n), p)); }

/* E4M3 codes. Shifted into the places of fp16 they are the same number times 2^-8, subnormals too; only NaN, which has no
 * exponent of its own, must be put in. Going by way of fp16 avoids the slow product of fp32 subnormals. */
SIMD vf e4m3_widen(__m128i codes) {
    __m256i h = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7), _mm256_set1_epi16((short)0xbf80));
    __mmask16 nan = _mm256_cmpeq_epi16_mask(_mm256_and_si256(h, _mm256_set1_epi16(0x3f80)), _mm256_set1_epi16(0x3f80));
    h = _mm256_mask_mov_epi16(h, nan, _mm256_set1_epi16(0x7e00));
    return _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(256.0f));
}
SIMD vf v_e4m3(const void *p) { return e4m3_widen(_mm_loadu_si128((const __m128i *)p)); }
SIMD vf v_e4m3_n(const void *p, int n) { return e4m3_widen(_mm_maskz_loadu_epi8(lanes(n), p)); }

/* 16 packed E2M1 codes, 8 bytes: every lane takes the half of them that holds its own, shifts it down and looks it up
 * (the permutation minds the low 4 bits alone). */
SIMD vf v_e2m1(const void *p) {
    uint32_t half[2];
    memcpy(half, p, sizeof half);
    const __m512i shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i both = _mm512_mask_set1_epi32(_mm512_set1_epi32((int)half[0]), 0xff00, (int)half[1]);
    const vf values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f,
                                     -3.0f, -4.0f, -6.0f);
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shift), values);
}

/* Round to bf16, nearest, ties to even; NaN stays NaN (as f32_to_bf16). */
SIMD void v_store_bf16_n(uint16_t *p, vf a, int n) {
    __m512i u = _mm512_castps_si512(a), one = _mm512_set1_epi32(1);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
    __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
    rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), quiet);
    _mm256_mask_storeu_epi16(p, lanes(n), _mm512_cvtepi32_epi16(rounded));
}

#endif
