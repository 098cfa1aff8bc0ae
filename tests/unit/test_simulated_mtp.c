/* The simulated MTP head: its lists, its rates by depth, the same luck in every run, wrong tokens that are wrong. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/simulated_mtp.h"
#include "support.h"

static void lists(void **state) {
    (void)state;
    const struct {
        const char *top1, *top2, *message; /* NULL: accepted */
    } cases[] = {
        {".87,.80,.75", ".93,.88,.84", NULL},
        {"1", "1", NULL},
        {"0", "0.5", NULL},
        {"8e-1,0.5", "1", NULL},
        {".1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1", "1", NULL},
        {".1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1,.1", "1", "acceptance: more than 16 values"},
        {"", "1", "acceptance: value 1 of '' must be a number from 0 to 1"},
        {".8,", "1", "acceptance: value 2 of '.8,' must be a number from 0 to 1"},
        {",.8", "1", "acceptance: value 1 of ',.8' must be a number from 0 to 1"},
        {".8 .7", "1", "acceptance: value 1 of '.8 .7' must be a number from 0 to 1"},
        {"1.5", "1", "acceptance: value 1 of '1.5' must be a number from 0 to 1"},
        {"-.5", "1", "acceptance: value 1 of '-.5' must be a number from 0 to 1"},
        {"-0.5", "1", "acceptance: value 1 of '-0.5' must be a number from 0 to 1"},
        {"nan", "1", "acceptance: value 1 of 'nan' must be a number from 0 to 1"},
        {"\"1\"", "1", "acceptance: value 1 of '\"1\"' must be a number from 0 to 1"},
        {".8", ".9,x", "top-2 acceptance: value 2 of '.9,x' must be a number from 0 to 1"},
        {".8,.7", ".9,.6", "top-2 acceptance at depth 2 is 0.6, less than the best one's 0.7"},
        {".8,.7,.6", ".65", "top-2 acceptance at depth 1 is 0.65, less than the best one's 0.8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulated_mtp m;
        error err;
        err_code code = simulated_mtp_parse(cases[i].top1, cases[i].top2, &m, &err);
        assert_int_equal(code, cases[i].message ? ERR_INVALID : ERR_OK);
        if (cases[i].message) assert_string_equal(err.message, cases[i].message);
    }
}

static simulated_mtp usual(void) {
    simulated_mtp m;
    assert_int_equal(simulated_mtp_parse(".87,.80,.75,.72,.70", ".93,.88,.84,.82,.80", &m, NULL), ERR_OK);
    return m;
}

static void the_last_value_repeats(void **state) {
    (void)state;
    simulated_mtp m = usual();
    const double best[] = {.87, .80, .75, .72, .70, .70, .70};
    for (int i = 0; i < 7; i++) assert_true(simulated_mtp_acceptance(&m, i + 1, 0) == best[i]);
    assert_true(simulated_mtp_acceptance(&m, 40, 0) == .70);
    assert_true(fabs(simulated_mtp_acceptance(&m, 1, 1) - .06) < 1e-12);
    assert_true(fabs(simulated_mtp_acceptance(&m, 9, 1) - .10) < 1e-12);
    assert_true(simulated_mtp_acceptance(&m, 1, 2) == 0);
}

/* Standard error of a rate over 100,000 draws is at most 0.0016. */
static void rates(void **state) {
    (void)state;
    simulated_mtp m = usual();
    enum { DRAWS = 100000 };
    for (int depth = 1; depth <= 7; depth++) {
        int best = 0, either = 0;
        for (int i = 0; i < DRAWS; i++) {
            simulated_place place = {.turn = (uint64_t)i / 100, .position = i % 100, .depth = depth, .target = 7};
            int32_t out[2];
            simulated_mtp_propose(&m, &place, NULL, 0, out);
            best += out[0] == 7;
            either += out[0] == 7 || out[1] == 7;
        }
        assert_true(fabs((double)best / DRAWS - m.top1[depth - 1]) < 0.007);
        assert_true(fabs((double)either / DRAWS - m.top2[depth - 1]) < 0.007);
    }
}

/* Right or wrong depends on turn, position and depth alone; both proposals differ; at most one is right; a path that is
 * wrong already never gets a right token. */
static void luck_and_wrong_tokens(void **state) {
    (void)state;
    simulated_mtp m = usual();
    int32_t contexts[4][64];
    for (int i = 0; i < 64; i++) {
        contexts[0][i] = 7;
        contexts[1][i] = i % 2 ? 7 : 3;
        contexts[2][i] = i % 5;
        contexts[3][i] = i;
    }
    for (int i = 0; i < 4000; i++) {
        simulated_place place = {
            .turn = (uint64_t)i % 13, .position = i, .depth = 1 + i % 9, .parent = i % 8, .target = i % 3 ? 7 : 3};
        int32_t first[2] = {-1, -1};
        for (int c = 0; c < 4; c++)
            for (int32_t count = 0; count <= 64; count += c < 2 ? 1 : 32) {
                int32_t out[2], again[2];
                simulated_mtp_propose(&m, &place, contexts[c], count, out);
                simulated_mtp_propose(&m, &place, contexts[c], count, again);
                assert_memory_equal(out, again, sizeof out);
                assert_true(out[0] >= 0 && out[1] >= 0 && out[0] != out[1]);
                if (first[0] < 0) memcpy(first, out, sizeof out);
                for (int k = 0; k < 2; k++) assert_int_equal(out[k] == place.target, first[k] == place.target);
            }
        place.target = -1;
        int32_t out[2];
        simulated_mtp_propose(&m, &place, contexts[2], 64, out);
        assert_true(out[0] >= 0 && out[1] >= 0 && out[0] != out[1]);
    }
}

static void wrong_tokens_follow_the_parent(void **state) {
    (void)state;
    simulated_mtp never;
    assert_int_equal(simulated_mtp_parse("0", "0", &never, NULL), ERR_OK);
    const int32_t context[] = {1, 2, 9, 1, 3, 9, 1, 4, 9, 1};
    bool seen[5] = {0};
    for (int i = 0; i < 200; i++) {
        simulated_place place = {.position = i, .depth = 1, .parent = 1, .target = 3};
        int32_t out[2];
        simulated_mtp_propose(&never, &place, context, 10, out);
        for (int k = 0; k < 2; k++) {
            assert_true(out[k] == 2 || out[k] == 4);
            seen[out[k]] = true;
        }
        assert_true(seen[out[0]] && out[0] != out[1]);
    }
    assert_true(seen[2] && seen[4]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(the_last_value_repeats),
        cmocka_unit_test(rates),
        cmocka_unit_test(luck_and_wrong_tokens),
        cmocka_unit_test(wrong_tokens_follow_the_parent),
    };
    return cmocka_run_group_tests_name("simulated_mtp", tests, NULL, NULL);
}
