/* hearth: one binary, a command per file (cmd_<name>.c). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "hearth.h"

/* Weak until every command has landed, so that a partial tree links. */
#pragma weak cmd_serve
#pragma weak cmd_chat
#pragma weak cmd_bench
#pragma weak cmd_inspect
#pragma weak cmd_synth
#pragma weak cmd_dump

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} commands[] = {
    {"serve", cmd_serve, "serve a checkpoint over the OpenAI HTTP API"},
    {"chat", cmd_chat, "talk to a checkpoint in the terminal"},
    {"bench", cmd_bench, "replay recorded agent conversations against a server"},
    {"inspect", cmd_inspect, "show a checkpoint's tensors, formats and memory budget"},
    {"synth", cmd_synth, "write a random checkpoint of a named shape"},
    {"dump", cmd_dump, "tokens, prompts and logits for bug reports"},
};

static void print_usage(FILE *out) {
    fputs("usage: hearth COMMAND [options]\n\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].run) fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].about);
    fputs("\nhearth COMMAND --help shows a command's options.\n", out);
}

/* A standard descriptor that the caller left closed would go to the next file or client, which would then get what is
 * printed. It is taken by one that fails, as a closed one does. */
static void occupy_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("hearth " HEARTH_VERSION);
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].run && !strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "hearth: unknown command '%s'\n", argv[1]);
    print_usage(stderr);
    return 2;
}

int main(int argc, char **argv) {
    occupy_standard_files();
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves is an error of write(), not the end of the server */
    int status = run(argc, argv);
    /* A result that did not arrive is a failure, whatever the command thinks. */
    if (status || (!ferror(stdout) && !fflush(stdout))) return status;
    if (errno != EPIPE) fprintf(stderr, "hearth: standard output: cannot write\n");
    return 1;
}
