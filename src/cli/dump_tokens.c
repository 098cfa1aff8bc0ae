/* hearth dump tokens DIR < text: what the tokenizer makes of exactly these bytes. Needs no weights. */
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/dump.h"
#include "text/tokenizer.h"

enum { TEXT_SIZE_MAX = 1 << 28 };

static err_code read_and_encode(const char *dir, token_list *ids, error *err) {
    tokenizer *t = NULL;
    ERR_TRY(tokenizer_open(dir, &t, err));
    buffer text = {0};
    err_code code = file_read("-", TEXT_SIZE_MAX, &text, err);
    if (code == ERR_OK) code = tokenizer_encode(t, span_make(text.data, text.size), true, ids, err);
    buffer_deinit(&text);
    tokenizer_close(t);
    return code;
}

static int print_ids(const token_list *ids) {
    putchar('[');
    for (size_t i = 0; i < ids->count; i++) printf("%s%" PRId32, i ? ", " : "", ids->ids[i]);
    fputs("]\n", stdout);
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    perror("hearth: standard output");
    return 1;
}

int dump_tokens(int argc, char **argv) {
    static const flag flags[] = {{0}};
    static const cli_spec spec = {
        .command = "dump tokens",
        .operands = "DIR < TEXT",
        .about =
            "Prints the token ids of the bytes on standard input as a JSON array. Added tokens such as <|im_end|>\n"
            "are recognised; nothing is added. DIR needs tokenizer.json, and no weights.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    token_list ids = {0};
    error err;
    status = read_and_encode(arguments.items[0], &ids, &err) == ERR_OK ? print_ids(&ids) : cli_fail(&err);
    token_list_deinit(&ids);
    return status;
}
