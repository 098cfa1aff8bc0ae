/* What the engine's parts share: the loaded model, the two threads, and the queues between them.
 *
 * The text thread renders and tokenises new requests (prepare.c), so that neither the caller nor the engine thread ever
 * waits for a long history. The engine thread owns model, cache and running requests (scheduler.c). All hand-over goes
 * through the two queues under one lock; their total is bounded by parallel + queue_max. */
#ifndef HEARTH_ENGINE_ENGINE_H
#define HEARTH_ENGINE_ENGINE_H

#include <pthread.h>

#include "base/threads.h"
#include "cache/prefix_cache.h"
#include "decode/sampler.h"
#include "engine/request.h"
#include "engine/step_budget.h"
#include "hearth.h"
#include "model/model.h"
#include "text/chat.h"

enum { PARALLEL_MAX = HEARTH_PARALLEL_MAX, ROWS_MAX = 256, STEP_TARGET_MS = 200 };

struct hearth_engine {
    /* Fixed after open. */
    char *name;
    int context_max, parallel, queue_max;
    int64_t created;
    model *model;
    const model_config *config; /* borrowed from model */
    dtype kv_type;
    pool *workers;
    chat_format *format;     /* NULL without a tokenizer; format_error says what is missing */
    const tokenizer *tokens; /* NULL likewise */
    error format_error;
    int vocabulary; /* ids that may be chosen or given */
    cache_plan plan;
    uint64_t workspace_bytes;

    pthread_t text_thread, engine_thread;
    bool text_started, engine_started;

    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t text_work, step_work;
    request_queue queued, waiting; /* to be prepared; prepared */
    bool closing;
    int live;               /* requests created and not ended */
    double request_seconds; /* fading mean of running times, for retry_after_s */
    uint64_t progress_ns;   /* end of the last step, or when work came in after idling */
    hearth_stats stats;     /* queued and seconds_since_step are filled when asked */

    /* Engine thread. */
    prefix_cache *cache;
    sampler *sampler;
    float *logits; /* [parallel, vocab_rows] */
    float *hidden; /* [ROWS_MAX, hidden] */
    size_t logits_bytes, hidden_bytes;
    hearth_request *running[PARALLEL_MAX];
    int running_count, turn; /* turn: whose prefill comes first */
    step_budget budget;
};

void *prepare_thread(void *engine);
void *scheduler_thread(void *engine);

/* Ends a request: counts it, queues its last event (FINISH or ERROR), lets go of it. The caller is the thread that works
 * on it and has ended its run in the cache. */
void engine_end_request(hearth_request *r, const hearth_event *last);
void engine_end_with_error(hearth_request *r, hearth_status status, const char *message);

#endif
