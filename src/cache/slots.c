/* See slots.h. */
#include "cache/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/page_pool.h"
#include "cache/state_pool.h"

enum {
    SLOTS_EXTRA = 8,  /* stored conversations beyond the running ones, where memory allows */
    SNAPSHOTS_OWN = 3 /* a conversation may take from others to have this many */
};

typedef struct snapshot {
    int position; /* tokens it stands after */
    int state;
} snapshot;

struct slot {
    slot_cache *cache;
    sequence seq;   /* length is the number of ids, also at rest */
    int32_t *ids;   /* [context_max] */
    int32_t *pages; /* [pages for context_max] */
    int page_count;
    snapshot snapshots[SNAPSHOTS_MAX + CAPTURES_MAX + 1]; /* ascending positions */
    int snapshot_count;
    snapshot pending[CAPTURES_MAX]; /* captures of the step under way */
    int pending_count;
    int live;      /* the running state, -1 at rest */
    int history;   /* of the request that used it last */
    uint64_t used; /* stamp: larger is more recent */
    bool running;
};

struct slot_cache {
    page_pool pages;
    state_pool states;
    slot *slots; /* [slot_count] */
    int slot_count, context_max, parallel;
    uint64_t stamp;
};

/* ---- plan */

static int pages_for(int tokens) { return (tokens + KV_PAGE - 1) / KV_PAGE; }

void slot_plan_make(const model_config *config, dtype kv_type, int context_max, int parallel, uint64_t budget,
                    slot_plan *out) {
    HEARTH_ASSERT(context_max > 0 && parallel > 0);
    uint64_t page_bytes = model_kv_page_bytes(config, kv_type), one_state = state_bytes(config);
    int context_pages = pages_for(context_max);
    /* One context more than can run, so that a conversation at rest survives while a fork of it is set up. */
    int pages_min = (parallel + 1) * context_pages, states_min = 3 * parallel + 2;
    int slots = parallel + SLOTS_EXTRA;
    int pages_max = slots * context_pages, states_max = parallel + SNAPSHOTS_MAX * slots;
    uint64_t least = page_bytes * (uint64_t)pages_min + one_state * (uint64_t)states_min;
    uint64_t most = page_bytes * (uint64_t)pages_max + one_state * (uint64_t)states_max;
    double share = budget <= least ? 0 : budget >= most ? 1 : (double)(budget - least) / (double)(most - least);
    *out = (slot_plan){.context_max = context_max, .parallel = parallel, .slots = slots};
    out->pages = pages_min + (int)(share * (pages_max - pages_min));
    out->states = states_min + (int)(share * (states_max - states_min));
    out->kv_bytes = page_bytes * (uint64_t)out->pages;
    out->state_bytes = one_state * (uint64_t)out->states;
}

err_code slot_cache_create(const model_config *config, dtype kv_type, const slot_plan *plan, slot_cache **out,
                           error *err) {
    slot_cache *c = mem_zero(1, sizeof *c);
    c->context_max = plan->context_max;
    c->parallel = plan->parallel;
    err_code code = page_pool_init(&c->pages, config, kv_type, plan->pages, err);
    if (code == ERR_OK) code = state_pool_init(&c->states, config, plan->states, err);
    if (code != ERR_OK) {
        slot_cache_destroy(c);
        return code;
    }
    c->slot_count = plan->slots;
    c->slots = mem_zero((size_t)plan->slots, sizeof *c->slots);
    for (int i = 0; i < plan->slots; i++) {
        slot *s = &c->slots[i];
        s->cache = c;
        s->live = -1;
        s->ids = mem_zero((size_t)plan->context_max, sizeof *s->ids);
        s->pages = mem_zero((size_t)pages_for(plan->context_max), sizeof *s->pages);
        s->seq.pages = s->pages;
    }
    *out = c;
    return ERR_OK;
}

void slot_cache_destroy(slot_cache *c) {
    if (!c) return;
    for (int i = 0; i < c->slot_count; i++) {
        free(c->slots[i].ids);
        free(c->slots[i].pages);
    }
    free(c->slots);
    state_pool_deinit(&c->states);
    page_pool_deinit(&c->pages);
    free(c);
}

const kv_pool *slot_cache_kv(const slot_cache *c) { return &c->pages.kv; }

slot_usage slot_cache_usage(const slot_cache *c) {
    int live = 0;
    for (int i = 0; i < c->slot_count; i++) live += c->slots[i].running;
    return (slot_usage){.pages_used = page_pool_used(&c->pages),
                        .pages_total = c->pages.kv.page_count,
                        .snapshots_used = state_pool_used(&c->states) - live,
                        .snapshots_total = c->states.count - c->parallel};
}

/* ---- giving up memory */

static void snapshot_drop(slot *s, int index) {
    state_release(&s->cache->states, s->snapshots[index].state);
    s->snapshot_count--;
    memmove(s->snapshots + index, s->snapshots + index + 1, (size_t)(s->snapshot_count - index) * sizeof *s->snapshots);
}

static void pages_truncate(slot *s, int page_count) {
    while (s->page_count > page_count) page_release(&s->cache->pages, s->pages[--s->page_count]);
}

/* Back to nothing. */
static void slot_clear(slot *s) {
    while (s->snapshot_count) snapshot_drop(s, s->snapshot_count - 1);
    pages_truncate(s, 0);
    s->seq.length = s->history = 0;
}

static slot *least_recent(slot_cache *c, bool rest, const slot *except) {
    slot *best = NULL;
    for (int i = 0; i < c->slot_count; i++) {
        slot *s = &c->slots[i];
        bool fits = rest ? !s->running && s->seq.length > 0 : s->snapshot_count > 0;
        if (fits && s != except && (!best || s->used < best->used)) best = s;
    }
    return best;
}

/* Gives up the snapshot that will be missed least. The last one within the history is where the next turn resumes: it
 * goes last. Of those before it the one goes whose loss adds the fewest tokens to a recomputation, so that the rest
 * stay spread out; then those after it (reached only by the same prompt again, or by an answer sent back unchanged). */
static void snapshot_thin(slot *s) {
    int resume = 0;
    while (resume + 1 < s->snapshot_count && s->snapshots[resume + 1].position <= s->history) resume++;
    if (resume == 0) {
        snapshot_drop(s, s->snapshot_count - 1);
        return;
    }
    int victim = 0, smallest = s->snapshots[0].position;
    for (int i = 1; i < resume; i++) {
        int gap = s->snapshots[i].position - s->snapshots[i - 1].position;
        if (gap <= smallest) victim = i, smallest = gap;
    }
    snapshot_drop(s, victim);
}

/* A free state, taken from conversations at rest if need be and, when it is `required`, from snapshots of running ones;
 * -1 when there is none. Every round drops one reference, so it ends. */
static int state_take(slot_cache *c, bool required) {
    int state;
    while ((state = state_acquire(&c->states)) < 0) {
        slot *s = least_recent(c, true, NULL);
        if (!s && required) s = least_recent(c, false, NULL);
        if (!s) return -1;
        if (s->snapshot_count) snapshot_thin(s);
        if (!s->snapshot_count && !s->running) slot_clear(s); /* pages without a snapshot are of no use */
    }
    return state;
}

static int32_t page_take(slot_cache *c) {
    int32_t page;
    while ((page = page_acquire(&c->pages)) < 0) {
        slot *s = least_recent(c, true, NULL);
        HEARTH_ASSERT(s); /* the plan has a full context for every running sequence and one more */
        slot_clear(s);
    }
    return page;
}

/* ---- finding and resuming a prefix */

typedef struct match {
    slot *source;
    int index;  /* snapshot */
    int length; /* its position */
    int common; /* leading ids in common */
} match;

static int common_length(const slot *s, const int32_t *ids, int count) {
    int n = s->seq.length < count ? s->seq.length : count, i = 0;
    while (i < n && s->ids[i] == ids[i]) i++;
    return i;
}

static bool can_take_over(const match *m) {
    const slot *s = m->source;
    int own = s->history < s->seq.length ? s->history : s->seq.length;
    return !s->running && m->common >= own;
}

/* Longer beats shorter; at the same length a path that can be taken over in place beats one that must be forked. */
static bool better(const match *a, const match *b) {
    if (!b->source || a->length != b->length) return a->length > b->length;
    if (can_take_over(a) != can_take_over(b)) return can_take_over(a);
    return a->source->used > b->source->used;
}

static match find_prefix(slot_cache *c, const int32_t *ids, int count) {
    match best = {0};
    for (int i = 0; i < c->slot_count; i++) {
        slot *s = &c->slots[i];
        match m = {.source = s, .common = common_length(s, ids, count)};
        int limit = m.common < count - 1 ? m.common : count - 1;
        for (m.index = s->snapshot_count - 1; m.index >= 0; m.index--)
            if (s->snapshots[m.index].position <= limit) break;
        if (m.index < 0) continue;
        m.length = s->snapshots[m.index].position;
        if (better(&m, &best)) best = m;
    }
    return best;
}

/* A slot to hold a new path: an empty one, else the least recently used one at rest. */
static slot *choose_target(slot_cache *c, slot *source) {
    for (int i = 0; i < c->slot_count; i++)
        if (!c->slots[i].running && c->slots[i].seq.length == 0) return &c->slots[i];
    slot *s = least_recent(c, true, source);
    return s ? s : source;
}

/* The last page will be written: it must not be shared. */
static void own_last_page(slot *s) {
    if (s->seq.length % KV_PAGE == 0) return;
    int32_t *last = &s->pages[s->page_count - 1];
    if (s->cache->pages.references[*last] == 1) return;
    int32_t copy = page_take(s->cache);
    page_copy(&s->cache->pages, *last, copy);
    page_release(&s->cache->pages, *last);
    *last = copy;
}

static void truncate_to(slot *s, int length) {
    while (s->snapshot_count && s->snapshots[s->snapshot_count - 1].position > length)
        snapshot_drop(s, s->snapshot_count - 1);
    pages_truncate(s, pages_for(length));
    s->seq.length = length;
}

static void share_prefix(slot *target, const slot *source, int length) {
    slot_cache *c = target->cache;
    memcpy(target->ids, source->ids, (size_t)length * sizeof *target->ids);
    for (int i = 0; i < source->snapshot_count && source->snapshots[i].position <= length; i++) {
        target->snapshots[target->snapshot_count++] = source->snapshots[i];
        state_retain(&c->states, source->snapshots[i].state);
    }
    for (int i = 0; i < pages_for(length); i++) {
        target->pages[target->page_count++] = source->pages[i];
        page_retain(&c->pages, source->pages[i]);
    }
    target->seq.length = length;
}

static void start_live(slot *s, int from) {
    state_pool *states = &s->cache->states;
    s->live = state_take(s->cache, true);
    HEARTH_ASSERT(s->live >= 0);
    if (from >= 0)
        state_copy(states, from, s->live);
    else
        state_clear(states, s->live);
    s->seq.recurrent = state_recurrent(states, s->live);
    s->seq.conv = state_conv(states, s->live);
}

slot *slot_acquire(slot_cache *c, const int32_t *ids, int count, int history, int *reused) {
    HEARTH_ASSERT(count > 0 && count <= c->context_max && history >= 0 && history <= count);
    int running = 0;
    for (int i = 0; i < c->slot_count; i++) running += c->slots[i].running;
    HEARTH_ASSERT(running < c->parallel);

    match m = find_prefix(c, ids, count);
    int from = m.source ? m.source->snapshots[m.index].state : -1;
    if (m.source) state_retain(&c->states, from); /* outlives whatever is given up on the way */
    slot *s = m.source && can_take_over(&m) ? m.source : choose_target(c, m.source);
    s->running = true;
    if (s == m.source) {
        truncate_to(s, m.length);
    } else {
        slot_clear(s);
        if (m.source) share_prefix(s, m.source, m.length);
    }
    s->used = ++c->stamp;
    s->history = history;
    own_last_page(s);
    start_live(s, from);
    if (from >= 0) state_release(&c->states, from);
    *reused = m.length;
    return s;
}

sequence *slot_sequence(slot *s) { return &s->seq; }
float *slot_hidden(slot *s) { return state_hidden(&s->cache->states, s->live); }

/* ---- running */

void slot_reserve(slot *s, int count) {
    int length = s->seq.length + count;
    HEARTH_ASSERT(s->running && length <= s->cache->context_max);
    while (s->page_count < pages_for(length)) {
        int32_t page = page_take(s->cache);
        s->pages[s->page_count++] = page;
    }
}

bool slot_capture(slot *s, int after, capture *out) {
    HEARTH_ASSERT(s->running && after > 0);
    HEARTH_ASSERT(!s->pending_count || s->pending[s->pending_count - 1].position < s->seq.length + after);
    if (s->pending_count == CAPTURES_MAX) return false;
    /* When memory is short a conversation gives up its own old snapshots before it takes those of others. */
    while (!s->cache->states.free_count && s->snapshot_count + s->pending_count >= SNAPSHOTS_OWN) {
        if (!s->snapshot_count) return false;
        snapshot_thin(s);
    }
    int state = state_take(s->cache, false);
    while (state < 0 && s->snapshot_count) {
        snapshot_thin(s);
        state = state_acquire(&s->cache->states); /* a shared one does not come free */
    }
    if (state < 0) return false;
    s->pending[s->pending_count++] = (snapshot){s->seq.length + after, state};
    const state_pool *states = &s->cache->states;
    *out = (capture){after, state_recurrent(states, state), state_conv(states, state), state_hidden(states, state)};
    return true;
}

static void snapshot_add(slot *s, snapshot one) {
    HEARTH_ASSERT(s->snapshot_count < (int)(sizeof s->snapshots / sizeof *s->snapshots));
    HEARTH_ASSERT(!s->snapshot_count || s->snapshots[s->snapshot_count - 1].position < one.position);
    s->snapshots[s->snapshot_count++] = one;
}

void slot_commit(slot *s, const int32_t *ids, int count) {
    int before = s->seq.length - count; /* the model has advanced length */
    HEARTH_ASSERT(s->running && before >= 0 && s->seq.length <= s->cache->context_max);
    memcpy(s->ids + before, ids, (size_t)count * sizeof *ids);
    for (int i = 0; i < s->pending_count; i++) {
        HEARTH_ASSERT(s->pending[i].position <= s->seq.length);
        snapshot_add(s, s->pending[i]);
    }
    s->pending_count = 0;
    while (s->snapshot_count > SNAPSHOTS_MAX) snapshot_thin(s);
    s->used = ++s->cache->stamp;
}

void slot_release(slot *s, bool keep) {
    HEARTH_ASSERT(s->running);
    for (int i = 0; i < s->pending_count; i++) state_release(&s->cache->states, s->pending[i].state);
    s->pending_count = 0;
    int last = s->snapshot_count ? s->snapshots[s->snapshot_count - 1].position : 0;
    if (keep && s->seq.length > last)
        snapshot_add(s, (snapshot){s->seq.length, s->live});
    else
        state_release(&s->cache->states, s->live);
    s->live = -1;
    s->seq.recurrent = s->seq.conv = NULL;
    s->running = false;
    if (!keep) slot_clear(s);
    pages_truncate(s, pages_for(s->seq.length));
    while (s->snapshot_count > SNAPSHOTS_MAX) snapshot_thin(s);
    s->used = ++s->cache->stamp;
}
