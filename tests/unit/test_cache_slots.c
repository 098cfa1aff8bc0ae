/* Conversation slots without a model: a stand-in writes, for every position, what can be checked later (the id into each
 * layer's K and V rows, a running hash of all ids into the states), so that a wrong page, a wrong snapshot or a page
 * written after it was shared shows at the next reuse. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cache/page_pool.h"
#include "cache/slots.h"
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

static slot_cache *make_cache(uint64_t budget, int context, int parallel) {
    model_config config = small_config();
    slot_plan plan;
    slot_plan_make(&config, DTYPE_F32, context, parallel, budget, &plan);
    slot_cache *c;
    assert_int_equal(slot_cache_create(&config, DTYPE_F32, &plan, &c, NULL), ERR_OK);
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

/* Runs `count` ids from the sequence's end on, with snapshots wanted after each of `captures`. */
static void forward(slot_cache *c, slot *s, const int32_t *ids, int count, const int *captures, int capture_count) {
    const kv_pool *kv = slot_cache_kv(c);
    sequence *seq = slot_sequence(s);
    slot_reserve(s, count);
    capture made[CAPTURES_MAX];
    int made_count = 0;
    for (int i = 0; i < capture_count; i++) made_count += slot_capture(s, captures[i], &made[made_count]);
    int before = seq->length;
    for (int i = before; i < before + count; i++)
        for (int layer = 0; layer < kv->layers; layer++) {
            *kv_row(kv, kv->k, layer, seq->pages, i) = (float)ids[i];
            *kv_row(kv, kv->v, layer, seq->pages, i) = (float)-ids[i];
        }
    for (int i = 0; i < made_count; i++)
        write_states(made[i].recurrent, made[i].conv, made[i].hidden, hash_ids(ids, before + made[i].after));
    seq->length += count;
    write_states(seq->recurrent, seq->conv, slot_hidden(s), hash_ids(ids, seq->length));
    slot_commit(s, ids + before, count);
}

static void check_sequence(slot_cache *c, slot *s, const int32_t *ids, int length) {
    const kv_pool *kv = slot_cache_kv(c);
    const sequence *seq = slot_sequence(s);
    assert_int_equal(seq->length, length);
    for (int i = 0; i < length; i++)
        for (int layer = 0; layer < kv->layers; layer++) {
            assert_true(*kv_row(kv, kv->k, layer, seq->pages, i) == (float)ids[i]);
            assert_true(*kv_row(kv, kv->v, layer, seq->pages, i) == (float)-ids[i]);
        }
    float expected = length ? hash_ids(ids, length) : 0;
    assert_true(seq->recurrent[0] == expected && seq->recurrent[31] == expected);
    assert_true(seq->conv[0] == expected && seq->conv[71] == expected);
    assert_true(slot_hidden(s)[0] == expected);
}

/* One whole request: prompt of `count` ids of which `history` are history, then `answer` more. Returns what was reused. */
static int request(slot_cache *c, const int32_t *ids, int count, int history, int answer) {
    int reused;
    slot *s = slot_acquire(c, ids, count, history, &reused);
    assert_in_range(reused, 0, count - 1);
    check_sequence(c, s, ids, reused);
    int captures[2], n = 0;
    if (history - reused > 0 && history < count - 1) captures[n++] = history - reused;
    if (count - 1 - reused > 0) captures[n++] = count - 1 - reused;
    forward(c, s, ids, count - reused, captures, n);
    for (int i = 0; i < answer; i++) forward(c, s, ids, 1, NULL, 0);
    check_sequence(c, s, ids, count + answer);
    slot_release(s, true);
    return reused;
}

static int32_t *make_ids(int32_t first) {
    int32_t *ids = mem_zero(CONTEXT, sizeof *ids);
    for (int i = 0; i < CONTEXT; i++) ids[i] = first + i;
    return ids;
}

/* ---- tests */

static void growing_chat(uint64_t budget) {
    slot_cache *c = make_cache(budget, CONTEXT, 1);
    int32_t *ids = make_ids(1000);
    int history = 40, expected = 0;
    for (int turn = 0; turn < 7; turn++) {
        /* 5 ids of generation prompt, an answer of 9; the next turn renders the last 3 of the 5 differently. */
        assert_int_equal(request(c, ids, history + 5, history, 9), expected);
        for (int i = history + 2; i < CONTEXT; i++) ids[i] += 7777;
        expected = history;
        history += 43;
    }
    int count = history - 43 + 5;
    assert_int_equal(request(c, ids, count, count - 5, 0), expected - 43 + 43);
    assert_int_equal(request(c, ids, count, count - 5, 0), count - 1); /* the same again: one token */
    free(ids);
    slot_cache_destroy(c);
}

static void a_growing_chat_computes_only_what_is_new(void **state) {
    (void)state;
    growing_chat(1 << 20);
    growing_chat(0); /* the least memory: old snapshots make room for new ones */
}

/* Two conversations in turn in the least memory: both resume at the end of their history every time. */
static void two_agents_share_the_least_memory(void **state) {
    (void)state;
    slot_cache *c = make_cache(0, CONTEXT, 1);
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
    slot_cache_destroy(c);
}

static void two_conversations_do_not_disturb_each_other(void **state) {
    (void)state;
    slot_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1), *b = make_ids(5000);
    assert_int_equal(request(c, a, 100, 95, 3), 0);
    assert_int_equal(request(c, b, 130, 125, 3), 0);
    assert_int_equal(request(c, a, 100, 95, 3), 99);
    assert_int_equal(request(c, b, 130, 125, 3), 129);
    assert_int_equal(request(c, a, 140, 135, 3), 103); /* the answer was sent back: its end is a snapshot */
    free(a);
    free(b);
    slot_cache_destroy(c);
}

static void a_fork_leaves_the_other_path_usable(void **state) {
    (void)state;
    slot_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1), *b = make_ids(1);
    for (int i = 70; i < CONTEXT; i++) b[i] += 9000;
    assert_int_equal(request(c, a, 70, 65, 0), 0);
    assert_int_equal(request(c, a, 200, 195, 4), 70); /* a goes on past a snapshot at 70 */
    assert_int_equal(request(c, b, 210, 205, 4), 70); /* b leaves a in its middle, within a page */
    assert_int_equal(request(c, a, 200, 195, 4), 199);
    assert_int_equal(request(c, b, 210, 205, 4), 209);
    free(a);
    free(b);
    slot_cache_destroy(c);
}

static void a_running_path_can_be_shared(void **state) {
    (void)state;
    slot_cache *c = make_cache(1 << 20, CONTEXT, 2);
    int32_t *a = make_ids(1), *b = make_ids(1);
    for (int i = 100; i < CONTEXT; i++) b[i] += 9000;
    int reused, capture_at = 90;
    slot *s = slot_acquire(c, a, 300, 300, &reused);
    forward(c, s, a, 95, &capture_at, 1);
    assert_int_equal(request(c, b, 200, 200, 0), 90);
    forward(c, s, a, 205, NULL, 0);
    check_sequence(c, s, a, 300);
    slot_release(s, true);
    assert_int_equal(request(c, b, 250, 250, 0), 200);
    free(a);
    free(b);
    slot_cache_destroy(c);
}

static void a_cancelled_prefill_is_kept_and_a_failed_one_is_not(void **state) {
    (void)state;
    slot_cache *c = make_cache(1 << 20, CONTEXT, 1);
    int32_t *a = make_ids(1);
    int reused;
    slot *s = slot_acquire(c, a, 300, 295, &reused);
    forward(c, s, a, 77, NULL, 0);
    slot_release(s, true);
    s = slot_acquire(c, a, 300, 295, &reused);
    assert_int_equal(reused, 77);
    forward(c, s, a, 20, NULL, 0);
    slot_release(s, false);
    assert_int_equal(slot_cache_usage(c).pages_used, 0);
    assert_int_equal(slot_cache_usage(c).snapshots_used, 0);
    assert_int_equal(request(c, a, 300, 295, 0), 0);
    free(a);
    slot_cache_destroy(c);
}

static void lengths_around_page_edges(void **state) {
    (void)state;
    for (int length = 62; length <= 130; length++)
        for (int more = 0; more < 4; more++) {
            slot_cache *c = make_cache(0, CONTEXT, 1);
            int32_t *a = make_ids(1);
            static const int extra[] = {1, 2, 50, 64};
            assert_int_equal(request(c, a, length, length, 0), 0);
            assert_int_equal(request(c, a, length + extra[more], length + extra[more], 2), length);
            assert_int_equal(request(c, a, length, length, 0), length - 1);
            free(a);
            slot_cache_destroy(c);
        }
}

static void the_plan_follows_the_budget(void **state) {
    (void)state;
    model_config config = small_config();
    slot_plan least, most, middle;
    slot_plan_make(&config, DTYPE_BF16, 1000, 2, 0, &least);
    slot_plan_make(&config, DTYPE_BF16, 1000, 2, UINT64_MAX, &most);
    assert_int_equal(least.pages, 3 * 16);
    assert_int_equal(most.pages, 10 * 16);
    uint64_t budget = (least.kv_bytes + least.state_bytes + most.kv_bytes + most.state_bytes) / 2;
    slot_plan_make(&config, DTYPE_BF16, 1000, 2, budget, &middle);
    assert_true(middle.kv_bytes + middle.state_bytes <= budget);
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
    slot *slot; /* NULL: not running */
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

static void step_agent(slot_cache *c, agent *a) {
    sequence *seq = slot_sequence(a->slot);
    int left = CONTEXT - seq->length, count = 1 + random_below(50), captures[2], n = 0;
    if (count > left) count = left;
    if (count > 2 && random_below(2)) captures[n++] = 1 + random_below(count / 2);
    if (count > 2 && random_below(2)) captures[n++] = count;
    if (count) forward(c, a->slot, a->ids, count, captures, n);
    check_sequence(c, a->slot, a->ids, seq->length);
    if (!count || random_below(3) == 0) {
        slot_release(a->slot, random_below(8) != 0);
        a->slot = NULL;
    }
}

static void random_traffic_never_mixes_states(void **state) {
    (void)state;
    enum { AGENTS = 6 };
    for (int seed = 1; seed <= 12; seed++) {
        random_state = (uint64_t)seed;
        slot_cache *c = make_cache(seed % 2 ? 0 : 1 << 18, CONTEXT, PARALLEL);
        agent *agents = mem_zero(AGENTS, sizeof *agents);
        int running = 0, hits = 0;
        for (int step = 0; step < 2500; step++) {
            agent *a = &agents[random_below(AGENTS)];
            if (a->slot) {
                step_agent(c, a);
                running -= !a->slot;
            } else if (running < PARALLEL) {
                int reused;
                next_prompt(agents, AGENTS, a);
                a->slot = slot_acquire(c, a->ids, a->count, a->history, &reused);
                assert_true(reused < a->count);
                check_sequence(c, a->slot, a->ids, reused);
                running++;
                hits += reused > 0;
            }
        }
        for (int i = 0; i < AGENTS; i++)
            if (agents[i].slot) slot_release(agents[i].slot, true);
        if (hits < 100) fail_msg("seed %d: only %d hits", seed, hits);
        slot_usage usage = slot_cache_usage(c);
        assert_true(usage.pages_used <= usage.pages_total);
        free(agents);
        slot_cache_destroy(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growing_chat_computes_only_what_is_new),
        cmocka_unit_test(two_agents_share_the_least_memory),
        cmocka_unit_test(two_conversations_do_not_disturb_each_other),
        cmocka_unit_test(a_fork_leaves_the_other_path_usable),
        cmocka_unit_test(a_running_path_can_be_shared),
        cmocka_unit_test(a_cancelled_prefill_is_kept_and_a_failed_one_is_not),
        cmocka_unit_test(lengths_around_page_edges),
        cmocka_unit_test(the_plan_follows_the_budget),
        cmocka_unit_test(random_traffic_never_mixes_states),
    };
    return cmocka_run_group_tests_name("cache_slots", tests, NULL, NULL);
}
