/* See sampler.h.
 *
 * A vocabulary has a quarter of a million entries, so nothing is sorted. A logit and its id pack into one 64-bit key that
 * orders by logit, then by lower id, and is unique. Top-k keeps a heap of k keys; top-p narrows a range of keys by
 * partition, following the side where the running sum reaches the limit. Noise needs two logarithms a token, but for
 * nearly all tokens the leading zeros of the hash already bound it below what would win. */
#include "decode/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct sampler {
    int32_t vocabulary;
    uint64_t *keys;  /* [vocabulary] */
    double *weights; /* [vocabulary] of keys, during top-p */
};

sampler *sampler_create(int32_t vocabulary) {
    HEARTH_ASSERT(vocabulary > 0);
    sampler *s = mem_zero(1, sizeof *s);
    s->vocabulary = vocabulary;
    s->keys = mem_zero((size_t)vocabulary, sizeof *s->keys);
    s->weights = mem_zero((size_t)vocabulary, sizeof *s->weights);
    return s;
}

void sampler_destroy(sampler *s) {
    if (!s) return;
    free(s->keys);
    free(s->weights);
    free(s);
}

/* ---- noise */

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose output bits all depend on all input bits. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

enum { HASH_BITS = 52 };
static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u;

/* One SplitMix64 stream per (seed, position); the id is the index in the stream. */
static uint64_t stream_key(uint64_t seed, int64_t position) {
    return mix(mix(seed + GOLDEN) ^ ((uint64_t)position + 1) * 0xd1342543de82ef95u);
}

static uint64_t stream_hash(uint64_t key, int32_t id) {
    return mix(key + ((uint64_t)id + 1) * GOLDEN) >> (64 - HASH_BITS);
}

/* h is the distance of u from 1: u = 1 - (h + 0.5) / 2^52. Taken this way round, because large noise, which decides, is
 * u near 1, where 1 - u is known precisely and u is not. */
static double gumbel(uint64_t h) {
    double below_one = ((double)h + 0.5) * 0x1p-52;
    return -log(-log1p(-below_one));
}

/* gumbel(h) is less: -log1p(-x) >= x, and x >= 2^(bits of h - 53). */
static double gumbel_bound(uint64_t h) {
    int bits = h ? 64 - __builtin_clzll(h) : 0;
    return (HASH_BITS + 1 - bits) * 0.693147180559945310 + 1e-9;
}

double sampler_noise(uint64_t seed, int64_t position, int32_t id) {
    return gumbel(stream_hash(stream_key(seed, position), id));
}

/* ---- keys */

/* Bits of a float such that integer order is numeric order; -0 counts as 0, and what is not finite lies at or beyond
 * ORDER_INFINITE on either side. */
static int32_t float_order(float x) {
    uint32_t u;
    x += 0.0f;
    memcpy(&u, &x, sizeof u);
    return (int32_t)(u ^ (uint32_t)((int32_t)u >> 31) >> 1);
}

static const int32_t ORDER_INFINITE = 0x7f800000;

static uint64_t key_make(float logit, int32_t id) {
    return (uint64_t)((uint32_t)float_order(logit) ^ 0x80000000u) << 32 | (0xffffffffu - (uint32_t)id);
}

static int32_t key_id(uint64_t key) { return (int32_t)(0xffffffffu - (uint32_t)key); }

static float key_logit(uint64_t key) {
    uint32_t order = (uint32_t)(key >> 32) ^ 0x80000000u;
    uint32_t u = order ^ (uint32_t)((int32_t)order >> 31) >> 1;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- argmax */

enum { LANES = 16 };

/* Largest and smallest order of a row. Lanes of fixed number, so that the compiler makes vector code of it: this is the
 * one pass over a quarter of a million logits that every token needs. */
static void find_range(const float *logits, int32_t count, int32_t *largest, int32_t *smallest) {
    int32_t high[LANES], low[LANES];
    for (int k = 0; k < LANES; k++) high[k] = low[k] = float_order(logits[0]);
    int32_t whole = count - count % LANES;
    for (int32_t i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++) {
            int32_t order = float_order(logits[i + k]);
            high[k] = order > high[k] ? order : high[k];
            low[k] = order < low[k] ? order : low[k];
        }
    for (int32_t i = whole; i < count; i++) {
        int32_t order = float_order(logits[i]);
        high[0] = order > high[0] ? order : high[0];
        low[0] = order < low[0] ? order : low[0];
    }
    *largest = high[0], *smallest = low[0];
    for (int k = 1; k < LANES; k++) {
        if (high[k] > *largest) *largest = high[k];
        if (low[k] < *smallest) *smallest = low[k];
    }
}

static err_code find_largest(const float *logits, int32_t count, int32_t *id, error *err) {
    int32_t largest, smallest, i = 0;
    find_range(logits, count, &largest, &smallest);
    if (largest >= ORDER_INFINITE || smallest < -ORDER_INFINITE) {
        while (isfinite(logits[i])) i++;
        ERR_FAIL(err, ERR_INTERNAL, "the model produced a non-finite logit (%g for token %d)", (double)logits[i], i);
    }
    while (float_order(logits[i]) != largest) i++;
    *id = i;
    return ERR_OK;
}

/* ---- top-k: a heap of the k largest keys, smallest at the root */

static void sift_down(uint64_t *heap, int count, int at) {
    for (;;) {
        int child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[at] <= heap[child]) return;
        uint64_t t = heap[at];
        heap[at] = heap[child], heap[child] = t;
        at = child;
    }
}

static int keep_top_k(uint64_t *keys, const float *logits, int32_t count, int k) {
    for (int i = 0; i < k; i++) keys[i] = key_make(logits[i], i);
    for (int i = k / 2 - 1; i >= 0; i--) sift_down(keys, k, i);
    for (int32_t i = k; i < count; i++) {
        uint64_t key = key_make(logits[i], i);
        if (key <= keys[0]) continue;
        keys[0] = key;
        sift_down(keys, k, 0);
    }
    return k;
}

/* ---- top-p */

/* A token this far below the largest has less than 1e-17 of its probability: nothing, next to a double's precision. */
static const double LOG_NOTHING = -40;

static double weight_of(float logit, float largest, double scale) {
    double x = ((double)logit - (double)largest) * scale;
    return x < LOG_NOTHING ? 0 : exp(x);
}

static void swap_entries(sampler *s, int a, int b) {
    uint64_t key = s->keys[a];
    double weight = s->weights[a];
    s->keys[a] = s->keys[b], s->weights[a] = s->weights[b];
    s->keys[b] = key, s->weights[b] = weight;
}

static uint64_t median_key(uint64_t a, uint64_t b, uint64_t c) {
    if (a > b) {
        uint64_t t = a;
        a = b, b = t;
    }
    return c <= a ? a : c >= b ? b : c;
}

/* Moves the keys of [from, to) that are >= pivot to the front; returns their number and adds up their weight. */
static int partition(sampler *s, int from, int to, uint64_t pivot, double *weight) {
    int kept = from;
    *weight = 0;
    for (int i = from; i < to; i++) {
        if (s->keys[i] < pivot) continue;
        *weight += s->weights[i];
        swap_entries(s, i, kept++);
    }
    return kept - from;
}

/* Reorders keys[0..count) so that the shortest leading run in key order with weight >= need comes first; its length.
 * Invariant: everything before `from` belongs to the run, everything from `to` on does not. */
static int keep_weight(sampler *s, int count, double need) {
    int from = 0, to = count;
    while (to - from > 1) {
        uint64_t pivot = median_key(s->keys[from], s->keys[from + (to - from) / 2], s->keys[to - 1]);
        double weight;
        int upper = partition(s, from, to, pivot, &weight);
        if (upper == to - from) { /* the pivot is the smallest: set it apart so that the range shrinks */
            uint64_t next = UINT64_MAX;
            for (int i = from; i < to; i++)
                if (s->keys[i] > pivot && s->keys[i] < next) next = s->keys[i];
            upper = partition(s, from, to, next, &weight);
        }
        if (weight >= need) {
            to = from + upper;
        } else {
            need -= weight;
            from += upper;
        }
    }
    return to;
}

/* Fills keys with the tokens whose weight is at least `least`; returns their number and adds up. */
static int gather(sampler *s, const float *logits, float largest, double scale, double least, double *total,
                  double *gathered) {
    int count = 0;
    *total = *gathered = 0;
    for (int32_t i = 0; i < s->vocabulary; i++) {
        double w = weight_of(logits[i], largest, scale);
        *total += w;
        if (w < least) continue;
        *gathered += w;
        s->keys[count] = key_make(logits[i], i);
        s->weights[count++] = w;
    }
    return count;
}

/* Top-p over the whole vocabulary. The answer is nearly always among the few tokens above a small fraction of the
 * largest; only a flat distribution needs all of them. */
static int keep_top_p(sampler *s, const float *logits, float largest, double scale, double top_p) {
    double total, gathered;
    int count = gather(s, logits, largest, scale, 1e-5, &total, &gathered);
    if (gathered < top_p * total) count = gather(s, logits, largest, scale, 0, &total, &gathered);
    return keep_weight(s, count, top_p * total);
}

static int keep_top_p_of(sampler *s, int count, float largest, double scale, double top_p) {
    double total = 0;
    for (int i = 0; i < count; i++) {
        s->weights[i] = weight_of(key_logit(s->keys[i]), largest, scale);
        total += s->weights[i];
    }
    return keep_weight(s, count, top_p * total);
}

/* ---- choice */

typedef struct chooser {
    uint64_t key; /* stream */
    double scale; /* 1 / T */
    double floor; /* scaled logits below it are filtered out by min-p */
    double best;
    int32_t id;
} chooser;

static void consider(chooser *c, float logit, int32_t id) {
    double z = (double)logit * c->scale;
    if (z < c->floor) return;
    uint64_t h = stream_hash(c->key, id);
    if (z + gumbel_bound(h) < c->best) return;
    double value = z + gumbel(h);
    if (value > c->best || (value == c->best && id < c->id)) c->best = value, c->id = id;
}

err_code sampler_choose(sampler *s, const sampler_params *params, const float *logits, int64_t position, int32_t *id,
                        error *err) {
    int32_t top = 0;
    ERR_TRY(find_largest(logits, s->vocabulary, &top, err));
    /* So cold that the largest logit over T overflows: the limit is argmax. */
    double scale = params->temperature > 0 ? 1 / params->temperature : INFINITY;
    if (!isfinite(scale * ((double)fabsf(logits[top]) + 1))) {
        *id = top;
        return ERR_OK;
    }
    bool by_k = params->top_k > 0 && params->top_k < s->vocabulary, by_p = params->top_p < 1;
    int kept = s->vocabulary;
    if (by_k) kept = keep_top_k(s->keys, logits, s->vocabulary, params->top_k);
    if (by_p)
        kept = by_k ? keep_top_p_of(s, kept, logits[top], scale, params->top_p)
                    : keep_top_p(s, logits, logits[top], scale, params->top_p);

    chooser c = {.key = stream_key(params->seed, position), .scale = scale, .best = -INFINITY, .id = top};
    c.floor = params->min_p > 0 ? (double)logits[top] * scale + log(params->min_p) : -INFINITY;
    consider(&c, logits[top], top); /* kept by every filter; gives the bound something to work with */
    if (by_k || by_p)
        for (int i = 0; i < kept; i++) consider(&c, key_logit(s->keys[i]), key_id(s->keys[i]));
    else
        for (int32_t i = 0; i < s->vocabulary; i++) consider(&c, logits[i], i);
    *id = c.id;
    return ERR_OK;
}
