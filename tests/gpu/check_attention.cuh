/* Check of attention: against double precision over the stored keys and values (queries rounded to bf16 as the contract
 * says), for both KV types and lengths around page and range edges; and every node of a tree bit for bit against the
 * same path committed and asked alone. */
#ifndef HEARTH_TESTS_GPU_CHECK_ATTENTION_CUH
#define HEARTH_TESTS_GPU_CHECK_ATTENTION_CUH

#include "gpu_support.cuh"

enum { ATT_HEADS = 24, ATT_KV = 4, ATT_DIM = CUDA_HEAD_DIM, ATT_OUT = ATT_HEADS * ATT_DIM };

typedef struct attention_data {
    cuda_kv_type type;
    int length, count, page_count;
    size_t element, row_bytes; /* of one KV head's token */
    int32_t *pages;
    uint8_t *k, *v; /* host pool */
    float *q, *gate;
    float k_scale, v_scale;
} attention_data;

static size_t slot_at(const attention_data *d, int slot, int head) {
    size_t page = (size_t)d->pages[slot / CUDA_PAGE];
    return ((page * ATT_KV + (size_t)head) * CUDA_PAGE + (size_t)(slot % CUDA_PAGE)) * d->row_bytes;
}

static void random_kv(const attention_data *d, uint8_t *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t wide = bf16_of(random_unit());
        if (d->type == CUDA_KV_E4M3) /* all codes of magnitude up to 1.875, subnormal ones too */
            to[i] = (uint8_t)((random_bits() & 0x80) | random_bits() % 0x40);
        else
            memcpy(to + 2 * i, &wide, 2);
    }
}

static attention_data make_attention(cuda_kv_type type, int length, int count) {
    attention_data d = {type, length, count, (length + count) / CUDA_PAGE + 3, type == CUDA_KV_E4M3 ? 1u : 2u};
    d.row_bytes = ATT_DIM * d.element;
    d.pages = (int32_t *)host_buffer((size_t)d.page_count * 4);
    for (int i = 0; i < d.page_count; i++) d.pages[i] = (i * 7 + 3) % d.page_count;
    for (int i = 0, step = d.page_count % 7 == 0; step && i < d.page_count; i++) d.pages[i] = d.page_count - 1 - i;
    size_t elements = (size_t)d.page_count * ATT_KV * CUDA_PAGE * ATT_DIM;
    d.k = (uint8_t *)host_buffer(elements * d.element);
    d.v = (uint8_t *)host_buffer(elements * d.element);
    random_kv(&d, d.k, elements);
    random_kv(&d, d.v, elements);
    d.q = random_floats((size_t)count * ATT_OUT, 4);
    d.gate = random_floats((size_t)count * ATT_OUT, 2);
    d.k_scale = type == CUDA_KV_E4M3 ? 0.75f : 1;
    d.v_scale = type == CUDA_KV_E4M3 ? 1.5f : 1;
    return d;
}

static void free_attention(attention_data *d) { free(d->pages), free(d->k), free(d->v), free(d->q), free(d->gate); }

/* Outputs of the rows as bf16 bits, owned by the caller. */
static uint16_t *run_attention(const attention_data *d, const int32_t *parents) {
    size_t pool = (size_t)d->page_count * ATT_KV * CUDA_PAGE * d->row_bytes, out = (size_t)d->count * ATT_OUT;
    cuda_attention_segment seg = {0, d->count, d->length, (int32_t *)device_copy(d->pages, (size_t)d->page_count * 4),
                                  (int32_t *)device_copy(parents, (size_t)d->count * 4)};
    cuda_attention_step s = {};
    s.heads = ATT_HEADS, s.kv_heads = ATT_KV, s.rows = d->count;
    s.range_count = (d->length + d->count + CUDA_ATTENTION_RANGE - 1) / CUDA_ATTENTION_RANGE;
    s.q = (float *)device_copy(d->q, out * 4), s.gate = (float *)device_copy(d->gate, out * 4);
    s.type = d->type, s.k = device_copy(d->k, pool), s.v = device_copy(d->v, pool);
    s.k_scale = d->k_scale, s.v_scale = d->v_scale;
    s.out = device_buffer(out * 2, 0xff);
    s.segments = (cuda_attention_segment *)device_copy(&seg, sizeof seg), s.segment_count = 1;
    s.workspace = device_buffer(cuda_attention_workspace(d->count, ATT_HEADS, s.range_count), 0xff);
    OP_DO(cuda_attention(&s, NULL, &op_error));
    CUDA_DO(cudaDeviceSynchronize());
    uint16_t *bits = (uint16_t *)host_copy(s.out, out * 2);
    void *owned[] = {(void *)seg.pages, (void *)seg.parents, (void *)s.q, (void *)s.gate,
                     (void *)s.k,       (void *)s.v,         s.out,       (void *)s.segments,
                     s.workspace};
    for (int i = 0; i < 9; i++) CUDA_DO(cudaFree(owned[i]));
    return bits;
}

static double kv_value(const attention_data *d, const uint8_t *pool, size_t at, int i) {
    uint16_t wide;
    if (d->type == CUDA_KV_E4M3) return e4m3_value(pool[at + (size_t)i]);
    memcpy(&wide, pool + at + 2 * (size_t)i, 2);
    return bf16_value(wide);
}

/* Slots of node i's keys in logical order; returns their number. */
static int key_slots(const attention_data *d, const int32_t *parents, int i, int *slots) {
    int depth = 0;
    for (int j = parents[i]; j >= 0; j = parents[j]) depth++;
    for (int j = 0; j < d->length; j++) slots[j] = j;
    for (int j = i, at = d->length + depth; j >= 0; j = parents[j]) slots[at--] = d->length + j;
    return d->length + depth + 1;
}

static void attend_double(const attention_data *d, const int32_t *parents, int i, double *out) {
    int *slots = (int *)host_buffer((size_t)(d->length + d->count) * sizeof(int)), n = key_slots(d, parents, i, slots);
    double *score = (double *)host_buffer((size_t)n * 8);
    for (int h = 0; h < ATT_HEADS; h++) {
        double most = -1e300, sum = 0, q[ATT_DIM];
        for (int c = 0; c < ATT_DIM; c++) q[c] = bf16_value(bf16_of(d->q[((size_t)i * ATT_HEADS + h) * ATT_DIM + c]));
        for (int j = 0; j < n; j++) {
            size_t at = slot_at(d, slots[j], h / (ATT_HEADS / ATT_KV));
            score[j] = 0;
            for (int c = 0; c < ATT_DIM; c++) score[j] += q[c] * kv_value(d, d->k, at, c);
            score[j] *= d->k_scale / 16.0;
            if (score[j] > most) most = score[j];
        }
        double *row = out + ((size_t)i * ATT_HEADS + h) * ATT_DIM;
        for (int j = 0; j < n; j++) {
            size_t at = slot_at(d, slots[j], h / (ATT_HEADS / ATT_KV));
            double weight = exp(score[j] - most);
            sum += weight;
            for (int c = 0; c < ATT_DIM; c++) row[c] += weight * kv_value(d, d->v, at, c);
        }
        for (int c = 0; c < ATT_DIM; c++)
            row[c] *= d->v_scale / sum / (1 + exp(-(double)d->gate[((size_t)i * ATT_HEADS + h) * ATT_DIM + c]));
    }
    free(slots), free(score);
}

/* Node i alone, its path committed: the same keys in consecutive slots of other pages. */
static uint16_t *run_path(const attention_data *d, const int32_t *parents, int i) {
    static const int32_t root = -1;
    int *slots = (int *)host_buffer((size_t)(d->length + d->count) * sizeof(int)), n = key_slots(d, parents, i, slots);
    attention_data alone = make_attention(d->type, n - 1, 1);
    for (int j = 0; j < n; j++)
        for (int head = 0; head < ATT_KV; head++) {
            memcpy(alone.k + slot_at(&alone, j, head), d->k + slot_at(d, slots[j], head), d->row_bytes);
            memcpy(alone.v + slot_at(&alone, j, head), d->v + slot_at(d, slots[j], head), d->row_bytes);
        }
    memcpy(alone.q, d->q + (size_t)i * ATT_OUT, ATT_OUT * 4);
    memcpy(alone.gate, d->gate + (size_t)i * ATT_OUT, ATT_OUT * 4);
    uint16_t *bits = run_attention(&alone, &root);
    free_attention(&alone);
    free(slots);
    return bits;
}

static void check_attention_case(cuda_kv_type type, int length, int count, const int32_t *parents) {
    char name[100];
    attention_data d = make_attention(type, length, count);
    double *want = (double *)host_buffer((size_t)count * ATT_OUT * 8);
    float *got = (float *)host_buffer((size_t)count * ATT_OUT * 4);
    uint16_t *bits = run_attention(&d, parents);
    size_t wrong = 0;
    for (int i = 0; i < count * ATT_OUT; i++) got[i] = bf16_value(bits[i]);
    for (int i = 0; i < count; i++) {
        attend_double(&d, parents, i, want);
        uint16_t *alone = run_path(&d, parents, i);
        wrong += memcmp(alone, bits + (size_t)i * ATT_OUT, ATT_OUT * 2) != 0;
        free(alone);
    }
    const char *what = type == CUDA_KV_E4M3 ? "E4M3" : "bf16";
    snprintf(name, sizeof name, "attention %s, %d committed, %d nodes: error", what, length, count);
    case_close(name, got, want, (size_t)count * ATT_OUT, 1e-5);
    snprintf(name, sizeof name, "attention %s, %d committed, %d nodes: bits of every node alone", what, length, count);
    case_result(wrong == 0, name, (double)wrong, 0);
    free(want), free(got), free(bits);
    free_attention(&d);
}

static void check_attention(bool quick) {
    static const int32_t bushy[16] = {-1, 0, 1, 1, 0, 4, 5, 2, 3, 3, 0, 10, 6, 12, 13, 9};
    static const struct {
        int length, count;
    } cases[] = {{70, 2}, {0, 1}, {0, 5}, {63, 1}, {64, 3}, {511, 16}, {1020, 16}, {2048, 8}, {3001, 4}};
    random_state = 300;
    printf("seed %llu\n", (unsigned long long)random_state);
    for (int i = 0; i < (quick ? 1 : 9); i++) {
        check_attention_case(CUDA_KV_E4M3, cases[i].length, cases[i].count, bushy);
        check_attention_case(CUDA_KV_BF16, cases[i].length, cases[i].count, bushy);
    }
}

#endif
