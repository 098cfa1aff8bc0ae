/* Names and sizes of stored number formats, and fp16 conversion without hardware help. */
#include "format/dtype.h"

#include "base/error.h"

static const struct {
    const char *name;
    size_t size;
} table[DTYPE_COUNT] = {
    [DTYPE_F64] = {"F64", 8},   [DTYPE_F32] = {"F32", 4},         [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2}, [DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [DTYPE_I64] = {"I64", 8},   [DTYPE_I32] = {"I32", 4},         [DTYPE_I16] = {"I16", 2},
    [DTYPE_I8] = {"I8", 1},     [DTYPE_U64] = {"U64", 8},         [DTYPE_U32] = {"U32", 4},
    [DTYPE_U16] = {"U16", 2},   [DTYPE_U8] = {"U8", 1},           [DTYPE_BOOL] = {"BOOL", 1},
};

size_t dtype_size(dtype type) {
    HEARTH_ASSERT((unsigned)type < DTYPE_COUNT);
    return table[type].size;
}

const char *dtype_name(dtype type) {
    HEARTH_ASSERT((unsigned)type < DTYPE_COUNT);
    return table[type].name;
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000u | mantissa << 13);
    if (exponent) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    /* subnormal: mantissa * 2^-24, exact in fp32 */
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* Nearest, ties to even. The subnormal case adds a number whose last place is 2^-24, so that the addition rounds. */
uint16_t f32_to_f16(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* 65520 and up round to infinity */
    if (magnitude < 0x38800000u) {
        float sum = float_of(magnitude) + 0.5f;
        uint32_t bits;
        memcpy(&bits, &sum, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
    return (uint16_t)(sign | rounded >> 13);
}
