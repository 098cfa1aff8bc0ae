/* Streams: events in every framing and every chopping, deltas merged into a message, what is wrong noted. */
#include "bench/reply.h"
#include "support.h"


static err_code collect(void *context, span data, error *err) {
    (void)err;
    buffer *out = context;
    buffer_char(out, '<');
    buffer_append(out, data.data, data.size);
    buffer_char(out, '>');
    return ERR_OK;
}

static const struct {
    const char *stream, *events;
} framings[] = {
    {"data: a\n\ndata: b\n\n", "<a><b>"},
    {"data:a\n\n", "<a>"},
    {"data:  a\n\n", "< a>"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "<a><b>"},
    {"data: a\r\rdata: b\r\r", "<a><b>"},
    {"data: a\ndata: b\n\n", "<a\nb>"},
    {"data\n\n", "<>"},
    {"data:\n\n", "<>"},
    {": comment\n\n:\ndata: a\n\n: ping\n\n", "<a>"},
    {"event: x\nid: 1\nretry: 3\ndata: a\n\n", "<a>"},
    {"database: a\n\n", ""},
    {"\n\n\ndata: a\n\n\n\n", "<a>"},
    {"data: a\n", ""},
    {"data: a", ""},
    {"data: a\n\ndata: b\n", "<a>"},
    {"\xef\xbb\xbf"
     "data: a\n\n",
     "<a>"},
    {"data: a\r\n\ndata: b\n\r\n", "<a><b>"},
    {"", ""},
};

static void test_framing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof framings / sizeof *framings; i++) {
        span all = span_text(framings[i].stream);
        for (size_t step = 1; step <= all.size + 1; step++) {
            buffer got = {0};
            buffer_text(&got, "");
            event_stream s = {.on_event = collect, .context = &got};
            for (size_t at = 0; at < all.size; at += step) {
                size_t size = all.size - at < step ? all.size - at : step;
                assert_int_equal(event_stream_feed(&s, span_make(all.data + at, size), NULL), ERR_OK);
            }
            assert_string_equal(got.data, framings[i].events);
            event_stream_deinit(&s);
            buffer_deinit(&got);
        }
    }
}

#define DELTA(members) "{\"choices\":[{\"index\":0,\"delta\":{" members "},\"finish_reason\":null}]}"
#define CALL(members) DELTA("\"tool_calls\":[{" members "}]")

static void feed(reply *r, const char *const *events) {
    for (uint64_t i = 0; events[i]; i++) reply_event(r, span_text(events[i]), i + 1);
}

static void write_message(const reply_message *m, buffer *out) {
    arena *a = arena_create();
    buffer_printf(out, "%s|%s|", m->content.data ? m->content.data : "", m->reasoning.data ? m->reasoning.data : "");
    json *calls = reply_calls_json(a, m, CALLS_AS_SENT);
    if (calls) json_write(out, calls, JSON_COMPACT);
    arena_destroy(a);
}

static const struct {
    const char *events[8];
    const char *message, *rest; /* content|reasoning|calls */
    uint64_t first;             /* the event that TTFT counts, from 1; 0 = none */
    const char *finish;
} merges[] = {
    {{DELTA("\"role\":\"assistant\""), DELTA("\"content\":\"a\""), DELTA("\"content\":\"b\""), "[DONE]"},
     "ab||",
     "b||",
     2,
     ""},
    {{DELTA("\"role\":\"assistant\",\"content\":\"\""), DELTA("\"content\":null"), "[DONE]"}, "||", "||", 0, ""},
    {{DELTA("\"reasoning_content\":\"r\""), DELTA("\"reasoning\":\"s\""), DELTA("\"content\":\"c\"")},
     "c|rs|",
     "c|s|",
     1,
     ""},
    {{DELTA("\"reasoning_content\":null,\"reasoning\":\"s\"")}, "|s|", "||", 1, ""},
    {{CALL("\"index\":0,\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":\"\"}"),
      CALL("\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}"),
      CALL("\"index\":0,\"function\":{\"arguments\":\":1}\"}"),
      "{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}"},
     "||[{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":\"{\\\"a\\\":1}\"}}]",
     "||[{\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]",
     1,
     "tool_calls"},
    {{CALL("\"index\":1,\"function\":{\"name\":\"b\",\"arguments\":\"2\"}"),
      CALL("\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":\"1\"}"),
      CALL("\"index\":1,\"function\":{\"arguments\":\"3\"}")},
     "||[{\"function\":{\"name\":\"a\",\"arguments\":\"1\"}},{\"function\":{\"name\":\"b\",\"arguments\":\"23\"}}]",
     "||[{\"function\":{\"name\":\"a\",\"arguments\":\"1\"}},{\"function\":{\"arguments\":\"3\"}}]",
     1,
     ""},
    {{CALL("\"function\":{\"name\":\"x\"}"), CALL("\"id\":\"new\",\"function\":{\"name\":\"y\",\"arguments\":\"{}\"}")},
     "||[{\"id\":\"new\",\"function\":{\"name\":\"y\",\"arguments\":\"{}\"}}]",
     "||[{\"id\":\"new\",\"function\":{\"name\":\"y\",\"arguments\":\"{}\"}}]",
     1,
     ""},
    {{DELTA("\"tool_calls\":[]"), DELTA("\"tool_calls\":null"), DELTA("\"content\":\"x\"")}, "x||", "||", 3, ""},
    {{"{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}",
      "{\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}"},
     "a||",
     "||",
     1,
     "stop"},
    {{"{\"choices\":[{\"delta\":{\"content\":\"caf\\u00e9 "
      "\"},\"finish_reason\":null},{\"delta\":{\"content\":\"other\"}}]}"},
     "caf\xc3\xa9 ||",
     "||",
     1,
     ""},
};

static void test_merging(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        reply r = {0};
        buffer message = {0}, rest = {0};
        feed(&r, merges[i].events);
        write_message(&r.message, &message);
        write_message(&r.rest, &rest);
        assert_string_equal(message.data, merges[i].message);
        assert_string_equal(rest.data, merges[i].rest);
        assert_int_equal(r.first_ns, merges[i].first);
        assert_string_equal(r.finish_reason.size ? r.finish_reason.data : "", merges[i].finish);
        assert_int_equal(r.error_text.size, 0);
        assert_false(r.malformed);
        buffer_deinit(&message);
        buffer_deinit(&rest);
        reply_deinit(&r);
    }
}

static const struct {
    const char *event, *noted;
    bool malformed;
} faults[] = {
    {"{\"error\":{\"message\":\"out of memory\",\"code\":500}}", "error in the stream: out of memory", false},
    {"{\"error\":\"plain\"}", "error in the stream: \"plain\"", false},
    {"{\"error\":null}", "", false},
    {"{\"choices\":[", "an event that is not JSON: {\"choices\":[", false},
    {"[1]", "an event that is not an object: [1]", false},
    {"", "an event that is not JSON: ", false},
    {CALL("\"index\":0,\"function\":{\"name\":\"x\",\"arguments\":{\"a\":1}}"),
     "a delta that cannot be merged: ", true},
    {DELTA("\"content\":[\"x\"]"), "a delta that cannot be merged: ", true},
    {"{\"choices\":null}", "", false},
    {"{\"choices\":[{}]}", "", false},
    {"{\"choices\":[{\"delta\":null}]}", "", false},
    {"{}", "", false},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        reply r = {0};
        reply_event(&r, span_text(faults[i].event), 1);
        reply_event(&r, span_text("{\"error\":{\"message\":\"later\"}}"), 2); /* the first fault is the one kept */
        const char *expected = *faults[i].noted ? faults[i].noted : "error in the stream: later";
        assert_true(span_starts(span_make(r.error_text.data, r.error_text.size), span_text(expected)));
        assert_int_equal(r.malformed, faults[i].malformed);
        reply_deinit(&r);
    }
}

static void test_usage(void **state) {
    (void)state;
    reply r = {0};
    reply_event(&r, span_text("{\"choices\":[],\"usage\":null}"), 1);
    assert_false(r.usage.known);
    reply_event(&r,
                span_text("{\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,"
                          "\"prompt_tokens_details\":{\"cached_tokens\":7}}}"),
                2);
    assert_true(r.usage.known && r.usage.cached_known);
    assert_int_equal(r.usage.prompt_tokens, 10);
    assert_int_equal(r.usage.completion_tokens, 3);
    assert_int_equal(r.usage.cached_tokens, 7);
    assert_int_equal(r.first_ns, 0);
    reply_deinit(&r);
    reply_event(
        &r, span_text("{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"prompt_tokens_details\":null}}"), 1);
    assert_true(r.usage.known && !r.usage.cached_known);
    reply_deinit(&r);
}

static void test_parsed_arguments(void **state) {
    (void)state;
    const char *const events[] = {
        CALL("\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":\"{\\\"x\\\": [1, 2.50]}\"}"),
        CALL("\"index\":1,\"function\":{\"name\":\"b\",\"arguments\":\"{broken\"}"),
        CALL("\"index\":2,\"function\":{\"name\":\"c\",\"arguments\":\"7\"}"), NULL};
    reply r = {0};
    feed(&r, events);
    arena *a = arena_create();
    buffer out = {0};
    json_write(&out, reply_calls_json(a, &r.message, CALLS_PARSED), JSON_COMPACT);
    assert_string_equal(out.data,
                        "[{\"function\":{\"name\":\"a\",\"arguments\":{\"x\":[1,2.50]}}},"
                        "{\"function\":{\"name\":\"b\",\"arguments\":\"{broken\"}},"
                        "{\"function\":{\"name\":\"c\",\"arguments\":\"7\"}}]");
    buffer_deinit(&out);
    arena_destroy(a);
    reply_deinit(&r);
}

static void test_many_calls(void **state) {
    (void)state;
    reply r = {0};
    for (int i = 0; i <= REPLY_CALLS_MAX; i++) {
        buffer event = {0};
        buffer_printf(&event, CALL("\"index\":%d,\"function\":{\"name\":\"x\"}"), REPLY_CALLS_MAX - i);
        reply_event(&r, span_make(event.data, event.size), 1);
        buffer_deinit(&event);
    }
    assert_int_equal(r.message.call_count, REPLY_CALLS_MAX);
    assert_true(r.malformed);
    for (size_t i = 1; i < r.message.call_count; i++)
        assert_true(r.message.calls[i - 1].index < r.message.calls[i].index);
    reply_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framing), cmocka_unit_test(test_merging),          cmocka_unit_test(test_faults),
        cmocka_unit_test(test_usage),   cmocka_unit_test(test_parsed_arguments), cmocka_unit_test(test_many_calls),
    };
    return cmocka_run_group_tests_name("bench stream", tests, NULL, NULL);
}
