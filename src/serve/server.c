/* See server.h. Routing, authorisation, loading, draining and the request log; the endpoints are in api_*.c. */
#include "serve/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "serve/server_inner.h"

enum {
    DRAIN_TICK_MS = 50,
    DRAIN_GRACE_MS = 5000, /* after cancelling, for the engine to say so */
    LOADING_RETRY_S = 5,
};

#define TYPE_JSON "application/json; charset=utf-8"

server_options server_options_default(void) {
    return (server_options){
        .host = "127.0.0.1", .port = 8080, .limits = http_limits_default(), .drain_ms = 30000, .keep_alive_ms = 10000};
}

/* ---- answers */

/* Header lines with CORS added when it is configured. */
static char *with_cors(const server *s, const char *headers) {
    buffer b = {0};
    if (headers) buffer_text(&b, headers);
    if (s->options.cors_origin)
        buffer_printf(&b, "Access-Control-Allow-Origin: %s\r\nVary: Origin\r\n", s->options.cors_origin);
    return buffer_take(&b);
}

void server_reply(server *s, http_exchange *x, int status, const char *type, const char *headers, span body) {
    char *all = with_cors(s, headers);
    http_reply(x, status, type, all, body);
    free(all);
}

void server_stream_begin(server *s, http_exchange *x, const char *headers) {
    char *all = with_cors(s, headers);
    http_stream_begin(x, 200, "text/event-stream; charset=utf-8", all);
    free(all);
}

void server_reply_error(server *s, http_exchange *x, const api_error *e) {
    buffer body = {0}, headers = {0};
    api_error_write(&body, e);
    buffer_char(&body, '\n');
    if (e->retry_after_s) buffer_printf(&headers, "Retry-After: %d\r\n", e->retry_after_s);
    if (e->allow) buffer_printf(&headers, "Allow: %s\r\n", e->allow);
    if (e->status == 401) buffer_text(&headers, "WWW-Authenticate: Bearer\r\n");
    x->note = e->code;
    server_reply(s, x, e->status, TYPE_JSON, headers.data, span_make(body.data, body.size));
    buffer_deinit(&body);
    buffer_deinit(&headers);
}

/* ---- log: what was asked and how it ended; never contents, queries or keys */

void server_record(server *s, span method, const char *path, int status, const char *details) {
    char shown[100];
    size_t n = 0;
    for (; path[n] && n + 1 < sizeof shown; n++) shown[n] = path[n] > ' ' && path[n] < 0x7f ? path[n] : '?';
    shown[n] = 0;
    serve_metrics_count(&s->metrics, path, status);
    log_line(LOG_INFO, "%.*s %s %d%s", method.size > 16 ? 16 : (int)method.size, method.size ? method.data : "-",
             n ? shown : "-", status, details);
}

static void record_exchange(server *s, const http_exchange *x, const char *details) {
    const char *path = x->path.data ? x->path.data : "";
    server_record(s, x->head.method.size ? x->head.method : span_text("-"), path, x->status ? x->status : 499, details);
}

/* ---- endpoints of the server itself */

static double load_progress(const server *s) {
    uint64_t total = atomic_load(&s->progress_total);
    if (s->engine) return 1;
    return total ? (double)atomic_load(&s->progress_done) / (double)total : 0;
}

static void api_health(server *s, http_exchange *x) {
    buffer body = {0};
    bool ok = s->engine && !s->draining;
    if (ok) {
        hearth_stats stats = hearth_engine_stats(s->engine);
        buffer_printf(&body, "{\"status\":\"ok\",\"running\":%d,\"queued\":%d,\"seconds_since_step\":", stats.running,
                      stats.queued);
        json_write_double(&body, stats.seconds_since_step);
    } else {
        buffer_printf(&body, "{\"status\":\"%s\",\"progress\":", s->draining ? "draining" : "loading");
        json_write_double(&body, load_progress(s));
    }
    buffer_text(&body, "}\n");
    server_reply(s, x, ok ? 200 : 503, TYPE_JSON, ok ? NULL : "Retry-After: 1\r\n", span_make(body.data, body.size));
    buffer_deinit(&body);
}

static void api_metrics(server *s, http_exchange *x) {
    buffer body = {0};
    hearth_stats stats = {0};
    if (s->engine) stats = hearth_engine_stats(s->engine);
    serve_gauges gauges = {.ready = s->engine != NULL,
                           .load_progress = load_progress(s),
                           .connections = http_server_connections(s->http),
                           .connections_refused = http_server_refused(s->http),
                           .info = s->engine ? &s->info : NULL,
                           .stats = s->engine ? &stats : NULL};
    serve_metrics_write(&s->metrics, &gauges, &body);
    server_reply(s, x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, span_make(body.data, body.size));
    buffer_deinit(&body);
}

/* ---- routing */

typedef struct route {
    const char *path; /* ends with '/': a prefix */
    const char *allow;
    void (*handle)(server *s, http_exchange *x);
    bool open;         /* without a key */
    bool needs_engine; /* 503 while loading or draining */
} route;

static const route routes[] = {
    {"/v1/chat/completions", "POST, OPTIONS", api_chat, false, true},
    {"/v1/models", "GET, HEAD, OPTIONS", api_models, false, true},
    {"/v1/models/", "GET, HEAD, OPTIONS", api_model, false, true},
    {"/tokenize", "POST, OPTIONS", api_tokenize, false, true},
    {"/detokenize", "POST, OPTIONS", api_detokenize, false, true},
    {"/health", "GET, HEAD, OPTIONS", api_health, true, false},
    {"/metrics", "GET, HEAD, OPTIONS", api_metrics, false, false},
};

static const route *find_route(const char *path) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        size_t size = strlen(routes[i].path);
        bool prefix = routes[i].path[size - 1] == '/';
        if (prefix ? !strncmp(path, routes[i].path, size) && path[size] : !strcmp(path, routes[i].path))
            return &routes[i];
    }
    return NULL;
}

/* Whether the comma-separated list holds the method. */
static bool allows(const char *allow, span method) {
    for (const char *at = allow; *at;) {
        size_t size = strcspn(at, ",");
        if (span_equal(span_make(at, size), method)) return true;
        at += size + strspn(at + size, ", ");
    }
    return false;
}

/* Takes as long for a wrong key as for the right one. */
static bool key_matches(span given, const char *key) {
    size_t size = strlen(key);
    unsigned char difference = given.size != size;
    for (size_t i = 0; i < size; i++) difference |= (unsigned char)(key[i] ^ (i < given.size ? given.data[i] : 0));
    return difference == 0;
}

static bool authorised(const server *s, const http_exchange *x) {
    if (!s->options.api_key_count) return true;
    span value = http_head_get(&x->head, "Authorization");
    bool found = false, bearer = value.size > 7 && !strncasecmp(value.data, "Bearer ", 7);
    if (!bearer) return false;
    span given = span_make(value.data + 7, value.size - 7);
    for (int i = 0; i < s->options.api_key_count; i++) found |= key_matches(given, s->options.api_keys[i]);
    return found;
}

static void answer_options(server *s, http_exchange *x, const route *r) {
    buffer headers = {0};
    buffer_printf(&headers, "Allow: %s\r\n", r ? r->allow : "GET, HEAD, POST, OPTIONS");
    if (s->options.cors_origin)
        buffer_printf(&headers,
                      "Access-Control-Allow-Methods: %s\r\nAccess-Control-Allow-Headers: *, Authorization\r\n"
                      "Access-Control-Max-Age: 600\r\n",
                      r ? r->allow : "GET, HEAD, POST, OPTIONS");
    server_reply(s, x, 204, NULL, headers.data, (span){0});
    buffer_deinit(&headers);
}

/* Everything that can be said before the body is there. */
static void on_head(void *context, http_exchange *x) {
    server *s = context;
    const route *r = find_route(x->path.data);
    api_error e = {0};
    if (span_is(x->head.method, "OPTIONS") && (r || span_is(x->head.path, "*"))) {
        answer_options(s, x, r);
        return;
    }
    if (!(r && r->open) && !authorised(s, x))
        api_fail(&e, 401, "invalid_api_key", NULL, "a valid key is needed: Authorization: Bearer KEY");
    else if (!r)
        api_fail(&e, 404, "not_found", NULL, "there is no such endpoint; docs/http-api.md lists them");
    else if (!allows(r->allow, x->head.method))
        api_fail(&e, 405, "method_not_allowed", NULL, "%s takes %s", r->path, r->allow);
    else if (r->needs_engine && s->draining)
        api_fail(&e, 503, "shutting_down", NULL, "the server is shutting down");
    else if (r->needs_engine && !s->engine)
        api_fail(&e, 503, "loading", NULL, "the model is loading: %d %%", (int)(100 * load_progress(s)));
    if (!e.status) return;
    if (e.status == 503) e.retry_after_s = LOADING_RETRY_S;
    if (e.status == 405) e.allow = r->allow;
    server_reply_error(s, x, &e);
}

static void on_request(void *context, http_exchange *x) {
    server *s = context;
    find_route(x->path.data)->handle(s, x);
}

static void on_fault(void *context, http_exchange *x, int status, const char *message) {
    server *s = context;
    static const struct {
        int status;
        const char *code;
    } codes[] = {{408, "request_timeout"}, {413, "body_too_large"}, {431, "head_too_large"}, {503, "overloaded"}};
    const char *code = "bad_request";
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status) code = codes[i].code;
    if (status == 503 && s->draining) code = "shutting_down";
    api_error e;
    if (status == 413)
        api_fail(&e, status, code, NULL, "%s; at most %zu bytes are accepted", message, s->options.limits.body_max);
    else if (status == 431)
        api_fail(&e, status, code, NULL, "%s; at most %zu bytes are accepted", message, s->options.limits.head_max);
    else
        api_fail(&e, status, code, NULL, "%s", message);
    if (status == 503) e.retry_after_s = 1;
    server_reply_error(s, x, &e);
}

static void on_writable(void *context, http_exchange *x) {
    (void)context;
    owner *o = x->user;
    if (o && o->writable) o->writable(o);
}

static void on_ended(void *context, http_exchange *x) {
    server *s = context;
    owner *o = x->user;
    if (!o || !o->logs) {
        char details[96] = "";
        int size = 0;
        if (x->note) size = snprintf(details, sizeof details, " error=%s", x->note);
        snprintf(details + size, sizeof details - (size_t)size, " total_ms=%.1f", clock_ms_since(x->start_ns));
        record_exchange(s, x, details);
    }
    if (o && x->gone) o->gone(o);
}

/* ---- loading, draining, life */

void server_wake(server *s) {
    uint64_t one = 1;
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written; /* full means that a wake is due anyway */
}

static void wake_from_job(void *context) { server_wake(context); }

void server_set_progress(server *s, uint64_t done_bytes, uint64_t total_bytes) {
    atomic_store(&s->progress_done, done_bytes);
    atomic_store(&s->progress_total, total_bytes);
}

void server_set_engine(server *s, hearth_engine *engine) {
    atomic_store(&s->loaded, engine);
    server_wake(s);
}

void server_stop(server *s) {
    atomic_fetch_add(&s->stops, 1);
    server_wake(s);
}

static bool engine_works(const server *s) {
    if (!s->engine) return false;
    hearth_stats stats = hearth_engine_stats(s->engine);
    return stats.running + stats.queued > 0;
}

/* At the end only work that did not let itself be cancelled forces the exit; clients that do not read are cut off. */
static void on_drain_tick(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    server *s = context;
    double waited_ms = clock_ms_since(s->drain_start_ns);
    bool quiet = http_server_drain(s->http) && !s->chats;
    if (quiet || waited_ms > s->options.drain_ms + DRAIN_GRACE_MS) {
        s->forced = !quiet && engine_works(s);
        event_base_loopbreak(s->base);
        return;
    }
    if (waited_ms > s->options.drain_ms && !s->drain_cancelled) {
        s->drain_cancelled = true;
        chats_cancel_all(s);
    }
    struct timeval tick = {0, DRAIN_TICK_MS * 1000};
    event_add(s->drain_tick, &tick);
}

static void begin_drain(server *s) {
    s->draining = true;
    s->drain_start_ns = clock_ns();
    log_line(LOG_INFO, "stopping: %d requests are finished first, for at most %d s", s->metrics.in_flight,
             s->options.drain_ms / 1000);
    on_drain_tick(-1, 0, s);
}

static void on_wake(evutil_socket_t fd, short what, void *context) {
    (void)what;
    server *s = context;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
    if (!s->engine && atomic_load(&s->loaded)) {
        s->engine = atomic_load(&s->loaded);
        s->info = hearth_engine_info(s->engine);
    }
    int stops = atomic_load(&s->stops);
    if (stops && !s->draining) begin_drain(s);
    if (stops > 1) {
        s->forced = true;
        event_base_loopbreak(s->base);
        return;
    }
    job_queue_finish(s->jobs);
    chats_take_ready(s);
}

err_code server_create(const server_options *options, server **out, error *err) {
    server *s = mem_zero(1, sizeof *s);
    s->options = *options;
    s->base = event_base_new();
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    HEARTH_ASSERT(s->base && s->wake_fd >= 0);
    http_hooks hooks = {.context = s,
                        .head = on_head,
                        .request = on_request,
                        .fault = on_fault,
                        .writable = on_writable,
                        .ended = on_ended};
    err_code code = http_server_create(s->base, options->host, options->port, &options->limits, &hooks, &s->http, err);
    if (code) {
        close(s->wake_fd);
        event_base_free(s->base);
        free(s);
        return code;
    }
    pthread_mutex_init(&s->ready_lock, NULL);
    s->wake_event = event_new(s->base, s->wake_fd, EV_READ | EV_PERSIST, on_wake, s);
    s->drain_tick = evtimer_new(s->base, on_drain_tick, s);
    HEARTH_ASSERT(s->wake_event && s->drain_tick);
    event_add(s->wake_event, NULL);
    s->jobs = job_queue_create(wake_from_job, s);
    *out = s;
    return ERR_OK;
}

int server_port(const server *s) { return http_server_port(s->http); }

bool server_run(server *s) {
    event_base_dispatch(s->base);
    return !s->forced;
}

void server_destroy(server *s) {
    http_server_destroy(s->http); /* clients count as gone: their requests are cancelled */
    job_queue_destroy(s->jobs);
    chats_destroy_all(s);
    event_free(s->wake_event);
    event_free(s->drain_tick);
    event_base_free(s->base);
    close(s->wake_fd);
    pthread_mutex_destroy(&s->ready_lock);
    free(s);
}
