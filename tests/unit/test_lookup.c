/* Context lookup against a reference that compares every place, through appends, copies, roll-backs and forks; texts made
 * to be awkward; the memory bound. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/lookup.h"
#include "support.h"

enum { TOKENS_MAX = 4096, TAIL_MAX = 12, AHEAD = 20 };

static uint64_t random_state;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

typedef struct text {
    int32_t tokens[TOKENS_MAX + TAIL_MAX + AHEAD];
    int32_t count;
} text;

/* Length of the common ending of all[0..place] and all[0..last]. */
static int common_ending(const int32_t *all, int32_t place, int32_t last) {
    int length = 0;
    while (length < LOOKUP_MATCH_MAX && length <= place && all[place - length] == all[last - length]) length++;
    return length;
}

/* The rule of lookup.h, looking at the `places` most recent ones that share the last 4 (or 2, 1) tokens. */
static lookup_match reference(const int32_t *all, int32_t count, int32_t last, int places) {
    lookup_match best = {.end = -1};
    const int runs[] = {4, 2, 1};
    for (int k = 0; k < 3 && !best.length; k++) {
        int seen = 0;
        for (int32_t place = count - 1; place >= 0 && seen < places; place--) {
            int length = place == last ? 0 : common_ending(all, place, last);
            if (length < runs[k]) continue;
            seen++;
            if (length > best.length) best = (lookup_match){place, length};
        }
    }
    return best;
}

static bool same_match(lookup_match a, lookup_match b) { return a.end == b.end && a.length == b.length; }

/* Runs that fall into one bucket take up places, so the reference may look at fewer than LOOKUP_PLACES_MAX. */
static void check_find(const lookup *l, text *t, const int32_t *tail, int tail_count, const char *what) {
    lookup_match found;
    bool any = lookup_find(l, tail, tail_count, &found);
    for (int i = 0; i < tail_count; i++) t->tokens[t->count + i] = tail[i];
    int32_t last = t->count + tail_count - 1;
    bool agrees = false;
    for (int places = LOOKUP_PLACES_MAX; places >= LOOKUP_PLACES_MAX / 2 && !agrees; places--)
        agrees = same_match(found, reference(t->tokens, t->count, last, places));
    if (!agrees || any != (found.length > 0))
        fail_msg("%s: %d tokens, tail %d: found %d x %d", what, (int)t->count, tail_count, (int)found.end,
                 found.length);
    for (int i = 0; any && i < AHEAD; i++) {
        t->tokens[last + 1 + i] = t->tokens[found.end + 1 + i];
        assert_int_equal(lookup_token(l, t->tokens + t->count, &found, i), t->tokens[last + 1 + i]);
    }
}

static void check_tails(const lookup *l, text *t, uint32_t alphabet, const char *what) {
    int32_t tail[TAIL_MAX] = {0};
    for (int round = 0; round < 4; round++) {
        int count = round ? (int)random_below(TAIL_MAX) : 0;
        int32_t from = t->count ? (int32_t)random_below((uint32_t)t->count) : 0;
        for (int i = 0; i < count; i++)
            tail[i] = round > 1 && from + i < t->count ? t->tokens[from + i] : (int32_t)random_below(alphabet);
        check_find(l, t, tail, count, what);
    }
}

static void append(lookup *l, text *t, const int32_t *tokens, int32_t count) {
    memmove(t->tokens + t->count, tokens, sizeof *tokens * (size_t)count);
    t->count += count;
    lookup_append(l, t->tokens + t->count - count, count);
}

/* Random tokens, or a repetition of an earlier part. */
static void append_some(lookup *l, text *t, uint32_t alphabet) {
    int32_t count = 1 + (int32_t)random_below(60), piece[60];
    if (count > TOKENS_MAX - t->count) count = TOKENS_MAX - t->count;
    int32_t from = t->count && random_below(2) ? (int32_t)random_below((uint32_t)t->count) : -1;
    for (int32_t i = 0; i < count; i++)
        piece[i] = from >= 0 && from + i < t->count ? t->tokens[from + i] : (int32_t)random_below(alphabet);
    append(l, t, piece, count);
}

/* What was rolled back must leave no trace: the same answers as of a lookup that never saw it. */
static void check_fresh(const lookup *l, const text *t) {
    lookup *fresh = lookup_create(TOKENS_MAX);
    lookup_append(fresh, t->tokens, t->count);
    for (int32_t i = 0; i < 20; i++) {
        lookup_match a, b;
        int32_t tail[3] = {(int32_t)random_below(4), (int32_t)random_below(4), (int32_t)random_below(4)};
        int count = i % 4;
        assert_int_equal(lookup_find(l, tail, count, &a), lookup_find(fresh, tail, count, &b));
        assert_true(same_match(a, b));
    }
    lookup_destroy(fresh);
}

static void random_histories(void **state) {
    (void)state;
    const uint32_t alphabets[] = {1, 2, 3, 5, 40, 248077};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_state = seed;
        char what[64];
        snprintf(what, sizeof what, "seed %d", (int)seed);
        uint32_t alphabet = alphabets[seed % 6];
        lookup *l = lookup_create(TOKENS_MAX), *other = lookup_create(TOKENS_MAX);
        text *t = calloc(1, sizeof *t);
        for (int step = 0; step < 40; step++) {
            uint32_t action = random_below(8);
            if (action < 5) {
                append_some(l, t, alphabet);
            } else if (action == 5) {
                t->count = (int32_t)random_below((uint32_t)t->count + 1);
                lookup_truncate(l, t->count);
            } else if (action == 6) { /* a new prompt: an old beginning, another end */
                int32_t kept = (int32_t)random_below((uint32_t)t->count + 1);
                int32_t unseen = 1000000 * (step + 1);
                for (int32_t i = kept; i < t->count; i++) t->tokens[i] = (int32_t)random_below(alphabet) + unseen;
                assert_int_equal(lookup_sync(l, t->tokens, t->count), kept);
            } else { /* a fork that goes its own way must not disturb the other one */
                lookup_copy(other, l);
                text *aside = calloc(1, sizeof *aside);
                *aside = *t;
                append_some(other, aside, alphabet);
                check_tails(other, aside, alphabet, what);
                lookup_truncate(other, aside->count / 2);
                free(aside);
            }
            assert_int_equal(lookup_count(l), t->count);
            check_tails(l, t, alphabet, what);
        }
        check_fresh(l, t);
        free(t);
        lookup_destroy(l);
        lookup_destroy(other);
    }
}

static void no_repetition_finds_nothing(void **state) {
    (void)state;
    lookup *l = lookup_create(TOKENS_MAX);
    lookup_match m;
    assert_false(lookup_find(l, NULL, 0, &m)); /* empty */
    for (int32_t i = 0; i < TOKENS_MAX; i++) {
        lookup_append(l, &i, 1);
        assert_false(lookup_find(l, NULL, 0, &m));
        assert_int_equal(m.length, 0);
    }
    const int32_t unseen = TOKENS_MAX, seen = 7;
    assert_false(lookup_find(l, &unseen, 1, &m));
    assert_true(lookup_find(l, &seen, 1, &m));
    assert_int_equal(m.end, 7);
    assert_int_equal(m.length, 1);
    assert_int_equal(lookup_token(l, &seen, &m, 0), 8);
    lookup_destroy(l);
}

static void periods_go_on_for_ever(void **state) {
    (void)state;
    for (int32_t period = 1; period <= 5; period++) {
        lookup *l = lookup_create(TOKENS_MAX);
        for (int32_t i = 0; i < TOKENS_MAX; i++) {
            int32_t token = i % period;
            lookup_append(l, &token, 1);
        }
        lookup_match m;
        int32_t drafted[100];
        assert_true(lookup_find(l, NULL, 0, &m));
        assert_int_equal(m.length, LOOKUP_MATCH_MAX);
        assert_int_equal(m.end, TOKENS_MAX - 1 - period);
        for (int i = 0; i < 100; i++) {
            drafted[i] = lookup_token(l, drafted, &m, i);
            assert_int_equal(drafted[i], (TOKENS_MAX + i) % period);
        }
        lookup_destroy(l);
    }
}

static void longest_wins_then_most_recent(void **state) {
    (void)state;
    const struct {
        const char *text, *tail;
        char next;
        int length;
    } cases[] = {
        {"abcdX  bcdY  abcd", "", 'X', 4},  /* longer, though older */
        {"abcdX  abcdY  abcd", "", 'Y', 6}, /* equal words: the two blanks before them decide */
        {"abcdX-abcdY+abcd", "", 'Y', 4},   /* equal: the recent one */
        {"abcdX  cdY  ", "abcd", 'X', 4},   /* the tail counts as the end */
        {"abcdX  c", "d", 'X', 2},          /* the match spans the end and the tail */
        {"xyZ--", "y", 'Z', 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lookup *l = lookup_create(64);
        int32_t tail[8];
        int count = 0;
        for (const char *c = cases[i].text; *c; c++) {
            int32_t token = *c;
            lookup_append(l, &token, 1);
        }
        for (const char *c = cases[i].tail; *c; c++) tail[count++] = *c;
        lookup_match m;
        lookup_find(l, tail, count, &m);
        assert_int_equal(m.length, cases[i].length);
        assert_int_equal(lookup_token(l, tail, &m, 0), cases[i].next);
        lookup_destroy(l);
    }
}

static void memory_is_bounded(void **state) {
    (void)state;
    assert_true(lookup_bytes(32768) <= 28 * 32768 + 256);
    for (int32_t n = 64; n < 400000; n = n * 5 / 3) assert_true(lookup_bytes(n) <= 40 * (size_t)n + 256);
    lookup *l = lookup_create(100000);
    struct mallinfo2 before = mallinfo2();
    for (int32_t i = 0; i < 100000; i++) {
        int32_t token = i * 7919 % 1000;
        lookup_match m;
        lookup_append(l, &token, 1);
        lookup_find(l, &token, 1, &m);
    }
    lookup_truncate(l, 0);
    struct mallinfo2 after = mallinfo2();
    assert_int_equal(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd);
    lookup_destroy(l);
    lookup_destroy(NULL);
}

static void acceptance_grows_with_the_match(void **state) {
    (void)state;
    assert_true(lookup_acceptance(0) == 0 && lookup_acceptance(-1) == 0);
    for (int i = 0; i < 100; i++) {
        assert_true(lookup_acceptance(i) <= lookup_acceptance(i + 1));
        assert_true(lookup_acceptance(i + 1) > 0 && lookup_acceptance(i + 1) < 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories),       cmocka_unit_test(no_repetition_finds_nothing),
        cmocka_unit_test(periods_go_on_for_ever), cmocka_unit_test(longest_wins_then_most_recent),
        cmocka_unit_test(memory_is_bounded),      cmocka_unit_test(acceptance_grows_with_the_match),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}
