/* hearth synth: writes a random checkpoint of a named shape. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "model/synth.h"

int cmd_synth(int argc, char **argv) {
    synth_options options = {0};
    int threads = 0;
    const flag flags[] = {
        {"seed", FLAG_U64, &options.seed, "N", "seed of the weights (0)", 0, 0},
        {"tokenizer", FLAG_TEXT, &options.tokenizer_dir, "DIR",
         "copy tokenizer.json, tokenizer_config.json and chat_template.jinja from DIR", 0, 0},
        {"threads", FLAG_INT, &threads, "N", "CPU threads (all)", 1, 1024},
        {0},
    };
    const cli_spec spec = {
        .command = "synth",
        .operands = "PRESET DIR [options]",
        .about =
            "Writes a random bf16 checkpoint to DIR. PRESET: tiny (4 layers, hidden 128), 0.8b, 2b, 4b, 9b "
            "or 27b.\nThe tokenizer sets the vocabulary; without --tokenizer a byte-level one is written.",
        .flags = flags,
        .arguments_min = 2,
        .arguments_max = 2,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    error err;
    if (pool_create(threads, &options.pool, &err) != ERR_OK) return cli_fail(&err);
    progress_bar bar;
    progress_begin(&bar, "writing");
    options.progress = progress_update;
    options.progress_context = &bar;
    uint64_t start = clock_ns();
    err_code code = synth_write(arguments.items[0], arguments.items[1], &options, &err);
    progress_end(&bar);
    pool_destroy(options.pool);
    if (code != ERR_OK) return cli_fail(&err);
    double seconds = clock_ms_since(start) / 1e3;
    printf("%s: %.2f GB in %.1f s (%.2f GB/s)\n", arguments.items[1], (double)bar.total / 1e9, seconds,
           (double)bar.total / 1e9 / seconds);
    return 0;
}
