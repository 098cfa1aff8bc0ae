/* See request.h. */
#include "engine/request.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/engine.h"

struct event_node {
    event_node *next;
    hearth_event event;
    char text[]; /* NUL-terminated */
};

/* ---- errors */

hearth_status hearth_fail(hearth_error *fault, hearth_status status, const char *param, const char *format, ...) {
    if (!fault) return status;
    *fault = (hearth_error){.status = status};
    snprintf(fault->param, sizeof fault->param, "%s", param);
    va_list args;
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return status;
}

hearth_status hearth_status_from(err_code code) {
    static const hearth_status map[] = {
        [ERR_OK] = HEARTH_OK,
        [ERR_INVALID] = HEARTH_INVALID,
        [ERR_NOT_FOUND] = HEARTH_NOT_FOUND,
        [ERR_IO] = HEARTH_IO,
        [ERR_FORMAT] = HEARTH_FORMAT,
        [ERR_UNSUPPORTED] = HEARTH_UNSUPPORTED,
        [ERR_LIMIT] = HEARTH_INVALID,
        [ERR_MEMORY] = HEARTH_MEMORY,
        [ERR_CANCELLED] = HEARTH_CANCELLED,
        [ERR_INTERNAL] = HEARTH_INTERNAL,
    };
    return map[code];
}

void hearth_error_from_request(hearth_error *out, const error *from) {
    static const char *const fields[] = {"messages", "tools", "chat_template_kwargs"};
    hearth_status status = from->code == ERR_FORMAT      ? HEARTH_INVALID
                           : from->code == ERR_NOT_FOUND ? HEARTH_UNSUPPORTED /* no chat template */
                                                         : hearth_status_from(from->code);
    char param[64] = "";
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t size = strlen(fields[i]), end = strcspn(from->message, ": ");
        if (strncmp(from->message, fields[i], size) || end >= sizeof param) continue;
        if (!strchr(":[. ", from->message[size])) continue;
        memcpy(param, from->message, end);
        param[end] = 0;
    }
    hearth_fail(out, status, param, "%s", from->message);
}

/* ---- queues */

void request_queue_push(request_queue *q, hearth_request *r) {
    r->next = NULL;
    if (q->last)
        q->last->next = r;
    else
        q->first = r;
    q->last = r;
    q->count++;
}

hearth_request *request_queue_pop(request_queue *q) {
    hearth_request *r = q->first;
    if (!r) return NULL;
    q->first = r->next;
    if (!q->first) q->last = NULL;
    q->count--;
    return r;
}

hearth_request *request_queue_take_cancelled(request_queue *q) {
    request_queue all = *q, taken = {0};
    *q = (request_queue){0};
    for (hearth_request *r; (r = request_queue_pop(&all));)
        request_queue_push(atomic_load(&r->cancelled) ? &taken : q, r);
    return taken.first;
}

/* ---- parameters */

hearth_request_params hearth_request_defaults(void) {
    return (hearth_request_params){.tool_calls = true, .temperature = -1, .top_p = -1, .min_p = -1, .top_k = -1};
}

/* A value in [0, max], or negative for "not given". */
static hearth_status check_number(double value, double max, const char *name, hearth_error *fault) {
    if (value <= max) return HEARTH_OK; /* false for NaN */
    return hearth_fail(fault, HEARTH_INVALID, name, "%s is %g; it must be between 0 and %g", name, value, max);
}

static hearth_status check_stop(const hearth_request_params *p, hearth_error *fault) {
    if (p->stop_count < 0 || p->stop_count > STOP_STRINGS_MAX)
        return hearth_fail(fault, HEARTH_INVALID, "stop", "stop has %d strings; at most %d are allowed", p->stop_count,
                           STOP_STRINGS_MAX);
    for (int i = 0; i < p->stop_count; i++) {
        size_t size = p->stop[i] ? strlen(p->stop[i]) : 0;
        if (!size || size > STOP_STRING_BYTES_MAX)
            return hearth_fail(fault, HEARTH_INVALID, "stop", "stop[%d] has %zu bytes; 1 to %d are allowed", i, size,
                               STOP_STRING_BYTES_MAX);
        if (!utf8_valid(span_text(p->stop[i])))
            return hearth_fail(fault, HEARTH_INVALID, "stop", "stop[%d] is not valid UTF-8", i);
    }
    return HEARTH_OK;
}

static hearth_status check_prompt(const hearth_engine *e, const hearth_request_params *p, hearth_error *fault) {
    if (!p->messages == !p->prompt_ids)
        return hearth_fail(fault, HEARTH_INVALID, "messages", "either messages or prompt ids must be given");
    if (p->prompt_ids && p->prompt_id_count == 0)
        return hearth_fail(fault, HEARTH_INVALID, "prompt", "the prompt is empty");
    for (size_t i = 0; p->prompt_ids && i < p->prompt_id_count; i++)
        if (p->prompt_ids[i] < 0 || p->prompt_ids[i] >= e->vocabulary)
            return hearth_fail(fault, HEARTH_INVALID, "prompt",
                               "prompt id %d at %zu is not one of the %d of this model", p->prompt_ids[i], i,
                               e->vocabulary);
    return HEARTH_OK;
}

#define CHECK(expression)                         \
    do {                                          \
        hearth_status status_ = (expression);     \
        if (status_ != HEARTH_OK) return status_; \
    } while (0)

static hearth_status check_params(const hearth_engine *e, const hearth_request_params *p, hearth_error *fault) {
    CHECK(check_prompt(e, p, fault));
    if (p->max_tokens < 0)
        return hearth_fail(fault, HEARTH_INVALID, "max_tokens", "max_tokens is %d; it must be at least 1",
                           p->max_tokens);
    CHECK(check_number(p->temperature, 100, "temperature", fault));
    CHECK(check_number(p->top_p, 1, "top_p", fault));
    CHECK(check_number(p->min_p, 1, "min_p", fault));
    return check_stop(p, fault);
}

static uint64_t draw_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = clock_ns(); /* before the kernel's pool is up */
    return seed;
}

/* What the caller leaves open comes from generation_config.json, where sampling may be off. */
static sampler_params resolve_sampling(const model_config *c, const hearth_request_params *p) {
    sampler_params s = {.temperature = p->temperature, .top_p = p->top_p, .min_p = p->min_p, .top_k = p->top_k};
    if (s.temperature < 0) s.temperature = c->do_sample ? c->temperature : 0;
    if (s.top_p < 0) s.top_p = c->top_p;
    if (s.min_p < 0) s.min_p = c->min_p;
    if (s.top_k < 0) s.top_k = c->top_k;
    s.seed = p->has_seed ? p->seed : draw_seed();
    return s;
}

static char *copy_text(const char *text, size_t given, size_t *size) {
    *size = !text ? 0 : given ? given : strlen(text);
    return text ? mem_copy(text, *size) : NULL;
}

static void init_locks(hearth_request *r) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->ready_lock, NULL);
}

hearth_status request_create(hearth_engine *e, const hearth_request_params *p, hearth_request **out,
                             hearth_error *fault) {
    CHECK(check_params(e, p, fault));
    hearth_request *r = mem_zero(1, sizeof *r);
    init_locks(r);
    r->engine = e;
    atomic_init(&r->holders, 1);
    atomic_init(&r->cancelled, false);
    r->created_ns = clock_ns();
    r->ready = p->ready;
    r->ready_context = p->ready_context;
    r->messages = copy_text(p->messages, p->messages_size, &r->messages_size);
    r->tools = copy_text(p->tools, p->tools_size, &r->tools_size);
    r->template_kwargs = copy_text(p->template_kwargs, p->template_kwargs_size, &r->template_kwargs_size);
    if (p->prompt_ids) {
        r->ids = (int32_t *)mem_copy(p->prompt_ids, p->prompt_id_count * sizeof *r->ids);
        r->count = p->prompt_id_count < INT32_MAX ? (int)p->prompt_id_count : INT32_MAX;
    }
    r->stop_count = p->stop_count;
    r->stop = mem_zero((size_t)p->stop_count, sizeof *r->stop);
    for (int i = 0; i < p->stop_count; i++) r->stop[i] = mem_copy(p->stop[i], strlen(p->stop[i]));
    r->tool_calls = p->tool_calls;
    r->raw_output = p->raw_output && p->prompt_ids;
    r->ignore_stop_ids = p->ignore_stop_ids;
    r->max_tokens = p->max_tokens;
    r->sampling = resolve_sampling(e->config, p);
    *out = r;
    return HEARTH_OK;
}

/* ---- life */

static void free_events(event_node *first) {
    while (first) {
        event_node *next = first->next;
        free(first);
        first = next;
    }
}

static void request_free(hearth_request *r) {
    free_events(r->first);
    free(r->current);
    generation_destroy(r->generation);
    arena_destroy(r->json);
    for (int i = 0; i < r->stop_count; i++) free(r->stop[i]);
    free(r->stop);
    free(r->messages);
    free(r->tools);
    free(r->template_kwargs);
    free(r->ids);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->ready_lock);
    free(r);
}

void request_hold(hearth_request *r) { atomic_fetch_add(&r->holders, 1); }

void request_drop(hearth_request *r) {
    if (atomic_fetch_sub(&r->holders, 1) == 1) request_free(r);
}

hearth_timing request_timing(const hearth_request *r, uint64_t now_ns) {
    uint64_t preparing = r->preparing_ns ? r->preparing_ns : now_ns;
    uint64_t prepared = r->prepared_ns ? r->prepared_ns : now_ns;
    uint64_t admitted = r->admitted_ns ? r->admitted_ns : now_ns;
    uint64_t first = r->first_ns ? r->first_ns : now_ns;
    return (hearth_timing){.queue_ms = (double)(preparing - r->created_ns + (admitted - prepared)) / 1e6,
                           .prepare_ms = (double)(prepared - preparing) / 1e6,
                           .prefill_ms = (double)(first - admitted) / 1e6,
                           .decode_ms = (double)(now_ns - first) / 1e6};
}

/* ---- events */

static bool is_last(const hearth_event *event) {
    return event->type == HEARTH_EVENT_FINISH || event->type == HEARTH_EVENT_ERROR;
}

void request_push(hearth_request *r, const hearth_event *event, span text) {
    event_node *node = mem_alloc(sizeof *node + text.size + 1);
    *node = (event_node){.event = *event};
    if (text.size) memcpy(node->text, text.data, text.size);
    node->text[text.size] = 0;
    node->event.text = node->text;
    node->event.text_size = text.size;

    pthread_mutex_lock(&r->lock);
    bool late = r->ended;
    if (!late) {
        if (r->last)
            r->last->next = node;
        else
            r->first = node;
        r->last = node;
        r->ended = is_last(event);
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    if (late) {
        free(node);
        return;
    }
    pthread_mutex_lock(&r->ready_lock);
    if (r->ready) r->ready(r->ready_context);
    pthread_mutex_unlock(&r->ready_lock);
}

static struct timespec deadline(int timeout_ms) {
    uint64_t at = clock_ns() + (uint64_t)timeout_ms * 1000000u;
    return (struct timespec){.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
}

bool hearth_request_next(hearth_request *r, hearth_event *event, int timeout_ms) {
    struct timespec until = deadline(timeout_ms > 0 ? timeout_ms : 0);
    pthread_mutex_lock(&r->lock);
    while (!r->first && !r->ended && timeout_ms != 0) {
        int code = timeout_ms < 0 ? pthread_cond_wait(&r->changed, &r->lock)
                                  : pthread_cond_timedwait(&r->changed, &r->lock, &until);
        if (code == ETIMEDOUT) break;
    }
    event_node *node = r->first;
    if (node) {
        r->first = node->next;
        if (!r->first) r->last = NULL;
        free(r->current);
        r->current = node;
        *event = node->event;
    }
    pthread_mutex_unlock(&r->lock);
    return node != NULL;
}

bool hearth_request_finished(const hearth_request *request) {
    hearth_request *r = (hearth_request *)request; /* the lock is not part of what the caller sees */
    pthread_mutex_lock(&r->lock);
    bool finished = r->ended && !r->first;
    pthread_mutex_unlock(&r->lock);
    return finished;
}

void hearth_request_cancel(hearth_request *r) {
    if (!r) return;
    atomic_store(&r->cancelled, true);
    hearth_engine *e = r->engine;
    pthread_mutex_lock(&e->lock);
    pthread_cond_signal(&e->text_work);
    pthread_cond_signal(&e->step_work);
    pthread_mutex_unlock(&e->lock);
}

void hearth_request_destroy(hearth_request *r) {
    if (!r) return;
    pthread_mutex_lock(&r->ready_lock); /* waits for a call of ready that is under way */
    r->ready = NULL;
    pthread_mutex_unlock(&r->ready_lock);
    if (!hearth_request_finished(r)) hearth_request_cancel(r);
    request_drop(r);
}
