/* Words as numbers: comparing and hashing them by whole machine words, without reading past their end. */
#ifndef HEARTH_TEXT_WORD_BYTES_H
#define HEARTH_TEXT_WORD_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t word_load_u64(const char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t word_load_u32(const char *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* 1..8 bytes, zeros above them: the two overlapping loads agree where they overlap. */
static inline uint64_t word_load_short(const char *p, size_t size) {
    if (size == 8) return word_load_u64(p);
    if (size >= 4) return word_load_u32(p) | (uint64_t)word_load_u32(p + size - 4) << (size - 4) * 8;
    const unsigned char *u = (const unsigned char *)p;
    size_t middle = size / 2, last = size - 1;
    return u[0] | (uint64_t)u[middle] << middle * 8 | (uint64_t)u[last] << last * 8;
}

static inline uint64_t word_mix(uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ x >> 32;
}

#endif
