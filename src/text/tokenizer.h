/* Byte-level BPE as in tokenizer.json: text to ids and back.
 *
 * A tokenizer is immutable after open and may be used by several threads at once. */
#ifndef HEARTH_TEXT_TOKENIZER_H
#define HEARTH_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct tokenizer tokenizer;

/* Reads DIR/tokenizer.json (merges as pairs or as strings) and, when it is there, the added tokens of
 * DIR/tokenizer_config.json. Refuses, by name, a model type, normaliser or pre-tokeniser it does not implement. */
err_code tokenizer_open(const char *dir, tokenizer **out, error *err);
void tokenizer_close(tokenizer *t);

/* Ids are 0 .. count-1; rows of the embedding at and past count are padding that must never be chosen. */
int32_t tokenizer_count(const tokenizer *t);
int32_t tokenizer_find(const tokenizer *t,
                       span token); /* id of an added token or vocabulary entry (raw bytes), or -1 */
bool tokenizer_is_special(const tokenizer *t, int32_t id); /* an added token marked special */
span tokenizer_bytes(const tokenizer *t,
                     int32_t id); /* raw bytes of a token; may be part of a character. Empty for holes */

typedef struct token_list {
    int32_t *ids; /* owned */
    size_t count, capacity;
} token_list;
void token_list_deinit(token_list *l);
void token_list_push(token_list *l, int32_t id);

/* Appends the ids of text. Added tokens are cut out of the raw text first (unless parse_added is false: then their text
 * is tokenised as ordinary text), the rest is NFC-normalised, split by the pre-tokeniser pattern and merged. Bytes that
 * are not UTF-8 are kept as byte tokens, so decode(encode(x)) is NFC(x) for any bytes. */
err_code tokenizer_encode(const tokenizer *t, span text, bool parse_added, token_list *out, error *err);

/* Re-tokenising a text of which only the end changed, as a growing conversation: exactly tokenizer_encode's ids, but
 * work only from the last added token before the first difference. One memo per conversation slot; not thread-safe. */
typedef struct token_memo token_memo;
token_memo *token_memo_create(void);
void token_memo_destroy(token_memo *m);
size_t token_memo_common(const token_memo *m, span text); /* bytes text shares with the memo's text, to choose a memo */
/* *ids borrows from the memo until its next use. *kept (may be NULL) = leading ids taken over unchanged. */
err_code token_memo_encode(token_memo *m, const tokenizer *t, span text, const int32_t **ids, size_t *count,
                           size_t *kept, error *err);
/* The number of ids that end at or before byte offset `at` of the memo's text, when a token border falls exactly there;
 * otherwise the number of whole tokens before it. */
size_t token_memo_index(const token_memo *m, size_t at);

/* Appends the bytes of ids. skip_special leaves out tokens marked special. */
void tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t count, bool skip_special, buffer *out);

#endif
