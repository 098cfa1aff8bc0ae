/* hearth: one binary, a command per file (cmd_<name>.c). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "hearth.h"

static const cli_command commands[] = {
    {"serve", cmd_serve, "serve a checkpoint over the OpenAI HTTP API"},
    {"chat", cmd_chat, "talk to a checkpoint in the terminal"},
    {"bench", cmd_bench, "replay recorded agent conversations against a server"},
    {"inspect", cmd_inspect, "show a checkpoint's tensors, formats and memory budget"},
    {"synth", cmd_synth, "write a random checkpoint of a named shape"},
    {"dump", cmd_dump, "tokens, prompts and logits for bug reports"},
    {0},
};

/* A standard descriptor that the caller left closed would go to the next file or client, which would then get what is
 * printed. It is taken by one that fails, as a closed one does. */
static void occupy_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

static int run(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        puts("hearth " HEARTH_VERSION);
        return 0;
    }
    return cli_dispatch("hearth", commands, argc, argv);
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
