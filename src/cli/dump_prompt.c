/* hearth dump prompt: what a chat template makes of a request. Needs neither weights nor a tokenizer. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/dump.h"
#include "text/chat.h"
#include "text/chat_input.h"

enum { REQUEST_MAX = 256 << 20, TEMPLATE_MAX = 4 << 20 };

static err_code open_template(const char *dir, const char *file, bool tools, chat_template **out, error *err) {
    buffer source = {0};
    if (!file) return chat_template_open(dir, tools, out, err);
    const char *slash = strrchr(file, '/');
    err_code code = file_read(file, TEMPLATE_MAX, &source, err);
    if (code == ERR_OK)
        code = template_compile(span_make(source.data, source.size), slash ? slash + 1 : file, out, err);
    buffer_deinit(&source);
    return code;
}

static err_code render(const char *dir, const char *request, const char *file, arena *a, buffer *text, buffer *out,
                       error *err) {
    const json *input, *variables;
    chat_template *t;
    error inner;
    ERR_TRY(file_read(request, REQUEST_MAX, text, err));
    if (json_parse(a, span_make(text->data, text->size), JSON_DEPTH_DEFAULT, &input, &inner) != ERR_OK)
        ERR_FAIL(err, ERR_FORMAT, "%s: %s", request, inner.message);
    ERR_TRY(chat_input_variables(a, input, &variables, err));
    ERR_TRY(open_template(dir, file, !json_is(json_get(variables, "tools"), JSON_NULL), &t, err));
    err_code code = template_render(t, variables, NULL, out, err);
    template_destroy(t);
    return code;
}

int dump_prompt(int argc, char **argv) {
    const char *request = NULL, *file = NULL;
    const flag flags[] = {
        {"request", FLAG_TEXT, &request, "FILE", "JSON object of the template's variables: messages, tools ...", 0, 0},
        {"template", FLAG_TEXT, &file, "FILE", "use this template instead of the directory's", 0, 0},
        {0},
    };
    const cli_spec spec = {
        .command = "dump prompt",
        .operands = "DIR --request FILE [--template FILE]",
        .about =
            "Prints the text that the chat template makes of a request, given to it as it is.\n"
            "\"parse_arguments\": true in the request parses tool arguments that are JSON strings first.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    if (!request) return cli_misuse("dump prompt", "--request FILE is missing");
    error err;
    buffer text = {0}, out = {0};
    arena *a = arena_create();
    err_code code = render(arguments.items[0], request, file, a, &text, &out, &err);
    if (code == ERR_OK) {
        fwrite(out.data, 1, out.size, stdout);
    } else if (code == ERR_INVALID) {
        fprintf(stderr, "%s\n", err.message); /* the template's own words, alone */
    } else {
        cli_fail(&err);
    }
    arena_destroy(a);
    buffer_deinit(&text);
    buffer_deinit(&out);
    return code == ERR_OK ? 0 : 1;
}
