/* See state_pool.h. */
#include "cache/state_pool.h"

#include <stdlib.h>
#include <string.h>

static int64_t aligned(int64_t floats) { return (floats + 15) & ~(int64_t)15; }

static int64_t layout(const model_config *config, int64_t *conv_at, int64_t *hidden_at) {
    *conv_at = aligned(model_recurrent_count(config));
    *hidden_at = *conv_at + aligned(model_conv_count(config));
    return *hidden_at + aligned(config->hidden);
}

uint64_t state_bytes(const model_config *config) {
    int64_t conv_at, hidden_at;
    return (uint64_t)layout(config, &conv_at, &hidden_at) * sizeof(float);
}

err_code state_pool_init(state_pool *p, const model_config *config, int count, error *err) {
    HEARTH_ASSERT(count > 0);
    *p = (state_pool){0};
    p->stride = layout(config, &p->conv_at, &p->hidden_at);
    p->bytes = (size_t)p->stride * sizeof(float) * (size_t)count;
    void *memory;
    ERR_TRY(memory_map(p->bytes, "sequence states and snapshots", &memory, err));
    p->memory = memory;
    p->free_states = mem_zero((size_t)count, sizeof *p->free_states);
    p->references = mem_zero((size_t)count, sizeof *p->references);
    for (int i = 0; i < count; i++) p->free_states[i] = count - 1 - i;
    p->count = p->free_count = count;
    return ERR_OK;
}

void state_pool_deinit(state_pool *p) {
    memory_unmap(p->memory, p->bytes);
    free(p->free_states);
    free(p->references);
    *p = (state_pool){0};
}

int state_pool_used(const state_pool *p) { return p->count - p->free_count; }

int state_acquire(state_pool *p) {
    if (!p->free_count) return -1;
    int state = p->free_states[--p->free_count];
    HEARTH_ASSERT(p->references[state] == 0);
    p->references[state] = 1;
    return state;
}

void state_retain(state_pool *p, int state) {
    HEARTH_ASSERT(p->references[state] > 0);
    p->references[state]++;
}

void state_release(state_pool *p, int state) {
    HEARTH_ASSERT(p->references[state] > 0);
    if (--p->references[state] == 0) p->free_states[p->free_count++] = state;
}

static float *row(const state_pool *p, int state) { return p->memory + p->stride * state; }

void state_copy(state_pool *p, int from, int to) {
    memcpy(row(p, to), row(p, from), (size_t)p->stride * sizeof(float));
}

void state_clear(state_pool *p, int state) { memset(row(p, state), 0, (size_t)p->stride * sizeof(float)); }

float *state_recurrent(const state_pool *p, int state) { return row(p, state); }
float *state_conv(const state_pool *p, int state) { return row(p, state) + p->conv_at; }
float *state_hidden(const state_pool *p, int state) { return row(p, state) + p->hidden_at; }
