/* Speed of the tokenizer on recorded agent conversations: opening, encoding, re-encoding a text that grows.
 *
 * The text is what the trace's messages hold: system and user texts, reasoning, call arguments, tool results. Median of
 * the runs, with the lowest and highest. "first" is a fresh tokenizer's first encode. Processor time of the one thread
 * is what a core can do, whoever else uses the machine; elapsed time stands beside it for the encoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "qwen.h"
#include "text/tokenizer.h"

enum { RUNS = 9 };

typedef struct runs {
    double ms[RUNS];
} runs;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_runs(runs *r) { qsort(r->ms, RUNS, sizeof *r->ms, ascending); }

static void report_ms(const char *what, runs r) {
    sort_runs(&r);
    printf("tokenizer  %-44s %8.3f ms   [%.3f .. %.3f]\n", what, r.ms[RUNS / 2], r.ms[0], r.ms[RUNS - 1]);
}

static void report_rate(const char *what, size_t bytes, runs r) {
    sort_runs(&r);
    double scale = (double)bytes / 1e3;
    printf("tokenizer  %-44s %8.1f MB/s [%.1f .. %.1f]\n", what, scale / r.ms[RUNS / 2], scale / r.ms[RUNS - 1],
           scale / r.ms[0]);
}

static void check(err_code code, const error *err) {
    if (code == ERR_OK) return;
    fprintf(stderr, "bench_tokenizer: %s\n", err->message);
    exit(1);
}

static void append_string(buffer *text, const json *value) {
    if (json_is(value, JSON_STRING)) buffer_append(text, value->text.data, value->text.size);
}

static void append_row(buffer *text, const json *row) {
    append_string(text, json_get(row, "system"));
    append_string(text, json_get(row, "content"));
    append_string(text, json_get(row, "reasoning_content"));
    const json *calls = json_get(row, "tool_calls"), *results = json_get(row, "tool_results");
    for (uint32_t i = 0; json_at(calls, i); i++)
        append_string(text, json_get(json_get(json_at(calls, i), "function"), "arguments"));
    for (uint32_t i = 0; json_at(results, i); i++) append_string(text, json_get(json_at(results, i), "content"));
}

static void read_trace(const char *path, buffer *text) {
    buffer file = {0};
    error err;
    check(file_read(path, 1 << 30, &file, &err), &err);
    arena *a = arena_create();
    for (char *line = file.data, *end; (end = memchr(line, '\n', (size_t)(file.data + file.size - line)));
         line = end + 1) {
        const json *row = NULL;
        arena_reset(a);
        check(json_parse(a, span_make(line, (size_t)(end - line)), JSON_DEPTH_DEFAULT, &row, &err), &err);
        append_row(text, row);
    }
    arena_destroy(a);
    buffer_deinit(&file);
}

static double thread_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Processor time of one encode. */
static double encode_ms(const tokenizer *t, span text, token_list *ids) {
    error err;
    ids->count = 0;
    double start = thread_ms();
    check(tokenizer_encode(t, text, true, ids, &err), &err);
    return thread_ms() - start;
}

static void bench_encode(const char *dir, span text) {
    runs opening, first, again, elapsed;
    token_list ids = {0};
    for (int i = 0; i < RUNS; i++) {
        tokenizer *t = NULL;
        error err;
        double start = thread_ms();
        check(tokenizer_open(dir, &t, &err), &err);
        opening.ms[i] = thread_ms() - start;
        first.ms[i] = encode_ms(t, text, &ids);
        uint64_t start_ns = clock_ns();
        again.ms[i] = encode_ms(t, text, &ids);
        elapsed.ms[i] = clock_ms_since(start_ns);
        tokenizer_close(t);
    }
    printf("tokenizer  %zu bytes, %zu ids\n", text.size, ids.count);
    report_ms("open (248,077 tokens)", opening);
    report_rate("encode, first", text.size, first);
    report_rate("encode, again", text.size, again);
    report_rate("encode, again, elapsed time", text.size, elapsed);
    token_list_deinit(&ids);
}

static double grow_ms(token_memo *m, const tokenizer *t, buffer *text, const char *message) {
    const int32_t *ids;
    size_t count;
    error err;
    buffer_append(text, message, 1000);
    buffer_text(text, "<|im_end|>\n<|im_start|>user\n");
    uint64_t start = clock_ns();
    check(token_memo_encode(m, t, span_make(text->data, text->size), &ids, &count, NULL, &err), &err);
    return clock_ms_since(start);
}

/* A conversation of 80 kB to which messages of 1 kB are added; each time the whole text is handed over. */
static void bench_memo(const tokenizer *t, span source) {
    buffer text = {0};
    token_memo *m = token_memo_create();
    runs growing;
    const char *message = source.data;
    for (; text.size < 80000; message += 1000) grow_ms(m, t, &text, message);
    for (int i = 0; i < RUNS; i++, message += 1000) growing.ms[i] = grow_ms(m, t, &text, message);
    report_ms("memo, 80 kB grown by 1 kB, elapsed time", growing);
    token_memo_destroy(m);
    buffer_deinit(&text);
}

static void bench_long_word(const tokenizer *t) {
    buffer text = {0};
    token_list ids = {0};
    runs one;
    while (text.size < 1000000) buffer_char(&text, 'a');
    for (int i = 0; i < RUNS; i++) one.ms[i] = encode_ms(t, span_make(text.data, text.size), &ids);
    report_ms("one word of 1 MB", one);
    token_list_deinit(&ids);
    buffer_deinit(&text);
}

int main(void) {
    const char *dir = qwen_tokenizer_dir(), *root = getenv("HEARTH_SHARED");
    if (!dir) {
        puts("tokenizer  skipped: no reference data (HEARTH_SHARED or ../shared)");
        return 0;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/mlperf/agentic_coding_2.5h.jsonl", root && *root ? root : "../shared");
    buffer text = {0};
    read_trace(path, &text);
    span all = span_make(text.data, text.size);
    bench_encode(dir, all);
    tokenizer *t = NULL;
    error err;
    check(tokenizer_open(dir, &t, &err), &err);
    bench_memo(t, all);
    bench_long_word(t);
    tokenizer_close(t);
    buffer_deinit(&text);
    return 0;
}
