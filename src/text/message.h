/* The message model: every history that agents send, normalised once to what chat templates expect.
 *
 * docs/messages.md has the table of accepted forms and their meaning. */
#ifndef HEARTH_TEXT_MESSAGE_H
#define HEARTH_TEXT_MESSAGE_H

#include "base/error.h"
#include "base/json.h"

/* messages: the request's array as parsed. *out: a new array in the arena (borrowing strings) in which
 * - role "developer" is "system"; leading system messages are merged into one (joined by a blank line), a later one is
 *   rendered where it stands as a user message only if documented so in docs/messages.md, else refused by index;
 * - content is a string or a list of text parts joined to a string, absent or null becomes "" (never the word None);
 * - tool_calls is a non-empty array or absent, each {"id", "type", "function": {"name", "arguments": object}}; arguments
 *   given as a JSON string are parsed, "" is {}, broken JSON and non-objects are refused with the index or, for history
 *   that a model produced, kept under a documented key;
 * - `reasoning` and `reasoning_content` are one field, reasoning_content;
 * - anything that cannot be honoured is an error "messages[3].content[1]: ..." (ERR_INVALID). */
err_code messages_normalize(arena *a, const json *messages, const json **out, error *err);

/* tools: the request's array. NULL, null and [] give *out = NULL. Checks the shape, keeps the JSON as it is. */
err_code tools_normalize(arena *a, const json *tools, const json **out, error *err);

#endif
