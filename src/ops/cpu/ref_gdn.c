/* Gated DeltaNet of the scalar oracle: causal convolution, the gated delta rule, and the replay of an accepted path.
 *
 * A chain runs token by token on the committed state itself and copies it where a capture asks. A tree must not touch
 * that state, so every node gets a state of its own, copied from its parent's (or the committed one) before its token
 * runs; fast kernels save only at branch points. Both call the same gdn_token, hence the same bits. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/cpu/ref.h"

static int channels_of(const gdn_shape *g) { return 2 * g->key_heads * g->key_dim + g->value_heads * g->value_dim; }

/* ---- convolution */

/* The raw input `back` steps before node i of the segment (0 = the node itself): a row of this step, or one of the
 * committed state's conv_taps - 1 rows. */
static const float *raw_at(const segment *seg, const float *raw, const float *conv, const gdn_shape *g, int i,
                           int back) {
    int channels = channels_of(g);
    for (; back > 0 && i >= 0; back--) i = seg->parents ? seg->parents[i] : i - 1;
    if (i >= 0) return raw + (int64_t)(seg->row + i) * channels;
    return conv + (int64_t)(g->conv_taps - 2 - back) * channels;
}

/* conv = the window as it stands after node i; rows are collected first since they may come from conv itself. */
static void conv_state_after(float *to, const segment *seg, const float *raw, const float *conv, const gdn_shape *g,
                             int i) {
    int channels = channels_of(g), rows = g->conv_taps - 1;
    const float *from[CONV_TAPS_MAX];
    for (int t = 0; t < rows; t++) from[t] = raw_at(seg, raw, conv, g, i, rows - 1 - t);
    /* oldest first: a source inside conv always lies at or after its target */
    for (int t = 0; t < rows; t++) memmove(to + (int64_t)t * channels, from[t], (size_t)channels * sizeof *to);
}

static void conv_row(float *out, const segment *seg, const float *raw, const float *conv, const float *taps,
                     const gdn_shape *g, int i) {
    const float *window[CONV_TAPS_MAX];
    for (int t = 0; t < g->conv_taps; t++) window[t] = raw_at(seg, raw, conv, g, i, g->conv_taps - 1 - t);
    for (int c = 0; c < channels_of(g); c++) {
        float sum = 0;
        for (int t = 0; t < g->conv_taps; t++) sum = fmaf(taps[c * g->conv_taps + t], window[t][c], sum);
        out[c] = ref_silu(sum);
    }
}

void ref_conv(pool *p, float *out, const float *raw, const float *taps, const gdn_shape *g, int layer,
              const segment *segments, int segment_count) {
    (void)p;
    int channels = channels_of(g);
    int64_t at = (int64_t)layer * (g->conv_taps - 1) * channels;
    for (int s = 0; s < segment_count; s++) {
        const segment *seg = &segments[s];
        float *conv = seg->seq->conv + at;
        for (int i = 0; i < seg->count; i++)
            conv_row(out + (int64_t)(seg->row + i) * channels, seg, raw, conv, taps, g, i);
        if (seg->parents) continue;
        for (int c = 0; c < seg->capture_count; c++)
            conv_state_after(seg->captures[c].conv + at, seg, raw, conv, g, seg->captures[c].after - 1);
        conv_state_after(conv, seg, raw, conv, g, seg->count - 1);
    }
}

/* ---- the delta rule */

/* One value head's inputs for one token. */
typedef struct head_input {
    const float *k, *v; /* [key_dim], [value_dim] */
    float decay, beta;
} head_input;

/* S *= decay; u = beta (v - S^T k); S += k u^T. S [key_dim, value_dim]. */
static void gdn_update(float *state, const head_input *in, const gdn_shape *g) {
    float u[GDN_DIM_MAX] = {0};
    int64_t count = (int64_t)g->key_dim * g->value_dim;
    for (int64_t i = 0; i < count; i++) state[i] *= in->decay;
    for (int i = 0; i < g->key_dim; i++) ref_axpy(u, in->k[i], state + (int64_t)i * g->value_dim, g->value_dim);
    for (int j = 0; j < g->value_dim; j++) u[j] = in->beta * (in->v[j] - u[j]);
    for (int i = 0; i < g->key_dim; i++) ref_axpy(state + (int64_t)i * g->value_dim, in->k[i], u, g->value_dim);
}

/* out = S^T q */
static void gdn_read(float *out, const float *state, const float *q, const gdn_shape *g) {
    memset(out, 0, (size_t)g->value_dim * sizeof *out);
    for (int i = 0; i < g->key_dim; i++) ref_axpy(out, q[i], state + (int64_t)i * g->value_dim, g->value_dim);
}

static void l2_normalise(float *out, const float *x, int count) {
    float root = sqrtf(ref_dot(x, x, count) + 1e-6f);
    for (int i = 0; i < count; i++) out[i] = x[i] / root;
}

/* Everything a layer's rows share. */
typedef struct gdn_call {
    const float *mixed, *a, *b, *z, *neg_exp_a, *dt_bias, *norm_scale, *raw;
    float eps;
    const gdn_shape *shape;
    const gdn_stash *stash;
    float *out;
} gdn_call;

static void stash_row(const gdn_call *c, int64_t r, const float *k, const float *decay, const float *beta) {
    const gdn_shape *g = c->shape;
    const gdn_stash *s = c->stash;
    size_t keys = (size_t)g->key_heads * (size_t)g->key_dim, values = (size_t)g->value_heads * (size_t)g->value_dim;
    size_t channels = 2 * keys + values, heads = (size_t)g->value_heads, row = (size_t)r;
    memcpy(s->raw + row * channels, c->raw + row * channels, channels * sizeof(float));
    memcpy(s->k + row * keys, k, keys * sizeof(float));
    memcpy(s->v + row * values, c->mixed + row * channels + 2 * keys, values * sizeof(float));
    memcpy(s->gate + row * heads, decay, heads * sizeof(float));
    memcpy(s->beta + row * heads, beta, heads * sizeof(float));
}

/* Normalised queries and keys of row r, [key_heads, key_dim] each. */
static void row_keys(const gdn_call *c, int64_t r, float *q, float *k) {
    const gdn_shape *g = c->shape;
    const float *mixed = c->mixed + r * channels_of(g);
    float scale = sqrtf((float)g->key_dim);
    for (int h = 0; h < g->key_heads; h++) {
        l2_normalise(q + h * g->key_dim, mixed + h * g->key_dim, g->key_dim);
        for (int i = 0; i < g->key_dim; i++) q[h * g->key_dim + i] /= scale;
        l2_normalise(k + h * g->key_dim, mixed + (g->key_heads + h) * g->key_dim, g->key_dim);
    }
}

/* Gated norm of one head's output: rms_norm(o) * scale * silu(z). */
static void gated_norm(const gdn_call *c, int64_t at, const float *o) {
    int width = c->shape->value_dim;
    ref_rms_norm(NULL, c->out + at, o, c->norm_scale, 1, width, c->eps);
    for (int i = 0; i < width; i++) c->out[at + i] *= ref_silu(c->z[at + i]);
}

/* Runs row r on state [value_heads, key_dim, value_dim]; scratch [2 * key_heads * key_dim + 2 * value_heads]. */
static void gdn_token(const gdn_call *c, int64_t r, float *state, float *scratch, bool to_stash) {
    const gdn_shape *g = c->shape;
    int keys = g->key_heads * g->key_dim, group = g->value_heads / g->key_heads;
    float *q = scratch, *k = q + keys, *decay = k + keys, *beta = decay + g->value_heads;
    const float *v = c->mixed + r * channels_of(g) + 2 * keys;
    row_keys(c, r, q, k);
    for (int h = 0; h < g->value_heads; h++) {
        int64_t gate_at = r * g->value_heads + h, head_at = gate_at * g->value_dim;
        float o[GDN_DIM_MAX], *s = state + (int64_t)h * g->key_dim * g->value_dim;
        decay[h] = expf(c->neg_exp_a[h] * ref_softplus(c->a[gate_at] + c->dt_bias[h]));
        beta[h] = ref_sigmoid(c->b[gate_at]);
        gdn_update(s, &(head_input){k + h / group * g->key_dim, v + h * g->value_dim, decay[h], beta[h]}, g);
        gdn_read(o, s, q + h / group * g->key_dim, g);
        gated_norm(c, head_at, o);
    }
    if (to_stash) stash_row(c, r, k, decay, beta);
}

static void gdn_chain(const gdn_call *c, const segment *seg, int64_t layer_at, int64_t size, float *scratch) {
    float *state = seg->seq->recurrent + layer_at;
    int next = 0;
    for (int i = 0; i < seg->count; i++) {
        gdn_token(c, seg->row + i, state, scratch, false);
        for (; next < seg->capture_count && seg->captures[next].after == i + 1; next++)
            memcpy(seg->captures[next].recurrent + layer_at, state, (size_t)size * sizeof *state);
    }
}

static void gdn_tree(const gdn_call *c, const segment *seg, int64_t layer_at, int64_t size, float *scratch) {
    float *states = mem_alloc((size_t)seg->count * (size_t)size * sizeof *states);
    for (int i = 0; i < seg->count; i++) {
        int parent = seg->parents[i];
        const float *from = parent < 0 ? seg->seq->recurrent + layer_at : states + parent * size;
        memcpy(states + i * size, from, (size_t)size * sizeof *states);
        gdn_token(c, seg->row + i, states + i * size, scratch, c->stash != NULL);
    }
    free(states);
}

void ref_gdn(pool *p, float *out, const float *mixed, const float *a, const float *b, const float *z,
             const float *neg_exp_a, const float *dt_bias, const float *norm_scale, float eps, const gdn_shape *g,
             int layer, const segment *segments, int segment_count, const gdn_stash *stash, const float *raw) {
    (void)p;
    gdn_call c = {mixed, a, b, z, neg_exp_a, dt_bias, norm_scale, raw, eps, g, stash, out};
    int64_t size = (int64_t)g->value_heads * g->key_dim * g->value_dim;
    float *scratch = mem_alloc((size_t)(2 * g->key_heads * g->key_dim + 2 * g->value_heads) * sizeof *scratch);
    for (int s = 0; s < segment_count; s++)
        (segments[s].parents ? gdn_tree : gdn_chain)(&c, &segments[s], layer * size, size, scratch);
    free(scratch);
}

/* ---- replay */

static void commit_conv(float *conv, const gdn_shape *g, const gdn_stash *stash, const int32_t *path, int path_count) {
    int channels = channels_of(g), rows = g->conv_taps - 1;
    for (int t = 0; t < rows; t++) {
        int from = path_count - rows + t; /* counted from the path's start; before it lies the committed window */
        const float *row =
            from >= 0 ? stash->raw + (int64_t)path[from] * channels : conv + (int64_t)(from + rows) * channels;
        memmove(conv + (int64_t)t * channels, row, (size_t)channels * sizeof *conv);
    }
}

void ref_gdn_commit(pool *p, const sequence *seq, const gdn_shape *g, int layer, const gdn_stash *stash,
                    const int32_t *path, int path_count) {
    (void)p;
    int group = g->value_heads / g->key_heads;
    int64_t head_size = (int64_t)g->key_dim * g->value_dim;
    float *state = seq->recurrent + layer * g->value_heads * head_size;
    for (int n = 0; n < path_count; n++) {
        int64_t r = path[n];
        for (int h = 0; h < g->value_heads; h++) {
            int64_t at = r * g->value_heads + h;
            head_input in = {stash->k + (r * g->key_heads + h / group) * g->key_dim, stash->v + at * g->value_dim,
                             stash->gate[at], stash->beta[at]};
            gdn_update(state + h * head_size, &in, g);
        }
    }
    commit_conv(seq->conv + (int64_t)layer * (g->conv_taps - 1) * channels_of(g), g, stash, path, path_count);
}
