/* Percentiles by numpy's `lower` rule, deviation, early-stopping estimates against known floors, JSON form. */
#include "bench/perf_report.h"
#include "support.h"

#include <math.h>

static series ramp(size_t count) {
    series s = {0};
    for (size_t i = 0; i < count; i++) series_push(&s, (double)((i * 7919) % count + 1)); /* 1..count in some order */
    series_sort(&s);
    return s;
}

static const struct {
    size_t count;
    double p, value;
} cases[] = {
    {1, 99.9, 1},       {1, 1, 1},         {2, 50, 1},     {3, 50, 2},  {4, 50, 2},      {10, 90, 9},
    {10, 99, 9},        {11, 90, 10},      {101, 99, 100}, {101, 1, 2}, {1007, 50, 504}, {1007, 99, 996},
    {1007, 99.9, 1005}, {1007, 100, 1007}, {100, 75, 75},  {100, 0, 1},
};

static void test_percentiles(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        series s = ramp(cases[i].count);
        assert_true(series_percentile(&s, cases[i].p) == cases[i].value);
        series_deinit(&s);
    }
    series empty = {0};
    assert_true(isnan(series_percentile(&empty, 50)) && isnan(series_mean(&empty)));
    assert_true(series_deviation(&empty) == 0);
}

static void test_moments(void **state) {
    (void)state;
    series s = {0};
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    for (size_t i = 0; i < 8; i++) series_push(&s, values[i]);
    assert_true(series_total(&s) == 40 && series_mean(&s) == 5);
    assert_true(fabs(series_deviation(&s) - sqrt(32.0 / 7)) < 1e-12); /* the sample's, not the population's */
    series_deinit(&s);
}

/* The least number of values that certify a percentile: 662 for p99, 64 for p90, 6,636 for p99.9 (LoadGen). */
static void test_early_stopping(void **state) {
    (void)state;
    const struct {
        double p;
        size_t least;
    } floors[] = {{99, 662}, {90, 64}, {99.9, 6636}};
    for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
        series few = ramp(floors[i].least - 1), enough = ramp(floors[i].least);
        assert_true(isnan(series_early_stopping(&few, floors[i].p)));
        assert_true(series_early_stopping(&enough, floors[i].p) == (double)floors[i].least); /* the largest value */
        series_deinit(&few);
        series_deinit(&enough);
    }
    series s = ramp(1007);
    const double certified[] = {50, 75, 80, 90, 95, 97, 99};
    for (size_t i = 0; i < sizeof certified / sizeof *certified; i++) {
        double estimate = series_early_stopping(&s, certified[i]);
        assert_true(estimate >= series_percentile(&s, certified[i]) && estimate <= 1007);
    }
    series_deinit(&s);
}

static void test_json(void **state) {
    (void)state;
    series s = ramp(1007);
    buffer out = {0};
    series_write_json(&out, &s, true);
    arena *a = arena_create();
    const json *root;
    assert_int_equal(json_parse(a, span_make(out.data, out.size), 8, &root, NULL), ERR_OK);
    static const char *const names[] = {
        "total", "min", "max", "median", "avg", "std_dev", "percentiles", "early_stopping_percentiles", "histogram"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_non_null(json_get(root, names[i]));
    assert_int_equal(json_get(root, "percentiles")->count, 12);
    assert_int_equal(json_get(json_get(root, "early_stopping_percentiles"), "99.9")->type, JSON_NULL);
    const json *counts = json_get(json_get(root, "histogram"), "counts");
    int64_t sum = 0;
    for (const json *c = counts->first; c; c = c->next) {
        int64_t n;
        assert_true(json_integer(c, &n));
        sum += n;
    }
    assert_int_equal(sum, 1007);
    assert_int_equal(counts->count, json_get(json_get(root, "histogram"), "buckets")->count);
    buffer_clear(&out);
    series empty = {0};
    series_write_json(&out, &empty, true);
    assert_string_equal(out.data, "{}");
    buffer_deinit(&out);
    arena_destroy(a);
    series_deinit(&s);
}

static void test_people(void **state) {
    (void)state;
    const struct {
        double ns;
        const char *text;
    } durations[] = {{NAN, "-"},        {0, "0.00 ms"},      {1234567, "1.23 ms"},   {12345678, "12.3 ms"},
                     {2.5e9, "2.50 s"}, {119e9, "119.00 s"}, {1476e9, "24 min 36 s"}};
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        buffer out = {0};
        report_duration(&out, durations[i].ns);
        assert_string_equal(out.data, durations[i].text);
        buffer_deinit(&out);
    }
    const struct {
        double value;
        const char *text;
    } counts[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {28149, "28,149"}, {13560633, "13,560,633"}, {NAN, "-"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        buffer out = {0};
        report_count(&out, counts[i].value);
        assert_string_equal(out.data, counts[i].text);
        buffer_deinit(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles), cmocka_unit_test(test_moments), cmocka_unit_test(test_early_stopping),
        cmocka_unit_test(test_json),        cmocka_unit_test(test_people),
    };
    return cmocka_run_group_tests_name("bench statistics", tests, NULL, NULL);
}
