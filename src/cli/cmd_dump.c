/* hearth dump: the steps between a request and a token, one at a time. */
#include "cli/cli.h"
#include "cli/dump.h"

int cmd_dump(int argc, char **argv) {
    static const cli_command commands[] = {
        {"tokens", dump_tokens, "DIR < TEXT: the ids of a text, as a JSON array"},
        {"prompt", dump_prompt, "DIR --request FILE: the text that the chat template makes of a request"},
        {"logits", dump_logits, "DIR --ids FILE --out FILE: the model's logits"},
        {0},
    };
    return cli_dispatch("hearth dump", commands, argc, argv);
}
