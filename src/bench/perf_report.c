/* See perf_report.h: the numbers and the table. The files are in report_files.c.
 *
 * Only whole answers enter times and token counts: a stream that was cut is short, and would make a failing server look
 * fast. */
#include "bench/perf_report.h"

#include <math.h>
#include <string.h>

static void count_finish(perf_report *r, const turn_result *turn) {
    const char *reason = turn->answer.finish_reason.data;
    if (!turn->answer.finish_reason.size) return;
    size_t i = 0;
    while (i < r->finish_kinds && strcmp(r->finish[i].reason, reason) != 0) i++;
    if (i == sizeof r->finish / sizeof *r->finish) return;
    if (i == r->finish_kinds) r->finish[r->finish_kinds++].reason = reason;
    r->finish[i].count++;
}

static void add_times(perf_report *r, const turn_result *turn) {
    double first = (double)turn->answer.first_ns, end = (double)turn->end_ns;
    series_push(&r->latency, (double)(turn->end_ns - turn->start_ns));
    if (!turn->answer.first_ns) return;
    series_push(&r->ttft, (double)(turn->answer.first_ns - turn->start_ns));
    if (turn->rest_tokens > 0) series_push(&r->tpot, (end - first) / (double)turn->rest_tokens);
}

static void add_tokens(perf_report *r, const turn_result *turn) {
    if (turn->prompt_tokens >= 0) series_push(&r->input, (double)turn->prompt_tokens);
    if (turn->output_tokens >= 0) series_push(&r->output, (double)turn->output_tokens);
    const reply_usage *usage = &turn->answer.usage;
    if (usage->known && r->result->counted_by_client && usage->prompt_tokens != turn->prompt_tokens)
        r->prompts_differ++;
    if (usage->known) r->usage_output += usage->completion_tokens;
    if (!usage->known || !usage->cached_known) return;
    r->cached_known = true;
    r->cached_tokens += usage->cached_tokens;
    r->cached_of += usage->prompt_tokens;
    series_push(&r->computed, (double)(usage->prompt_tokens - usage->cached_tokens));
}

static void add_turn(perf_report *r, const turn_result *turn, double *scores) {
    r->answered += turn->state == TURN_ANSWERED;
    r->unfinished += turn->state == TURN_UNFINISHED;
    r->failed += turn->state == TURN_FAILED;
    r->skipped += turn->state == TURN_SKIPPED;
    if (turn->scored) {
        r->expected++;
        r->observed += turn->state == TURN_ANSWERED || turn->state == TURN_UNFINISHED;
        *scores += turn->score;
    }
    if (turn->state != TURN_ANSWERED) return;
    count_finish(r, turn);
    add_times(r, turn);
    add_tokens(r, turn);
}

void perf_report_make(const trace *t, const replay_options *options, const replay_result *result, perf_report *out) {
    *out = (perf_report){.trace = t, .options = options, .result = result};
    double scores = 0;
    for (size_t i = 0; i < result->count; i++) add_turn(out, &result->turns[i], &scores);
    series *const all[] = {&out->ttft, &out->tpot, &out->latency, &out->input, &out->output, &out->computed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) series_sort(all[i]);
    out->score = out->expected ? round(scores / (double)out->expected * 1e4) / 1e4 : NAN;
    out->duration_ns = result->end_ns - result->start_ns;
    double seconds = (double)out->duration_ns / 1e9;
    out->qps = seconds > 0 ? (double)out->answered / seconds : 0;
    out->tps = seconds > 0 ? series_total(&out->output) / seconds : 0;
}

void perf_report_deinit(perf_report *r) {
    series *const all[] = {&r->ttft, &r->tpot, &r->latency, &r->input, &r->output, &r->computed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) series_deinit(all[i]);
}

/* The table. */

void report_duration(buffer *out, double ns) {
    if (isnan(ns))
        buffer_text(out, "-");
    else if (ns < 1e7)
        buffer_printf(out, "%.2f ms", ns / 1e6);
    else if (ns < 1e9)
        buffer_printf(out, "%.1f ms", ns / 1e6);
    else if (ns < 120e9)
        buffer_printf(out, "%.2f s", ns / 1e9);
    else
        buffer_printf(out, "%.0f min %02.0f s", floor(ns / 60e9), floor(fmod(ns / 1e9, 60)));
}

void report_count(buffer *out, double value) {
    if (isnan(value)) {
        buffer_text(out, "-");
        return;
    }
    buffer digits = {0};
    buffer_printf(&digits, "%.0f", value);
    for (size_t i = 0; i < digits.size; i++) {
        buffer_char(out, digits.data[i]);
        if (i + 1 < digits.size && digits.data[i] != '-' && (digits.size - i - 1) % 3 == 0) buffer_char(out, ',');
    }
    buffer_deinit(&digits);
}

static void write_cell(buffer *out, double value, void (*format)(buffer *, double)) {
    buffer cell = {0};
    format(&cell, value);
    buffer_printf(out, "%12s", cell.data);
    buffer_deinit(&cell);
}

static void write_row(buffer *out, const char *name, const series *s, void (*format)(buffer *, double)) {
    if (!s->count) return;
    buffer_printf(out, "  %-16s", name);
    const double cells[] = {series_percentile(s, 50), series_percentile(s, 90), series_percentile(s, 99),
                            s->values[s->count - 1], series_mean(s)};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) write_cell(out, cells[i], format);
    buffer_char(out, '\n');
}

static void write_head(const perf_report *r, const char *trace_name, buffer *out) {
    buffer_printf(out, "  server   %s, model %s\n", r->options->base_url, r->result->model);
    buffer_printf(out, "  trace    %s: %zu conversation%s, %zu turn%s, at most %d tokens an answer\n\n", trace_name,
                  r->trace->count, r->trace->count == 1 ? "" : "s", r->result->count, r->result->count == 1 ? "" : "s",
                  r->options->max_tokens ? r->options->max_tokens : 1024);
}

static void write_tokens(const perf_report *r, buffer *out) {
    if (!r->output.count) {
        buffer_text(out, "  tokens   unknown: give --tokenizer DIR, since the server sent no usage\n");
        return;
    }
    buffer_text(out, "  output   ");
    report_count(out, series_total(&r->output));
    buffer_text(out, " tokens");
    if (r->usage_output && (double)r->usage_output != series_total(&r->output)) {
        buffer_text(out, " (the server counts ");
        report_count(out, (double)r->usage_output);
        buffer_char(out, ')');
    }
    buffer_printf(out, ", %.1f a second over the run", r->tps);
    if (r->tpot.count)
        buffer_printf(out, ", %.1f while answering (1 / median TPOT)", 1e9 / series_percentile(&r->tpot, 50));
    buffer_text(out, "\n  prompts  ");
    report_count(out, series_total(&r->input));
    buffer_text(out, " tokens");
    if (r->cached_known)
        buffer_printf(out, ", %.1f %% of them cached",
                      r->cached_of ? 100.0 * (double)r->cached_tokens / (double)r->cached_of : 0);
    else
        buffer_text(out, "; the server does not say how many were cached");
    buffer_printf(out, "\n  counted  %s\n",
                  r->result->counted_by_client ? "by the client, with the model's tokenizer" : "by the server");
    if (r->prompts_differ)
        buffer_printf(out, "  note     on %zu turns the server counts other prompt tokens than the client\n",
                      r->prompts_differ);
}

/* The first failures with their reasons: enough to see what is wrong. */
static void write_problems(const perf_report *r, buffer *out) {
    static const char *const names[] = {"", "unfinished", "missing", "missing"};
    size_t shown = 0;
    for (size_t i = 0; i < r->result->count && shown < 10; i++) {
        const turn_result *turn = &r->result->turns[i];
        if (turn->state != TURN_FAILED && turn->state != TURN_UNFINISHED) continue;
        const trace_conversation *c = &r->trace->conversations[turn->conversation];
        buffer_printf(out, "  %-10s %.*s turn %d: %s\n", names[turn->state], (int)c->id.size, c->id.data,
                      c->turns[turn->turn].number, turn->reason);
        shown++;
    }
    if (shown < r->failed + r->unfinished)
        buffer_printf(out, "  ... and %zu more\n", r->failed + r->unfinished - shown);
    if (r->skipped) buffer_printf(out, "  missing    %zu later turns of those conversations, not asked\n", r->skipped);
}

void perf_report_text(const perf_report *r, const char *trace_name, buffer *out) {
    write_head(r, trace_name, out);
    if (r->answered) {
        buffer_printf(out, "  %-16s%12s%12s%12s%12s%12s\n", "", "median", "p90", "p99", "max", "mean");
        write_row(out, "TTFT", &r->ttft, report_duration);
        write_row(out, "TPOT", &r->tpot, report_duration);
        write_row(out, "latency", &r->latency, report_duration);
        write_row(out, "prompt tokens", &r->input, report_count);
        write_row(out, "  not cached", &r->computed, report_count);
        write_row(out, "output tokens", &r->output, report_count);
        buffer_text(out, "\n  TTFT: time to the first token; TPOT: time for each further one\n\n");
        write_tokens(r, out);
    }
    buffer_text(out, "  wall     ");
    report_duration(out, (double)r->duration_ns);
    buffer_printf(out, ", %.2f turns a second\n", r->qps);
    if (r->expected)
        buffer_printf(out, "  IoU      %.4f over %zu turns, against the recorded shell commands\n", r->score,
                      r->expected);
    buffer_printf(out, "  turns    %zu of %zu answered, %zu missing, %zu unfinished\n", r->answered, r->result->count,
                  perf_report_missing(r), r->unfinished);
    write_problems(r, out);
}
