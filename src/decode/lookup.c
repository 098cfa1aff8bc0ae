/* See lookup.h.
 *
 * Three hash tables, for runs of 4, 2 and 1 tokens. A table's bucket holds the last place whose run ends there, and
 * every place the one before it in the same bucket. The longest run that has a match decides: its bucket holds every
 * match of at least that length, so the longest match is among the places of that one table, and shorter tables are
 * asked only when it has none.
 *
 * Places are added in order and removed in reverse order, so the place to be removed is always at the head of its
 * bucket: rolling back is popping. A suffix automaton finds the longest match without any bound, but on recorded agent
 * conversations it gains nothing over 16 places of 32 tokens (docs/drafting.md), its clones make rolling back need a
 * log, and its states and transitions take several times the memory. */
#include "decode/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TABLES = 3 };
static const int run_length[TABLES] = {4, 2, 1}; /* longest first */

typedef struct table {
    int32_t *heads;    /* [buckets] place + 1, 0 = none, so that untouched memory is an empty table */
    int32_t *previous; /* [tokens_max] place + 1 */
} table;

struct lookup {
    int32_t count, tokens_max;
    int bucket_bits;
    int32_t *tokens; /* [tokens_max] */
    table tables[TABLES];
};

static int bucket_bits(int32_t tokens_max) {
    int bits = 4;
    while ((int64_t)1 << bits < tokens_max) bits++;
    return bits;
}

size_t lookup_bytes(int32_t tokens_max) {
    size_t places = (size_t)tokens_max, buckets = (size_t)1 << bucket_bits(tokens_max);
    return sizeof(lookup) + sizeof(int32_t) * (places + TABLES * (places + buckets));
}

lookup *lookup_create(int32_t tokens_max) {
    HEARTH_ASSERT(tokens_max > 0 && tokens_max <= LOOKUP_TOKENS_LIMIT);
    lookup *l = mem_zero(1, sizeof *l);
    l->tokens_max = tokens_max;
    l->bucket_bits = bucket_bits(tokens_max);
    l->tokens = mem_zero((size_t)tokens_max, sizeof *l->tokens);
    for (int i = 0; i < TABLES; i++) {
        l->tables[i].heads = mem_zero((size_t)1 << l->bucket_bits, sizeof(int32_t));
        l->tables[i].previous = mem_zero((size_t)tokens_max, sizeof(int32_t));
    }
    return l;
}

void lookup_destroy(lookup *l) {
    if (!l) return;
    for (int i = 0; i < TABLES; i++) {
        free(l->tables[i].heads);
        free(l->tables[i].previous);
    }
    free(l->tokens);
    free(l);
}

int32_t lookup_count(const lookup *l) { return l->count; }

static uint64_t hash_token(uint64_t hash, int32_t token) {
    hash = (hash ^ (uint32_t)token) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* The last bits of a product depend on few bits of its factors: the first ones are taken. */
static size_t bucket(const lookup *l, uint64_t hash) {
    return (size_t)(hash * 0xd1342543de82ef95u >> (64 - l->bucket_bits));
}

/* Token at a place of sequence + tail. */
static int32_t token_at(const lookup *l, const int32_t *tail, int32_t place) {
    return place < l->count ? l->tokens[place] : tail[place - l->count];
}

static size_t bucket_of_run(const lookup *l, const int32_t *tail, int32_t end, int length) {
    uint64_t hash = 0;
    for (int i = 0; i < length; i++) hash = hash_token(hash, token_at(l, tail, end - i));
    return bucket(l, hash);
}

void lookup_append(lookup *l, const int32_t *tokens, int32_t count) {
    HEARTH_ASSERT(count >= 0 && count <= l->tokens_max - l->count);
    for (int32_t i = 0; i < count; i++) {
        int32_t place = l->count++;
        l->tokens[place] = tokens[i];
        for (int k = 0; k < TABLES && run_length[TABLES - 1 - k] <= place + 1; k++) {
            table *t = &l->tables[TABLES - 1 - k];
            int32_t *head = &t->heads[bucket_of_run(l, NULL, place, run_length[TABLES - 1 - k])];
            t->previous[place] = *head;
            *head = place + 1;
        }
    }
}

void lookup_truncate(lookup *l, int32_t count) {
    HEARTH_ASSERT(count >= 0 && count <= l->count);
    for (; l->count > count; l->count--) {
        int32_t place = l->count - 1;
        for (int i = 0; i < TABLES; i++) {
            if (run_length[i] > place + 1) continue;
            int32_t *head = &l->tables[i].heads[bucket_of_run(l, NULL, place, run_length[i])];
            HEARTH_ASSERT(*head == place + 1);
            *head = l->tables[i].previous[place];
        }
    }
}

int32_t lookup_sync(lookup *l, const int32_t *tokens, int32_t count) {
    int32_t same = 0, most = count < l->count ? count : l->count;
    while (same < most && l->tokens[same] == tokens[same]) same++;
    lookup_truncate(l, same);
    lookup_append(l, tokens + same, count - same);
    return same;
}

void lookup_copy(lookup *to, const lookup *from) {
    HEARTH_ASSERT(to->tokens_max == from->tokens_max && to != from);
    size_t bytes = sizeof(int32_t) * (size_t)from->count;
    to->count = from->count;
    memcpy(to->tokens, from->tokens, bytes);
    for (int i = 0; i < TABLES; i++) {
        memcpy(to->tables[i].heads, from->tables[i].heads, sizeof(int32_t) << from->bucket_bits);
        memcpy(to->tables[i].previous, from->tables[i].previous, bytes);
    }
}

/* Tokens that agree, counted backwards from place and from the last of sequence + tail. */
static int match_length(const lookup *l, const int32_t *tail, int32_t last, int32_t place) {
    int length = 0;
    while (length < LOOKUP_MATCH_MAX && length <= place &&
           l->tokens[place - length] == token_at(l, tail, last - length))
        length++;
    return length;
}

bool lookup_find(const lookup *l, const int32_t *tail, int tail_count, lookup_match *out) {
    int32_t last = l->count + tail_count - 1;
    *out = (lookup_match){.end = -1};
    for (int i = 0; i < TABLES && !out->length; i++) {
        if (run_length[i] > last + 1) continue;
        const table *t = &l->tables[i];
        int32_t place = t->heads[bucket_of_run(l, tail, last, run_length[i])] - 1;
        if (place == last) place = t->previous[place] - 1; /* the end itself */
        for (int seen = 0; place >= 0 && seen < LOOKUP_PLACES_MAX && out->length < LOOKUP_MATCH_MAX; seen++) {
            int length = match_length(l, tail, last, place);
            if (length >= run_length[i] && length > out->length) *out = (lookup_match){place, length};
            place = t->previous[place] - 1;
        }
    }
    return out->length > 0;
}

int32_t lookup_token(const lookup *l, const int32_t *tail, const lookup_match *match, int ahead) {
    return token_at(l, tail, match->end + 1 + ahead);
}

double lookup_acceptance(int length) {
    static const double measured[] = {0, 0.27, 0.47, 0.71, 0.82, 0.85, 0.88, 0.91};
    enum { COUNT = sizeof measured / sizeof *measured };
    return length < 0 ? 0 : length < COUNT ? measured[length] : 0.94;
}
