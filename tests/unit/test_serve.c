/* The server over a scripted engine, in this process, on a port of its own: what goes over the wire, byte by byte, and
 * that a client that misbehaves or leaves disturbs nobody. With --serve PORT-FILE it runs as a server for tests in other
 * languages (tests/e2e). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "fake_engine.h"
#include "serve/server.h"
#include "support.h"

/* ---- a server per test */

typedef struct fixture {
    server *server;
    hearth_engine *engine;
    pthread_t thread;
    int port;
    bool clean; /* what server_run returned */
    bool stopped;
} fixture;

static void *serve_thread(void *context) {
    fixture *f = context;
    f->clean = server_run(f->server);
    return NULL;
}

static void start_with(fixture *f, server_options options, hearth_options engine_options) {
    *f = (fixture){0};
    options.port = 0;
    error err;
    if (server_create(&options, &f->server, &err)) fail_msg("%s", err.message);
    f->port = server_port(f->server);
    if (!engine_options.name) engine_options.name = "fake";
    hearth_engine_open("dir", &engine_options, &f->engine, NULL);
    server_set_engine(f->server, f->engine);
    assert_int_equal(pthread_create(&f->thread, NULL, serve_thread, f), 0);
}

static void start(fixture *f) { start_with(f, server_options_default(), (hearth_options){0}); }

static void stop(fixture *f) {
    if (!f->stopped) server_stop(f->server);
    pthread_join(f->thread, NULL);
    server_destroy(f->server);
    hearth_engine_close(f->engine);
}

/* Waits until *value is wanted; milliseconds it took, or fails after two seconds. */
static double wait_for(atomic_int *value, int wanted) {
    uint64_t from = clock_ns();
    while (atomic_load(value) != wanted) {
        if (clock_ms_since(from) > 2000) fail_msg("still %d, not %d, after 2 s", atomic_load(value), wanted);
        usleep(500);
    }
    return clock_ms_since(from);
}

/* ---- a small blocking client */

static int dial(const fixture *f) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    struct timeval limit = {10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* False when the server has closed. */
static bool put(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n <= 0) return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool put_text(int fd, const char *text) { return put(fd, text, strlen(text)); }

typedef struct answer {
    int status;
    buffer head, body; /* body with the chunked coding undone */
    bool closed;       /* nothing, or not all, came before the end */
    int chunks;
} answer;

static void answer_free(answer *a) {
    buffer_deinit(&a->head);
    buffer_deinit(&a->body);
}

static bool get_byte(int fd, buffer *to) {
    char c;
    if (recv(fd, &c, 1, 0) != 1) return false;
    buffer_char(to, c);
    return true;
}

static bool get_line(int fd, buffer *line) {
    buffer_clear(line);
    while (get_byte(fd, line))
        if (line->data[line->size - 1] == '\n') return true;
    return false;
}

static bool get_exactly(int fd, buffer *to, size_t size) {
    buffer_reserve(to, size);
    while (size) {
        ssize_t n = recv(fd, to->data + to->size, size, 0);
        if (n <= 0) return false;
        to->size += (size_t)n;
        to->data[to->size] = 0;
        size -= (size_t)n;
    }
    return true;
}

static bool get_chunks(int fd, answer *a) {
    buffer line = {0};
    bool ok = false;
    while (get_line(fd, &line)) {
        size_t size = strtoul(line.data, NULL, 16);
        a->chunks++;
        if (size && !get_exactly(fd, &a->body, size)) break;
        ok = get_line(fd, &line) && !strcmp(line.data, "\r\n") && !size;
        if (!size) break;
    }
    buffer_deinit(&line);
    return ok;
}

/* Reads one answer. A 100 Continue before it is kept in head. */
static answer receive_to(int fd, bool no_body) {
    answer a = {.closed = true};
    buffer line = {0};
    while (get_line(fd, &line)) {
        buffer_append(&a.head, line.data, line.size);
        if (!strncmp(line.data, "HTTP/1.1 ", 9)) a.status = (int)strtol(line.data + 9, NULL, 10);
        if (strcmp(line.data, "\r\n")) continue;
        if (a.status == 100) continue;
        a.closed = false;
        break;
    }
    buffer_deinit(&line);
    if (a.closed || no_body || a.status == 204) return a;
    buffer_text(&a.body, "");
    const char *length = strstr(a.head.data, "Content-Length: ");
    if (length)
        a.closed = !get_exactly(fd, &a.body, strtoul(length + 16, NULL, 10));
    else if (strstr(a.head.data, "Transfer-Encoding: chunked"))
        a.closed = !get_chunks(fd, &a);
    else
        while (get_byte(fd, &a.body)) continue;
    return a;
}

static answer receive(int fd) { return receive_to(fd, false); }

static void post(int fd, const char *path, span body) {
    buffer b = {0};
    buffer_printf(&b, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  path, body.size);
    buffer_append(&b, body.data, body.size);
    put(fd, b.data, b.size);
    buffer_deinit(&b);
}

/* {"messages":[...script...], members} */
static void post_chat(int fd, const char *script, const char *members) {
    buffer b = {0};
    buffer_text(&b, "{\"messages\":[{\"role\":\"user\",\"content\":");
    json_write_bytes(&b, span_text(script));
    buffer_printf(&b, "}]%s%s}", *members ? "," : "", members);
    post(fd, "/v1/chat/completions", span_make(b.data, b.size));
    buffer_deinit(&b);
}

static answer exchange(const fixture *f, const char *text) {
    int fd = dial(f);
    put_text(fd, text);
    answer a = receive(fd);
    close(fd);
    return a;
}

static answer chat(const fixture *f, const char *script, const char *members) {
    int fd = dial(f);
    post_chat(fd, script, members);
    answer a = receive(fd);
    close(fd);
    return a;
}

/* True when the peer has closed: nothing more can be read. */
static bool is_closed(int fd) {
    char c;
    return recv(fd, &c, 1, 0) <= 0;
}

/* Replaces what differs from run to run: ids and times. */
static char *normalised(const char *text) {
    buffer b = {0};
    while (*text) {
        size_t skip = 0;
        if (!strncmp(text, "chatcmpl-", 9))
            buffer_text(&b, "chatcmpl-*"), skip = 9 + 24;
        else if (!strncmp(text, "call_", 5))
            buffer_text(&b, "call_*"), skip = 5 + 24;
        else if (!strncmp(text, "\"created\":", 10)) {
            buffer_text(&b, "\"created\":0");
            skip = 10 + strspn(text + 10, "0123456789");
        } else
            buffer_char(&b, *text), skip = 1;
        text += skip;
    }
    return buffer_take(&b);
}

static void expect_text(const char *got, const char *wanted) {
    char *text = normalised(got);
    if (strcmp(text, wanted)) fail_msg("got\n%s\nwanted\n%s", text, wanted);
    free(text);
}

static void expect_error(answer a, int status, const char *code) {
    arena *m = arena_create();
    const json *root = NULL;
    error err = {0};
    if (a.status != status) fail_msg("status %d, wanted %d: %s", a.status, status, a.body.data ? a.body.data : "");
    assert_int_equal(json_parse(m, span_make(a.body.data, a.body.size), 16, &root, &err), ERR_OK);
    const json *e = json_get(root, "error");
    if (!json_string_is(json_get(e, "code"), code)) fail_msg("wanted %s: %s", code, a.body.data);
    assert_true(json_is(json_get(e, "message"), JSON_STRING) && json_is(json_get(e, "type"), JSON_STRING));
    assert_non_null(json_get(e, "param"));
    arena_destroy(m);
    answer_free(&a);
}

/* ---- what an answer looks like */

#define IDENTITY(object)                         \
    "\"id\":\"chatcmpl-*\",\"object\":\"" object \
    "\",\"created\":0,\"model\":\"fake\","       \
    "\"system_fingerprint\":\"hearth-" HEARTH_VERSION "\""
#define CHUNK(delta, finish)                                                                   \
    "data: {" IDENTITY("chat.completion.chunk") ",\"choices\":[{\"index\":0,\"delta\":{" delta \
                                                "},\"logprobs\":null,"                         \
                                                "\"finish_reason\":" finish "}]}\n\n"

static void whole_text(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, "think hm\nsay Hel\nsay lo \"w\"\\n", "");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head.data, "\r\nContent-Type: application/json; charset=utf-8\r\n"));
    assert_non_null(strstr(a.head.data, "\r\nX-Request-Id: chatcmpl-"));
    expect_text(a.body.data,
                "{" IDENTITY("chat.completion") ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                "\"content\":\"Hello \\\"w\\\"\\n\",\"reasoning_content\":\"hm\"},\"logprobs\":null,"
                "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":39,\"completion_tokens\":3,"
                "\"total_tokens\":42,\"prompt_tokens_details\":{\"cached_tokens\":5},"
                "\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n");
    answer_free(&a);
    stop(&f);
}

static const char two_calls[] = "call f\nargs {\"a\":\nargs 1}\nend\ncall f\nargs {}\nend\nfinish tool_calls";

static void whole_calls(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, two_calls, "\"tools\":[{}]");
    char *text = normalised(a.body.data);
    assert_non_null(strstr(text,
                           "\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                           "{\"id\":\"call_*\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
                           "\"{\\\"a\\\":1}\"}},{\"id\":\"call_*\",\"type\":\"function\",\"function\":"
                           "{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"logprobs\":null,"
                           "\"finish_reason\":\"tool_calls\""));
    free(text);
    const char *first = strstr(a.body.data, "call_"), *second = strstr(first + 5, "call_");
    assert_memory_not_equal(first, second, 29);
    answer_free(&a);
    stop(&f);
}

static void streamed_text(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, "think hm\nsay Hel\nsay lo\nfinish length", "\"stream\":true");
    assert_int_equal(a.status, 200);
    assert_false(a.closed);
    assert_non_null(strstr(a.head.data, "\r\nContent-Type: text/event-stream; charset=utf-8\r\n"));
    assert_non_null(strstr(a.head.data, "\r\nTransfer-Encoding: chunked\r\n"));
    expect_text(a.body.data, CHUNK("\"role\":\"assistant\"", "null") CHUNK("\"reasoning_content\":\"hm\"", "null")
                                 CHUNK("\"content\":\"Hel\"", "null") CHUNK("\"content\":\"lo\"", "null")
                                     CHUNK("", "\"length\"") "data: [DONE]\n\n");
    assert_null(strchr(a.body.data, '\r'));
    answer_free(&a);
    stop(&f);
}

static void streamed_calls(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, two_calls, "\"stream\":true,\"tools\":[{}]");
    expect_text(
        a.body.data,
        CHUNK("\"role\":\"assistant\"", "null")
            CHUNK("\"tool_calls\":[{\"index\":0,\"id\":\"call_*\",\"type\":\"function\",\"function\":"
                  "{\"name\":\"f\",\"arguments\":\"\"}}]",
                  "null") CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]", "null")
                CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]", "null")
                    CHUNK("\"tool_calls\":[{\"index\":1,\"id\":\"call_*\",\"type\":\"function\",\"function\":"
                          "{\"name\":\"f\",\"arguments\":\"\"}}]",
                          "null") CHUNK("\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{}\"}}]", "null")
                        CHUNK("", "\"tool_calls\"") "data: [DONE]\n\n");
    answer_free(&a);
    stop(&f);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static void usage_only_when_asked(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, "say x", "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    assert_int_equal(count(a.body.data, "\"usage\":null"), 3); /* role, text, finish */
    assert_int_equal(count(a.body.data, ",\"choices\":[],\"usage\":{\"prompt_tokens\":15,"), 1);
    answer_free(&a);
    a = chat(&f, "say x", "\"stream\":true,\"stream_options\":{\"include_usage\":false}");
    assert_null(strstr(a.body.data, "usage"));
    answer_free(&a);
    stop(&f);
}

static void http10_stream_ends_by_closing(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    put_text(fd,
             "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 67\r\n\r\n"
             "{\"messages\":[{\"role\":\"user\",\"content\":\"say hello\"}],\"stream\":true }");
    answer a = receive(fd);
    assert_null(strstr(a.head.data, "Transfer-Encoding"));
    assert_non_null(strstr(a.head.data, "Connection: close"));
    assert_non_null(strstr(a.body.data, "\"content\":\"hello\""));
    assert_non_null(strstr(a.body.data, "data: [DONE]\n\n"));
    assert_true(is_closed(fd));
    close(fd);
    answer_free(&a);
    stop(&f);
}

static void events_at_hand_leave_together(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, "flood 2000 10", "\"stream\":true");
    assert_int_equal(count(a.body.data, "data: {"), 2002);
    assert_in_range(a.chunks, 2, 20); /* 400 kB in writes of 64 */
    answer_free(&a);
    stop(&f);
}

static void keep_alive_comments(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.keep_alive_ms = 100;
    start_with(&f, o, (hearth_options){0});
    answer a = chat(&f, "say a\nsleep 350\nsay b", "\"stream\":true");
    int comments = count(a.body.data, ": keep-alive\n\n");
    assert_in_range(comments, 2, 10); /* 3, more on a busy machine */
    answer_free(&a);
    a = chat(&f, "prepare 250\nsay b", "\"stream\":true"); /* waiting for its turn */
    assert_in_range(count(a.body.data, ": keep-alive\n\n"), 1, 10);
    assert_int_equal(count(a.body.data, "\"role\""), 1);
    answer_free(&a);
    stop(&f);
}

/* ---- errors */

static void errors_before_the_first_byte(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const struct {
        const char *script, *code;
        int status;
    } cases[] = {{"error invalid messages[0].content bad", "invalid_value", 400},
                 {"error exceeded messages 40000 + 0 > 32768", "context_length_exceeded", 400},
                 {"error unsupported - no", "unsupported", 400},
                 {"error busy - full", "queue_full", 429},
                 {"error memory - none", "out_of_memory", 503},
                 {"error internal - nan", "internal_error", 500}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_error(chat(&f, cases[i].script, ""), cases[i].status, cases[i].code);
        expect_error(chat(&f, cases[i].script, "\"stream\":true"), cases[i].status, cases[i].code);
    }
    answer a = chat(&f, cases[0].script, "");
    assert_string_equal(a.body.data,
                        "{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\",\"param\":"
                        "\"messages[0].content\",\"code\":\"invalid_value\"}}\n");
    answer_free(&a);
    a = chat(&f, "error busy - full", "");
    assert_non_null(strstr(a.head.data, "\r\nRetry-After: 1\r\n"));
    answer_free(&a);
    stop(&f);
}

static void errors_after_the_start(void **state) {
    (void)state;
    fixture f;
    start(&f);
    answer a = chat(&f, "say x\nerror internal - nan", "\"stream\":true");
    assert_int_equal(a.status, 200);
    assert_false(a.closed);
    const char *tail = strstr(a.body.data, "data: {\"error\"");
    assert_non_null(tail);
    assert_string_equal(tail,
                        "data: {\"error\":{\"message\":\"nan\",\"type\":\"server_error\",\"param\":null,"
                        "\"code\":\"internal_error\"}}\n\n");
    answer_free(&a);
    expect_error(chat(&f, "say x\nerror internal - nan", ""), 500, "internal_error");
    stop(&f);
}

static void queue_full(void **state) {
    (void)state;
    fixture f;
    start_with(&f, server_options_default(), (hearth_options){.parallel = 1, .queue_max = 1});
    int a = dial(&f), b = dial(&f);
    post_chat(a, "hang", "");
    post_chat(b, "hang", "");
    wait_for(&f.engine->live, 2);
    answer c = chat(&f, "say x", "");
    assert_non_null(strstr(c.head.data, "\r\nRetry-After: 3\r\n"));
    expect_error(c, 429, "queue_full");
    close(a);
    close(b);
    wait_for(&f.engine->live, 0);
    stop(&f);
}

static void json_bodies(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f); /* one connection: none of these ends it */
    static const char *const bodies[] = {"{", "[]", "null", "\"x\"", "{\"messages\":[{\"content\":\"\\udc00\"}]}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        post(fd, "/v1/chat/completions", span_text(bodies[i]));
        expect_error(receive(fd), 400, "invalid_json");
        post(fd, "/tokenize", span_text(bodies[i]));
        expect_error(receive(fd), 400, "invalid_json");
    }
    post(fd, "/v1/chat/completions", span_make("{\"a\":\"\0\"}", 9));
    expect_error(receive(fd), 400, "invalid_json");
    buffer deep = {0};
    for (int i = 0; i < 10000; i++) buffer_char(&deep, '[');
    post(fd, "/v1/chat/completions", span_make(deep.data, deep.size));
    expect_error(receive(fd), 400, "invalid_json");
    buffer_deinit(&deep);
    post_chat(fd, "say x", "\"frobnicate\":1");
    expect_error(receive(fd), 400, "unknown_field");
    post_chat(fd, "say x", "\"model\":\"evil\\r\\nSet-Cookie: a=b\"");
    answer a = receive(fd);
    assert_null(strstr(a.head.data, "Set-Cookie"));
    expect_error(a, 404, "model_not_found");
    post_chat(fd, "say x", "\"model\":\"fake\"");
    a = receive(fd);
    assert_int_equal(a.status, 200);
    answer_free(&a);
    close(fd);
    stop(&f);
}

/* As the benchmark's client sends it: 110 kB, 122 messages, its header set, one connection. */
static void benchmark_requests(void **state) {
    (void)state;
    fixture f;
    start(&f);
    buffer body = {0}, text = {0};
    buffer_text(&body, "{\"model\": \"fake\", \"messages\": [{\"role\": \"system\", \"content\": \"s\"}");
    for (int i = 0; i < 60; i++) {
        buffer_text(&body,
                    ", {\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", \"type\": \"function\", "
                    "\"function\": {\"name\": \"bash\", \"arguments\": \"{\\\"command\\\":\\\"ls\\\"}\"}}], "
                    "\"reasoning_content\": \"x\"}, {\"role\": \"tool\", \"content\": \"");
        for (int k = 0; k < 1600; k++) buffer_char(&body, 'x');
        buffer_text(&body, "\", \"tool_call_id\": \"call_1\"}");
    }
    buffer_text(&body,
                ", {\"role\": \"user\", \"content\": \"call bash\\nargs {}\\nend\\nfinish tool_calls\"}], "
                "\"temperature\": 0.0, \"max_completion_tokens\": 1024, \"stream\": true, \"seed\": 42, "
                "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"bash\"}}], "
                "\"tool_choice\": \"auto\"}");
    assert_in_range(body.size, 105000, 125000);
    int fd = dial(&f);
    for (int i = 0; i < 3; i++) {
        buffer_clear(&text);
        buffer_printf(&text,
                      "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                      "Accept: text/event-stream\r\nX-Session-ID: a__b-1\r\nContent-Length: %zu\r\n\r\n",
                      f.port, body.size);
        put(fd, text.data, text.size);
        put(fd, body.data, body.size);
        answer a = receive(fd);
        assert_int_equal(a.status, 200);
        assert_false(a.closed);
        assert_non_null(strstr(a.body.data, "\"finish_reason\":\"tool_calls\""));
        answer_free(&a);
        assert_int_equal(f.engine->seen.seed, 42);
        assert_int_equal(f.engine->seen.max_tokens, 1024);
    }
    close(fd);
    buffer_deinit(&body);
    buffer_deinit(&text);
    stop(&f);
}

/* ---- HTTP */

static void heads_and_bodies_in_pieces(void **state) {
    (void)state;
    fixture f;
    start(&f);
    const char *text =
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "b\r\n{\"content\":\r\n5\r\n\"ab\"}\r\n0\r\n\r\n";
    for (size_t piece = 1; piece < 40; piece += 6) {
        int fd = dial(&f);
        for (size_t at = 0; at < strlen(text); at += piece) {
            put(fd, text + at, strlen(text) - at < piece ? strlen(text) - at : piece);
            usleep(200);
        }
        answer a = receive(fd);
        assert_string_equal(a.body.data, "{\"tokens\":[97,98]}\n");
        answer_free(&a);
        close(fd);
    }
    stop(&f);
}

static void pipelined_requests(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    buffer b = {0};
    for (int i = 0; i < 20; i++) {
        buffer_text(&b, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n\r\n");
        buffer_text(&b,
                    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n"
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"say hi\"}] }");
    }
    put(fd, b.data, b.size);
    for (int i = 0; i < 40; i++) {
        answer a = receive(fd);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.body.data, i % 2 ? "\"content\":\"hi\"" : "\"status\":\"ok\""));
        answer_free(&a);
    }
    close(fd);
    buffer_deinit(&b);
    stop(&f);
}

/* A flood behind a running request is not kept: the answer comes, then the connection ends. */
static void pipelined_flood(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    post_chat(fd, "sleep 200\nsay done", "");
    char junk[4096];
    memset(junk, 'a', sizeof junk);
    for (int i = 0; i < 400; i++) put(fd, junk, sizeof junk);
    answer a = receive(fd);
    assert_non_null(strstr(a.body.data, "done"));
    answer_free(&a);
    assert_true(is_closed(fd));
    close(fd);
    stop(&f);
}

static void expect_continue(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    put_text(fd, "POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n");
    char line[25];
    assert_int_equal(recv(fd, line, sizeof line, MSG_WAITALL), 25);
    assert_memory_equal(line, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    put_text(fd, "{\"content\":\"a\"}");
    answer a = receive(fd);
    assert_string_equal(a.body.data, "{\"tokens\":[97]}\n");
    answer_free(&a);
    close(fd);
    /* What will be refused is refused instead of invited. */
    expect_error(exchange(&f, "POST /none HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
                 404, "not_found");
    expect_error(
        exchange(&f, "POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"),
        413, "body_too_large");
    stop(&f);
}

static void routes(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const struct {
        const char *line;
        int status;
        const char *text; /* in head or body */
    } cases[] = {
        {"GET /health", 200, "{\"status\":\"ok\",\"running\":0,\"queued\":0,\"seconds_since_step\":0"},
        {"GET /v1/models", 200,
         "{\"object\":\"list\",\"data\":[{\"id\":\"fake\",\"object\":\"model\",\"created\":1700000000,"
         "\"owned_by\":\"hearth\",\"max_model_len\":32768}]}\n"},
        {"GET /v1/models/fake", 200, "{\"id\":\"fake\",\"object\":\"model\""},
        {"GET /v1/models/f%61ke", 200, "\"fake\""},
        {"GET /v1/models/other%0d%0aX", 400, "bad_request"},
        {"GET /v1/models/other", 404, "model_not_found"},
        {"GET /v1/models/", 404, "not_found"},
        {"GET /metrics?a=b", 200, "text/plain; version=0.0.4"},
        {"GET /", 404, "not_found"},
        {"GET /v1/chat/completions", 405, "Allow: POST, OPTIONS\r\n"},
        {"PUT /tokenize", 405, "method_not_allowed"},
        {"POST /health", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"OPTIONS /v1/chat/completions", 204, "Allow: POST, OPTIONS\r\n"},
        {"OPTIONS *", 204, "Allow: "},
        {"FOO /bar", 404, "not_found"},
    };
    int fd = dial(&f); /* all on one connection */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer b = {0};
        buffer_printf(&b, "%s HTTP/1.1\r\nHost: x\r\n\r\n", cases[i].line);
        put(fd, b.data, b.size);
        answer a = receive(fd);
        if (a.status != cases[i].status) fail_msg("%s: %d", cases[i].line, a.status);
        if (!strstr(a.head.data, cases[i].text) && !strstr(a.body.data, cases[i].text))
            fail_msg("%s: %s", cases[i].line, a.body.data);
        assert_null(strstr(a.head.data, "Access-Control"));
        answer_free(&a);
        buffer_deinit(&b);
        if (cases[i].status != 400) continue;
        close(fd); /* a malformed head ends the connection */
        fd = dial(&f);
    }
    put_text(fd, "HEAD /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    answer a = receive_to(fd, true);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head.data, "Content-Length: "));
    assert_null(strstr(a.head.data, "Content-Length: 0"));
    answer_free(&a);
    a = receive(fd);
    assert_int_equal(a.status, 200);
    answer_free(&a);
    close(fd);
    stop(&f);
}

static void text_endpoints(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    static const struct {
        const char *path, *body;
        int status;
        const char *wanted; /* the body, or the error's code */
    } cases[] = {
        {"/tokenize", "{\"content\":\"hi\"}", 200, "{\"tokens\":[104,105]}\n"},
        {"/tokenize", "{\"content\":\"\",\"model\":\"fake\"}", 200, "{\"tokens\":[]}\n"},
        {"/tokenize", "{\"content\":\"\\u0000\",\"model\":null}", 200, "{\"tokens\":[0]}\n"},
        {"/tokenize", "{}", 400, "invalid_value"},
        {"/tokenize", "{\"content\":[\"a\"]}", 400, "invalid_value"},
        {"/tokenize", "{\"content\":\"a\",\"add_special\":true}", 400, "unknown_field"},
        {"/tokenize", "{\"content\":\"a\",\"model\":\"b\"}", 404, "model_not_found"},
        {"/detokenize", "{\"tokens\":[104,105]}", 200, "{\"content\":\"hi\"}\n"},
        {"/detokenize", "{\"tokens\":[]}", 200, "{\"content\":\"\"}\n"},
        {"/detokenize", "{\"tokens\":[240,159]}", 200, "{\"content\":\"\xef\xbf\xbd\"}\n"},
        {"/detokenize", "{\"tokens\":\"a\"}", 400, "invalid_value"},
        {"/detokenize", "{\"tokens\":[1,-1]}", 400, "invalid_value"},
        {"/detokenize", "{\"tokens\":[1.5]}", 400, "invalid_value"},
        {"/detokenize", "{\"tokens\":[4294967297]}", 400, "invalid_value"},
        {"/detokenize", "{\"tokens\":[999]}", 400, "invalid_value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        post(fd, cases[i].path, span_text(cases[i].body));
        answer a = receive(fd);
        if (cases[i].status != 200)
            expect_error(a, cases[i].status, cases[i].wanted);
        else {
            assert_string_equal(a.body.data, cases[i].wanted);
            answer_free(&a);
        }
    }
    close(fd);
    stop(&f);
}

static void api_keys(void **state) {
    (void)state;
    fixture f;
    static const char *const keys[] = {"first-key", "k"};
    server_options o = server_options_default();
    o.api_keys = keys;
    o.api_key_count = 2;
    o.cors_origin = "https://app.example";
    start_with(&f, o, (hearth_options){0});
    static const struct {
        const char *line, *header;
        int status;
    } cases[] = {
        {"GET /v1/models", "", 401},
        {"GET /v1/models", "Authorization: Bearer k\r\n", 200},
        {"GET /v1/models", "authorization: bearer first-key\r\n", 200},
        {"GET /v1/models", "Authorization: Bearer kk\r\n", 401},
        {"GET /v1/models", "Authorization: Bearer \r\n", 401},
        {"GET /v1/models", "Authorization: Bearer first-kez\r\n", 401},
        {"GET /v1/models", "Authorization: k\r\n", 401},
        {"GET /v1/models", "Authorization: Basic k\r\n", 401},
        {"GET /metrics", "", 401},
        {"GET /nothing", "", 401},
        {"GET /health", "", 200},
        {"OPTIONS /v1/models", "", 204},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer b = {0};
        buffer_printf(&b, "%s HTTP/1.1\r\nHost: x\r\n%s\r\n", cases[i].line, cases[i].header);
        answer a = exchange(&f, b.data);
        if (a.status != cases[i].status) fail_msg("%s %s: %d", cases[i].line, cases[i].header, a.status);
        assert_non_null(strstr(a.head.data, "\r\nAccess-Control-Allow-Origin: https://app.example\r\n"));
        if (a.status == 401)
            expect_error(a, 401, "invalid_api_key");
        else
            answer_free(&a);
        buffer_deinit(&b);
    }
    /* A wrong key is told before a large body is read. */
    expect_error(exchange(&f, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"), 401,
                 "invalid_api_key");
    stop(&f);
}

static void limits(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.limits.body_max = 1 << 20;
    o.limits.bodies_max = 2 << 20;
    start_with(&f, o, (hearth_options){0});
    expect_error(exchange(&f, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n"), 413,
                 "body_too_large");
    expect_error(exchange(&f, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"),
                 413, "body_too_large");
    expect_error(exchange(&f, "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n"),
                 413, "body_too_large");
    buffer b = {0};
    buffer_text(&b, "GET /health HTTP/1.1\r\nHost: x\r\nA: ");
    for (int i = 0; i < 17000; i++) buffer_char(&b, 'a');
    expect_error(exchange(&f, b.data), 431, "head_too_large");
    buffer_text(&b, "\r\n\r\n");
    expect_error(exchange(&f, b.data), 431, "head_too_large");
    /* 20 MB sent to the end although it was refused at once: the client still reads the answer. */
    int fd = dial(&f);
    put_text(fd, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n");
    char piece[8192];
    memset(piece, ' ', sizeof piece);
    for (int i = 0; i < 20000000 / 8192; i++)
        if (!put(fd, piece, sizeof piece)) break;
    expect_error(receive(fd), 413, "body_too_large");
    close(fd);
    /* A body of exactly the limit is taken, also by the parser aside. */
    buffer_clear(&b);
    buffer_text(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"say big\"}]");
    while (b.size < (1 << 20) - 1) buffer_char(&b, ' ');
    buffer_char(&b, '}');
    fd = dial(&f);
    post(fd, "/v1/chat/completions", span_make(b.data, b.size));
    answer a = receive(fd);
    assert_int_equal(a.status, 200);
    answer_free(&a);
    b.data[0] = '[';
    post(fd, "/v1/chat/completions", span_make(b.data, b.size));
    expect_error(receive(fd), 400, "invalid_json");
    close(fd);
    /* Several large bodies at once: beyond the sum one is refused. */
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial(&f);
        put_text(fds[i], "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
        put(fds[i], b.data, 1000000);
        usleep(100000);
    }
    expect_error(receive(fds[2]), 503, "overloaded");
    for (int i = 0; i < 3; i++) close(fds[i]);
    buffer_deinit(&b);
    stop(&f);
}

static void malformed_requests(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03", 400}, /* a TLS hello, cut short */
        {"\x04\x01", 400},
        {"hello\r\n\r\n", 400},
        {"GET / HTTP/3.0\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n", 417},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dial(&f);
        put_text(fd, cases[i].text);
        answer a = receive(fd);
        assert_non_null(strstr(a.head.data, "\r\nConnection: close\r\n"));
        expect_error(a, cases[i].status, "bad_request");
        assert_true(is_closed(fd));
        close(fd);
    }
    stop(&f);
}

static void wrong_content_length(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.limits.head_ms = 200;
    start_with(&f, o, (hearth_options){0});
    /* Too long: the rest never comes. */
    expect_error(exchange(&f, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{\"content\":\"a\"}"),
                 408, "request_timeout");
    /* Too short: the JSON is cut, and what follows is not a request. */
    int fd = dial(&f);
    put_text(fd, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"content\":\"a\"}");
    expect_error(receive(fd), 400, "invalid_json");
    expect_error(receive(fd), 400, "bad_request");
    close(fd);
    stop(&f);
}

static void deadlines(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.limits.head_ms = 300;
    o.limits.idle_ms = 300;
    start_with(&f, o, (hearth_options){0});
    int silent = dial(&f), head = dial(&f), body = dial(&f), idle = dial(&f);
    uint64_t from = clock_ns();
    put_text(idle, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    answer a = receive(idle);
    answer_free(&a);
    put_text(body, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; i < 20; i++) { /* a byte every 25 ms does not extend anything */
        put_text(head, "G");
        put_text(body, " ");
        usleep(25000);
    }
    expect_error(receive(head), 408, "request_timeout");
    expect_error(receive(body), 408, "request_timeout");
    assert_true(is_closed(silent) && is_closed(idle) && is_closed(head));
    assert_in_range((int)clock_ms_since(from), 290, 1500);
    close(silent), close(head), close(body), close(idle);
    stop(&f);
}

static void slow_connections_disturb_nobody(void **state) {
    (void)state;
    fixture f;
    start(&f); /* 256 connections at most */
    enum { SLOW = 500 };
    int fds[SLOW];
    double worst_ms = 0;
    for (int i = 0; i < SLOW; i++) {
        fds[i] = dial(&f);
        put_text(fds[i], i % 2 ? "G" : "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
        if (i % 50) continue;
        uint64_t from = clock_ns();
        answer a = exchange(&f, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_int_equal(a.status, 200);
        answer_free(&a);
        a = chat(&f, "say hello", "");
        assert_int_equal(a.status, 200);
        answer_free(&a);
        if (clock_ms_since(from) > worst_ms) worst_ms = clock_ms_since(from);
    }
    assert_true(worst_ms < 500);
    for (int i = 0; i < SLOW; i++) close(fds[i]);
    stop(&f);
}

static void busy_connections_are_not_displaced(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.limits.connections_max = 2;
    start_with(&f, o, (hearth_options){0});
    int a = dial(&f), b = dial(&f);
    post_chat(a, "sleep 400\nsay a", "");
    post_chat(b, "sleep 400\nsay b", "");
    wait_for(&f.engine->live, 2);
    int c = dial(&f);
    answer refused = receive(c);
    expect_error(refused, 503, "connection_limit");
    close(c);
    answer answered = receive(a);
    assert_non_null(strstr(answered.body.data, "\"content\":\"a\""));
    answer_free(&answered);
    answered = receive(b);
    assert_int_equal(answered.status, 200);
    answer_free(&answered);
    c = dial(&f); /* both are idle now: the older one makes room */
    put_text(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    answered = receive(c);
    assert_int_equal(answered.status, 200);
    answer_free(&answered);
    close(a), close(b), close(c);
    stop(&f);
}

/* ---- clients that leave */

static void leave(int fd, int how) {
    struct linger reset = {1, 0};
    if (how == 1) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (how == 2)
        shutdown(fd, SHUT_WR);
    else
        close(fd);
}

static void clients_that_leave(void **state) {
    (void)state;
    fixture f;
    start_with(&f, server_options_default(), (hearth_options){.parallel = 1});
    static const char *const scripts[] = {
        "prepare 5000\nsay x",        /* before the first event */
        "hang",                       /* prefill: after START */
        "think a\nhang",              /* thinking */
        "say a\nhang",                /* text */
        "call f\nargs {\"a\":\nhang", /* within a call */
        "say a\nsleep 5000",          /* before the last event */
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        for (int how = 0; how < 3; how++)
            for (int stream = 0; stream < 2; stream++) {
                int fd = dial(&f);
                int before = atomic_load(&f.engine->cancels);
                post_chat(fd, scripts[i], stream ? "\"stream\":true" : "");
                wait_for(&f.engine->live, 1);
                usleep(20000);
                leave(fd, how);
                double ms = wait_for(&f.engine->cancels, before + 1);
                if (ms > 250) fail_msg("%s: %g ms until cancelled", scripts[i], ms);
                wait_for(&f.engine->live, 0);
                if (how == 2) close(fd);
            }
    /* Queued behind another, which is not disturbed. */
    int first = dial(&f), second = dial(&f);
    post_chat(first, "say a\nsleep 300\nsay b", "");
    wait_for(&f.engine->live, 1);
    post_chat(second, "say never", "");
    wait_for(&f.engine->live, 2);
    close(second);
    assert_true(wait_for(&f.engine->live, 1) < 250);
    answer a = receive(first);
    assert_non_null(strstr(a.body.data, "\"content\":\"ab\""));
    answer_free(&a);
    close(first);
    stop(&f);
}

static void client_that_does_not_read(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.limits.stall_ms = 400;
    start_with(&f, o, (hearth_options){0});
    int fd = dial(&f);
    post_chat(fd, "flood 3000 10000\nhang", "\"stream\":true"); /* 30 MB */
    wait_for(&f.engine->live, 1);
    for (int i = 0; i < 2000 && atomic_load(&f.engine->taken) < 100; i++) usleep(1000);
    usleep(100000);
    assert_in_range(atomic_load(&f.engine->taken), 100, 2500);           /* what the sockets hold and 1 MiB, not all */
    answer a = exchange(&f, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); /* others are served meanwhile */
    assert_int_equal(a.status, 200);
    answer_free(&a);
    wait_for(&f.engine->live, 0);
    close(fd);
    stop(&f);
}

static void slow_reader_gets_everything(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    post_chat(fd, "flood 500 10000", "\"stream\":true"); /* 5 MB: pauses and goes on */
    usleep(300000);
    answer a = receive(fd);
    assert_false(a.closed);
    assert_int_equal(count(a.body.data, "\"content\":\""), 500);
    assert_non_null(strstr(a.body.data, "data: [DONE]\n\n"));
    answer_free(&a);
    close(fd);
    stop(&f);
}

/* ---- many at once, loading, stopping */

typedef struct client {
    pthread_t thread;
    const fixture *f;
    int number, wrong;
} client;

static void *client_thread(void *context) {
    client *c = context;
    int fd = dial(c->f);
    for (int i = 0; i < 20; i++) {
        char script[96], wanted[64];
        snprintf(script, sizeof script, "say c%d-\nsleep 1\nsay r%d", c->number, i);
        snprintf(wanted, sizeof wanted, "\"content\":\"c%d-r%d\"", c->number, i);
        post_chat(fd, script, "");
        answer a = receive(fd);
        c->wrong += a.status != 200 || !strstr(a.body.data, wanted);
        answer_free(&a);
    }
    close(fd);
    return NULL;
}

static void many_clients(void **state) {
    (void)state;
    fixture f;
    start_with(&f, server_options_default(), (hearth_options){.parallel = 4, .queue_max = 64});
    client clients[16];
    for (int i = 0; i < 16; i++) {
        clients[i] = (client){.f = &f, .number = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_thread, &clients[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    answer a = exchange(&f, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(
        strstr(a.body.data, "hearth_http_requests_total{endpoint=\"/v1/chat/completions\",status=\"200\"} 320\n"));
    assert_non_null(strstr(a.body.data, "hearth_time_to_first_token_seconds_count 320\n"));
    assert_non_null(strstr(a.body.data, "hearth_requests_total{result=\"finished\"} 320\n"));
    assert_non_null(strstr(a.body.data, "hearth_chat_requests_in_flight 0"));
    answer_free(&a);
    stop(&f);
}

static void metrics_are_well_formed(void **state) {
    (void)state;
    fixture f;
    start_with(&f, server_options_default(), (hearth_options){.name = "a\"b\\c"});
    answer a = exchange(&f, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(a.body.data, "model=\"a\\\"b\\\\c\"} 1\n"));
    char type_of[64] = "";
    for (char *line = a.body.data, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = 0;
        if (!strncmp(line, "# HELP ", 7)) continue;
        if (!strncmp(line, "# TYPE ", 7)) {
            snprintf(type_of, sizeof type_of, "%.*s", (int)strcspn(line + 7, " "), line + 7);
            continue;
        }
        if (strncmp(line, type_of, strlen(type_of))) fail_msg("no TYPE before %s", line);
        char *end, *value = strrchr(line, ' ');
        assert_non_null(value);
        strtod(value + 1, &end);
        assert_int_equal(*end, 0);
    }
    answer_free(&a);
    stop(&f);
}

static void loading(void **state) {
    (void)state;
    fixture f = {0};
    server_options o = server_options_default();
    o.port = 0;
    assert_int_equal(server_create(&o, &f.server, NULL), ERR_OK);
    f.port = server_port(f.server);
    assert_int_equal(pthread_create(&f.thread, NULL, serve_thread, &f), 0);
    server_set_progress(f.server, 1, 4);
    answer a = exchange(&f, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(a.status, 503);
    assert_string_equal(a.body.data, "{\"status\":\"loading\",\"progress\":0.25}\n");
    answer_free(&a);
    a = exchange(&f, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(a.body.data, "hearth_ready 0"));
    answer_free(&a);
    a = chat(&f, "say x", "");
    assert_non_null(strstr(a.head.data, "\r\nRetry-After: 5\r\n"));
    expect_error(a, 503, "loading");
    hearth_engine_open("fake", NULL, &f.engine, NULL);
    server_set_engine(f.server, f.engine);
    for (int i = 0; i < 100; i++) {
        a = exchange(&f, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        int status = a.status;
        answer_free(&a);
        if (status == 200) break;
        assert_true(i < 99);
        usleep(1000);
    }
    a = chat(&f, "say x", "");
    assert_int_equal(a.status, 200);
    answer_free(&a);
    stop(&f);
}

static void drain(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int idle = dial(&f), running = dial(&f), stream = dial(&f), sending = dial(&f);
    put_text(idle, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    answer a = receive(idle);
    answer_free(&a);
    post_chat(running, "sleep 400\nsay done", "");
    post_chat(stream, "say a\nsleep 400\nsay b", "\"stream\":true");
    put_text(sending, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    wait_for(&f.engine->live, 2);
    usleep(50000);
    f.stopped = true;
    server_stop(f.server);
    assert_true(is_closed(idle));
    expect_error(receive(sending), 503, "shutting_down"); /* at once: the rest of it may never come */
    close(sending);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_not_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
    close(late);
    a = receive(running);
    assert_non_null(strstr(a.head.data, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(a.body.data, "done"));
    answer_free(&a);
    a = receive(stream);
    assert_non_null(strstr(a.body.data, "data: [DONE]\n\n"));
    answer_free(&a);
    assert_true(is_closed(running) && is_closed(stream));
    close(idle), close(running), close(stream);
    stop(&f);
    assert_true(f.clean);
}

static void drain_that_takes_too_long(void **state) {
    (void)state;
    fixture f;
    server_options o = server_options_default();
    o.drain_ms = 200;
    start_with(&f, o, (hearth_options){0});
    int whole = dial(&f), stream = dial(&f);
    post_chat(whole, "hang", "");
    post_chat(stream, "say a\nhang", "\"stream\":true");
    wait_for(&f.engine->live, 2);
    usleep(50000);
    f.stopped = true;
    server_stop(f.server);
    expect_error(receive(whole), 503, "shutting_down");
    answer a = receive(stream);
    assert_non_null(strstr(a.body.data, "\"code\":\"shutting_down\"}}\n\n"));
    answer_free(&a);
    close(whole), close(stream);
    stop(&f);
    assert_true(f.clean);
}

static void second_stop_ends_now(void **state) {
    (void)state;
    fixture f;
    start(&f);
    int fd = dial(&f);
    post_chat(fd, "hang", "");
    wait_for(&f.engine->live, 1);
    uint64_t from = clock_ns();
    f.stopped = true;
    server_stop(f.server);
    server_stop(f.server);
    pthread_join(f.thread, NULL);
    assert_true(clock_ms_since(from) < 1000);
    assert_false(f.clean);
    server_destroy(f.server);
    hearth_engine_close(f.engine);
    close(fd);
}

static void port_in_use(void **state) {
    (void)state;
    fixture f;
    start(&f);
    server_options o = server_options_default();
    o.port = f.port;
    server *other;
    error err;
    assert_int_equal(server_create(&o, &other, &err), ERR_IO);
    assert_non_null(strstr(err.message, "Address already in use"));
    o.host = "no.such.host.invalid";
    assert_int_equal(server_create(&o, &other, &err), ERR_INVALID);
    stop(&f);
}

/* ---- as a program */

static server *main_server;
static void on_signal(int number) {
    (void)number;
    server_stop(main_server);
}

static int serve_until_signalled(const char *port_file) {
    server_options o = server_options_default();
    o.port = 0;
    hearth_engine *engine;
    hearth_options options = {.name = "fake", .context_max = 1000};
    if (server_create(&o, &main_server, NULL)) return 1;
    hearth_engine_open("fake", &options, &engine, NULL);
    server_set_engine(main_server, engine);
    signal(SIGTERM, on_signal);
    FILE *out = fopen(port_file, "we");
    if (!out) return 1;
    fprintf(out, "%d\n", server_port(main_server));
    fclose(out);
    bool clean = server_run(main_server);
    server_destroy(main_server);
    hearth_engine_close(engine);
    return clean ? 0 : 1;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && !strcmp(argv[1], "--serve")) return serve_until_signalled(argv[2]);
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_text),
        cmocka_unit_test(whole_calls),
        cmocka_unit_test(streamed_text),
        cmocka_unit_test(streamed_calls),
        cmocka_unit_test(usage_only_when_asked),
        cmocka_unit_test(http10_stream_ends_by_closing),
        cmocka_unit_test(events_at_hand_leave_together),
        cmocka_unit_test(keep_alive_comments),
        cmocka_unit_test(errors_before_the_first_byte),
        cmocka_unit_test(errors_after_the_start),
        cmocka_unit_test(queue_full),
        cmocka_unit_test(json_bodies),
        cmocka_unit_test(benchmark_requests),
        cmocka_unit_test(heads_and_bodies_in_pieces),
        cmocka_unit_test(pipelined_requests),
        cmocka_unit_test(pipelined_flood),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(routes),
        cmocka_unit_test(text_endpoints),
        cmocka_unit_test(api_keys),
        cmocka_unit_test(limits),
        cmocka_unit_test(malformed_requests),
        cmocka_unit_test(wrong_content_length),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(slow_connections_disturb_nobody),
        cmocka_unit_test(busy_connections_are_not_displaced),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(client_that_does_not_read),
        cmocka_unit_test(slow_reader_gets_everything),
        cmocka_unit_test(many_clients),
        cmocka_unit_test(metrics_are_well_formed),
        cmocka_unit_test(loading),
        cmocka_unit_test(drain),
        cmocka_unit_test(drain_that_takes_too_long),
        cmocka_unit_test(second_stop_ends_now),
        cmocka_unit_test(port_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
