/* See prefix_cache.h. */
#include "cache/prefix_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/page_pool.h"
#include "cache/state_pool.h"

enum {
    PAGES_PER_SNAPSHOT = 48, /* of what is stored: measured on recorded agents, see docs/prefix-cache.md; fewer where
                                that is more than a quarter of the context */
    SNAPSHOTS_STORED_MAX = 1024, /* choosing which one goes looks at all */
    REMAINS_PER_PAGE = 2         /* ids that the tree may remember, in multiples of what the pages hold */
};

typedef struct pending {
    int position, state;
    snapshot_kind kind;
} pending;

struct cache_run {
    prefix_cache *cache;
    sequence seq;   /* length is the number of ids */
    int32_t *ids;   /* [context_max] */
    int32_t *pages; /* [pages for context_max] */
    int page_count;
    int live;                 /* its state */
    prefix_snapshot *resumed; /* pinned */
    snapshot_want wants[SNAPSHOT_WANTS_MAX];
    int want_count, want_next;
    int last_want;                        /* position of the last snapshot on its path */
    pending captured[SNAPSHOT_WANTS_MAX]; /* captures of the step under way */
    int captured_count;
    bool running;
};

struct prefix_cache {
    page_pool pages;
    state_pool states;
    prefix_tree *tree;
    snapshot_policy policy;
    cache_run *runs; /* [parallel] */
    int parallel, context_max, wants_max;
};

/* ---- plan */

static int pages_for(int tokens) { return (tokens + KV_PAGE - 1) / KV_PAGE; }

void cache_plan_make(const model_config *config, dtype kv_type, int context_max, int parallel, uint64_t budget,
                     cache_plan *out) {
    HEARTH_ASSERT(context_max > 0 && parallel > 0);
    uint64_t page_bytes = model_kv_page_bytes(config, kv_type), one_state = state_bytes(config);
    /* For every running sequence its context, a live state, the snapshot it resumed with that one's own copy of a page, and
     * a new snapshot; one context and two states more, so that something is stored beside them. */
    int pages_min = (parallel + 1) * pages_for(context_max) + parallel, states_min = 3 * parallel + 2;
    uint64_t least = page_bytes * (uint64_t)pages_min + one_state * (uint64_t)states_min;
    int quarter = pages_for(context_max) / 4 + 1, each = quarter < PAGES_PER_SNAPSHOT ? quarter : PAGES_PER_SNAPSHOT;
    uint64_t more = budget > least ? (budget - least) / ((uint64_t)each * page_bytes + one_state) : 0;
    if (more > SNAPSHOTS_STORED_MAX) more = SNAPSHOTS_STORED_MAX;
    *out = (cache_plan){.context_max = context_max, .parallel = parallel};
    out->pages = pages_min + (int)more * each;
    out->states = states_min + (int)more;
    out->kv_bytes = page_bytes * (uint64_t)out->pages;
    out->state_bytes = one_state * (uint64_t)out->states;
}

/* ---- the tree's view of the pools */

static void retain_page(void *context, int32_t page) { page_retain(context, page); }
static void release_page(void *context, int32_t page) { page_release(context, page); }
static void retain_state(void *context, int32_t state) { state_retain(context, state); }
static void release_state(void *context, int32_t state) { state_release(context, state); }

static err_code create_pools(prefix_cache *c, const model_config *config, dtype kv_type, const cache_plan *plan,
                             error *err) {
    ERR_TRY(page_pool_init(&c->pages, config, kv_type, plan->pages, err));
    return state_pool_init(&c->states, config, plan->states, err);
}

err_code prefix_cache_create(const model_config *config, dtype kv_type, const cache_plan *plan, prefix_cache **out,
                             error *err) {
    prefix_cache *c = mem_zero(1, sizeof *c);
    err_code code = create_pools(c, config, kv_type, plan, err);
    if (code != ERR_OK) {
        prefix_cache_destroy(c);
        return code;
    }
    c->context_max = plan->context_max;
    c->parallel = plan->parallel;
    /* A prompt's snapshots must leave room for others': its share of what is not needed to run. */
    int share = (plan->states - 2 * plan->parallel) / plan->parallel;
    c->wants_max = share < SNAPSHOT_WANTS_MAX ? share : SNAPSHOT_WANTS_MAX;
    prefix_store pages = {&c->pages, retain_page, release_page, model_kv_page_bytes(config, kv_type)};
    prefix_store states = {&c->states, retain_state, release_state, state_bytes(config)};
    c->tree = prefix_tree_create(pages, states, (int64_t)plan->pages * KV_PAGE * REMAINS_PER_PAGE);
    c->runs = mem_zero((size_t)plan->parallel, sizeof *c->runs);
    for (int i = 0; i < plan->parallel; i++) {
        cache_run *r = &c->runs[i];
        r->cache = c;
        r->ids = mem_zero((size_t)plan->context_max, sizeof *r->ids);
        r->pages = mem_zero((size_t)pages_for(plan->context_max), sizeof *r->pages);
        r->seq.pages = r->pages;
    }
    *out = c;
    return ERR_OK;
}

void prefix_cache_destroy(prefix_cache *c) {
    if (!c) return;
    for (int i = 0; i < c->parallel; i++) {
        HEARTH_ASSERT(!c->runs[i].running);
        free(c->runs[i].ids);
        free(c->runs[i].pages);
    }
    free(c->runs);
    prefix_tree_destroy(c->tree);
    state_pool_deinit(&c->states);
    page_pool_deinit(&c->pages);
    free(c);
}

const kv_pool *prefix_cache_kv(const prefix_cache *c) { return &c->pages.kv; }

cache_usage prefix_cache_usage(const prefix_cache *c) {
    prefix_usage tree = prefix_tree_usage(c->tree);
    return (cache_usage){.pages_used = page_pool_used(&c->pages),
                         .pages_total = c->pages.kv.page_count,
                         .snapshots_used = tree.snapshots,
                         .snapshots_total = c->states.count,
                         .tree = tree};
}

void prefix_cache_check(const prefix_cache *c) {
    prefix_tree_check(c->tree);
    for (int i = 0; i < c->parallel; i++) {
        const cache_run *r = &c->runs[i];
        HEARTH_ASSERT(r->running || (!r->page_count && !r->captured_count && !r->resumed));
        HEARTH_ASSERT(!r->running || r->page_count >= pages_for(r->seq.length));
    }
}

/* ---- beginning */

/* The plan guarantees both to what runs. */
static int32_t page_take(prefix_cache *c) {
    int32_t page;
    while ((page = page_acquire(&c->pages)) < 0) HEARTH_ASSERT(prefix_tree_evict(c->tree, NEED_PAGE));
    return page;
}

static int state_take(prefix_cache *c) {
    int state;
    while ((state = state_acquire(&c->states)) < 0) HEARTH_ASSERT(prefix_tree_evict(c->tree, NEED_SNAPSHOT));
    return state;
}

static cache_run *free_run(prefix_cache *c) {
    for (int i = 0; i < c->parallel; i++)
        if (!c->runs[i].running) return &c->runs[i];
    HEARTH_ASSERT(!"a run is free");
    return NULL;
}

/* Shares the pages before the one of the last position, which will be written: that one is copied, at a page's edge too
 * (prefix_tree.h says why). */
static void share_pages(cache_run *r, const prefix_match *m) {
    prefix_cache *c = r->cache;
    if (!m->snapshot) return;
    int last = (m->resumed - 1) / KV_PAGE;
    prefix_tree_pages(c->tree, m->snapshot, r->pages);
    for (int i = 0; i < last; i++) page_retain(&c->pages, r->pages[i]);
    int32_t source = r->pages[last]; /* stays: the snapshot is pinned */
    r->page_count = last;
    r->pages[last] = page_take(c);
    r->page_count++;
    page_copy(&c->pages, source, r->pages[last]);
}

static void start_state(cache_run *r, const prefix_match *m) {
    state_pool *states = &r->cache->states;
    r->live = state_take(r->cache);
    if (m->snapshot)
        state_copy(states, m->state, r->live);
    else
        state_clear(states, r->live);
    r->seq.recurrent = state_recurrent(states, r->live);
    r->seq.conv = state_conv(states, r->live);
}

cache_run *cache_run_begin(prefix_cache *c, const int32_t *ids, const prompt_shape *shape, prefix_match *found) {
    HEARTH_ASSERT(shape->count > 0 && shape->count <= c->context_max);
    cache_run *r = free_run(c);
    prefix_match m = prefix_tree_find(c->tree, ids, shape->count);
    prefix_tree_use(c->tree, &m);
    snapshot_policy_learn(&c->policy, &m, shape->count);
    r->running = true;
    r->resumed = m.snapshot;
    r->last_want = r->seq.length = m.resumed;
    memcpy(r->ids, ids, (size_t)shape->count * sizeof *ids);
    share_pages(r, &m);
    start_state(r, &m);
    r->want_count = snapshot_policy_plan(&c->policy, shape, &m, c->wants_max, r->wants);
    r->want_next = 0;
    *found = m;
    return r;
}

sequence *cache_run_sequence(cache_run *r) { return &r->seq; }
float *cache_run_hidden(cache_run *r) { return state_hidden(&r->cache->states, r->live); }

/* ---- running */

/* A state for a snapshot: a free one, or one whose snapshot is worth less. -1 when there is none. */
static int capture_state(cache_run *r, const snapshot_want *want) {
    prefix_cache *c = r->cache;
    int state = state_acquire(&c->states);
    for (; state < 0; state = state_acquire(&c->states))
        if (!prefix_tree_make_way(c->tree, NEED_SNAPSHOT, want->kind, want->position - r->last_want, want->needed))
            return -1;
    return state;
}

void cache_run_reserve(cache_run *r, int count) {
    int after = r->seq.length + count;
    HEARTH_ASSERT(r->running && after <= r->cache->context_max);
    while (r->page_count < pages_for(after)) {
        int32_t page = page_take(r->cache);
        r->pages[r->page_count++] = page;
    }
}

int cache_run_prepare(cache_run *r, int count, capture captures[SNAPSHOT_WANTS_MAX]) {
    prefix_cache *c = r->cache;
    int before = r->seq.length, after = before + count;
    HEARTH_ASSERT(!r->captured_count && count > 0);
    cache_run_reserve(r, count);
    for (; r->want_next < r->want_count && r->wants[r->want_next].position <= after; r->want_next++) {
        const snapshot_want *want = &r->wants[r->want_next];
        int state = capture_state(r, want);
        if (state < 0) continue;
        captures[r->captured_count] = (capture){want->position - before, state_recurrent(&c->states, state),
                                                state_conv(&c->states, state), state_hidden(&c->states, state)};
        r->captured[r->captured_count++] = (pending){want->position, state, want->kind};
        r->last_want = want->position;
    }
    return r->captured_count;
}

void cache_run_commit(cache_run *r, const int32_t *ids, int count) {
    prefix_cache *c = r->cache;
    int before = r->seq.length - count; /* the model has advanced length */
    HEARTH_ASSERT(r->running && before >= 0 && r->seq.length <= c->context_max);
    memcpy(r->ids + before, ids, (size_t)count * sizeof *ids);
    for (int i = 0; i < r->captured_count; i++) {
        const pending *p = &r->captured[i];
        HEARTH_ASSERT(p->position <= r->seq.length);
        prefix_tree_add(c->tree, r->ids, p->position, r->pages, p->state, p->kind);
        state_release(&c->states, p->state);
    }
    r->captured_count = 0;
}

void cache_run_end(cache_run *r, bool keep) {
    prefix_cache *c = r->cache;
    HEARTH_ASSERT(r->running);
    while (r->captured_count) state_release(&c->states, r->captured[--r->captured_count].state);
    if (keep && r->seq.length) prefix_tree_add(c->tree, r->ids, r->seq.length, r->pages, r->live, SNAPSHOT_OUTPUT);
    prefix_tree_unpin(c->tree, r->resumed);
    if (!keep) prefix_tree_drop(c->tree, r->ids, 0, r->seq.length);
    state_release(&c->states, r->live);
    while (r->page_count) page_release(&c->pages, r->pages[--r->page_count]);
    r->resumed = NULL;
    r->live = -1;
    r->seq.length = 0;
    r->seq.recurrent = r->seq.conv = NULL;
    r->running = false;
}
