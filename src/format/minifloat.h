/* The 8-bit and 4-bit floats that quantised checkpoints are made of.
 *
 * E4M3 (the "fn" variant): sign, 4 exponent bits with bias 7, 3 mantissa bits; largest 448, smallest 2^-9; codes 0x7f and
 * 0xff are NaN and there is no infinity. E2M1: sign, 2 exponent bits, 1 mantissa bit: 0, 0.5, 1, 1.5, 2, 3, 4, 6; no NaN.
 * Both decode exactly into fp32. Encoding rounds to nearest, ties to the even code, and saturates at the largest value. */
#ifndef HEARTH_FORMAT_MINIFLOAT_H
#define HEARTH_FORMAT_MINIFLOAT_H

#include <stdint.h>

enum { E4M3_NAN = 0x7f };

extern const float e4m3_values[256]; /* value of each code */
extern const float e2m1_values[16];

static inline float e4m3_to_f32(uint8_t code) { return e4m3_values[code]; }
uint8_t f32_to_e4m3(float x); /* NaN keeps its sign and stays NaN */
uint8_t f64_to_e4m3(double x);

static inline float e2m1_to_f32(uint8_t code) { return e2m1_values[code & 15]; }
uint8_t f64_to_e2m1(double x); /* x is not NaN, which has no code (asserted) */
static inline uint8_t f32_to_e2m1(float x) { return f64_to_e2m1((double)x); }

/* Element i of a row of packed E2M1 codes: two in a byte, the even one in the low half. */
static inline uint8_t e2m1_code(const uint8_t *packed, int64_t i) { return packed[i / 2] >> (i % 2 * 4) & 15; }

#endif
