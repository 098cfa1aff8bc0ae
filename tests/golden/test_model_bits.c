/* The same bits whatever the path: splits of a prefill, trees against chains, company in a step, commits, captures,
 * threads.
 *
 * Nothing here knows right numbers (test_golden_model.c does); it compares the model with itself, bit for bit, on every
 * table and KV type. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "golden_files.h"
#include "model_lab.h"
#include "support.h"

enum { ROWS_MAX = 256, TOKENS_MAX = 256, PAGES = 180, NODES = 31 };

typedef struct setting {
    const char *ckpt;
    const ops *(*table)(void);
    dtype kv_type;
    model_activations activations;
} setting;

/* What a run leaves: logits and hidden rows of its positions, and the state after them. */
typedef struct trace {
    int count;
    float *logits, *hidden;
} trace;

static lab l; /* of the running test */

static bool open_lab(const setting *s, pool *p) {
    const char *dir = strcmp(s->ckpt, "small") ? golden_checkpoint(s->ckpt) : "tests/golden/small";
    lab_place place = {.table = s->table(), .pool = p, .kv_type = s->kv_type, .activations = s->activations};
    if (dir) lab_open(&l, dir, &place, ROWS_MAX, PAGES);
    return dir != NULL;
}

static void random_ids(uint32_t seed, int32_t *ids, int count) {
    uint64_t x = seed;
    for (int i = 0; i < count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((x >> 33) % (uint64_t)l.c->vocab_rows);
    }
}

static trace trace_open(int count) {
    return (trace){count, lab_floats((int64_t)count * l.c->vocab_rows), lab_floats((int64_t)count * l.c->hidden)};
}

static void trace_free(trace *t) {
    free(t->logits);
    free(t->hidden);
}

/* Runs ids as one chain into rows at.. of the trace. */
static void run_into(trace *t, agent *a, const int32_t *ids, int at, int count) {
    lab_chain(&l, a, ids + at, count, 0, t->logits + (int64_t)at * l.c->vocab_rows,
              t->hidden + (int64_t)at * l.c->hidden);
}

static void floats_equal(const float *a, const float *b, int64_t count, const char *what, int number) {
    if (!memcmp(a, b, (size_t)count * sizeof *a)) return;
    for (int64_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a))
            fail_msg("%s %d: element %lld is %.9g, not %.9g", what, number, (long long)i, (double)a[i], (double)b[i]);
}

static void rows_equal(const trace *a, int at, const trace *b, int bt, int count, const char *what) {
    int64_t vocab = l.c->vocab_rows, hidden = l.c->hidden;
    floats_equal(a->logits + at * vocab, b->logits + bt * vocab, count * vocab, what, at);
    floats_equal(a->hidden + at * hidden, b->hidden + bt * hidden, count * hidden, what, at);
}

static void states_equal(const agent *a, const agent *b, const char *what) {
    assert_int_equal(a->seq.length, b->seq.length);
    floats_equal(a->recurrent, b->recurrent, model_recurrent_count(l.c), what, a->seq.length);
    floats_equal(a->conv, b->conv, model_conv_count(l.c), what, a->seq.length);
}

/* ---- a prefill in any pieces */

static void split(const int32_t *ids, const trace *want, const agent *whole, const int *pieces) {
    trace t = trace_open(want->count);
    agent a = lab_agent(&l, TOKENS_MAX);
    for (int at = 0, i = 0; at < t.count; i++) {
        int size = pieces[i] ? pieces[i] : pieces[--i]; /* the last one repeats */
        if (size > t.count - at) size = t.count - at;
        run_into(&t, &a, ids, at, size);
        at += size;
    }
    rows_equal(&t, 0, want, 0, t.count, "split");
    states_equal(&a, whole, "state after a split");
    agent_free(&a);
    trace_free(&t);
}

static void test_splits(void **state) {
    static const int pieces[][8] = {{1, 2, 63, 64, 70}, {1}, {64}, {63, 1, 1, 65}, {199, 1}, {16}, {7, 3, 5, 11, 2}};
    int32_t ids[200];
    if (!open_lab(*state, NULL)) skip();
    random_ids(1, ids, 200);
    trace whole = trace_open(200);
    agent a = lab_agent(&l, TOKENS_MAX);
    run_into(&whole, &a, ids, 0, 200);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        l.next_page = a.pages_count;
        split(ids, &whole, &a, pieces[i]);
    }
    agent_free(&a);
    trace_free(&whole);
    lab_close(&l);
}

/* ---- trees */

static const int32_t SHAPES[][NODES] = {
    {-1, 0, 0, 0, 1, 1, 2, 4, 4, 5, 7, 7, 8, 10, 11, 12, 3, 16, 16, 18, 9, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
    {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
    {-1, -1, -1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 6, 8, 10, 5, 7, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22},
};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES };

/* Nodes from the root to node i. */
static int path_to(const int32_t *parents, int i, int32_t *path) {
    int count = 0;
    for (int n = i; n >= 0; n = parents[n]) count++;
    for (int n = i, k = count; n >= 0; n = parents[n]) path[--k] = n;
    return count;
}

static agent prefix_of(int length) {
    int32_t ids[TOKENS_MAX];
    agent a = lab_agent(&l, TOKENS_MAX);
    random_ids(2, ids, length);
    if (length) lab_chain(&l, &a, ids, length, 0, NULL, NULL);
    return a;
}

/* Every node that is a leaf: its path alone as a chain gives every row on it. The last path is also committed. */
static void tree_is_its_paths(const agent *base, const int32_t *parents, int count) {
    int32_t ids[NODES], path[NODES], words[NODES];
    random_ids(3, ids, NODES);
    trace tree = trace_open(count);
    agent a = lab_clone(&l, base);
    int page = l.next_page;
    lab_tree(&l, &a, ids, parents, count, tree.logits, tree.hidden);
    states_equal(&a, base, "committed state under a tree");
    for (int leaf = count - 1; leaf >= 0; leaf -= leaf > 8 ? 5 : 1) {
        int length = path_to(parents, leaf, path);
        trace chain = trace_open(length);
        l.next_page = page;
        agent b = lab_clone(&l, base);
        for (int i = 0; i < length; i++) words[i] = ids[path[i]];
        run_into(&chain, &b, words, 0, length);
        for (int i = 0; i < length; i++) rows_equal(&tree, path[i], &chain, i, 1, "tree node");
        agent_free(&b);
        trace_free(&chain);
    }
    agent_free(&a);
    trace_free(&tree);
}

static void test_trees(void **state) {
    static const int prefixes[] = {0, 1, 2, 3, 50, 63, 64, 130};
    if (!open_lab(*state, NULL)) skip();
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        for (int s = 0; s < SHAPE_COUNT; s++) {
            l.next_page = 0;
            agent base = prefix_of(prefixes[p]);
            tree_is_its_paths(&base, SHAPES[s], NODES);
            agent_free(&base);
        }
    }
    lab_close(&l);
}

/* Commits the path to `leaf`; the state and everything said afterwards must be those of the path run as a chain. */
static void commit_is_chain(const agent *base, const int32_t *parents, int leaf) {
    int32_t ids[NODES], path[NODES], words[NODES], more[9];
    int count = path_to(parents, leaf, path);
    random_ids(3, ids, NODES);
    random_ids(4, more, 9);
    trace tree = trace_open(NODES), after = trace_open(9), want = trace_open(9);
    agent a = lab_clone(&l, base), b = lab_clone(&l, base);
    lab_tree(&l, &a, ids, parents, NODES, tree.logits, tree.hidden);
    model_commit(l.m, &l.kv, 0, path, count);
    for (int i = 0; i < count; i++) words[i] = ids[path[i]];
    if (count) lab_chain(&l, &b, words, count, 0, NULL, NULL);
    states_equal(&a, &b, "committed state");
    run_into(&after, &a, more, 0, 9);
    run_into(&want, &b, more, 0, 9);
    rows_equal(&after, 0, &want, 0, 9, "after a commit");
    states_equal(&a, &b, "state after a commit");
    agent_free(&a);
    agent_free(&b);
    trace_free(&tree);
    trace_free(&after);
    trace_free(&want);
}

static void test_commit(void **state) {
    static const int prefixes[] = {0, 1, 2, 50, 63, 64};
    static const int leaves[] = {-1, 0, 1, 2, 4, 9, 17, 30};
    if (!open_lab(*state, NULL)) skip();
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        l.next_page = 0;
        agent base = prefix_of(prefixes[p]);
        int page = l.next_page;
        for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
            l.next_page = page;
            commit_is_chain(&base, SHAPES[i % SHAPE_COUNT], leaves[i]);
        }
        agent_free(&base);
    }
    lab_close(&l);
}

/* ---- several sequences in one step */

enum { COMPANY = 6 };
static const struct {
    int prefix, count, shape; /* shape -1 = chain */
    int logits_from;
} MEMBERS[COMPANY] = {{5, 65, -1, 60}, {63, 17, 0, 0}, {130, 1, -1, 0}, {0, 40, -1, 40}, {2, 5, 1, 3}, {64, 3, 2, 0}};

static void test_company(void **state) {
    error err;
    int32_t ids[COMPANY][TOKENS_MAX];
    model_segment in[COMPANY];
    agent together[COMPANY], alone[COMPANY];
    trace got[COMPANY], want[COMPANY];
    if (!open_lab(*state, NULL)) skip();
    for (int i = 0; i < COMPANY; i++) {
        int from = MEMBERS[i].logits_from, count = MEMBERS[i].count;
        random_ids(10 + (uint32_t)i, ids[i], count);
        together[i] = prefix_of(MEMBERS[i].prefix);
        alone[i] = lab_clone(&l, &together[i]);
        got[i] = trace_open(count), want[i] = trace_open(count);
        in[i] = (model_segment){.seq = &together[i].seq,
                                .count = count,
                                .tokens = ids[i],
                                .parents = MEMBERS[i].shape < 0 ? NULL : SHAPES[MEMBERS[i].shape],
                                .logits_from = from,
                                .logits = got[i].logits + (int64_t)from * l.c->vocab_rows,
                                .hidden = got[i].hidden};
    }
    assert_int_equal(model_forward(l.m, &l.kv, in, COMPANY, &err), ERR_OK);
    static const int32_t path[] = {0, 2, 6};
    model_commit(l.m, &l.kv, 1, path, 3); /* trees of one step are committed independently, in any order */
    model_commit(l.m, &l.kv, 4, (const int32_t[]){0, 1}, 2);
    for (int i = 0; i < COMPANY; i++) {
        int from = MEMBERS[i].logits_from;
        model_segment one = in[i];
        one.seq = &alone[i].seq;
        one.logits = want[i].logits + (int64_t)from * l.c->vocab_rows;
        one.hidden = want[i].hidden;
        assert_int_equal(model_forward(l.m, &l.kv, &one, 1, &err), ERR_OK);
        if (i == 1) model_commit(l.m, &l.kv, 0, path, 3);
        if (i == 4) model_commit(l.m, &l.kv, 0, (const int32_t[]){0, 1}, 2);
        rows_equal(&got[i], 0, &want[i], 0, MEMBERS[i].count, "in company");
        states_equal(&together[i], &alone[i], "state in company");
        agent_free(&together[i]), agent_free(&alone[i]);
        trace_free(&got[i]), trace_free(&want[i]);
    }
    lab_close(&l);
}

/* ---- captures */

static void test_captures(void **state) {
    enum { COUNT = 150, STOPS = 7 };
    static const int stops[STOPS] = {1, 2, 3, 64, 65, 100, COUNT};
    int32_t ids[COUNT];
    error err;
    capture captures[STOPS];
    if (!open_lab(*state, NULL)) skip();
    int64_t recurrent = model_recurrent_count(l.c), conv = model_conv_count(l.c), width = l.c->hidden;
    random_ids(5, ids, COUNT);
    agent base = prefix_of(10), a = lab_clone(&l, &base);
    trace whole = trace_open(COUNT);
    for (int i = 0; i < STOPS; i++)
        captures[i] = (capture){stops[i], lab_floats(recurrent), lab_floats(conv), i % 2 ? NULL : lab_floats(width)};
    model_segment in = {.seq = &a.seq,
                        .count = COUNT,
                        .tokens = ids,
                        .captures = captures,
                        .capture_count = STOPS,
                        .logits = whole.logits,
                        .hidden = whole.hidden};
    assert_int_equal(model_forward(l.m, &l.kv, &in, 1, &err), ERR_OK);
    int page = l.next_page;
    for (int i = 0; i < STOPS; i++) {
        l.next_page = page;
        agent b = lab_clone(&l, &base);
        lab_chain(&l, &b, ids, stops[i], 0, NULL, NULL);
        floats_equal(captures[i].recurrent, b.recurrent, recurrent, "captured state", stops[i]);
        floats_equal(captures[i].conv, b.conv, conv, "captured conv", stops[i]);
        if (captures[i].hidden)
            floats_equal(captures[i].hidden, whole.hidden + (stops[i] - 1) * width, width, "captured hidden", stops[i]);
        /* the KV rows are the sequence's own: restore only the recurrent state and go on */
        trace rest = trace_open(COUNT);
        memcpy(a.recurrent, captures[i].recurrent, (size_t)recurrent * sizeof(float));
        memcpy(a.conv, captures[i].conv, (size_t)conv * sizeof(float));
        a.seq.length = 10 + stops[i];
        if (stops[i] < COUNT) run_into(&rest, &a, ids, stops[i], COUNT - stops[i]);
        rows_equal(&rest, stops[i], &whole, stops[i], COUNT - stops[i], "after a restore");
        trace_free(&rest);
        agent_free(&b);
        free(captures[i].recurrent), free(captures[i].conv), free(captures[i].hidden);
    }
    agent_free(&a), agent_free(&base);
    trace_free(&whole);
    lab_close(&l);
}

/* ---- the MTP layer */

static void run_mtp(const agent *a, int position, int count, const int32_t *ids, const float *hidden,
                    const int32_t *parents, trace *out, int at) {
    error err;
    assert_int_equal(model_mtp_forward(l.m, &l.kv, &a->seq, position, count, ids, hidden, parents,
                                       out->hidden + (int64_t)at * l.c->hidden, 0,
                                       out->logits + (int64_t)at * l.c->vocab_rows, &err),
                     ERR_OK);
}

static void test_mtp(void **state) {
    enum { COUNT = 90 };
    int32_t ids[COUNT], path[NODES], words[NODES];
    if (!open_lab(*state, NULL)) skip();
    random_ids(6, ids, COUNT);
    agent a = lab_agent(&l, TOKENS_MAX), b = lab_agent(&l, TOKENS_MAX);
    trace main = trace_open(COUNT), whole = trace_open(COUNT), parts = trace_open(COUNT), tree = trace_open(NODES);
    run_into(&main, &a, ids, 0, COUNT);
    run_mtp(&a, 0, COUNT, ids, main.hidden, NULL, &whole, 0);
    for (int at = 0, size = 1; at < COUNT; at += size, size *= 2) {
        if (size > COUNT - at) size = COUNT - at;
        run_mtp(&b, at, size, ids + at, main.hidden + (int64_t)at * l.c->hidden, NULL, &parts, at);
    }
    rows_equal(&parts, 0, &whole, 0, COUNT, "MTP in pieces");
    run_mtp(&a, 60, NODES, ids, main.hidden, SHAPES[0], &tree, 0);
    for (int leaf = 0; leaf < NODES; leaf += 3) {
        int count = path_to(SHAPES[0], leaf, path);
        trace chain = trace_open(count);
        float *hidden = lab_floats((int64_t)count * l.c->hidden);
        for (int i = 0; i < count; i++) {
            words[i] = ids[path[i]];
            memcpy(hidden + (int64_t)i * l.c->hidden, main.hidden + (int64_t)path[i] * l.c->hidden,
                   (size_t)l.c->hidden * sizeof *hidden);
        }
        run_mtp(&b, 60, count, words, hidden, NULL, &chain, 0);
        for (int i = 0; i < count; i++) rows_equal(&tree, path[i], &chain, i, 1, "MTP tree node");
        free(hidden);
        trace_free(&chain);
    }
    agent_free(&a), agent_free(&b);
    trace_free(&main), trace_free(&whole), trace_free(&parts), trace_free(&tree);
    lab_close(&l);
}

/* Drafting between a tree and its commit disturbs neither. */
static void test_mtp_before_commit(void **state) {
    int32_t ids[NODES];
    static const int32_t path[] = {0, 1, 4, 8};
    if (!open_lab(*state, NULL)) skip();
    random_ids(7, ids, NODES);
    agent a = prefix_of(40), b = lab_clone(&l, &a);
    trace tree = trace_open(NODES), drafts = trace_open(NODES);
    lab_tree(&l, &a, ids, SHAPES[0], NODES, tree.logits, tree.hidden);
    run_mtp(&b, 0, NODES, ids, tree.hidden, NULL, &drafts, 0);
    run_mtp(&b, NODES, NODES, ids, tree.hidden, SHAPES[2], &drafts, 0);
    model_commit(l.m, &l.kv, 0, path, 4);
    lab_chain(&l, &b, (const int32_t[]){ids[0], ids[1], ids[4], ids[8]}, 4, 0, NULL, NULL);
    states_equal(&a, &b, "state");
    agent_free(&a), agent_free(&b);
    trace_free(&tree), trace_free(&drafts);
    lab_close(&l);
}

/* ---- threads */

static void test_threads(void **state) {
    int32_t ids[130], nodes[NODES];
    trace want[2] = {{0}}, got[2];
    agent first = {0};
    const setting *s = *state;
    for (int threads = 0; threads <= 4; threads++) {
        error err;
        pool *p = NULL;
        if (threads && pool_create(threads, &p, &err)) fail_msg("%s", err.message);
        if (!open_lab(s, p)) skip();
        random_ids(8, ids, 130);
        random_ids(9, nodes, NODES);
        agent a = lab_agent(&l, TOKENS_MAX);
        got[0] = trace_open(130), got[1] = trace_open(NODES);
        run_into(&got[0], &a, ids, 0, 130);
        lab_tree(&l, &a, nodes, SHAPES[0], NODES, got[1].logits, got[1].hidden);
        model_commit(l.m, &l.kv, 0, (const int32_t[]){0, 1, 5}, 3);
        if (!threads) {
            want[0] = got[0], want[1] = got[1], first = a;
        } else {
            rows_equal(&got[0], 0, &want[0], 0, 130, "with threads");
            rows_equal(&got[1], 0, &want[1], 0, NODES, "tree with threads");
            states_equal(&a, &first, "state with threads");
            trace_free(&got[0]), trace_free(&got[1]), agent_free(&a);
        }
        lab_close(&l);
        pool_destroy(p);
    }
    trace_free(&want[0]), trace_free(&want[1]), agent_free(&first);
}

/* ---- bad input */

static void test_bad_tokens(void **state) {
    if (!open_lab(*state, NULL)) skip();
    agent a = prefix_of(5), before = lab_clone(&l, &a);
    const int32_t bad[][2] = {{0, -1}, {l.c->vocab_rows, 0}, {INT32_MAX, 1}, {0, INT32_MIN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error err = {0};
        model_segment in = {.seq = &a.seq, .count = 2, .tokens = bad[i], .logits_from = 2};
        assert_int_equal(model_forward(l.m, &l.kv, &in, 1, &err), ERR_INVALID);
        assert_non_null(strstr(err.message, "token"));
        states_equal(&a, &before, "after a refused step");
    }
    agent_free(&a), agent_free(&before);
    lab_close(&l);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FIRST_SETTINGS_ONLY = 1 };
#else
enum { FIRST_SETTINGS_ONLY = 0 };
#endif

int main(void) {
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } checks[] = {
        {"splits", test_splits},
        {"trees", test_trees},
        {"commit", test_commit},
        {"company", test_company},
        {"captures", test_captures},
        {"mtp", test_mtp},
        {"mtp_before_commit", test_mtp_before_commit},
        {"threads", test_threads},
        {"bad_tokens", test_bad_tokens},
    };
    static setting settings[] = {
        {"small", ops_cpu_scalar, DTYPE_F32, ACTIVATIONS_EXACT},
        {"small", lab_avx2, DTYPE_F32, ACTIVATIONS_EXACT},
        {"small", lab_avx2, DTYPE_BF16, ACTIVATIONS_EXACT},
        {"small", ops_cpu_best, DTYPE_F32, ACTIVATIONS_EXACT},
        {"small", ops_cpu_best, DTYPE_BF16, ACTIVATIONS_EXACT},
        {"small", lab_avx2, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        {"small", ops_cpu_best, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        /* the rest is left out under sanitizers, which make everything ten times slower */
        {"small", ops_cpu_scalar, DTYPE_BF16, ACTIVATIONS_EXACT},
        {"tiny-b", ops_cpu_best, DTYPE_F32, ACTIVATIONS_EXACT},
        {"mini", ops_cpu_best, DTYPE_BF16, ACTIVATIONS_EXACT},
        {"tiny-b-nvfp4", ops_cpu_best, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        {"tiny-b-nvfp4", lab_avx2, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        {"tiny-b-mixed", ops_cpu_best, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        {"tiny-b-fp8", lab_avx2, DTYPE_BF16, ACTIVATIONS_EXACT},
        {"mini-nvfp4", ops_cpu_best, DTYPE_F8_E4M3, ACTIVATIONS_EXACT},
        {"tiny-b-nvfp4", ops_cpu_best, DTYPE_F8_E4M3, ACTIVATIONS_QUANTISED},
        {"tiny-b-fp8", lab_avx2, DTYPE_BF16, ACTIVATIONS_QUANTISED},
    };
    enum {
        CHECKS = sizeof checks / sizeof *checks,
        SETTINGS = FIRST_SETTINGS_ONLY ? 7 : sizeof settings / sizeof *settings
    };
    static char titles[CHECKS * SETTINGS][96];
    struct CMUnitTest tests[CHECKS * SETTINGS];
    for (int i = 0; i < CHECKS * SETTINGS; i++) {
        setting *s = &settings[i / CHECKS];
        snprintf(titles[i], sizeof titles[i], "%s_%s_%s_%s%s", checks[i % CHECKS].name, s->ckpt, s->table()->name,
                 dtype_name(s->kv_type), s->activations == ACTIVATIONS_QUANTISED ? "_quantised" : "");
        tests[i] = (struct CMUnitTest){titles[i], checks[i % CHECKS].run, NULL, NULL, s};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
