/* Looking at the numbers of a bound matrix. A checkpoint that was converted wrongly still loads and then speaks nonsense;
 * most such faults show in the numbers themselves:
 *
 *   refused  NaN, infinite or negative block scales, NaN codes, a matrix that is all zero
 *   warned   zero block scales over non-zero codes (rounded away), rows that are all zero (outside the unused rows at the
 *            end of a vocabulary)
 *
 * Block scales and FP8 codes are read completely, eight at a time; other weights only up to the first number of a row that
 * is not zero. So NVFP4 costs a ninth of its bytes and a plain matrix next to nothing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format/minifloat.h"
#include "model/binder.h"

typedef struct findings {
    uint64_t nan, infinite, negative; /* scales; FP8: codes that are NaN count too */
    uint64_t lost;                    /* blocks of non-zero codes under a zero scale */
    int64_t zero_rows, zero_rows_at_end;
} findings;

static uint64_t load8(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static const uint64_t ONES = 0x0101010101010101u, HIGH = 0x8080808080808080u;

/* Eight E4M3 codes, all positive, none zero or NaN: neither the difference nor the sum then touches a high bit. */
static bool ordinary8(uint64_t v) { return !((v | (v - ONES) | (v + ONES)) & HIGH); }

static bool any_nan8(uint64_t v) { return (((v & ~HIGH) + ONES) & HIGH) != 0; }

/* Whether the 16 codes of a block are not all zero; the sign of a zero does not count. */
static bool block_has_code(const uint8_t *codes) { return (load8(codes) & 0x7777777777777777u) != 0; }

static void look_at_scale(uint8_t scale, const uint8_t *codes, findings *f) {
    if ((scale & 0x7f) == E4M3_NAN)
        f->nan++;
    else if (scale > 0x80)
        f->negative++;
    else if ((scale & 0x7f) == 0 && block_has_code(codes))
        f->lost++;
}

/* Whether the row has a number that is not zero. */
static bool look_at_nvfp4_row(const uint8_t *codes, const uint8_t *scales, int blocks, findings *f) {
    bool found = false;
    for (int i = 0; i < blocks && !found; i++) found = (scales[i] & 0x7f) && block_has_code(codes + 8 * i);
    for (int i = 0; i < blocks;) {
        if (i + 8 <= blocks && ordinary8(load8(scales + i))) {
            i += 8;
        } else {
            look_at_scale(scales[i], codes + 8 * i, f);
            i++;
        }
    }
    return found;
}

static bool look_at_fp8_row(const uint8_t *codes, int cols, findings *f) {
    uint64_t all = 0;
    int k = 0;
    for (; k + 8 <= cols; k += 8) {
        uint64_t v = load8(codes + k);
        all |= v;
        if (any_nan8(v))
            for (int i = 0; i < 8; i++) f->nan += (codes[k + i] & 0x7f) == E4M3_NAN;
    }
    for (; k < cols; k++) {
        all |= codes[k];
        f->nan += (codes[k] & 0x7f) == E4M3_NAN;
    }
    return (all & ~HIGH) != 0;
}

static bool fp8_block_has_code(const matrix *w, int row, int col) {
    const uint8_t *codes = w->data;
    for (int n = row; n < row + FP8_BLOCK && n < w->rows; n++)
        for (int k = col; k < col + FP8_BLOCK && k < w->cols; k++)
            if (codes[(int64_t)n * w->cols + k] & 0x7f) return true;
    return false;
}

static void look_at_fp8_scales(const matrix *w, findings *f) {
    const float *scale = w->block_scales;
    for (int n = 0; n < w->rows; n += FP8_BLOCK) {
        for (int k = 0; k < w->cols; k += FP8_BLOCK, scale++) {
            f->nan += isnan(*scale);
            f->infinite += isinf(*scale);
            f->negative += *scale < 0;
            f->lost += *scale == 0 && fp8_block_has_code(w, n, k);
        }
    }
}

static bool plain_row_has_number(const matrix *w, int64_t row) {
    const uint8_t *at = (const uint8_t *)w->data + (uint64_t)row * (uint64_t)w->cols * dtype_size(w->type);
    for (int k = 0; k < w->cols; k++) {
        uint32_t u = 0;
        size_t size = dtype_size(w->type);
        memcpy(&u, at + (size_t)k * size, size);
        if (u << (w->type == DTYPE_F32 ? 1 : 17)) return true; /* anything but +-0 */
    }
    return false;
}

static bool look_at_row(const matrix *w, int64_t row, findings *f) {
    const uint8_t *codes = w->data;
    if (w->form == MATRIX_PLAIN) return plain_row_has_number(w, row);
    if (w->form != MATRIX_NVFP4) return look_at_fp8_row(codes + row * w->cols, w->cols, f);
    int blocks = w->cols / NVFP4_BLOCK;
    return look_at_nvfp4_row(codes + row * (w->cols / 2), (const uint8_t *)w->block_scales + row * blocks, blocks, f);
}

static findings look(const matrix *w) {
    findings f = {0};
    for (int64_t n = 0; n < w->rows; n++) {
        bool found = look_at_row(w, n, &f);
        f.zero_rows += !found;
        f.zero_rows_at_end = found ? 0 : f.zero_rows_at_end + 1;
    }
    if (w->form == MATRIX_FP8_BLOCK) look_at_fp8_scales(w, &f);
    return f;
}

void weight_check(binder *b, const char *name, const matrix *w, matrix_role role) {
    findings f = look(w);
    int64_t zero_rows = f.zero_rows - (role == MATRIX_OF_VOCABULARY ? f.zero_rows_at_end : 0);
    if (f.nan || f.infinite || f.negative)
        binder_problem(b, "%.150s: %" PRIu64 " NaN, %" PRIu64 " infinite, %" PRIu64 " negative %s", name, f.nan,
                       f.infinite, f.negative, w->form == MATRIX_NVFP4 ? "block scales" : "scales or codes");
    else if (f.zero_rows == w->rows)
        binder_problem(b, "%.150s is all zero", name);
    else if (zero_rows)
        binder_warn(b, "%.200s: %" PRId64 " of %d rows are all zero", name, zero_rows, w->rows);
    if (f.lost) binder_warn(b, "%.200s: %" PRIu64 " block scales are zero over codes that are not", name, f.lost);
    b->looked_at += (uint64_t)w->rows * (uint64_t)w->cols * dtype_size(w->type) / (w->form == MATRIX_NVFP4 ? 2 : 1);
    if (b->progress) b->progress(b->progress_context, b->looked_at, b->to_look_at);
}
