/* NVFP4 packing for the GPU, as the kernel reads it: the words, masks and shifts here are those of small_m.cu. Needs no
 * GPU; products of packed matrices are checked by tests/gpu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/cuda/cuda_ops.h"

enum { ROWS = 48, COLS = 192 };

static uint32_t state = 7;
static uint8_t random_byte(void) {
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

static double e4m3(uint8_t b) {
    int e = b >> 3 & 15, m = b & 7;
    double v = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    return b >> 7 ? -v : v;
}

static double e2m1(unsigned code) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

/* bf16 bits to the value they stand for, subnormal or not. */
static double bf16(unsigned bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return (double)f;
}

/* Value `i` (0..15) of a lane's half: the kernel's unpacking and scaling, times the 256 it applies to its sums. */
static double kernel_value(const uint8_t *group, int lane, int half, int i) {
    const uint32_t mask = 0x81c081c0u;
    uint32_t w;
    memcpy(&w, group + lane * 16 + half * 8 + i / 8 * 4, sizeof w);
    uint32_t pairs[4] = {w & mask, (w << 6) & mask, (w >> 4 | w << 28) & mask, ((w >> 6) ^ (w << 2)) & mask};
    unsigned scale = group[512 + lane * 2 + half] * 16u + (235u << 7);
    return bf16(pairs[i % 8 / 2] >> (i % 2 * 16) & 0xffff) * bf16(scale) * 256;
}

static void check_matrix(bool pair_rows, int part_tiles) {
    static uint8_t codes[ROWS * COLS / 2], scales[ROWS * COLS / 16];
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = random_byte();
    for (size_t i = 0; i < sizeof scales; i++) do
            scales[i] = i < 256 ? (uint8_t)i : random_byte();
        while ((scales[i] & 0x7f) == 0x7f && i >= 256);
    scales[0x7f] = scales[0xff] = 0x80;
    nvfp4_plan plan = nvfp4_plan_make(ROWS, COLS, 16);
    plan.part_tiles = part_tiles;
    plan.parts = (plan.tiles + part_tiles - 1) / part_tiles;
    uint8_t *packed = mem_alloc((size_t)plan.bytes);
    assert_int_equal(nvfp4_pack(packed, &plan, codes, scales, pair_rows, NULL), ERR_OK);
    for (int n = 0; n < ROWS; n++)
        for (int k = 0; k < COLS; k++) {
            int tile = n / 16, row = n % 16, part = tile / part_tiles, first = part * part_tiles;
            int in_part = plan.tiles - first < part_tiles ? plan.tiles - first : part_tiles;
            int64_t unit = first * plan.chunks + k / 512 * in_part + tile - first;
            const uint8_t *group = packed + unit * NVFP4_TILE_BYTES + k % 512 / 64 * 576;
            int from = !pair_rows ? n : row < 8 ? tile * 8 + row : ROWS / 2 + tile * 8 + row - 8;
            int64_t at = (int64_t)from * COLS + k;
            double want = e2m1(codes[at / 2] >> (k % 2 * 4) & 15) * e4m3(scales[at / 16]);
            double got = kernel_value(group, row % 8 * 4 + k % 64 / 16, row / 8, k % 16);
            assert_true(got == want);
        }
    free(packed);
}

static void test_values(void **arg) {
    (void)arg;
    check_matrix(false, 1);
    check_matrix(false, 2);
    check_matrix(true, 2);
}

static void test_bad_scale(void **arg) {
    (void)arg;
    static uint8_t codes[16 * 64 / 2], scales[16 * 64 / 16], packed[NVFP4_TILE_BYTES];
    nvfp4_plan plan = nvfp4_plan_make(16, 64, 16);
    error err;
    scales[5] = 0x7f;
    assert_int_equal(nvfp4_pack(packed, &plan, codes, scales, false, &err), ERR_FORMAT);
    assert_non_null(strstr(err.message, "block scale 5"));
}

/* Every tile in exactly one part, and the parts of the shapes that matter fill the machine. */
static void test_plans(void **arg) {
    (void)arg;
    static const int shapes[][2] = {{16384, 5120}, {14336, 5120}, {34816, 5120}, {248320, 5120},
                                    {5120, 6144},  {5120, 17408}, {7, 64},       {1000, 192}};
    static const int counts[] = {2, 16, 20, 48, 132, 170};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            nvfp4_plan p = nvfp4_plan_make(shapes[i][0], shapes[i][1], counts[j]);
            assert_in_range(p.part_tiles, 1, NVFP4_PART_TILES_MAX);
            assert_true((p.parts - 1) * p.part_tiles < p.tiles && p.parts * p.part_tiles >= p.tiles);
            assert_in_range(p.split, 1, p.chunks < 2 ? 1 : 2);
            assert_int_equal(p.bytes, (int64_t)p.tiles * p.chunks * NVFP4_TILE_BYTES);
            if (counts[j] == 132 && i < 6) assert_true(p.parts * p.split >= 120);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bad_scale),
                                       cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
