/* out = x W^T, weights widened to fp32 on the way; compiled per instruction set (see simd_avx512.h).
 *
 * Each output is 16 partial sums (lane = k mod 16) that run over all of k in ascending order, so the bits do not depend
 * on how the work is cut. Two ways of cutting, both giving those bits:
 *
 *   few rows of x: bound by reading W. A task streams 8 rows of W at a time straight from memory while the next 8 are
 *     being fetched, and widens each vector in registers for up to STREAM_X rows of x. From 3 rows of x on k is cut into
 *     blocks, or else the rows of x would come from the second-level cache for every pair of rows of W.
 *   many rows: bound by arithmetic. A task takes PANEL rows of W and up to ROWS_BLOCK rows of x. It walks over k in
 *     blocks of K_BLOCK: the panel's block is widened once into scratch, then every tile of TILE_W x TILE_X outputs runs
 *     over the block with its partial sums in registers; the tile's rows of W (18 KB) stay in the first-level cache.
 *
 * Between blocks of k the partial sums wait in memory: storing and reloading them changes no bit. With 16 lanes of k per
 * output there is no broadcast: a tile step loads TILE_W + TILE_X vectors for TILE_W * TILE_X FMAs. On 8-lane registers
 * a tile runs twice, for lanes 0-7 and 8-15, to keep the tile large enough. The lanes are added at the very end, 8
 * outputs at a time.
 *
 * Packed weights are widened in registers on their way into the same loops (weights_simd.h); a scale of the whole matrix
 * multiplies the finished sums. */

#include "ops/cpu/weights_simd.h"

enum {
    PANEL = 48, /* rows of W per task: a multiple of TILE_W and of 8 */
    TILE_W = VL == 16 ? 6 : 3,
    TILE_X = 4, /* TILE_W * TILE_X partial sums, TILE_X vectors of x and one of W fit the registers */
    K_BLOCK = 768,
    PANEL_STRIDE = K_BLOCK + 16, /* not a power of two: the tile's rows would share their cache sets */
    ROWS_BLOCK = 64,
    STREAM_TILE = VL == 16 ? 16 : 8, /* blocks of 16 sums in registers in the first way */
    STREAM_X = VL == 16 ? 8 : 4,     /* rows of x in such a tile */
    STREAM_K_BLOCK = 512,            /* the rows of x over a block stay in the first-level cache */
    STREAM_ROWS_MAX = 24             /* more rows than this: the second way */
};

typedef struct matmul_job {
    float *out;
    const float *x;
    const matrix *w;
    int rows;
    weight_kind kind;   /* of W */
    float scale;        /* of every output; 1 where W has none */
    int chunk;          /* first way: rows of W per task, a multiple of 8 */
    int row_blocks;     /* second way: blocks of x */
    int rows_per_block; /* second way */
} matmul_job;

/* Sums of 8 outputs, as they are stored. */
SIMD __m256 scaled_sums(const matmul_job *job, const float *acc) {
    return _mm256_mul_ps(sum16x8(acc), _mm256_set1_ps(job->scale));
}

/* ---- few rows */

/* wr rows of W with xr rows of x over count elements; sums acc[j * 128 + i * 16 + lane], for row i of W and j of x,
 * continue or start at zero. */
SIMD void stream_tile(weight_kind kind, weight_rows w, const float *x, size_t x_stride, int count, const int wr,
                      const int xr, bool start, float *acc) {
    const size_t ahead = w.stride * 8 <= 65536 ? w.stride * 8 : 1024; /* the next group, unless rows are long */
    vf a[STREAM_TILE * PARTS], xv[STREAM_X * PARTS];
    UNROLL for (int i = 0; i < wr * xr; i++) {
        UNROLL for (int p = 0; p < PARTS; p++) a[i * PARTS + p] =
            start ? v_zero() : v_load(acc + i % xr * 128 + i / xr * 16 + p * VL);
    }
    int k = 0;
    for (; k + 16 <= count; k += 16) {
        UNROLL for (int j = 0; j < xr; j++) {
            UNROLL for (int p = 0; p < PARTS; p++) xv[j * PARTS + p] = v_load(x + (size_t)j * x_stride + k + p * VL);
        }
        UNROLL for (int i = 0; i < wr; i++) {
            if (kind <= WEIGHT_BF16 || k % 64 == 0)
                __builtin_prefetch(w.data + (size_t)i * w.stride + ahead + weight_bytes(kind, (size_t)k), 0, 2);
            UNROLL for (int p = 0; p < PARTS; p++) {
                const vf wv = weight(kind, w, i, (size_t)(k + p * VL));
                UNROLL for (int j = 0; j < xr; j++) {
                    const int at = (i * xr + j) * PARTS + p;
                    a[at] = v_fma(wv, xv[j * PARTS + p], a[at]);
                }
            }
        }
    }
    if (k < count) {
        UNROLL for (int i = 0; i < wr; i++) {
            UNROLL for (int p = 0; p < PARTS; p++) {
                const int n = count - k - p * VL;
                const vf wv = weight_n(kind, w, i, (size_t)(k + p * VL), n);
                UNROLL for (int j = 0; j < xr; j++) {
                    const int at = (i * xr + j) * PARTS + p;
                    a[at] = v_fma(wv, v_load_n(x + (size_t)j * x_stride + k + p * VL, n), a[at]);
                }
            }
        }
    }
    UNROLL for (int i = 0; i < wr * xr; i++) {
        UNROLL for (int p = 0; p < PARTS; p++) v_store(acc + i % xr * 128 + i / xr * 16 + p * VL, a[i * PARTS + p]);
    }
}

/* Up to 8 rows of W with xr rows of x over a block of k, as many rows of W at a time as registers allow. */
SIMD void stream_rows(weight_kind kind, weight_rows w, int w_rows, const float *x, size_t x_stride, int count,
                      const int xr, bool start, float *acc) {
    const int step = STREAM_TILE / xr >= 8 ? 8 : STREAM_TILE / xr >= 4 ? 4 : STREAM_TILE / xr >= 2 ? 2 : 1;
    int i = 0;
    for (; i + step <= w_rows; i += step)
        stream_tile(kind, weight_rows_skip(w, i), x, x_stride, count, step, xr, start, acc + i * 16);
    for (; i < w_rows; i++) stream_tile(kind, weight_rows_skip(w, i), x, x_stride, count, 1, xr, start, acc + i * 16);
}

/* 8 rows of W (fewer at the end of the matrix) with all rows of x. */
SIMD void stream_group(weight_kind kind, const matmul_job *job, int row, float *acc) {
    const size_t cols = (size_t)job->w->cols;
    const size_t block = job->rows <= 2 ? cols : STREAM_K_BLOCK;
    const int w_rows = int_min(job->w->rows - row, 8);
    for (size_t k = 0; k < cols; k += block) {
        const int count = (int)(cols - k < block ? cols - k : block);
        const weight_rows w = weight_rows_at(kind, job->w, row, k);
        for (int j = 0; j < job->rows; j += STREAM_X) {
            const float *x = job->x + (size_t)j * cols + k;
            float *to = acc + j * 128;
            switch (int_min(job->rows - j, STREAM_X)) {
                case 1:
                    stream_rows(kind, w, w_rows, x, cols, count, 1, k == 0, to);
                    break;
                case 2:
                    stream_rows(kind, w, w_rows, x, cols, count, 2, k == 0, to);
                    break;
                case 3:
                    stream_rows(kind, w, w_rows, x, cols, count, 3, k == 0, to);
                    break;
                case 4:
                    stream_rows(kind, w, w_rows, x, cols, count, int_min(STREAM_X, 4), k == 0, to);
                    break;
                case 5:
                    stream_rows(kind, w, w_rows, x, cols, count, int_min(STREAM_X, 5), k == 0, to);
                    break;
                case 6:
                    stream_rows(kind, w, w_rows, x, cols, count, int_min(STREAM_X, 6), k == 0, to);
                    break;
                case 7:
                    stream_rows(kind, w, w_rows, x, cols, count, int_min(STREAM_X, 7), k == 0, to);
                    break;
                default:
                    stream_rows(kind, w, w_rows, x, cols, count, STREAM_X, k == 0, to);
                    break;
            }
        }
    }
    for (int j = 0; j < job->rows; j++)
        store8(job->out + (size_t)j * (size_t)job->w->rows + row, scaled_sums(job, acc + j * 128), w_rows);
}

SIMD void stream_task(weight_kind kind, const matmul_job *job, int index) {
    const int end = int_min((index + 1) * job->chunk, job->w->rows);
    _Alignas(64) float acc[STREAM_ROWS_MAX * 128] = {0};
    for (int row = index * job->chunk; row < end; row += 8) stream_group(kind, job, row, acc);
}

static void stream_f32(void *job, int index) { stream_task(WEIGHT_F32, job, index); }
static void stream_f16(void *job, int index) { stream_task(WEIGHT_F16, job, index); }
static void stream_bf16(void *job, int index) { stream_task(WEIGHT_BF16, job, index); }
static void stream_nvfp4(void *job, int index) { stream_task(WEIGHT_NVFP4, job, index); }
static void stream_fp8(void *job, int index) { stream_task(WEIGHT_FP8, job, index); }
static void stream_fp8_block(void *job, int index) { stream_task(WEIGHT_FP8_BLOCK, job, index); }

/* ---- many rows */

static void widen_panel(const matmul_job *job, float *panel, int row, size_t k, int count) {
    for (int i = 0; i < PANEL; i++) {
        float *out = panel + i * PANEL_STRIDE;
        if (row + i < job->w->rows) {
            weight_row(job->kind, job->w, out, row + i, k, count, round_up(count, 16));
        } else {
            memset(out, 0, PANEL_STRIDE * sizeof *out);
        }
    }
}

/* TILE_W rows of the panel with xr rows of x over one block of k; acc[j][PANEL][16] continues or starts at zero. */
SIMD void panel_tile(const float *w, const float *x, size_t x_stride, int count, const int xr, bool start, float *acc) {
    for (int part = 0; part < PARTS; part++, w += VL, x += VL, acc += VL) {
        vf a[TILE_W * TILE_X], xv[TILE_X];
        UNROLL for (int i = 0; i < TILE_W; i++) {
            UNROLL for (int j = 0; j < xr; j++) a[i * TILE_X + j] =
                start ? v_zero() : v_load(acc + (j * PANEL + i) * 16);
        }
        int k = 0;
        for (; k + 16 <= count; k += 16) {
            UNROLL for (int j = 0; j < xr; j++) xv[j] = v_load(x + (size_t)j * x_stride + k);
            UNROLL for (int i = 0; i < TILE_W; i++) {
                vf wv = v_load(w + i * PANEL_STRIDE + k);
                UNROLL for (int j = 0; j < xr; j++) a[i * TILE_X + j] = v_fma(wv, xv[j], a[i * TILE_X + j]);
            }
        }
        if (k < count) {
            UNROLL for (int j = 0; j < xr; j++) xv[j] = v_load_n(x + (size_t)j * x_stride + k, count - k - part * VL);
            UNROLL for (int i = 0; i < TILE_W; i++) {
                vf wv = v_load(w + i * PANEL_STRIDE + k);
                UNROLL for (int j = 0; j < xr; j++) a[i * TILE_X + j] = v_fma(wv, xv[j], a[i * TILE_X + j]);
            }
        }
        UNROLL for (int i = 0; i < TILE_W; i++) {
            UNROLL for (int j = 0; j < xr; j++) v_store(acc + (j * PANEL + i) * 16, a[i * TILE_X + j]);
        }
    }
}

/* All rows of x with TILE_W rows of the panel, whose block stays in the first-level cache. */
static void panel_strip(const float *w, const float *x, size_t cols, int rows, int count, bool start, float *acc) {
    int j = 0;
    for (; j + TILE_X <= rows; j += TILE_X)
        panel_tile(w, x + (size_t)j * cols, cols, count, TILE_X, start, acc + j * PANEL * 16);
    x += (size_t)j * cols;
    acc += j * PANEL * 16;
    switch (rows - j) {
        case 1:
            panel_tile(w, x, cols, count, 1, start, acc);
            break;
        case 2:
            panel_tile(w, x, cols, count, 2, start, acc);
            break;
        case 3:
            panel_tile(w, x, cols, count, 3, start, acc);
            break;
        default:
            break;
    }
}

static void panel_sums(const matmul_job *job, const float *acc, int row, int first, int rows) {
    const int valid = job->w->rows - row < PANEL ? job->w->rows - row : PANEL;
    for (int j = 0; j < rows; j++) {
        float *out = job->out + (size_t)(first + j) * (size_t)job->w->rows + row;
        for (int i = 0; i < valid; i += 8) store8(out + i, scaled_sums(job, acc + (j * PANEL + i) * 16), valid - i);
    }
}

static void panel_task(void *context, int index) {
    const matmul_job *job = context;
    const size_t cols = (size_t)job->w->cols;
    const int row = index / job->row_blocks * PANEL, first = index % job->row_blocks * job->rows_per_block;
    const int rows = job->rows - first < job->rows_per_block ? job->rows - first : job->rows_per_block;
    float *panel = thread_scratch(SCRATCH_TASK, (PANEL * PANEL_STRIDE + ROWS_BLOCK * PANEL * 16) * sizeof *panel);
    float *acc = panel + PANEL * PANEL_STRIDE;
    for (size_t k = 0; k < cols; k += K_BLOCK) {
        const int count = cols - k < K_BLOCK ? (int)(cols - k) : K_BLOCK;
        widen_panel(job, panel, row, k, count);
        for (int i = 0; i < PANEL; i += TILE_W)
            panel_strip(panel + i * PANEL_STRIDE, job->x + (size_t)first * cols + k, cols, rows, count, k == 0,
                        acc + i * 16);
    }
    panel_sums(job, acc, row, first, rows);
}

/* ---- the operator */

/* Chunks small enough to share out evenly, large enough (128 KB) that claiming one costs nothing. */
static int stream_chunk(const pool *p, const matmul_job *job) {
    size_t rows = (size_t)job->w->rows / (size_t)(pool_threads(p) * 8);
    const size_t least = (128 << 10) / (weight_bytes(job->kind, (size_t)job->w->cols) + 1);
    if (rows < least) rows = least;
    if (rows > (size_t)job->w->rows) rows = (size_t)job->w->rows;
    return (int)(rows + 7) / 8 * 8;
}

void ISA(matmul)(pool *p, float *out, const float *x, const matrix *w, int rows) {
    static void (*const stream_tasks[])(void *job, int index) = {
        [WEIGHT_F32] = stream_f32,     [WEIGHT_F16] = stream_f16, [WEIGHT_BF16] = stream_bf16,
        [WEIGHT_NVFP4] = stream_nvfp4, [WEIGHT_FP8] = stream_fp8, [WEIGHT_FP8_BLOCK] = stream_fp8_block,
    };
    matmul_job job = {.out = out, .x = x, .w = w, .rows = rows, .kind = weight_kind_of(w), .scale = 1.0f};
    if (job.kind == WEIGHT_NVFP4 || job.kind == WEIGHT_FP8) job.scale = w->scale;
    HEARTH_ASSERT(job.kind != WEIGHT_NVFP4 || w->cols % NVFP4_BLOCK == 0);
    if (rows > STREAM_ROWS_MAX) {
        job.row_blocks = (rows + ROWS_BLOCK - 1) / ROWS_BLOCK;
        job.rows_per_block = (rows + job.row_blocks - 1) / job.row_blocks;
        pool_run(p, (w->rows + PANEL - 1) / PANEL * job.row_blocks, panel_task, &job);
        return;
    }
    job.chunk = stream_chunk(p, &job);
    pool_run(p, (w->rows + job.chunk - 1) / job.chunk, stream_tasks[job.kind], &job);
}
