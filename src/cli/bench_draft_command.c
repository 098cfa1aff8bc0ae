/* hearth bench draft: tokens a step with each drafter, on recorded answers; needs a tokenizer and no weights. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "bench/bench_draft.h"
#include "cli/bench.h"
#include "cli/cli.h"

typedef struct draft_command {
    const char *trace_path, *tokenizer_dir, *json_path;
    int conversations, turns;
    draft_bench_options options;
} draft_command;

/* "-" is standard output, which then holds the JSON alone. */
static err_code write_report(const draft_command *c, const draft_bench_report *report, error *err) {
    buffer text = {0}, written = {0};
    draft_bench_text(report, &c->options, &text);
    draft_bench_json(report, &c->options, &written);
    bool alone = c->json_path && !strcmp(c->json_path, "-");
    const buffer *shown = alone ? &written : &text;
    err_code code = ERR_OK;
    if (c->json_path && !alone) code = file_write_atomic(c->json_path, span_make(written.data, written.size), err);
    if (code == ERR_OK && (fwrite(shown->data, 1, shown->size, stdout) != shown->size || fflush(stdout)))
        code = error_set(err, ERR_IO, __FILE__, __LINE__, "standard output could not be written");
    buffer_deinit(&text);
    buffer_deinit(&written);
    return code;
}

static err_code run_command(const draft_command *c, error *err) {
    trace t;
    turn_tokens *tokens = NULL;
    draft_bench_report report;
    ERR_TRY(trace_read(c->trace_path, (size_t)c->conversations, (size_t)c->turns, &t, err));
    err_code code = turn_tokens_open(c->tokenizer_dir, &tokens, err);
    if (code == ERR_OK) code = draft_bench_run(&t, tokens, &c->options, &report, err);
    if (code == ERR_OK) code = write_report(c, &report, err);
    turn_tokens_close(tokens);
    trace_deinit(&t);
    return code;
}

int bench_draft(int argc, char **argv) {
    draft_command c = {
        .options = {.acceptance = ".87,.80,.75,.72,.70", .acceptance_top2 = ".93,.88,.84,.82,.80", .nodes = 16}};
    const flag flags[] = {
        {"trace", FLAG_TEXT, &c.trace_path, "FILE", "recorded conversations, one JSON object a line", 0, 0},
        {"tokenizer", FLAG_TEXT, &c.tokenizer_dir, "DIR", "tokenizer and template of this model directory", 0, 0},
        {"draft-nodes", FLAG_INT, &c.options.nodes, "N", "most drafts a step, 1 to 63 (16)", 1, 63},
        {"mtp-acceptance", FLAG_TEXT, &c.options.acceptance, "LIST",
         "simulated: P(best MTP draft right) by depth (.87,.80,.75,.72,.70); the last repeats", 0, 0},
        {"mtp-top2", FLAG_TEXT, &c.options.acceptance_top2, "LIST",
         "simulated: P(one of the two best right) by depth (.93,.88,.84,.82,.80)", 0, 0},
        {"conversations", FLAG_INT, &c.conversations, "N", "only the first N conversations", 1, 1000000},
        {"turns", FLAG_INT, &c.turns, "N", "only the first N turns of each conversation", 1, 1000000},
        {"json", FLAG_TEXT, &c.json_path, "FILE",
         "write the figures to FILE; -: to standard output, in place of the table", 0, 0},
        {0},
    };
    const cli_spec spec = {
        .command = "bench draft",
        .operands = "--trace FILE --tokenizer DIR [options]",
        .about =
            "Counts how many tokens a step yields with each drafter on the recorded answers of a trace. No model is "
            "run:\ncontext lookup is real, the MTP layer's acceptance is simulated.",
        .flags = flags,
    };
    cli_arguments arguments;
    int status;
    error err;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    if (!c.trace_path) return cli_misuse("bench draft", "--trace FILE is missing");
    if (!c.tokenizer_dir) return cli_misuse("bench draft", "--tokenizer DIR is missing");
    if (draft_bench_check(&c.options, &err) != ERR_OK) return cli_misuse("bench draft", "%s", err.message);
    return run_command(&c, &err) == ERR_OK ? 0 : cli_fail(&err);
}
