/* The prefix cache without a model: a stand-in writes, for every position, what can be checked later (the id into each
 * layer's K and V rows, a running hash of all ids into the states), so that a wrong page, a wrong snapshot or a page
 * written after it was shared shows at the next reuse. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/page_pool.h"
#include "cache/prefix_cache.h"
#include "cache/state_pool.h"
#include "support.h"

enum { CONTEXT = 400, PARALLEL = 3 };

static model_config small_config(void) {
    return (model_config){.layers = 3,
                          .hidden = 8,
                          .attention_layers = 1,
                          .gdn_layers = 2,
                          .mtp_layers = 1,
                          .kv_heads = 2,
                          .head_dim = 4,
                          .key_heads = 1,
                          .value_heads = 1,
                          .key_dim = 4,
                          .value_dim = 4,
                          .conv_taps = 4,
                          .channels = 12,
                          .context_max = CONTEXT};
}

static prefix_cache *make_cache(uint64_t budget, int context, int parallel) {
    model_config config = small_config();
    cache_plan plan;
    cache_plan_make(&config, DTYPE_F32, context, parallel, budget, &plan);
    prefix_cache *c;
    assert_int_equal(prefix_cache_create(&config, DTYPE_F32, &plan, &c, NULL), ERR_OK);
    return c;
}

/* ---- the stand-in for the model */

static float *kv_row(const kv_pool *kv, float *base, int layer, const int32_t *pages, int position) {
    size_t page = (size_t)layer * (size_t)kv->page_count + (size_t)pages[position / KV_PAGE];
    return base + page * (size_t)kv->kv_heads * KV_PAGE * (size_t)kv->head_dim +
           (size_t)(position % KV_PAGE) * (size_t)kv->head_dim;
}

static float hash_ids(const int32_t *ids, int count) {
    uint32_t h = 2166136261u;
    for (int i = 0; i < count; i++) h = (h ^ (uint32_t)ids[i]) * 16777619u;
    return (float)(h & 0xfffffu) + 1;
}

static void write_states(float *recurrent, float *conv, float *hidden, float value) {
    recurrent[0] = recurrent[31] = conv[0] = conv[71] = value;
    if (hidden) hidden[0] = hidden[7] = value;
}

/* Runs `count` ids from the sequence's end on. */
static void forward(prefix_cache *c, cache_run *r, const int32_t *ids, int count) {
    const kv_pool *kv = prefix_cache_kv(c);
    sequence *seq = cache_run_sequence(r);
    capture made[SNAPSHOT_WANTS_MAX];
    int made_count = cache_run_prepare(r, count, made), before = seq->length, last = 0;
    for (int i = before; i < before + count; i++)
        for (int layer = 0; layer < kv->layers; layer++) {
            *kv_row(kv, kv->k, layer, seq->pages, i) = (float)ids[i];
            *kv_row(kv, kv->v, layer, seq->pages, i) = (float)-ids[i];
        }
    for (int i = 0; i < made_count; i++) {
        assert_in_range(made[i].after, last + 1, count);
        last = made[i].after;
        write_states(made[i].recurrent, made[i].conv, made[i].hidden, hash_ids(ids, before + last));
    }
    seq->length += count;
    write_states(seq->recurrent, seq->conv, cache_run_hidden(r), hash_ids(ids, seq->length));
    cache_run_commit(r, ids + before, count);
}

static void check_sequence(prefix_cache *c, cache_run *s, const int32_t *ids, int length) {
    const kv_pool *kv = prefix_cache_kv(c);
    const sequence *seq = cache_run_sequence(s);
    assert_int_equal(seq->length, length);
    for (int i = 0; i < length; i++)
        for (int layer = 0; layer < kv->layers; layer++) {
            assert_true(*kv_row(kv, kv->k, layer, seq->pages, i) == (float)ids[i]);
            assert_true(*kv_row(kv, kv->v, layer, seq->pages, i) == (float)-ids[i]);
        }
    float expected = length ? hash_ids(ids, length) : 0;
    assert_true(seq->recurrent[0] == expected && seq->recurrent[31] == expected);
    assert_true(seq->conv[0] == expected && seq->conv[71] == expected);
    assert_true(cache_run_hidden(s)[0] == expected);
}

static cache_run *begin(prefix_cache *c, const int32_t *ids, int count, int history, int *reused) {
    prompt_shape shape = {.count = count, .history = history};
    prefix_match found;
    cache_run *r = cache_run_begin(c, ids, &shape, &found);
    *reused = found.resumed;
    assert_in_range(*reused, 0, count - 1);
    check_sequence(c, r, ids, *reused);
    return r;
}

/* One whole request: prompt of `count` ids of which `history` are history, then `answer` more. Returns what was reused. */
static int request(prefix_cache *c, const int32_t *ids, int count, int history, int answer) {
    int reused;
    cache_run *r = begin(c, ids, count, history, &reused);
    forward(c, r, ids, count - reused);
    for (int i = 0; i < answer; i++) forward(c, r, ids, 1);
    check_sequence(c, r, ids, count + answer);
    cache_run_end(r, true);
    prefix_cache_check(c);
    return reused;
}

static int32_t *make_ids(int32_t first) {
    int32_t *ids = mem_zero(CONTEXT, sizeof *ids);
    for (int i = 0; i < CONTEXT; i++) ids[i] = first + i;
    return ids;
}

/* ---- tests */

static void growing_chat(uint64_t budget) {
    prefix_cache *c = make_cache(budget, CONTEXT, 1);
    int32_t *ids = make_ids(1000);
    int history = 40, expected = 0;
    for (int turn = 0; turn < 7; turn++) {
        /* 5 ids of generation prompt, an answer of 9; the next turn renders the last 3 of the 5 differently. That 2 are
         * repeated is known from the second turn on. */
        assert_int_equal(request(c, ids, history + 5, history, 9), expected);
        for (int i = history + 2; i < CONTEXT; i++) ids[i] += 7777;
        expected = turn ? history + 2 : history;
        history += 43;
    }
    int count = history - 43 + 5;
    assert_int_equal(request(c, ids, count, count - 5, 0), expected);
    assert_int_equal(request(c, ids, count, count - 5, 0), count - 1); /* the same again: one token */
    free(ids);
    prefix_cache_destroy(c);
}

static void a_growing_chat_computes_only_what_is_new(void **state) {
    (void)state;
    growing_chat(1 << 20);
    growing_chat(0); /* the least memory: old snapshots make room for new ones */
}

/* Two conversations in turn in the least memory: both resume at the end of their history every time. */
static void two_agents_share_the_least_memory(void **state) {
    (void)state;
    prefix_cache *c = make_cache(0, CONTEXT, 1);
    int32_t *ids[2] = {make_ids(1), make_ids(5000)};
    for (int turn = 0; turn < 8; turn++)
        for (int i = 0; i < 2; i++) {
            int history = 40 + 41 * turn;
            int reused = request(c, ids[i], history + 5, history, 3);
            assert_true(reused >= history - 41 || turn == 0);
            for (int k = history + 1; k < CONTEXT; k++) ids[i][k] += 7777;
        }
    free(ids[0]);
    free(ids[1]);
    prefix_cache_destroy(c);
}

static void two_conversations_do_not_disturb_each_other(void **state) {
    (void)state;
    prefix_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1), *b = make_ids(5000);
    assert_int_equal(request(c, a, 100, 95, 3), 0);
    assert_int_equal(request(c, b, 130, 125, 3), 0);
    assert_int_equal(request(c, a, 100, 95, 3), 99);
    assert_int_equal(request(c, b, 130, 125, 3), 129);
    assert_int_equal(request(c, a, 140, 135, 3), 103); /* the answer was sent back: its end is a snapshot */
    free(a);
    free(b);
    prefix_cache_destroy(c);
}

static void a_fork_leaves_the_other_path_usable(void **state) {
    (void)state;
    prefix_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1), *b = make_ids(1);
    for (int i = 70; i < CONTEXT; i++) b[i] += 9000;
    assert_int_equal(request(c, a, 70, 65, 0), 0);
    assert_int_equal(request(c, a, 200, 195, 4), 70); /* a goes on past a snapshot at 70 */
    assert_int_equal(request(c, b, 210, 205, 4), 70); /* b leaves a in its middle, within a page */
    assert_int_equal(request(c, a, 200, 195, 4), 199);
    assert_int_equal(request(c, b, 210, 205, 4), 209);
    free(a);
    free(b);
    prefix_cache_destroy(c);
}

static void a_running_path_can_be_shared(void **state) {
    (void)state;
    prefix_cache *c = make_cache(1 << 20, CONTEXT, 2);
    int32_t *a = make_ids(1), *b = make_ids(1);
    for (int i = 100; i < CONTEXT; i++) b[i] += 9000;
    const int end = 90;
    prompt_shape shape = {.count = 300, .history = 300, .message_ends = &end, .message_end_count = 1};
    prefix_match found;
    cache_run *r = cache_run_begin(c, a, &shape, &found);
    forward(c, r, a, 95);
    assert_int_equal(request(c, b, 200, 200, 0), 90);
    forward(c, r, a, 205);
    check_sequence(c, r, a, 300);
    cache_run_end(r, true);
    assert_int_equal(request(c, b, 250, 250, 0), 200);
    free(a);
    free(b);
    prefix_cache_destroy(c);
}

/* Prompts with one long prefix and different tails share it from the third on, wherever they part. */
static void a_branch_point_is_found(void **state) {
    (void)state;
    prefix_cache *c = make_cache(1 << 20, CONTEXT, 1);
    for (int i = 0; i < 10; i++) {
        int32_t *ids = make_ids(1);
        for (int k = 130; k < CONTEXT; k++) ids[k] += 1000 * (i + 1);
        int reused = request(c, ids, 200, 195, 3);
        if (i >= 2) assert_int_equal(reused, 130);
        free(ids);
    }
    prefix_cache_destroy(c);
}

static void a_cancelled_prefill_is_kept_and_a_failed_one_is_not(void **state) {
    (void)state;
    prefix_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1);
    int reused;
    cache_run *s = begin(c, a, 300, 295, &reused);
    forward(c, s, a, 77);
    cache_run_end(s, true);
    s = begin(c, a, 300, 295, &reused);
    assert_int_equal(reused, 77);
    forward(c, s, a, 20);
    cache_run_end(s, false);
    assert_int_equal(prefix_cache_usage(c).pages_used, 0);
    assert_int_equal(prefix_cache_usage(c).snapshots_used, 0);
    assert_int_equal(request(c, a, 300, 295, 0), 0);
    free(a);
    prefix_cache_destroy(c);
}

static void lengths_around_page_edges(void **state) {
    (void)state;
    for (int length = 62; length <= 130; length++)
        for (int more = 0; more < 4; more++) {
            prefix_cache *c = make_cache(0, CONTEXT, 1);
            int32_t *a = make_ids(1);
            static const int extra[] = {1, 2, 50, 64};
            assert_int_equal(request(c, a, length, length, 0), 0);
            assert_int_equal(request(c, a, length + extra[more], length + extra[more], 2), length);
            assert_int_equal(request(c, a, length, length, 0), length - 1);
            free(a);
            prefix_cache_destroy(c);
        }
}

static void the_plan_follows_the_budget(void **state) {
    (void)state;
    model_config config = small_config();
    cache_plan least, middle, most;
    cache_plan_make(&config, DTYPE_BF16, 1000, 2, 0, &least);
    cache_plan_make(&config, DTYPE_BF16, 1000, 2, UINT64_MAX, &most);
    assert_int_equal(least.pages, 3 * 16 + 2);
    assert_int_equal(least.states, 8);
    assert_true(most.pages > 100 * least.pages && most.states > 100 * least.states);
    uint64_t budget = 10 * (least.kv_bytes + least.state_bytes);
    cache_plan_make(&config, DTYPE_BF16, 1000, 2, budget, &middle);
    uint64_t bytes = middle.kv_bytes + middle.state_bytes;
    assert_true(bytes <= budget && bytes > budget / 2);
    assert_true(middle.pages > least.pages && middle.states > least.states);
    assert_int_equal(least.kv_bytes, (uint64_t)least.pages * model_kv_page_bytes(&config, DTYPE_BF16));
}

/* ---- random traffic: forks, edits, cancellations, pressure */

static uint64_t random_state;

static int random_below(int n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (unsigned)n);
}

typedef struct agent {
    int32_t ids[CONTEXT];
    int count, history;
    cache_run *run; /* NULL: not running */
} agent;

/* A new prompt: an old one extended, edited in the middle, cut, or another agent's with a new tail. */
static void next_prompt(agent *agents, int count, agent *a) {
    const agent *source = random_below(3) ? a : &agents[random_below(count)];
    if (source != a) memcpy(a->ids, source->ids, sizeof a->ids);
    int from = random_below(4) ? source->count + random_below(20) : random_below(source->count + 1);
    if (from > CONTEXT - 80) from = random_below(60);
    for (int i = from; i < CONTEXT; i++) a->ids[i] = random_below(1 << 20);
    a->count = from + 1 + random_below(60);
    a->history = a->count - random_below(a->count < 8 ? a->count : 8);
}

static void step_agent(prefix_cache *c, agent *a) {
    sequence *seq = cache_run_sequence(a->run);
    int left = CONTEXT - seq->length, count = 1 + random_below(50);
    if (count > left) count = left;
    if (count) forward(c, a->run, a->ids, count);
    check_sequence(c, a->run, a->ids, seq->length);
    if (!count || random_below(3) == 0) {
        cache_run_end(a->run, random_below(8) != 0);
        a->run = NULL;
    }
}

static void begin_agent(prefix_cache *c, agent *agents, int count, agent *a) {
    next_prompt(agents, count, a);
    int ends[3] = {a->count / 3, a->count / 2, a->history};
    prompt_shape shape = {.count = a->count,
                          .history = a->history,
                          .message_ends = ends,
                          .message_end_count = random_below(4),
                          .all_messages = random_below(2)};
    prefix_match found;
    a->run = cache_run_begin(c, a->ids, &shape, &found);
    assert_true(found.resumed < a->count);
    check_sequence(c, a->run, a->ids, found.resumed);
}

static void random_traffic(int seed, uint64_t budget, int agent_count, int parallel) {
    print_message("seed %d\n", seed);
    random_state = (uint64_t)seed;
    prefix_cache *c = make_cache(budget, CONTEXT, parallel);
    agent *agents = mem_zero((size_t)agent_count, sizeof *agents);
    int running = 0;
    for (int step = 0; step < 2500; step++) {
        agent *a = &agents[random_below(agent_count)];
        if (a->run) {
            step_agent(c, a);
            running -= !a->run;
        } else if (running < parallel) {
            begin_agent(c, agents, agent_count, a);
            running++;
        }
        prefix_cache_check(c);
    }
    for (int i = 0; i < agent_count; i++)
        if (agents[i].run) cache_run_end(agents[i].run, true);
    cache_usage usage = prefix_cache_usage(c);
    if (usage.tree.hits < 100) fail_msg("only %d hits", (int)usage.tree.hits);
    assert_true(usage.pages_used <= usage.pages_total && usage.snapshots_used <= usage.snapshots_total);
    free(agents);
    prefix_cache_destroy(c);
}

static void random_traffic_never_mixes_states(void **state) {
    (void)state;
    for (int seed = 1; seed <= 10; seed++) random_traffic(seed, seed % 2 ? 0 : 1 << 18, 6, PARALLEL);
}

static void sixteen_agents_at_once(void **state) {
    (void)state;
    for (int seed = 21; seed <= 24; seed++) random_traffic(seed, seed % 2 ? 0 : 1 << 18, 16, 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growing_chat_computes_only_what_is_new),
        cmocka_unit_test(two_agents_share_the_least_memory),
        cmocka_unit_test(two_conversations_do_not_disturb_each_other),
        cmocka_unit_test(a_fork_leaves_the_other_path_usable),
        cmocka_unit_test(a_running_path_can_be_shared),
        cmocka_unit_test(a_branch_point_is_found),
        cmocka_unit_test(a_cancelled_prefill_is_kept_and_a_failed_one_is_not),
        cmocka_unit_test(lengths_around_page_edges),
        cmocka_unit_test(the_plan_follows_the_budget),
        cmocka_unit_test(random_traffic_never_mixes_states),
        cmocka_unit_test(sixteen_agents_at_once),
    };
    return cmocka_run_group_tests_name("prefix_cache", tests, NULL, NULL);
}
