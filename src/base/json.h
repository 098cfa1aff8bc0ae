/* JSON (RFC 8259), strict, lossless: number text, key order and byte offsets are kept.
 *
 * Own code because the packaged libraries change what passes through them (large integers clipped, NaN and single
 * quotes accepted, lone surrogates let in), and tool arguments must come back as they went in.
 *
 * The reader builds an immutable tree in an arena that borrows from the source text: the text must outlive the tree.
 * Refused, with a byte offset: anything RFC 8259 refuses, invalid UTF-8, lone surrogates, nesting past depth_max,
 * text after the value. Repeated object keys are kept in order; json_get returns the last, as Python does. */
#ifndef HEARTH_BASE_JSON_H
#define HEARTH_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_type;

typedef struct json json;
struct json {
    json_type type;
    uint32_t count;    /* items of an array, members of an object */
    span text;         /* JSON_NUMBER: source text. JSON_STRING: decoded bytes, may hold NUL */
    span source;       /* the whole value as it stands in the source text */
    const json *first; /* first item or member; NULL when empty */
    const json *last;  /* last item or member: where json_append puts the next */
    const json *next;  /* next sibling */
    span key;          /* of a member: decoded key */
};

enum { JSON_DEPTH_DEFAULT = 128 };

/* Parses text whole (under 4 GiB). The tree lives in a; it borrows text. ERR_FORMAT with "byte N: what is wrong", N
 * counted from 0; ERR_LIMIT when containers nest deeper than depth_max. Work and memory are linear in the size of the
 * text: at worst some 50 bytes of tree per byte ("[1,1,1"), so callers limit the text they accept. */
err_code json_parse(arena *a, span text, int depth_max, const json **out, error *err);

/* Lookups accept NULL and any type, and answer NULL or false when the thing is not there. */
const json *json_get(const json *object, const char *key);
const json *json_get_span(const json *object, span key);
const json *json_at(const json *array, uint32_t index);
bool json_is(const json *value, json_type type);
bool json_string_is(const json *value, const char *text);
/* A number that is exactly an integer in range ("3", "-0", not "3.0" or "1e2"). */
bool json_integer(const json *value, int64_t *out);
/* Any number, rounded to the nearest double; false when it overflows. Independent of the locale. */
bool json_double(const json *value, double *out);

/* Building a tree (used when a message is normalised): nodes live in the arena, spans are borrowed. */
json *json_new(arena *a, json_type type);
json *json_new_string(arena *a, span text); /* text: valid UTF-8 */
json *json_new_number(arena *a, span text); /* text: a JSON number, written as it is */
json *json_new_integer(arena *a, int64_t value);
void json_append(json *array, json *item); /* item must not be in a tree yet (asserted when it has a next) */
/* Appends a member. The key is not looked up: a repeated one behaves as a parsed one does (the last is found). */
void json_set(json *object, span key, json *value);
json *json_clone(arena *a, const json *value); /* deep copy of nodes (strings stay borrowed), free to be placed */

/* Writing. Strings must be valid UTF-8 (asserted): callers that hold bytes of unknown origin use
 * json_write_bytes, which replaces each invalid sequence with U+FFFD. */
typedef enum {
    JSON_COMPACT = 0, /* {"a":1,"b":[2]} */
    JSON_SPACED = 1,  /* {"a": 1, "b": [2]} as Python's json.dumps */
    JSON_ASCII = 2,   /* flag: escape all non-ASCII as \uXXXX */
} json_style;
void json_write(buffer *out, const json *value, json_style style); /* numbers keep their source text */
void json_write_string(buffer *out, span text, json_style style);
void json_write_bytes(buffer *out, span bytes);
/* double as the shortest text that reads back equal, Python's repr form (1e+16, 0.0001, 100000.0). Infinities and NaN,
 * which JSON cannot say, become null. */
void json_write_double(buffer *out, double value);

#endif
