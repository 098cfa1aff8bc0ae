/* See statistics.h.
 *
 * Early stopping (MLPerf inference rules, appendix on early stopping). With n values, t of which lie above x, x is an
 * upper bound of the p-th percentile at confidence 0.99 when seeing t or fewer above it would have had a probability of
 * at most 0.01 had the true percentile been higher: P(Binomial(n, 1 - p) <= t) <= 0.01. The estimate drops the largest
 * t - 1 values for the greatest such t. */
#include "bench/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"

static const double percentiles[] = {99.9, 99, 97, 95, 90, 80, 75, 50, 25, 10, 5, 1};
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles, BUCKETS = 20 };
static const double CONFIDENCE = 0.99;

void series_deinit(series *s) {
    free(s->values);
    *s = (series){0};
}

void series_push(series *s, double value) {
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 64;
        s->values = mem_grow(s->values, s->capacity, sizeof *s->values);
    }
    s->values[s->count++] = value;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void series_sort(series *s) {
    if (s->count) qsort(s->values, s->count, sizeof *s->values, compare);
}

double series_percentile(const series *s, double p) {
    if (!s->count) return NAN;
    return s->values[(size_t)floor((double)(s->count - 1) * (p / 100))];
}

double series_total(const series *s) {
    double total = 0;
    for (size_t i = 0; i < s->count; i++) total += s->values[i];
    return total;
}

double series_mean(const series *s) { return s->count ? series_total(s) / (double)s->count : NAN; }

double series_deviation(const series *s) {
    if (s->count < 2) return 0;
    double mean = series_mean(s), sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += (s->values[i] - mean) * (s->values[i] - mean);
    return sqrt(sum / (double)(s->count - 1));
}

/* ln P(Binomial(n, q) = k) */
static double log_binomial(double n, double k, double q) {
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log1p(-q);
}

double series_early_stopping(const series *s, double p) {
    double n = (double)s->count, q = 1 - p / 100, below = 0;
    if (!s->count || q <= 0 || q >= 1) return NAN;
    size_t t = 0;
    for (size_t k = 0; k < s->count; k++) {
        below += exp(log_binomial(n, (double)k, q));
        if (below > 1 - CONFIDENCE) break;
        t = k;
    }
    return t ? s->values[s->count - t] : NAN;
}

/* Whole numbers without a fraction, as counts and nanoseconds are. */
static void write_number(buffer *out, double value) {
    if (fabs(value) < 9e15 && value == floor(value))
        buffer_printf(out, "%.0f", value);
    else
        json_write_double(out, value);
}

static void write_percentiles(buffer *out, const char *name, const series *s, double least,
                              double (*of)(const series *, double)) {
    buffer_printf(out, ", \"%s\": {", name);
    for (size_t i = 0; i < PERCENTILES && percentiles[i] >= least; i++) {
        buffer_printf(out, "%s\"%.1f\": ", i ? ", " : "", percentiles[i]);
        json_write_double(out, of(s, percentiles[i]));
    }
    buffer_char(out, '}');
}

/* Buckets of equal ratio from the least value (at least 1) to the largest (at least ten times that). */
static void write_histogram(buffer *out, const series *s) {
    double low = fmax(s->values[0], 1), high = fmax(s->values[s->count - 1], low * 10);
    double edges[BUCKETS + 1];
    size_t counts[BUCKETS] = {0};
    for (int i = 0; i <= BUCKETS; i++) edges[i] = low * pow(high / low, (double)i / BUCKETS);
    for (size_t i = 0; i < s->count; i++) {
        int bucket = 0;
        while (bucket < BUCKETS - 1 && s->values[i] >= edges[bucket + 1]) bucket++;
        counts[bucket]++;
    }
    buffer_text(out, ", \"histogram\": {\"buckets\": [");
    for (int i = 0; i < BUCKETS; i++) {
        buffer_text(out, i ? ", [" : "[");
        json_write_double(out, edges[i]);
        buffer_text(out, ", ");
        json_write_double(out, edges[i + 1]);
        buffer_char(out, ']');
    }
    buffer_text(out, "], \"counts\": [");
    for (int i = 0; i < BUCKETS; i++) buffer_printf(out, "%s%zu", i ? ", " : "", counts[i]);
    buffer_text(out, "]}");
}

void series_write_json(buffer *out, const series *s, bool early_stopping) {
    buffer_char(out, '{');
    if (s->count) {
        const struct {
            const char *name;
            double value;
        } fields[] = {{"total", series_total(s)},           {"min", s->values[0]},   {"max", s->values[s->count - 1]},
                      {"median", series_percentile(s, 50)}, {"avg", series_mean(s)}, {"std_dev", series_deviation(s)}};
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            buffer_printf(out, "%s\"%s\": ", i ? ", " : "", fields[i].name);
            write_number(out, fields[i].value);
        }
        write_percentiles(out, "percentiles", s, 0, series_percentile);
        if (early_stopping) write_percentiles(out, "early_stopping_percentiles", s, 50, series_early_stopping);
        write_histogram(out, s);
    }
    buffer_char(out, '}');
}
