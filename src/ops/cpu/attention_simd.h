/* Attention over the paged cache; compiled per instruction set (see simd_avx512.h).
 *
 * The contract fixes the order of every sum over keys, so the softmax cannot be folded into one pass with a running
 * maximum. The work is done in three passes over a wave of units, a unit being up to UNIT_ROWS rows of one segment with
 * one KV head; all query heads of that KV head and all rows of the unit use a page of K or V while it is in the cache.
 *
 *   scores   tasks: ranges of CHUNK_PAGES pages of a unit. Keys are rows, like weights in a matrix product.
 *   softmax  tasks: rows of a unit. Maximum, exp, sum in 16 lanes.
 *   values   tasks: blocks of VALUE_COLUMNS output columns of a unit. Each column is one chain of FMAs over all keys.
 *
 * So one row with a long context keeps many threads busy in every pass, and no result depends on how many there are.
 * Scores of a wave stay within WAVE_BYTES (more only if a single unit needs more), whatever the context.
 *
 * In a tree the keys past the committed ones are a row's own path: gathered, once per row and pass, into scratch, where
 * they look like one more page. A new KV type is one more case in kv_widen and kv_store. */

#include "format/minifloat.h"

enum {
    UNIT_ROWS = 16,
    UNITS_MAX = 256, /* per wave */
    CHUNK_PAGES = 8, /* 512 keys */
    VALUE_COLUMNS = 64,
    HEADS_TILE = VL == 16 ? 6 : 3, /* query heads of a score tile: HEADS_TILE * KEYS_TILE sums in registers */
    KEYS_TILE = 4,
    VALUE_HEADS_TILE = 6, /* query heads of a value tile: times VALUE_VECTORS sums in registers */
    VALUE_VECTORS = VL == 16 ? 4 : 2
};
enum { WAVE_BYTES = 32 << 20 };

typedef struct attention_unit {
    const segment *seg;
    int first, rows; /* rows of the segment */
    int kv_head;
    int keys;         /* of the longest row */
    int score_stride; /* keys rounded up to 16 */
    int chunks;       /* score tasks: page ranges, and one for the paths of a tree */
    int first_chunk;  /* of the unit among the wave's score tasks */
    int first_row;    /* of the unit among the wave's rows */
    float *scores;    /* [rows, group, score_stride] */
    float *sums;      /* [rows, group] */
} attention_unit;

typedef struct attention_job {
    float *out;
    const float *q, *gate;
    const attention_shape *shape;
    const kv_pool *kv;
    int layer, group; /* group: query heads per KV head */
    int width;        /* head_dim rounded up to 16: the stride of widened keys */
    int column_blocks;
    attention_unit *units;
    int unit_count, chunk_count, row_count;
} attention_job;

/* Keys of row i in all, and how many of them lie in page order (the rest is a tree's path). */
static int row_keys(const segment *seg, int i) { return seg->seq->length + (seg->parents ? seg->depth[i] : i) + 1; }
static int paged_keys(const segment *seg, int i) { return seg->parents ? seg->seq->length : row_keys(seg, i); }

SIMD size_t kv_size(const kv_pool *kv) { return kv->type == DTYPE_F32 ? 4 : kv->type == DTYPE_BF16 ? 2 : 1; }

/* Elements k .. k+count-1 of stored numbers, then zeros up to `padded`. scales: k_scale or v_scale of the pool. */
static void kv_widen(const attention_job *job, const float *scales, float *out, const char *row, size_t k, int count,
                     int padded) {
    if (job->kv->type != DTYPE_F8_E4M3) {
        widen_row(job->kv->type, out, row, k, count, padded);
        return;
    }
    const vf scale = v_set(scales ? scales[job->layer] : 1.0f);
    int i = 0;
    for (; i + VL <= count; i += VL) v_store(out + i, v_mul(v_e4m3(row + k + i), scale));
    for (; i < padded; i += VL) v_store_n(out + i, v_mul(v_e4m3_n(row + k + i, count - i), scale), padded - i);
}

/* K or V of one slot: a row of head_dim stored elements. */
static const char *kv_row(const attention_job *job, const void *base, const attention_unit *u, int slot) {
    const kv_pool *kv = job->kv;
    size_t page = (size_t)job->layer * (size_t)kv->page_count + (size_t)u->seg->seq->pages[slot / KV_PAGE];
    size_t row = (page * (size_t)kv->kv_heads + (size_t)u->kv_head) * KV_PAGE + (size_t)(slot % KV_PAGE);
    return (const char *)base + row * (size_t)kv->head_dim * kv_size(kv);
}

/* The path of row i, root first, as slots; returns their number. */
static int path_slots(const segment *seg, int i, int *slots) {
    const int count = seg->depth[i] + 1;
    for (int j = count - 1, node = i; j >= 0; j--, node = seg->parents[node]) slots[j] = seg->seq->length + node;
    return count;
}

/* Widened keys or values, and what to fetch meanwhile: rows of stored elements, one for each of ours. A page comes from
 * memory while the page before it is computed on. */
typedef struct kv_block {
    const float *rows;
    size_t stride; /* floats */
    int count;
    const char *next;
    size_t next_stride, next_bytes; /* bytes from row to row, and of a row */
} kv_block;

SIMD void prefetch(const char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(data + i, 0, 2);
}

/* ---- scores */

/* heads query rows (stride head_dim) with KEYS_TILE keys; sums[head][8][16], from key `at` of the 8 on. */
SIMD void score_tile(const float *q, int dim, const float *keys, size_t key_stride, const int heads, float *sums) {
    for (int part = 0; part < PARTS; part++) {
        vf a[HEADS_TILE * KEYS_TILE], qv[HEADS_TILE];
        UNROLL for (int i = 0; i < heads * KEYS_TILE; i++) a[i] = v_zero();
        for (int d = part * VL; d < dim; d += 16) {
            UNROLL for (int h = 0; h < heads; h++) {
                const float *at = q + h * dim + d;
                qv[h] = d + VL <= dim ? v_load(at) : v_load_n(at, dim - d);
            }
            UNROLL for (int key = 0; key < KEYS_TILE; key++) {
                const vf kv = v_load(keys + (size_t)key * key_stride + d);
                UNROLL for (int h = 0; h < heads; h++) a[h * KEYS_TILE + key] =
                    v_fma(kv, qv[h], a[h * KEYS_TILE + key]);
            }
        }
        UNROLL for (int h = 0; h < heads; h++) {
            UNROLL for (int key = 0; key < KEYS_TILE; key++)
                v_store(sums + (h * 8 + key) * 16 + part * VL, a[h * KEYS_TILE + key]);
        }
    }
}

/* heads query rows with a block of keys. Keys are read up to a multiple of 8: what lies past the block is not stored. */
SIMD void score_heads(const float *q, int dim, const kv_block *b, const int heads, float *scores, int score_stride) {
    const __m256 scale = _mm256_set1_ps(1.0f / sqrtf((float)dim));
    _Alignas(64) float sums[HEADS_TILE * 8 * 16];
    for (int key = 0; key < b->count; key += 8) {
        const float *at = b->rows + (size_t)key * b->stride;
        prefetch(b->next + (size_t)key * b->next_stride, 8 * b->next_bytes);
        score_tile(q, dim, at, b->stride, heads, sums);
        score_tile(q, dim, at + KEYS_TILE * b->stride, b->stride, heads, sums + KEYS_TILE * 16);
        for (int h = 0; h < heads; h++)
            store8(scores + h * score_stride + key, _mm256_mul_ps(sum16x8(sums + h * 128), scale), b->count - key);
    }
}

/* All query heads of a row's group with a block of keys; scores from key number `first` on. */
static void score_row(const attention_job *job, const attention_unit *u, int i, const kv_block *b, int first) {
    const int dim = job->shape->head_dim;
    const float *q =
        job->q +
        ((size_t)(u->seg->row + i) * (size_t)job->shape->heads + (size_t)(u->kv_head * job->group)) * (size_t)dim;
    float *scores = u->scores + (size_t)((i - u->first) * job->group) * (size_t)u->score_stride + first;
    for (int h = 0; h < job->group;
         h += HEADS_TILE, q += HEADS_TILE * dim, scores += HEADS_TILE * (size_t)u->score_stride) {
        switch (int_min(job->group - h, HEADS_TILE)) {
            case 1:
                score_heads(q, dim, b, 1, scores, u->score_stride);
                break;
            case 2:
                score_heads(q, dim, b, 2, scores, u->score_stride);
                break;
            case 3:
                score_heads(q, dim, b, 3, scores, u->score_stride);
                break;
            case 4:
                score_heads(q, dim, b, int_min(HEADS_TILE, 4), scores, u->score_stride);
                break;
            case 5:
                score_heads(q, dim, b, int_min(HEADS_TILE, 5), scores, u->score_stride);
                break;
            default:
                score_heads(q, dim, b, HEADS_TILE, scores, u->score_stride);
                break;
        }
    }
}

static void score_pages(const attention_job *job, const attention_unit *u, int first_page) {
    const int dim = job->shape->head_dim, keys = paged_keys(u->seg, u->first + u->rows - 1);
    const int end = int_min(keys, (first_page + CHUNK_PAGES) * KV_PAGE);
    const bool direct = job->kv->type == DTYPE_F32 && dim == job->width;
    const size_t row_bytes = (size_t)dim * kv_size(job->kv);
    float *wide = thread_scratch(SCRATCH_TASK, KV_PAGE * (size_t)job->width * sizeof *wide);
    for (int slot = first_page * KV_PAGE; slot < end; slot += KV_PAGE) {
        const char *page = kv_row(job, job->kv->k, u, slot);
        const char *next = slot + KV_PAGE < keys ? kv_row(job, job->kv->k, u, slot + KV_PAGE) : page;
        const int count = int_min(end - slot, KV_PAGE);
        const float *from = direct ? (const float *)(const void *)page : wide;
        if (!direct) {
            for (int key = 0; key < count; key++)
                kv_widen(job, job->kv->k_scale, wide + key * job->width, page, (size_t)(key * dim), dim, job->width);
        }
        for (int i = u->first; i < u->first + u->rows; i++) {
            const int valid = int_min(paged_keys(u->seg, i) - slot, count);
            kv_block b = {from, (size_t)job->width, valid, next, row_bytes, i == u->first ? row_bytes : 0};
            if (valid > 0) score_row(job, u, i, &b, slot);
        }
    }
}

/* Scratch of the path tasks: slots [count], then widened rows [count + 8, width]. */
static float *path_scratch(const segment *seg, int width, int **slots) {
    const size_t count = ((size_t)seg->count + 15) & ~(size_t)15;
    *slots = thread_scratch(SCRATCH_TASK, (count + (count + 8) * (size_t)width) * sizeof(float));
    return (float *)*slots + count;
}

static void score_paths(const attention_job *job, const attention_unit *u) {
    int *slots;
    float *wide = path_scratch(u->seg, job->width, &slots);
    for (int i = u->first; i < u->first + u->rows; i++) {
        const int count = path_slots(u->seg, i, slots);
        for (int j = 0; j < count; j++)
            kv_widen(job, job->kv->k_scale, wide + j * job->width, kv_row(job, job->kv->k, u, slots[j]), 0,
                     job->shape->head_dim, job->width);
        score_row(job, u, i, &(kv_block){wide, (size_t)job->width, count, NULL, 0, 0}, u->seg->seq->length);
    }
}

static void score_task(void *context, int index) {
    const attention_job *job = context;
    const attention_unit *u = job->units;
    while (index >= u->first_chunk + u->chunks) u++;
    index -= u->first_chunk;
    if (u->seg->parents && index == u->chunks - 1) {
        score_paths(job, u);
    } else {
        score_pages(job, u, index * CHUNK_PAGES);
    }
}

/* ---- softmax */

/* scores[0..count) become exp(score - maximum), the rest of the last 16 zero; returns their sum. */
static float softmax_head(float *scores, int count) {
    vf high = v_set(-INFINITY), sum[PARTS];
    float lane[16];
    for (int j = 0; j < count; j += VL) high = v_max(high, v_pick_n(v_load(scores + j), high, count - j));
    v_store(lane, high);
    float highest = -INFINITY;
    for (int l = 0; l < VL; l++) highest = fmaxf(highest, lane[l]);
    UNROLL for (int p = 0; p < PARTS; p++) sum[p] = v_zero();
    for (int j = 0; j < count; j += 16) {
        UNROLL for (int p = 0; p < PARTS; p++) {
            const int at = j + p * VL;
            const vf weight = v_exp(v_sub(v_load(scores + at), v_set(highest)));
            const vf kept = at + VL <= count ? weight : v_pick_n(weight, v_zero(), count - at);
            v_store(scores + at, kept);
            sum[p] = v_add(sum[p], kept);
        }
    }
    UNROLL for (int p = 0; p < PARTS; p++) v_store(lane + p * VL, sum[p]);
    return sum16(lane);
}

static void softmax_task(void *context, int index) {
    const attention_job *job = context;
    const attention_unit *u = job->units;
    while (index >= u->first_row + u->rows) u++;
    const int row = index - u->first_row, count = row_keys(u->seg, u->first + row);
    for (int h = 0; h < job->group; h++) {
        const size_t at = (size_t)(row * job->group + h);
        u->sums[at] = softmax_head(u->scores + at * (size_t)u->score_stride, count);
    }
}

/* ---- values */

/* acc[head][VALUE_COLUMNS] += sum over keys of weight[head][key] * values[key], for VALUE_VECTORS registers of columns. */
SIMD void value_tile(float *acc, const float *weights, int weight_stride, const kv_block *b, int column,
                     const int heads) {
    const float *values = b->rows + column;
    vf a[VALUE_HEADS_TILE * VALUE_VECTORS], v[VALUE_VECTORS];
    UNROLL for (int h = 0; h < heads; h++) {
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++) a[h * VALUE_VECTORS + c] =
            v_load(acc + h * VALUE_COLUMNS + c * VL);
    }
    for (int key = 0; key < b->count; key++) {
        prefetch(b->next + (size_t)key * b->next_stride, b->next_bytes);
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++) v[c] = v_load(values + (size_t)key * b->stride + c * VL);
        UNROLL for (int h = 0; h < heads; h++) {
            const vf weight = v_set(weights[(size_t)h * (size_t)weight_stride + (size_t)key]);
            UNROLL for (int c = 0; c < VALUE_VECTORS; c++) a[h * VALUE_VECTORS + c] =
                v_fma(weight, v[c], a[h * VALUE_VECTORS + c]);
        }
    }
    UNROLL for (int h = 0; h < heads; h++) {
        UNROLL for (int c = 0; c < VALUE_VECTORS; c++)
            v_store(acc + h * VALUE_COLUMNS + c * VL, a[h * VALUE_VECTORS + c]);
    }
}

/* All query heads of a row: acc [group][VALUE_COLUMNS], weights from the block's first key on. */
static void value_row(const attention_job *job, const attention_unit *u, float *acc, const float *weights,
                      const kv_block *b) {
    const int stride = u->score_stride;
    for (int h = 0; h < job->group; h += VALUE_HEADS_TILE) {
        for (int c = 0; c < VALUE_COLUMNS; c += VALUE_VECTORS * VL) {
            float *to = acc + h * VALUE_COLUMNS + c;
            const float *from = weights + (size_t)h * (size_t)stride;
            switch (int_min(job->group - h, VALUE_HEADS_TILE)) {
                case 1:
                    value_tile(to, from, stride, b, c, 1);
                    break;
                case 2:
                    value_tile(to, from, stride, b, c, 2);
                    break;
                case 3:
                    value_tile(to, from, stride, b, c, 3);
                    break;
                case 4:
                    value_tile(to, from, stride, b, c, 4);
                    break;
                case 5:
                    value_tile(to, from, stride, b, c, 5);
                    break;
                default:
                    value_tile(to, from, stride, b, c, 6);
                    break;
            }
        }
    }
}

/* One value task: columns column .. column+n of a unit. */
typedef struct value_part {
    const attention_job *job;
    const attention_unit *u;
    int column, n;
    float *acc;  /* [rows, group, VALUE_COLUMNS] */
    float *wide; /* [KV_PAGE or the longest path, VALUE_COLUMNS] */
    int *slots;  /* [rows of the segment] */
} value_part;

static value_part value_part_of(const attention_job *job, int index) {
    value_part t = {.job = job, .u = &job->units[index / job->column_blocks]};
    t.column = index % job->column_blocks * VALUE_COLUMNS;
    t.n = int_min(job->shape->head_dim - t.column, VALUE_COLUMNS);
    const size_t acc = (size_t)(UNIT_ROWS * job->group) * VALUE_COLUMNS;
    const size_t path = ((size_t)t.u->seg->count + 15) & ~(size_t)15, rows = path > KV_PAGE ? path : KV_PAGE;
    t.acc = thread_scratch(SCRATCH_TASK, (acc + rows * VALUE_COLUMNS + path) * sizeof *t.acc);
    t.wide = t.acc + acc;
    t.slots = (int *)(t.wide + rows * VALUE_COLUMNS);
    memset(t.acc, 0, acc * sizeof *t.acc);
    return t;
}

/* Row r of the unit with a block whose first key is number `first`. */
static void value_part_row(const value_part *t, int r, const kv_block *b, int first) {
    const size_t head = (size_t)(r * t->job->group);
    value_row(t->job, t->u, t->acc + head * VALUE_COLUMNS, t->u->scores + head * (size_t)t->u->score_stride + first, b);
}

static void value_pages(const value_part *t) {
    const attention_unit *u = t->u;
    const kv_pool *kv = t->job->kv;
    const int dim = kv->head_dim, keys = paged_keys(u->seg, u->first + u->rows - 1);
    const size_t size = kv_size(kv);
    const bool direct = kv->type == DTYPE_F32 && t->n == VALUE_COLUMNS;
    for (int slot = 0; slot < keys; slot += KV_PAGE) {
        const char *page = kv_row(t->job, kv->v, u, slot);
        const char *next = slot + KV_PAGE < keys ? kv_row(t->job, kv->v, u, slot + KV_PAGE) : page;
        const int count = int_min(keys - slot, KV_PAGE);
        for (int key = 0; key < count && !direct; key++)
            kv_widen(t->job, kv->v_scale, t->wide + key * VALUE_COLUMNS, page, (size_t)(key * dim + t->column), t->n,
                     VALUE_COLUMNS);
        kv_block b = {.rows = t->wide,
                      .stride = VALUE_COLUMNS,
                      .next = next + (size_t)t->column * size,
                      .next_stride = (size_t)dim * size,
                      .next_bytes = (size_t)t->n * size};
        if (direct) b.rows = (const float *)(const void *)page + t->column, b.stride = (size_t)dim;
        for (int r = 0; r < u->rows; r++) {
            b.count = int_min(paged_keys(u->seg, u->first + r) - slot, count);
            if (b.count <= 0) continue;
            value_part_row(t, r, &b, slot);
            b.next_bytes = 0;
        }
    }
}

static void value_paths(const value_part *t) {
    const attention_unit *u = t->u;
    const kv_pool *kv = t->job->kv;
    for (int r = 0; r < u->rows; r++) {
        const kv_block b = {
            .rows = t->wide, .stride = VALUE_COLUMNS, .count = path_slots(u->seg, u->first + r, t->slots)};
        for (int j = 0; j < b.count; j++)
            kv_widen(t->job, kv->v_scale, t->wide + j * VALUE_COLUMNS, kv_row(t->job, kv->v, u, t->slots[j]),
                     (size_t)t->column, t->n, VALUE_COLUMNS);
        value_part_row(t, r, &b, u->seg->seq->length);
    }
}

/* Divides by the sum of the weights, applies the gate, writes the columns. */
static void value_finish(const value_part *t) {
    const attention_shape *s = t->job->shape;
    for (int h = 0; h < t->u->rows * t->job->group; h++) {
        const size_t row = (size_t)(t->u->seg->row + t->u->first + h / t->job->group);
        const size_t head = row * (size_t)s->heads + (size_t)(t->u->kv_head * t->job->group + h % t->job->group);
        const size_t at = head * (size_t)s->head_dim + (size_t)t->column;
        const vf sum = v_set(t->u->sums[h]);
        for (int c = 0; c < t->n; c += VL) {
            const vf gate = v_sigmoid(v_load_n(t->job->gate + at + c, t->n - c));
            v_store_n(t->job->out + at + c, v_mul(v_div(v_load(t->acc + h * VALUE_COLUMNS + c), sum), gate), t->n - c);
        }
    }
}

static void value_task(void *context, int index) {
    const value_part t = value_part_of(context, index);
    value_pages(&t);
    if (t.u->seg->parents) value_paths(&t);
    value_finish(&t);
}

/* ---- the operator */

static void run_wave(pool *p, attention_job *job) {
    if (!job->unit_count) return;
    pool_run(p, job->chunk_count, score_task, job);
    pool_run(p, job->row_count, softmax_task, job);
    pool_run(p, job->unit_count * job->column_blocks, value_task, job);
    job->unit_count = job->chunk_count = job->row_count = 0;
}

static attention_unit unit_of(const segment *seg, int first, int kv_head) {
    attention_unit u = {.seg = seg, .first = first, .rows = int_min(seg->count - first, UNIT_ROWS), .kv_head = kv_head};
    for (int i = first; i < first + u.rows; i++) u.keys = row_keys(seg, i) > u.keys ? row_keys(seg, i) : u.keys;
    u.score_stride = round_up(u.keys, 16);
    const int pages = (paged_keys(seg, first + u.rows - 1) + KV_PAGE - 1) / KV_PAGE;
    u.chunks = (pages + CHUNK_PAGES - 1) / CHUNK_PAGES + (seg->parents != NULL);
    return u;
}

/* Floats of scratch that a unit needs: scores and sums, the latter padded to a cache line. */
static size_t unit_size(const attention_unit *u, int group) {
    const size_t heads = (size_t)(u->rows * group);
    return heads * (size_t)u->score_stride + ((heads + 15) & ~(size_t)15);
}

/* The largest scratch any wave will need, so that it is asked for once and nothing moves. */
static size_t wave_size(const attention_job *job, const segment *segments, int segment_count) {
    size_t largest = 0, sum = 0;
    for (int s = 0; s < segment_count; s++) {
        for (int first = 0; first < segments[s].count; first += UNIT_ROWS) {
            attention_unit u = unit_of(&segments[s], first, 0);
            size_t size = unit_size(&u, job->group);
            largest = size > largest ? size : largest;
            sum += size * (size_t)job->shape->kv_heads;
        }
    }
    const size_t limit = WAVE_BYTES / sizeof(float);
    return sum <= limit ? sum : largest > limit ? largest : limit;
}

/* The units of a segment in the order that lets those that share pages run together. */
static void add_units(pool *p, attention_job *job, const segment *seg, float *scratch, size_t size, size_t *used) {
    for (int head = 0; head < job->shape->kv_heads; head++) {
        for (int first = 0; first < seg->count; first += UNIT_ROWS) {
            attention_unit u = unit_of(seg, first, head);
            const size_t need = unit_size(&u, job->group);
            if (job->unit_count == UNITS_MAX || *used + need > size) {
                run_wave(p, job);
                *used = 0;
            }
            u.scores = scratch + *used;
            u.sums = u.scores + (size_t)(u.rows * job->group) * (size_t)u.score_stride;
            u.first_chunk = job->chunk_count;
            u.first_row = job->row_count;
            job->chunk_count += u.chunks;
            job->row_count += u.rows;
            job->units[job->unit_count++] = u;
            *used += need;
        }
    }
}

void ISA(attention)(pool *p, float *out, const float *q, const float *gate, const attention_shape *shape,
                    const kv_pool *kv, int layer, const segment *segments, int segment_count) {
    attention_unit units[UNITS_MAX];
    attention_job job = {out,
                         q,
                         gate,
                         shape,
                         kv,
                         layer,
                         .group = shape->heads / shape->kv_heads,
                         .width = round_up(shape->head_dim, 16),
                         .column_blocks = (shape->head_dim + VALUE_COLUMNS - 1) / VALUE_COLUMNS,
                         .units = units};
    HEARTH_ASSERT(kv->type == DTYPE_F32 || kv->type == DTYPE_BF16 || kv->type == DTYPE_F8_E4M3);
    const size_t size = wave_size(&job, segments, segment_count);
    float *scratch = thread_scratch(SCRATCH_CALL, size * sizeof *scratch);
    size_t used = 0;
    for (int s = 0; s < segment_count; s++) add_units(p, &job, &segments[s], scratch, size, &used);
    run_wave(p, &job);
}

/* ---- queries, keys and values of a step into place */

typedef struct store_job {
    float *q, *gate;
    const float *qg, *k, *v, *q_scale, *k_scale;
    float eps;
    const attention_shape *shape;
    const kv_pool *kv;
    int layer;
    const segment *segments;
} store_job;

/* Norm of one head, then the rotation of its first rotary_dim dimensions. */
static void norm_rope(const store_job *job, float *out, const float *x, const float *scale, const float *cosine,
                      const float *sine) {
    const int half = job->shape->rotary_dim / 2;
    norm_row(out, x, scale, job->shape->head_dim, job->eps);
    for (int i = 0; i < half; i += VL) {
        const int n = half - i;
        const vf c = v_load_n(cosine + i, n), s = v_load_n(sine + i, n);
        const vf x1 = v_load_n(out + i, n), x2 = v_load_n(out + half + i, n);
        v_store_n(out + i, v_sub(v_mul(x1, c), v_mul(x2, s)), n);
        v_store_n(out + half + i, v_add(v_mul(x2, c), v_mul(x1, s)), n);
    }
}

/* scale: of FP8. Its codes are made one by one: a step stores few numbers compared with what it reads. */
static void kv_store(const kv_pool *kv, void *base, float scale, size_t at, const float *x) {
    for (int d = 0; d < kv->head_dim; d += VL) {
        const int n = kv->head_dim - d;
        if (kv->type == DTYPE_F32) {
            v_store_n((float *)base + at + d, v_load_n(x + d, n), n);
        } else if (kv->type == DTYPE_BF16) {
            v_store_bf16_n((uint16_t *)base + at + d, v_load_n(x + d, n), n);
        } else {
            for (int i = d; i < d + int_min(n, VL); i++) ((uint8_t *)base)[at + (size_t)i] = f32_to_e4m3(x[i] / scale);
        }
    }
}

static void store_task(void *context, int row) {
    const store_job *job = context;
    const attention_shape *s = job->shape;
    const kv_pool *kv = job->kv;
    const segment *seg = job->segments;
    while (row >= seg->row + seg->count) seg++;
    const int i = row - seg->row, slot = seg->seq->length + i;
    const int position = seg->seq->length + (seg->parents ? seg->depth[i] : i);
    const size_t dim = (size_t)s->head_dim, r = (size_t)row;
    float cosine[HEAD_DIM_MAX / 2], sine[HEAD_DIM_MAX / 2], key[HEAD_DIM_MAX];
    for (int f = 0; f < s->rotary_dim / 2; f++) {
        const double angle = (double)position * (double)s->inv_freq[f];
        cosine[f] = (float)cos(angle);
        sine[f] = (float)sin(angle);
    }
    for (int h = 0; h < s->heads; h++) {
        const size_t head = r * (size_t)s->heads + (size_t)h;
        const float *qg = job->qg + 2 * head * dim;
        norm_rope(job, job->q + head * dim, qg, job->q_scale, cosine, sine);
        memcpy(job->gate + head * dim, qg + dim, dim * sizeof *qg);
    }
    const size_t page = (size_t)job->layer * (size_t)kv->page_count + (size_t)seg->seq->pages[slot / KV_PAGE];
    for (int h = 0; h < s->kv_heads; h++) {
        const size_t from = (r * (size_t)s->kv_heads + (size_t)h) * dim;
        const size_t to = ((page * (size_t)kv->kv_heads + (size_t)h) * KV_PAGE + (size_t)(slot % KV_PAGE)) * dim;
        norm_rope(job, key, job->k + from, job->k_scale, cosine, sine);
        kv_store(kv, kv->k, kv->k_scale ? kv->k_scale[job->layer] : 1.0f, to, key);
        kv_store(kv, kv->v, kv->v_scale ? kv->v_scale[job->layer] : 1.0f, to, job->v + from);
    }
}

void ISA(qkv_store)(pool *p, float *q, float *gate, const float *qg, const float *k, const float *v,
                    const float *q_scale, const float *k_scale, float eps, const attention_shape *shape,
                    const kv_pool *kv, int layer, const segment *segments, int segment_count) {
    if (!segment_count) return;
    store_job job = {q, gate, qg, k, v, q_scale, k_scale, eps, shape, kv, layer, segments};
    const segment *last = segments + segment_count - 1;
    pool_run(p, last->row + last->count, store_task, &job);
}
