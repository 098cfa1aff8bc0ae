/* The draft tree: limits, order, what is kept, estimates given twice; drafters that misbehave; lookup grafted onto it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "decode/draft_tree.h"
#include "support.h"

static uint64_t random_state;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

static void limits(void **state) {
    (void)state;
    const struct {
        draft_limits limits;
        const char *message; /* NULL: accepted */
    } cases[] = {
        {{8, 2, 16}, NULL},
        {{16, 8, 63}, NULL},
        {{0, 1, 0}, NULL},
        {{17, 2, 16}, "draft steps must be 0 to 16, not 17"},
        {{-1, 2, 16}, "draft steps must be 0 to 16, not -1"},
        {{8, 0, 16}, "draft top-k must be 1 to 8, not 0"},
        {{8, 9, 16}, "draft top-k must be 1 to 8, not 9"},
        {{8, 2, 64}, "draft nodes must be 0 to 63, not 64"},
        {{8, 2, -1}, "draft nodes must be 0 to 63, not -1"},
    };
    const draft_limits usual = DRAFT_LIMITS_DEFAULT;
    assert_memory_equal(&usual, &cases[0].limits, sizeof usual);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err;
        err_code code = draft_limits_check(&cases[i].limits, &err);
        assert_int_equal(code, cases[i].message ? ERR_INVALID : ERR_OK);
        if (cases[i].message) assert_string_equal(err.message, cases[i].message);
    }
}

/* What must hold of every finished tree. */
static void check_finished(const draft_tree *t) {
    assert_int_equal(t->count, t->kept + 1);
    assert_true(t->kept <= t->limit);
    assert_true(t->nodes[0].parent == -1 && t->nodes[0].depth == 0 && t->nodes[0].source == DRAFT_ROOT);
    for (int i = 1; i < t->count; i++) {
        const draft_node *n = &t->nodes[i];
        assert_true(n->parent >= 0 && n->parent < i && !n->dropped);
        assert_int_equal(n->depth, t->nodes[n->parent].depth + 1);
        assert_true(n->acceptance >= 0 && n->acceptance <= 1);
        assert_true(n->path == t->nodes[n->parent].path * n->acceptance);
        assert_true(i == 1 || n->path <= t->nodes[i - 1].path);
        assert_int_equal(draft_tree_child(t, n->parent, n->token), i); /* no second child with that token */
    }
}

/* Tokens are unique here, so a node is known by its token: kept are the best of all that were proposed, of equal ones
 * the older. */
static void keeps_the_best_of_all(void **state) {
    (void)state;
    static const double values[] = {0, 0.25, 0.5, 0.5, 1, 1, 0.9};
    static struct {
        double path;
        int32_t token;
    } all[400], best;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        random_state = seed;
        int limit = (int)random_below(DRAFT_NODES_MAX + 1), count = 0, proposals = (int)random_below(400);
        draft_tree t;
        draft_tree_begin(&t, 0, limit);
        for (int i = 0; i < proposals; i++) {
            int parent = (int)random_below((uint32_t)t.count);
            double acceptance = values[random_below(7)];
            bool dropped = t.nodes[parent].dropped;
            double path = t.nodes[parent].path * acceptance;
            draft_tree_add(&t, parent, i + 1, acceptance, DRAFT_MTP);
            if (!dropped) all[count].path = path, all[count++].token = i + 1;
        }
        draft_tree_finish(&t);
        check_finished(&t);
        assert_int_equal(t.kept, count < limit ? count : limit);
        for (int i = 0; i < t.kept; i++) { /* selection sort, first of equals */
            int at = i;
            for (int k = i + 1; k < count; k++)
                if (all[k].path > all[at].path || (all[k].path == all[at].path && all[k].token < all[at].token)) at = k;
            best = all[at], all[at] = all[i], all[i] = best;
            if (t.nodes[i + 1].token != best.token) fail_msg("seed %d: draft %d", (int)seed, i + 1);
        }
    }
}

static void anything_proposed_gives_a_tree(void **state) {
    (void)state;
    const double odd[] = {NAN, -1, 2, INFINITY, -INFINITY, 0.5, 1e-300, 0.3};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_state = seed;
        draft_tree t;
        draft_tree_begin(&t, 5, (int)random_below(DRAFT_NODES_MAX + 1));
        for (int i = 0; i < 3000; i++) { /* more than DRAFT_TRIED_MAX, few different tokens */
            int parent = (int)random_below((uint32_t)t.count);
            int32_t token = (int32_t)random_below(4);
            int added = draft_tree_add(&t, parent, token, odd[random_below(8)], DRAFT_LOOKUP);
            assert_true(added == -1 || (t.nodes[added].parent == parent && t.nodes[added].token == token));
            assert_true(t.count <= DRAFT_TRIED_MAX + 1);
        }
        draft_tree_finish(&t);
        check_finished(&t);
    }
}

static void the_larger_estimate_stands(void **state) {
    (void)state;
    draft_tree t;
    draft_tree_begin(&t, 1, 3);
    int a = draft_tree_add(&t, 0, 10, 0.25, DRAFT_MTP);
    int b = draft_tree_add(&t, a, 11, 0.5, DRAFT_MTP);
    int c = draft_tree_add(&t, 0, 12, 0.5, DRAFT_MTP);
    assert_int_equal(draft_tree_add(&t, 0, 10, 0.75, DRAFT_LOOKUP), a);
    assert_int_equal(draft_tree_add(&t, 0, 10, 0.125, DRAFT_MTP), a); /* the smaller one changes nothing */
    assert_true(t.nodes[a].acceptance == 0.75 && t.nodes[a].source == DRAFT_LOOKUP);
    assert_true(t.nodes[b].path == 0.375 && t.nodes[c].path == 0.5);
    int d = draft_tree_add(&t, c, 13, 0.875, DRAFT_MTP); /* pushes out b, now the worst */
    assert_true(d > 0 && t.nodes[b].dropped);
    assert_int_equal(draft_tree_add(&t, b, 14, 1, DRAFT_MTP), -1); /* nothing below what is not kept */
    assert_int_equal(draft_tree_child(&t, a, 11), -1);
    int32_t path[DRAFT_NODES_MAX];
    assert_int_equal(draft_tree_path(&t, d, path), 2);
    assert_true(path[0] == 12 && path[1] == 13);
    draft_tree_finish(&t);
    check_finished(&t);
    assert_true(t.nodes[1].token == 10 && t.nodes[2].token == 12 && t.nodes[3].token == 13 && t.nodes[3].parent == 2);
}

/* ---- growing by passes */

typedef struct scripted {
    int calls, fail_at, widest;
    double acceptance[DRAFT_TOP_K_MAX];
    int found;
    bool repeat; /* the same token every time */
} scripted;

static err_code propose(void *context, const draft_tree *t, const int *nodes, int count, int top_k, draft_proposal *out,
                        int *found, error *err) {
    scripted *s = context;
    if (++s->calls == s->fail_at) ERR_FAIL(err, ERR_INTERNAL, "pass %d", s->calls);
    if (count > s->widest) s->widest = count;
    for (int i = 0; i < count; i++) {
        assert_int_equal(t->nodes[nodes[i]].depth, s->calls - 1);
        found[i] = s->found < top_k ? s->found : top_k;
        for (int k = 0; k < found[i]; k++)
            out[i * top_k + k] = (draft_proposal){s->repeat ? 3 : 100 * s->calls + 10 * i + k, s->acceptance[k]};
    }
    return ERR_OK;
}

static void passes(void **state) {
    (void)state;
    const struct {
        scripted script;
        int steps, top_k, nodes, passes, kept, deepest;
    } cases[] = {
        {{.found = 1, .acceptance = {0.9}}, 3, 1, 16, 3, 3, 3},
        {{.found = 1, .acceptance = {0.9}}, 16, 1, 63, 16, 16, 16},
        {{.found = 1, .acceptance = {0.9}}, 8, 1, 4, 4, 4, 4}, /* a full chain cannot gain */
        {{.found = 1, .acceptance = {0.9}}, 0, 1, 16, 0, 0, 0},
        {{.found = 1, .acceptance = {0.9}}, 8, 1, 0, 0, 0, 0},       /* drafting off */
        {{.found = 0}, 8, 2, 16, 1, 0, 0},                           /* nothing to propose */
        {{.found = 2, .acceptance = {0.5, 0.5}}, 2, 2, 63, 2, 6, 2}, /* 2 + 4 */
        {{.found = 8, .acceptance = {1, 1, 1, 1, 1, 1, 1, 1}}, 2, 8, 63, 2, 63, 2},
        {{.found = 8, .acceptance = {0.5, 0.4, 0.3, 0.2}}, 1, 2, 63, 1, 2, 1},       /* top-k is a limit */
        {{.found = 2, .acceptance = {0.5, 0.5}, .repeat = true}, 8, 2, 16, 8, 8, 8}, /* twice the same: one child */
        {{.found = 2, .acceptance = {0.9, 0.06}}, 8, 2, 5, 5, 5, 5}, /* second choices are worth less than depth 5 */
        {{.found = 1, .acceptance = {NAN}}, 4, 1, 16, 4, 4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scripted s = cases[i].script;
        const drafter d = {DRAFT_MTP, &s, propose};
        draft_tree t;
        int made = -1, deepest = 0;
        draft_tree_begin(&t, 1, cases[i].nodes);
        assert_int_equal(draft_tree_grow(&t, &d, cases[i].steps, cases[i].top_k, &made, NULL), ERR_OK);
        draft_tree_finish(&t);
        check_finished(&t);
        for (int k = 1; k < t.count; k++) deepest = t.nodes[k].depth > deepest ? t.nodes[k].depth : deepest;
        if (made != cases[i].passes || t.kept != cases[i].kept || deepest != cases[i].deepest || s.calls != made)
            fail_msg("case %zu: %d passes, %d kept, depth %d", i, made, t.kept, deepest);
        assert_true(s.widest <= cases[i].nodes + 1);
    }
}

static void failed_pass_is_reported(void **state) {
    (void)state;
    scripted s = {.found = 1, .acceptance = {0.9}, .fail_at = 3};
    const drafter d = {DRAFT_MTP, &s, propose};
    draft_tree t;
    error err;
    draft_tree_begin(&t, 1, 16);
    assert_int_equal(draft_tree_grow(&t, &d, 8, 1, NULL, &err), ERR_INTERNAL);
    assert_string_equal(err.message, "pass 3");
}

/* ---- context lookup */

static lookup *read_text(const char *text) {
    lookup *l = lookup_create(256);
    for (const char *c = text; *c; c++) {
        int32_t token = *c;
        lookup_append(l, &token, 1);
    }
    return l;
}

/* "a(b(c)d)": the tree below the root, children in the order of the tree. */
static void write_tree(const draft_tree *t, int node, buffer *out) {
    for (int i = 1; i < t->count; i++) {
        if (t->nodes[i].parent != node) continue;
        buffer_char(out, (char)t->nodes[i].token);
        int before = (int)out->size;
        buffer_char(out, '(');
        write_tree(t, i, out);
        if ((int)out->size == before + 1)
            out->size = (size_t)before;
        else
            buffer_char(out, ')');
    }
    buffer_char(out, 0);
    out->size--;
}

static void grafts(void **state) {
    (void)state;
    const struct {
        const char *text, *mtp; /* the last letter of text is the root; mtp is a chain below it */
        int limit;
        bool everywhere;
        const char *tree;
    } cases[] = {
        {"abcdefgh abc", "", 4, false, "d(e(f(g)))"},
        {"abcdefgh abc", "", 63, false, NULL}, /* goes on through the end into itself: 63 nodes */
        {"abcdefgh xyz", "", 8, false, ""},
        {"abcdefgh xyz", "ab", 6, false, "a(b(c(d(e(f)))))"},
        {"abcdefgh xyz", "??", 6, false, "?(?)"},
        {"abcdefgh abc", "x", 4, false, "x"},
        {"abcdefgh abc", "x", 4, true, "d(e(f))x"},   /* the root's own continuation stands beside the draft */
        {"abcdefgh abc", "d", 4, true, "d(e(f(g)))"}, /* and is the same node where they agree */
        {"abab", "", 5, false, "a(b(a(b(a))))"},
        {"abcdefgh abc", "", 0, true, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lookup *l = read_text(cases[i].text);
        draft_tree t;
        buffer shown = {0};
        int node = 0;
        draft_tree_begin(&t, cases[i].text[strlen(cases[i].text) - 1], cases[i].limit);
        for (const char *c = cases[i].mtp; *c; c++) node = draft_tree_add(&t, node, *c, 0.5, DRAFT_MTP);
        if (cases[i].everywhere)
            draft_tree_graft(&t, l);
        else
            draft_tree_lookup(&t, l, node);
        draft_tree_finish(&t);
        check_finished(&t);
        write_tree(&t, 0, &shown);
        if (cases[i].tree)
            assert_string_equal(shown.data, cases[i].tree);
        else
            assert_int_equal(t.kept, cases[i].limit);
        buffer_deinit(&shown);
        lookup_destroy(l);
    }
}

static void lookup_reports_its_match(void **state) {
    (void)state;
    lookup *l = read_text("abcdefgh abc");
    draft_tree t;
    draft_tree_begin(&t, 'c', 8);
    assert_int_equal(draft_tree_lookup(&t, l, 0), 3);
    assert_true(t.nodes[1].acceptance == lookup_acceptance(3) && t.nodes[2].acceptance == lookup_acceptance(4));
    assert_int_equal(t.nodes[1].source, DRAFT_LOOKUP);
    draft_tree_begin(&t, '!', 8);
    const int32_t other = '!';
    lookup_append(l, &other, 1);
    assert_int_equal(draft_tree_lookup(&t, l, 0), 0);
    assert_int_equal(t.kept, 0);
    lookup_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(keeps_the_best_of_all),
        cmocka_unit_test(anything_proposed_gives_a_tree),
        cmocka_unit_test(the_larger_estimate_stands),
        cmocka_unit_test(passes),
        cmocka_unit_test(failed_pass_is_reported),
        cmocka_unit_test(grafts),
        cmocka_unit_test(lookup_reports_its_match),
    };
    return cmocka_run_group_tests_name("draft_tree", tests, NULL, NULL);
}
