/* hearth dump: the steps between a request and a token, one at a time. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/dump.h"

static const struct subject {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} subjects[] = {
    {"tokens", dump_tokens, "DIR < TEXT: the ids of a text, as a JSON array"},
    {"prompt", dump_prompt, "DIR --request FILE.json: the text that the chat template makes of a request"},
    {"logits", dump_logits, "DIR --ids FILE.json --out FILE.npy: the model's logits"},
};

static void print_usage(FILE *out) {
    fputs("usage: hearth dump SUBJECT ...\n\nShows what happens between a request and a token.\n\n", out);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        fprintf(out, "  %-8s %s\n", subjects[i].name, subjects[i].about);
    fputs("\nhearth dump SUBJECT --help shows a subject's options.\n", out);
}

int cmd_dump(int argc, char **argv) {
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
    fprintf(stderr, "hearth: dump: unknown subject '%s'\n", argv[1]);
    print_usage(stderr);
    return 2;
}
