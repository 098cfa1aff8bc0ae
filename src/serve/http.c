/* See http.h. A connection is a small state machine:
 *
 *     HEAD --head complete--> BODY --complete--> BUSY --answered and sent--> HEAD (keep-alive) or LINGER --> closed
 *
 * Answers are only appended and sent by the http_reply and http_stream functions, which hooks may call at any time; they
 * never free a connection. What follows from an answer (the next request, closing) is done by settle(), which runs at
 * the end of the connection's own event callbacks; an answer given from elsewhere activates the connection's timer. */
#include "serve/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    READ_SIZE = 64 << 10,
    SEND_SHARE = 1 << 20,
    PIPELINED_MAX = 64 << 10,       /* bytes kept of requests behind the one being answered */
    BODY_RATE = 16 << 10,           /* bytes a second that a body must keep up after the grace */
    LINGER_MS = 2000,               /* reading on after the last answer */
    ACCEPT_BATCH = 16,              /* connections taken per wake, so that the others get their turn */
    ACCEPT_PAUSE_MS = 100,          /* when the process has no descriptor left */
    BODY_DISPLACED_AFTER_MS = 1000, /* a body that has been coming for as long may be displaced */
};

typedef enum { STATE_HEAD, STATE_BODY, STATE_BUSY, STATE_LINGER } conn_state;

typedef struct conn conn;
struct conn {
    http_exchange x; /* first: a hook's exchange is its connection */
    http_server *server;
    conn *previous, *next;
    int fd;
    struct event *readable, *sendable, *timer;
    conn_state state;
    uint64_t since_ns;    /* of the state; STATE_HEAD: of its first byte when there is one */
    uint64_t progress_ns; /* last time unsent bytes moved */
    buffer in;            /* unread input; in STATE_BODY always consumed at once */
    size_t scanned;
    buffer head_bytes, body;
    http_chunks chunks;
    struct evbuffer *out;
    bool exchange;    /* x is under way */
    bool answered;    /* the answer is complete (not necessarily sent) */
    bool streaming;   /* http_stream_begin was called and the body has not ended */
    bool chunked;     /* the streamed answer uses chunks */
    bool congested;   /* writable is owed */
    bool close_after; /* no further request */
    bool broken;      /* the socket failed or the peer left */
    bool processing;  /* inside a callback of this connection: settle follows */
    bool served;      /* has had a request: STATE_HEAD without bytes is idle */
    bool discard;     /* input is of no interest any more */
};

struct http_server {
    struct event_base *base;
    http_limits limits;
    http_hooks hooks;
    int fd, port;
    struct event *acceptable, *accept_pause;
    conn *connections;
    int connection_count;
    uint64_t refused;
    size_t bodies_size;
    bool draining;
    char scratch[READ_SIZE];
};

http_limits http_limits_default(void) {
    return (http_limits){.head_max = 16 << 10,
                         .body_max = 16 << 20,
                         .bodies_max = 256 << 20,
                         .unsent_high = 1 << 20,
                         .connections_max = 256,
                         .head_ms = 30000,
                         .idle_ms = 60000,
                         .stall_ms = 60000};
}

static const char *reason_phrase(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {204, "No Content"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {413, "Content Too Large"},
                   {417, "Expectation Failed"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Service Unavailable"},
                   {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status) return reasons[i].reason;
    return "Unknown";
}

/* ---- deadlines */

static struct timeval timeval_ms(int64_t ms) { return (struct timeval){ms / 1000, ms % 1000 * 1000}; }

static int64_t body_allowance_ms(const conn *c) {
    return c->server->limits.head_ms + (int64_t)(c->body.size / (BODY_RATE / 1000));
}

/* Milliseconds until this connection has waited too long; negative = it has; INT64_MAX = it may wait for ever. */
static int64_t time_left_ms(const conn *c) {
    const http_limits *limits = &c->server->limits;
    uint64_t now = clock_ns();
    int64_t in_state = (int64_t)((now - c->since_ns) / 1000000), left = INT64_MAX;
    if (c->state == STATE_HEAD) left = (c->in.size || !c->served ? limits->head_ms : limits->idle_ms) - in_state;
    if (c->state == STATE_BODY) left = body_allowance_ms(c) - in_state;
    if (c->state == STATE_LINGER && !evbuffer_get_length(c->out)) left = LINGER_MS - in_state;
    if (evbuffer_get_length(c->out)) {
        int64_t stall = limits->stall_ms - (int64_t)((now - c->progress_ns) / 1000000);
        if (stall < left) left = stall;
    }
    return left;
}

static void arm_timer(conn *c) {
    int64_t left = time_left_ms(c);
    if (left == INT64_MAX) {
        event_del(c->timer);
        return;
    }
    struct timeval tv = timeval_ms(left < 0 ? 0 : left + 1);
    event_add(c->timer, &tv);
}

static void enter(conn *c, conn_state state) {
    c->state = state;
    c->since_ns = clock_ns();
}

/* ---- sending */

/* Sends what the socket takes, but no more than a share before the other connections have their turn. */
static void flush(conn *c) {
    size_t share = SEND_SHARE;
    while (!c->broken && evbuffer_get_length(c->out)) {
        int sent = share ? evbuffer_write_atmost(c->out, c->fd, (ev_ssize_t)share) : -1;
        if (sent > 0) {
            c->progress_ns = clock_ns();
            share -= (size_t)sent;
            continue;
        }
        if (!share || (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            event_add(c->sendable, NULL);
            if (!c->processing) arm_timer(c); /* it watches for a stall */
            return;
        }
        c->broken = true;
    }
}

/* After an answer: settle() must run, now if we are inside a callback of this connection, else from its timer. */
static void answer_changed(conn *c) {
    if (!c->processing && (c->broken || c->answered)) event_active(c->timer, EV_TIMEOUT, 0);
}

static void append(conn *c, const void *data, size_t size) {
    if (!evbuffer_get_length(c->out)) c->progress_ns = clock_ns();
    if (evbuffer_add(c->out, data, size)) c->broken = true;
}

/* RFC 9110's fixed form; by hand since strftime follows the locale. */
static void append_date(buffer *b) {
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)clock_unix_s();
    struct tm t;
    gmtime_r(&now, &t);
    buffer_printf(b, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n", days + 3 * t.tm_wday, t.tm_mday,
                  months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

static void append_head(conn *c, int status, const char *type, const char *headers, const char *framing) {
    buffer b = {0};
    c->x.status = status;
    buffer_printf(&b, "HTTP/1.1 %d %s\r\n", status, reason_phrase(status));
    append_date(&b);
    if (type) buffer_printf(&b, "Content-Type: %s\r\n", type);
    if (headers) buffer_text(&b, headers);
    buffer_text(&b, framing);
    if (c->close_after)
        buffer_text(&b, "Connection: close\r\n");
    else if (!c->x.head.minor)
        buffer_text(&b, "Connection: keep-alive\r\n");
    buffer_text(&b, "\r\n");
    append(c, b.data, b.size);
    buffer_deinit(&b);
}

void http_reply(http_exchange *x, int status, const char *type, const char *headers, span body) {
    conn *c = (conn *)x;
    HEARTH_ASSERT(c->exchange && !x->status);
    bool body_follows = c->state != STATE_BUSY && (x->head.chunked || x->head.content_length);
    if (body_follows) c->close_after = c->discard = true; /* it is not read */
    if (c->server->draining) c->close_after = true;
    char framing[64] = "";
    if (status != 204) snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", body.size);
    append_head(c, status, status == 204 ? NULL : type, headers, framing);
    if (!span_is(x->head.method, "HEAD") && status != 204) append(c, body.data, body.size);
    c->answered = true;
    flush(c);
    answer_changed(c);
}

void http_stream_begin(http_exchange *x, int status, const char *type, const char *headers) {
    conn *c = (conn *)x;
    HEARTH_ASSERT(c->exchange && !x->status && c->state == STATE_BUSY);
    c->chunked = x->head.minor > 0;
    if (!c->chunked || c->server->draining) c->close_after = true;
    c->streaming = true;
    append_head(c, status, type, headers, c->chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

void http_stream_write(http_exchange *x, span data, bool last) {
    conn *c = (conn *)x;
    HEARTH_ASSERT(c->streaming);
    char size_line[32];
    if (data.size) {
        int size = snprintf(size_line, sizeof size_line, "%zx\r\n", data.size);
        if (c->chunked) append(c, size_line, (size_t)size);
        append(c, data.data, data.size);
        if (c->chunked) append(c, "\r\n", 2);
    }
    if (last) {
        if (c->chunked) append(c, "0\r\n\r\n", 5);
        c->streaming = false;
        c->answered = true;
    }
    flush(c);
    answer_changed(c);
}

bool http_congested(http_exchange *x) {
    conn *c = (conn *)x;
    if (evbuffer_get_length(c->out) > c->server->limits.unsent_high) c->congested = true;
    return c->congested;
}

void http_take_body(http_exchange *x, buffer *out) {
    conn *c = (conn *)x;
    c->server->bodies_size -= c->body.capacity;
    *out = c->body;
    c->body = (buffer){0};
    x->body = (span){0};
}

/* ---- exchanges */

static void begin_exchange(conn *c) {
    buffer path = c->x.path;
    buffer_clear(&path);
    buffer_text(&path, "");
    c->x = (http_exchange){.start_ns = clock_ns(), .path = path};
    c->exchange = true;
    c->answered = c->streaming = c->congested = false;
    c->chunks = (http_chunks){0};
}

static void release_body(conn *c) {
    c->server->bodies_size -= c->body.capacity;
    buffer_deinit(&c->body);
}

static void end_exchange(conn *c) {
    if (!c->exchange) return;
    c->exchange = false;
    c->x.gone = !c->answered;
    c->server->hooks.ended(c->server->hooks.context, &c->x);
    release_body(c);
}

static void answer_fault(conn *c, http_fault fault) {
    if (!c->exchange) begin_exchange(c);
    c->close_after = c->discard = true;
    c->server->hooks.fault(c->server->hooks.context, &c->x, fault.status, fault.message);
    HEARTH_ASSERT(c->answered);
}

/* Body bytes are counted by buffer capacity, over all connections. */
static bool account_body(conn *c, size_t capacity_before, http_fault *fault) {
    http_server *h = c->server;
    h->bodies_size += c->body.capacity - capacity_before;
    if (h->bodies_size <= h->limits.bodies_max) return true;
    *fault = (http_fault){503, "too many large requests are arriving at once; try again later"};
    return false;
}

static void consume(conn *c, size_t size) {
    c->in.size -= size;
    memmove(c->in.data, c->in.data + size, c->in.size + 1); /* with the NUL */
}

/* STATE_HEAD: true when the head is complete or was answered. */
static bool advance_head(conn *c) {
    span in = span_make(c->in.data, c->in.size);
    size_t blank = 0;
    while (in.size - blank >= 2 && blank < 8 && !memcmp(in.data + blank, "\r\n", 2)) blank += 2;
    if (blank) { /* empty lines before a request are allowed */
        consume(c, blank);
        in.size -= blank;
        c->scanned = 0;
    }
    if (!in.size) return false;
    size_t size = http_head_end(in, &c->scanned);
    http_fault fault = {400, "this port speaks HTTP; what came is not a request"};
    if (!http_head_plausible(in) && in.data[0] != '\r') {
        answer_fault(c, fault);
        return true;
    }
    if (size > c->server->limits.head_max || (!size && in.size > c->server->limits.head_max)) {
        answer_fault(c, (http_fault){431, "the request head is too large"});
        return true;
    }
    if (!size) return false;
    buffer_clear(&c->head_bytes);
    buffer_append(&c->head_bytes, in.data, size);
    consume(c, size);
    c->scanned = 0;
    begin_exchange(c);
    c->served = true;
    enter(c, STATE_BODY);
    http_exchange *x = &c->x;
    if (!http_head_parse(span_make(c->head_bytes.data, size), &x->head, &fault)) {
        answer_fault(c, fault);
        return true;
    }
    if (!x->head.keep_alive) c->close_after = true;
    if (!http_path_decode(x->head.path, &x->path)) {
        answer_fault(c, (http_fault){400, "the request path is malformed"});
        return true;
    }
    c->server->hooks.head(c->server->hooks.context, x);
    if (c->answered) return true;
    if (x->head.content_length > c->server->limits.body_max)
        answer_fault(c, (http_fault){413, "the request body is too large"});
    else if (x->head.expect_continue && !c->in.size) {
        append(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        flush(c);
    }
    return true;
}

/* STATE_BODY: true when the body is complete or was answered. */
static bool advance_body(conn *c) {
    http_fault fault;
    size_t used, before = c->body.capacity;
    bool complete;
    if (c->x.head.chunked) {
        span in = span_make(c->in.data, c->in.size);
        http_chunks_result result =
            http_chunks_feed(&c->chunks, in, &used, &c->body, c->server->limits.body_max, &fault);
        if (result == HTTP_CHUNKS_FAULT) {
            c->server->bodies_size += c->body.capacity - before;
            answer_fault(c, fault);
            return true;
        }
        complete = result == HTTP_CHUNKS_DONE;
    } else {
        size_t missing = (size_t)c->x.head.content_length - c->body.size;
        used = c->in.size < missing ? c->in.size : missing;
        if (used) buffer_append(&c->body, c->in.data, used);
        complete = used == missing;
    }
    if (used) consume(c, used);
    if (!account_body(c, before, &fault)) {
        answer_fault(c, fault);
        return true;
    }
    if (!complete) return false;
    enter(c, STATE_BUSY);
    c->x.body = span_make(c->body.data, c->body.size);
    c->server->hooks.request(c->server->hooks.context, &c->x);
    return true;
}

/* The last byte is followed by a FIN; its clock starts when that is sent. */
static void begin_lingering(conn *c) {
    enter(c, STATE_LINGER);
    if (!evbuffer_get_length(c->out)) shutdown(c->fd, SHUT_WR);
}

/* The answer is complete: the next request, or the end of the connection. */
static void finish_answer(conn *c) {
    end_exchange(c);
    if (c->server->draining) c->close_after = true;
    if (c->close_after) {
        c->discard = true;
        begin_lingering(c);
    } else {
        enter(c, STATE_HEAD);
    }
}

/* Takes the input as far as it goes. */
static void advance(conn *c) {
    bool more = true;
    while (more && !c->broken) {
        if (c->answered && c->exchange) {
            finish_answer(c);
            continue;
        }
        if (c->discard) buffer_clear(&c->in);
        switch (c->state) {
            case STATE_HEAD:
                more = c->in.size && advance_head(c);
                break;
            case STATE_BODY:
                more = advance_body(c);
                break;
            case STATE_BUSY:
            case STATE_LINGER:
                more = false;
                break;
        }
    }
    if (c->state == STATE_BUSY && c->in.size > PIPELINED_MAX) c->discard = c->close_after = true;
}

/* ---- life of a connection */

static void destroy(conn *c) {
    http_server *h = c->server;
    end_exchange(c);
    if (c->previous)
        c->previous->next = c->next;
    else
        h->connections = c->next;
    if (c->next) c->next->previous = c->previous;
    h->connection_count--;
    event_free(c->readable);
    event_free(c->sendable);
    event_free(c->timer);
    evbuffer_free(c->out);
    close(c->fd);
    release_body(c);
    buffer_deinit(&c->in);
    buffer_deinit(&c->head_bytes);
    buffer_deinit(&c->x.path);
    free(c);
}

/* End of every callback of a connection: closes it or arms its timer. c may be freed. */
static void settle(conn *c) {
    advance(c);
    bool idle = c->state == STATE_HEAD && !c->in.size && !evbuffer_get_length(c->out);
    if (c->broken || (idle && c->server->draining)) {
        destroy(c);
        return;
    }
    c->processing = false;
    arm_timer(c);
}

/* One read per wake: level-triggered events bring us back after the others' turn. */
static void read_some(conn *c) {
    http_server *h = c->server;
    ssize_t got = recv(c->fd, h->scratch, sizeof h->scratch, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (got <= 0) { /* the end of input counts as leaving, also when the peer could still read */
        c->broken = true;
        return;
    }
    if (c->discard) return;
    if (c->state == STATE_HEAD && !c->in.size) c->since_ns = clock_ns();
    buffer_append(&c->in, h->scratch, (size_t)got);
    advance(c);
}

static void on_readable(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    conn *c = context;
    c->processing = true;
    read_some(c);
    settle(c);
}

static void on_sendable(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    conn *c = context;
    c->processing = true;
    flush(c);
    size_t unsent = evbuffer_get_length(c->out);
    if (!unsent && c->state == STATE_LINGER) begin_lingering(c);
    if (c->congested && unsent < c->server->limits.unsent_high / 2 && !c->broken) {
        c->congested = false;
        c->server->hooks.writable(c->server->hooks.context, &c->x);
    }
    settle(c);
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    conn *c = context;
    c->processing = true;
    if (!c->answered || !c->exchange) {
        if (time_left_ms(c) < 0) {
            bool mid_request = (c->state == STATE_HEAD && c->in.size) || c->state == STATE_BODY;
            if (mid_request && !evbuffer_get_length(c->out))
                answer_fault(c, (http_fault){408, "the request did not arrive in time"});
            else
                c->broken = true;
        }
    }
    settle(c);
}

static void set_socket_options(int fd) {
    int one = 1, idle_s = 15, interval_s = 5, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* A host that vanished without a word is noticed within 30 s. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static void create_conn(http_server *h, int fd) {
    conn *c = mem_zero(1, sizeof *c);
    c->server = h;
    c->fd = fd;
    c->readable = event_new(h->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->sendable = event_new(h->base, fd, EV_WRITE, on_sendable, c);
    c->timer = evtimer_new(h->base, on_timer, c);
    c->out = evbuffer_new();
    HEARTH_ASSERT(c->readable && c->sendable && c->timer && c->out);
    c->next = h->connections;
    if (c->next) c->next->previous = c;
    h->connections = c;
    h->connection_count++;
    set_socket_options(fd);
    enter(c, STATE_HEAD);
    event_add(c->readable, NULL);
    arm_timer(c);
}

/* Who may be displaced at the limit, the better the higher; 0 = must stay. */
static uint64_t displaceable(const conn *c) {
    uint64_t age_ms = (clock_ns() - c->since_ns) / 1000000 + 1;
    if (evbuffer_get_length(c->out)) return 0; /* an answer is on its way */
    if (c->state == STATE_LINGER) return age_ms + ((uint64_t)1 << 40);
    if (c->state == STATE_HEAD) return age_ms;
    return c->state == STATE_BODY && age_ms > BODY_DISPLACED_AFTER_MS ? age_ms : 0;
}

static bool displace_one(http_server *h) {
    conn *worst = NULL;
    for (conn *c = h->connections; c; c = c->next)
        if (displaceable(c) > (worst ? displaceable(worst) : 0)) worst = c;
    if (worst) destroy(worst);
    return worst != NULL;
}

static void refuse(int fd) {
    static const char body[] =
        "{\"error\":{\"message\":\"every connection is busy; try again "
        "later\",\"type\":\"server_error\",\"param\":null,"
        "\"code\":\"connection_limit\"}}\n";
    char answer[512];
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\n"
                        "Retry-After: 1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                        sizeof body - 1, body);
    if (send(fd, answer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) shutdown(fd, SHUT_WR);
    close(fd);
}

static void on_acceptable(evutil_socket_t fd, short what, void *context) {
    (void)what;
    http_server *h = context;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0) {
            bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (!exhausted) return;
            h->refused++;
            if (displace_one(h)) continue;
            struct timeval pause = timeval_ms(ACCEPT_PAUSE_MS);
            event_del(h->acceptable);
            event_add(h->accept_pause, &pause);
            return;
        }
        if (h->connection_count >= h->limits.connections_max) {
            h->refused++;
            if (!displace_one(h)) {
                refuse(client);
                continue;
            }
        }
        create_conn(h, client);
    }
}

static void on_accept_pause(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    http_server *h = context;
    if (!h->draining) event_add(h->acceptable, NULL);
}

/* ---- the server */

static err_code listen_on(const struct addrinfo *address, int *out) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0) return ERR_IO;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 1024)) {
        int why = errno;
        close(fd);
        errno = why;
        return ERR_IO;
    }
    *out = fd;
    return ERR_OK;
}

static err_code open_listener(const char *host, int port, int *fd, error *err) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    int status = getaddrinfo(host, service, &hints, &found);
    if (status) ERR_FAIL(err, ERR_INVALID, "host '%s': %s", host, gai_strerror(status));
    err_code code = ERR_IO;
    for (struct addrinfo *a = found; a && code; a = a->ai_next) code = listen_on(a, fd);
    int why = errno;
    freeaddrinfo(found);
    if (code) ERR_FAIL(err, code, "cannot listen on %s port %d: %s", host, port, strerror(why));
    return ERR_OK;
}

static int bound_port(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size)) return 0;
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

err_code http_server_create(struct event_base *base, const char *host, int port, const http_limits *limits,
                            const http_hooks *hooks, http_server **out, error *err) {
    int fd = -1;
    ERR_TRY(open_listener(host, port, &fd, err));
    http_server *h = mem_zero(1, sizeof *h);
    h->base = base;
    h->limits = *limits;
    h->hooks = *hooks;
    h->fd = fd;
    h->port = bound_port(fd);
    h->acceptable = event_new(base, fd, EV_READ | EV_PERSIST, on_acceptable, h);
    h->accept_pause = evtimer_new(base, on_accept_pause, h);
    HEARTH_ASSERT(h->acceptable && h->accept_pause);
    event_add(h->acceptable, NULL);
    *out = h;
    return ERR_OK;
}

static void stop_listening(http_server *h) {
    if (h->fd < 0) return;
    event_del(h->acceptable);
    event_del(h->accept_pause);
    close(h->fd);
    h->fd = -1;
}

bool http_server_drain(http_server *h) {
    h->draining = true;
    stop_listening(h);
    bool busy = false;
    for (conn *c = h->connections, *next; c; c = next) {
        next = c->next;
        if (c->state == STATE_BODY && !c->answered) answer_fault(c, (http_fault){503, "the server is shutting down"});
        if (c->exchange || evbuffer_get_length(c->out))
            busy = true;
        else
            destroy(c);
    }
    return !busy;
}

void http_server_destroy(http_server *h) {
    if (!h) return;
    stop_listening(h);
    while (h->connections) destroy(h->connections);
    event_free(h->acceptable);
    event_free(h->accept_pause);
    free(h);
}

int http_server_port(const http_server *h) { return h->port; }
int http_server_connections(const http_server *h) { return h->connection_count; }
uint64_t http_server_refused(const http_server *h) { return h->refused; }
