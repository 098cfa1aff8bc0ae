/* The variables of a template as transformers passes them, from a request object. */
#ifndef HEARTH_TEXT_CHAT_INPUT_H
#define HEARTH_TEXT_CHAT_INPUT_H

#include "base/error.h"
#include "base/json.h"

/* input: messages, tools and whatever else the template is to see, as it is. `tools` becomes null and
 * `add_generation_prompt` false where they are absent. `parse_arguments`: true is taken off and makes every tool call's
 * `arguments` that is a JSON string the value it spells. The result borrows from input. */
err_code chat_input_variables(arena *a, const json *input, const json **out, error *err);

/* The value's node again, free to be placed in another tree; children are shared. */
json *chat_input_share(arena *a, const json *value);

#endif
