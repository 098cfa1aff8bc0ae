/* Context lookup: drafts taken from the sequence's own tokens.
 *
 * An agent's output repeats what stands in its context: paths, identifiers, lines of a file, its own earlier calls. The
 * end of the sequence is looked up in the sequence itself, and what followed there is proposed. No model is asked, so a
 * draft costs about a microsecond.
 *
 * Rule: of the earlier places whose last tokens equal the last tokens of the sequence, the longest match wins, of equal
 * ones the most recent. Matches are compared id by id; hashes only find the places. A search looks at LOOKUP_PLACES_MAX
 * places a table and compares at most LOOKUP_MATCH_MAX tokens a place, so its cost has a bound whatever the text.
 *
 * A lookup belongs to one sequence and one thread. It allocates nothing after create. */
#ifndef HEARTH_DECODE_LOOKUP_H
#define HEARTH_DECODE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOOKUP_MATCH_MAX = 32,         /* longest match that is told apart: from here on the most recent place wins */
    LOOKUP_PLACES_MAX = 16,        /* places looked at, in each of the tables */
    LOOKUP_TOKENS_LIMIT = 1 << 26, /* largest tokens_max */
};

typedef struct lookup lookup;

/* tokens_max: the longest sequence; 1 .. LOOKUP_TOKENS_LIMIT. Memory is lookup_bytes(tokens_max), at most 40 bytes a
 * token and 28 for a power of two. */
lookup *lookup_create(int32_t tokens_max);
void lookup_destroy(lookup *l);
size_t lookup_bytes(int32_t tokens_max);

int32_t lookup_count(const lookup *l);

/* O(1) a token. count + lookup_count must not exceed tokens_max (asserted). */
void lookup_append(lookup *l, const int32_t *tokens, int32_t count);

/* Forgets all but the first count tokens, exactly as if the others had never been appended. O(1) a token removed. */
void lookup_truncate(lookup *l, int32_t count);

/* Makes the sequence equal to tokens[0..count), keeping the common beginning; returns the length of what was kept. */
int32_t lookup_sync(lookup *l, const int32_t *tokens, int32_t count);

/* A fork: to becomes equal to from, and both go on independently. Both were created with the same tokens_max (asserted).
 * Copies at most lookup_bytes. */
void lookup_copy(lookup *to, const lookup *from);

typedef struct lookup_match {
    int32_t end; /* place of the last matched token; what follows it is the draft */
    int length;  /* matched tokens, 1 .. LOOKUP_MATCH_MAX */
} lookup_match;

/* Looks up the end of (sequence + tail[0..tail_count)): tail holds tentative tokens of another drafter and is not
 * remembered. Matches end inside the sequence. False when there is none. */
bool lookup_find(const lookup *l, const int32_t *tail, int tail_count, lookup_match *out);

/* The token that stands `ahead` (0, 1 ...) behind the match. A draft that reaches the end of the sequence goes on in the
 * tail and then in itself ("ababab" continues for ever): tail is the tail of lookup_find followed by the `ahead` tokens
 * drafted so far. */
int32_t lookup_token(const lookup *l, const int32_t *tail, const lookup_match *match, int ahead);

/* Estimated probability that a token proposed behind a match of this length is right. As accepted tokens lengthen the
 * match, the token `ahead` is estimated by length + ahead. Measured, see docs/drafting.md. */
double lookup_acceptance(int length);

#endif
