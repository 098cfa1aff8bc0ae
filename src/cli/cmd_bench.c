/* hearth bench: measures a server, or a part of this one. */
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/cli.h"

static const struct subject {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} subjects[] = {
    {"perf", bench_perf, "replay recorded agent conversations against a server; report speed, reuse and IoU"},
    {"cache", bench_cache,
     "prompt tokens of recorded conversations that a prefix cache computes again; no model is run"},
};

static void print_usage(FILE *out) {
    fputs("usage: hearth bench SUBJECT [options]\n\n", out);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        fprintf(out, "  %-8s %s\n", subjects[i].name, subjects[i].about);
    fputs("\nhearth bench SUBJECT --help shows a subject's options.\n", out);
}

int cmd_bench(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (!strcmp(argv[1], subjects[i].name)) return subjects[i].run(argc - 1, argv + 1);
    fprintf(stderr, "hearth: bench: unknown subject '%s'\n", argv[1]);
    print_usage(stderr);
    return 2;
}
