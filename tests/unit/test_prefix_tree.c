/* The prefix tree against a brute-force oracle, without a model.
 *
 * Pages and states are numbers with something checkable behind them: a page's slots hold the ids written there and, for
 * the MTP layer, the id that followed; a state holds a hash of all ids before it. So a wrong page, a wrong snapshot, a
 * slot written after it was shared, or an MTP pair taken from another branch shows at once. The oracle is the list of
 * everything ever stored; pools say which of it is still there. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/id_pool.h"
#include "cache/prefix_tree.h"
#include "ops/ops.h"

enum { LENGTH_MAX = 700, TABLE_MAX = LENGTH_MAX / KV_PAGE + 1, STORED_MAX = 40000, ITEMS_MAX = 4096 };

typedef struct page_content {
    int32_t ids[KV_PAGE], next_ids[KV_PAGE];
} page_content;

typedef struct stored {
    int32_t *ids;
    int position, state;
    bool alive;
} stored;

/* Pools, the memory behind them, the tree, and all that was stored in it. */
typedef struct world {
    byte_budget budget;
    id_pool pages, states;
    page_content content[ITEMS_MAX];
    uint64_t hashes[ITEMS_MAX];
    int pinned[ITEMS_MAX];  /* by state */
    int dropped[ITEMS_MAX]; /* times it was taken away although pinned */
    bool dropping;
    prefix_tree *tree;
    stored *all;
    int count;
} world;

static uint64_t random_state;

static int below(int n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (unsigned)n);
}

static void shuffle(id_pool *p) {
    for (int i = p->free_count - 1; i > 0; i--) {
        int k = below(i + 1);
        int32_t swap = p->free_ids[i];
        p->free_ids[i] = p->free_ids[k];
        p->free_ids[k] = swap;
    }
}

static void retain(void *ids, int32_t id) { id_retain(ids, id); }
static void release(void *ids, int32_t id) { id_release(ids, id); }

static void retain_state(void *context, int32_t id) { id_retain(&((world *)context)->states, id); }

static void release_state(void *context, int32_t id) {
    world *w = context;
    id_release(&w->states, id);
    if (w->states.references[id]) return;
    if (w->dropping && w->pinned[id]) w->pinned[id] = 0, w->dropped[id]++;
    assert_int_equal(w->pinned[id], 0);
    for (int i = 0; i < w->count; i++)
        if (w->all[i].alive && w->all[i].state == id) w->all[i].alive = false;
}

static world *open_world(uint64_t bytes, uint64_t page_bytes, uint64_t state_bytes, int64_t ids_max) {
    world *w = mem_zero(1, sizeof *w);
    w->all = mem_zero(STORED_MAX, sizeof *w->all);
    w->budget.max = bytes;
    id_pool_init(&w->pages, &w->budget, page_bytes, ITEMS_MAX);
    id_pool_init(&w->states, &w->budget, state_bytes, ITEMS_MAX);
    shuffle(&w->pages);
    shuffle(&w->states);
    w->tree = prefix_tree_create((prefix_store){&w->pages, retain, release, page_bytes},
                                 (prefix_store){w, retain_state, release_state, state_bytes}, ids_max);
    return w;
}

static void close_world(world *w) {
    prefix_tree_check(w->tree);
    prefix_tree_destroy(w->tree);
    assert_int_equal(w->budget.used, 0); /* every reference was given back */
    for (int i = 0; i < w->count; i++) free(w->all[i].ids);
    id_pool_deinit(&w->pages);
    id_pool_deinit(&w->states);
    free(w->all);
    free(w);
}

static uint64_t hash_ids(const int32_t *ids, int count) {
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < count; i++) h = (h ^ (uint64_t)ids[i]) * 1099511628211u;
    return h;
}

/* ---- the oracle */

static int common_ids(const int32_t *a, int a_count, const int32_t *b, int b_count) {
    int n = a_count < b_count ? a_count : b_count, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

typedef struct answer {
    int common, common_alive; /* with anything ever stored; with what is there */
    int resumed, ever;        /* deepest snapshot that is there; that ever was */
} answer;

static answer ask_oracle(const world *w, const int32_t *ids, int count) {
    answer a = {0};
    for (int i = 0; i < w->count; i++) {
        const stored *s = &w->all[i];
        int common = common_ids(s->ids, s->position, ids, count);
        if (common > a.common) a.common = common;
        if (s->alive && common > a.common_alive) a.common_alive = common;
        bool fits = common == s->position && s->position < count;
        if (fits && s->position > a.ever) a.ever = s->position;
        if (fits && s->alive && s->position > a.resumed) a.resumed = s->position;
    }
    return a;
}

static void check_match(const world *w, const prefix_match *m, const int32_t *ids, int count, bool forgets) {
    answer a = ask_oracle(w, ids, count);
    assert_int_equal(m->resumed, a.resumed);
    assert_true((m->snapshot != NULL) == (a.resumed > 0));
    assert_true(m->common <= a.common && m->common >= a.common_alive);
    if (forgets) return;
    assert_int_equal(m->common, a.common);
    int reach = a.common < count - 1 ? a.common : count - 1;
    prefix_miss expected = !a.common                       ? MISS_COLD
                           : a.resumed == reach            ? MISS_NONE
                           : !a.ever                       ? MISS_BEFORE_FIRST
                           : a.ever == a.resumed           ? MISS_BETWEEN
                           : m->miss == MISS_PAGES_EVICTED ? MISS_PAGES_EVICTED
                                                           : MISS_SNAPSHOT_EVICTED;
    assert_int_equal(m->miss, expected);
}

/* ---- a request */

typedef struct agent {
    int32_t ids[LENGTH_MAX];
    int count, length; /* of the prompt and answer; computed so far */
    int resumed;
    int32_t table[TABLE_MAX];
    int table_count;
    prefix_snapshot *pin;
    int32_t pinned_state;
    int dropped; /* of that state, when it was pinned */
    bool running;
} agent;

/* A page or state; room is made when there is none. -1 when everything is in use. */
static int32_t take(world *w, id_pool *items, prefix_need need) {
    int32_t id;
    while ((id = id_acquire(items)) < 0)
        if (!prefix_tree_evict(w->tree, need)) return -1;
    assert_true(w->budget.used <= w->budget.max);
    return id;
}

static void check_agent(const world *w, const agent *a) {
    for (int i = 0; i < a->length; i++) {
        const page_content *page = &w->content[a->table[i / KV_PAGE]];
        assert_int_equal(page->ids[i % KV_PAGE], a->ids[i]);
        if (i + 1 < a->length) assert_int_equal(page->next_ids[i % KV_PAGE], a->ids[i + 1]);
    }
}

static void give_back_table(world *w, agent *a) {
    while (a->table_count) id_release(&w->pages, a->table[--a->table_count]);
}

static void unpin(world *w, agent *a) {
    if (a->pin && a->dropped == w->dropped[a->pinned_state]) w->pinned[a->pinned_state]--;
    prefix_tree_unpin(w->tree, a->pin);
    a->pin = NULL;
}

/* Looks up, checks what is found, shares and copies. False when there is no room for the copy. */
static bool begin(world *w, agent *a, bool forgets) {
    prefix_match m = prefix_tree_find(w->tree, a->ids, a->count);
    check_match(w, &m, a->ids, a->count, forgets);
    prefix_tree_use(w->tree, &m);
    a->pin = m.snapshot;
    a->pinned_state = m.state;
    a->length = a->resumed = m.resumed;
    a->running = true;
    if (!m.snapshot) return true;
    w->pinned[m.state]++;
    a->dropped = w->dropped[m.state];
    assert_true(w->hashes[m.state] == hash_ids(a->ids, m.resumed));
    int last = (m.resumed - 1) / KV_PAGE;
    prefix_tree_pages(w->tree, m.snapshot, a->table);
    for (; a->table_count < last; a->table_count++) id_retain(&w->pages, a->table[a->table_count]);
    int32_t source = a->table[last], copy = take(w, &w->pages, NEED_BYTES);
    if (copy < 0) return false;
    w->content[copy] = w->content[source];
    a->table[a->table_count++] = copy;
    w->content[copy].next_ids[(m.resumed - 1) % KV_PAGE] = -1; /* the branch's own, not there yet */
    check_agent(w, a);
    return true;
}

/* Computes up to `to`. False when there is no room. */
static bool advance(world *w, agent *a, int to) {
    for (; a->length < to; a->length++) {
        int at = a->length;
        if (at / KV_PAGE == a->table_count) {
            int32_t page = take(w, &w->pages, below(2) ? NEED_BYTES : NEED_PAGE);
            if (page < 0) page = take(w, &w->pages, NEED_BYTES);
            if (page < 0) return false;
            a->table[a->table_count++] = page;
        }
        w->content[a->table[at / KV_PAGE]].ids[at % KV_PAGE] = a->ids[at];
        w->content[a->table[at / KV_PAGE]].next_ids[at % KV_PAGE] = -1;
        if (at) w->content[a->table[(at - 1) / KV_PAGE]].next_ids[(at - 1) % KV_PAGE] = a->ids[at];
    }
    check_agent(w, a);
    return true;
}

static void store(world *w, agent *a, snapshot_kind kind) {
    if (!a->length) return;
    int32_t state = take(w, &w->states, below(2) ? NEED_SNAPSHOT : NEED_BYTES);
    if (state < 0) return;
    w->hashes[state] = hash_ids(a->ids, a->length);
    assert_true(w->count < STORED_MAX);
    stored *s = &w->all[w->count++];
    *s = (stored){.ids = mem_alloc((size_t)a->length * sizeof *s->ids), .position = a->length, .state = state};
    memcpy(s->ids, a->ids, (size_t)a->length * sizeof *s->ids);
    s->alive = prefix_tree_add(w->tree, a->ids, a->length, a->table, state, kind);
    id_release(&w->states, state);
}

static void end(world *w, agent *a) {
    unpin(w, a);
    give_back_table(w, a);
    a->running = false;
}

static void run(world *w, agent *a, const int *positions, int position_count) {
    assert_true(begin(w, a, false));
    for (int i = 0; i < position_count; i++) {
        if (positions[i] <= a->length) continue;
        assert_true(advance(w, a, positions[i]));
        store(w, a, SNAPSHOT_MESSAGE);
    }
    end(w, a);
    prefix_tree_check(w->tree);
}

static void fill(agent *a, int from, int count, int32_t first) {
    for (int i = from; i < LENGTH_MAX; i++) a->ids[i] = first + i;
    a->count = count;
}

/* ---- tests */

#define RUN(w, a, ...) run(w, a, (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

/* Two prompts part at every place around page edges; each resumes at the branch with pages of its own from there on. */
static void branches_around_page_edges(void **state) {
    (void)state;
    for (int at = 1; at <= 2 * KV_PAGE + 3; at++) {
        world *w = open_world(1 << 20, 16, 16, 1 << 20);
        agent *a = mem_zero(1, sizeof *a), *b = mem_zero(1, sizeof *b);
        fill(a, 0, 300, 1000);
        fill(b, 0, 300, 1000);
        fill(b, at, 300, 5000);
        RUN(w, a, at, 300);
        RUN(w, b, at, 250, 300);
        assert_int_equal(b->resumed, at);
        RUN(w, a, 300);
        assert_int_equal(a->resumed, at); /* 300 itself is the whole prompt: one token is left to compute */
        a->count = b->count = 320;
        RUN(w, a, 320);
        RUN(w, b, 320);
        assert_int_equal(a->resumed, 300);
        assert_int_equal(b->resumed, 300);
        free(a);
        free(b);
        close_world(w);
    }
}

/* The MTP pair of the last position before a branch is made from the branch's own token, at a page's edge too. */
static void the_mtp_slot_belongs_to_the_branch(void **state) {
    (void)state;
    world *w = open_world(1 << 20, 16, 16, 1 << 20);
    agent *a = mem_zero(1, sizeof *a), *b = mem_zero(1, sizeof *b);
    fill(a, 0, 200, 1000);
    fill(b, 0, 200, 1000);
    fill(b, KV_PAGE, 200, 5000);
    RUN(w, a, KV_PAGE, 180);
    RUN(w, b, 180);
    int32_t of_a[TABLE_MAX], of_b[TABLE_MAX];
    prefix_match m = prefix_tree_find(w->tree, a->ids, 200), n = prefix_tree_find(w->tree, b->ids, 200);
    assert_int_equal(m.resumed, 180);
    assert_int_equal(n.resumed, 180);
    prefix_tree_pages(w->tree, m.snapshot, of_a);
    prefix_tree_pages(w->tree, n.snapshot, of_b);
    assert_int_not_equal(of_a[0], of_b[0]);
    assert_int_equal(w->content[of_a[0]].next_ids[KV_PAGE - 1], a->ids[KV_PAGE]);
    assert_int_equal(w->content[of_b[0]].next_ids[KV_PAGE - 1], b->ids[KV_PAGE]);
    free(a);
    free(b);
    close_world(w);
}

static void reasons(void **state) {
    (void)state;
    world *w = open_world(1 << 20, 16, 16, 1 << 20);
    agent *a = mem_zero(1, sizeof *a), *b = mem_zero(1, sizeof *b);
    fill(a, 0, 300, 1000);
    RUN(w, a, 100, 200, 290);
    static const struct {
        int leaves_at, count, resumed;
        prefix_miss miss;
    } cases[] = {
        {0, 300, 0, MISS_COLD},        {50, 300, 0, MISS_BEFORE_FIRST}, {100, 300, 100, MISS_NONE},
        {150, 300, 100, MISS_BETWEEN}, {300, 300, 290, MISS_NONE},      {300, 291, 290, MISS_NONE},
        {300, 290, 200, MISS_BETWEEN}, {300, 101, 100, MISS_NONE},      {300, 100, 0, MISS_BEFORE_FIRST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill(b, 0, cases[i].count, 1000);
        fill(b, cases[i].leaves_at, cases[i].count, 5000);
        prefix_match m = prefix_tree_find(w->tree, b->ids, b->count);
        if (m.resumed != cases[i].resumed || m.miss != cases[i].miss)
            fail_msg("case %zu: resumed %d, %s", i, m.resumed, prefix_miss_name(m.miss));
    }
    while (prefix_tree_evict(w->tree, NEED_PAGE)) {
        prefix_match m = prefix_tree_find(w->tree, a->ids, 300);
        assert_int_equal(m.miss, MISS_PAGES_EVICTED);
        prefix_tree_check(w->tree);
    }
    assert_int_equal(w->budget.used, 0);
    free(a);
    free(b);
    close_world(w);
}

static void pages_past_the_deepest_snapshot_go_at_once(void **state) {
    (void)state;
    world *w = open_world(1 << 20, 16, 16, 1 << 20);
    agent *a = mem_zero(1, sizeof *a);
    fill(a, 0, 600, 1000);
    RUN(w, a, 100, 590);
    assert_int_equal(w->pages.used, 10);
    prefix_tree_drop(w->tree, a->ids, 100, 600);
    assert_int_equal(w->pages.used, 2);
    assert_int_equal(w->states.used, 1);
    RUN(w, a, 590);
    assert_int_equal(a->resumed, 100);
    assert_int_equal(w->states.used, 2);
    free(a);
    close_world(w);
}

/* A path of many short nodes, each cut inside a page by a branch that is gone, holds no page twice. */
static void cuts_do_not_cost_pages(void **state) {
    (void)state;
    world *w = open_world(1 << 20, 16, 16, 1 << 20);
    agent *a = mem_zero(1, sizeof *a);
    for (int turn = 0; turn < 60; turn++) {
        int before = a->count;
        fill(a, before > 3 ? before - 3 : 0, before + 10, 1000 * (turn + 1));
        if (a->count > 12) RUN(w, a, a->count - 3, a->count - 1, a->count);
    }
    int pages = (a->count + KV_PAGE - 1) / KV_PAGE;
    if (w->pages.used > pages + 60) fail_msg("%d pages", w->pages.used); /* a branch's tail: one page for each turn */
    for (int turn = 0; turn < 60; turn++) {                              /* the tails go */
        fill(a, 0, a->count, 1000);
        for (int k = 1; k <= turn; k++) fill(a, 10 * k - 3, a->count, 1000 * (k + 1));
        prefix_tree_drop(w->tree, a->ids, 10 * (turn + 1) - 3, 10 * (turn + 1));
    }
    prefix_tree_check(w->tree);
    assert_in_range(w->pages.used, pages - 1, pages);
    free(a);
    close_world(w);
}

static void what_is_pinned_stays(void **state) {
    (void)state;
    world *w = open_world(1 << 20, 16, 16, 1 << 20);
    agent *a = mem_zero(1, sizeof *a);
    fill(a, 0, 400, 1000);
    RUN(w, a, 100, 200, 300);
    assert_true(begin(w, a, false));
    while (prefix_tree_evict(w->tree, NEED_SNAPSHOT)) {
    }
    prefix_tree_check(w->tree);
    assert_int_equal(prefix_tree_find(w->tree, a->ids, 400).resumed, 300);
    assert_int_equal(prefix_tree_find(w->tree, a->ids, 300).resumed, 0);
    assert_true(advance(w, a, 400));
    end(w, a);
    assert_true(prefix_tree_evict(w->tree, NEED_SNAPSHOT));
    assert_false(prefix_tree_evict(w->tree, NEED_SNAPSHOT));
    free(a);
    close_world(w);
}

/* What was given up is remembered within ids_max, whatever comes. */
static void remains_are_bounded(void **state) {
    (void)state;
    enum { IDS_MAX = 3000 };
    world *w = open_world(16 * 16, 16, 16, IDS_MAX);
    agent *a = mem_zero(1, sizeof *a);
    for (int i = 0; i < 100; i++) {
        fill(a, 0, 200, 1000 + 10000 * (i % 70));
        assert_true(begin(w, a, true));
        assert_true(advance(w, a, 200));
        store(w, a, SNAPSHOT_OUTPUT);
        end(w, a);
        prefix_tree_check(w->tree);
        assert_true(prefix_tree_usage(w->tree).ids <= IDS_MAX);
    }
    free(a);
    close_world(w);
}

/* Conversations grow turn by turn, each leaving 3 tokens of the prompt before. There is memory for two snapshots each: the
 * cache learns which ones are come back to. */
static void the_useful_kind_is_learnt(void **state) {
    (void)state;
    enum { AGENTS = 6, TURNS = 30 };
    world *w = open_world(1000 * 16 + 14 * 1600, 16, 1600, 1 << 20);
    agent *agents = mem_zero(AGENTS, sizeof *agents);
    int lost = 0;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < AGENTS; i++) {
            agent *a = &agents[i];
            int before = a->count;
            fill(a, before > 3 ? before - 3 : 0, before + 20, 1000 + 100000 * i + 1000 * turn);
            assert_true(begin(w, a, false));
            if (turn > TURNS / 2) lost += before - 3 - a->resumed;
            for (int k = 0; k < 4; k++) {
                static const int back[] = {10, 3, 1, 0};
                static const snapshot_kind kinds[] = {SNAPSHOT_HISTORY, SNAPSHOT_GENERATION, SNAPSHOT_PROMPT_END,
                                                      SNAPSHOT_OUTPUT};
                if (a->count - back[k] <= a->length) continue;
                assert_true(advance(w, a, a->count - back[k]));
                store(w, a, kinds[k]);
            }
            end(w, a);
        }
    assert_int_equal(lost, 0);
    free(agents);
    close_world(w);
}

/* ---- random traffic */

/* A new prompt: an old one extended, edited in the middle, cut, or another agent's with a new tail. Few different ids,
 * so that paths often meet by chance too. */
static void next_prompt(const agent *agents, int count, agent *a) {
    const agent *source = below(3) ? a : &agents[below(count)];
    if (source != a) memcpy(a->ids, source->ids, sizeof a->ids);
    int from = below(4) ? source->count + below(20) : below(source->count + 1);
    if (below(8) == 0) from -= from % KV_PAGE; /* page edges */
    if (from > LENGTH_MAX - 160) from = below(60);
    int ids = below(2) ? 2 : 1 << 20;
    for (int i = from; i < LENGTH_MAX; i++) a->ids[i] = below(ids);
    a->count = from + 1 + below(150);
}

static void step(world *w, agent *a) {
    int to = a->length + 1 + below(60);
    if (below(4) == 0) to += KV_PAGE - to % KV_PAGE;
    bool fits = advance(w, a, to < LENGTH_MAX ? to : LENGTH_MAX - 1);
    if (below(3)) store(w, a, (snapshot_kind)below(SNAPSHOT_KINDS));
    if (fits && a->length < LENGTH_MAX - 1 && below(4)) return;
    if (below(10) == 0) { /* it failed: nothing it stored can be trusted */
        w->dropping = true;
        prefix_tree_drop(w->tree, a->ids, a->resumed, a->length);
        w->dropping = false;
        if (a->length > a->resumed) assert_true(prefix_tree_find(w->tree, a->ids, a->length + 1).resumed <= a->resumed);
    }
    end(w, a);
}

static void random_traffic(uint64_t seed, uint64_t bytes, uint64_t state_bytes, int64_t ids_max, int steps) {
    enum { AGENTS = 16 };
    print_message("seed %llu\n", (unsigned long long)seed);
    random_state = seed;
    bool forgets = ids_max < 1 << 20;
    world *w = open_world(bytes, 16, state_bytes, ids_max);
    agent *agents = mem_zero(AGENTS, sizeof *agents);
    for (int i = 0; i < steps; i++) {
        agent *a = &agents[below(AGENTS)];
        if (a->running) {
            step(w, a);
        } else {
            next_prompt(agents, AGENTS, a);
            if (!begin(w, a, forgets)) end(w, a);
        }
        if (i % 16 == 0) prefix_tree_check(w->tree);
    }
    for (int i = 0; i < AGENTS; i++)
        if (agents[i].running) end(w, &agents[i]);
    prefix_usage usage = prefix_tree_usage(w->tree);
    if (usage.hits < (uint64_t)steps / 20) fail_msg("only %llu hits", (unsigned long long)usage.hits);
    while (prefix_tree_evict(w->tree, NEED_BYTES)) {
    }
    assert_int_equal(w->budget.used, 0);
    free(agents);
    close_world(w);
}

static void random_traffic_without_pressure(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) random_traffic(seed, 16 * 8000, 16, 1 << 30, 1500);
}

static void random_traffic_under_pressure(void **state) {
    (void)state;
    for (uint64_t seed = 11; seed <= 16; seed++)
        random_traffic(seed, seed % 2 ? 16 * 260 : 16 * 400, seed % 3 ? 32 : 200, 1 << 30, 2500);
}

static void random_traffic_with_short_memory(void **state) {
    (void)state;
    for (uint64_t seed = 21; seed <= 24; seed++) random_traffic(seed, 16 * 300, 32, 6000, 2500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_around_page_edges),
        cmocka_unit_test(the_mtp_slot_belongs_to_the_branch),
        cmocka_unit_test(reasons),
        cmocka_unit_test(pages_past_the_deepest_snapshot_go_at_once),
        cmocka_unit_test(cuts_do_not_cost_pages),
        cmocka_unit_test(what_is_pinned_stays),
        cmocka_unit_test(remains_are_bounded),
        cmocka_unit_test(the_useful_kind_is_learnt),
        cmocka_unit_test(random_traffic_without_pressure),
        cmocka_unit_test(random_traffic_under_pressure),
        cmocka_unit_test(random_traffic_with_short_memory),
    };
    return cmocka_run_group_tests_name("prefix_tree", tests, NULL, NULL);
}
