/* Command line: one function per command, options described by a table.
 *
 * A command prints its result on stdout and messages on stderr; it returns an exit status: 0 done, 1 failed, 2 wrong
 * usage. Only this layer prints or decides the exit status. */
#ifndef HEARTH_CLI_CLI_H
#define HEARTH_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum {
    FLAG_SWITCH, /* bool *: --name sets it */
    FLAG_ON_OFF, /* bool *: --name on|off */
    FLAG_INT,    /* int *, within [min, max] */
    FLAG_NUMBER, /* double *, within [min, max] */
    FLAG_U64,    /* uint64_t * */
    FLAG_BYTES,  /* uint64_t *: 512M, 8G, 1.5G, plain bytes */
    FLAG_TEXT,   /* const char ** */
    FLAG_CHOICE, /* int *: which of the words of `value` ("fp32|bf16|fp8"), from 1 */
    FLAG_REPEAT, /* flag_list *: may be given several times */
} flag_type;

typedef struct flag_list {
    const char *items[32];
    int count;
} flag_list;

typedef struct flag {
    const char *name; /* "port", given as --port VALUE or --port=VALUE */
    flag_type type;
    void *out;
    const char *value; /* placeholder in the help, NULL for a switch */
    const char *help;
    int min, max; /* FLAG_NUMBER; FLAG_INT, where both 0 = no limits */
} flag;

typedef struct cli_spec {
    const char *command;              /* "serve", "bench perf" */
    const char *operands;             /* "MODEL [options]" */
    const char *about;                /* one or two sentences */
    const flag *flags;                /* ends with a NULL name */
    int arguments_min, arguments_max; /* positional; at most 8 */
} cli_spec;

typedef struct cli_arguments {
    const char *items[8];
    int count;
} cli_arguments;

/* The choices of --kv, in the order of hearth_kv_type. */
#define KV_WORDS "fp32|bf16|fp8"
/* And of --activations, in the order of hearth_activations. */
#define ACTIVATIONS_WORDS "exact|nvfp4"

/* Parses argv[1..argc). Returns true to go on. False: the command is over with *status (help was printed, or a message
 * and a pointer to --help on stderr with status 2). */
bool cli_parse(const cli_spec *spec, int argc, char **argv, cli_arguments *arguments, int *status);

/* Prints "hearth: message" to stderr and returns 1. */
int cli_fail(const error *err);
/* Wrong usage: prints "hearth COMMAND: what is wrong" and a pointer to --help to stderr and returns 2. */
int cli_misuse(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} cli_command;

/* Runs the command that argv[1] names, with argv moved on to it; prints the list for --help, help, or a word that is none
 * of them. prefix: what comes before the command, "hearth" or "hearth dump". commands ends with a NULL name. */
int cli_dispatch(const char *prefix, const cli_command *commands, int argc, char **argv);

/* The commands; argv[0] is the command's name. */
int cmd_serve(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_dump(int argc, char **argv);

#endif
