/* Conversation slots: what the engine remembers of earlier prompts, and the memory of running sequences.
 *
 * A slot is one token path: its ids, its KV pages, and snapshots of the recurrent state at a few positions. A recurrent
 * model cannot step back, so a stored path is usable only at positions with a snapshot; KV alone is worth nothing. A new
 * prompt therefore resumes from the latest snapshot that lies within the ids it has in common with a slot, compared id
 * by id, and computes the rest. At least one token is always computed, since its logits are needed.
 *
 * A conversation that goes on takes its slot over in place. One that leaves a stored path before that path's own history
 * ends (another agent with the same system prompt, an edited message) gets a slot of its own that shares full pages and
 * snapshots by reference count and copies the partial last page; the other path stays usable. Paths of running requests
 * can be shared in the same way.
 *
 * Which positions deserve a snapshot is the caller's choice (slot_capture); the end of what was computed always becomes
 * one. A slot keeps at most SNAPSHOTS_MAX. Under pressure the least recently used slot at rest gives up snapshots and
 * pages first. The plan reserves enough that `parallel` running sequences of full length never fail.
 *
 * One thread. */
#ifndef HEARTH_CACHE_SLOTS_H
#define HEARTH_CACHE_SLOTS_H

#include "model/model.h"

enum { SNAPSHOTS_MAX = 6, CAPTURES_MAX = 8 };

typedef struct slot_plan {
    int context_max, parallel;
    int slots, pages, states;
    uint64_t kv_bytes, state_bytes;
} slot_plan;

/* Sizes for `parallel` sequences of context_max tokens. `budget` bytes are filled as far as that buys more stored
 * conversations; what running sequences cannot do without is taken even when it exceeds the budget. */
void slot_plan_make(const model_config *config, dtype kv_type, int context_max, int parallel, uint64_t budget,
                    slot_plan *out);

typedef struct slot_cache slot_cache;
typedef struct slot slot;

err_code slot_cache_create(const model_config *config, dtype kv_type, const slot_plan *plan, slot_cache **out,
                           error *err);
void slot_cache_destroy(slot_cache *c);
const kv_pool *slot_cache_kv(const slot_cache *c);

typedef struct slot_usage {
    int pages_used, pages_total, snapshots_used, snapshots_total;
} slot_usage;
slot_usage slot_cache_usage(const slot_cache *c);

/* A running slot whose sequence stands at *reused tokens of ids, *reused < count. `history` (<= count) ids belong to the
 * conversation rather than to the generation prompt. Fewer than `parallel` slots may be running (asserted). */
slot *slot_acquire(slot_cache *c, const int32_t *ids, int count, int history, int *reused);
sequence *slot_sequence(slot *s);
float *slot_hidden(slot *s); /* [hidden]: where the final-norm row of the last committed token is kept */

/* Pages for `count` tokens past the committed ones. Within context_max (asserted). */
void slot_reserve(slot *s, int count);
/* Wants a snapshot `after` tokens into the next step. False when memory for it cannot be had; the step goes on without. */
bool slot_capture(slot *s, int after, capture *out);
/* The model has advanced the sequence by these ids: records them and files the captures. */
void slot_commit(slot *s, const int32_t *ids, int count);
/* The slot comes to rest; with keep it is reusable to its end, else everything in it is forgotten. */
void slot_release(slot *s, bool keep);

#endif
