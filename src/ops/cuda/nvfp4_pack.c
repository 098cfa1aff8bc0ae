/* Packing of NVFP4 weights for the small-M kernels: see cuda_ops.h for tiles and parts. This file has the bits.
 *
 * Codes. A kernel needs pairs of codes as bf16x2 words: sign at bit 15, E2M1's three magnitude bits at 8..6 (as bf16 a
 * value times 2^-126; the scale carries the missing power). P = 0x81c081c0 masks both. Eight codes (four pairs, the even
 * column in the low half) share a word w such that
 *   pair 0 = w & P,  pair 1 = (w << 6) & P,  pair 2 = rotr(w, 4) & P,  pair 3 = ((w >> 6) ^ (w << 2)) & P:
 * eight integer instructions for eight codes. Three pairs tile 24 bits; the 8 left over do not form the pattern under
 * any single shift, so pair 3 takes each of its bits from one of two shifts and the packer cancels what the other one
 * brings along.
 *
 * Scales. E4M3 is re-encoded without a sign (it moves into the codes) and with subnormals normalised: (e + 10) << 3 | m,
 * e = -9..8. Shifted by 4 and added to 235 << 7 that is a bf16 of 2^(118 + e) (1 + m/8): times a code's 2^-126, the
 * product is value / 256 with at most six significant bits, exact in bf16 and never subnormal. The kernel multiplies
 * its sums by 256. A zero scale zeroes the codes. */
#include <string.h>

#include "ops/cuda/cuda_ops.h"

enum { TILE_ROWS = 16, CHUNK = 512, GROUP = 64, BLOCK = 16, GROUP_BYTES = 576, GROUP_CODES = 512 };

static int ceil_div(int a, int b) { return (a + b - 1) / b; }

/* Time of one plan in units of a tile's bytes: what the busiest multiprocessor streams, the activations it reads again
 * for every part (eight rows' worth), and a fixed cost a part for summing. */
static double plan_cost(int tiles, int chunks, int part_tiles, int split, int multiprocessors) {
    int parts = ceil_div(tiles, part_tiles), rounds = ceil_div(parts, multiprocessors / split);
    double share = (double)ceil_div(chunks, split);
    double activations = share * 8 * CHUNK * 2 / NVFP4_TILE_BYTES;
    return rounds * (part_tiles * share + activations / 3 + (split > 1 ? 10 : 5));
}

nvfp4_plan nvfp4_plan_make(int rows, int cols, int multiprocessors) {
    HEARTH_ASSERT(rows > 0 && cols > 0 && cols % GROUP == 0 && multiprocessors >= 2);
    nvfp4_plan p = {.rows = rows,
                    .cols = cols,
                    .chunks = ceil_div(cols, CHUNK),
                    .tiles = ceil_div(rows, TILE_ROWS),
                    .multiprocessors = multiprocessors};
    double best = 0;
    for (int split = 1; split <= 2 && split <= p.chunks; split++)
        for (int t = 1; t <= NVFP4_PART_TILES_MAX; t++) {
            double cost = plan_cost(p.tiles, p.chunks, t, split, multiprocessors);
            if (p.part_tiles != 0 && cost >= best) continue;
            best = cost;
            p.part_tiles = t;
            p.split = split;
        }
    p.parts = ceil_div(p.tiles, p.part_tiles);
    p.bytes = (int64_t)p.tiles * p.chunks * NVFP4_TILE_BYTES;
    return p;
}

/* E4M3 magnitude (1..0x7e) to the kernel's form. */
static uint8_t scale_code(uint8_t magnitude) {
    int e = magnitude >> 3, m = magnitude & 7;
    if (e > 0) return (uint8_t)((e - 7 + 10) << 3 | m);
    int shift = m >= 4 ? 1 : m >= 2 ? 2 : 3; /* m / 8 * 2^-6 = 1.xxx * 2^(-6 - shift) */
    return (uint8_t)((-6 - shift + 10) << 3 | ((m << shift) & 7));
}

static uint32_t bit(uint32_t w, int at) { return w >> at & 1; }

/* Pair 3: two codes into the bits left over. Bits read here are of pairs 0..2 or set just before. */
static uint32_t add_last_pair(uint32_t w, unsigned low, unsigned high) {
    unsigned m[2] = {low & 1, high & 1}, e0[2] = {low >> 1 & 1, high >> 1 & 1};
    unsigned e1[2] = {low >> 2 & 1, high >> 2 & 1}, sign[2] = {low >> 3, high >> 3};
    /* w >> 6 brings bits 12 13 14 of a half (and 21 for the low half's sign), w << 2 brings 4 5 6 and 13 */
    for (int h = 0; h < 2; h++) {
        w |= (m[h] ^ bit(w, 16 * h + 12)) << (16 * h + 4);
        w |= (e1[h] ^ bit(w, 16 * h + 6)) << (16 * h + 14);
    }
    w |= (uint32_t)sign[1] << 29;
    w |= (e0[1] ^ bit(w, 29)) << 21;
    w |= (sign[0] ^ bit(w, 21)) << 13;
    w |= (e0[0] ^ bit(w, 13)) << 5;
    return w;
}

/* Eight codes (sign << 3 | magnitude) of ascending columns into one word. */
static uint32_t pack_word(const unsigned *code) {
    uint32_t w = 0;
    for (int h = 0; h < 2; h++) {
        unsigned a = code[h], b = code[2 + h], c = code[4 + h];
        w |= (uint32_t)((a & 7) << 6 | (a >> 3) << 15 | (b & 7) | (b >> 3) << 9 | (c & 7) << 10) << (16 * h);
        w |= (uint32_t)(c >> 3) << (h ? 3 : 19); /* rotr 4 takes the sign from the other half */
    }
    return add_last_pair(w, code[6], code[7]);
}

/* One block of one row: 16 codes to 8 bytes, and its scale. */
static void pack_block(uint8_t *words, uint8_t *scale, const uint8_t *codes, uint8_t e4m3) {
    unsigned flip = e4m3 >> 7 << 3;
    bool zero = (e4m3 & 0x7f) == 0;
    unsigned code[BLOCK] = {0};
    for (int i = 0; i < BLOCK && !zero; i++) code[i] = (codes[i / 2] >> (i % 2 * 4) & 15) ^ flip;
    uint32_t pair[2] = {pack_word(code), pack_word(code + 8)};
    memcpy(words, pair, sizeof pair);
    *scale = zero ? 0 : scale_code(e4m3 & 0x7f);
}

/* Checkpoint row of row `r` of a packed matrix. */
static int source_row(const nvfp4_plan *p, int r, bool pair_rows) {
    if (!pair_rows) return r;
    int i = r / TILE_ROWS * 8 + r % 8;
    return r % TILE_ROWS < 8 ? i : p->rows / 2 + i;
}

/* 16 rows x 64 columns. */
static void pack_group(uint8_t *out, const nvfp4_plan *p, const uint8_t *codes, const uint8_t *scales, bool pair_rows,
                       int tile, int group) {
    for (int lane = 0; lane < 32; lane++)
        for (int half = 0; half < 2; half++) {
            int r = tile * TILE_ROWS + lane / 4 + 8 * half;
            if (r >= p->rows) continue;
            int64_t block = (int64_t)source_row(p, r, pair_rows) * (p->cols / BLOCK) + group * 4 + lane % 4;
            pack_block(out + lane * 16 + half * 8, out + GROUP_CODES + lane * 2 + half, codes + block * 8,
                       scales[block]);
        }
}

err_code nvfp4_pack(uint8_t *out, const nvfp4_plan *p, const uint8_t *codes, const uint8_t *scales, bool pair_rows,
                    error *err) {
    HEARTH_ASSERT(!pair_rows || p->rows % TILE_ROWS == 0);
    for (int64_t i = 0; i < (int64_t)p->rows * (p->cols / BLOCK); i++)
        if ((scales[i] & 0x7f) == 0x7f)
            ERR_FAIL(err, ERR_FORMAT, "block scale %lld of a %d x %d NVFP4 matrix is not a number", (long long)i,
                     p->rows, p->cols);
    memset(out, 0, (size_t)p->bytes);
    for (int tile = 0; tile < p->tiles; tile++) {
        int part = tile / p->part_tiles, first = part * p->part_tiles;
        int in_part = p->tiles - first < p->part_tiles ? p->tiles - first : p->part_tiles;
        for (int group = 0; group < p->cols / GROUP; group++) {
            int64_t unit = (int64_t)first * p->chunks + (int64_t)(group / 8) * in_part + (tile - first);
            pack_group(out + unit * NVFP4_TILE_BYTES + group % 8 * GROUP_BYTES, p, codes, scales, pair_rows, tile,
                       group);
        }
    }
    return ERR_OK;
}
