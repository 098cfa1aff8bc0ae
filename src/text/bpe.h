/* Byte-pair merging: the bytes of one pre-token to ids.
 *
 * Merges have ranks (their order in the file). Starting from single bytes, the pair of lowest rank is merged, the
 * leftmost first among equals, until no neighbouring pair has a merge. */
#ifndef HEARTH_TEXT_BPE_H
#define HEARTH_TEXT_BPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

typedef struct bpe_merge {
    uint64_t pair; /* left id << 32 | right id; all ones: free slot */
    uint32_t rank;
    int32_t id; /* of the merged token */
} bpe_merge;

typedef struct bpe {
    const vocabulary *words; /* borrowed */
    int32_t byte_ids[256];
    bpe_merge *merges; /* owned, memory_map; power of two, at most half full */
    size_t merge_mask;
    _Atomic uint8_t *whole; /* owned [count]: does merging the token's own bytes give it back? 0 = not asked yet */
} bpe;

/* Working memory of one encode call; zero-initialise. */
typedef struct bpe_scratch {
    struct bpe_node *nodes; /* owned */
    size_t node_capacity;
    uint64_t *heap; /* owned: rank << 32 | position */
    size_t heap_count, heap_capacity;
    token_list check;          /* owned */
    struct bpe_recent *recent; /* owned: words met before in this call */
} bpe_scratch;
void bpe_scratch_deinit(bpe_scratch *s);

/* words must outlive b and be complete. byte_ids must be filled by the caller before the first encode. */
err_code bpe_init(bpe *b, const vocabulary *words, size_t merges, error *err);
void bpe_deinit(bpe *b);
void bpe_set_merge(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id); /* the last one of a pair counts */

/* Appends the ids of word (at least one byte). */
void bpe_encode_word(const bpe *b, span word, bpe_scratch *s, token_list *out);

#endif
