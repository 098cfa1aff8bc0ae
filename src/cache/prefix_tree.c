/* See prefix_tree.h.
 *
 * How far a node's pages can be relied on follows from the snapshots, so it is not stored: to the node's end when there
 * is a stored snapshot below it, else to its own deepest one (kept_end). Whoever needs more puts pages of his own in
 * place (hold_pages); whatever gives up a snapshot gives back what is no longer claimed (trim). A split leaves the page
 * of the cut with both halves. */
#include "cache/prefix_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/ops.h"

enum { USES_MAX = 3, AGES = 16, COUNTS_FADE_AT = 512 };

/* Weight of the assumption that a snapshot of a kind never seen has an even chance. Little: what was counted wins soon. */
#define EVEN 0.02

typedef struct node node;

struct prefix_snapshot {
    node *home;
    int position;
    int32_t state; /* -1: given up */
    snapshot_kind kind;
    int uses, pins;
    bool for_page;                                 /* given up because pages were short */
    uint64_t used;                                 /* the tree's clock when it was stored or last used */
    uint64_t turn;                                 /* lookups until then */
    double weight;                                 /* expected uses, see weigh */
    prefix_snapshot *next;                         /* in home, by position */
    prefix_snapshot *stored_before, *stored_after; /* among all that are stored */
};

struct node {
    node *parent, *child, *sibling;
    node *before, *after; /* among all nodes */
    int start, end;       /* positions of its ids */
    int32_t *ids;         /* [end - start] */
    int32_t *pages;       /* from the page of position start - 1 to that of end - 1; -1 = not held */
    int stored;           /* snapshots stored here and below */
    uint64_t used;
    prefix_snapshot *snapshots;
};

/* Of the snapshots of one kind that had so many uses: how many there were, and how many were used once more, by the
 * number of lookups that took (powers of two). */
typedef struct use_count {
    double tried, used[AGES];
} use_count;

struct prefix_tree {
    prefix_store pages, snapshots;
    int64_t ids_max;
    node *root, *nodes;
    prefix_snapshot *stored;
    uint64_t clock, turn; /* everything that happens; lookups used */
    uint64_t weighed;     /* turn of the last weigh */
    use_count counts[SNAPSHOT_KINDS][USES_MAX + 1];
    prefix_usage usage;
};

const char *snapshot_kind_name(snapshot_kind kind) {
    static const char *const names[] = {"system",     "message", "history",  "generation",
                                        "prompt_end", "output",  "interval", "branch"};
    HEARTH_ASSERT((unsigned)kind < SNAPSHOT_KINDS);
    return names[kind];
}

const char *prefix_miss_name(prefix_miss miss) {
    static const char *const names[] = {
        "none", "cold", "before_first_snapshot", "between_snapshots", "snapshot_evicted", "pages_evicted"};
    HEARTH_ASSERT((unsigned)miss < MISS_REASONS);
    return names[miss];
}

static int min_int(int a, int b) { return a < b ? a : b; }
static int max_int(int a, int b) { return a > b ? a : b; }

/* ---- nodes and their pages */

static int pages_for(int tokens) { return (tokens + KV_PAGE - 1) / KV_PAGE; }
static int first_page(const node *n) { return n->start ? (n->start - 1) / KV_PAGE : 0; }

static prefix_snapshot *deepest_stored(const node *n, int *count) {
    prefix_snapshot *deepest = NULL;
    *count = 0;
    for (prefix_snapshot *s = n->snapshots; s; s = s->next)
        if (s->state >= 0) deepest = s, ++*count;
    return deepest;
}

/* The position up to which the node's pages are held and right. */
static int kept_end(const node *n) {
    int own;
    const prefix_snapshot *deepest = deepest_stored(n, &own);
    if (n->stored > own) return n->end;
    return deepest ? deepest->position : n->start;
}

static void set_page(prefix_tree *t, int32_t *slot, int32_t page) {
    if (page >= 0) t->pages.retain(t->pages.context, page);
    if (*slot >= 0) t->pages.release(t->pages.context, *slot);
    t->usage.page_references += (page >= 0) - (*slot >= 0);
    *slot = page;
}

/* Makes the node's pages good up to position `to`, from those of a path that goes through it. A page that is held stays
 * when the node relied on all of it already, the MTP pair of its last position included. */
static void hold_pages(prefix_tree *t, node *n, const int32_t *pages, int to) {
    int kept = kept_end(n), first = first_page(n);
    for (int i = first; i < pages_for(to); i++)
        if (kept < to && kept <= (i + 1) * KV_PAGE) set_page(t, &n->pages[i - first], pages[i]);
}

/* The first page of a child has all that its parent claims of it, so it serves both, and a path of many short nodes has no
 * more pages than its length needs. */
static void share_cut(prefix_tree *t, node *parent, const node *child) {
    if (parent->parent) set_page(t, &parent->pages[pages_for(parent->end) - 1 - first_page(parent)], child->pages[0]);
}

static const node *child_with_pages(const node *n) {
    const node *c = n->child;
    while (c && c->pages[0] < 0) c = c->sibling;
    return c;
}

/* Gives back what is no longer claimed, here and, where nothing is stored any more, above. */
static void trim(prefix_tree *t, node *n) {
    for (; n->parent; n = n->parent) {
        int kept = kept_end(n), first = first_page(n);
        int from = kept > n->start ? pages_for(kept) : first;
        for (int i = from; i < pages_for(n->end); i++) set_page(t, &n->pages[i - first], -1);
        const node *other = n->pages[0] < 0 ? child_with_pages(n->parent) : NULL;
        if (other) share_cut(t, n->parent, other);
        if (n->stored) break;
    }
}

static void count_stored(node *n, int change) {
    for (; n; n = n->parent) n->stored += change;
}

static node *new_node(prefix_tree *t, node *parent, int start, int end) {
    node *n = mem_zero(1, sizeof *n);
    n->parent = parent;
    n->start = start;
    n->end = end;
    n->used = t->clock;
    n->after = t->nodes;
    if (n->after) n->after->before = n;
    t->nodes = n;
    t->usage.nodes++;
    return n;
}

static node *new_leaf(prefix_tree *t, node *parent, const int32_t *ids, int start, int end) {
    node *n = new_node(t, parent, start, end);
    size_t count = (size_t)(end - start);
    n->ids = mem_alloc(count * sizeof *n->ids);
    memcpy(n->ids, ids + start, count * sizeof *n->ids);
    int pages = pages_for(end) - first_page(n);
    n->pages = mem_alloc((size_t)pages * sizeof *n->pages);
    for (int i = 0; i < pages; i++) n->pages[i] = -1;
    n->sibling = parent->child;
    parent->child = n;
    t->usage.ids += end - start;
    return n;
}

/* A leaf grows in place, so that the snapshots of one computation do not make a node each. */
static void extend_leaf(prefix_tree *t, node *n, const int32_t *ids, int end) {
    int old_pages = pages_for(n->end) - first_page(n), pages = pages_for(end) - first_page(n);
    n->ids = mem_grow(n->ids, (size_t)(end - n->start), sizeof *n->ids);
    memcpy(n->ids + (n->end - n->start), ids + n->end, (size_t)(end - n->end) * sizeof *n->ids);
    n->pages = mem_grow(n->pages, (size_t)pages, sizeof *n->pages);
    for (int i = old_pages; i < pages; i++) n->pages[i] = -1;
    t->usage.ids += end - n->end;
    n->end = end;
}

static void replace_child(node *parent, const node *old, node *by) {
    node **link = &parent->child;
    while (*link != old) link = &(*link)->sibling;
    *link = by;
}

/* Cuts a node before position `at`; returns the upper half, a new node, so that the lower one keeps its children. */
static node *split(prefix_tree *t, node *n, int at) {
    HEARTH_ASSERT(at > n->start && at < n->end);
    node *upper = new_node(t, n->parent, n->start, at);
    int count = at - n->start, left = n->end - at, first = first_page(n);
    upper->ids = mem_alloc((size_t)count * sizeof *upper->ids);
    memcpy(upper->ids, n->ids, (size_t)count * sizeof *upper->ids);
    memmove(n->ids, n->ids + count, (size_t)left * sizeof *n->ids);
    int upper_pages = pages_for(at) - first, lower_from = (at - 1) / KV_PAGE - first;
    upper->pages = mem_alloc((size_t)upper_pages * sizeof *upper->pages);
    memcpy(upper->pages, n->pages, (size_t)upper_pages * sizeof *upper->pages);
    int32_t shared = n->pages[lower_from]; /* the page of position at - 1: both halves hold it */
    if (shared >= 0) t->pages.retain(t->pages.context, shared), t->usage.page_references++;
    memmove(n->pages, n->pages + lower_from, (size_t)(pages_for(n->end) - first - lower_from) * sizeof *n->pages);
    n->start = at;
    upper->used = n->used;
    upper->stored = n->stored;
    replace_child(n->parent, n, upper);
    upper->sibling = n->sibling;
    n->sibling = NULL;
    upper->child = n;
    n->parent = upper;
    upper->snapshots = n->snapshots;
    prefix_snapshot **link = &upper->snapshots;
    for (; *link && (*link)->position <= at; link = &(*link)->next) {
        (*link)->home = upper;
        if ((*link)->state >= 0) n->stored--;
    }
    n->snapshots = *link;
    *link = NULL;
    trim(t, n);
    return upper;
}

static node *find_child(const node *n, int32_t id) {
    node *c = n->child;
    while (c && c->ids[0] != id) c = c->sibling;
    return c;
}

/* The position up to which ids[0..count) follow n, which they reach. */
static int common_end(const node *n, const int32_t *ids, int count) {
    int end = min_int(n->end, count), i = n->start;
    while (i < end && n->ids[i - n->start] == ids[i]) i++;
    return i;
}

/* ---- create, destroy */

prefix_tree *prefix_tree_create(prefix_store pages, prefix_store snapshots, int64_t ids_max) {
    HEARTH_ASSERT(ids_max > 0 && pages.item_bytes > 0 && snapshots.item_bytes > 0);
    prefix_tree *t = mem_zero(1, sizeof *t);
    t->pages = pages;
    t->snapshots = snapshots;
    t->ids_max = ids_max;
    t->root = new_node(t, NULL, 0, 0);
    return t;
}

static void free_node(prefix_tree *t, node *n) {
    for (int i = 0; n->parent && i < pages_for(n->end) - first_page(n); i++) set_page(t, &n->pages[i], -1);
    while (n->snapshots) {
        prefix_snapshot *s = n->snapshots;
        n->snapshots = s->next;
        HEARTH_ASSERT(!s->pins);
        if (s->state >= 0) t->snapshots.release(t->snapshots.context, s->state);
        free(s);
    }
    *(n->before ? &n->before->after : &t->nodes) = n->after;
    if (n->after) n->after->before = n->before;
    t->usage.ids -= n->end - n->start;
    t->usage.nodes--;
    free(n->ids);
    free(n->pages);
    free(n);
}

void prefix_tree_destroy(prefix_tree *t) {
    if (!t) return;
    while (t->nodes) free_node(t, t->nodes);
    free(t);
}

/* ---- lookup */

static prefix_miss why_short(const prefix_match *m, int reach) {
    if (!m->common) return MISS_COLD;
    if (m->resumed == reach) return MISS_NONE;
    if (!m->credited) return MISS_BEFORE_FIRST;
    if (m->credited == m->snapshot) return MISS_BETWEEN;
    return m->credited->for_page ? MISS_PAGES_EVICTED : MISS_SNAPSHOT_EVICTED;
}

prefix_match prefix_tree_find(const prefix_tree *t, const int32_t *ids, int count) {
    HEARTH_ASSERT(count > 0);
    prefix_match m = {.state = -1};
    for (const node *n = t->root; n && m.common == n->end && m.common < count;) {
        n = find_child(n, ids[m.common]);
        if (!n) break;
        m.common = common_end(n, ids, count);
        for (prefix_snapshot *s = n->snapshots; s && s->position <= min_int(m.common, count - 1); s = s->next) {
            m.credited = s;
            if (s->state >= 0) m.snapshot = s;
        }
    }
    if (m.snapshot) {
        m.resumed = m.snapshot->position;
        m.kind = m.snapshot->kind;
        m.state = m.snapshot->state;
    }
    m.miss = why_short(&m, min_int(m.common, count - 1));
    return m;
}

/* A try; all numbers are halved now and then, so that they follow a change of habits. */
static void count_try(use_count *c) {
    c->tried++;
    if (c->tried <= COUNTS_FADE_AT) return;
    c->tried /= 2;
    for (int i = 0; i < AGES; i++) c->used[i] /= 2;
}

static int age_class(const prefix_tree *t, const prefix_snapshot *s) {
    uint64_t age = t->turn - s->turn;
    int class = 0;
    while (age > 1 && class < AGES - 1) age >>= 1, class ++;
    return class;
}

static void refresh(prefix_tree *t, prefix_snapshot *s) {
    s->used = t->clock;
    s->turn = t->turn;
}

void prefix_tree_use(prefix_tree *t, const prefix_match *m) {
    t->clock++;
    t->turn++;
    t->usage.hits += m->snapshot != NULL;
    t->usage.misses[m->miss]++;
    t->usage.lost[m->miss] += m->miss == MISS_NONE ? 0 : (uint64_t)(m->common - m->resumed);
    prefix_snapshot *c = m->credited;
    if (c) {
        t->counts[c->kind][c->uses].used[age_class(t, c)]++;
        if (c->uses < USES_MAX) c->uses++;
        count_try(&t->counts[c->kind][c->uses]);
        refresh(t, c);
        for (node *n = c->home; n; n = n->parent) n->used = t->clock;
    }
    if (!m->snapshot) return;
    refresh(t, m->snapshot);
    m->snapshot->pins++;
}

void prefix_tree_unpin(prefix_tree *t, prefix_snapshot *s) {
    (void)t;
    if (!s) return;
    HEARTH_ASSERT(s->pins > 0);
    s->pins--;
}

void prefix_tree_pages(const prefix_tree *t, const prefix_snapshot *s, int32_t *pages) {
    (void)t;
    HEARTH_ASSERT(s->state >= 0);
    int next = pages_for(s->position);
    for (const node *n = s->home; n->parent; n = n->parent) {
        int first = first_page(n);
        for (int i = first; i < next; i++) {
            pages[i] = n->pages[i - first];
            HEARTH_ASSERT(pages[i] >= 0);
        }
        next = min_int(next, first);
    }
}

/* ---- what a snapshot is worth */

/* The stored snapshot before s on its path; NULL when there is none. */
static prefix_snapshot *fallback(const prefix_snapshot *s) {
    for (const node *n = s->home; n; n = n->parent) {
        prefix_snapshot *best = NULL;
        for (prefix_snapshot *o = n->snapshots; o && o->position < s->position; o = o->next)
            if (o->state >= 0) best = o;
        if (best) return best;
    }
    return NULL;
}

/* Chance that a snapshot of some kind and number of uses is used again, given how long it has not been: of those that
 * were not used sooner, how many were later. */
static double chance(const prefix_tree *t, snapshot_kind kind, int uses, int age) {
    const use_count *c = &t->counts[kind][uses];
    double left = c->tried, later = 0;
    for (int i = 0; i < AGES; i++) {
        if (i < age) left -= c->used[i];
        if (i >= age) later += c->used[i];
    }
    return (later + EVEN) / ((left > later ? left : later) + 2 * EVEN);
}

static double chance_of(const prefix_tree *t, const prefix_snapshot *s) {
    return chance(t, s->kind, s->uses, age_class(t, s));
}

/* ---- storing */

/* The node in which ids[0..position) end, made where it is not there. */
static node *reach(prefix_tree *t, const int32_t *ids, int position) {
    node *n = t->root;
    for (int at = 0; at < position;) {
        node *child = find_child(n, ids[at]);
        if (!child && n->parent && !n->child) {
            extend_leaf(t, n, ids, position);
        } else if (!child) {
            n = new_leaf(t, n, ids, at, position);
        } else {
            int common = common_end(child, ids, position);
            n = common < min_int(child->end, position) ? split(t, child, common) : child;
        }
        n->used = t->clock;
        at = min_int(n->end, position);
    }
    return n;
}

static prefix_snapshot *place(node *n, int position) {
    prefix_snapshot **link = &n->snapshots;
    while (*link && (*link)->position < position) link = &(*link)->next;
    if (*link && (*link)->position == position) return *link;
    prefix_snapshot *s = mem_zero(1, sizeof *s);
    *s = (prefix_snapshot){.home = n, .position = position, .state = -1, .next = *link};
    *link = s;
    return s;
}

static bool forget_oldest(prefix_tree *t);

bool prefix_tree_add(prefix_tree *t, const int32_t *ids, int position, const int32_t *pages, int32_t state,
                     snapshot_kind kind) {
    HEARTH_ASSERT(position > 0 && state >= 0);
    t->clock++;
    node *n = reach(t, ids, position);
    prefix_snapshot *s = place(n, position);
    if (s->state >= 0) {
        refresh(t, s);
        return false;
    }
    for (node *m = n, *below = NULL; m->parent; below = m, m = m->parent) {
        hold_pages(t, m, pages, min_int(position, m->end));
        if (below) share_cut(t, m, below);
    }
    t->snapshots.retain(t->snapshots.context, state);
    if (!s->used) { /* never seen before: its kind gets a try */
        s->kind = kind;
        count_try(&t->counts[kind][0]);
    }
    s->state = state;
    refresh(t, s);
    s->weight = chance_of(t, s);
    count_stored(n, 1);
    s->stored_before = NULL;
    s->stored_after = t->stored;
    if (t->stored) t->stored->stored_before = s;
    t->stored = s;
    t->usage.snapshots++;
    bool more = true;
    while (more && t->usage.ids > t->ids_max) more = forget_oldest(t);
    return true;
}

/* ---- giving up */

static void give_up(prefix_tree *t, prefix_snapshot *s, bool for_page) {
    prefix_snapshot *instead = fallback(s);
    if (instead) instead->weight += s->weight;
    t->snapshots.release(t->snapshots.context, s->state);
    s->state = -1;
    s->for_page = for_page;
    *(s->stored_before ? &s->stored_before->stored_after : &t->stored) = s->stored_after;
    if (s->stored_after) s->stored_after->stored_before = s->stored_before;
    t->usage.snapshots--;
    t->usage.evictions++;
    count_stored(s->home, -1);
    trim(t, s->home);
}

/* Page references that go with s: of its node and those above, back to where something else is stored. */
static int pages_of_its_own(const prefix_snapshot *s) {
    int released = 0, to = s->position;
    for (const node *n = s->home; n->parent; to = n->start, n = n->parent) {
        int own, kept = n->start;
        deepest_stored(n, &own);
        for (const prefix_snapshot *o = n->snapshots; o; o = o->next)
            if (o->state >= 0 && o != s) kept = o->position;
        bool more_below = n->stored > (n == s->home ? own : own + 1);
        if (more_below || kept > s->position) return released;
        released += pages_for(to) - (kept > n->start ? pages_for(kept) : first_page(n));
        if (kept > n->start) return released;
    }
    return released;
}

/* What every stored snapshot is used for: itself, and those given up whose place it takes. Counted anew once a lookup;
 * in between whoever is given up hands its weight on. */
static void weigh(prefix_tree *t) {
    if (t->weighed == t->turn) return;
    t->weighed = t->turn;
    for (prefix_snapshot *s = t->stored; s; s = s->stored_after) s->weight = chance_of(t, s);
    for (node *n = t->nodes; n; n = n->after)
        for (const prefix_snapshot *s = n->snapshots; s; s = s->next) {
            prefix_snapshot *instead = s->state < 0 ? fallback(s) : NULL;
            if (instead) instead->weight += chance_of(t, s);
        }
}

/* How much of what is short goes with a snapshot and `pages` pages. */
static double size_of(const prefix_tree *t, prefix_need need, int pages) {
    if (need == NEED_SNAPSHOT) return 1;
    if (need == NEED_PAGE) return pages;
    return (double)t->snapshots.item_bytes + (double)pages * (double)t->pages.item_bytes;
}

/* Tokens that it is expected to save. */
static double savings(const prefix_snapshot *s) {
    const prefix_snapshot *instead = fallback(s);
    return s->weight * (s->position - (instead ? instead->position : 0));
}

static prefix_snapshot *least_valuable(prefix_tree *t, prefix_need need, double *least) {
    prefix_snapshot *victim = NULL;
    weigh(t);
    for (prefix_snapshot *s = t->stored; s; s = s->stored_after) {
        if (s->pins) continue;
        int pages = pages_of_its_own(s);
        if (need == NEED_PAGE && !pages) continue;
        double v = savings(s) / size_of(t, need, pages);
        if (victim && (v > *least || (v == *least && s->used >= victim->used))) continue;
        victim = s;
        *least = v;
    }
    return victim;
}

bool prefix_tree_evict(prefix_tree *t, prefix_need need) {
    double least;
    prefix_snapshot *victim = least_valuable(t, need, &least);
    if (victim) give_up(t, victim, need == NEED_PAGE);
    return victim != NULL;
}

bool prefix_tree_make_way(prefix_tree *t, prefix_need need, snapshot_kind kind, int saved, bool needed) {
    double least, own = chance(t, kind, 0, 0) * saved / size_of(t, need, 0);
    prefix_snapshot *victim = least_valuable(t, need, &least);
    if (!victim || (!needed && least >= own)) return false;
    give_up(t, victim, false);
    return true;
}

void prefix_tree_drop(prefix_tree *t, const int32_t *ids, int after, int count) {
    int common = 0;
    for (node *n = t->root; common == n->end && common < count;) {
        n = find_child(n, ids[common]);
        if (!n) return;
        common = common_end(n, ids, count);
        for (prefix_snapshot *s = n->snapshots; s && s->position <= common; s = s->next)
            if (s->position > after && s->state >= 0) give_up(t, s, false);
    }
}

/* ---- remains */

static int pinned_or_stored_end(const node *n) {
    int end = kept_end(n);
    for (const prefix_snapshot *s = n->snapshots; s; s = s->next)
        if (s->pins) end = max_int(end, s->position);
    return end;
}

/* Shortens a leaf to what it still holds; an empty one goes. */
static void cut_leaf(prefix_tree *t, node *n, int end) {
    if (end == n->start) {
        replace_child(n->parent, n, n->sibling);
        free_node(t, n);
        return;
    }
    prefix_snapshot **link = &n->snapshots;
    while (*link && (*link)->position <= end) link = &(*link)->next;
    while (*link) {
        prefix_snapshot *s = *link;
        *link = s->next;
        free(s);
    }
    for (int i = pages_for(end); i < pages_for(n->end); i++) HEARTH_ASSERT(n->pages[i - first_page(n)] < 0);
    t->usage.ids -= n->end - end;
    n->end = end;
}

/* Forgets the remains of the leaf that was longest unused. False when there are none. */
static bool forget_oldest(prefix_tree *t) {
    node *oldest = NULL;
    for (node *n = t->nodes; n; n = n->after) {
        if (!n->parent || n->child || pinned_or_stored_end(n) == n->end) continue;
        if (!oldest || n->used < oldest->used) oldest = n;
    }
    if (!oldest) return false;
    cut_leaf(t, oldest, pinned_or_stored_end(oldest));
    return true;
}

/* ---- what there is */

prefix_usage prefix_tree_usage(const prefix_tree *t) { return t->usage; }

static void check_snapshots(const node *n, int *own) {
    int last = n->start;
    *own = 0;
    for (const prefix_snapshot *s = n->snapshots; s; s = s->next) {
        HEARTH_ASSERT(s->home == n && s->position > last && s->position <= n->end);
        HEARTH_ASSERT(s->state >= -1 && s->pins >= 0);
        last = s->position;
        *own += s->state >= 0;
    }
}

static void check_node(const node *n, int *page_references) {
    int own, below = 0;
    check_snapshots(n, &own);
    for (const node *c = n->child; c; c = c->sibling) {
        HEARTH_ASSERT(c->parent == n && c->start == n->end && c->end > c->start);
        for (const node *d = c->sibling; d; d = d->sibling) HEARTH_ASSERT(c->ids[0] != d->ids[0]);
        below += c->stored;
    }
    HEARTH_ASSERT(n->stored == own + below);
    if (!n->parent) return;
    int kept = kept_end(n), first = first_page(n);
    for (int i = first; i < pages_for(n->end); i++) {
        bool held = n->pages[i - first] >= 0, wanted = kept > n->start && i < pages_for(kept);
        HEARTH_ASSERT(held == wanted);
        *page_references += held;
    }
}

void prefix_tree_check(const prefix_tree *t) {
    int snapshots = 0, nodes = 0, page_references = 0;
    int64_t ids = 0;
    for (const prefix_snapshot *s = t->stored; s; s = s->stored_after) {
        HEARTH_ASSERT(s->state >= 0 && (!s->stored_after || s->stored_after->stored_before == s));
        snapshots++;
    }
    for (const node *n = t->nodes; n; n = n->after) {
        check_node(n, &page_references);
        ids += n->end - n->start;
        nodes++;
    }
    HEARTH_ASSERT(snapshots == t->usage.snapshots && snapshots == t->root->stored);
    HEARTH_ASSERT(nodes == t->usage.nodes && ids == t->usage.ids && page_references == t->usage.page_references);
}
