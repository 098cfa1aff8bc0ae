/* Chat templates: an interpreter for the Jinja that model repositories use.
 *
 * Behaves as Hugging Face's environment does: trim_blocks, lstrip_blocks, loop controls, sandboxed, undefined values
 * print as nothing but fail when used, tojson = json.dumps(ensure_ascii=False), raise_exception, strftime_now.
 * Checkpoints are untrusted: steps, output, recursion and memory are limited, nothing outside the values is reachable.
 * A compiled template is immutable and may be rendered by several threads at once. */
#ifndef HEARTH_TEXT_TEMPLATE_H
#define HEARTH_TEXT_TEMPLATE_H

#include "base/error.h"
#include "base/json.h"

typedef struct chat_template chat_template;

/* name is used in messages ("chat_template.jinja:12:5: ..."). The source is copied. ERR_FORMAT on a syntax error. */
err_code template_compile(span source, const char *name, chat_template **out, error *err);
void template_destroy(chat_template *t);

typedef struct template_limits {
    uint64_t steps_max;  /* evaluated nodes and characters scanned; 0 = 50 million */
    uint64_t output_max; /* bytes; 0 = 256 MiB; also bounds intermediate strings */
    int depth_max;       /* nested calls; 0 = 100 */
} template_limits;

/* Appends the rendering to out. variables is a JSON object: its members are the template's variables (absent =
 * undefined, null = none). Codes: ERR_INVALID = the template called raise_exception, message exactly as it gave it;
 * ERR_LIMIT = a limit; ERR_UNSUPPORTED = Jinja that is not implemented, or an operation Python would refuse (TypeError,
 * undefined), with line and column. On failure out keeps its old size. */
err_code template_render(const chat_template *t, const json *variables, const template_limits *limits, buffer *out,
                         error *err);

#endif
