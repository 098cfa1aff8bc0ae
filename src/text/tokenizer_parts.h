/* The inside of a tokenizer, shared by the files that load it, encode with it and remember what it did. */
#ifndef HEARTH_TEXT_TOKENIZER_PARTS_H
#define HEARTH_TEXT_TOKENIZER_PARTS_H

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

struct tokenizer {
    uint64_t serial; /* never 0 and never used again: lets a memo see that it is given another tokenizer */
    vocabulary words;
    bpe merges;
    added_tokens added; /* contents borrow from words */
    bool *special;      /* owned [words.count] */
    pretokenizer *rules;
    bool normalizes; /* to NFC */
};

/* What tokenizer_open reads, already in memory. Names are for messages. */
typedef struct tokenizer_files {
    const char *name; /* of tokenizer.json */
    span text;
    const char *config_name; /* of tokenizer_config.json; NULL: there is none */
    span config;
} tokenizer_files;
err_code tokenizer_load(const tokenizer_files *files, tokenizer **out, error *err);

/* An added token that was cut out of a text. */
typedef struct token_cut {
    uint32_t start, end; /* bytes of the text */
    size_t index;        /* its place among the ids */
} token_cut;

/* Where the ids of a text come from. */
typedef struct token_trace {
    uint32_t *ends; /* owned, parallel to the ids: byte of the source text where the token ends, the whole character or
                       composed group where it ends inside one */
    size_t ends_capacity;
    token_cut *cuts; /* owned, ascending */
    size_t cut_count, cut_capacity;
} token_trace;

enum { TOKENIZER_TEXT_SIZE_MAX = 1 << 30 };

/* tokenizer_encode of text[from..] with added tokens parsed, `from` being the end of an added token or 0. Offsets in
 * the trace (which may be NULL) are of the whole text. */
err_code tokenizer_encode_traced(const tokenizer *t, span text, size_t from, bool parse_added, token_list *out,
                                 token_trace *trace, error *err);

#endif
