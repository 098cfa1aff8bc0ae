/* Trace files: the shape, selections, errors with file, line and field; the messages of a replay as they are sent. */
#include "bench/agent_trace.h"
#include "support.h"

#include <string.h>

#include "base/file.h"

#define USER                                                                                                         \
    "{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"user\",\"system\":\"S\",\"tools\":[{\"x\":1.50}],\"content\":" \
    "\"hi\"}\n"
#define CALLS \
    "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":\"{}\"}}]"
#define ANSWER "{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"assistant\",\"reasoning_content\":\"why\"," CALLS "}\n"
#define RESULT                                                                                                       \
    "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"tool\",\"tool_results\":[{\"tool_call_id\":\"c\",\"content\":" \
    "\"out\"},{\"tool_call_id\":\"d\",\"content\":\"\"}],\"delay_seconds\":0.2}\n"
#define LAST "{\"conversation_id\":\"a\",\"turn\":4,\"role\":\"assistant\",\"content\":\"done\"}\n"
#define OTHER                                                                                                          \
    "{\"conversation_id\":\"b\",\"turn\":1,\"role\":\"user\",\"content\":\"x\"}\n{\"conversation_id\":\"b\",\"turn\":" \
    "2,\"role\":\"assistant\"}\n"

static const char *put(const char *text) {
    const char *path = test_temp("trace.jsonl");
    error err;
    assert_int_equal(file_write_atomic(path, span_text(text), &err), ERR_OK);
    return path;
}

static void test_shape(void **state) {
    (void)state;
    trace t;
    error err;
    assert_int_equal(trace_read(put(USER "\n" ANSWER RESULT LAST OTHER), 0, 0, &t, &err), ERR_OK);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.turn_count, 3);
    const trace_conversation *a = &t.conversations[0];
    assert_true(span_is(a->id, "a") && a->system && a->tools && a->turn_count == 2);
    assert_int_equal(a->turns[0].number, 2);
    assert_non_null(a->turns[0].calls);
    assert_null(a->turns[0].results);
    assert_int_equal(a->turns[1].number, 4);
    assert_null(a->turns[1].user);
    assert_true(json_string_is(a->turns[1].content, "done"));
    assert_null(t.conversations[1].system);
    assert_null(t.conversations[1].tools);
    trace_deinit(&t);
}

static void test_selection(void **state) {
    (void)state;
    const struct {
        size_t conversations, turns, count, total;
    } picks[] = {{1, 0, 1, 2}, {0, 1, 2, 2}, {1, 1, 1, 1}, {2, 2, 2, 3}, {9, 9, 2, 3}};
    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++) {
        trace t;
        assert_int_equal(
            trace_read(put(USER ANSWER RESULT LAST OTHER), picks[i].conversations, picks[i].turns, &t, NULL), ERR_OK);
        assert_int_equal(t.count, picks[i].count);
        assert_int_equal(t.turn_count, picks[i].total);
        trace_deinit(&t);
    }
}

static const struct {
    const char *text, *message; /* after "FILE" */
} faults[] = {
    {"", ": no conversation in it"},
    {"\n \n", ": no conversation in it"},
    {"{", ":1: byte 1"},
    {"[]\n", ":1: not a JSON object"},
    {"{}\n", ":1: `conversation_id` is missing"},
    {"{\"conversation_id\":1}\n", ":1: `conversation_id` must be a string"},
    {"{\"conversation_id\":\"a\"}\n", ":1: `turn` is missing"},
    {"{\"conversation_id\":\"a\",\"turn\":\"1\"}\n", ":1: `turn` must be a number"},
    {"{\"conversation_id\":\"a\",\"turn\":1}\n", ":1: `role` is missing"},
    {"{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"user\"}\n", ":1: `turn` must be 1 here"},
    {"{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"tool\"}\n", ":1: `role` of turn 1 must be user"},
    {"{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"assistant\"}\n", ":1: `role` of turn 1 must not be assistant"},
    {"{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"user\"}\n", ":1: `content` is missing"},
    {"{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"user\",\"content\":\"\",\"tools\":{}}\n",
     ":1: `tools` must be an array"},
    {USER, ":1: conversation 'a' ends without an assistant line"},
    {USER OTHER, ":2: conversation 'a' ends without an assistant line"},
    {USER ANSWER RESULT, ":3: conversation 'a' ends without an assistant line"},
    {USER RESULT, ":2: `turn` must be 2 here"},
    {USER ANSWER LAST, ":3: `turn` must be 3 here"},
    {USER ANSWER OTHER RESULT, ":5: `conversation_id` was seen before"},
    {USER "{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"assistant\",\"tool_calls\":[{}]}\n",
     ":2: `tool_calls[0]` must have function.name and function.arguments"},
    {USER ANSWER "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"tool\"}\n", ":3: `tool_results` is missing"},
    {USER ANSWER "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"tool\",\"tool_results\":[]}\n",
     ":3: `tool_results` is empty"},
    {USER ANSWER "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"tool\",\"tool_results\":[{\"content\":\"\"}]}\n",
     ":3: `tool_results[0]` must have the strings tool_call_id and content"},
    {USER ANSWER "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"system\"}\n",
     ":3: `role` of turn 3 must be tool or user"},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *path = put(faults[i].text);
        trace t;
        error err;
        assert_int_not_equal(trace_read(path, 0, 0, &t, &err), ERR_OK);
        assert_true(strncmp(err.message, path, strlen(path)) == 0);
        const char *rest = err.message + strlen(path);
        if (strncmp(rest, faults[i].message, strlen(faults[i].message)) != 0)
            fail_msg("expected '%s', got '%s'", faults[i].message, rest);
    }
    trace t;
    assert_int_equal(trace_read("/nowhere/trace.jsonl", 0, 0, &t, NULL), ERR_NOT_FOUND);
}

/* What a server is sent for the second turn: recorded answer and results, members in the order of the protocol. */
static void test_transcript(void **state) {
    (void)state;
    trace t;
    assert_int_equal(trace_read(put(USER ANSWER RESULT LAST), 0, 0, &t, NULL), ERR_OK);
    transcript history;
    transcript_begin(&history, &t.conversations[0]);
    buffer out = {0};
    transcript_extend(&history, &t.conversations[0], 0);
    json_write(&out, history.messages, JSON_COMPACT);
    assert_string_equal(out.data, "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"hi\"}]");
    buffer_clear(&out);
    transcript_extend(&history, &t.conversations[0], 1);
    json_write(&out, history.messages, JSON_COMPACT);
    assert_string_equal(out.data,
                        "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"hi\"},"
                        "{\"role\":\"assistant\"," CALLS
                        ",\"reasoning_content\":\"why\"},"
                        "{\"role\":\"tool\",\"content\":\"out\",\"tool_call_id\":\"c\"},"
                        "{\"role\":\"tool\",\"content\":\"\",\"tool_call_id\":\"d\"}]");
    buffer_deinit(&out);
    transcript_end(&history);
    trace_deinit(&t);
}

static void test_bundled(void **state) {
    (void)state;
    trace t;
    error err;
    if (trace_read("demo/agent_trace.jsonl", 0, 0, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    assert_true(t.count >= 1 && t.turn_count >= t.count);
    trace_deinit(&t);
}

static void test_mlperf(void **state) {
    (void)state;
    trace t;
    error err;
    const char *path = test_need_shared("mlperf/agentic_coding_2.5h.jsonl");
    if (trace_read(path, 0, 0, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    assert_int_equal(t.count, 20);
    assert_int_equal(t.turn_count, 1007);
    trace_deinit(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),      cmocka_unit_test(test_selection), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_transcript), cmocka_unit_test(test_bundled),   cmocka_unit_test(test_mlperf),
    };
    return cmocka_run_group_tests_name("bench trace", tests, NULL, NULL);
}
