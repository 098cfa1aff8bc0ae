/* Number formats that tensors are stored in. */
#ifndef HEARTH_FORMAT_DTYPE_H
#define HEARTH_FORMAT_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    DTYPE_F64,
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_I64,
    DTYPE_I32,
    DTYPE_I16,
    DTYPE_I8,
    DTYPE_U64,
    DTYPE_U32,
    DTYPE_U16,
    DTYPE_U8,
    DTYPE_BOOL,
    DTYPE_COUNT,
} dtype;

size_t dtype_size(dtype type);      /* bytes per element */
const char *dtype_name(dtype type); /* as safetensors writes it: "BF16", "F8_E4M3" */

/* bf16 is the upper half of an fp32; rounding is to nearest, ties to even; NaN stays NaN. */
static inline float bf16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint16_t f32_to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);

#endif
