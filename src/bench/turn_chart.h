/* An SVG chart of a replay: time to first token of every turn, and below it the prompt, cached and computed. */
#ifndef HEARTH_BENCH_TURN_CHART_H
#define HEARTH_BENCH_TURN_CHART_H

#include "bench/perf_report.h"

/* Writes the whole document; report is only read. */
void turn_chart(const perf_report *r, buffer *out);

#endif
