/* The report files, with the names and fields of the official client (see perf_report.h, docs/bench.md). Fields of our
 * own stand at the end of their object. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/perf_report.h"

static const char *const state_names[] = {"answered", "unfinished", "failed", "skipped"};

static void write_text(buffer *out, const char *text) { json_write_bytes(out, span_text(text)); }

/* A mean of no turns is null. */
static void write_score(buffer *out, double score) {
    if (isnan(score))
        buffer_text(out, "null");
    else
        json_write_double(out, score);
}

static const trace_conversation *conversation_of(const perf_report *r, const turn_result *turn) {
    return &r->trace->conversations[turn->conversation];
}

static int number_of(const perf_report *r, const turn_result *turn) {
    return conversation_of(r, turn)->turns[turn->turn].number;
}

static bool has_answer(const turn_result *turn) {
    return turn->state == TURN_ANSWERED || turn->state == TURN_UNFINISHED;
}

/* scores.json */

static void write_actions(buffer *out, const char *name, const action_list *l) {
    buffer_printf(out, ", \"%s\": [", name);
    for (size_t i = 0; i < l->count; i++) {
        if (i) buffer_text(out, ", ");
        write_text(out, l->names[i]);
    }
    buffer_char(out, ']');
}

static void write_place(const perf_report *r, buffer *out, const turn_result *turn) {
    buffer_text(out, "{\"conversation_id\": ");
    json_write_bytes(out, conversation_of(r, turn)->id);
    buffer_printf(out, ", \"repeat\": 0, \"turn\": %d", number_of(r, turn));
}

static void write_turn_score(const perf_report *r, buffer *out, const turn_result *turn) {
    write_place(r, out, turn);
    buffer_text(out, ", \"domain\": \"coding\"");
    write_actions(out, "gt_actions", &turn->recorded);
    write_actions(out, "model_actions", &turn->answered);
    buffer_text(out, ", \"score\": ");
    json_write_double(out, turn->score);
    if (!has_answer(turn)) buffer_text(out, ", \"missing\": true");
    if (turn->state == TURN_UNFINISHED) buffer_text(out, ", \"unfinished\": true");
    buffer_char(out, '}');
}

static void write_turns(const perf_report *r, buffer *out, bool scored,
                        void (*write)(const perf_report *, buffer *, const turn_result *)) {
    bool first = true;
    for (size_t i = 0; i < r->result->count; i++) {
        if (r->result->turns[i].scored != scored) continue;
        buffer_text(out, first ? "\n    " : ",\n    ");
        write(r, out, &r->result->turns[i]);
        first = false;
    }
}

static void write_excluded(const perf_report *r, buffer *out, const turn_result *turn) {
    write_place(r, out, turn);
    buffer_char(out, '}');
}

static void write_scores(const perf_report *r, buffer *out) {
    buffer_text(out, "{\n  \"score\": ");
    write_score(out, r->score);
    buffer_printf(out,
                  ",\n  \"turns\": {\"issued\": %zu, \"expected\": %zu, \"observed\": %zu, \"missing\": %zu, "
                  "\"scored\": %zu, \"unfinished\": %zu},\n  \"domains\": {\"coding\": {\"score\": ",
                  r->result->count, r->expected, r->observed, r->expected - r->observed, r->expected, r->unfinished);
    write_score(out, r->score);
    buffer_printf(out, ", \"turns\": %zu}},\n  \"per_turn\": [", r->expected);
    write_turns(r, out, true, write_turn_score);
    buffer_text(out, "\n  ],\n  \"excluded_turns\": [");
    write_turns(r, out, false, write_excluded);
    buffer_text(out, "\n  ]\n}\n");
}

/* performance/result_summary.json */

static void write_series(buffer *out, const char *name, const series *s, bool early_stopping) {
    buffer_printf(out, ",\n  \"%s\": ", name);
    series_write_json(out, s, early_stopping);
}

static void write_finish_counts(const perf_report *r, buffer *out) {
    buffer_text(out, ",\n  \"finish_reason_counts\": {");
    for (size_t i = 0; i < r->finish_kinds; i++) {
        if (i) buffer_text(out, ", ");
        write_text(out, r->finish[i].reason);
        buffer_printf(out, ": %zu", r->finish[i].count);
    }
    buffer_char(out, '}');
}

static void write_summary(const perf_report *r, buffer *out) {
    bool stopped = r->result->stopped;
    buffer_printf(out, "{\n  \"n_samples_issued\": %zu,\n  \"n_samples_completed\": %zu,\n  \"n_samples_failed\": %zu",
                  r->result->count, r->answered, r->result->count - r->answered);
    buffer_printf(out, ",\n  \"duration_ns\": %llu,\n  \"qps\": ", (unsigned long long)r->duration_ns);
    json_write_double(out, r->qps);
    buffer_text(out, ",\n  \"tps\": ");
    write_score(out, r->output.count ? r->tps : NAN);
    buffer_printf(out, ",\n  \"state\": \"%s\",\n  \"complete\": %s", stopped ? "interrupted" : "complete",
                  stopped ? "false" : "true");
    write_series(out, "ttft", &r->ttft, true);
    write_series(out, "tpot", &r->tpot, true);
    write_series(out, "latency", &r->latency, true);
    write_series(out, "input_sequence_lengths", &r->input, false);
    write_series(out, "output_sequence_lengths", &r->output, false);
    write_finish_counts(r, out);
    buffer_printf(out, ",\n  \"n_samples_unfinished\": %zu,\n  \"n_samples_skipped\": %zu", r->unfinished, r->skipped);
    if (r->cached_known)
        buffer_printf(out, ",\n  \"cached_prompt_tokens\": %lld,\n  \"usage_prompt_tokens\": %lld",
                      (long long)r->cached_tokens, (long long)r->cached_of);
    buffer_printf(out, ",\n  \"tokens_counted_by\": \"%s\"\n}\n", r->result->counted_by_client ? "client" : "server");
}

/* events.jsonl, in the order of time */

static void write_event(const perf_report *r, buffer *out, const turn_result *turn, const char *type, uint64_t ns) {
    buffer_printf(out, "{\"event_type\": \"%s\", \"timestamp_ns\": %llu, \"conversation_id\": ", type,
                  (unsigned long long)ns);
    json_write_bytes(out, conversation_of(r, turn)->id);
    buffer_printf(out, ", \"turn\": %d", number_of(r, turn));
}

/* How the turn ended: with the last event of every turn. */
static void write_end(buffer *out, const turn_result *turn) {
    if (turn->state != TURN_ANSWERED) {
        buffer_printf(out, ", \"state\": \"%s\", \"reason\": ", state_names[turn->state]);
        write_text(out, turn->reason);
    }
    const reply_usage *usage = &turn->answer.usage;
    if (turn->prompt_tokens >= 0) buffer_printf(out, ", \"prompt_tokens\": %lld", (long long)turn->prompt_tokens);
    if (usage->cached_known) buffer_printf(out, ", \"cached_tokens\": %lld", (long long)usage->cached_tokens);
    if (turn->output_tokens >= 0) buffer_printf(out, ", \"output_tokens\": %lld", (long long)turn->output_tokens);
}

static void write_events(const perf_report *r, buffer *out) {
    for (size_t i = 0; i < r->result->count; i++) {
        const turn_result *turn = &r->result->turns[i];
        if (turn->state == TURN_SKIPPED) continue;
        write_event(r, out, turn, "issued", turn->start_ns);
        buffer_text(out, "}\n");
        if (turn->answer.first_ns) {
            write_event(r, out, turn, "recv_first", turn->answer.first_ns);
            buffer_text(out, "}\n");
        }
        write_event(r, out, turn, has_answer(turn) ? "complete" : "error", turn->end_ns);
        write_end(out, turn);
        buffer_text(out, "}\n");
    }
}

/* config.yaml: a JSON string is a YAML string. */

static void write_setting(buffer *out, const char *name, const char *value) {
    buffer_printf(out, "%s: ", name);
    write_text(out, value);
    buffer_char(out, '\n');
}

static void write_config(const perf_report *r, const char *trace_name, buffer *out) {
    const replay_options *o = r->options;
    buffer_text(out, "name: \"agentic performance\"\n");
    write_setting(out, "endpoint", o->base_url);
    write_setting(out, "model", r->result->model);
    write_setting(out, "dataset", trace_name);
    buffer_printf(out, "conversations: %zu\nturns: %zu\n", r->trace->count, r->result->count);
    buffer_printf(out, "temperature: 0.0\nseed: 42\nmax_completion_tokens: %d\nstream: true\n",
                  o->max_tokens ? o->max_tokens : 1024);
    buffer_printf(out, "workers: 1\nmax_connections: 1\nconcurrency: 1\ntimeout_s: %d\n",
                  o->timeout_s ? o->timeout_s : 600);
    buffer_printf(out, "asks_usage: %s\n", o->official ? "false" : "true");
    buffer_printf(out, "tokens_counted_by: %s\n", r->result->counted_by_client ? "client" : "server");
    buffer_printf(out, "started_unix_s: %lld\n", (long long)r->result->started_unix_s);
}

static err_code write_file(const char *dir, const char *name, buffer *content, error *err) {
    char *path = file_join(dir, name);
    err_code code = file_write_atomic(path, span_make(content->data, content->size), err);
    free(path);
    buffer_clear(content);
    return code;
}

static err_code write_files(const perf_report *r, const char *trace_name, const char *dir, buffer *b, error *err) {
    write_scores(r, b);
    ERR_TRY(write_file(dir, "scores.json", b, err));
    write_summary(r, b);
    ERR_TRY(write_file(dir, "performance/result_summary.json", b, err));
    write_config(r, trace_name, b);
    ERR_TRY(write_file(dir, "config.yaml", b, err));
    write_events(r, b);
    ERR_TRY(write_file(dir, "events.jsonl", b, err));
    perf_report_text(r, trace_name, b);
    return write_file(dir, "report.txt", b, err);
}

err_code perf_report_write(const perf_report *r, const char *trace_name, const char *dir, error *err) {
    char *inner = file_join(dir, "performance");
    err_code code = file_make_dirs(inner, err);
    free(inner);
    buffer b = {0};
    if (code == ERR_OK) code = write_files(r, trace_name, dir, &b, err);
    buffer_deinit(&b);
    return code;
}
