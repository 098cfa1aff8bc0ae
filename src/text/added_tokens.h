/* Added tokens: texts such as <|im_end|> that are one id wherever they stand, cut out before anything else looks at
 * the text. At each place the longest one counts, and the leftmost place first. */
#ifndef HEARTH_TEXT_ADDED_TOKENS_H
#define HEARTH_TEXT_ADDED_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct added_token {
    span content; /* borrowed, not empty */
    int32_t id;
    bool special;
} added_token;

typedef struct added_tokens {
    added_token *items; /* owned; ordered by content once sealed */
    size_t count, capacity;
    bool starts[256]; /* by first byte: does any token start so? */
} added_tokens;

void added_tokens_deinit(added_tokens *a);
void added_tokens_push(added_tokens *a, added_token token); /* contents must differ */
void added_tokens_seal(added_tokens *a);                    /* orders them; before the first look-up */

const added_token *added_tokens_get(const added_tokens *a, span content); /* exact, or NULL */

/* The first occurrence of any of them at or after `from`: its start, and the token; NULL when there is none. */
const added_token *added_tokens_find(const added_tokens *a, span text, size_t from, size_t *start);

#endif
