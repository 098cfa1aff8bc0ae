/* POST /v1/chat/completions: one `chat` per answer, from the checked request to its last event.
 *
 * A chat outlives its exchange: when the client leaves, the request is cancelled at once and the chat waits for the
 * engine's last event before it is freed, so that the loop never waits for the engine. Streams begin with
 * HEARTH_EVENT_START, so that what is wrong with a request still gets its proper status; only a stream that waits longer
 * than keep_alive_ms for its turn begins earlier, with a comment. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "serve/chat_message.h"
#include "serve/chat_request.h"
#include "serve/server_inner.h"
#include "serve/sse.h"

enum {
    PARSE_ASIDE_SIZE = 256 << 10, /* larger bodies are parsed by the worker: about a millisecond */
    FLUSH_SIZE = 64 << 10,        /* text gathered before a write, when many events are there at once */
};

struct chat {
    owner owner; /* first */
    server *server;
    http_exchange *x; /* NULL once the client left */
    hearth_request *request;
    chat *previous, *next; /* server->chats */
    chat *next_ready;      /* server->ready, under ready_lock */
    bool is_ready;         /* likewise */
    bool stream, begun, finished, client_left;
    reply_identity identity;
    sse sse;
    output_message message;
    buffer out; /* stream text not yet handed over */
    struct event *keep_alive;
    uint64_t start_ns, written_ns;
    bool first_seen;
    hearth_usage usage;
    hearth_timing timing;
    const char *outcome; /* finish reason or error code, for the log */
    int status;
};

/* ---- readiness, across threads */

static void mark_ready(chat *c) {
    server *s = c->server;
    pthread_mutex_lock(&s->ready_lock);
    bool wake = !c->is_ready && !s->ready;
    if (!c->is_ready) {
        c->is_ready = true;
        c->next_ready = NULL;
        *(s->ready ? &s->ready_last->next_ready : &s->ready) = c;
        s->ready_last = c;
    }
    pthread_mutex_unlock(&s->ready_lock);
    if (wake) server_wake(s);
}

static void on_ready(void *context) { mark_ready(context); } /* on an engine thread */

static chat *pop_ready(server *s) {
    pthread_mutex_lock(&s->ready_lock);
    chat *c = s->ready;
    if (c) {
        s->ready = c->next_ready;
        c->is_ready = false;
    }
    pthread_mutex_unlock(&s->ready_lock);
    return c;
}

static void unlink_ready(chat *c) {
    pthread_mutex_lock(&c->server->ready_lock);
    chat *before = NULL;
    for (chat **at = &c->server->ready; *at; before = *at, at = &(*at)->next_ready)
        if (*at == c) {
            *at = c->next_ready;
            if (c->server->ready_last == c) c->server->ready_last = before;
            break;
        }
    pthread_mutex_unlock(&c->server->ready_lock);
}

/* ---- the end of a chat */

static void destroy(chat *c) {
    server *s = c->server;
    if (c->request) hearth_request_destroy(c->request); /* no more on_ready after this */
    unlink_ready(c);
    if (c->previous)
        c->previous->next = c->next;
    else
        s->chats = c->next;
    if (c->next) c->next->previous = c->previous;
    s->metrics.in_flight--;
    event_free(c->keep_alive);
    sse_deinit(&c->sse);
    output_message_deinit(&c->message);
    buffer_deinit(&c->out);
    free(c);
}

static void log_end(chat *c) {
    char details[480];
    snprintf(details, sizeof details,
             " %s%s prompt=%d cached=%d common=%d reuse=%s completion=%d reasoning=%d queue_ms=%.1f prepare_ms=%.1f "
             "prefill_ms=%.1f "
             "decode_ms=%.1f total_ms=%.1f %s%s",
             c->identity.id, c->stream ? " stream" : "", c->usage.prompt_tokens, c->usage.cached_tokens,
             c->usage.common_tokens, hearth_reuse_name(c->usage.reuse), c->usage.completion_tokens,
             c->usage.reasoning_tokens, c->timing.queue_ms, c->timing.prepare_ms, c->timing.prefill_ms,
             c->timing.decode_ms, clock_ms_since(c->start_ns), c->outcome, c->client_left ? " client_left" : "");
    server_record(c->server, span_text("POST"), "/v1/chat/completions", c->status ? c->status : 499, details);
    histogram_add(&c->server->metrics.duration, clock_ms_since(c->start_ns) / 1e3);
}

/* After the last event: logs and frees. The exchange, if still there, only has to send what it was given. */
static void end(chat *c) {
    static owner logged = {.logs = true};
    if (c->x) {
        c->status = c->x->status;
        c->x->user = &logged;
    }
    log_end(c);
    destroy(c);
}

/* ---- events to bytes */

static void begin_stream(chat *c) {
    if (c->begun) return;
    c->begun = true;
    char headers[128];
    snprintf(headers, sizeof headers, "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\nX-Request-Id: %s\r\n",
             c->identity.id);
    server_stream_begin(c->server, c->x, headers);
    sse_begin(&c->sse, &c->out);
}

static void write_out(chat *c, bool last) {
    http_stream_write(c->x, span_make(c->out.data, c->out.size), last);
    buffer_clear(&c->out);
    c->written_ns = clock_ns();
}

static void fail(chat *c, const hearth_error *why) {
    api_error e;
    api_error_from(&e, why);
    if (why->status == HEARTH_CANCELLED && c->server->draining)
        api_fail(&e, 503, "shutting_down", NULL, "the server is shutting down");
    c->outcome = e.code;
    if (!c->x) return;
    if (c->begun)
        sse_error(&c->out, &e);
    else
        server_reply_error(c->server, c->x, &e);
}

static void answer_whole(chat *c, const hearth_event *finish) {
    buffer body = {0};
    char headers[64];
    chat_message_write(&c->message, &body, &c->identity, finish);
    snprintf(headers, sizeof headers, "X-Request-Id: %s\r\n", c->identity.id);
    server_reply(c->server, c->x, 200, "application/json; charset=utf-8", headers, span_make(body.data, body.size));
    buffer_deinit(&body);
}

static void note_first(chat *c, hearth_event_type type) {
    bool counts = type == HEARTH_EVENT_REASONING || type == HEARTH_EVENT_CONTENT || type == HEARTH_EVENT_CALL_BEGIN;
    if (!counts || c->first_seen) return;
    c->first_seen = true;
    histogram_add(&c->server->metrics.first_token, clock_ms_since(c->start_ns) / 1e3);
}

static void take_event(chat *c, const hearth_event *event) {
    note_first(c, event->type);
    if (event->usage.prompt_tokens) c->usage = event->usage;
    if (event->type == HEARTH_EVENT_FINISH || event->type == HEARTH_EVENT_ERROR) {
        c->finished = true;
        c->timing = event->timing;
    }
    if (event->type == HEARTH_EVENT_FINISH) c->outcome = reply_finish_reason(event->finish);
    if (event->type == HEARTH_EVENT_ERROR) {
        fail(c, &event->error);
        return;
    }
    if (!c->x) return;
    if (c->stream) {
        begin_stream(c);
        sse_event(&c->sse, &c->out, event);
    } else {
        chat_message_add(&c->message, event);
        if (event->type == HEARTH_EVENT_FINISH) answer_whole(c, event);
    }
}

static bool must_pause(chat *c) { return c->x && c->begun && http_congested(c->x); }

/* Takes what the engine has; events that are there together leave in one write. Frees c after the last event. */
static void pump(chat *c) {
    hearth_event event;
    while (!c->finished && !must_pause(c) && hearth_request_next(c->request, &event, 0)) {
        take_event(c, &event);
        if (c->x && c->out.size > FLUSH_SIZE && !c->finished) write_out(c, false);
    }
    if (c->x && c->begun && (c->out.size || c->finished)) write_out(c, c->finished);
    if (c->finished) end(c);
}

static void on_gone(owner *o) {
    chat *c = (chat *)o;
    c->client_left = true;
    c->status = c->x->status;
    c->x = NULL;
    event_del(c->keep_alive);
    hearth_request_cancel(c->request);
    mark_ready(c); /* events may be waiting that were held back */
}

static void on_writable(owner *o) { pump((chat *)o); }

static void arm_keep_alive(chat *c, double silent_ms) {
    int64_t wait_ms = c->server->options.keep_alive_ms - (int64_t)silent_ms;
    struct timeval tv = {wait_ms / 1000, wait_ms % 1000 * 1000};
    event_add(c->keep_alive, &tv);
}

static void on_keep_alive(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    chat *c = context;
    double silent_ms = clock_ms_since(c->written_ns);
    if (silent_ms + 1 < c->server->options.keep_alive_ms || must_pause(c)) {
        arm_keep_alive(c, silent_ms < c->server->options.keep_alive_ms ? silent_ms : 0);
        return;
    }
    begin_stream(c);
    buffer_text(&c->out, SSE_KEEP_ALIVE);
    write_out(c, false);
    arm_keep_alive(c, 0);
}

/* ---- the beginning of a chat */

static chat *create(server *s, http_exchange *x, const chat_request *parsed) {
    chat *c = mem_zero(1, sizeof *c);
    c->owner = (owner){.gone = on_gone, .writable = on_writable, .logs = true};
    c->server = s;
    c->x = x;
    c->start_ns = x->start_ns;
    c->written_ns = clock_ns();
    c->stream = parsed->stream;
    c->outcome = "";
    reply_id(c->identity.id, "chatcmpl-");
    c->identity.created = clock_unix_s();
    c->identity.model = s->info.name;
    sse_init(&c->sse, &c->identity, parsed->include_usage);
    c->keep_alive = evtimer_new(s->base, on_keep_alive, c);
    HEARTH_ASSERT(c->keep_alive);
    c->next = s->chats;
    if (c->next) c->next->previous = c;
    s->chats = c;
    s->metrics.in_flight++;
    return c;
}

static void start(server *s, http_exchange *x, const chat_request *parsed) {
    chat *c = create(s, x, parsed);
    hearth_request_params params = parsed->params;
    params.stop = parsed->stop;
    params.ready = on_ready;
    params.ready_context = c;
    hearth_error why;
    if (hearth_request_create(s->engine, &params, &c->request, &why)) {
        api_error e;
        api_error_from(&e, &why);
        destroy(c);
        server_reply_error(s, x, &e);
        return;
    }
    x->user = &c->owner;
    if (c->stream) arm_keep_alive(c, 0);
    pump(c);
}

/* A body of megabytes is parsed by the worker. */
typedef struct parse_job {
    owner owner; /* first */
    job job;
    server *server;
    http_exchange *x; /* NULL once the client left */
    buffer body;
    arena *memory;
    chat_request parsed;
    api_error error;
    bool ok;
} parse_job;

static parse_job *of_job(job *j) { return (parse_job *)((char *)j - offsetof(parse_job, job)); }

static void parse_run(job *j) {
    parse_job *p = of_job(j);
    p->ok = chat_request_parse(p->memory, span_make(p->body.data, p->body.size), p->server->info.name,
                               p->server->info.context_max, &p->parsed, &p->error);
}

static void parse_done(job *j) {
    parse_job *p = of_job(j);
    if (p->x) {
        p->x->user = NULL;
        if (p->ok)
            start(p->server, p->x, &p->parsed);
        else
            server_reply_error(p->server, p->x, &p->error);
    }
    arena_destroy(p->memory);
    buffer_deinit(&p->body);
    free(p);
}

static void parse_gone(owner *o) { ((parse_job *)o)->x = NULL; }

static void parse_aside(server *s, http_exchange *x) {
    parse_job *p = mem_zero(1, sizeof *p);
    p->owner = (owner){.gone = parse_gone};
    p->job = (job){.run = parse_run, .done = parse_done};
    p->server = s;
    p->x = x;
    p->memory = arena_create();
    http_take_body(x, &p->body);
    x->user = &p->owner;
    if (job_queue_add(s->jobs, &p->job)) return;
    api_fail(&p->error, 503, "overloaded", NULL, "too many large requests are waiting; try again later");
    p->error.retry_after_s = 1;
    parse_done(&p->job);
}

void api_chat(server *s, http_exchange *x) {
    if (x->body.size > PARSE_ASIDE_SIZE) {
        parse_aside(s, x);
        return;
    }
    arena *memory = arena_create();
    chat_request parsed;
    api_error e;
    if (chat_request_parse(memory, x->body, s->info.name, s->info.context_max, &parsed, &e))
        start(s, x, &parsed);
    else
        server_reply_error(s, x, &e);
    arena_destroy(memory);
}

/* ---- all chats */

void chats_take_ready(server *s) {
    int turns = s->metrics.in_flight; /* then the sockets' turn, even if the engine is faster than we are */
    for (chat *c; turns > 0 && (c = pop_ready(s)); turns--) pump(c);
    pthread_mutex_lock(&s->ready_lock);
    bool more = s->ready != NULL;
    pthread_mutex_unlock(&s->ready_lock);
    if (more) server_wake(s);
}

void chats_cancel_all(server *s) {
    for (chat *c = s->chats; c; c = c->next) hearth_request_cancel(c->request);
}

void chats_destroy_all(server *s) {
    while (s->chats) destroy(s->chats);
}
