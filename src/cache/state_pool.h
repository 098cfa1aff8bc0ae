/* Recurrent states: a pool of equal buffers, each either the live state of a running sequence or a snapshot.
 *
 * A buffer holds everything of one position that is not KV: the recurrent state, the convolution state and the row after
 * the final norm (the draft layer's input). Because live states and snapshots are the same thing, the state at the end
 * of an answer becomes a snapshot without a copy. Snapshots are immutable and shared by reference count. One thread. */
#ifndef HEARTH_CACHE_STATE_POOL_H
#define HEARTH_CACHE_STATE_POOL_H

#include "base/memory.h"
#include "model/model.h"

typedef struct state_pool {
    int count, free_count;
    int *free_states; /* stack */
    int *references;  /* per state; 0 = free */
    float *memory;    /* [count, stride]: recurrent | conv | hidden, each part 64-byte aligned; owned */
    int64_t conv_at, hidden_at, stride;
    size_t bytes;
} state_pool;

uint64_t state_bytes(const model_config *config); /* of one state in the pool */

/* On failure *p is empty and deinit is allowed. */
err_code state_pool_init(state_pool *p, const model_config *config, int count, error *err);
void state_pool_deinit(state_pool *p);
int state_pool_used(const state_pool *p);

int state_acquire(state_pool *p); /* one reference; -1 when none is free. Contents undefined */
void state_retain(state_pool *p, int state);
void state_release(state_pool *p, int state);
void state_copy(state_pool *p, int from, int to);
void state_clear(state_pool *p, int state); /* the state before the first token: zeros */

float *state_recurrent(const state_pool *p, int state);
float *state_conv(const state_pool *p, int state);
float *state_hidden(const state_pool *p, int state);

#endif
