/* hearth bench: measures a server, or a part of this one. */
#include "cli/bench.h"
#include "cli/cli.h"

int cmd_bench(int argc, char **argv) {
    static const cli_command commands[] = {
        {"perf", bench_perf, "replay recorded agent conversations against a server; report speed, reuse and IoU"},
        {"cache", bench_cache,
         "prompt tokens of recorded conversations that a prefix cache computes again; no model is run"},
        {"draft", bench_draft, "tokens a step of every drafter on recorded answers; no model is run"},
        {0},
    };
    return cli_dispatch("hearth bench", commands, argc, argv);
}
