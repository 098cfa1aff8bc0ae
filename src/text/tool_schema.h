/* Value types of tool arguments: from the text between <parameter=...> tags to a JSON value, by the tool's JSON schema.
 *
 * The model writes values without quotes, so the text alone does not tell "123" from 123: the schema decides.
 * docs/tool-calls.md has the rules. */
#ifndef HEARTH_TEXT_TOOL_SCHEMA_H
#define HEARTH_TEXT_TOOL_SCHEMA_H

#include "base/json.h"

/* What a value may be: a set of JSON types, with numbers split into those with and without a fraction. */
enum {
    VALUE_STRING = 1,
    VALUE_INTEGER = 2,
    VALUE_FRACTION = 4,
    VALUE_BOOLEAN = 8,
    VALUE_NULL = 16,
    VALUE_ARRAY = 32,
    VALUE_OBJECT = 64,
    VALUE_NUMBER = VALUE_INTEGER | VALUE_FRACTION,
    VALUE_ANY = 127,
};

typedef struct value_type {
    unsigned kinds;      /* VALUE_ bits, never 0 */
    const json *choices; /* `enum` array that applies, or NULL */
    bool declared;       /* the parameter is in the tool's `properties` */
} value_type;

/* The first tool of that name ({"name", "parameters", ...}), or NULL. tools may be NULL. */
const json *tool_find(const json *tools, span name);

/* function: from tool_find, may be NULL: then, and for parameters it does not declare, the type is string. */
value_type tool_value_type(const json *function, span key);

/* Whether the text so far settles that the value is a string, so that it can be streamed. text only grows between
 * calls; *scanned starts at 0 and keeps the place (each byte is looked at once). False = not yet known. */
bool tool_value_is_string(value_type type, span text, size_t *scanned);

/* Appends the whole value as JSON: the text itself where it is JSON of an allowed type, else a JSON string. */
void tool_value_write(buffer *out, value_type type, span text);

#endif
