/* The engine thread: admits requests, runs steps, chooses tokens.
 *
 * A step has one row for every sequence that decodes and as many prompt rows as the step budget allows, so that neither a
 * running answer nor a cancellation waits longer than one short step for somebody's long prompt. Prompt rows go to the
 * requests in turn, so that several cold prompts advance together. Between steps requests come and go. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"

/* What the cache holds and did, for hearth_engine_stats. */
static void publish(hearth_engine *e) {
    cache_usage usage = prefix_cache_usage(e->cache);
    pthread_mutex_lock(&e->lock);
    e->stats.kv_pages_used = usage.pages_used;
    e->stats.kv_pages_total = usage.pages_total;
    e->stats.snapshots_used = usage.snapshots_used;
    e->stats.snapshots_total = usage.snapshots_total;
    e->stats.cache_evictions = usage.tree.evictions;
    for (int i = 0; i < HEARTH_REUSE_COUNT; i++) {
        e->stats.reuse_requests[i] = usage.tree.misses[i];
        e->stats.reuse_lost_tokens[i] = usage.tree.lost[i];
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- ends of a request */

static void end_with(hearth_engine *e, int index, bool keep, const hearth_event *last) {
    hearth_request *r = e->running[index];
    e->running[index] = NULL; /* closed up after the step */
    cache_run_end(r->run, keep);
    r->run = NULL;
    publish(e);
    engine_end_request(r, last);
}

static void fail(hearth_engine *e, int index, hearth_status status, const char *message) {
    hearth_request *r = e->running[index];
    hearth_event event = {.type = HEARTH_EVENT_ERROR, .usage = r->usage, .timing = request_timing(r, clock_ns())};
    hearth_fail(&event.error, status, "", "%s", message);
    /* What a cancelled request has computed is as good as any; after a failure nothing of it is trusted. */
    end_with(e, index, status == HEARTH_CANCELLED, &event);
}

static void finish(hearth_engine *e, int index, hearth_finish why) {
    hearth_request *r = e->running[index];
    if (why != HEARTH_FINISH_LENGTH && generation_calls(r->generation) > 0) why = HEARTH_FINISH_TOOL_CALLS;
    hearth_event event = {
        .type = HEARTH_EVENT_FINISH, .finish = why, .usage = r->usage, .timing = request_timing(r, clock_ns())};
    end_with(e, index, true, &event);
}

static void close_up(hearth_engine *e) {
    int kept = 0;
    for (int i = 0; i < e->running_count; i++)
        if (e->running[i]) e->running[kept++] = e->running[i];
    e->running_count = kept;
}

/* ---- coming and going */

static void drop_cancelled(hearth_engine *e) {
    for (int i = 0; i < e->running_count; i++)
        if (atomic_load(&e->running[i]->cancelled)) fail(e, i, HEARTH_CANCELLED, "cancelled");
    close_up(e);
    pthread_mutex_lock(&e->lock);
    hearth_request *waiting = request_queue_take_cancelled(&e->waiting);
    pthread_mutex_unlock(&e->lock);
    while (waiting) {
        hearth_request *r = waiting;
        waiting = r->next;
        engine_end_with_error(r, HEARTH_CANCELLED, "cancelled");
    }
}

static void begin_run(hearth_engine *e, hearth_request *r) {
    prompt_shape shape = {.count = r->count,
                          .history = r->history,
                          .message_ends = r->message_ends,
                          .message_end_count = r->message_end_count,
                          .all_messages = r->message_end_count < MESSAGE_ENDS_MAX};
    prefix_match found;
    r->run = cache_run_begin(e->cache, r->ids, &shape, &found);
    r->position = found.resumed;
    r->usage.cached_tokens = found.resumed;
    r->usage.common_tokens = found.common;
    r->usage.reuse = (hearth_reuse)found.miss;
}

static void admit(hearth_engine *e) {
    while (e->running_count < e->parallel) {
        pthread_mutex_lock(&e->lock);
        hearth_request *r = request_queue_pop(&e->waiting);
        if (r) e->stats.running++;
        pthread_mutex_unlock(&e->lock);
        if (!r) return;
        r->admitted_ns = clock_ns();
        begin_run(e, r);
        e->running[e->running_count++] = r;
    }
}

/* ---- a step */

enum { PROMPT_ROWS_MIN = 4 };

typedef struct step {
    model_segment segments[PARALLEL_MAX];
    int owners[PARALLEL_MAX]; /* index in running */
    capture captures[PARALLEL_MAX][SNAPSHOT_WANTS_MAX];
    int count, rows, prompt_rows;
} step;

static bool prefilling(const hearth_request *r) { return r->position < r->count; }

static void add_segment(hearth_engine *e, step *s, int index, const int32_t *tokens, int count, bool wants_logits) {
    cache_run *run = e->running[index]->run;
    capture *captures = s->captures[s->count];
    int capture_count = cache_run_prepare(run, count, captures);
    s->owners[s->count] = index;
    s->segments[s->count] = (model_segment){
        .seq = cache_run_sequence(run),
        .count = count,
        .tokens = tokens,
        .captures = captures,
        .capture_count = capture_count,
        .logits_from = wants_logits ? count - 1 : count,
        .logits = wants_logits ? e->logits + (size_t)s->count * (size_t)e->config->vocab_rows : NULL,
        .hidden = e->hidden + (size_t)s->rows * (size_t)e->config->hidden,
    };
    s->count++;
    s->rows += count;
}

static void add_decode_rows(hearth_engine *e, step *s) {
    for (int i = 0; i < e->running_count; i++)
        if (!prefilling(e->running[i])) add_segment(e, s, i, &e->running[i]->next_token, 1, true);
}

/* The budget goes to the prefilling requests in turn, starting with another one each step. */
static void add_prompt_rows(hearth_engine *e, step *s) {
    int left = step_budget_rows(&e->budget) - s->rows;
    if (left < PROMPT_ROWS_MIN) left = PROMPT_ROWS_MIN; /* many answers slow a prompt down but never stop it */
    if (left > ROWS_MAX - s->rows) left = ROWS_MAX - s->rows;
    int next_turn = e->turn;
    for (int k = 0; k < e->running_count && left > 0; k++) {
        int i = (e->turn + k) % e->running_count;
        hearth_request *r = e->running[i];
        if (!prefilling(r)) continue;
        int count = r->count - r->position < left ? r->count - r->position : left;
        add_segment(e, s, i, r->ids + r->position, count, r->position + count == r->count);
        left -= count;
        s->prompt_rows += count;
        next_turn = i + 1;
    }
    e->turn = next_turn;
}

static bool is_stop_id(const hearth_engine *e, int32_t id) {
    for (int i = 0; i < e->config->stop_count; i++)
        if (e->config->stop_ids[i] == id) return true;
    return false;
}

/* The model has computed the row after everything so far: chooses the next token and ends or goes on. */
static void take_token(hearth_engine *e, int index, const float *logits) {
    hearth_request *r = e->running[index];
    error err;
    int32_t id;
    /* The position of a token is the number of tokens before it. */
    if (sampler_choose(e->sampler, &r->sampling, logits, cache_run_sequence(r->run)->length, &id, &err) != ERR_OK) {
        fail(e, index, HEARTH_INTERNAL, err.message);
        return;
    }
    if (!r->first_ns) r->first_ns = clock_ns();
    if (!r->ignore_stop_ids && is_stop_id(e, id)) {
        generation_finish(r->generation, false);
        finish(e, index, HEARTH_FINISH_STOP);
        return;
    }
    r->usage.completion_tokens++;
    r->usage.reasoning_tokens += generation_in_reasoning(r->generation);
    r->next_token = id;
    if (generation_feed(r->generation, id)) {
        finish(e, index, HEARTH_FINISH_STOP);
    } else if (r->usage.completion_tokens == r->max_tokens) {
        generation_finish(r->generation, true);
        finish(e, index, HEARTH_FINISH_LENGTH);
    }
}

static void take_results(hearth_engine *e, const step *s) {
    for (int i = 0; i < s->count; i++) {
        const model_segment *run = &s->segments[i];
        int index = s->owners[i];
        hearth_request *r = e->running[index];
        const float *last_hidden = run->hidden + (size_t)(run->count - 1) * (size_t)e->config->hidden;
        memcpy(cache_run_hidden(r->run), last_hidden, (size_t)e->config->hidden * sizeof *last_hidden);
        cache_run_commit(r->run, run->tokens, run->count);
        if (prefilling(r)) r->position += run->count;
        if (run->logits) take_token(e, index, run->logits);
    }
}

static void run_step(hearth_engine *e) {
    step s;
    s.count = s.rows = s.prompt_rows = 0;
    add_decode_rows(e, &s);
    add_prompt_rows(e, &s);
    uint64_t start = clock_ns();
    error err;
    err_code code = model_forward(e->model, prefix_cache_kv(e->cache), s.segments, s.count, &err);
    double ms = clock_ms_since(start);
    if (code != ERR_OK) {
        for (int i = 0; i < s.count; i++) fail(e, s.owners[i], HEARTH_INTERNAL, err.message);
        close_up(e);
        return;
    }
    step_budget_record(&e->budget, s.rows, ms);
    /* Counted before the events go out, so that who has seen an answer end finds it in the counters. */
    pthread_mutex_lock(&e->lock);
    e->stats.steps++;
    e->stats.step_seconds += ms / 1e3;
    e->stats.prefilled_tokens += (uint64_t)s.prompt_rows;
    e->progress_ns = clock_ns();
    pthread_mutex_unlock(&e->lock);
    take_results(e, &s);
    close_up(e);
}

/* Waits until there is something to do; false when the engine closes. */
static bool wait_for_work(hearth_engine *e) {
    pthread_mutex_lock(&e->lock);
    bool idle = !e->running_count;
    while (idle && !e->waiting.first && !e->closing) pthread_cond_wait(&e->step_work, &e->lock);
    if (idle) e->progress_ns = clock_ns();
    bool closing = e->closing;
    pthread_mutex_unlock(&e->lock);
    return !closing;
}

void *scheduler_thread(void *engine) {
    hearth_engine *e = engine;
    publish(e);
    while (wait_for_work(e)) {
        drop_cancelled(e);
        admit(e);
        publish(e);
        if (e->running_count) run_step(e);
    }
    for (int i = 0; i < e->running_count; i++) fail(e, i, HEARTH_CANCELLED, "the engine is closing");
    close_up(e);
    return NULL;
}
