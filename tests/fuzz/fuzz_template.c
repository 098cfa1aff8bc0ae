/* Any bytes as a template, rendered with a small conversation: an answer or an error, quickly, and never a crash. */
#include <stddef.h>
#include <stdint.h>

#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char input[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"hi \\u00e9\"}, {\"role\": \"assistant\", \"content\": null, "
    "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": [true, null, 1.5]}}}]}], "
    "\"tools\": null, \"n\": 3, \"s\": \" text \", \"l\": [3, 1, 2], \"d\": {\"k\": \"v\"}, \"big\": "
    "99999999999999999999}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const template_limits limits = {.steps_max = 20000, .output_max = 1 << 20, .depth_max = 20};
    arena *a = arena_create();
    const json *variables;
    chat_template *t = NULL;
    buffer out = {0};
    error err = {0};
    HEARTH_ASSERT(json_parse(a, span_text(input), JSON_DEPTH_DEFAULT, &variables, &err) == ERR_OK);
    err_code code = template_compile(span_make((const char *)data, size), "t", &t, &err);
    if (code == ERR_OK) code = template_render(t, variables, &limits, &out, &err);
    HEARTH_ASSERT(code == ERR_OK || (err.message[0] && err.code == code));
    HEARTH_ASSERT(code != ERR_INTERNAL);
    template_destroy(t);
    buffer_deinit(&out);
    arena_destroy(a);
    return 0;
}
