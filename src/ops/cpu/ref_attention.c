/* Attention of the scalar oracle: query and key norms, rotary positions, the paged cache, softmax over a row's keys.
 *
 * A row's keys are the committed slots and its own path. In a chain the path is the run of slots up to the row itself; in
 * a tree it is found by following parents upwards, so the path is listed once per row, root first, and after that both
 * kinds look alike: key number j of a row is slot j, or slot length + path[j - length]. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "format/minifloat.h"
#include "ops/cpu/ref.h"

/* Offset in elements of a token slot for one KV head. */
static int64_t kv_offset(const kv_pool *kv, const sequence *seq, int layer, int head, int slot) {
    int64_t page = (int64_t)layer * kv->page_count + seq->pages[slot / KV_PAGE];
    return ((page * kv->kv_heads + head) * KV_PAGE + slot % KV_PAGE) * kv->head_dim;
}

static float scale_of(const float *scales, int layer) { return scales ? scales[layer] : 1.0f; }

static void kv_store(void *base, dtype type, float scale, int64_t offset, const float *x, int count) {
    for (int i = 0; i < count; i++) {
        if (type == DTYPE_F32)
            ((float *)base)[offset + i] = x[i];
        else if (type == DTYPE_BF16)
            ((uint16_t *)base)[offset + i] = f32_to_bf16(x[i]);
        else
            ((uint8_t *)base)[offset + i] = f32_to_e4m3(x[i] / scale);
    }
}

static void kv_load(float *out, const void *base, dtype type, float scale, int64_t offset, int count) {
    if (type != DTYPE_F8_E4M3) {
        ref_widen(out, type, base, offset, count);
        return;
    }
    for (int i = 0; i < count; i++) out[i] = e4m3_to_f32(((const uint8_t *)base)[offset + i]) * scale;
}

/* Norm of one head followed by the rotation of its first rotary_dim dimensions. */
static void norm_rope(float *out, const float *x, const float *scale, float eps, const attention_shape *shape,
                      int position) {
    int half = shape->rotary_dim / 2;
    ref_rms_norm(NULL, out, x, scale, 1, shape->head_dim, eps);
    for (int i = 0; i < half; i++) {
        double angle = (double)position * (double)shape->inv_freq[i];
        float c = (float)cos(angle), s = (float)sin(angle), x1 = out[i], x2 = out[i + half];
        out[i] = x1 * c - x2 * s;
        out[i + half] = x2 * c + x1 * s;
    }
}

static void store_row(float *q, float *gate, const float *qg, const float *k, const float *v, const float *q_scale,
                      const float *k_scale, float eps, const attention_shape *shape, const kv_pool *kv, int layer,
                      const sequence *seq, int slot, int position) {
    int dim = shape->head_dim;
    for (int h = 0; h < shape->heads; h++) {
        norm_rope(q + h * dim, qg + 2 * h * dim, q_scale, eps, shape, position);
        memcpy(gate + h * dim, qg + (2 * h + 1) * dim, (size_t)dim * sizeof *gate);
    }
    for (int h = 0; h < shape->kv_heads; h++) {
        float rotated[HEAD_DIM_MAX];
        int64_t offset = kv_offset(kv, seq, layer, h, slot);
        norm_rope(rotated, k + h * dim, k_scale, eps, shape, position);
        kv_store(kv->k, kv->type, scale_of(kv->k_scale, layer), offset, rotated, dim);
        kv_store(kv->v, kv->type, scale_of(kv->v_scale, layer), offset, v + h * dim, dim);
    }
}

void ref_qkv_store(pool *p, float *q, float *gate, const float *qg, const float *k, const float *v,
                   const float *q_scale, const float *k_scale, float eps, const attention_shape *shape,
                   const kv_pool *kv, int layer, const segment *segments, int segment_count) {
    (void)p;
    int64_t q_width = (int64_t)shape->heads * shape->head_dim, k_width = (int64_t)shape->kv_heads * shape->head_dim;
    for (int s = 0; s < segment_count; s++) {
        const segment *seg = &segments[s];
        for (int i = 0; i < seg->count; i++) {
            int64_t r = seg->row + i;
            int length = seg->seq->length, position = length + (seg->parents ? seg->depth[i] : i);
            store_row(q + r * q_width, gate + r * q_width, qg + 2 * r * q_width, k + r * k_width, v + r * k_width,
                      q_scale, k_scale, eps, shape, kv, layer, seg->seq, length + i, position);
        }
    }
}

/* The keys of one row: slots[0..count) in logical order. */
typedef struct key_list {
    int *slots;
    int count;
} key_list;

static void list_keys(key_list *keys, const segment *seg, int i) {
    int length = seg->seq->length;
    keys->count = length + (seg->parents ? seg->depth[i] : i) + 1;
    for (int j = 0; j < length; j++) keys->slots[j] = j;
    for (int j = keys->count - 1, node = i; j >= length; j--) {
        keys->slots[j] = length + node;
        node = seg->parents ? seg->parents[node] : node - 1;
    }
}

typedef struct head_keys {
    const kv_pool *kv;
    const sequence *seq;
    int layer, head;
    const key_list *keys;
} head_keys;

static void load_key(float *out, const head_keys *h, const void *base, const float *scales, int j) {
    int64_t offset = kv_offset(h->kv, h->seq, h->layer, h->head, h->keys->slots[j]);
    kv_load(out, base, h->kv->type, scale_of(scales, h->layer), offset, h->kv->head_dim);
}

static float score(const head_keys *h, const float *q, int j) {
    float wide[HEAD_DIM_MAX];
    int dim = h->kv->head_dim;
    load_key(wide, h, h->kv->k, h->kv->k_scale, j);
    return ref_dot(q, wide, dim) * (1.0f / sqrtf((float)dim));
}

/* scores: [keys->count] scratch */
static void attend(float *out, const float *q, const head_keys *h, float *scores) {
    int dim = h->kv->head_dim, count = h->keys->count;
    float highest = -INFINITY, lane[16] = {0};
    for (int j = 0; j < count; j++) {
        scores[j] = score(h, q, j);
        highest = fmaxf(highest, scores[j]);
    }
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int j = 0; j < count; j++) {
        float weight = expf(scores[j] - highest), wide[HEAD_DIM_MAX];
        lane[j % 16] += weight;
        load_key(wide, h, h->kv->v, h->kv->v_scale, j);
        ref_axpy(out, weight, wide, dim);
    }
    float sum = ref_sum_lanes(lane);
    for (int i = 0; i < dim; i++) out[i] /= sum;
}

static int longest_row(const segment *segments, int segment_count) {
    int longest = 0;
    for (int s = 0; s < segment_count; s++) {
        int last = segments[s].seq->length + segments[s].count;
        if (last > longest) longest = last;
    }
    return longest;
}

void ref_attention(pool *p, float *out, const float *q, const float *gate, const attention_shape *shape,
                   const kv_pool *kv, int layer, const segment *segments, int segment_count) {
    (void)p;
    int dim = shape->head_dim, group = shape->heads / shape->kv_heads, longest = longest_row(segments, segment_count);
    key_list keys = {.slots = mem_alloc((size_t)longest * sizeof *keys.slots)};
    float *scores = mem_alloc((size_t)longest * sizeof *scores);
    for (int s = 0; s < segment_count; s++) {
        const segment *seg = &segments[s];
        for (int i = 0; i < seg->count; i++) {
            list_keys(&keys, seg, i);
            for (int h = 0; h < shape->heads; h++) {
                int64_t at = ((int64_t)(seg->row + i) * shape->heads + h) * dim;
                attend(out + at, q + at, &(head_keys){kv, seg->seq, layer, h / group, &keys}, scores);
                for (int d = 0; d < dim; d++) out[at + d] *= ref_sigmoid(gate[at + d]);
            }
        }
    }
    free(scores);
    free(keys.slots);
}
