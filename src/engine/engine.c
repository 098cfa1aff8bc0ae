/* Opening and closing, and the parts of hearth.h that are about the engine as a whole; see engine.h. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"

enum { CONTEXT_DEFAULT = 32768, QUEUE_DEFAULT = 64, QUEUE_MAX = 1 << 20 };

/* ---- opening */

/* The last component of the directory's path: "models/Qwen3.6-27B/" is Qwen3.6-27B, "." is what it stands for. */
static char *directory_name(const char *dir) {
    char *real = realpath(dir, NULL);
    const char *path = real ? real : dir;
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    char *copy = mem_copy(name, strlen(name));
    free(real);
    return copy;
}

static err_code check_range(const char *what, long long value, long long max, error *err) {
    if (value < 0 || value > max) ERR_FAIL(err, ERR_INVALID, "%s is %lld; 1 to %lld are allowed", what, value, max);
    return ERR_OK;
}

static err_code set_limits(hearth_engine *e, const model_config *config, const hearth_options *o, error *err) {
    int64_t model_max = config->context_max;
    if (model_max > INT32_MAX / 2) model_max = INT32_MAX / 2;
    ERR_TRY(check_range("context", o->context_max, model_max, err));
    ERR_TRY(check_range("parallel", o->parallel, PARALLEL_MAX, err));
    ERR_TRY(check_range("queue", o->queue_max, QUEUE_MAX, err));
    int context_default = model_max < CONTEXT_DEFAULT ? (int)model_max : CONTEXT_DEFAULT;
    e->context_max = o->context_max ? o->context_max : context_default;
    e->parallel = o->parallel ? o->parallel : 1;
    e->queue_max = o->queue_max ? o->queue_max : QUEUE_DEFAULT;
    return ERR_OK;
}

/* A checkpoint without a tokenizer still runs prompts given as ids; one with a broken tokenizer does not open. */
static err_code open_format(hearth_engine *e, const model_config *config, const char *dir, bool reasoning, error *err) {
    e->vocabulary = config->vocab_rows;
    char *path = file_join(dir, "tokenizer.json");
    bool there = file_exists(path);
    free(path);
    if (!there) {
        error_set(&e->format_error, ERR_UNSUPPORTED, __FILE__, __LINE__,
                  "this checkpoint has no tokenizer.json: only prompts given as token ids can be run");
        return ERR_OK;
    }
    ERR_TRY(chat_format_open(dir, reasoning, &e->format, err));
    e->tokens = chat_format_tokenizer(e->format);
    if (!chat_format_has_template(e->format))
        error_set(&e->format_error, ERR_UNSUPPORTED, __FILE__, __LINE__,
                  "this checkpoint has no chat template (chat_template.jinja, or chat_template in "
                  "tokenizer_config.json): only prompts given as token ids can be run");
    int count = tokenizer_count(e->tokens);
    if (count > config->vocab_rows)
        ERR_FAIL(err, ERR_FORMAT, "%s: the tokenizer has %d ids, the model's embedding only %d rows", dir, count,
                 config->vocab_rows);
    e->vocabulary = count;
    return ERR_OK;
}

#define GIB(bytes) ((double)(bytes) / (1 << 30))

static void choose_kv(hearth_engine *e, hearth_kv_type wanted) {
    static const dtype types[] = {DTYPE_F32, DTYPE_F32, DTYPE_BF16, DTYPE_F8_E4M3};
    dtype usual = model_kv_default(e->model);
    e->kv_type = wanted == HEARTH_KV_AUTO ? usual : types[wanted];
    if (e->kv_type == DTYPE_F8_E4M3 && usual != DTYPE_F8_E4M3)
        log_line(LOG_WARN, "the checkpoint has no scales for an FP8 KV cache: 1 is used");
}

/* Without a wish a quarter of what there was before loading, and never more than half of what loading leaves. */
static uint64_t cache_budget(uint64_t wanted, uint64_t available, uint64_t left) {
    if (wanted) return wanted;
    return available / 4 < left / 2 ? available / 4 : left / 2;
}

/* Everything that will be held, against what there was before loading. */
static err_code plan_memory(hearth_engine *e, uint64_t cache_bytes, uint64_t available, error *err) {
    uint64_t weights = model_weight_bytes(e->model);
    e->logits_bytes = (size_t)e->parallel * (size_t)e->config->vocab_rows * sizeof(float);
    e->hidden_bytes = (size_t)ROWS_MAX * (size_t)e->config->hidden * sizeof(float);
    e->workspace_bytes = model_workspace_bytes(e->model) + e->logits_bytes + e->hidden_bytes;
    uint64_t left = available > weights + e->workspace_bytes ? available - weights - e->workspace_bytes : 0;
    cache_plan_make(e->config, e->kv_type, e->context_max, e->parallel, cache_budget(cache_bytes, available, left),
                    &e->plan);
    uint64_t cache = e->plan.kv_bytes + e->plan.state_bytes;
    if (cache_bytes && cache > cache_bytes)
        ERR_FAIL(err, ERR_MEMORY,
                 "cache_bytes is %llu: %d requests of %d tokens need KV cache %.2f GiB + states and snapshots %.2f GiB "
                 "= %llu bytes",
                 (unsigned long long)cache_bytes, e->parallel, e->context_max, GIB(e->plan.kv_bytes),
                 GIB(e->plan.state_bytes), (unsigned long long)cache);
    if (cache > left)
        ERR_FAIL(err, ERR_MEMORY,
                 "the memory plan does not fit: weights %.2f GiB + KV cache %.2f GiB + states and snapshots %.2f GiB + "
                 "workspace %.2f GiB = %.2f GiB, available %.2f GiB (context %d, parallel %d)",
                 GIB(weights), GIB(e->plan.kv_bytes), GIB(e->plan.state_bytes), GIB(e->workspace_bytes),
                 GIB(weights + cache + e->workspace_bytes), GIB(available), e->context_max, e->parallel);
    return ERR_OK;
}

static err_code reserve_memory(hearth_engine *e, error *err) {
    void *memory;
    ERR_TRY(prefix_cache_create(e->config, e->kv_type, &e->plan, &e->cache, err));
    ERR_TRY(memory_map(e->logits_bytes, "logits", &memory, err));
    e->logits = memory;
    ERR_TRY(memory_map(e->hidden_bytes, "hidden rows", &memory, err));
    e->hidden = memory;
    e->sampler = sampler_create(e->vocabulary);
    step_budget_init(&e->budget, STEP_TARGET_MS, ROWS_MAX);
    return ERR_OK;
}

static err_code start_thread(pthread_t *thread, bool *started, void *(*main)(void *), hearth_engine *e, error *err) {
    int code = pthread_create(thread, NULL, main, e);
    if (code) ERR_FAIL(err, ERR_IO, "cannot start a thread: %s", strerror(code));
    *started = true;
    return ERR_OK;
}

/* What is small comes first, so that a wrong option or tokenizer is told before gigabytes are read. */
static err_code open_parts(hearth_engine *e, const char *dir, const hearth_options *o, error *err) {
    uint64_t available = memory_available();
    model_config config;
    ERR_TRY(model_config_read(dir, &config, err));
    ERR_TRY(set_limits(e, &config, o, err));
    ERR_TRY(open_format(e, &config, dir, o->reasoning, err));
    ERR_TRY(pool_create(o->threads, &e->workers, err));
    model_options options = {
        .pool = e->workers,
        .rows_max = ROWS_MAX,
        .segments_max = PARALLEL_MAX,
        .activations = o->activations == HEARTH_ACTIVATIONS_NVFP4 ? ACTIVATIONS_QUANTISED : ACTIVATIONS_EXACT,
        .progress = o->progress,
        .progress_context = o->progress_context};
    ERR_TRY(model_open(dir, &options, &e->model, err));
    for (int i = 0; i < model_warning_count(e->model); i++) log_line(LOG_WARN, "%s", model_warning(e->model, i));
    e->config = model_get_config(e->model);
    choose_kv(e, o->kv);
    ERR_TRY(plan_memory(e, o->cache_bytes, available, err));
    ERR_TRY(reserve_memory(e, err));
    ERR_TRY(start_thread(&e->engine_thread, &e->engine_started, scheduler_thread, e, err));
    return start_thread(&e->text_thread, &e->text_started, prepare_thread, e, err);
}

hearth_status hearth_engine_open(const char *model_dir, const hearth_options *options, hearth_engine **engine,
                                 hearth_error *fault) {
    hearth_options defaults = {0};
    const hearth_options *o = options ? options : &defaults;
    if (o->threads < 0)
        return hearth_fail(fault, HEARTH_INVALID, "threads", "threads is %d; it must not be negative", o->threads);
    if ((unsigned)o->activations > HEARTH_ACTIVATIONS_NVFP4)
        return hearth_fail(fault, HEARTH_INVALID, "activations",
                           "activations is %d; it must be one of "
                           "hearth_activations",
                           (int)o->activations);
    if ((unsigned)o->kv > HEARTH_KV_FP8)
        return hearth_fail(fault, HEARTH_INVALID, "kv", "kv is %d; it must be one of hearth_kv_type", (int)o->kv);
    hearth_engine *e = mem_zero(1, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->text_work, NULL);
    pthread_cond_init(&e->step_work, NULL);
    e->created = clock_unix_s();
    e->name = o->name ? mem_copy(o->name, strlen(o->name)) : directory_name(model_dir);
    error err;
    err_code code = open_parts(e, model_dir, o, &err);
    if (code != ERR_OK) {
        hearth_engine_close(e);
        return hearth_fail(fault, hearth_status_from(code), "", "%s", err.message);
    }
    *engine = e;
    return HEARTH_OK;
}

static void cancel_queue(hearth_engine *e, request_queue *q) {
    for (;;) {
        pthread_mutex_lock(&e->lock);
        hearth_request *r = request_queue_pop(q);
        pthread_mutex_unlock(&e->lock);
        if (!r) return;
        engine_end_with_error(r, HEARTH_CANCELLED, "the engine is closing");
    }
}

void hearth_engine_close(hearth_engine *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_signal(&e->text_work);
    pthread_cond_signal(&e->step_work);
    pthread_mutex_unlock(&e->lock);
    cancel_queue(e, &e->queued);
    if (e->text_started) pthread_join(e->text_thread, NULL);
    if (e->engine_started) pthread_join(e->engine_thread, NULL);
    cancel_queue(e, &e->waiting);
    sampler_destroy(e->sampler);
    memory_unmap(e->logits, e->logits_bytes);
    memory_unmap(e->hidden, e->hidden_bytes);
    prefix_cache_destroy(e->cache);
    if (e->format) chat_format_close(e->format);
    if (e->model) model_close(e->model);
    if (e->workers) pool_destroy(e->workers);
    pthread_cond_destroy(&e->text_work);
    pthread_cond_destroy(&e->step_work);
    pthread_mutex_destroy(&e->lock);
    free(e->name);
    free(e);
}

hearth_info hearth_engine_info(const hearth_engine *e) {
    return (hearth_info){.name = e->name,
                         .context_max = e->context_max,
                         .vocabulary = e->vocabulary,
                         .parallel = e->parallel,
                         .created = e->created,
                         .chat_error = e->format_error.code ? e->format_error.message : NULL,
                         .weight_bytes = model_weight_bytes(e->model),
                         .kv = e->kv_type == DTYPE_F32    ? HEARTH_KV_FP32
                               : e->kv_type == DTYPE_BF16 ? HEARTH_KV_BF16
                                                          : HEARTH_KV_FP8,
                         .kv_bytes = e->plan.kv_bytes,
                         .state_bytes = e->plan.state_bytes,
                         .workspace_bytes = e->workspace_bytes};
}

/* ---- requests */

/* When a place is likely to be free: the requests ahead, `parallel` at a time. */
static int retry_after(const hearth_engine *e) {
    double seconds = e->request_seconds * e->live / e->parallel;
    return seconds < 1 ? 1 : seconds > 60 ? 60 : (int)seconds;
}

hearth_status hearth_request_create(hearth_engine *e, const hearth_request_params *params, hearth_request **request,
                                    hearth_error *fault) {
    hearth_request *r;
    hearth_status status = request_create(e, params, &r, fault);
    if (status != HEARTH_OK) return status;
    pthread_mutex_lock(&e->lock);
    int live = e->live, retry = retry_after(e);
    bool full = live >= e->parallel + e->queue_max;
    if (full) {
        e->stats.requests_refused++;
    } else {
        if (!e->live++) e->progress_ns = clock_ns();
        request_hold(r);
        request_queue_push(&e->queued, r);
        pthread_cond_signal(&e->text_work);
    }
    pthread_mutex_unlock(&e->lock);
    if (full) {
        request_drop(r);
        hearth_fail(fault, HEARTH_BUSY, "", "%d requests are running or waiting, which is the limit", live);
        if (fault) fault->retry_after_s = retry;
        return HEARTH_BUSY;
    }
    *request = r;
    return HEARTH_OK;
}

static void count_end(hearth_engine *e, const hearth_request *r, const hearth_event *last) {
    e->live--;
    if (last->type == HEARTH_EVENT_FINISH)
        e->stats.requests_finished++;
    else if (last->error.status == HEARTH_CANCELLED)
        e->stats.requests_cancelled++;
    else
        e->stats.requests_failed++;
    if (!r->admitted_ns) return;
    e->stats.running--;
    e->stats.prompt_tokens += (uint64_t)r->usage.prompt_tokens;
    e->stats.cached_tokens += (uint64_t)r->usage.cached_tokens;
    e->stats.generated_tokens += (uint64_t)r->usage.completion_tokens;
    double seconds = clock_ms_since(r->admitted_ns) / 1e3;
    e->request_seconds += (seconds - e->request_seconds) * 0.2;
}

void engine_end_request(hearth_request *r, const hearth_event *last) {
    hearth_engine *e = r->engine;
    pthread_mutex_lock(&e->lock);
    count_end(e, r, last);
    pthread_mutex_unlock(&e->lock);
    request_push(r, last, (span){0});
    request_drop(r);
}

void engine_end_with_error(hearth_request *r, hearth_status status, const char *message) {
    hearth_event event = {.type = HEARTH_EVENT_ERROR, .usage = r->usage, .timing = request_timing(r, clock_ns())};
    hearth_fail(&event.error, status, "", "%s", message);
    engine_end_request(r, &event);
}

hearth_stats hearth_engine_stats(const hearth_engine *engine) {
    hearth_engine *e = (hearth_engine *)engine; /* the lock is not part of what the caller sees */
    pthread_mutex_lock(&e->lock);
    hearth_stats stats = e->stats;
    stats.queued = e->live - stats.running;
    stats.seconds_since_step = e->live ? clock_ms_since(e->progress_ns) / 1e3 : 0;
    pthread_mutex_unlock(&e->lock);
    return stats;
}

/* ---- text */

static hearth_status need_tokenizer(const hearth_engine *e, hearth_error *fault) {
    if (e->tokens) return HEARTH_OK;
    return hearth_fail(fault, HEARTH_UNSUPPORTED, "", "%s", e->format_error.message);
}

hearth_status hearth_tokenize(const hearth_engine *e, const char *text, size_t size, int32_t **ids, size_t *count,
                              hearth_error *fault) {
    hearth_status status = need_tokenizer(e, fault);
    if (status != HEARTH_OK) return status;
    token_list list = {0};
    error err;
    err_code code = tokenizer_encode(e->tokens, span_make(text, size), true, &list, &err);
    if (code != ERR_OK) {
        token_list_deinit(&list);
        return hearth_fail(fault, hearth_status_from(code), "", "%s", err.message);
    }
    *ids = list.ids ? list.ids : mem_alloc(sizeof **ids);
    *count = list.count;
    return HEARTH_OK;
}

hearth_status hearth_detokenize(const hearth_engine *e, const int32_t *ids, size_t count, char **text, size_t *size,
                                hearth_error *fault) {
    hearth_status status = need_tokenizer(e, fault);
    if (status != HEARTH_OK) return status;
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= e->vocabulary)
            return hearth_fail(fault, HEARTH_INVALID, "tokens", "id %d at %zu is not one of the %d of this model",
                               ids[i], i, e->vocabulary);
    buffer raw = {0}, repaired = {0};
    tokenizer_decode(e->tokens, ids, count, false, &raw);
    utf8_repair(&repaired, span_make(raw.data, raw.size));
    buffer_deinit(&raw);
    *size = repaired.size;
    *text = buffer_take(&repaired);
    return HEARTH_OK;
}
