/* HTTP/1.1 framing: what is accepted, what is refused with which status, and that no chopping changes it. */
#include <string.h>

#include "serve/http_message.h"
#include "support.h"

static void heads(void **state) {
    (void)state;
#define H "Host: x\r\n"
    static const struct {
        const char *head;
        int status; /* 0 = accepted */
    } cases[] = {
        {"GET / HTTP/1.1\r\n" H "\r\n", 0},
        {"GET / HTTP/1.0\r\n\r\n", 0},
        {"GET http://x/y HTTP/1.1\r\n" H "\r\n", 0},
        {"OPTIONS * HTTP/1.1\r\n" H "\r\n", 0},
        {"GET /a?b=c HTTP/1.1\r\n" H "A:b\r\nC: \t d \t\r\n\r\n", 0},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 0},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", 0},
        {"POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n", 0},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999999\r\n\r\n", 0}, /* too large, said later */
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H H "\r\n", 400},
        {"GET / HTTP/2.0\r\n" H "\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\n", 505},
        {"GET /\r\n" H "\r\n", 400},
        {"GET / http/1.1\r\n" H "\r\n", 400},
        {"GET  / HTTP/1.1\r\n" H "\r\n", 400},
        {"GET / HTTP/1.1 \r\n" H "\r\n", 400},
        {"GET /a b HTTP/1.1\r\n" H "\r\n", 400},
        {"GET a HTTP/1.1\r\n" H "\r\n", 400},
        {"GET /#a HTTP/1.1\r\n" H "\r\n", 400},
        {"GET http://x HTTP/1.1\r\n" H "\r\n", 400},
        {"G(T / HTTP/1.1\r\n" H "\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A : b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H ": b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A: b\nC: d\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A: b\rC: d\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" H "A: b\x7f\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 0x10\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" H "Expect: more\r\n\r\n", 417},
    };
#undef H
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_head head;
        http_fault fault = {0};
        size_t scanned = 0;
        span bytes = span_text(cases[i].head);
        assert_int_equal(http_head_end(bytes, &scanned), bytes.size);
        bool ok = http_head_parse(bytes, &head, &fault);
        if (ok != !cases[i].status || fault.status != cases[i].status)
            fail_msg("%s: status %d, expected %d", cases[i].head, fault.status, cases[i].status);
    }
}

static void head_with_nul(void **state) {
    (void)state;
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n";
    http_head head;
    http_fault fault;
    assert_false(http_head_parse(span_make(bytes, sizeof bytes - 1), &head, &fault));
    assert_int_equal(fault.status, 400);
}

static void many_headers(void **state) {
    (void)state;
    buffer b = {0};
    buffer_text(&b, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < HTTP_HEADERS_MAX; i++) buffer_printf(&b, "A%d: b\r\n", i);
    buffer_text(&b, "\r\n");
    http_head head;
    http_fault fault;
    assert_false(http_head_parse(span_make(b.data, b.size), &head, &fault));
    assert_int_equal(fault.status, 431);
    buffer_deinit(&b);
}

static void head_fields(void **state) {
    (void)state;
    span bytes = span_text("POST http://h:1/a%20b?x HTTP/1.1\r\nHost: h\r\nX-A:  v w \r\nContent-Length: 12\r\n\r\n");
    http_head head;
    http_fault fault;
    assert_true(http_head_parse(bytes, &head, &fault));
    assert_true(span_is(head.method, "POST") && span_is(head.path, "/a%20b"));
    assert_true(span_is(http_head_get(&head, "x-a"), "v w"));
    assert_null(http_head_get(&head, "x-b").data);
    assert_int_equal(head.content_length, 12);
    assert_true(head.keep_alive);
    buffer path = {0};
    assert_true(http_path_decode(head.path, &path));
    assert_string_equal(path.data, "/a b");
    buffer_deinit(&path);
}

static void keep_alive(void **state) {
    (void)state;
    static const struct {
        const char *version, *connection;
        bool keep;
    } cases[] = {{"1.1", "", true},
                 {"1.1", "Connection: close\r\n", false},
                 {"1.1", "Connection: TE, Close\r\n", false},
                 {"1.1", "Connection: closed\r\n", true},
                 {"1.0", "", false},
                 {"1.0", "Connection: Keep-Alive\r\n", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer b = {0};
        buffer_printf(&b, "GET / HTTP/%s\r\nHost: x\r\n%s\r\n", cases[i].version, cases[i].connection);
        http_head head;
        http_fault fault;
        assert_true(http_head_parse(span_make(b.data, b.size), &head, &fault));
        assert_int_equal(head.keep_alive, cases[i].keep);
        buffer_deinit(&b);
    }
}

static void head_end_is_found_byte_by_byte(void **state) {
    (void)state;
    const char *text = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
    size_t scanned = 0, end = strlen(text) - 4;
    for (size_t size = 1; size < end; size++) assert_int_equal(http_head_end(span_make(text, size), &scanned), 0);
    assert_int_equal(http_head_end(span_make(text, end + 2), &scanned), end);
}

static void paths(void **state) {
    (void)state;
    static const char *const bad[] = {"/%", "/%4", "/%zz", "/%00", "/%0a", "/%7f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buffer b = {0};
        assert_false(http_path_decode(span_text(bad[i]), &b));
        buffer_deinit(&b);
    }
}

static http_chunks_result feed(const char *text, size_t size, size_t piece, size_t body_max, buffer *body,
                               size_t *used_total, http_fault *fault) {
    http_chunks c = {0};
    http_chunks_result result = HTTP_CHUNKS_MORE;
    *used_total = 0;
    while (*used_total < size && result == HTTP_CHUNKS_MORE) {
        size_t used, take = size - *used_total < piece ? size - *used_total : piece;
        result = http_chunks_feed(&c, span_make(text + *used_total, take), &used, body, body_max, fault);
        *used_total += used;
    }
    return result;
}

static void chunked_bodies(void **state) {
    (void)state;
    static const struct {
        const char *text, *body; /* NULL = malformed */
        int status;
        size_t rest;
    } cases[] = {
        {"5\r\nhello\r\n0\r\n\r\n", "hello", 0, 0},
        {"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\nGET", "hello world", 0, 3},
        {"005 \r\nhello\r\n000\r\nA: b\r\nC: d\r\n\r\n", "hello", 0, 0},
        {"a\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0, 0},
        {"0\r\n\r\n", "", 0, 0},
        {"\r\n", NULL, 400, 0},
        {"g\r\n", NULL, 400, 0},
        {"-1\r\n", NULL, 400, 0},
        {"5\nhello\r\n", NULL, 400, 0},
        {"5\r\nhelloX\r\n", NULL, 400, 0},
        {"5\r\nhello\rX", NULL, 400, 0},
        {"5\r\nhello\r\n0\r\nA: b\n\r\n", NULL, 400, 0},
        {"5;a\nb\r\nhello\r\n", NULL, 400, 0},
        {"1000000000000000\r\n", NULL, 400, 0},
        {"ffffffffffff\r\nx", NULL, 413, 0},
        {"21\r\nx", NULL, 413, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= strlen(cases[i].text); piece++) {
            buffer body = {0};
            http_fault fault = {0};
            size_t used, size = strlen(cases[i].text);
            http_chunks_result result = feed(cases[i].text, size, piece, 32, &body, &used, &fault);
            assert_int_equal(result, cases[i].body ? HTTP_CHUNKS_DONE : HTTP_CHUNKS_FAULT);
            if (cases[i].body) {
                assert_string_equal(body.data ? body.data : "", cases[i].body);
                assert_int_equal(size - used, cases[i].rest);
            } else {
                assert_int_equal(fault.status, cases[i].status);
            }
            buffer_deinit(&body);
        }
}

static void chunk_framing_is_bounded(void **state) {
    (void)state;
    buffer text = {0}, body = {0};
    buffer_text(&text, "1;");
    for (int i = 0; i < 2 << 20; i++) buffer_char(&text, 'a');
    http_fault fault = {0};
    size_t used;
    assert_int_equal(feed(text.data, text.size, 65536, 100, &body, &used, &fault), HTTP_CHUNKS_FAULT);
    assert_int_equal(fault.status, 400);
    buffer_deinit(&text);
    buffer_deinit(&body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(head_with_nul),
        cmocka_unit_test(many_headers),
        cmocka_unit_test(head_fields),
        cmocka_unit_test(keep_alive),
        cmocka_unit_test(head_end_is_found_byte_by_byte),
        cmocka_unit_test(paths),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(chunk_framing_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
