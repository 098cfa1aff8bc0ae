/* The model against the reference implementation's numbers: logits, hidden rows, recurrent and convolution states, greedy
 * continuation, MTP chains, trees and their commit, and speculative decoding, for every dense checkpoint and layout, with
 * the scalar oracle and with the fastest table of this machine. The largest differences are printed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden_files.h"
#include "model_lab.h"
#include "support.h"

enum { ROWS_MAX = 256, TOKENS_MAX = 384, DEPTH = 4, NODES_MAX = 64 };

/* Greedy choices are compared where the reference's margin is at least `margin`. */
typedef struct rules {
    const char *mode;
    dtype kv_type;
    double logit, rms, state, hidden, margin;
} rules;

static const rules EXACT = {"exact", DTYPE_F32, 1e-3, 1e-3, 1e-3, 1e-4, 0.01};
/* An element of K or V at a rounding boundary falls on the other side now and then. */
static const rules KV8 = {"kv8", DTYPE_F8_E4M3, 0.1, 5e-3, 0.1, 0.01, 0.3};

typedef struct golden_case {
    const char *name;
    bool own; /* kept in tests/golden, so that a plain clone tests the model too */
    const ops *(*table)(void);
    const rules *rules;
} golden_case;

/* Everything one case needs. */
typedef struct bench {
    lab l;
    json_file info;
    const rules *rules;
    char dir[1024]; /* of the golden numbers */
    int vocab, limit, width;
    npy logits_last, hidden_last, top8_ids, top8_logits, mtp_logits, mtp_hidden;
    double worst_logit, worst_hidden, worst_state, worst_mtp, worst_tree; /* largest differences seen */
    double squares;                                                       /* of the last rows' logits */
    int64_t square_count;
} bench;

/* One sequence with its final-norm hidden rows, as an engine keeps it for the MTP layer. */
typedef struct talk {
    agent a;
    int32_t ids[TOKENS_MAX];
    int count, mtp_filled; /* pairs whose MTP slot holds the target's own hidden row */
    float *hidden;         /* [TOKENS_MAX, hidden] */
    float *row;            /* logits after the last token */
} talk;

static void within(double got, double want, double tolerance, double *worst, const char *what) {
    double d = fabs(got - want);
    if (d > *worst) *worst = d;
    if (!(d <= tolerance)) fail_msg("%s: %.9g, golden %.9g, difference %.3g > %.3g", what, got, want, d, tolerance);
}

static void rows_within(const float *got, const float *want, int64_t count, double tolerance, double *worst,
                        const char *what) {
    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (d > *worst) *worst = d;
        if (!(d <= tolerance))
            fail_msg("%s: element %lld is %.9g, golden %.9g", what, (long long)i, (double)got[i], (double)want[i]);
    }
}

/* ---- set-up */

static const char *find_case(bench *b, const golden_case *c) {
    char relative[256];
    if (c->own) {
        snprintf(b->dir, sizeof b->dir, "tests/golden/%s/golden", c->name);
        return "tests/golden/small";
    }
    snprintf(relative, sizeof relative, "oracle/golden/%s/%s", c->name, c->rules->mode);
    snprintf(b->dir, sizeof b->dir, "%s", test_need_shared(relative));
    return golden_checkpoint(c->name);
}

static bool open_bench(bench *b, const golden_case *c) {
    *b = (bench){.rules = c->rules};
    const char *ckpt = find_case(b, c);
    if (!ckpt) return false;
    lab_place place = {.table = c->table(), .kv_type = c->rules->kv_type};
    lab_open(&b->l, ckpt, &place, ROWS_MAX, 60);
    b->info = json_load(b->dir, "golden.json");
    b->vocab = (int)golden_integer(b->info.root, "vocab");
    b->limit = (int)golden_integer(b->info.root, "limit");
    b->width = b->l.c->hidden;
    assert_int_equal(b->vocab, b->l.c->vocab_rows);
    b->logits_last = npy_load(b->dir, "logits_last.npy");
    b->hidden_last = npy_load(b->dir, "hidden_last.npy");
    b->top8_ids = npy_load(b->dir, "top8_ids.npy");
    b->top8_logits = npy_load(b->dir, "top8_logits.npy");
    if (strcmp(c->rules->mode, "exact") != 0) return true;
    b->mtp_logits = npy_load(b->dir, "mtp_logits.npy");
    b->mtp_hidden = npy_load(b->dir, "mtp_hidden.npy");
    return true;
}

static void close_bench(bench *b) {
    npy_free(&b->logits_last);
    npy_free(&b->hidden_last);
    npy_free(&b->top8_ids);
    npy_free(&b->top8_logits);
    npy_free(&b->mtp_logits);
    npy_free(&b->mtp_hidden);
    json_file_free(&b->info);
    lab_close(&b->l);
}

static talk talk_open(bench *b) {
    b->l.next_page = 0; /* one sequence at a time: pages are used again */
    talk t = {.a = lab_agent(&b->l, TOKENS_MAX)};
    t.hidden = lab_floats((int64_t)TOKENS_MAX * b->width);
    t.row = lab_floats(b->vocab);
    return t;
}

static void talk_close(talk *t) {
    agent_free(&t->a);
    free(t->hidden);
    free(t->row);
}

/* Takes count tokens that the model has already run into the talk's record. */
static void record(bench *b, talk *t, const int32_t *ids, const float *hidden, int count, const float *row) {
    assert_true(t->count + count <= TOKENS_MAX);
    memcpy(t->ids + t->count, ids, (size_t)count * sizeof *ids);
    memcpy(t->hidden + (int64_t)t->count * b->width, hidden, (size_t)(count * b->width) * sizeof *hidden);
    memmove(t->row, row, (size_t)b->vocab * sizeof *row);
    t->count += count;
}

/* Appends known tokens; t->row becomes the logits after the last one. */
static void say(bench *b, talk *t, const int32_t *ids, int count) {
    float *hidden = lab_floats((int64_t)count * b->width), *row = lab_floats(b->vocab);
    lab_chain(&b->l, &t->a, ids, count, count - 1, row, hidden);
    record(b, t, ids, hidden, count, row);
    free(hidden);
    free(row);
}

static const json *prompt_named(const bench *b, const json *name) {
    for (const json *p = golden_get(b->info.root, "prompts")->first; p; p = p->next)
        if (span_equal(golden_get(p, "name")->text, name->text)) return p;
    fail_msg("no prompt of that name");
    return NULL;
}

static void say_prompt(bench *b, talk *t, const json *prompt) {
    int32_t ids[TOKENS_MAX];
    say(b, t, ids, golden_ints(prompt, "ids", ids, TOKENS_MAX));
}

/* Golden tokens are greedy ones: says them as long as the reference was sure. */
static void say_greedy(bench *b, talk *t, const int32_t *want, int count, const json *margins) {
    const json *margin = margins->first;
    for (int i = 0; i < count; i++, margin = margin->next) {
        double m;
        assert_true(json_double(margin, &m));
        if (m < b->rules->margin) return;
        assert_int_equal(lab_argmax(t->row, b->limit), want[i]);
        say(b, t, &want[i], 1);
    }
}

/* ---- states */

typedef struct figures {
    double sum, l2, cos, max;
} figures;

/* The weighted sum notices permutations. */
static figures figures_of(const float *x, int64_t count) {
    figures f = {0};
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = (double)x[i];
        f.sum += v, squares += v * v, f.cos += v * cos(0.37 * (double)i), f.max = fmax(f.max, fabs(v));
    }
    f.l2 = sqrt(squares);
    return f;
}

static void check_state(bench *b, const talk *t, const json *layers) {
    const model_config *c = b->l.c;
    int64_t size = model_recurrent_count(c) / c->gdn_layers, conv_size = model_conv_count(c) / c->gdn_layers;
    int gdn = 0;
    for (const json *want = layers->first; want; want = want->next, gdn++) {
        figures s = figures_of(t->a.recurrent + gdn * size, size);
        figures v = figures_of(t->a.conv + gdn * conv_size, conv_size);
        /* sums over thousands of elements, printed with six digits */
        double tolerance = b->rules->state * fmax(1, fmax(s.l2, v.l2) / 10), worst[1] = {0};
        within(s.sum, golden_number(want, "sum"), tolerance, worst, "state sum");
        within(s.l2, golden_number(want, "l2"), tolerance, worst, "state l2");
        within(s.cos, golden_number(want, "cos"), tolerance, worst, "state cos");
        within(s.max, golden_number(want, "max"), tolerance, worst, "state max");
        within(v.l2, golden_number(want, "conv_l2"), tolerance, worst, "conv l2");
        within(v.cos, golden_number(want, "conv_cos"), tolerance, worst, "conv cos");
    }
    assert_int_equal(gdn, c->gdn_layers);
}

static int gdn_index(const model_config *c, int64_t layer) {
    int index = 0;
    for (int i = 0; i < layer; i++) index += !c->full_attention[i];
    return index;
}

/* The kept arrays: first and last GDN layer, some heads, after one prompt. */
static void check_state_arrays(bench *b, const talk *t) {
    const model_config *c = b->l.c;
    const json *state = golden_get(b->info.root, "state");
    npy recurrent = npy_load(b->dir, "gdn_state.npy"), conv = npy_load(b->dir, "conv_state.npy");
    int32_t layers[2], heads[64];
    int head_count = golden_ints(state, "heads", heads, 64);
    int64_t head_size = (int64_t)c->key_dim * c->value_dim, conv_size = model_conv_count(c) / c->gdn_layers;
    assert_int_equal(golden_ints(state, "layers", layers, 2), 2);
    for (int i = 0; i < 2; i++) {
        int gdn = gdn_index(c, layers[i]);
        for (int h = 0; h < head_count; h++)
            rows_within(t->a.recurrent + ((int64_t)gdn * c->value_heads + heads[h]) * head_size,
                        npy_row(&recurrent, i) + h * head_size, head_size, b->rules->state, &b->worst_state, "gdn");
        rows_within(t->a.conv + gdn * conv_size, npy_row(&conv, i), conv_size, b->rules->state, &b->worst_state,
                    "conv");
    }
    npy_free(&recurrent);
    npy_free(&conv);
}

/* ---- prompts */

/* The golden ids hold the eight largest logits of every position. */
static void check_top8(bench *b, const float *logits, int64_t offset, int rows) {
    const int32_t *ids = (const int32_t *)b->top8_ids.data + offset * 8;
    const float *want = (const float *)b->top8_logits.data + offset * 8;
    for (int r = 0; r < rows; r++) {
        const float *row = logits + (int64_t)r * b->vocab;
        int above = 0;
        for (int k = 0; k < 8; k++)
            within((double)row[ids[r * 8 + k]], (double)want[r * 8 + k], b->rules->logit, &b->worst_logit, "top 8");
        for (int i = 0; i < b->vocab; i++) above += (double)row[i] > (double)want[r * 8 + 7] + b->rules->logit;
        assert_true(above <= 7);
    }
}

static void check_last(bench *b, const talk *t, const json *prompt) {
    int64_t last = golden_integer(prompt, "last_row");
    const float *hidden = t->hidden + (int64_t)(t->count - 1) * b->width, *want = npy_row(&b->hidden_last, last);
    double size = figures_of(want, b->width).max;
    for (int i = 0; i < b->vocab; i++) {
        double d = (double)t->row[i] - (double)npy_row(&b->logits_last, last)[i];
        b->squares += d * d;
    }
    b->square_count += b->vocab;
    rows_within(t->row, npy_row(&b->logits_last, last), b->vocab, b->rules->logit, &b->worst_logit, "logits");
    rows_within(hidden, want, b->width, b->rules->hidden * size, &b->worst_hidden, "hidden");
    assert_int_equal(lab_argmax(t->row, b->limit), golden_integer(prompt, "argmax"));
}

static void check_prompt(bench *b, const json *prompt) {
    talk t = talk_open(b);
    int32_t ids[TOKENS_MAX], greedy_ids[64];
    int count = golden_ints(prompt, "ids", ids, TOKENS_MAX);
    const json *greedy = golden_get(prompt, "greedy"), *state = json_get(b->info.root, "state");
    float *logits = lab_floats((int64_t)count * b->vocab), *hidden = lab_floats((int64_t)count * b->width);
    lab_chain(&b->l, &t.a, ids, count, 0, logits, hidden);
    record(b, &t, ids, hidden, count, logits + (int64_t)(count - 1) * b->vocab);
    check_top8(b, logits, golden_integer(prompt, "top8_offset"), count);
    check_last(b, &t, prompt);
    check_state(b, &t, golden_get(prompt, "state"));
    if (state && span_equal(golden_get(state, "prompt")->text, golden_get(prompt, "name")->text))
        check_state_arrays(b, &t);
    say_greedy(b, &t, greedy_ids, golden_ints(greedy, "ids", greedy_ids, 64), golden_get(greedy, "margins"));
    free(logits);
    free(hidden);
    talk_close(&t);
}

/* ---- MTP */

static void mtp(bench *b, talk *t, int position, int count, const int32_t *next, const float *hidden, float *out,
                float *row) {
    error err;
    if (model_mtp_forward(b->l.m, &b->l.kv, &t->a.seq, position, count, next, hidden, NULL, out, count - 1, row, &err))
        fail_msg("%s", err.message);
}

/* Fills the MTP cache up to the pair (hidden of the last token, first), then drafts `depth` tokens.
 * rows [depth, vocab] and outs [depth, hidden] may be NULL. */
static void draft(bench *b, talk *t, int32_t first, int depth, int32_t *drafts, float *rows, float *outs) {
    int n = t->count, from = t->mtp_filled, fill = n - from;
    float *out = lab_floats((int64_t)fill * b->width), *row = lab_floats(b->vocab), *last = lab_floats(b->width);
    int32_t next[TOKENS_MAX];
    for (int i = from; i < n; i++) next[i - from] = i + 1 < n ? t->ids[i + 1] : first;
    mtp(b, t, from, fill, next, t->hidden + (int64_t)from * b->width, out, row);
    memcpy(last, out + (int64_t)(fill - 1) * b->width, (size_t)b->width * sizeof *last);
    t->mtp_filled = n - 1; /* the last pair's token may still change */
    for (int d = 0; d < depth; d++) {
        drafts[d] = lab_argmax(row, b->limit);
        if (rows) memcpy(rows + (int64_t)d * b->vocab, row, (size_t)b->vocab * sizeof *rows);
        if (outs) memcpy(outs + (int64_t)d * b->width, last, (size_t)b->width * sizeof *outs);
        if (d + 1 < depth) mtp(b, t, n + d, 1, &drafts[d], last, out, row);
        memcpy(last, out, (size_t)b->width * sizeof *last);
    }
    free(out);
    free(row);
    free(last);
}

static void drafts_equal(const bench *b, const json *want, const int32_t *got) {
    int32_t ids[DEPTH];
    const json *margin = golden_get(want, "margins")->first;
    assert_int_equal(golden_ints(want, "drafts", ids, DEPTH), DEPTH);
    for (int i = 0; i < DEPTH; i++, margin = margin->next) {
        double m;
        assert_true(json_double(margin, &m));
        if (m < b->rules->margin) return; /* what follows depends on it */
        assert_int_equal(got[i], ids[i]);
    }
}

static void check_mtp_rows(bench *b, const json *want, const float *rows, const float *outs) {
    int64_t row;
    if (!b->mtp_logits.data || !json_integer(golden_get(want, "row"), &row)) return;
    rows_within(rows, npy_row(&b->mtp_logits, row), (int64_t)DEPTH * b->vocab, b->rules->logit, &b->worst_mtp, "mtp");
    rows_within(outs, npy_row(&b->mtp_hidden, row), (int64_t)DEPTH * b->width, b->rules->logit, &b->worst_mtp,
                "mtp hidden");
}

static void check_mtp(bench *b, const json *prompt) {
    const json *want = golden_get(prompt, "mtp"), *two = json_get(want, "after_two");
    float *rows = lab_floats((int64_t)DEPTH * b->vocab), *outs = lab_floats((int64_t)DEPTH * b->width);
    int32_t drafts[DEPTH], committed[2];
    talk t = talk_open(b);
    say_prompt(b, &t, prompt);
    assert_int_equal(lab_argmax(t.row, b->limit), golden_integer(want, "first"));
    draft(b, &t, (int32_t)golden_integer(want, "first"), DEPTH, drafts, rows, outs);
    drafts_equal(b, want, drafts);
    check_mtp_rows(b, want, rows, outs);
    if (two) {
        assert_int_equal(golden_ints(two, "committed", committed, 2), 2);
        for (int i = 0; i < 2; i++) say(b, &t, &committed[i], 1);
        draft(b, &t, (int32_t)golden_integer(two, "first"), DEPTH, drafts, NULL, NULL);
        drafts_equal(b, two, drafts);
    }
    talk_close(&t);
    free(rows);
    free(outs);
}

/* ---- trees */

/* The nodes that greedy verification accepts; *row = logits after the last of them. */
static int walk_tree(const bench *b, const int32_t *tokens, const int32_t *parents, int count, const float *before,
                     const float *logits, int32_t *path, const float **row) {
    int accepted = 0, at = -1;
    *row = before;
    for (int i = 0; i < count; i++) {
        if (parents[i] != at || tokens[i] != lab_argmax(*row, b->limit)) continue;
        path[accepted++] = at = i;
        *row = logits + (int64_t)i * b->vocab;
    }
    return accepted;
}

/* Commits the accepted path of a tree that has just run. */
static int accept_tree(bench *b, talk *t, const int32_t *tokens, const int32_t *parents, int count, const float *logits,
                       const float *hidden, int32_t *path) {
    const float *row;
    int accepted = walk_tree(b, tokens, parents, count, t->row, logits, path, &row);
    model_commit(b->l.m, &b->l.kv, 0, path, accepted);
    for (int i = 0; i < accepted; i++)
        record(b, t, &tokens[path[i]], hidden + (int64_t)path[i] * b->width, 1, logits + (int64_t)path[i] * b->vocab);
    assert_int_equal(t->a.seq.length, t->count);
    return accepted;
}

static void check_tree(bench *b, const json *tree) {
    int32_t tokens[NODES_MAX], parents[NODES_MAX], path[NODES_MAX], want[NODES_MAX], after[16];
    int count = golden_ints(tree, "tokens", tokens, NODES_MAX);
    char file[64];
    const json *name = golden_get(tree, "logits");
    snprintf(file, sizeof file, "%.*s", (int)name->text.size, name->text.data);
    npy rows = npy_load(b->dir, file);
    talk t = talk_open(b);
    float *logits = lab_floats((int64_t)count * b->vocab), *hidden = lab_floats((int64_t)count * b->width);
    assert_int_equal(golden_ints(tree, "parents", parents, NODES_MAX), count);
    say_prompt(b, &t, prompt_named(b, golden_get(tree, "prefix")));
    lab_tree(&b->l, &t.a, tokens, parents, count, logits, hidden);
    rows_within(logits, rows.data, (int64_t)count * b->vocab, b->rules->logit, &b->worst_tree, "tree");
    int accepted = accept_tree(b, &t, tokens, parents, count, logits, hidden, path);
    assert_int_equal(accepted, golden_ints(tree, "accepted_path", want, NODES_MAX));
    assert_memory_equal(path, want, (size_t)accepted * sizeof *path);
    check_state(b, &t, golden_get(tree, "state_after_path"));
    say_greedy(b, &t, after, golden_ints(tree, "after_tokens", after, 16), golden_get(tree, "after_margins"));
    free(logits);
    free(hidden);
    npy_free(&rows);
    talk_close(&t);
}

/* ---- speculative decoding: chains of drafts verified as a tree */

static void check_speculative(bench *b, const json *spec) {
    enum { DRAFTS = 3, STEPS = 64 };
    static const int32_t parents[] = {-1, 0, 1, 2};
    int32_t accepted[STEPS], emitted[STEPS * 4], path[DRAFTS + 1];
    int steps = golden_ints(spec, "accepted", accepted, STEPS), total = 0;
    int tokens = golden_ints(spec, "tokens", emitted, STEPS * 4);
    float *logits = lab_floats((DRAFTS + 1) * (int64_t)b->vocab),
          *hidden = lab_floats((DRAFTS + 1) * (int64_t)b->width);
    talk t = talk_open(b);
    assert_int_equal(golden_integer(spec, "depth"), DRAFTS);
    say_prompt(b, &t, prompt_named(b, golden_get(spec, "prompt")));
    for (int step = 0; step < steps; step++) {
        int32_t nodes[DRAFTS + 1] = {lab_argmax(t.row, b->limit)};
        draft(b, &t, nodes[0], DRAFTS, nodes + 1, NULL, NULL);
        lab_tree(&b->l, &t.a, nodes, parents, DRAFTS + 1, logits, hidden);
        int count = accept_tree(b, &t, nodes, parents, DRAFTS + 1, logits, hidden, path);
        assert_int_equal(count - 1, accepted[step]);
        assert_true(total + count <= tokens);
        assert_memory_equal(nodes, emitted + total, (size_t)count * sizeof *nodes);
        total += count;
    }
    assert_int_equal(total, tokens);
    free(logits);
    free(hidden);
    talk_close(&t);
}

/* ---- one case */

static void test_case(void **state) {
    const golden_case *c = *state;
    bench b;
    if (!open_bench(&b, c)) skip();
    for (const json *p = golden_get(b.info.root, "prompts")->first; p; p = p->next) {
        check_prompt(&b, p);
        if (json_get(p, "mtp")) check_mtp(&b, p);
    }
    for (const json *tree = golden_get(b.info.root, "trees")->first; tree; tree = tree->next) check_tree(&b, tree);
    if (json_get(b.info.root, "speculative")) check_speculative(&b, json_get(b.info.root, "speculative"));
    double rms = sqrt(b.squares / (double)b.square_count);
    print_message(
        "%-15s %-5s %-6s largest differences: logits %.2g (rms %.2g), hidden %.2g, states %.2g, mtp %.2g, "
        "trees %.2g\n",
        c->name, c->rules->mode, c->table()->name, b.worst_logit, rms, b.worst_hidden, b.worst_state, b.worst_mtp,
        b.worst_tree);
    assert_true(rms <= b.rules->rms);
    close_bench(&b);
}

/* Sanitizers make everything ten times slower: they run the small cases, which take the same paths. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FIRST_CASES_ONLY = 1 };
#else
enum { FIRST_CASES_ONLY = 0 };
#endif

int main(void) {
    static golden_case cases[] = {
        {"small", true, ops_cpu_scalar, &EXACT},
        {"small", true, lab_avx2, &EXACT},
        {"small", true, ops_cpu_best, &EXACT},
        {"tiny-b", false, ops_cpu_best, &EXACT},
        {"tiny-spec", false, lab_avx2, &EXACT},
        {"tiny-a", false, ops_cpu_best, &EXACT},
        {"tiny-b-nvfp4", false, ops_cpu_best, &EXACT},
        {"tiny-b-mixed", false, lab_avx2, &EXACT},
        {"tiny-b-ct", false, ops_cpu_best, &EXACT},
        {"tiny-b-fp8", false, lab_avx2, &EXACT},
        {"tiny-b-nvfp4", false, ops_cpu_best, &KV8},
        {"tiny-b-mixed", false, lab_avx2, &KV8},
        /* the rest is left out under sanitizers */
        {"tiny-spec", false, ops_cpu_best, &EXACT},
        {"tiny-a", false, ops_cpu_scalar, &EXACT},
        {"tiny-b", false, ops_cpu_scalar, &EXACT},
        {"tiny-spec", false, ops_cpu_scalar, &EXACT},
        {"mini", false, ops_cpu_best, &EXACT},
        {"mini", false, lab_avx2, &EXACT},
        {"mini", false, ops_cpu_scalar, &EXACT},
        {"mini-spec", false, ops_cpu_best, &EXACT},
        {"tiny-b-nvfp4", false, ops_cpu_scalar, &EXACT},
        {"tiny-b-nvfp4", false, lab_avx2, &EXACT},
        {"tiny-b-mixed", false, ops_cpu_scalar, &EXACT},
        {"tiny-b-mixed", false, ops_cpu_best, &EXACT},
        {"tiny-b-ct", false, ops_cpu_scalar, &EXACT},
        {"tiny-b-ct", false, lab_avx2, &EXACT},
        {"tiny-b-fp8", false, ops_cpu_scalar, &EXACT},
        {"tiny-b-fp8", false, ops_cpu_best, &EXACT},
        {"mini-nvfp4", false, ops_cpu_scalar, &EXACT},
        {"mini-nvfp4", false, ops_cpu_best, &EXACT},
        {"mini-spec-nvfp4", false, ops_cpu_scalar, &EXACT},
        {"mini-spec-nvfp4", false, ops_cpu_best, &EXACT},
        {"tiny-b-nvfp4", false, ops_cpu_scalar, &KV8},
        {"tiny-b-nvfp4", false, lab_avx2, &KV8},
        {"tiny-b-mixed", false, ops_cpu_scalar, &KV8},
        {"tiny-b-mixed", false, ops_cpu_best, &KV8},
        {"mini-nvfp4", false, ops_cpu_scalar, &KV8},
        {"mini-nvfp4", false, ops_cpu_best, &KV8},
        {"mini-spec-nvfp4", false, ops_cpu_scalar, &KV8},
        {"mini-spec-nvfp4", false, ops_cpu_best, &KV8},
    };
    enum { CASES = FIRST_CASES_ONLY ? 12 : sizeof cases / sizeof *cases };
    static char titles[CASES][64];
    struct CMUnitTest tests[CASES];
    for (int i = 0; i < CASES; i++) {
        snprintf(titles[i], sizeof titles[i], "golden_%s_%s_%s", cases[i].name, cases[i].rules->mode,
                 cases[i].table()->name);
        tests[i] = (struct CMUnitTest){titles[i], test_case, NULL, NULL, &cases[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
