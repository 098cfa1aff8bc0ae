/* Prefix reuse over recorded conversations without running a model: how many prompt tokens a cache of a given size would
 * have to compute again, with the sizes of a model that need not be there.
 *
 * Every turn of the trace becomes the prompt that a server makes of it (template, tokenizer), and goes through the real
 * prefix tree and snapshot policy over pools that only count. One request runs at a time. It holds a live state and its
 * pages like a real one; its answer is stored too, as ANSWER_TOKENS ids that no later prompt repeats, since the
 * recorded history is sent back and not what a model would have said. */
#ifndef HEARTH_BENCH_BENCH_CACHE_H
#define HEARTH_BENCH_BENCH_CACHE_H

#include "bench/agent_trace.h"

typedef enum {
    CACHE_ORDER_FILE,       /* conversation after conversation */
    CACHE_ORDER_INTERLEAVE, /* two at a time, a turn of each; the next conversation takes the place of one that ends */
    CACHE_ORDER_ROUND_ROBIN /* a turn of every conversation, then the next of every one */
} cache_order;

typedef struct cache_bench_options {
    const char *tokenizer_dir;
    cache_order order;
    double edit_rate; /* chance, each turn, that one token of what was sent before is changed from then on */
    uint64_t seed;    /* of the edits */
    uint64_t cache_bytes, snapshot_bytes, token_bytes;
} cache_bench_options;

typedef struct cache_bench_result {
    size_t turns;
    uint64_t prompt_tokens, prefilled_tokens;
    uint64_t
        exact_tokens; /* what the best cache of unlimited size would prefill: all but the longest common prefix with
                              any earlier prompt, and at least one token */
    uint64_t turns_missed[8], tokens_lost[8]; /* by reason, as cache_bench_reason names them */
    uint64_t peak_bytes, evictions;
    int peak_pages, peak_snapshots; /* the running request's included */
    double tokenize_s, cache_s;
} cache_bench_result;

err_code cache_bench_run(const trace *t, const cache_bench_options *options, cache_bench_result *out, error *err);
const char *cache_bench_reason(int index); /* NULL past the last; 0 = reused as far as the prompts agree */

#endif
