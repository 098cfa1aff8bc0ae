/* Every field of a chat completion: honoured, known to be without effect, or refused by name. */
#include <string.h>

#include "fake_engine.h"
#include "serve/chat_request.h"
#include "support.h"

static bool parse(const char *body, arena *a, chat_request *out, api_error *e) {
    return chat_request_parse(a, span_text(body), "m", 1000, out, e);
}

/* The members of a request beside messages. */
static bool parse_members(const char *members, arena *a, chat_request *out, api_error *e) {
    buffer b = {0};
    buffer_printf(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]%s%s}", *members ? "," : "", members);
    char *body = arena_copy(a, b.data, b.size);
    buffer_deinit(&b);
    return parse(body, a, out, e);
}

static void accepted(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",
        "\"model\":\"m\"",
        "\"model\":null,\"tools\":null,\"stop\":null,\"seed\":null,\"n\":null,\"logit_bias\":null,\"functions\":null",
        "\"stream\":true,\"stream_options\":{\"include_usage\":true}",
        "\"stream\":true,\"stream_options\":{}",
        "\"stream\":true,\"stream_options\":{\"include_usage\":null,\"include_obfuscation\":false}",
        "\"tools\":[],\"tool_choice\":\"auto\"",
        "\"tool_choice\":\"none\"",
        "\"stop\":\"a\"",
        "\"stop\":[]",
        "\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]",
        "\"seed\":-1",
        "\"seed\":9223372036854775807",
        "\"temperature\":0",
        "\"temperature\":2.0",
        "\"top_p\":1",
        "\"top_p\":1e-9",
        "\"top_k\":-1",
        "\"top_k\":20",
        "\"min_p\":0.05",
        "\"max_tokens\":1",
        "\"max_tokens\":1000",
        "\"max_completion_tokens\":7.0",
        "\"max_tokens\":5,\"max_completion_tokens\":5",
        "\"chat_template_kwargs\":{\"enable_thinking\":false}",
        "\"reasoning_effort\":\"none\"",
        "\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"enable_thinking\":false}",
        "\"response_format\":{\"type\":\"text\"}",
        "\"n\":1",
        "\"logprobs\":false,\"top_logprobs\":0,\"logit_bias\":{}",
        "\"presence_penalty\":0,\"frequency_penalty\":0.0,\"repetition_penalty\":1.0",
        "\"parallel_tool_calls\":true,\"modalities\":[\"text\"],\"store\":false,\"verbosity\":\"medium\"",
        "\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"service_tier\":\"auto\",\"safety_identifier\":\"s\"",
        "\"prompt_cache_key\":\"k\",\"prompt_cache_retention\":\"24h\",\"cache_prompt\":true,\"ignore_eos\":false",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_create();
        chat_request r;
        api_error e;
        if (!parse_members(cases[i], a, &r, &e)) fail_msg("%s: %s", cases[i], e.message);
        arena_destroy(a);
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *members, *param, *code;
        int status;
    } cases[] = {
        {"\"model\":\"other\"", "model", "model_not_found", 404},
        {"\"model\":\"\"", "model", "model_not_found", 404},
        {"\"model\":3", "model", "invalid_value", 400},
        {"\"tools\":{}", "tools", "invalid_value", 400},
        {"\"tool_choice\":\"required\"", "tool_choice", "unsupported", 400},
        {"\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}", "tool_choice", "unsupported", 400},
        {"\"tool_choice\":true", "tool_choice", "invalid_value", 400},
        {"\"stream\":\"true\"", "stream", "invalid_value", 400},
        {"\"stream_options\":{\"include_usage\":true}", "stream_options", "invalid_value", 400},
        {"\"stream\":true,\"stream_options\":[]", "stream_options", "invalid_value", 400},
        {"\"stream\":true,\"stream_options\":{\"include_usage\":1}", "stream_options.include_usage", "invalid_value",
         400},
        {"\"stream\":true,\"stream_options\":{\"x\":1}", "stream_options", "unsupported", 400},
        {"\"stop\":3", "stop", "invalid_value", 400},
        {"\"stop\":\"\"", "stop", "invalid_value", 400},
        {"\"stop\":[\"a\",\"\"]", "stop[1]", "invalid_value", 400},
        {"\"stop\":[\"a\",null]", "stop[1]", "invalid_value", 400},
        {"\"stop\":[\"a\\u0000b\"]", "stop[0]", "invalid_value", 400},
        {"\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\",\"15\","
         "\"16\",\"17\"]",
         "stop", "invalid_value", 400},
        {"\"seed\":1.5", "seed", "invalid_value", 400},
        {"\"seed\":\"1\"", "seed", "invalid_value", 400},
        {"\"seed\":99999999999999999999", "seed", "invalid_value", 400},
        {"\"temperature\":-0.1", "temperature", "invalid_value", 400},
        {"\"temperature\":2.1", "temperature", "invalid_value", 400},
        {"\"temperature\":1e999", "temperature", "invalid_value", 400},
        {"\"temperature\":\"0\"", "temperature", "invalid_value", 400},
        {"\"top_p\":0", "top_p", "invalid_value", 400},
        {"\"top_p\":1.01", "top_p", "invalid_value", 400},
        {"\"top_k\":-2", "top_k", "invalid_value", 400},
        {"\"top_k\":0.5", "top_k", "invalid_value", 400},
        {"\"top_k\":1e12", "top_k", "invalid_value", 400},
        {"\"min_p\":1.5", "min_p", "invalid_value", 400},
        {"\"max_tokens\":0", "max_tokens", "invalid_value", 400},
        {"\"max_tokens\":-1", "max_tokens", "invalid_value", 400},
        {"\"max_tokens\":1.5", "max_tokens", "invalid_value", 400},
        {"\"max_tokens\":\"5\"", "max_tokens", "invalid_value", 400},
        {"\"max_tokens\":1001", "max_tokens", "context_length_exceeded", 400},
        {"\"max_completion_tokens\":1e12", "max_completion_tokens", "context_length_exceeded", 400},
        {"\"max_completion_tokens\":1000000000000", "max_completion_tokens", "context_length_exceeded", 400},
        {"\"max_tokens\":5,\"max_completion_tokens\":6", "max_completion_tokens", "invalid_value", 400},
        {"\"max_tokens\":5,\"max_tokens\":5", "max_tokens", "invalid_value", 400},
        {"\"chat_template_kwargs\":[]", "chat_template_kwargs", "invalid_value", 400},
        {"\"reasoning_effort\":\"high\"", "reasoning_effort", "unsupported", 400},
        {"\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"enable_thinking\":true}", "reasoning_effort",
         "invalid_value", 400},
        {"\"response_format\":{\"type\":\"json_object\"}", "response_format", "unsupported", 400},
        {"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}", "response_format", "unsupported", 400},
        {"\"n\":2", "n", "unsupported", 400},
        {"\"logprobs\":true", "logprobs", "unsupported", 400},
        {"\"top_logprobs\":5", "top_logprobs", "unsupported", 400},
        {"\"logit_bias\":{\"5\":1}", "logit_bias", "unsupported", 400},
        {"\"presence_penalty\":0.5", "presence_penalty", "unsupported", 400},
        {"\"frequency_penalty\":-1", "frequency_penalty", "unsupported", 400},
        {"\"repetition_penalty\":1.1", "repetition_penalty", "unsupported", 400},
        {"\"parallel_tool_calls\":false", "parallel_tool_calls", "unsupported", 400},
        {"\"modalities\":[\"text\",\"audio\"]", "modalities", "unsupported", 400},
        {"\"verbosity\":\"low\"", "verbosity", "unsupported", 400},
        {"\"store\":true", "store", "unsupported", 400},
        {"\"functions\":[]", "functions", "unsupported", 400},
        {"\"function_call\":\"auto\"", "function_call", "unsupported", 400},
        {"\"audio\":{}", "audio", "unsupported", 400},
        {"\"prediction\":{}", "prediction", "unsupported", 400},
        {"\"web_search_options\":{}", "web_search_options", "unsupported", 400},
        {"\"ignore_eos\":1", "ignore_eos", "invalid_value", 400},
        {"\"enable_thinking\":false", "enable_thinking", "unknown_field", 400},
        {"\"Temperature\":0", "Temperature", "unknown_field", 400},
        {"\"\":0", "", "unknown_field", 400},
        {"\"unknown\":null", "unknown", "unknown_field", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_create();
        chat_request r;
        api_error e;
        if (parse_members(cases[i].members, a, &r, &e)) fail_msg("%s was accepted", cases[i].members);
        if (e.status != cases[i].status || strcmp(e.code, cases[i].code) || strcmp(e.param, cases[i].param))
            fail_msg("%s: %d %s '%s' %s", cases[i].members, e.status, e.code, e.param, e.message);
        assert_true(strlen(e.message) > 10);
        arena_destroy(a);
    }
}

static void bodies(void **state) {
    (void)state;
    static const struct {
        const char *body, *code;
    } cases[] = {
        {"", "invalid_json"},
        {"{", "invalid_json"},
        {"[]", "invalid_json"},
        {"null", "invalid_json"},
        {"{}", "missing_field"},
        {"{\"messages\":null}", "missing_field"},
        {"{\"messages\":[]}", "invalid_value"},
        {"{\"messages\":\"hi\"}", "invalid_value"},
        {"{\"messages\":[{\"content\":\"\\ud800\"}]}", "invalid_json"},
        {"{\"messages\":[NaN]}", "invalid_json"},
        {"{'messages':[]}", "invalid_json"},
        {"{\"messages\":[1]} x", "invalid_json"},
        {"\xef\xbb\xbf{}", "invalid_json"},
        {"{\"messages\":[\"\xff\"]}", "invalid_json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_create();
        chat_request r;
        api_error e;
        assert_false(parse(cases[i].body, a, &r, &e));
        if (e.status != 400 || strcmp(e.code, cases[i].code)) fail_msg("%s: %s", cases[i].body, e.code);
        arena_destroy(a);
    }
}

static void deep_bodies(void **state) {
    (void)state;
    buffer b = {0};
    buffer_text(&b, "{\"messages\":");
    for (int i = 0; i < 10000; i++) buffer_char(&b, '[');
    for (int i = 0; i < 10000; i++) buffer_char(&b, ']');
    buffer_char(&b, '}');
    arena *a = arena_create();
    chat_request r;
    api_error e;
    assert_false(parse(b.data, a, &r, &e));
    assert_string_equal(e.code, "invalid_json");
    arena_destroy(a);
    buffer_deinit(&b);
}

static void values_arrive(void **state) {
    (void)state;
    arena *a = arena_create();
    chat_request r;
    api_error e;
    assert_true(
        parse_members("\"stream\":true,\"stream_options\":{\"include_usage\":true},\"stop\":[\"x\",\"y\\n\"],"
                      "\"seed\":-2,\"temperature\":0.5,\"top_p\":0.25,\"top_k\":7,\"min_p\":0.125,"
                      "\"max_completion_tokens\":9,\"ignore_eos\":true,\"tools\":[ {} ]",
                      a, &r, &e));
    const hearth_request_params *p = &r.params;
    assert_true(r.stream && r.include_usage && p->ignore_stop_ids && p->tool_calls);
    assert_int_equal(p->stop_count, 2);
    assert_string_equal(p->stop[1], "y\n");
    assert_true(p->has_seed && p->seed == (uint64_t)-2);
    assert_true(p->temperature == 0.5 && p->top_p == 0.25 && p->top_k == 7 && p->min_p == 0.125);
    assert_int_equal(p->max_tokens, 9);
    assert_true(span_is(span_make(p->tools, p->tools_size), "[ {} ]"));
    assert_true(span_is(span_make(p->messages, p->messages_size), "[{\"role\":\"user\",\"content\":\"hi\"}]"));

    assert_true(parse_members("", a, &r, &e)); /* absent = the checkpoint's own */
    assert_true(p->temperature < 0 && p->top_p < 0 && p->top_k < 0 && p->min_p < 0 && !p->has_seed && !p->tools);
    assert_false(r.params.tool_calls); /* no tools, no calls */
    assert_true(parse_members("\"tools\":[{}],\"tool_choice\":\"none\"", a, &r, &e));
    assert_false(r.params.tool_calls);
    assert_true(parse_members("\"tool_choice\":\"none\",\"tools\":[{}]", a, &r, &e));
    assert_false(r.params.tool_calls);
    arena_destroy(a);
}

static void effort_none_is_thinking_off(void **state) {
    (void)state;
    static const struct {
        const char *members, *kwargs;
    } cases[] = {
        {"\"reasoning_effort\":\"none\"", "{\"enable_thinking\":false}"},
        {"\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"a\":1}", "{\"a\":1,\"enable_thinking\":false}"},
        {"\"chat_template_kwargs\":{\"enable_thinking\":true}", "{\"enable_thinking\":true}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_create();
        chat_request r;
        api_error e;
        assert_true(parse_members(cases[i].members, a, &r, &e));
        assert_true(span_is(span_make(r.params.template_kwargs, r.params.template_kwargs_size), cases[i].kwargs));
        arena_destroy(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),    cmocka_unit_test(refused),       cmocka_unit_test(bodies),
        cmocka_unit_test(deep_bodies), cmocka_unit_test(values_arrive), cmocka_unit_test(effort_none_is_thinking_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
