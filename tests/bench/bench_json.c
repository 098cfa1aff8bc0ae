/* Speed of the JSON reader and writer on recorded agent turns, line by line as a server meets them: one arena, reset
 * for every document. Prints the median of the runs and their spread. Usage: bench_json [FILE.jsonl]; without a file
 * the trace under HEARTH_SHARED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"

enum { RUNS = 11 };

typedef struct lines {
    span *items;
    size_t count;
} lines;

static lines split_lines(span text) {
    lines all = {0};
    size_t capacity = 0;
    for (const char *p = text.data, *end = p + text.size; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t size = (size_t)((newline ? newline : end) - p);
        if (all.count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            all.items = mem_grow(all.items, capacity, sizeof *all.items);
        }
        if (size) all.items[all.count++] = span_make(p, size);
        p += size + 1;
    }
    return all;
}

static const json *parse(arena *a, span line) {
    const json *value = NULL;
    error err = {0};
    if (json_parse(a, line, JSON_DEPTH_DEFAULT, &value, &err) != ERR_OK) {
        fprintf(stderr, "bench_json: %s\n", err.message);
        exit(1);
    }
    return value;
}

static void read_lines(const lines *all) {
    arena *a = arena_create();
    for (size_t i = 0; i < all->count; i++) {
        arena_reset(a);
        parse(a, all->items[i]);
    }
    arena_destroy(a);
}

static void validate_lines(const lines *all) {
    for (size_t i = 0; i < all->count; i++)
        if (!utf8_valid(all->items[i])) exit(1);
}

/* Trees of all lines, made once, for the writer. */
static const json **trees;

static void write_lines(const lines *all) {
    buffer out = {0};
    for (size_t i = 0; i < all->count; i++) {
        buffer_clear(&out);
        json_write(&out, trees[i], JSON_SPACED);
    }
    buffer_deinit(&out);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*run)(const lines *), const lines *all, size_t bytes) {
    double rates[RUNS];
    run(all);
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = clock_ns();
        run(all);
        rates[i] = (double)bytes / 1e3 / clock_ms_since(start);
    }
    qsort(rates, RUNS, sizeof *rates, compare);
    printf("%s: %.0f MB/s (median of %d, %.0f to %.0f)\n", name, rates[RUNS / 2], RUNS, rates[0], rates[RUNS - 1]);
}

int main(int argc, char **argv) {
    const char *root = getenv("HEARTH_SHARED");
    char *path = argc > 1 ? mem_copy(argv[1], strlen(argv[1]))
                          : file_join(root ? root : "../shared", "mlperf/agentic_coding_2.5h.jsonl");
    error err;
    buffer text;
    if (file_read(path, (size_t)1 << 30, &text, &err) != ERR_OK) {
        printf("json: skipped, %s\n", err.message);
        free(path);
        return 0;
    }
    lines all = split_lines(span_make(text.data, text.size));
    arena *a = arena_create();
    trees = mem_zero(all.count, sizeof *trees);
    for (size_t i = 0; i < all.count; i++) trees[i] = parse(a, all.items[i]);
    measure("json", read_lines, &all, text.size);
    measure("json write", write_lines, &all, text.size);
    measure("utf8 validation", validate_lines, &all, text.size);
    free(trees);
    arena_destroy(a);
    free(all.items);
    buffer_deinit(&text);
    free(path);
    return 0;
}
