/* What a replay measured: numbers, table, report files. */
#ifndef HEARTH_BENCH_PERF_REPORT_H
#define HEARTH_BENCH_PERF_REPORT_H

#include "bench/replay.h"
#include "bench/statistics.h"

typedef struct finish_count {
    const char *reason; /* borrowed */
    size_t count;
} finish_count;

typedef struct perf_report {
    const trace *trace; /* borrowed, as the next two */
    const replay_options *options;
    const replay_result *result;
    size_t answered, unfinished, failed, skipped;
    series ttft, tpot, latency;       /* ns, sorted; answered turns only */
    series input, output, computed;   /* tokens: prompt, answer, prompt without what the server had cached */
    int64_t cached_tokens, cached_of; /* sums over the turns whose server says how many prompt tokens it had cached */
    bool cached_known;
    int64_t usage_output;      /* output tokens as the server counts them, where it says so */
    size_t prompts_differ;     /* turns whose prompt the server counts differently than the client */
    size_t expected, observed; /* turns with a recorded action; those of them with an answer */
    double score;              /* mean IoU over the expected ones, rounded to 4 digits; NAN when there are none */
    uint64_t duration_ns;
    double qps, tps;
    finish_count finish[16];
    size_t finish_kinds;
} perf_report;

void perf_report_make(const trace *t, const replay_options *options, const replay_result *result, perf_report *out);
void perf_report_deinit(perf_report *r);
static inline size_t perf_report_missing(const perf_report *r) { return r->failed + r->skipped; }

/* The table for the terminal and report.txt. */
void perf_report_text(const perf_report *r, const char *trace_name, buffer *out);

/* DIR/scores.json, config.yaml, events.jsonl, report.txt and performance/result_summary.json; DIR is made. */
err_code perf_report_write(const perf_report *r, const char *trace_name, const char *dir, error *err);

/* A time and a count as people read them: "12.3 ms", "4.56 s"; "13,560,633". */
void report_duration(buffer *out, double ns);
void report_count(buffer *out, double value);

#endif
