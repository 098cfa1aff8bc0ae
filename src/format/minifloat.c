/* Tables and encoders of small floats; see minifloat.h. */
#include "format/minifloat.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

/* Mantissas of one exponent: the first seven, and all eight. */
#define SEVEN(base, step)                                                                                        \
    (base) * (step), ((base) + 1) * (step), ((base) + 2) * (step), ((base) + 3) * (step), ((base) + 4) * (step), \
        ((base) + 5) * (step), ((base) + 6) * (step)
#define OCTAVE(sign, base, step) SEVEN(base, sign step), ((base) + 7) * (sign step)
#define HALF(sign)                                                                                              \
    OCTAVE(sign, 0, 0x1p-9f), OCTAVE(sign, 8, 0x1p-9f), OCTAVE(sign, 8, 0x1p-8f), OCTAVE(sign, 8, 0x1p-7f),     \
        OCTAVE(sign, 8, 0x1p-6f), OCTAVE(sign, 8, 0x1p-5f), OCTAVE(sign, 8, 0x1p-4f), OCTAVE(sign, 8, 0x1p-3f), \
        OCTAVE(sign, 8, 0x1p-2f), OCTAVE(sign, 8, 0x1p-1f), OCTAVE(sign, 8, 0x1p0f), OCTAVE(sign, 8, 0x1p1f),   \
        OCTAVE(sign, 8, 0x1p2f), OCTAVE(sign, 8, 0x1p3f), OCTAVE(sign, 8, 0x1p4f), SEVEN(8, sign 0x1p5f), NAN

const float e4m3_values[256] = {HALF(+), HALF(-)};

const float e2m1_values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                               -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/* Normal numbers: the mantissa is cut to 3 bits with the carry running into the exponent. Below 2^-6 every code is a
 * multiple of 2^-9: adding 2^14, whose last place that is, makes the addition do the rounding. */
uint8_t f32_to_e4m3(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint8_t sign = (uint8_t)(u >> 24 & 0x80);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return sign | E4M3_NAN;
    if (u >= 0x43e00000u) return sign | 0x7e; /* 448 and up, infinity too */
    if (u < 0x3c800000u) {
        const float sum = fabsf(x) + 0x1p14f;
        memcpy(&u, &sum, sizeof u);
        return sign | (uint8_t)(u - 0x46800000u);
    }
    u = (u + 0x7ffffu + (u >> 20 & 1)) >> 20;
    return sign | (uint8_t)(u - (120u << 3));
}

/* Without the detour over fp32, which would round twice. q counts steps of the number's octave: 8 .. 16 above 2^-6, where
 * 16 is the next octave's first, and 0 .. 8 below, so that one formula serves both. */
uint8_t f64_to_e4m3(double x) {
    const uint8_t sign = signbit(x) ? 0x80 : 0;
    const double a = fabs(x);
    if (isnan(x)) return sign | E4M3_NAN;
    if (a >= 448) return sign | 0x7e;
    const int exponent = a < 0x1p-6 ? -6 : ilogb(a);
    const int q = (int)rint(ldexp(a, 3 - exponent));
    return sign | (uint8_t)((exponent + 6) * 8 + q);
}

/* The code counts the midpoints that lie below; at a midpoint the even neighbour wins. */
uint8_t f64_to_e2m1(double x) {
    HEARTH_ASSERT(x == x);
    const double a = fabs(x);
    const int code = (a > 0.25) + (a >= 0.75) + (a > 1.25) + (a >= 1.75) + (a > 2.5) + (a >= 3.5) + (a > 5.0);
    return (uint8_t)(code | (signbit(x) ? 8 : 0));
}
