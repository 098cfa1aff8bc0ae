/* hearth bench cache: what a cache of a given size reuses of recorded conversations; no model is run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "bench/bench_cache.h"
#include "bench/perf_report.h"
#include "cli/bench.h"
#include "cli/cli.h"

/* Qwen3.6-27B: the fp32 recurrent state of 48 layers with convolution state and hidden row; KV of 17 layers in FP8. */
enum { SNAPSHOT_MB_27B = 154, TOKEN_KB_27B = 32 };
#define CACHE_BYTES_DEFAULT (8ull << 30)

typedef struct cache_command {
    const char *trace_path, *order, *json_path;
    int conversations, turns;
    cache_bench_options options;
} cache_command;

static const char *const order_names[] = {"file", "interleave2", "round-robin"};

static void add_counts(buffer *out, const char *name, const uint64_t *values) {
    buffer_printf(out, "\"%s\": {", name);
    for (int i = 1; cache_bench_reason(i); i++)
        buffer_printf(out, "%s\"%s\": %llu", i > 1 ? ", " : "", cache_bench_reason(i), (unsigned long long)values[i]);
    buffer_text(out, "}, ");
}

static double share_of(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 0; }

static void write_json(const cache_command *c, const cache_bench_result *r, buffer *out) {
    const struct {
        const char *name;
        uint64_t value;
    } before[] = {{"seed", c->options.seed},
                  {"cache_bytes", c->options.cache_bytes},
                  {"snapshot_bytes", c->options.snapshot_bytes},
                  {"token_bytes", c->options.token_bytes},
                  {"turns", r->turns},
                  {"prompt_tokens", r->prompt_tokens},
                  {"prefilled_tokens", r->prefilled_tokens},
                  {"exact_tokens", r->exact_tokens}},
      after[] = {{"peak_bytes", r->peak_bytes},
                 {"peak_pages", (uint64_t)r->peak_pages},
                 {"peak_snapshots", (uint64_t)r->peak_snapshots},
                 {"evictions", r->evictions}};
    buffer_printf(out, "{\"order\": \"%s\", \"edit_rate\": ", order_names[c->options.order]);
    json_write_double(out, c->options.edit_rate);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        buffer_printf(out, ", \"%s\": %llu", before[i].name, (unsigned long long)before[i].value);
    buffer_text(out, ", \"hit_share\": ");
    json_write_double(out, share_of(r->prompt_tokens - r->prefilled_tokens, r->prompt_tokens));
    buffer_text(out, ", ");
    add_counts(out, "misses", r->turns_missed);
    add_counts(out, "lost_tokens", r->tokens_lost);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        buffer_printf(out, "\"%s\": %llu, ", after[i].name, (unsigned long long)after[i].value);
    buffer_text(out, "\"tokenize_s\": ");
    json_write_double(out, r->tokenize_s);
    buffer_text(out, ", \"cache_s\": ");
    json_write_double(out, r->cache_s);
    buffer_text(out, "}\n");
}

static void add_row(buffer *out, const char *name, double value) {
    buffer number = {0};
    report_count(&number, value);
    buffer_printf(out, "%-32s %12s\n", name, number.data);
    buffer_deinit(&number);
}

static void write_table(const cache_command *c, const cache_bench_result *r, buffer *out) {
    buffer_printf(out, "order %s, cache %.2f GB, edit rate %g, seed %llu\n", order_names[c->options.order],
                  (double)c->options.cache_bytes / 1e9, c->options.edit_rate, (unsigned long long)c->options.seed);
    add_row(out, "turns", (double)r->turns);
    add_row(out, "prompt tokens", (double)r->prompt_tokens);
    add_row(out, "prefilled tokens", (double)r->prefilled_tokens);
    add_row(out, "  with exact reuse", (double)r->exact_tokens);
    buffer_printf(out, "%-32s %11.2f %%\n", "reused",
                  100 * share_of(r->prompt_tokens - r->prefilled_tokens, r->prompt_tokens));
    for (int i = 1; cache_bench_reason(i); i++) {
        if (!r->turns_missed[i]) continue;
        buffer_printf(out, "  short: %-23s %12llu turns, %llu tokens\n", cache_bench_reason(i),
                      (unsigned long long)r->turns_missed[i], (unsigned long long)r->tokens_lost[i]);
    }
    buffer_printf(out, "%-32s %12.2f GB: %d pages, %d snapshots\n", "peak", (double)r->peak_bytes / 1e9, r->peak_pages,
                  r->peak_snapshots);
    add_row(out, "snapshots given up", (double)r->evictions);
    buffer_printf(out, "%-32s %12.2f s tokenizing, %.2f s in the cache\n", "time", r->tokenize_s, r->cache_s);
}

/* --json -: the JSON alone on stdout; --json FILE: the table on stdout. */
static int report(const cache_command *c, const cache_bench_result *r) {
    buffer record = {0}, table = {0};
    bool only_json = c->json_path && !strcmp(c->json_path, "-");
    write_json(c, r, &record);
    write_table(c, r, &table);
    const buffer *shown = only_json ? &record : &table;
    fwrite(shown->data, 1, shown->size, stdout);
    int status = 0;
    error err;
    if (c->json_path && !only_json &&
        file_write_atomic(c->json_path, span_make(record.data, record.size), &err) != ERR_OK)
        status = cli_fail(&err);
    buffer_deinit(&record);
    buffer_deinit(&table);
    return status;
}

static bool read_order(cache_command *c) {
    for (size_t i = 0; i < sizeof order_names / sizeof *order_names; i++)
        if (!strcmp(c->order, order_names[i])) {
            c->options.order = (cache_order)i;
            return true;
        }
    return false;
}

static int run_command(cache_command *c) {
    if (!c->trace_path) return cli_misuse("bench cache", "--trace FILE is missing");
    if (!c->options.tokenizer_dir) return cli_misuse("bench cache", "--tokenizer DIR is missing");
    if (!read_order(c)) return cli_misuse("bench cache", "--order is file, interleave2 or round-robin");
    if (!c->options.snapshot_bytes || !c->options.token_bytes)
        return cli_misuse("bench cache", "--snapshot-bytes and --token-bytes must not be 0");
    error err;
    trace t;
    if (trace_read(c->trace_path, (size_t)c->conversations, (size_t)c->turns, &t, &err) != ERR_OK)
        return cli_fail(&err);
    cache_bench_result result;
    err_code code = cache_bench_run(&t, &c->options, &result, &err);
    trace_deinit(&t);
    return code == ERR_OK ? report(c, &result) : cli_fail(&err);
}

int bench_cache(int argc, char **argv) {
    cache_command c = {.order = "file",
                       .options = {.cache_bytes = CACHE_BYTES_DEFAULT,
                                   .snapshot_bytes = SNAPSHOT_MB_27B * 1000000ull,
                                   .token_bytes = TOKEN_KB_27B * 1024,
                                   .seed = 1}};
    const flag flags[] = {
        {"trace", FLAG_TEXT, &c.trace_path, "FILE", "recorded conversations, one JSON object a line", 0, 0},
        {"tokenizer", FLAG_TEXT, &c.options.tokenizer_dir, "DIR",
         "model directory with tokenizer and template; weights are not needed", 0, 0},
        {"order", FLAG_TEXT, &c.order, "O", "file, interleave2 or round-robin (file)", 0, 0},
        {"cache-bytes", FLAG_BYTES, &c.options.cache_bytes, "N", "memory of pages and snapshots (8G)", 0, 0},
        {"edit-rate", FLAG_NUMBER, &c.options.edit_rate, "P",
         "chance, each turn, that a token of what was sent before is changed from then on (0)", 0, 1},
        {"seed", FLAG_U64, &c.options.seed, "N", "of the edits (1)", 0, 0},
        {"snapshot-bytes", FLAG_BYTES, &c.options.snapshot_bytes, "N", "one snapshot (154 MB, a 27B model)", 0, 0},
        {"token-bytes", FLAG_BYTES, &c.options.token_bytes, "N", "KV of one token (32 KiB, a 27B model)", 0, 0},
        {"conversations", FLAG_INT, &c.conversations, "N", "only the first N conversations", 1, 1000000},
        {"turns", FLAG_INT, &c.turns, "N", "only the first N turns of each conversation", 1, 1000000},
        {"json", FLAG_TEXT, &c.json_path, "FILE", "write the result as JSON; - is stdout, without the table", 0, 0},
        {0},
    };
    const cli_spec spec = {
        .command = "bench cache",
        .operands = "--trace FILE --tokenizer DIR [options]",
        .about =
            "How many prompt tokens of recorded conversations a prefix cache of a given size computes "
            "again.\nNo model is run: prompts go through the real cache with pools that only count.",
        .flags = flags,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    return run_command(&c);
}
