/* Token counts of answers: as text, through the template, without a name; means over the recorded trace against those
 * of the official client. */
#include "bench/agent_trace.h"
#include "bench/token_count.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char qwen_dir[] = "build/qwen-tokenizer";

/* Qwen's tokenizer and template laid out as a model directory, or the test is skipped. */
static token_counter *open_counter(void) {
    char root[1024], command[2200];
    const char *file = test_need_shared("qwen/tokenizer.json.gz");
    snprintf(root, sizeof root, "%.*s", (int)(strlen(file) - strlen("/qwen/tokenizer.json.gz")), file);
    snprintf(command, sizeof command, "sh demo/qwen_tokenizer.sh '%s' %s", root, qwen_dir);
    assert_int_equal(system(command), 0);
    token_counter *c;
    error err;
    if (token_counter_open(qwen_dir, &c, &err) != ERR_OK) fail_msg("%s", err.message);
    return c;
}

static void feed_delta(reply *r, const char *members) {
    buffer event = {0};
    buffer_printf(&event, "{\"choices\":[{\"delta\":{%s}}]}", members);
    reply_event(r, span_make(event.data, event.size), r->events + 1);
    buffer_deinit(&event);
}

#define NAMED(arguments) "\"tool_calls\":[{\"function\":{\"name\":\"bash\",\"arguments\":\"" arguments "\"}}]"
#define MORE(arguments) "\"tool_calls\":[{\"function\":{\"arguments\":\"" arguments "\"}}]"
#define COMMAND "{\\\"command\\\":\\\"ls\\\"}"

/* 25 tokens of a call: <tool_call> \n <function = bash > \n <parameter = command > \n ls \n </parameter> \n ... */
static const struct {
    const char *deltas[4];
    size_t whole, rest;
} cases[] = {
    {{"\"role\":\"assistant\""}, 0, 0},
    {{"\"content\":\"one two\""}, 2, 0},
    {{"\"content\":\"one\"", "\"content\":\" two three\""}, 3, 2},
    {{"\"reasoning_content\":\"one\"", "\"content\":\"two\""}, 3, 1}, /* joined by a line end */
    {{NAMED(""), MORE(COMMAND)}, 25, 18},                             /* the rest has no name: counted as JSON */
    {{NAMED(COMMAND)}, 25, 0},
    {{"\"content\":\"x\"", NAMED(COMMAND)}, 27, 25},
    {{NAMED("not an object")}, 19, 0}, /* the template refuses: counted as JSON */
};

static void test_counts(void **state) {
    (void)state;
    token_counter *c = open_counter();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply r = {0};
        for (size_t k = 0; cases[i].deltas[k]; k++) feed_delta(&r, cases[i].deltas[k]);
        assert_int_equal(r.error_text.size, 0);
        assert_int_equal(token_counter_message(c, &r.message), cases[i].whole);
        assert_int_equal(token_counter_message(c, &r.rest), cases[i].rest);
        reply_deinit(&r);
    }
    token_counter_close(c);
}

/* The recorded calls as a server streams them: the head of a call, then its arguments. */
static void feed_calls(reply *r, const json *calls) {
    int index = 0;
    for (const json *call = calls->first; call; call = call->next, index++) {
        const json *function = json_get(call, "function");
        buffer head = {0}, tail = {0};
        buffer_printf(&head,
                      "\"tool_calls\":[{\"index\":%d,\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":",
                      index, index);
        json_write(&head, json_get(function, "name"), JSON_COMPACT);
        buffer_text(&head, ",\"arguments\":\"\"}}]");
        buffer_printf(&tail, "\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":", index);
        json_write(&tail, json_get(function, "arguments"), JSON_COMPACT);
        buffer_text(&tail, "}}]");
        feed_delta(r, head.data);
        feed_delta(r, tail.data);
        buffer_deinit(&head);
        buffer_deinit(&tail);
    }
}

/* The official client counts 73.9 tokens a recorded message and 74.1 of what follows a first delta with the name. */
static void test_means(void **state) {
    (void)state;
    token_counter *c = open_counter();
    trace t;
    error err;
    if (trace_read(test_need_shared("mlperf/agentic_coding_2.5h.jsonl"), 0, 0, &t, &err) != ERR_OK)
        fail_msg("%s", err.message);
    double whole = 0, rest = 0;
    for (size_t i = 0; i < t.count; i++)
        for (size_t k = 0; k < t.conversations[i].turn_count; k++) {
            reply r = {0};
            feed_calls(&r, t.conversations[i].turns[k].calls);
            whole += (double)token_counter_message(c, &r.message);
            rest += (double)token_counter_message(c, &r.rest);
            reply_deinit(&r);
        }
    print_message("mean tokens: message %.3f, rest %.3f\n", whole / (double)t.turn_count, rest / (double)t.turn_count);
    assert_true(fabs(whole / (double)t.turn_count - 73.9) < 0.05);
    assert_true(fabs(rest / (double)t.turn_count - 74.1) < 0.1);
    trace_deinit(&t);
    token_counter_close(c);
}

static void test_no_directory(void **state) {
    (void)state;
    token_counter *c;
    assert_int_not_equal(token_counter_open("/nowhere", &c, NULL), ERR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_no_directory),
    };
    return cmocka_run_group_tests_name("bench tokens", tests, NULL, NULL);
}
