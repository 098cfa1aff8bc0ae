/* Counters of the HTTP side and the Prometheus text of /metrics. The names are a contract: docs/http-api.md. */
#ifndef HEARTH_SERVE_METRICS_H
#define HEARTH_SERVE_METRICS_H

#include "base/memory.h"
#include "hearth.h"

enum { METRIC_ENDPOINTS = 7, METRIC_STATUSES = 17, HISTOGRAM_BOUNDS = 14 };

typedef struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* per bucket; the last is beyond all bounds */
    uint64_t count;
    double sum;
} histogram;
void histogram_add(histogram *h, double seconds);

typedef struct serve_metrics {
    uint64_t requests[METRIC_ENDPOINTS][METRIC_STATUSES];
    histogram first_token, duration; /* of chat completions, seconds */
    int in_flight;                   /* chat completions */
} serve_metrics;
/* path: decoded; what is no endpoint counts as "other". */
void serve_metrics_count(serve_metrics *m, const char *path, int status);

/* What is read at the moment of asking. */
typedef struct serve_gauges {
    bool ready;
    double load_progress; /* 0..1 */
    int connections;
    uint64_t connections_refused;
    const hearth_info *info;   /* NULL while loading */
    const hearth_stats *stats; /* likewise */
} serve_gauges;
void serve_metrics_write(const serve_metrics *m, const serve_gauges *g, buffer *out);

#endif
