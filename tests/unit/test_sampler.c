/* The sampler against a slow reference that sorts, its distribution, and what it must refuse. */
#include <math.h>
#include <stdlib.h>

#include "decode/sampler.h"
#include "support.h"

static uint64_t random_state = 1;

static uint64_t random_next(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static int32_t choose(int vocabulary, sampler_params params, const float *logits, int64_t position) {
    sampler *s = sampler_create(vocabulary);
    int32_t id = -1;
    error err;
    assert_int_equal(sampler_choose(s, &params, logits, position, &id, &err), ERR_OK);
    sampler_destroy(s);
    return id;
}

static const sampler_params GREEDY = {.temperature = 0, .top_p = 1};

static void greedy_takes_the_lower_id_of_equal_logits(void **state) {
    (void)state;
    const float logits[] = {1, 3, -2, 3, 9};
    assert_int_equal(choose(4, GREEDY, logits, 0), 1); /* the 9 lies past the vocabulary */
    assert_int_equal(choose(5, GREEDY, logits, 0), 4);
    const float zeros[] = {-0.0f, 0.0f};
    assert_int_equal(choose(2, GREEDY, zeros, 0), 0);
    sampler_params cold = {.temperature = 1e-320, .top_p = 1}; /* 1 / T overflows */
    assert_int_equal(choose(4, cold, logits, 0), 1);
}

static void non_finite_logits_are_refused(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    sampler *s = sampler_create(4);
    for (int i = 0; i < 3; i++)
        for (int at = 0; at < 5; at++) {
            float logits[5] = {1, 2, 3, 4, 5};
            logits[at] = bad[i];
            sampler_params hot = {.temperature = 1, .top_p = 0.9, .top_k = 2};
            int32_t id;
            error err;
            err_code expected = at < 4 ? ERR_INTERNAL : ERR_OK; /* padding is not looked at */
            assert_int_equal(sampler_choose(s, &GREEDY, logits, 0, &id, &err), expected);
            assert_int_equal(sampler_choose(s, &hot, logits, 0, &id, &err), expected);
        }
    sampler_destroy(s);
}

/* ---- reference: sort everything, filter as sampler.h says, largest logit / T + noise */

static const float *sort_logits;

static int by_logit(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (sort_logits[i] != sort_logits[j]) return sort_logits[i] > sort_logits[j] ? -1 : 1;
    return i - j;
}

static int32_t reference(int n, const sampler_params *p, const float *logits, int64_t position) {
    int32_t order[512];
    for (int i = 0; i < n; i++) order[i] = i;
    sort_logits = logits;
    qsort(order, (size_t)n, sizeof *order, by_logit);
    int kept = p->top_k > 0 && p->top_k < n ? p->top_k : n;
    double total = 0, sum = 0;
    for (int i = 0; i < kept; i++) total += exp((logits[order[i]] - logits[order[0]]) / p->temperature);
    for (int i = 0; i < kept && p->top_p < 1; i++) {
        sum += exp((logits[order[i]] - logits[order[0]]) / p->temperature);
        if (sum >= p->top_p * total) kept = i + 1;
    }
    int32_t best = -1;
    double best_value = 0;
    for (int i = 0; i < kept; i++) {
        if (exp((logits[order[i]] - logits[order[0]]) / p->temperature) < p->min_p) continue;
        double value = logits[order[i]] / p->temperature + sampler_noise(p->seed, position, order[i]);
        if (best < 0 || value > best_value) best = order[i], best_value = value;
    }
    return best;
}

static void filters_agree_with_sorting(void **state) {
    (void)state;
    static const double temperatures[] = {0.2, 1, 3}, ps[] = {0, 0.013, 0.5, 0.913, 1}, mins[] = {0, 0.0511, 1};
    static const int ks[] = {0, 1, 2, 20, 299, 1000};
    static const int sizes[] = {1, 2, 17, 300};
    float logits[512];
    for (int round = 0; round < 2000; round++) {
        int n = sizes[random_next() % 4];
        int levels = round % 2 ? 6 : 100000; /* every other row is full of ties */
        for (int i = 0; i < n; i++) logits[i] = (float)(random_next() % (unsigned)levels) * (8.0f / (float)levels) - 4;
        sampler_params p = {.temperature = temperatures[random_next() % 3],
                            .top_p = ps[random_next() % 5],
                            .min_p = mins[random_next() % 3],
                            .top_k = ks[random_next() % 6],
                            .seed = random_next()};
        assert_int_equal(choose(n, p, logits, round), reference(n, &p, logits, round));
    }
}

static void a_flat_row_is_filtered_exactly(void **state) {
    (void)state;
    enum { N = 1000 };
    float logits[N];
    for (int i = 0; i < N; i++) logits[i] = 0;
    /* Half of equal tokens: exactly the lower half by id. */
    sampler_params p = {.temperature = 1, .top_p = 0.5};
    bool upper = false;
    for (int position = 0; position < 400; position++) {
        int32_t id = choose(N, p, logits, position);
        assert_true(id < N / 2);
        upper |= id > N / 2 - N / 10;
    }
    assert_true(upper);
}

static void draws_follow_the_softmax(void **state) {
    (void)state;
    enum { N = 8, DRAWS = 40000 };
    static const float logits[N] = {0.3f, -1.2f, 2.0f, 0.0f, 1.1f, -3.0f, 0.9f, 1.9f};
    sampler_params p = {.temperature = 0.8, .top_p = 1, .seed = 12345};
    int counts[N] = {0};
    sampler *s = sampler_create(N);
    for (int i = 0; i < DRAWS; i++) {
        int32_t id;
        assert_int_equal(sampler_choose(s, &p, logits, i, &id, NULL), ERR_OK);
        counts[id]++;
    }
    sampler_destroy(s);
    double total = 0, chi = 0;
    for (int i = 0; i < N; i++) total += exp(logits[i] / 0.8);
    for (int i = 0; i < N; i++) {
        double expected = DRAWS * exp(logits[i] / 0.8) / total;
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    assert_true(chi < 24.3); /* 7 degrees of freedom, p = 0.001; fixed seed, so it does not flicker */
}

static void noise_is_gumbel(void **state) {
    (void)state;
    enum { N = 200000 };
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double g = sampler_noise(7, i / 500, i % 500);
        assert_true(isfinite(g));
        sum += g;
        squares += g * g;
    }
    double mean = sum / N, variance = squares / N - mean * mean;
    assert_true(fabs(mean - 0.5772156649) < 0.012);
    assert_true(fabs(variance - 1.6449340668) < 0.04);
    /* Neighbouring keys are unrelated. */
    assert_true(sampler_noise(7, 1, 2) != sampler_noise(8, 1, 2));
    assert_true(sampler_noise(7, 1, 2) != sampler_noise(7, 2, 2));
    assert_true(sampler_noise(7, 1, 2) != sampler_noise(7, 1, 3));
    assert_true(sampler_noise(7, 1, 2) == sampler_noise(7, 1, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_lower_id_of_equal_logits),
        cmocka_unit_test(non_finite_logits_are_refused),
        cmocka_unit_test(filters_agree_with_sorting),
        cmocka_unit_test(a_flat_row_is_filtered_exactly),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(noise_is_gumbel),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
