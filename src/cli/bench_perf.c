/* hearth bench perf: replays recorded conversations over HTTP and prints the report. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "bench/perf_report.h"
#include "bench/turn_chart.h"
#include "cli/bench.h"
#include "cli/cli.h"

enum { BAR_WIDTH = 24, KEY_BYTES_MAX = 64 * 1024 };

typedef struct perf_command {
    const char *trace_path, *tokenizer_dir, *report_dir, *svg_path, *key_path;
    int conversations, turns;
    bool dry_run;
    replay_options options;
} perf_command;

/* Ctrl-C ends the run and still prints the report of what was measured; a second one ends the process. */
static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}
static bool is_interrupted(void *context) {
    (void)context;
    return interrupted != 0;
}

/* Progress: a bar that is redrawn on a terminal, a line for every conversation elsewhere. */

typedef struct progress_view {
    bool terminal;
    uint64_t start_ns;
    size_t done;
    series ttft; /* of all turns so far, in order */
} progress_view;

static double running_median(const series *s, size_t from) {
    series copy = {0};
    for (size_t i = from; i < s->count; i++) series_push(&copy, s->values[i]);
    series_sort(&copy);
    double median = series_percentile(&copy, 50);
    series_deinit(&copy);
    return median;
}

static void draw_bar(const progress_view *v, const trace *t, const turn_result *turn) {
    const trace_conversation *c = &t->conversations[turn->conversation];
    double share = (double)v->done / (double)t->turn_count;
    double elapsed = (double)(clock_ns() - v->start_ns);
    buffer line = {0};
    buffer_text(&line, "\r[");
    for (int i = 0; i < BAR_WIDTH; i++) buffer_char(&line, i < (int)(share * BAR_WIDTH) ? '#' : '.');
    buffer_printf(&line, "] %zu/%zu  %.*s %zu/%zu", v->done, t->turn_count, c->id.size < 28 ? (int)c->id.size : 28,
                  c->id.data, turn->turn + 1, c->turn_count);
    if (v->ttft.count) {
        buffer_text(&line, "  TTFT ");
        report_duration(&line, running_median(&v->ttft, 0));
    }
    if (v->done) {
        int left_s = (int)ceil(elapsed / share * (1 - share) / 1e9);
        if (left_s >= 60) buffer_printf(&line, "  %d min", left_s / 60);
        buffer_printf(&line, "%s%d s left", left_s >= 60 ? " " : "  ", left_s % 60);
    }
    buffer_text(&line, "\033[K");
    fwrite(line.data, 1, line.size, stderr);
    buffer_deinit(&line);
}

static void print_problem(const progress_view *v, const trace_conversation *c, const turn_result *turn) {
    fprintf(stderr, "%s%.*s turn %d: %s: %s\n", v->terminal ? "\r\033[K" : "", (int)c->id.size, c->id.data,
            c->turns[turn->turn].number, turn->state == TURN_FAILED ? "missing" : "unfinished", turn->reason);
}

static void print_conversation(const progress_view *v, const trace *t, const turn_result *turn) {
    const trace_conversation *c = &t->conversations[turn->conversation];
    size_t from = v->ttft.count > c->turn_count ? v->ttft.count - c->turn_count : 0;
    buffer line = {0};
    report_duration(&line, running_median(&v->ttft, from));
    fprintf(stderr, "%zu of %zu turns: %.*s done, TTFT median %s\n", v->done, t->turn_count, (int)c->id.size,
            c->id.data, line.data);
    buffer_deinit(&line);
}

static bool on_turn(void *context, const trace *t, const turn_result *turn, bool done) {
    progress_view *v = context;
    const trace_conversation *c = &t->conversations[turn->conversation];
    if (done) {
        v->done++;
        if (turn->answer.first_ns) series_push(&v->ttft, (double)(turn->answer.first_ns - turn->start_ns));
        if (turn->state == TURN_FAILED || turn->state == TURN_UNFINISHED) print_problem(v, c, turn);
        if (!v->terminal && turn->turn + 1 == c->turn_count) print_conversation(v, t, turn);
    }
    if (v->terminal) draw_bar(v, t, turn);
    return !interrupted;
}

static err_code run_replay(const perf_command *c, const trace *t, replay_result *result, error *err) {
    progress_view view = {.terminal = isatty(STDERR_FILENO) != 0, .start_ns = clock_ns()};
    replay_observer observer = {on_turn, is_interrupted, &view};
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    err_code code = replay_run(t, &c->options, &observer, result, err);
    if (view.terminal) fputs("\r\033[K", stderr);
    series_deinit(&view.ttft);
    return code;
}

/* Key file: the first line that is not empty. */
static err_code read_key(const char *path, char **out, error *err) {
    buffer text = {0};
    ERR_TRY(file_read(path, KEY_BYTES_MAX, &text, err));
    char *line = text.data;
    line += strspn(line, " \t\r\n");
    *out = mem_copy(line, strcspn(line, " \t\r\n"));
    buffer_deinit(&text);
    if (**out) return ERR_OK;
    free(*out);
    *out = NULL;
    ERR_FAIL(err, ERR_INVALID, "%s: no key in it", path);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static err_code check_report_dir(const char *dir, error *err) {
    ERR_TRY(file_make_dirs(dir, err));
    char *inside = file_join(dir, "report");
    err_code code = file_check_writable(inside, err);
    free(inside);
    return code;
}

/* Before the replay: an hour of measuring must not end with a file that cannot be written. The report's directory comes
 * first, since the chart may go into it. */
static err_code check_outputs(const perf_command *c, error *err) {
    if (c->report_dir) ERR_TRY(check_report_dir(c->report_dir, err));
    return c->svg_path ? file_check_writable(c->svg_path, err) : ERR_OK;
}

static err_code write_outputs(const perf_command *c, const perf_report *report, error *err) {
    buffer out = {0};
    err_code code = ERR_OK;
    if (c->report_dir) code = perf_report_write(report, base_name(c->trace_path), c->report_dir, err);
    if (c->svg_path && code == ERR_OK) {
        turn_chart(report, &out);
        code = file_write_atomic(c->svg_path, span_make(out.data, out.size), err);
    }
    buffer_deinit(&out);
    return code;
}

/* Prints the table; 1 when a turn is missing or unfinished, or a file could not be written. */
static int report_result(const perf_command *c, const trace *t, const replay_result *result) {
    perf_report report;
    perf_report_make(t, &c->options, result, &report);
    buffer out = {0};
    perf_report_text(&report, base_name(c->trace_path), &out);
    fwrite(out.data, 1, out.size, stdout);
    if (result->stopped) printf("  stopped before the end: not a result\n");
    buffer_deinit(&out);
    int status = report.answered == result->count ? 0 : 1;
    error err;
    if (write_outputs(c, &report, &err) != ERR_OK) status = cli_fail(&err);
    perf_report_deinit(&report);
    return status;
}

static int perf_over_http(perf_command *c, const trace *t, token_counter *counter) {
    error err;
    char *key = NULL;
    if (check_outputs(c, &err) != ERR_OK) return cli_fail(&err);
    if (c->key_path && read_key(c->key_path, &key, &err) != ERR_OK) return cli_fail(&err);
    c->options.api_key = key;
    replay_result result;
    int status;
    if (run_replay(c, t, &result, &err) != ERR_OK) {
        status = cli_fail(&err);
    } else {
        if (replay_count_tokens(t, counter, &result, &err) != ERR_OK)
            fprintf(stderr, "hearth: tokens not counted: %s\n", err.message);
        status = report_result(c, t, &result);
        replay_result_deinit(&result);
    }
    free(key);
    return status;
}

static int perf_dry(const trace *t, token_counter *counter) {
    size_t total = 0, longest = 0;
    error err;
    if (replay_measure_prompts(t, counter, &total, &longest, &err) != ERR_OK) return cli_fail(&err);
    const struct {
        const char *name;
        size_t value;
    } rows[] = {
        {"conversations", t->count}, {"turns", t->turn_count}, {"prompt tokens", total}, {"longest prompt", longest}};
    buffer out = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buffer number = {0};
        report_count(&number, (double)rows[i].value);
        buffer_printf(&out, "%-15s %12s\n", rows[i].name, number.data);
        buffer_deinit(&number);
    }
    buffer_printf(&out, "{\"conversations\": %zu, \"turns\": %zu, \"prompt_tokens\": %zu, \"longest_prompt\": %zu}\n",
                  t->count, t->turn_count, total, longest);
    fwrite(out.data, 1, out.size, stdout);
    buffer_deinit(&out);
    return 0;
}

static int run_command(perf_command *c) {
    if (!c->trace_path) return cli_misuse("bench perf", "--trace FILE is missing");
    if (c->dry_run && !c->tokenizer_dir) return cli_misuse("bench perf", "--dry-run needs --tokenizer DIR");
    if (!c->dry_run && !c->options.base_url) return cli_misuse("bench perf", "--base-url URL is missing");
    if (c->options.official && !c->options.model)
        return cli_misuse("bench perf", "--official needs --model NAME: it asks nothing else");
    error err;
    trace t;
    if (trace_read(c->trace_path, (size_t)c->conversations, (size_t)c->turns, &t, &err) != ERR_OK)
        return cli_fail(&err);
    token_counter *counter = NULL;
    int status;
    if (c->tokenizer_dir && token_counter_open(c->tokenizer_dir, &counter, &err) != ERR_OK)
        status = cli_fail(&err);
    else
        status = c->dry_run ? perf_dry(&t, counter) : perf_over_http(c, &t, counter);
    token_counter_close(counter);
    trace_deinit(&t);
    return status;
}

int bench_perf(int argc, char **argv) {
    perf_command c = {0};
    const flag flags[] = {
        {"base-url", FLAG_TEXT, &c.options.base_url, "URL", "the server, such as http://127.0.0.1:8080", 0, 0},
        {"trace", FLAG_TEXT, &c.trace_path, "FILE", "recorded conversations, one JSON object a line", 0, 0},
        {"model", FLAG_TEXT, &c.options.model, "NAME", "model to ask for (the first of /v1/models)", 0, 0},
        {"api-key-file", FLAG_TEXT, &c.key_path, "FILE", "send the key in FILE", 0, 0},
        {"conversations", FLAG_INT, &c.conversations, "N", "only the first N conversations", 1, 1000000},
        {"turns", FLAG_INT, &c.turns, "N", "only the first N turns of each conversation", 1, 1000000},
        {"max-tokens", FLAG_INT, &c.options.max_tokens, "N", "longest answer in tokens (1024)", 1, 1000000},
        {"timeout", FLAG_INT, &c.options.timeout_s, "S", "seconds until an answer must be complete (600)", 1, 86400},
        {"tokenizer", FLAG_TEXT, &c.tokenizer_dir, "DIR",
         "count tokens with this model directory's tokenizer and template; without it the server's usage counts", 0, 0},
        {"official", FLAG_SWITCH, &c.options.official, NULL,
         "send exactly the official client's body: usage, and with it cached tokens, is not asked for", 0, 0},
        {"report-dir", FLAG_TEXT, &c.report_dir, "DIR", "write the report files to DIR", 0, 0},
        {"svg", FLAG_TEXT, &c.svg_path, "FILE", "write a chart of TTFT and prompt tokens by turn", 0, 0},
        {"dry-run", FLAG_SWITCH, &c.dry_run, NULL, "no server: count turns and prompt tokens (needs --tokenizer)", 0,
         0},
        {0},
    };
    const cli_spec spec = {
        .command = "bench perf",
        .operands = "--base-url URL --trace FILE [options]",
        .about =
            "Replays recorded agent conversations against any OpenAI-compatible server, one request at a "
            "time.\nExits with 1 when a turn got no answer (missing) or no whole one (unfinished).",
        .flags = flags,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    return run_command(&c);
}
