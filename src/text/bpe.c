/* See bpe.h.
 *
 * Texts repeat their words, so a call keeps the ids of those it met last in a small table that stays in the nearest
 * cache; the vocabulary and the merges are megabytes of scattered reads. Words that are not there go one of three ways:
 *  - It is a vocabulary entry, as most words of a text are: its id, with one look-up. That is right only if merging
 *    really arrives at the entry, which it does not for every one (a file may list tokens that no sequence of merges
 *    makes), so each entry is tried the slow way when it is first met and the answer is kept. The answer depends on
 *    nothing but the tables, so threads that find it out at once write the same byte.
 *  - Short words: arrays, and a scan for the lowest rank at each step. Quadratic, but faster than anything else here.
 *  - Long words (a megabyte of one letter is a legal request): a linked list of symbols and a heap of candidate pairs
 *    ordered by rank, then position. An entry is stale when the pair now at its position has another rank; it is then
 *    skipped. Every merge adds at most two entries, so the whole is n log n. */
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "text/word_bytes.h"

enum { WHOLE_UNKNOWN = 0, WHOLE_YES, WHOLE_NO };
enum { SHORT_WORD_MAX = 48 };
#define NO_PAIR UINT64_MAX
#define NO_RANK UINT32_MAX
#define NO_NODE UINT32_MAX

static size_t table_size(const bpe *b) { return (b->merge_mask + 1) * sizeof *b->merges; }

err_code bpe_init(bpe *b, const vocabulary *words, size_t merges, error *err) {
    size_t slots = 64;
    while (slots < merges * 2) slots *= 2;
    *b = (bpe){.words = words, .merge_mask = slots - 1};
    void *table = NULL;
    ERR_TRY(memory_map(table_size(b), "merges", &table, err));
    b->merges = table;
    for (size_t i = 0; i < slots; i++) b->merges[i] = (bpe_merge){NO_PAIR, NO_RANK, -1};
    b->whole = mem_zero((size_t)words->count, sizeof *b->whole);
    return ERR_OK;
}

void bpe_deinit(bpe *b) {
    memory_unmap(b->merges, table_size(b));
    free((void *)b->whole);
    *b = (bpe){0};
}

void bpe_scratch_deinit(bpe_scratch *s) {
    free(s->nodes);
    free(s->heap);
    free(s->recent);
    token_list_deinit(&s->check);
    *s = (bpe_scratch){0};
}

/* The slot of the pair, or the free one where it would go: its rank is NO_RANK then. */
static bpe_merge *find_merge(const bpe *b, int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    for (size_t i = (size_t)(hash >> 32 ^ hash >> 12) & b->merge_mask;; i = (i + 1) & b->merge_mask) {
        bpe_merge *m = &b->merges[i];
        if (m->pair == pair || m->pair == NO_PAIR) return m;
    }
}

void bpe_set_merge(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id) {
    *find_merge(b, left, right) = (bpe_merge){(uint64_t)(uint32_t)left << 32 | (uint32_t)right, rank, id};
}

/* ---- short words ---- */

typedef struct symbols {
    int32_t ids[SHORT_WORD_MAX];
    uint32_t ranks[SHORT_WORD_MAX]; /* of the pair (i, i + 1) */
    int32_t merged[SHORT_WORD_MAX]; /* what that pair becomes */
    size_t count;
} symbols;

static void rank_pair(const bpe *b, symbols *s, size_t i) {
    const bpe_merge *m = find_merge(b, s->ids[i], s->ids[i + 1]);
    s->ranks[i] = m->rank;
    s->merged[i] = m->id;
}

/* Replaces symbols i and i + 1 by what they merge to. */
static void merge_at(const bpe *b, symbols *s, size_t i) {
    s->ids[i] = s->merged[i];
    size_t tail = s->count - i - 2;
    memmove(&s->ids[i + 1], &s->ids[i + 2], tail * sizeof *s->ids);
    memmove(&s->ranks[i + 1], &s->ranks[i + 2], tail * sizeof *s->ranks);
    memmove(&s->merged[i + 1], &s->merged[i + 2], tail * sizeof *s->merged);
    s->count--;
    if (i + 1 < s->count)
        rank_pair(b, s, i);
    else
        s->ranks[i] = NO_RANK;
    if (i > 0) rank_pair(b, s, i - 1);
}

static void push_all(token_list *out, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) token_list_push(out, ids[i]);
}

static void merge_short(const bpe *b, span word, token_list *out) {
    symbols s;
    s.count = word.size;
    for (size_t i = 0; i < s.count; i++) s.ids[i] = b->byte_ids[(uint8_t)word.data[i]];
    for (size_t i = 0; i + 1 < s.count; i++) rank_pair(b, &s, i);
    s.ranks[s.count - 1] = NO_RANK;
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < s.count; i++)
            if (s.ranks[i] < s.ranks[best]) best = i;
        if (s.ranks[best] == NO_RANK) break;
        merge_at(b, &s, best);
    }
    push_all(out, s.ids, s.count);
}

/* ---- long words ---- */

typedef struct bpe_node {
    int32_t id; /* -1: merged into its left neighbour */
    uint32_t previous, next;
} bpe_node;

static void sift_down(uint64_t *heap, size_t count, size_t i) {
    uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (value <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

static uint64_t heap_pop(bpe_scratch *s) {
    uint64_t top = s->heap[0];
    s->heap[0] = s->heap[--s->heap_count];
    if (s->heap_count) sift_down(s->heap, s->heap_count, 0);
    return top;
}

static void heap_append(bpe_scratch *s, uint64_t value) {
    if (s->heap_count == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? s->heap_capacity * 2 : 1024;
        s->heap = mem_grow(s->heap, s->heap_capacity, sizeof *s->heap);
    }
    s->heap[s->heap_count++] = value;
}

static void heap_push(bpe_scratch *s, uint64_t value) {
    heap_append(s, value);
    size_t i = s->heap_count - 1;
    for (; i > 0 && s->heap[(i - 1) / 2] > value; i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = value;
}

/* The merge of the pair that starts at node i; its rank is NO_RANK when there is none. */
static const bpe_merge *node_merge(const bpe *b, const bpe_scratch *s, uint32_t i) {
    static const bpe_merge none = {NO_PAIR, NO_RANK, -1};
    const bpe_node *n = &s->nodes[i];
    return n->id < 0 || n->next == NO_NODE ? &none : find_merge(b, n->id, s->nodes[n->next].id);
}

static void push_pair(const bpe *b, bpe_scratch *s, uint32_t i) {
    uint32_t rank = node_merge(b, s, i)->rank;
    if (rank != NO_RANK) heap_push(s, (uint64_t)rank << 32 | i);
}

static void fill_nodes(const bpe *b, span word, bpe_scratch *s) {
    HEARTH_ASSERT(word.size < NO_NODE);
    if (s->node_capacity < word.size) {
        s->node_capacity = word.size;
        s->nodes = mem_grow(s->nodes, word.size, sizeof *s->nodes);
    }
    uint32_t count = (uint32_t)word.size;
    for (uint32_t i = 0; i < count; i++)
        s->nodes[i] =
            (bpe_node){b->byte_ids[(uint8_t)word.data[i]], i ? i - 1 : NO_NODE, i + 1 < count ? i + 1 : NO_NODE};
    s->heap_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t rank = node_merge(b, s, i)->rank;
        if (rank != NO_RANK) heap_append(s, (uint64_t)rank << 32 | i);
    }
    for (size_t i = s->heap_count / 2; i-- > 0;) sift_down(s->heap, s->heap_count, i);
}

static void merge_long(const bpe *b, span word, bpe_scratch *s, token_list *out) {
    fill_nodes(b, word, s);
    while (s->heap_count) {
        uint64_t top = heap_pop(s);
        uint32_t i = (uint32_t)top;
        const bpe_merge *m = node_merge(b, s, i);
        if (m->rank != (uint32_t)(top >> 32)) continue;
        bpe_node *left = &s->nodes[i], *right = &s->nodes[left->next];
        left->id = m->id;
        left->next = right->next;
        right->id = -1;
        if (left->next != NO_NODE) s->nodes[left->next].previous = i;
        push_pair(b, s, i);
        if (left->previous != NO_NODE) push_pair(b, s, left->previous);
    }
    for (uint32_t i = 0; i != NO_NODE; i = s->nodes[i].next) token_list_push(out, s->nodes[i].id);
}

/* ---- any word ---- */

static void merge_word(const bpe *b, span word, bpe_scratch *s, token_list *out) {
    if (word.size <= SHORT_WORD_MAX)
        merge_short(b, word, out);
    else
        merge_long(b, word, s, out);
}

static bool is_whole(const bpe *b, int32_t id, bpe_scratch *s) {
    uint8_t known = atomic_load_explicit(&b->whole[id], memory_order_relaxed);
    if (known == WHOLE_UNKNOWN) {
        s->check.count = 0;
        merge_word(b, vocabulary_bytes(b->words, id), s, &s->check);
        known = s->check.count == 1 && s->check.ids[0] == id ? WHOLE_YES : WHOLE_NO;
        atomic_store_explicit(&b->whole[id], known, memory_order_relaxed);
    }
    return known == WHOLE_YES;
}

/* ---- words met before ---- */

enum { RECENT_COUNT = 8192, RECENT_SIZE_MAX = 16, RECENT_IDS_MAX = 3 };

/* A slot for words of 2 to 16 bytes: the words that share it replace one another. */
typedef struct bpe_recent {
    uint64_t head, tail; /* the first and the last 8 bytes; of up to 8 bytes, all and 0 */
    int32_t ids[RECENT_IDS_MAX];
    uint16_t size; /* 0: free */
    uint16_t count;
} bpe_recent;

static bpe_recent recent_key(span word) {
    bpe_recent key = {.size = (uint16_t)word.size};
    if (word.size <= 8) {
        key.head = word_load_short(word.data, word.size);
    } else {
        key.head = word_load_u64(word.data);
        key.tail = word_load_u64(word.data + word.size - 8);
    }
    return key;
}

static bpe_recent *recent_slot(bpe_scratch *s, const bpe_recent *key) {
    if (!s->recent) s->recent = mem_zero(RECENT_COUNT, sizeof *s->recent);
    return &s->recent[word_mix(word_mix(key->head + key->size) + key->tail) % RECENT_COUNT];
}

static bool recent_holds(const bpe_recent *slot, const bpe_recent *key) {
    return slot->head == key->head && slot->tail == key->tail && slot->size == key->size;
}

/* ---- words ---- */

static void encode_new_word(const bpe *b, span word, bpe_scratch *s, token_list *out) {
    int32_t id = vocabulary_find(b->words, word);
    if (id >= 0 && is_whole(b, id, s))
        token_list_push(out, id);
    else
        merge_word(b, word, s, out);
}

void bpe_encode_word(const bpe *b, span word, bpe_scratch *s, token_list *out) {
    HEARTH_ASSERT(word.size > 0);
    if (word.size == 1) {
        token_list_push(out, b->byte_ids[(uint8_t)word.data[0]]);
        return;
    }
    if (word.size > RECENT_SIZE_MAX) {
        encode_new_word(b, word, s, out);
        return;
    }
    bpe_recent key = recent_key(word), *slot = recent_slot(s, &key);
    if (recent_holds(slot, &key)) {
        push_all(out, slot->ids, slot->count);
        return;
    }
    size_t first = out->count;
    encode_new_word(b, word, s, out);
    size_t count = out->count - first;
    if (count > RECENT_IDS_MAX) return;
    key.count = (uint16_t)count;
    memcpy(key.ids, out->ids + first, count * sizeof *key.ids);
    *slot = key;
}
