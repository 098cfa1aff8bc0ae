/* The register layer of the CPU kernels for AVX2 with FMA and F16C; see simd_avx512.h for the names. */
#ifndef HEARTH_OPS_CPU_SIMD_AVX2_H
#define HEARTH_OPS_CPU_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define ISA(name) name##_avx2
#define SIMD static inline __attribute__((always_inline, unused))

enum { VL = 8, PARTS = 2, REGISTERS = 16 };
typedef __m256 vf;

SIMD __m256i lanes(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

SIMD vf v_zero(void) { return _mm256_setzero_ps(); }
SIMD vf v_set(float x) { return _mm256_set1_ps(x); }
SIMD vf v_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD vf v_load_n(const float *p, int n) { return n >= VL ? v_load(p) : _mm256_maskload_ps(p, lanes(n)); }
SIMD void v_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
SIMD void v_store_n(float *p, vf a, int n) {
    if (n >= VL) {
        v_store(p, a);
    } else {
        _mm256_maskstore_ps(p, lanes(n), a);
    }
}
SIMD vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
SIMD vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
SIMD vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
SIMD vf v_pick_n(vf a, vf b, int n) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(lanes(n))); }
SIMD vf v_where_above(vf x, float limit, vf yes, vf no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, _mm256_set1_ps(limit), _CMP_GT_OQ));
}
SIMD vf v_where_nan(vf x, vf yes, vf no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }
SIMD vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD vf v_power2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
/* In two steps, since 2^n alone need not be a normal number; |n| <= 252. Only the second product can round. */
SIMD vf v_scale2(vf a, vf n) {
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(a, v_power2(half)), v_power2(_mm256_sub_epi32(whole, half)));
}
/* For normal x > 0. */
SIMD vf v_exponent(vf x) {
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(_mm256_castps_si256(x), 23), _mm256_set1_epi32(127)));
}
SIMD vf v_mantissa(vf x) {
    __m256i m = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffff));
    return _mm256_castsi256_ps(_mm256_or_si256(m, _mm256_set1_epi32(0x3f800000)));
}

SIMD __m128i load_u16_n(const void *p, int n) {
    uint16_t u[VL] = {0};
    memcpy(u, p, (size_t)(n >= VL ? VL : n <= 0 ? 0 : n) * sizeof *u);
    return _mm_loadu_si128((const __m128i *)u);
}
SIMD vf bf16_widen(__m128i u) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(u), 16)); }
SIMD vf v_bf16(const void *p) { return bf16_widen(_mm_loadu_si128(p)); }
SIMD vf v_bf16_n(const void *p, int n) { return bf16_widen(load_u16_n(p, n)); }
SIMD vf v_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
SIMD vf v_f16_n(const void *p, int n) { return _mm256_cvtph_ps(load_u16_n(p, n)); }

SIMD vf e4m3_widen(__m128i codes) {
    const __m128i all = _mm_set1_epi16(0x3f80), quiet = _mm_set1_epi16(0x7e00);
    __m128i h = _mm_and_si128(_mm_slli_epi16(_mm_cvtepi8_epi16(codes), 7), _mm_set1_epi16((short)0xbf80));
    h = _mm_or_si128(h, _mm_and_si128(_mm_cmpeq_epi16(_mm_and_si128(h, all), all), quiet));
    return _mm256_mul_ps(_mm256_cvtph_ps(h), _mm256_set1_ps(256.0f));
}
SIMD vf v_e4m3(const void *p) { return e4m3_widen(_mm_loadl_epi64((const __m128i *)p)); }
SIMD vf v_e4m3_n(const void *p, int n) {
    uint64_t codes = 0;
    memcpy(&codes, p, (size_t)(n >= VL ? VL : n <= 0 ? 0 : n));
    return e4m3_widen(_mm_cvtsi64_si128((long long)codes));
}

/* 8 packed E2M1 codes, 4 bytes: the magnitude is looked up by 3 bits, the sign moved into place. */
SIMD vf v_e2m1(const void *p) {
    int32_t all;
    memcpy(&all, p, sizeof all);
    const __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi32(all), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const vf values = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(codes, 28), _mm256_set1_epi32((int)0x80000000u));
    return _mm256_or_ps(_mm256_permutevar8x32_ps(values, codes), _mm256_castsi256_ps(sign));
}

SIMD void v_store_bf16_n(uint16_t *p, vf a, int n) {
    __m256i u = _mm256_castps_si256(a), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    rounded = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    if (n >= VL) {
        _mm_storeu_si128((__m128i *)p, packed);
        return;
    }
    uint16_t out[VL];
    _mm_storeu_si128((__m128i *)out, packed);
    memcpy(p, out, (size_t)(n <= 0 ? 0 : n) * sizeof *out);
}

#endif
