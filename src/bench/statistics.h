/* Numbers of one kind over a run, and their summary in the terms of the MLPerf report. */
#ifndef HEARTH_BENCH_STATISTICS_H
#define HEARTH_BENCH_STATISTICS_H

#include "base/memory.h"

typedef struct series {
    double *values; /* owned; ascending after series_sort */
    size_t count, capacity;
} series;

void series_deinit(series *s);
void series_push(series *s, double value);
void series_sort(series *s);

/* Of a sorted series: numpy's `lower` rule, sorted[floor(p/100 (n-1))], always an observed value. NAN when empty. */
double series_percentile(const series *s, double p);
double series_mean(const series *s);      /* NAN when empty */
double series_deviation(const series *s); /* of the sample (n - 1); 0 for fewer than two */
double series_total(const series *s);

/* LoadGen's early-stopping estimate of a sorted series: the smallest observed value that the true p-th percentile does
 * not exceed with 99 % confidence; NAN when there are too few values for that. */
double series_early_stopping(const series *s, double p);

/* {"total", "min", "max", "median", "avg", "std_dev", "percentiles"[, "early_stopping_percentiles"], "histogram"} of a
 * sorted series; {} when empty. */
void series_write_json(buffer *out, const series *s, bool early_stopping);

#endif
