/* Conversations through the whole engine: template, tokenizer, model, parser. The model is a random one with a byte-level
 * tokenizer, so what it says is noise; what is tested is that it says the same noise whatever was reused, and that
 * everything around it holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "hearth.h"
#include "model/synth.h"
#include "support.h"

static char model_dir[256];

static int write_model(void **state) {
    (void)state;
    snprintf(model_dir, sizeof model_dir, "%s", test_temp("tiny"));
    synth_options options = {.seed = 1};
    error err;
    if (synth_write("tiny", model_dir, &options, &err) != ERR_OK) fail_msg("%s", err.message);
    return 0;
}

static hearth_engine *open_engine(int parallel, bool reasoning) {
    hearth_options options = {
        .context_max = 4096, .parallel = parallel, .threads = 1, .reasoning = reasoning, .name = "test"};
    hearth_engine *e = NULL;
    hearth_error fault;
    if (hearth_engine_open(model_dir, &options, &e, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
    return e;
}

/* An answer as one text: every event's letter and text. */
typedef struct answer {
    buffer text;
    hearth_event last;
    int kinds[HEARTH_EVENT_ERROR + 1];
} answer;

static hearth_request_params params_for(const char *messages) {
    hearth_request_params params = hearth_request_defaults();
    params.messages = messages;
    params.max_tokens = 40;
    params.temperature = 1;
    params.top_k = 0;
    params.has_seed = true;
    params.seed = 11;
    return params;
}

static answer collect(hearth_request *r) {
    answer a = {0};
    int previous = -1;
    hearth_event event;
    while (hearth_request_next(r, &event, 60000)) {
        assert_true(utf8_valid(span_make(event.text, event.text_size)));
        assert_int_equal(strlen(event.text) <= event.text_size, true);
        a.kinds[event.type]++;
        if ((int)event.type != previous) buffer_char(&a.text, "SRCBAEFX"[event.type]);
        previous = (int)event.type;
        buffer_append(&a.text, event.text, event.text_size);
        a.last = event;
    }
    a.last.text = NULL;
    hearth_request_destroy(r);
    return a;
}

static answer ask(hearth_engine *e, const hearth_request_params *params) {
    hearth_request *r = NULL;
    hearth_error fault;
    if (hearth_request_create(e, params, &r, &fault) != HEARTH_OK) fail_msg("%s", fault.message);
    return collect(r);
}

static void same_text(const answer *a, const answer *b) {
    assert_int_equal(a->text.size, b->text.size);
    assert_memory_equal(a->text.data, b->text.data, a->text.size);
}

static char *user_turns(int count) {
    buffer b = {0};
    buffer_text(&b, "[{\"role\":\"system\",\"content\":\"You are a careful assistant on a small robot.\"}");
    for (int i = 0; i < count; i++) {
        buffer_printf(&b,
                      ",{\"role\":\"user\",\"content\":\"Question number %d, about gr\xc3\xbc"
                      "n things\"}",
                      i);
        if (i + 1 < count) buffer_printf(&b, ",{\"role\":\"assistant\",\"content\":\"Answer %d\"}", i);
    }
    buffer_char(&b, ']');
    return buffer_take(&b);
}

/* ---- tests */

static void a_growing_conversation_reuses_its_history(void **state) {
    (void)state;
    hearth_engine *warm = open_engine(1, false);
    int previous = 0;
    for (int turns = 1; turns <= 5; turns++) {
        char *messages = user_turns(turns);
        hearth_request_params params = params_for(messages);
        hearth_engine *cold = open_engine(1, false);
        answer expected = ask(cold, &params), a = ask(warm, &params);
        assert_int_equal(expected.last.type, HEARTH_EVENT_FINISH);
        same_text(&a, &expected);
        assert_int_equal(expected.last.usage.cached_tokens, 0);
        assert_int_equal(a.last.usage.prompt_tokens, expected.last.usage.prompt_tokens);
        assert_int_equal(a.last.usage.completion_tokens, expected.last.usage.completion_tokens);
        /* All but the generation prompt ("<|im_start|>assistant\n<think>\n\n</think>\n\n", byte by byte). */
        if (turns > 1) assert_in_range(a.last.usage.cached_tokens, previous - 40, previous);
        previous = a.last.usage.prompt_tokens;
        answer again = ask(warm, &params);
        same_text(&again, &expected);
        assert_int_equal(again.last.usage.cached_tokens, previous - 1);
        buffer_deinit(&again.text);
        buffer_deinit(&a.text);
        buffer_deinit(&expected.text);
        hearth_engine_close(cold);
        free(messages);
    }
    hearth_engine_close(warm);
}

static void reasoning_is_split_off_and_counted(void **state) {
    (void)state;
    hearth_engine *e = open_engine(1, true);
    char *messages = user_turns(1);
    hearth_request_params params = params_for(messages);
    params.ignore_stop_ids = true;
    answer open = ask(e, &params);
    assert_true(open.kinds[HEARTH_EVENT_REASONING] > 0);
    assert_true(open.last.usage.reasoning_tokens > 0);
    assert_int_equal(open.last.finish, HEARTH_FINISH_LENGTH);
    assert_int_equal(open.last.usage.completion_tokens, 40);
    params.template_kwargs = "{\"enable_thinking\": false}";
    answer closed = ask(e, &params);
    assert_true(closed.kinds[HEARTH_EVENT_CONTENT] > 0);
    assert_true(closed.last.usage.prompt_tokens > open.last.usage.prompt_tokens);
    buffer_deinit(&open.text);
    buffer_deinit(&closed.text);
    free(messages);
    hearth_engine_close(e);
}

static void tools_are_in_the_prompt_unless_calls_are_off(void **state) {
    (void)state;
    hearth_engine *e = open_engine(1, false);
    char *messages = user_turns(1);
    hearth_request_params params = params_for(messages);
    params.max_tokens = 1;
    answer without = ask(e, &params);
    params.tools = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}}]";
    answer with = ask(e, &params);
    params.tool_calls = false;
    answer off = ask(e, &params);
    params.tool_calls = true;
    params.tools = "[]";
    answer empty = ask(e, &params);
    assert_true(with.last.usage.prompt_tokens > without.last.usage.prompt_tokens + 20);
    assert_int_equal(off.last.usage.prompt_tokens, without.last.usage.prompt_tokens);
    assert_int_equal(empty.last.usage.prompt_tokens, without.last.usage.prompt_tokens);
    buffer_deinit(&without.text);
    buffer_deinit(&with.text);
    buffer_deinit(&off.text);
    buffer_deinit(&empty.text);
    free(messages);
    hearth_engine_close(e);
}

static void wrong_conversations_are_errors_with_a_place(void **state) {
    (void)state;
    static const struct {
        const char *messages, *tools, *kwargs, *param;
    } cases[] = {
        {"{", NULL, NULL, "messages"},
        {"null", NULL, NULL, "messages"},
        {"[{\"role\":\"user\",\"content\":7}]", NULL, NULL, "messages[0].content"},
        {"[{\"role\":\"user\",\"content\":\"x\"}]", "[1", NULL, "tools"},
        {"[{\"role\":\"user\",\"content\":\"x\"}]", "[1]", NULL, "tools[0]"},
        {"[{\"role\":\"user\",\"content\":\"x\"}]", NULL, "[]", "chat_template_kwargs"},
        {"[{\"role\":\"user\",\"content\":\"x\"}]", NULL, "{\"enable_thinking\":\"false\"}",
         "chat_template_kwargs.enable_thinking"},
    };
    hearth_engine *e = open_engine(1, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hearth_request_params params = params_for(cases[i].messages);
        params.tools = cases[i].tools;
        params.template_kwargs = cases[i].kwargs;
        answer a = ask(e, &params);
        assert_int_equal(a.last.type, HEARTH_EVENT_ERROR);
        assert_int_equal(a.kinds[HEARTH_EVENT_START], 0);
        assert_int_equal(a.last.error.status, HEARTH_INVALID);
        assert_string_equal(a.last.error.param, cases[i].param);
        buffer_deinit(&a.text);
    }
    hearth_engine_close(e);
}

static void agents_in_turn_all_hit(void **state) {
    (void)state;
    enum { AGENTS = 6 };
    hearth_engine *e = open_engine(2, false);
    char *messages[AGENTS][2];
    answer first[AGENTS];
    for (int i = 0; i < AGENTS; i++)
        for (int turn = 0; turn < 2; turn++) {
            buffer b = {0};
            buffer_printf(&b,
                          "[{\"role\":\"system\",\"content\":\"Shared by all agents, word for word.\"},"
                          "{\"role\":\"user\",\"content\":\"I am agent %d\"}",
                          i);
            if (turn)
                buffer_text(&b, ",{\"role\":\"assistant\",\"content\":\"ok\"},{\"role\":\"user\",\"content\":\"go\"}");
            buffer_char(&b, ']');
            messages[i][turn] = buffer_take(&b);
        }
    for (int turn = 0; turn < 2; turn++) {
        hearth_request *requests[AGENTS];
        for (int i = 0; i < AGENTS; i++) {
            hearth_request_params params = params_for(messages[i][turn]);
            assert_int_equal(hearth_request_create(e, &params, &requests[i], NULL), HEARTH_OK);
        }
        for (int i = 0; i < AGENTS; i++) {
            answer a = collect(requests[i]);
            assert_int_equal(a.last.type, HEARTH_EVENT_FINISH);
            /* The second turn continues the first; the first of later agents shares the system message. */
            if (turn) assert_true(a.last.usage.cached_tokens >= first[i].last.usage.prompt_tokens - 40);
            if (!turn && i >= 2) assert_true(a.last.usage.cached_tokens > 30);
            if (turn)
                buffer_deinit(&a.text);
            else
                first[i] = a;
        }
    }
    for (int i = 0; i < AGENTS; i++) {
        buffer_deinit(&first[i].text);
        free(messages[i][0]);
        free(messages[i][1]);
    }
    hearth_engine_close(e);
}

static void text_and_ids(void **state) {
    (void)state;
    static const char text[] =
        "<|im_start|>gr\xc3\xbc"
        "n \xf0\x9f\x98\x80";
    hearth_engine *e = open_engine(1, false);
    int32_t *ids;
    size_t count, size;
    char *back;
    hearth_error fault;
    assert_int_equal(hearth_tokenize(e, text, sizeof text - 1, &ids, &count, &fault), HEARTH_OK);
    assert_int_equal(count, 1 + 5 + 1 + 4);
    assert_int_equal(hearth_detokenize(e, ids, count, &back, &size, &fault), HEARTH_OK);
    assert_string_equal(back, text);
    free(back);
    assert_int_equal(hearth_detokenize(e, ids, count - 1, &back, &size, &fault), HEARTH_OK);
    assert_string_equal(back,
                        "<|im_start|>gr\xc3\xbc"
                        "n \xef\xbf\xbd");
    free(back);
    assert_null(hearth_engine_info(e).chat_error);
    ids[0] = hearth_engine_info(e).vocabulary;
    assert_int_equal(hearth_detokenize(e, ids, count, &back, &size, &fault), HEARTH_INVALID);
    free(ids);
    assert_int_equal(hearth_tokenize(e, "", 0, &ids, &count, &fault), HEARTH_OK);
    assert_int_equal(count, 0);
    free(ids);
    hearth_engine_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growing_conversation_reuses_its_history),
        cmocka_unit_test(reasoning_is_split_off_and_counted),
        cmocka_unit_test(tools_are_in_the_prompt_unless_calls_are_off),
        cmocka_unit_test(wrong_conversations_are_errors_with_a_place),
        cmocka_unit_test(agents_in_turn_all_hit),
        cmocka_unit_test(text_and_ids),
    };
    return cmocka_run_group_tests_name("engine_chat", tests, write_model, NULL);
}
