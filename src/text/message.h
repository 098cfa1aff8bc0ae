/* The message model: every history that agents send, normalised once to what chat templates expect.
 *
 * docs/messages.md has the table of accepted forms and their meaning. The rule behind it: a form is either given a
 * meaning that the document states, or refused with its place in the request; nothing is dropped in silence. */
#ifndef HEARTH_TEXT_MESSAGE_H
#define HEARTH_TEXT_MESSAGE_H

#include "base/error.h"
#include "base/json.h"

enum {
    MESSAGES_MAX = 10000,     /* messages of one request */
    MESSAGE_FIELDS_MAX = 64,  /* members of one message */
    MESSAGE_CALLS_MAX = 1024, /* tool calls of one message */
    TOOLS_MAX = 4096,         /* tools of one request */
    TOOL_NAME_MAX = 256,      /* bytes; also the longest name the output parser looks for */
};

/* messages: the request's array as parsed. *out: a new array in the arena (borrowing strings) in which
 * - role is system, user, assistant or tool; "developer" is system, "function" is tool; only the first message can be
 *   system: leading ones are merged (joined by a blank line), a later one is a user message "<system>\n...\n</system>";
 * - content is a string: text parts are joined, absent or null is "" (never the word None);
 * - tool_calls is a non-empty array or absent, each {"id", "type", "function": {"name", "arguments": object}};
 *   arguments given as a JSON string are parsed, "" is {}, what is no object is kept as {"arguments": what it was};
 * - tool results that follow their calls stand in the order of the calls and carry tool_call_id;
 * - `reasoning`, `reasoning_content` and `thinking` are one field, reasoning_content, absent when empty;
 * - fields that are not named here are handed to the template as they are.
 * Whatever cannot be honoured is an ERR_INVALID such as "messages[3].content[1]: image_url parts are not supported". */
err_code messages_normalize(arena *a, const json *messages, const json **out, error *err);

/* tools: the request's array. NULL, null and [] give *out = NULL. Checks the shape, keeps the JSON as it is. */
err_code tools_normalize(arena *a, const json *tools, const json **out, error *err);

#endif
