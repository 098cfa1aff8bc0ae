/* See draft_tree.h.
 *
 * While a tree grows, indexes stay valid: a node that is pushed out is only marked. The worst kept node is the one with
 * the smallest product, of equal ones the youngest; it has no kept child, since a child is younger than its parent and
 * its product no larger. The lists are short (63 kept of some hundred), so plain scans do. */
#include "decode/draft_tree.h"

err_code draft_limits_check(const draft_limits *limits, error *err) {
    const struct {
        const char *name;
        int value, min, max;
    } rows[] = {{"draft steps", limits->steps, 0, DRAFT_STEPS_MAX},
                {"draft top-k", limits->top_k, 1, DRAFT_TOP_K_MAX},
                {"draft nodes", limits->nodes, 0, DRAFT_NODES_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
            ERR_FAIL(err, ERR_INVALID, "%s must be %d to %d, not %d", rows[i].name, rows[i].min, rows[i].max,
                     rows[i].value);
    return ERR_OK;
}

void draft_tree_begin(draft_tree *t, int32_t root, int limit) {
    HEARTH_ASSERT(limit >= 0 && limit <= DRAFT_NODES_MAX);
    t->limit = limit;
    t->count = 1;
    t->kept = 0;
    t->nodes[0] = (draft_node){.token = root, .parent = -1, .source = DRAFT_ROOT, .acceptance = 1, .path = 1};
}

static int worst_kept(const draft_tree *t) {
    int worst = -1;
    for (int i = 1; i < t->count; i++)
        if (!t->nodes[i].dropped && (worst < 0 || t->nodes[i].path <= t->nodes[worst].path)) worst = i;
    return worst;
}

int draft_tree_child(const draft_tree *t, int parent, int32_t token) {
    for (int i = parent + 1; i < t->count; i++)
        if (t->nodes[i].parent == parent && t->nodes[i].token == token && !t->nodes[i].dropped) return i;
    return -1;
}

/* A better estimate makes everything below the node more likely too. */
static void raise_estimate(draft_tree *t, int node, double acceptance, draft_source source) {
    t->nodes[node].acceptance = acceptance;
    t->nodes[node].source = source;
    for (int i = node; i < t->count; i++) t->nodes[i].path = t->nodes[t->nodes[i].parent].path * t->nodes[i].acceptance;
}

int draft_tree_add(draft_tree *t, int parent, int32_t token, double acceptance, draft_source source) {
    HEARTH_ASSERT(parent >= 0 && parent < t->count);
    acceptance = acceptance > 0 ? (acceptance < 1 ? acceptance : 1) : 0;
    if (t->nodes[parent].dropped) return -1;
    int child = draft_tree_child(t, parent, token);
    if (child >= 0) {
        if (acceptance > t->nodes[child].acceptance) raise_estimate(t, child, acceptance, source);
        return child;
    }
    double path = t->nodes[parent].path * acceptance;
    if (t->count > DRAFT_TRIED_MAX || !t->limit) return -1;
    if (t->kept == t->limit) {
        int worst = worst_kept(t);
        if (path <= t->nodes[worst].path) return -1;
        t->nodes[worst].dropped = true;
        t->kept--;
    }
    t->nodes[t->count] = (draft_node){.token = token,
                                      .parent = parent,
                                      .depth = t->nodes[parent].depth + 1,
                                      .source = source,
                                      .acceptance = acceptance,
                                      .path = path};
    t->kept++;
    return t->count++;
}

int draft_tree_path(const draft_tree *t, int node, int32_t *out) {
    int depth = t->nodes[node].depth;
    for (; node > 0; node = t->nodes[node].parent) out[t->nodes[node].depth - 1] = t->nodes[node].token;
    return depth;
}

void draft_tree_finish(draft_tree *t) {
    int order[DRAFT_NODES_MAX + 1], place[DRAFT_TRIED_MAX + 1], count = 0;
    draft_node sorted[DRAFT_NODES_MAX + 1];
    for (int i = 0; i < t->count; i++) { /* insertion sort: stable, so a parent of equal product stays in front */
        if (t->nodes[i].dropped) continue;
        int at = count++;
        for (; at > 0 && t->nodes[order[at - 1]].path < t->nodes[i].path; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < count; i++) place[order[i]] = i;
    for (int i = 0; i < count; i++) {
        sorted[i] = t->nodes[order[i]];
        if (i) sorted[i].parent = place[sorted[i].parent];
    }
    for (int i = 0; i < count; i++) t->nodes[i] = sorted[i];
    t->count = count;
}

/* Kept nodes from index `from` on. */
static int list_kept(const draft_tree *t, int from, int *out) {
    int count = 0;
    for (int i = from; i < t->count; i++)
        if (!t->nodes[i].dropped) out[count++] = i;
    return count;
}

/* A full tree takes only what beats its worst node, and no child beats its parent. */
static bool can_gain(const draft_tree *t, const int *frontier, int count) {
    if (t->kept < t->limit) return count > 0;
    double worst = t->limit ? t->nodes[worst_kept(t)].path : 1;
    for (int i = 0; i < count; i++)
        if (t->nodes[frontier[i]].path > worst) return true;
    return false;
}

err_code draft_tree_grow(draft_tree *t, const drafter *d, int steps, int top_k, int *passes, error *err) {
    HEARTH_ASSERT(top_k >= 1 && top_k <= DRAFT_TOP_K_MAX && t->count == 1);
    draft_proposal proposals[(DRAFT_NODES_MAX + 1) * DRAFT_TOP_K_MAX];
    int frontier[DRAFT_NODES_MAX + 1] = {0}, found[DRAFT_NODES_MAX + 1], count = 1, made = 0;
    for (; made < steps && can_gain(t, frontier, count); made++) {
        int before = t->count;
        ERR_TRY(d->propose(d->context, t, frontier, count, top_k, proposals, found, err));
        for (int i = 0; i < count; i++) {
            HEARTH_ASSERT(found[i] >= 0 && found[i] <= top_k);
            for (int k = 0; k < found[i]; k++) {
                const draft_proposal *p = &proposals[i * top_k + k];
                draft_tree_add(t, frontier[i], p->token, p->acceptance, d->source);
            }
        }
        count = list_kept(t, before, frontier);
    }
    if (passes) *passes = made;
    return ERR_OK;
}

int draft_tree_lookup(draft_tree *t, const lookup *l, int node) {
    int32_t tail[2 * (DRAFT_NODES_MAX + 1)];
    lookup_match match;
    int depth = draft_tree_path(t, node, tail);
    if (!lookup_find(l, tail, depth, &match)) return 0;
    for (int i = 0; i < t->limit && node >= 0; i++) {
        int32_t token = lookup_token(l, tail, &match, i);
        node = draft_tree_add(t, node, token, lookup_acceptance(match.length + i), DRAFT_LOOKUP);
        tail[depth + i] = token;
    }
    return match.length;
}

void draft_tree_graft(draft_tree *t, const lookup *l) {
    int nodes[DRAFT_NODES_MAX + 1];
    int count = list_kept(t, 0, nodes);
    for (int i = 0; i < count; i++)
        if (!t->nodes[nodes[i]].dropped) draft_tree_lookup(t, l, nodes[i]);
}
