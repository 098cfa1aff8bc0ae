/* The tree of drafts that one step verifies, and what grows it.
 *
 * The root is the pending token: chosen by the target already, not yet run. Every other node is a draft: a token that
 * may follow its parent. Drafters add nodes with an estimate of how likely the target chooses the token, given that it
 * chose the parent; the product along the path is how likely the node is of use. The nodes with the largest product are
 * kept, up to a limit. A child's product is never larger than its parent's, so what is kept is always a tree.
 *
 * What a drafter proposes changes only how many tokens a step yields, never which: at every node the target's own choice
 * decides, and the walk goes on into the child that holds it. */
#ifndef HEARTH_DECODE_DRAFT_TREE_H
#define HEARTH_DECODE_DRAFT_TREE_H

#include "base/error.h"
#include "decode/lookup.h"

enum {
    DRAFT_STEPS_MAX = 16,
    DRAFT_TOP_K_MAX = 8,
    DRAFT_NODES_MAX = 63,
    DRAFT_TRIED_MAX = 1023, /* nodes added while a tree grows, kept or not; more are refused */
};

/* Upper limits of one step. nodes counts drafts, not the root. */
typedef struct draft_limits {
    int steps; /* passes of a drafter that proposes one token a pass, such as the MTP layer */
    int top_k; /* its proposals a node */
    int nodes;
} draft_limits;
#define DRAFT_LIMITS_DEFAULT ((draft_limits){.steps = 8, .top_k = 2, .nodes = 16})

/* 0 .. 16 steps, 1 .. 8 top-k, 0 .. 63 nodes; ERR_INVALID names the limit and the number. */
err_code draft_limits_check(const draft_limits *limits, error *err);

typedef enum { DRAFT_ROOT, DRAFT_MTP, DRAFT_LOOKUP } draft_source;

typedef struct draft_node {
    int32_t token;
    int parent; /* index, less than the node's own; -1 for the root */
    int depth;  /* 0 for the root */
    draft_source source;
    double acceptance; /* estimated, given that the parent is accepted; 0 .. 1 */
    double path;       /* product of acceptance from the root to here */
    bool dropped;      /* pushed out by better ones; only until draft_tree_finish */
} draft_node;

typedef struct draft_tree {
    int limit;
    int count; /* nodes used, the root and dropped ones included */
    int kept;  /* drafts that are not dropped, <= limit */
    draft_node nodes[DRAFT_TRIED_MAX + 1];
} draft_tree;

void draft_tree_begin(draft_tree *t, int32_t root, int limit); /* limit 0 .. DRAFT_NODES_MAX (asserted) */

/* Adds a child. A token that the parent has already keeps its node, with the larger of both estimates and the source
 * that gave it. Returns the node's index, valid until draft_tree_finish, or -1 when the node is not kept: parent dropped,
 * or limit reached and nothing worse to push out. acceptance outside 0 .. 1 is clamped, NaN is 0. */
int draft_tree_add(draft_tree *t, int parent, int32_t token, double acceptance, draft_source source);

int draft_tree_child(const draft_tree *t, int parent, int32_t token); /* index of a kept child, or -1 */

/* Tokens from below the root to the node into out[depth]; returns the depth. */
int draft_tree_path(const draft_tree *t, int node, int32_t *out);

/* Ends growing: dropped nodes go, the others are ordered by path, largest first, parents before children. So the first
 * n drafts are the best tree of n drafts, and a step with less room takes just those. */
void draft_tree_finish(draft_tree *t);

/* A drafter that proposes one token a pass. propose answers for all nodes of the frontier at once: the best proposals of
 * nodes[i], best first, at most top_k, into out[i * top_k]; found[i] = their number. */
typedef struct draft_proposal {
    int32_t token;
    double acceptance;
} draft_proposal;
typedef struct drafter {
    draft_source source;
    void *context;
    err_code (*propose)(void *context, const draft_tree *t, const int *nodes, int count, int top_k, draft_proposal *out,
                        int *found, error *err);
} drafter;

/* Passes over the frontier: first the root, then the kept nodes that the pass before added. Ends after `steps` passes or
 * when a pass adds nothing. *passes (may be NULL) = passes made. */
err_code draft_tree_grow(draft_tree *t, const drafter *d, int steps, int top_k, int *passes, error *err);

/* Continues the sequence + the path to node by context lookup, one chain, as far as its nodes are kept. l holds the
 * sequence up to and with the root. Returns the length of the match, 0 when there is none. */
int draft_tree_lookup(draft_tree *t, const lookup *l, int node);

/* The same at every kept node, the root included, that is there now. */
void draft_tree_graft(draft_tree *t, const lookup *l);

#endif
