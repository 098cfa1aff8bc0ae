/* Pre-tokeniser: cuts a text into the pieces that are merged each on its own, by the regular expression of
 * tokenizer.json.
 *
 * The files are written for Oniguruma (Hugging Face tokenizers); matching is done by PCRE2. The two agree on a large
 * part of the language and differ silently elsewhere, so a pattern is taken only when every construct in it is one
 * that means the same in both, after \s is spelt out; any other is refused by name. */
#ifndef HEARTH_TEXT_PRETOKENIZE_H
#define HEARTH_TEXT_PRETOKENIZE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"

extern const char *const PRETOKENIZE_GPT2; /* the pattern that ByteLevel with use_regex stands for */

typedef struct pretokenizer pretokenizer;
/* An empty pattern makes the whole text one piece. */
err_code pretokenizer_create(span pattern, pretokenizer **out, error *err);
void pretokenizer_destroy(pretokenizer *p);

/* Walks over the pieces of a text: matches, and what lies between them ("Isolated"). One cursor serves any number of
 * texts, one after the other; a pretokenizer any number of cursors at once. */
typedef struct pretoken_cursor {
    const pretokenizer *rules;
    void *match, *limits; /* owned: PCRE2 match data and context */
    span text;            /* borrowed: valid UTF-8 */
    size_t at;            /* end of the last piece */
    size_t match_start, match_end;
} pretoken_cursor;
void pretoken_cursor_init(pretoken_cursor *c, const pretokenizer *rules);
void pretoken_cursor_deinit(pretoken_cursor *c);
void pretoken_begin(pretoken_cursor *c, span text);
/* *piece is empty at the end. Fails when the pattern needs more steps or stack than is allowed. */
err_code pretoken_next(pretoken_cursor *c, span *piece, error *err);

#endif
