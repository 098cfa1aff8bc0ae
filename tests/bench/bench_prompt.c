/* Host work of a turn: from messages to token ids, on the recorded conversation with the official template and tokenizer.
 *
 * The measured turn is the first whose prompt has 20,000 tokens and grew by 300; the memo holds the turn before, as in a
 * running conversation. Prints for each measure the median and the
 * spread of the runs. Usage: bench_prompt; needs the reference data under HEARTH_SHARED. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "qwen.h"
#include "text/chat.h"
#include "text/message.h"
#include "trace.h"

enum { RUNS = 41, TOKENS_MIN = 20000, NEW_MIN = 300 };

typedef struct bench {
    chat_format *format;
    chat_template *template;
    trace trace;
    int turn;
    size_t before, tokens; /* of the prompt before and the measured one */
    arena *memory;
} bench;

static void check(err_code code, const error *err) {
    if (code == ERR_OK) return;
    fprintf(stderr, "bench_prompt: %s\n", err->message);
    exit(1);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, double *ms) {
    qsort(ms, RUNS, sizeof *ms, compare);
    printf("%-44s median %7.3f ms, from %.3f to %.3f\n", name, ms[RUNS / 2], ms[0], ms[RUNS - 1]);
}

/* Template and ids of one turn; its time in ms. */
static double run_turn(bench *b, chat_format *f, int turn, size_t *tokens) {
    chat_prompt p;
    error err = {0};
    arena_reset(b->memory);
    json *messages = trace_messages(b->memory, &b->trace, turn);
    uint64_t start = clock_ns();
    check(chat_format_prompt(f, messages, json_get(b->trace.rows[0], "tools"), NULL, &p, &err), &err);
    double ms = clock_ms_since(start);
    if (tokens) *tokens = p.ids.count;
    chat_prompt_deinit(&p);
    return ms;
}

static void measure_next_turn(bench *b) {
    double ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        run_turn(b, b->format, b->turn - 1, NULL);
        ms[i] = run_turn(b, b->format, b->turn, NULL);
    }
    char name[96];
    snprintf(name, sizeof name, "prompt of %zu tokens, %zu of them new", b->tokens, b->tokens - b->before);
    report(name, ms);
}

static void measure_same_turn(bench *b) {
    double ms[RUNS];
    for (int i = 0; i < RUNS; i++) ms[i] = run_turn(b, b->format, b->turn, NULL);
    report("the same prompt again", ms);
}

/* Normalised messages through the template alone. */
static void measure_template(bench *b) {
    double ms[RUNS];
    error err = {0};
    const json *normal;
    buffer out = {0};
    arena_reset(b->memory);
    check(messages_normalize(b->memory, trace_messages(b->memory, &b->trace, b->turn), &normal, &err), &err);
    json *variables = json_new(b->memory, JSON_OBJECT);
    json_set(variables, span_text("messages"), trace_share(b->memory, normal));
    trace_set(b->memory, variables, "tools", json_get(b->trace.rows[0], "tools"));
    json_set(variables, span_text("add_generation_prompt"), json_new(b->memory, JSON_TRUE));
    for (int i = 0; i < RUNS; i++) {
        buffer_clear(&out);
        uint64_t start = clock_ns();
        check(template_render(b->template, variables, NULL, &out, &err), &err);
        ms[i] = clock_ms_since(start);
    }
    char name[96];
    snprintf(name, sizeof name, "template alone: %u messages, %zu kB", normal->count, out.size / 1000);
    report(name, ms);
    buffer_deinit(&out);
}

static void measure_compile(span source) {
    double ms[RUNS];
    error err = {0};
    for (int i = 0; i < RUNS; i++) {
        chat_template *t;
        uint64_t start = clock_ns();
        check(template_compile(source, "t", &t, &err), &err);
        ms[i] = clock_ms_since(start);
        template_destroy(t);
    }
    report("compile the template", ms);
}

static bool open_all(bench *b, buffer *source, error *err) {
    const char *root = getenv("HEARTH_SHARED"), *dir = qwen_tokenizer_dir();
    char path[1200], trace_path[1200];
    if (!root || !*root) root = "../shared";
    snprintf(path, sizeof path, "%s/qwen/qwen36_chat_template.jinja", root);
    snprintf(trace_path, sizeof trace_path, "%s/mlperf/agentic_coding_2.5h.jsonl", root);
    if (!dir || !file_exists(path) || !file_exists(trace_path)) return false;
    check(file_read(path, 1 << 20, source, err), err);
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    check(file_write_atomic(path, span_make(source->data, source->size), err), err);
    check(template_compile(span_make(source->data, source->size), "t", &b->template, err), err);
    check(chat_format_open(dir, false, &b->format, err), err);
    check(trace_open(&b->trace, trace_path, err), err);
    return true;
}

int main(void) {
    bench b = {.memory = arena_create()};
    buffer source = {0};
    error err = {0};
    if (!open_all(&b, &source, &err)) {
        puts("bench_prompt: skip: the reference data is not here (HEARTH_SHARED or ../shared)");
        return 0;
    }
    for (; b.turn < trace_turns(&b.trace) && (b.tokens < TOKENS_MIN || b.tokens - b.before < NEW_MIN); b.turn++) {
        b.before = b.tokens;
        run_turn(&b, b.format, b.turn, &b.tokens);
    }
    b.turn--;
    measure_next_turn(&b);
    measure_same_turn(&b);
    measure_template(&b);
    measure_compile(span_make(source.data, source.size));
    trace_close(&b.trace);
    chat_format_close(b.format);
    template_destroy(b.template);
    buffer_deinit(&source);
    arena_destroy(b.memory);
    return 0;
}
