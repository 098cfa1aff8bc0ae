/* See bench_cache.h. */
#include "bench/bench_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cache/id_pool.h"
#include "cache/prefix_tree.h"
#include "cache/snapshot_policy.h"
#include "ops/ops.h"
#include "text/chat.h"

enum { ANSWER_TOKENS = 77, MESSAGE_ENDS_MAX = 8, FOREIGN_ID = 1 << 28, SIMULTANEOUS = 2 };

const char *cache_bench_reason(int index) {
    return index >= 0 && index < MISS_REASONS ? prefix_miss_name((prefix_miss)index) : NULL;
}

/* ---- the prompts */

typedef struct prompt {
    int32_t *ids; /* owned */
    int count, history, message_ends[MESSAGE_ENDS_MAX], message_end_count;
} prompt;

typedef struct conversation {
    prompt *prompts; /* [count] owned */
    size_t count, next;
} conversation;

static err_code make_prompt(chat_format *format, const json *messages, const json *tools, const json *keywords,
                            prompt *out, error *err) {
    chat_prompt made;
    ERR_TRY(chat_format_prompt(format, messages, tools, keywords, &made, err));
    *out = (prompt){.ids = made.ids.ids,
                    .count = (int)made.ids.count,
                    .history = (int)made.history_count,
                    .message_end_count = made.message_end_count};
    for (int i = 0; i < made.message_end_count; i++) out->message_ends[i] = (int)made.message_ends[i];
    made.ids = (token_list){0};
    chat_prompt_deinit(&made);
    return ERR_OK;
}

static err_code make_prompts(chat_format *format, const trace_conversation *c, conversation *out, error *err) {
    arena *a = arena_create();
    json *keywords = json_new(a, JSON_OBJECT);
    json_set(keywords, span_text("enable_thinking"), json_new(a, JSON_FALSE));
    transcript said;
    transcript_begin(&said, c);
    out->prompts = mem_zero(c->turn_count, sizeof *out->prompts);
    err_code code = ERR_OK;
    for (; out->count < c->turn_count && code == ERR_OK; out->count += code == ERR_OK) {
        transcript_extend(&said, c, out->count);
        code = make_prompt(format, said.messages, c->tools, keywords, &out->prompts[out->count], err);
    }
    transcript_end(&said);
    arena_destroy(a);
    return code;
}

static void free_conversations(conversation *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < all[i].count; k++) free(all[i].prompts[k].ids);
        free(all[i].prompts);
    }
    free(all);
}

/* ---- edits */

static uint64_t next_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Changes one token of the history that turn `from` shares with the turn before, in it and in all later ones. */
static void edit_history(conversation *c, size_t from, uint64_t *random, int32_t id) {
    const prompt *before = &c->prompts[from - 1];
    int at = (int)(next_random(random) % (uint64_t)before->history);
    for (size_t i = from; i < c->count; i++)
        if (at < c->prompts[i].count) c->prompts[i].ids[at] = id;
}

static void edit_all(conversation *all, size_t count, const cache_bench_options *o) {
    uint64_t random = o->seed;
    int32_t id = FOREIGN_ID + (FOREIGN_ID >> 1);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 1; k < all[i].count; k++)
            if ((double)(next_random(&random) >> 11) * 0x1p-53 < o->edit_rate) edit_history(&all[i], k, &random, id++);
}

/* ---- the order of turns */

static size_t active_max(cache_order order, size_t count) {
    return order == CACHE_ORDER_FILE ? 1 : order == CACHE_ORDER_INTERLEAVE ? SIMULTANEOUS : count;
}

/* Fills order with the prompts of all conversations in the order they are sent. */
static void make_order(conversation *all, size_t count, cache_order kind, const prompt **order) {
    size_t width = active_max(kind, count), started = 0, n = 0;
    size_t *active = mem_zero(width, sizeof *active); /* conversation + 1; 0 = free */
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < width; i++) {
            if (!active[i] && started < count) active[i] = ++started;
            if (!active[i]) continue;
            conversation *c = &all[active[i] - 1];
            if (c->next < c->count) order[n++] = &c->prompts[c->next++];
            if (c->next >= c->count) active[i] = 0;
            more = true;
        }
    }
    free(active);
}

/* ---- what the best cache could do */

static int common_ids(const prompt *a, const prompt *b) {
    int n = a->count < b->count ? a->count : b->count, i = 0;
    while (i < n && a->ids[i] == b->ids[i]) i++;
    return i;
}

/* Longest prefix in common with an earlier prompt; one that cannot be longer than the best so far is passed over. */
static int best_common(const prompt *const *order, size_t at) {
    const prompt *p = order[at];
    int best = 0;
    for (size_t i = at; i-- > 0 && best < p->count;) {
        if (order[i]->count <= best || order[i]->ids[best] != p->ids[best]) continue;
        int common = common_ids(order[i], p);
        if (common > best) best = common;
    }
    return best < p->count ? best : p->count - 1;
}

/* ---- running */

typedef struct simulation {
    byte_budget budget;
    id_pool pages, snapshots;
    prefix_tree *tree;
    snapshot_policy policy;
    int32_t *table; /* pages of the running request */
    int32_t *ids;   /* prompt and answer */
    int table_count;
    int32_t next_answer_id;
} simulation;

static void retain_id(void *ids, int32_t id) { id_retain(ids, id); }
static void release_id(void *ids, int32_t id) { id_release(ids, id); }

static int longest_prompt(const prompt *const *order, size_t count) {
    int longest = 0;
    for (size_t i = 0; i < count; i++)
        if (order[i]->count > longest) longest = order[i]->count;
    return longest;
}

static void simulation_init(simulation *s, const cache_bench_options *o, int longest) {
    *s = (simulation){.budget.max = o->cache_bytes, .next_answer_id = FOREIGN_ID};
    uint64_t page_bytes = o->token_bytes * KV_PAGE;
    id_pool_init(&s->pages, &s->budget, page_bytes, 1 << 24);
    id_pool_init(&s->snapshots, &s->budget, o->snapshot_bytes, 1 << 24);
    prefix_store pages = {&s->pages, retain_id, release_id, page_bytes};
    prefix_store snapshots = {&s->snapshots, retain_id, release_id, o->snapshot_bytes};
    s->tree = prefix_tree_create(pages, snapshots, ((int64_t)s->pages.count + 1) * KV_PAGE * 2);
    int tokens = longest + ANSWER_TOKENS;
    s->ids = mem_zero((size_t)tokens, sizeof *s->ids);
    s->table = mem_zero((size_t)tokens / KV_PAGE + 1, sizeof *s->table);
}

static void simulation_deinit(simulation *s) {
    prefix_tree_destroy(s->tree);
    id_pool_deinit(&s->pages);
    id_pool_deinit(&s->snapshots);
    free(s->table);
    free(s->ids);
}

static err_code take(simulation *s, id_pool *items, const char *what, int32_t *out, error *err) {
    while ((*out = id_acquire(items)) < 0)
        if (!prefix_tree_evict(s->tree, NEED_BYTES))
            ERR_FAIL(err, ERR_MEMORY,
                     "the cache of %llu bytes is full of what one request needs: no room for one more %s of %llu bytes",
                     (unsigned long long)s->budget.max, what, (unsigned long long)items->item_bytes);
    return ERR_OK;
}

static err_code grow_table(simulation *s, int tokens, error *err) {
    for (; s->table_count * KV_PAGE < tokens; s->table_count++)
        ERR_TRY(take(s, &s->pages, "page", &s->table[s->table_count], err));
    return ERR_OK;
}

/* Shares the pages of the match and copies the last, which holds the MTP pair of the branch. */
static err_code resume(simulation *s, const prefix_match *m, error *err) {
    s->table_count = 0;
    if (!m->snapshot) return ERR_OK;
    int shared = (m->resumed - 1) / KV_PAGE;
    prefix_tree_pages(s->tree, m->snapshot, s->table);
    for (; s->table_count < shared; s->table_count++) id_retain(&s->pages, s->table[s->table_count]);
    return grow_table(s, m->resumed, err);
}

/* Stores the snapshot unless memory holds only what is worth more. `before`: the one before it on the path. */
static err_code file_snapshot(simulation *s, const snapshot_want *want, int *before, error *err) {
    int32_t state;
    ERR_TRY(grow_table(s, want->position, err));
    while ((state = id_acquire(&s->snapshots)) < 0)
        if (!prefix_tree_make_way(s->tree, NEED_BYTES, want->kind, want->position - *before, want->needed))
            return ERR_OK;
    prefix_tree_add(s->tree, s->ids, want->position, s->table, state, want->kind);
    id_release(&s->snapshots, state);
    *before = want->position;
    return ERR_OK;
}

static err_code compute(simulation *s, const prompt *p, const prefix_match *m, error *err) {
    snapshot_want wants[SNAPSHOT_WANTS_MAX];
    prompt_shape shape = {.count = p->count,
                          .history = p->history,
                          .message_ends = p->message_ends,
                          .message_end_count = p->message_end_count,
                          .all_messages = p->message_end_count < MESSAGE_ENDS_MAX};
    int before = m->resumed, want_count = snapshot_policy_plan(&s->policy, &shape, m, SNAPSHOT_WANTS_MAX, wants);
    for (int i = 0; i < want_count; i++) ERR_TRY(file_snapshot(s, &wants[i], &before, err));
    for (int i = 0; i < ANSWER_TOKENS; i++) s->ids[p->count + i] = s->next_answer_id++;
    return grow_table(s, p->count + ANSWER_TOKENS, err);
}

/* One request from lookup to rest: the live state becomes the snapshot at the end of the answer. */
static err_code run_turn(simulation *s, const prompt *p, cache_bench_result *out, error *err) {
    memcpy(s->ids, p->ids, (size_t)p->count * sizeof *s->ids);
    prefix_match m = prefix_tree_find(s->tree, s->ids, p->count);
    prefix_tree_use(s->tree, &m);
    snapshot_policy_learn(&s->policy, &m, p->count);
    int32_t live = -1;
    err_code code = resume(s, &m, err);
    if (code == ERR_OK) code = take(s, &s->snapshots, "state", &live, err);
    if (code == ERR_OK) code = compute(s, p, &m, err);
    if (code == ERR_OK) prefix_tree_add(s->tree, s->ids, p->count + ANSWER_TOKENS, s->table, live, SNAPSHOT_OUTPUT);
    if (live >= 0) id_release(&s->snapshots, live);
    while (s->table_count) id_release(&s->pages, s->table[--s->table_count]);
    prefix_tree_unpin(s->tree, m.snapshot);
    out->prefilled_tokens += (uint64_t)(p->count - m.resumed);
    return code;
}

static err_code run_all(const prompt *const *order, size_t count, const cache_bench_options *o, cache_bench_result *out,
                        error *err) {
    simulation s;
    simulation_init(&s, o, longest_prompt(order, count));
    uint64_t start = clock_ns();
    err_code code = ERR_OK;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        out->prompt_tokens += (uint64_t)order[i]->count;
        code = run_turn(&s, order[i], out, err);
    }
    out->cache_s = clock_ms_since(start) / 1e3;
    for (size_t i = 0; i < count && code == ERR_OK; i++)
        out->exact_tokens += (uint64_t)(order[i]->count - best_common(order, i));
    prefix_usage usage = prefix_tree_usage(s.tree);
    for (int i = 0; i < MISS_REASONS; i++) {
        out->turns_missed[i] = usage.misses[i];
        out->tokens_lost[i] = usage.lost[i];
    }
    out->evictions = usage.evictions;
    out->peak_bytes = s.budget.peak;
    out->peak_pages = s.pages.peak;
    out->peak_snapshots = s.snapshots.peak;
    simulation_deinit(&s);
    return code;
}

static err_code tokenize_all(const trace *t, const char *dir, conversation *all, error *err) {
    chat_format *format;
    ERR_TRY(chat_format_open(dir, false, &format, err));
    err_code code = ERR_OK;
    for (size_t i = 0; i < t->count && code == ERR_OK; i++)
        code = make_prompts(format, &t->conversations[i], &all[i], err);
    chat_format_close(format);
    return code;
}

err_code cache_bench_run(const trace *t, const cache_bench_options *o, cache_bench_result *out, error *err) {
    HEARTH_ASSERT(o->snapshot_bytes > 0 && o->token_bytes > 0);
    *out = (cache_bench_result){.turns = t->turn_count};
    conversation *all = mem_zero(t->count, sizeof *all);
    uint64_t start = clock_ns();
    err_code code = tokenize_all(t, o->tokenizer_dir, all, err);
    out->tokenize_s = clock_ms_since(start) / 1e3;
    if (code == ERR_OK) {
        const prompt **order = mem_zero(t->turn_count, sizeof *order);
        edit_all(all, t->count, o);
        make_order(all, t->count, o->order, order);
        code = run_all(order, t->turn_count, o, out, err);
        free(order);
    }
    free_conversations(all, t->count);
    return code;
}
