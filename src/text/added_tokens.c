/* See added_tokens.h.
 *
 * The ordered list serves as a trie: the tokens that share a prefix stand together, so walking down the text narrows a
 * range by binary search. Cost at a place: the depth of the match, whatever the number of tokens. */
#include "text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

void added_tokens_deinit(added_tokens *a) {
    free(a->items);
    *a = (added_tokens){0};
}

void added_tokens_push(added_tokens *a, added_token token) {
    HEARTH_ASSERT(token.content.size > 0);
    if (a->count == a->capacity) {
        a->capacity = a->capacity ? a->capacity * 2 : 64;
        a->items = mem_grow(a->items, a->capacity, sizeof *a->items);
    }
    a->items[a->count++] = token;
}

static int compare_spans(span a, span b) {
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_tokens(const void *a, const void *b) {
    return compare_spans(((const added_token *)a)->content, ((const added_token *)b)->content);
}

void added_tokens_seal(added_tokens *a) {
    if (a->count) qsort(a->items, a->count, sizeof *a->items, compare_tokens);
    memset(a->starts, 0, sizeof a->starts);
    for (size_t i = 0; i < a->count; i++) a->starts[(uint8_t)a->items[i].content.data[0]] = true;
}

const added_token *added_tokens_get(const added_tokens *a, span content) {
    if (content.size == 0 || a->count == 0) return NULL;
    added_token key = {.content = content};
    return bsearch(&key, a->items, a->count, sizeof *a->items, compare_tokens);
}

/* Byte at `depth`, or -1 past the end, so that a token stands before those it is a prefix of. */
static int byte_at(const added_token *t, size_t depth) {
    return depth < t->content.size ? (uint8_t)t->content.data[depth] : -1;
}

/* First index in [low, high) whose byte at depth is >= byte. */
static size_t lower_bound(const added_tokens *a, size_t low, size_t high, size_t depth, int byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (byte_at(&a->items[middle], depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that text starts with. */
static const added_token *match_here(const added_tokens *a, span text) {
    const added_token *longest = NULL;
    size_t low = 0, high = a->count;
    for (size_t depth = 0; low < high; depth++) {
        if (byte_at(&a->items[low], depth) < 0) longest = &a->items[low];
        if (depth == text.size) break;
        int byte = (uint8_t)text.data[depth];
        low = lower_bound(a, low, high, depth, byte);
        high = lower_bound(a, low, high, depth, byte + 1);
    }
    return longest;
}

const added_token *added_tokens_find(const added_tokens *a, span text, size_t from, size_t *start) {
    for (size_t i = from; i < text.size; i++) {
        if (!a->starts[(uint8_t)text.data[i]]) continue;
        const added_token *t = match_here(a, span_make(text.data + i, text.size - i));
        if (!t) continue;
        *start = i;
        return t;
    }
    return NULL;
}
