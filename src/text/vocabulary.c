/* See vocabulary.h. Open addressing with linear probing; nothing is ever removed. */
#include "text/vocabulary.h"

#include <stdlib.h>

#include "text/word_bytes.h"

/* The slot's key; size >= 1. */
static uint64_t word_key(span word) {
    if (word.size <= 8) return word_load_short(word.data, word.size);
    uint64_t hash = word.size;
    for (size_t i = 0; i + 8 <= word.size; i += 8) hash = word_mix(hash ^ word_load_u64(word.data + i));
    return word_mix(hash ^ word_load_u64(word.data + word.size - 8));
}

static size_t first_slot(const vocabulary *v, uint64_t key, size_t size) {
    return (size_t)(word_mix(key + size) & v->slot_mask);
}

static size_t table_size(const vocabulary *v) { return (v->slot_mask + 1) * sizeof *v->slots; }

err_code vocabulary_init(vocabulary *v, int32_t count, size_t entries, error *err) {
    size_t slots = 64;
    while (slots < entries * 2) slots *= 2;
    *v = (vocabulary){.count = count, .slot_mask = slots - 1};
    v->starts = mem_zero((size_t)count, sizeof *v->starts);
    v->sizes = mem_zero((size_t)count, sizeof *v->sizes);
    void *table = NULL;
    ERR_TRY(memory_map(table_size(v), "vocabulary", &table, err));
    v->slots = table;
    return ERR_OK;
}

void vocabulary_deinit(vocabulary *v) {
    free(v->starts);
    free(v->sizes);
    memory_unmap(v->slots, table_size(v));
    buffer_deinit(&v->bytes);
    *v = (vocabulary){0};
}

void vocabulary_set_bytes(vocabulary *v, int32_t id, span bytes) {
    HEARTH_ASSERT(id >= 0 && id < v->count && v->sizes[id] == 0 && bytes.size > 0);
    HEARTH_ASSERT(bytes.size < UINT32_MAX - v->bytes.size);
    v->starts[id] = (uint32_t)v->bytes.size;
    v->sizes[id] = (uint32_t)bytes.size;
    buffer_append(&v->bytes, bytes.data, bytes.size);
}

/* The slot that holds word, or the free one where it would go. */
static vocabulary_slot *probe(const vocabulary *v, span word) {
    uint64_t key = word_key(word);
    for (size_t i = first_slot(v, key, word.size);; i = (i + 1) & v->slot_mask) {
        vocabulary_slot *slot = &v->slots[i];
        if (slot->size == 0) return slot;
        if (slot->key != key || slot->size != word.size) continue;
        if (word.size <= 8 || span_equal(vocabulary_bytes(v, slot->id), word)) return slot;
    }
}

bool vocabulary_set_findable(vocabulary *v, int32_t id, span bytes) {
    HEARTH_ASSERT(span_equal(vocabulary_bytes(v, id), bytes));
    vocabulary_slot *slot = probe(v, bytes);
    if (slot->size) return false;
    *slot = (vocabulary_slot){word_key(bytes), id, (uint32_t)bytes.size};
    if (bytes.size > v->size_max) v->size_max = (uint32_t)bytes.size;
    return true;
}

int32_t vocabulary_find(const vocabulary *v, span word) {
    if (word.size == 0 || word.size > v->size_max) return -1;
    const vocabulary_slot *slot = probe(v, word);
    return slot->size ? slot->id : -1;
}
