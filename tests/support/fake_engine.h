/* An engine without a model: implements include/hearth.h with scripted answers, so that the server is tested alone.
 *
 * Included by exactly one translation unit of a test program; its definitions are found before libhearth.a is searched,
 * so that the real engine's objects are not linked. The last message's content is the script, a directive a line
 * ("\n" in a text stands for a newline); text without a directive is echoed:
 *
 *     think TEXT, say TEXT, call NAME, args TEXT, end     one event each
 *     prepare MS                                          wait before the START event (first line)
 *     sleep MS                                            wait
 *     hang                                                wait until cancelled
 *     flood N SIZE                                        N content events of SIZE bytes, there at once
 *     finish stop|length|tool_calls                       the last event; default stop
 *     error STATUS PARAM MESSAGE                          the last event; as the first line it comes before START
 */
#ifndef HEARTH_TESTS_FAKE_ENGINE_H
#define HEARTH_TESTS_FAKE_ENGINE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "hearth.h"

struct hearth_engine {
    pthread_mutex_t lock;
    pthread_cond_t slot;
    hearth_info info;
    int queue_max;
    hearth_stats stats;
    /* What tests look at. */
    atomic_int live, cancels, taken; /* requests; cancels; events handed out */
    atomic_uint_fast64_t cancel_ns;  /* of the latest cancel */
    hearth_request_params seen;      /* of the latest request; only the numbers are valid */
    char seen_messages[4096], seen_kwargs[512], seen_tools[4096], seen_stop[64];
};

struct hearth_request {
    hearth_engine *engine;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    hearth_event *events; /* text owned */
    size_t count, taken;
    bool cancelled, finished;
    void (*ready)(void *context);
    void *ready_context;
    char *messages, *script;
    size_t messages_size;
    hearth_usage usage;
    int calls;
    char *last_text;
};

static hearth_engine *fake_latest; /* the engine opened last */

hearth_status hearth_engine_open(const char *dir, const hearth_options *options, hearth_engine **out,
                                 hearth_error *why) {
    (void)why;
    hearth_engine *e = mem_zero(1, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->slot, NULL);
    e->info = (hearth_info){.name = options && options->name ? options->name : dir,
                            .context_max = options && options->context_max ? options->context_max : 32768,
                            .vocabulary = 256,
                            .parallel = options && options->parallel ? options->parallel : 4,
                            .created = 1700000000,
                            .weight_bytes = 1000};
    e->queue_max = options && options->queue_max ? options->queue_max : 4;
    fake_latest = *out = e;
    return HEARTH_OK;
}

void hearth_engine_close(hearth_engine *e) {
    HEARTH_ASSERT(atomic_load(&e->live) == 0);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->slot);
    free(e);
}

hearth_info hearth_engine_info(const hearth_engine *e) { return e->info; }

hearth_stats hearth_engine_stats(const hearth_engine *e) {
    hearth_engine *engine = (hearth_engine *)e;
    pthread_mutex_lock(&engine->lock);
    hearth_stats stats = e->stats;
    pthread_mutex_unlock(&engine->lock);
    return stats;
}

hearth_request_params hearth_request_defaults(void) {
    return (hearth_request_params){.temperature = -1, .top_p = -1, .min_p = -1, .top_k = -1};
}

static void fake_emit_many(hearth_request *r, hearth_event event, const char *text, size_t size, size_t count) {
    pthread_mutex_lock(&r->lock);
    r->events = mem_grow(r->events, r->count + count, sizeof *r->events);
    event.text_size = text ? size : 0;
    for (size_t i = 0; i < count; i++) {
        event.text = mem_copy(text ? text : "", event.text_size);
        r->events[r->count++] = event;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->ready) r->ready(r->ready_context);
}

static void fake_emit(hearth_request *r, hearth_event event, const char *text, size_t size) {
    fake_emit_many(r, event, text, size, 1);
}

/* Waits ms (-1 = for ever) or until cancelled. */
static bool fake_wait(hearth_request *r, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
    pthread_mutex_lock(&r->lock);
    int status = 0;
    while (!r->cancelled && status != ETIMEDOUT)
        status =
            ms < 0 ? pthread_cond_wait(&r->changed, &r->lock) : pthread_cond_timedwait(&r->changed, &r->lock, &until);
    bool cancelled = r->cancelled;
    pthread_mutex_unlock(&r->lock);
    return !cancelled;
}

static hearth_status fake_status(const char *name) {
    static const char *const names[] = {"ok",       "invalid", "not_found", "io",        "format",  "unsupported",
                                        "exceeded", "busy",    "memory",    "cancelled", "internal"};
    for (int i = 0; i < 11; i++)
        if (!strcmp(names[i], name)) return (hearth_status)i;
    return HEARTH_INTERNAL;
}

static void fake_error(hearth_request *r, hearth_status status, const char *param, const char *message) {
    hearth_event event = {.type = HEARTH_EVENT_ERROR, .usage = r->usage};
    event.error.status = status;
    snprintf(event.error.param, sizeof event.error.param, "%s", param);
    snprintf(event.error.message, sizeof event.error.message, "%s", message);
    fake_emit(r, event, NULL, 0);
}

/* Replaces \n by a newline, in place. */
static size_t fake_unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (from[0] == '\\' && from[1] == 'n')
            *to++ = '\n', from++;
        else
            *to++ = *from;
    }
    *to = 0;
    return (size_t)(to - text);
}

static void fake_flood(hearth_request *r, const char *rest) {
    int n = 0, size = 0;
    if (sscanf(rest, "%d %d", &n, &size) != 2) return;
    char *text = mem_alloc((size_t)size);
    memset(text, 'x', (size_t)size);
    fake_emit_many(r, (hearth_event){.type = HEARTH_EVENT_CONTENT}, text, (size_t)size, (size_t)n);
    free(text);
}

/* One directive. True: the request is over. */
static bool fake_line(hearth_request *r, char *line, hearth_finish *finish) {
    char *rest = strchr(line, ' ');
    if (rest)
        *rest++ = 0;
    else
        rest = line + strlen(line);
    static const struct {
        const char *word;
        hearth_event_type type;
    } texts[] = {{"think", HEARTH_EVENT_REASONING},
                 {"say", HEARTH_EVENT_CONTENT},
                 {"call", HEARTH_EVENT_CALL_BEGIN},
                 {"args", HEARTH_EVENT_CALL_ARGUMENTS},
                 {"end", HEARTH_EVENT_CALL_END}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(line, texts[i].word)) continue;
        size_t size = fake_unescape(rest);
        r->usage.completion_tokens++;
        r->usage.reasoning_tokens += texts[i].type == HEARTH_EVENT_REASONING;
        hearth_event event = {.type = texts[i].type, .index = r->calls};
        fake_emit(r, event, rest, size);
        r->calls += texts[i].type == HEARTH_EVENT_CALL_END;
        return false;
    }
    int ms = 0;
    if (!strcmp(line, "sleep") && sscanf(rest, "%d", &ms) == 1) return !fake_wait(r, ms);
    if (!strcmp(line, "hang")) return !fake_wait(r, -1);
    if (!strcmp(line, "flood")) fake_flood(r, rest);
    if (!strcmp(line, "finish"))
        *finish = !strcmp(rest, "length")       ? HEARTH_FINISH_LENGTH
                  : !strcmp(rest, "tool_calls") ? HEARTH_FINISH_TOOL_CALLS
                                                : HEARTH_FINISH_STOP;
    if (!strcmp(line, "error")) {
        char status[32] = "", param[64] = "", message[256] = "";
        sscanf(rest, "%31s %63s %255[^\n]", status, param, message);
        fake_error(r, fake_status(status), strcmp(param, "-") ? param : "", message);
        return true;
    }
    return false;
}

static bool fake_is_directive(const char *line) {
    static const char *const words[] = {"think", "say", "call", "args", "end", "sleep", "hang", "flood", "finish"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if (!strncmp(line, words[i], size) && (!line[size] || line[size] == ' ' || line[size] == '\n')) return true;
    }
    return false;
}

static bool fake_run(hearth_request *r) {
    char *script = r->script;
    int ms = 0;
    if (!strncmp(script, "prepare ", 8)) {
        sscanf(script + 8, "%d", &ms);
        if (!fake_wait(r, ms)) return false;
        script += strcspn(script, "\n");
        if (*script) script++;
    }
    hearth_finish finish = HEARTH_FINISH_STOP;
    if (!strncmp(script, "error ", 6)) return fake_line(r, script, &finish);
    r->usage.prompt_tokens = (int)strlen(r->script) + 10;
    r->usage.cached_tokens = 5;
    fake_emit(r, (hearth_event){.type = HEARTH_EVENT_START, .usage = r->usage}, NULL, 0);
    if (!fake_is_directive(script)) {
        fake_emit(r, (hearth_event){.type = HEARTH_EVENT_CONTENT}, script, strlen(script));
        r->usage.completion_tokens = 1;
    } else {
        for (char *line = script, *next; line; line = next) {
            next = strchr(line, '\n');
            if (next) *next++ = 0;
            if (fake_line(r, line, &finish)) return r->count && r->events[r->count - 1].type == HEARTH_EVENT_ERROR;
        }
    }
    if (!fake_wait(r, 0)) return false;
    hearth_timing timing = {1, 2, 3, 4};
    fake_emit(r, (hearth_event){.type = HEARTH_EVENT_FINISH, .finish = finish, .usage = r->usage, .timing = timing},
              NULL, 0);
    return true;
}

/* Content of the last message: a string, or the text of its first part. */
static char *fake_script(const char *messages, size_t size) {
    arena *a = arena_create();
    const json *root = NULL, *content = NULL;
    if (!json_parse(a, span_make(messages, size), 64, &root, NULL) && root->count)
        content = json_get(json_at(root, root->count - 1), "content");
    if (json_is(content, JSON_ARRAY)) content = json_get(json_at(content, 0), "text");
    char *script = json_is(content, JSON_STRING) ? mem_copy(content->text.data, content->text.size) : mem_copy("", 0);
    arena_destroy(a);
    return script;
}

static void *fake_thread(void *context) {
    hearth_request *r = context;
    hearth_engine *e = r->engine;
    r->script = fake_script(r->messages, r->messages_size);
    pthread_mutex_lock(&e->lock);
    e->stats.queued++;
    while (e->stats.running >= e->info.parallel && fake_wait(r, 0)) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 5000000;
        if (t.tv_nsec >= 1000000000L) t.tv_sec++, t.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&e->slot, &e->lock, &t);
    }
    e->stats.queued--;
    e->stats.running++;
    pthread_mutex_unlock(&e->lock);
    bool over = fake_wait(r, 0) && fake_run(r);
    pthread_mutex_lock(&e->lock);
    e->stats.running--;
    e->stats.requests_finished += over;
    e->stats.requests_cancelled += !over;
    pthread_cond_broadcast(&e->slot);
    pthread_mutex_unlock(&e->lock);
    if (!over) fake_error(r, HEARTH_CANCELLED, "", "cancelled");
    return NULL;
}

static void fake_note(char *out, size_t room, const char *text, size_t size) {
    snprintf(out, room, "%.*s", (int)(size < room ? size : room - 1), text ? text : "");
}

hearth_status hearth_request_create(hearth_engine *e, const hearth_request_params *p, hearth_request **out,
                                    hearth_error *why) {
    *why = (hearth_error){0};
    if (atomic_load(&e->live) >= e->info.parallel + e->queue_max) {
        why->status = HEARTH_BUSY;
        why->retry_after_s = 3;
        snprintf(why->message, sizeof why->message, "the queue of %d requests is full", e->queue_max);
        return HEARTH_BUSY;
    }
    e->seen = *p;
    fake_note(e->seen_messages, sizeof e->seen_messages, p->messages, p->messages_size);
    fake_note(e->seen_kwargs, sizeof e->seen_kwargs, p->template_kwargs, p->template_kwargs_size);
    fake_note(e->seen_tools, sizeof e->seen_tools, p->tools, p->tools_size);
    fake_note(e->seen_stop, sizeof e->seen_stop, p->stop_count ? p->stop[0] : "",
              p->stop_count ? strlen(p->stop[0]) : 0);
    hearth_request *r = mem_zero(1, sizeof *r);
    r->engine = e;
    r->ready = p->ready;
    r->ready_context = p->ready_context;
    r->messages = mem_copy(p->messages, p->messages_size);
    r->messages_size = p->messages_size;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    atomic_fetch_add(&e->live, 1);
    int status = pthread_create(&r->thread, NULL, fake_thread, r);
    HEARTH_ASSERT(status == 0);
    *out = r;
    return HEARTH_OK;
}

bool hearth_request_next(hearth_request *r, hearth_event *event, int timeout_ms) {
    HEARTH_ASSERT(timeout_ms == 0); /* the server only polls */
    pthread_mutex_lock(&r->lock);
    bool have = r->taken < r->count;
    if (have) {
        *event = r->events[r->taken++];
        atomic_fetch_add(&r->engine->taken, 1);
        r->finished = event->type == HEARTH_EVENT_FINISH || event->type == HEARTH_EVENT_ERROR;
    }
    pthread_mutex_unlock(&r->lock);
    free(r->last_text); /* text is valid until the next call only */
    r->last_text = have ? (char *)event->text : NULL;
    return have;
}

bool hearth_request_finished(const hearth_request *r) { return r->finished; }

void hearth_request_cancel(hearth_request *r) {
    pthread_mutex_lock(&r->lock);
    if (!r->cancelled) {
        atomic_fetch_add(&r->engine->cancels, 1);
        atomic_store(&r->engine->cancel_ns, clock_ns());
    }
    r->cancelled = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void hearth_request_destroy(hearth_request *r) {
    pthread_mutex_lock(&r->lock);
    r->cancelled = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    for (size_t i = r->taken; i < r->count; i++) free((char *)r->events[i].text);
    free(r->events);
    free(r->last_text);
    free(r->script);
    free(r->messages);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    atomic_fetch_sub(&r->engine->live, 1);
    free(r);
}

/* Tokens are bytes. */
hearth_status hearth_tokenize(const hearth_engine *e, const char *text, size_t size, int32_t **ids, size_t *count,
                              hearth_error *why) {
    (void)e, (void)why;
    *ids = mem_alloc((size + 1) * sizeof **ids);
    for (size_t i = 0; i < size; i++) (*ids)[i] = (unsigned char)text[i];
    *count = size;
    return HEARTH_OK;
}

hearth_status hearth_detokenize(const hearth_engine *e, const int32_t *ids, size_t count, char **text, size_t *size,
                                hearth_error *why) {
    (void)e;
    buffer raw = {0}, out = {0};
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 256) {
            buffer_char(&raw, (char)ids[i]);
            continue;
        }
        *why = (hearth_error){.status = HEARTH_INVALID};
        snprintf(why->param, sizeof why->param, "tokens[%zu]", i);
        snprintf(why->message, sizeof why->message, "token id %d is out of range", (int)ids[i]);
        buffer_deinit(&raw);
        return HEARTH_INVALID;
    }
    utf8_repair(&out, span_make(raw.data, raw.size));
    buffer_deinit(&raw);
    *size = out.size;
    *text = buffer_take(&out);
    return HEARTH_OK;
}

#endif
