/* The prefix tree: which token paths have been computed, and what of them can be resumed.
 *
 * A radix tree over token ids. A node stands for a run of ids and owns references to the KV pages that hold them; at
 * positions worth coming back to it owns snapshots of the recurrent state. A recurrent model cannot step back, so a path
 * is usable at its snapshots only, and KV past the deepest one is of no use: a node gives such pages back at once. What
 * is left to decide is therefore one thing, which snapshot to give up next, and its pages go with it.
 *
 * Lookup compares ids one by one along the single path they can take; nothing is ever concluded from a hash. The longest
 * usable prefix is the deepest snapshot at or before the ids in common, and the pages before a stored snapshot are
 * always there.
 *
 * Pages. Position i lies in page i / KV_PAGE of its path. A page is immutable up to the position its node claims. Who
 * computed a path keeps appending to its last page after filing it, in slots nobody claims; who resumes one copies the
 * page of position n-1, n being the snapshot's position, and shares all pages before it. Copying that page even where n
 * is a page's edge is the rule for the MTP layer: its pair at position n-1 is made from token n, so that slot belongs to
 * the branch that chose token n, never to the prefix. For the same reason a node that starts at n has a page of its own
 * from position n-1 on, and the page its parent has there is not looked at on the way through the child.
 *
 * Which snapshot goes first: the one that is expected to save the fewest tokens for what is short,
 *     chance of another use * (its position - position of the one before it) / size,
 * size being one where snapshots are short, its pages where pages are, the bytes of both where both share one budget.
 * The chance is counted, not assumed: for every kind of snapshot and number of uses so far, how many found another use,
 * and after how many lookups. So the point where each turn of a conversation leaves the one before is kept, once passed
 * it is not; the end of a system prompt stays however often it was used; a conversation that is silent for longer than
 * conversations here ever were makes room. A snapshot that was given up leaves its chance to the one before it, which is
 * resumed in its place; so of two neighbours the first to go makes the other one precious.
 *
 * What was given up leaves its position behind, without memory but for the ids, so that a short reuse can say why and the
 * counts stay true. These remains are bounded by ids_max and forgotten oldest first.
 *
 * The tree knows pages and snapshots as numbers; memory is the pools' business, so it runs with a model, or without one
 * to plan and to test. One thread. */
#ifndef HEARTH_CACHE_PREFIX_TREE_H
#define HEARTH_CACHE_PREFIX_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* Where a pool's items are counted. The tree retains what it is given and releases what it gives up. */
typedef struct prefix_store {
    void *context;
    void (*retain)(void *context, int32_t id);
    void (*release)(void *context, int32_t id);
    uint64_t item_bytes;
} prefix_store;

typedef enum {
    SNAPSHOT_SYSTEM,     /* end of system message and tools */
    SNAPSHOT_MESSAGE,    /* end of another message */
    SNAPSHOT_HISTORY,    /* last token before the generation prompt */
    SNAPSHOT_GENERATION, /* where the next turn leaves the generation prompt */
    SNAPSHOT_PROMPT_END, /* one token before the end, for the same prompt again */
    SNAPSHOT_OUTPUT,     /* end of an answer, or where a request was cancelled */
    SNAPSHOT_INTERVAL,   /* inside a long prefill */
    SNAPSHOT_BRANCH,     /* where two prompts were seen to part */
    SNAPSHOT_KINDS
} snapshot_kind;
const char *snapshot_kind_name(snapshot_kind kind);

/* Why a prompt was not reused up to the ids it has in common with what is stored. */
typedef enum {
    MISS_NONE,             /* it was, or all but its last token */
    MISS_COLD,             /* not even the first id */
    MISS_BEFORE_FIRST,     /* it left the path before the first snapshot */
    MISS_BETWEEN,          /* it left the path between two snapshots */
    MISS_SNAPSHOT_EVICTED, /* a deeper snapshot was given up, for another snapshot or for bytes */
    MISS_PAGES_EVICTED,    /* a deeper snapshot was given up because pages were short */
    MISS_REASONS
} prefix_miss;
const char *prefix_miss_name(prefix_miss miss);

typedef struct prefix_tree prefix_tree;
typedef struct prefix_snapshot prefix_snapshot; /* the tree's; a pointer is good while pinned */

/* ids_max: ids that nodes may hold in all, those of remains included. Stored snapshots are never dropped for it. */
prefix_tree *prefix_tree_create(prefix_store pages, prefix_store snapshots, int64_t ids_max);
void prefix_tree_destroy(prefix_tree *t); /* releases everything; nothing may be pinned (asserted) */

typedef struct prefix_match {
    prefix_snapshot *snapshot; /* resume here; NULL: from nothing */
    int resumed;               /* its position, at most count - 1, or 0 */
    snapshot_kind kind;        /* of snapshot */
    int32_t state;             /* its number in the snapshots' pool, or -1 */
    int common;                /* leading ids on a stored path, at most count */
    prefix_miss miss;
    prefix_snapshot *credited; /* the deepest within reach, given up or not: whose kind found a use */
} prefix_match;

/* Longest usable prefix of ids[0..count). At least one token is left to compute. Changes nothing. */
prefix_match prefix_tree_find(const prefix_tree *t, const int32_t *ids, int count);
/* The match is resumed: counted, made recent, its snapshot pinned until prefix_tree_unpin. Right after find. */
void prefix_tree_use(prefix_tree *t, const prefix_match *m);
void prefix_tree_unpin(prefix_tree *t, prefix_snapshot *snapshot); /* NULL is allowed */
/* Pages 0 .. (position - 1) / KV_PAGE of the path to a stored snapshot. They are the tree's: retain before eviction. */
void prefix_tree_pages(const prefix_tree *t, const prefix_snapshot *snapshot, int32_t *pages);

/* Stores a snapshot after ids[0..position) with the path to it; pages: one per page of the path. The tree takes its own
 * references. False when that position is stored already. */
bool prefix_tree_add(prefix_tree *t, const int32_t *ids, int position, const int32_t *pages, int32_t state,
                     snapshot_kind kind);

/* What is short: bytes that pages and snapshots share, or one of two pools of fixed size. */
typedef enum { NEED_BYTES, NEED_SNAPSHOT, NEED_PAGE } prefix_need;
/* Gives up the snapshot of least value that is not pinned (with NEED_PAGE: of those whose pages go with it). False when
 * there is none. What it held is free when nobody else holds it. */
bool prefix_tree_evict(prefix_tree *t, prefix_need need);
/* Gives up a snapshot for a new one of this kind, `saved` tokens past the one before it on its path: the one of least
 * value, if that is less than the new one's or the new one is `needed`. */
bool prefix_tree_make_way(prefix_tree *t, prefix_need need, snapshot_kind kind, int saved, bool needed);
/* Gives up every snapshot at positions in (after, count] of the path ids, pinned or not: a computation went wrong. */
void prefix_tree_drop(prefix_tree *t, const int32_t *ids, int after, int count);

typedef struct prefix_usage {
    int snapshots, nodes;                              /* stored snapshots; nodes, remains included */
    int64_t ids;                                       /* in nodes */
    int64_t page_references;                           /* a page held by two nodes counts twice */
    uint64_t evictions, hits;                          /* snapshots given up; matches used that resumed something */
    uint64_t misses[MISS_REASONS], lost[MISS_REASONS]; /* matches used, and common but computed again, by reason */
} prefix_usage;
prefix_usage prefix_tree_usage(const prefix_tree *t);

/* Asserts every invariant (tests). */
void prefix_tree_check(const prefix_tree *t);

#endif
