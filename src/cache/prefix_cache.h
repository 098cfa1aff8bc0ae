/* The prefix cache: memory of running sequences and of what earlier ones computed, for any number of conversations.
 *
 * Two pools of fixed size, KV pages and states, planned at start; a prefix tree that owns what is stored in them; and one
 * `cache_run` for every running request: its page table, its live state, and the ids it has computed. A run begins at
 * the longest stored prefix of its prompt, files snapshots in the tree while it computes, so that others share them at
 * once, and leaves its last state there when it ends. There are no conversations here: whoever sends a prompt finds what
 * anybody computed of it, and running requests share their prefixes like those at rest.
 *
 * Memory: what runs comes first. The plan has pages and states for `parallel` sequences of full length, so that a
 * running one never fails; the rest is given to what is stored, and taken back from the snapshot that is worth least.
 * One thread. */
#ifndef HEARTH_CACHE_PREFIX_CACHE_H
#define HEARTH_CACHE_PREFIX_CACHE_H

#include "cache/snapshot_policy.h"
#include "model/model.h"

typedef struct cache_plan {
    int context_max, parallel;
    int pages, states;
    uint64_t kv_bytes, state_bytes;
} cache_plan;

/* Sizes for `parallel` sequences of context_max tokens. `budget` bytes are filled, in the proportion of pages and
 * snapshots that agents need, as far as that is of use; what running sequences cannot do without is taken even when it
 * exceeds the budget. */
void cache_plan_make(const model_config *config, dtype kv_type, int context_max, int parallel, uint64_t budget,
                     cache_plan *out);

typedef struct prefix_cache prefix_cache;
typedef struct cache_run cache_run;

err_code prefix_cache_create(const model_config *config, dtype kv_type, const cache_plan *plan, prefix_cache **out,
                             error *err);
void prefix_cache_destroy(prefix_cache *c); /* no run may be under way */
const kv_pool *prefix_cache_kv(const prefix_cache *c);

typedef struct cache_usage {
    int pages_used, pages_total;
    int snapshots_used, snapshots_total; /* total: states, of which running sequences take one each */
    prefix_usage tree;
} cache_usage;
cache_usage prefix_cache_usage(const prefix_cache *c);

/* A run whose sequence stands at the longest usable prefix of ids[0..shape->count), at least one token short of its end.
 * *found says where, and why not further. Fewer than `parallel` runs may be under way (asserted). */
cache_run *cache_run_begin(prefix_cache *c, const int32_t *ids, const prompt_shape *shape, prefix_match *found);
sequence *cache_run_sequence(cache_run *r);
float *cache_run_hidden(cache_run *r); /* [hidden]: where the final-norm row of the last committed token is kept */

/* Pages for `count` tokens past the committed ones, drafts included. Within context_max (asserted). */
void cache_run_reserve(cache_run *r, int count);
/* Pages for a step of `count` tokens past the committed ones, and the snapshots wanted in it: returns how many captures
 * were filled. A snapshot that memory cannot be had for is left out. Within context_max (asserted). */
int cache_run_prepare(cache_run *r, int count, capture captures[SNAPSHOT_WANTS_MAX]);
/* The model has advanced the sequence by these ids: records them and files the captures. */
void cache_run_commit(cache_run *r, const int32_t *ids, int count);
/* The run ends; with keep it is reusable to its end, else nothing on its path is trusted any more. */
void cache_run_end(cache_run *r, bool keep);

/* Asserts every invariant (tests). */
void prefix_cache_check(const prefix_cache *c);

#endif
