/* Where snapshots are wanted, and what is learnt about generation prompts. */
#include "support.h"

#include "cache/snapshot_policy.h"

static void expect(const snapshot_want *got, int count, const snapshot_want *expected, int expected_count) {
    if (count != expected_count) fail_msg("%d positions, %d expected", count, expected_count);
    for (int i = 0; i < count; i++)
        if (got[i].position != expected[i].position || got[i].kind != expected[i].kind)
            fail_msg("%d: %s at %d, not %s at %d", i, snapshot_kind_name(got[i].kind), got[i].position,
                     snapshot_kind_name(expected[i].kind), expected[i].position);
}

#define AT(position, kind) \
    { position, kind, false }
#define EXPECT(policy, shape, match, ...)                                                             \
    do {                                                                                              \
        const snapshot_want expected_[] = {__VA_ARGS__};                                              \
        snapshot_want got_[SNAPSHOT_WANTS_MAX];                                                       \
        expect(got_, snapshot_policy_plan(policy, shape, match, SNAPSHOT_WANTS_MAX, got_), expected_, \
               (int)(sizeof expected_ / sizeof *expected_));                                          \
    } while (0)

static void a_first_prompt(void **state) {
    (void)state;
    const int ends[] = {300, 500};
    snapshot_policy p = {0};
    prompt_shape shape = {507, 500, ends, 2, true};
    EXPECT(&p, &shape, &(prefix_match){0}, AT(300, SNAPSHOT_SYSTEM), AT(500, SNAPSHOT_HISTORY),
           AT(506, SNAPSHOT_PROMPT_END));
    p.repeated = 4;
    EXPECT(&p, &shape, &(prefix_match){0}, AT(300, SNAPSHOT_SYSTEM), AT(500, SNAPSHOT_HISTORY),
           AT(504, SNAPSHOT_GENERATION), AT(506, SNAPSHOT_PROMPT_END));
}

static void a_later_prompt(void **state) {
    (void)state;
    const int ends[] = {300, 500, 700, 900};
    snapshot_policy p = {.repeated = 4};
    prompt_shape shape = {907, 900, ends, 4, true};
    prefix_match resumed = {.resumed = 504, .common = 510};
    EXPECT(&p, &shape, &resumed, AT(700, SNAPSHOT_MESSAGE), AT(900, SNAPSHOT_HISTORY), AT(904, SNAPSHOT_GENERATION),
           AT(906, SNAPSHOT_PROMPT_END));
    prefix_match branch = {.resumed = 300, .common = 620}; /* edited: others will leave there too */
    EXPECT(&p, &shape, &branch, AT(620, SNAPSHOT_BRANCH), AT(700, SNAPSHOT_MESSAGE), AT(900, SNAPSHOT_HISTORY),
           AT(904, SNAPSHOT_GENERATION), AT(906, SNAPSHOT_PROMPT_END));
}

static void ids_without_messages(void **state) {
    (void)state;
    snapshot_policy p = {.repeated = 4};
    EXPECT(&p, &((prompt_shape){.count = 40, .history = 40}), &(prefix_match){0}, AT(39, SNAPSHOT_PROMPT_END));
    snapshot_want none[SNAPSHOT_WANTS_MAX];
    assert_int_equal(snapshot_policy_plan(&p, &(prompt_shape){.count = 1, .history = 1}, &(prefix_match){0},
                                          SNAPSHOT_WANTS_MAX, none),
                     0);
    prefix_match all = {.resumed = 39, .common = 40};
    assert_int_equal(
        snapshot_policy_plan(&p, &(prompt_shape){.count = 40, .history = 40}, &all, SNAPSHOT_WANTS_MAX, none), 0);
}

static void intervals_are_few_and_at_fixed_places(void **state) {
    (void)state;
    for (int count = 1; count < 400000; count += 1 + count / 7)
        for (int resumed = 0; resumed < count; resumed += 1 + count / 5) {
            snapshot_want got[SNAPSHOT_WANTS_MAX];
            prefix_match m = {.resumed = resumed, .common = resumed};
            snapshot_policy p = {0};
            prompt_shape shape = {.count = count, .history = count};
            int n = snapshot_policy_plan(&p, &shape, &m, SNAPSHOT_WANTS_MAX, got), intervals = 0, last = resumed;
            for (int i = 0; i < n; i++) {
                assert_true(got[i].position > last && got[i].position < count);
                last = got[i].position;
                if (got[i].kind != SNAPSHOT_INTERVAL) continue;
                assert_int_equal(got[i].position % SNAPSHOT_INTERVAL_TOKENS, 0);
                intervals++;
            }
            assert_in_range(intervals, 0, SNAPSHOT_INTERVALS_MAX);
            if (count - resumed > 2 * SNAPSHOT_INTERVAL_TOKENS) assert_true(intervals > 0);
        }
}

static void learning(void **state) {
    (void)state;
    prefix_snapshot *some = (prefix_snapshot *)state; /* only whether there is one matters */
    const struct {
        prefix_match match;
        int count, before, after;
    } cases[] = {
        {{some, 100, SNAPSHOT_HISTORY, 1, 104, MISS_BETWEEN, some}, 200, 0, 4},
        {{some, 100, SNAPSHOT_HISTORY, 1, 102, MISS_BETWEEN, some}, 200, 4, 2}, /* another template */
        {{some, 104, SNAPSHOT_GENERATION, 1, 106, MISS_BETWEEN, some}, 200, 4, 6},
        {{some, 104, SNAPSHOT_GENERATION, 1, 104, MISS_NONE, some}, 200, 4, 4},
        {{some, 100, SNAPSHOT_HISTORY, 1, 160, MISS_BETWEEN, some}, 200, 4, 4}, /* that was no generation prompt */
        {{some, 100, SNAPSHOT_MESSAGE, 1, 104, MISS_BETWEEN, some}, 200, 4, 4},
        {{some, 100, SNAPSHOT_HISTORY, 1, 107, MISS_BETWEEN, some}, 107, 4, 4}, /* the same prompt again */
        {{NULL, 0, SNAPSHOT_SYSTEM, -1, 4, MISS_BEFORE_FIRST, NULL}, 200, 4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snapshot_policy p = {cases[i].before};
        snapshot_policy_learn(&p, &cases[i].match, cases[i].count);
        if (p.repeated != cases[i].after) fail_msg("case %zu: %d", i, p.repeated);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_prompt),
        cmocka_unit_test(a_later_prompt),
        cmocka_unit_test(ids_without_messages),
        cmocka_unit_test(intervals_are_few_and_at_fixed_places),
        cmocka_unit_test(learning),
    };
    return cmocka_run_group_tests_name("snapshot_policy", tests, NULL, NULL);
}
