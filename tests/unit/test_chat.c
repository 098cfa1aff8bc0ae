/* Conversations to token ids: where the template is found, keyword arguments, the generation prompt, message ends, and
 * that the memos never change a result. Own small templates; the recorded conversation where the reference data is. */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "qwen.h"
#include "support.h"
#include "text/chat_input.h"
#include "text/message.h"
#include "trace.h"

static const char tokenizer_json[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": %s, \"merges\": []}, "
    "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, \"decoder\": {\"type\": "
    "\"ByteLevel\"}, "
    "\"added_tokens\": [{\"id\": 256, \"content\": \"<|im_start|>\", \"special\": true}, "
    "{\"id\": 257, \"content\": \"<|im_end|>\", \"special\": true}, "
    "{\"id\": 258, \"content\": \"<think>\", \"special\": false}, "
    "{\"id\": 259, \"content\": \"</think>\", \"special\": false}]}";

static const char config_json[] =
    "{\"eos_token\": {\"content\": \"<|im_end|>\"}, \"bos_token\": null, \"pad_token\": \"<pad>\"%s}";

static const char turns_template[] =
    "{%- for m in messages %}{{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{{- '<think>\\n\\n</think>\\n\\n' if enable_thinking is false else '<think>\\n' }}{% endif %}";

/* The byte-level vocabulary: printable bytes stand for themselves, the others for U+0100 upwards. */
static char *byte_vocabulary(void) {
    buffer b = {0};
    buffer_char(&b, '{');
    for (int byte = 0, other = 0; byte < 256; byte++) {
        bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        buffer_printf(&b, "%s\"\\u%04x\": %d", byte ? ", " : "", printable ? byte : 256 + other++, byte);
    }
    buffer_char(&b, '}');
    return buffer_take(&b);
}

static void write_text(const char *dir, const char *name, const char *text) {
    error err = {0};
    char *path = file_join(dir, name);
    if (file_write_atomic(path, span_text(text), &err) != ERR_OK) fail_msg("%s", err.message);
    free(path);
}

/* A model directory without weights. config_rest continues tokenizer_config.json; template may be NULL. */
static const char *make_dir(const char *name, const char *config_rest, const char *template) {
    const char *dir = test_temp(name);
    char *vocabulary = byte_vocabulary(), *text;
    mkdir(dir, 0777);
    buffer b = {0};
    buffer_printf(&b, tokenizer_json, vocabulary);
    write_text(dir, "tokenizer.json", b.data);
    buffer_clear(&b);
    buffer_printf(&b, config_json, config_rest);
    text = buffer_take(&b);
    write_text(dir, "tokenizer_config.json", text);
    if (template) write_text(dir, "chat_template.jinja", template);
    free(vocabulary);
    free(text);
    return dir;
}

static chat_format *open_dir(const char *dir, bool reasoning) {
    chat_format *f;
    error err = {0};
    if (chat_format_open(dir, reasoning, &f, &err) != ERR_OK) fail_msg("%s", err.message);
    return f;
}

static const json *parse(arena *a, const char *text) {
    const json *j = NULL;
    error err = {0};
    if (text && json_parse(a, span_text(text), 128, &j, &err) != ERR_OK) fail_msg("%s: %s", text, err.message);
    return j;
}

static err_code prompt(chat_format *f, const char *messages, const char *tools, const char *kwargs, chat_prompt *out,
                       error *err) {
    arena *a = arena_create();
    err_code code = chat_format_prompt(f, parse(a, messages), parse(a, tools), parse(a, kwargs), out, err);
    arena_destroy(a);
    return code;
}

static char *decode(chat_format *f, const chat_prompt *p, size_t from, size_t to) {
    buffer b = {0};
    tokenizer_decode(chat_format_tokenizer(f), p->ids.ids + from, to - from, false, &b);
    return buffer_take(&b);
}

static void check_text(chat_format *f, const chat_prompt *p, size_t from, size_t to, const char *expected) {
    char *text = decode(f, p, from, to);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- where the template is */

static void check_render(const char *dir, const char *input, err_code expected_code, const char *expected) {
    chat_format *f = open_dir(dir, true);
    arena *a = arena_create();
    buffer out = {0};
    error err = {0};
    assert_int_equal(chat_format_render(f, parse(a, input), &out, &err), expected_code);
    if (expected_code == ERR_OK)
        assert_string_equal(out.data ? out.data : "", expected);
    else
        assert_non_null(strstr(err.message, expected));
    buffer_deinit(&out);
    arena_destroy(a);
    chat_format_close(f);
}

static void test_template_places(void **state) {
    (void)state;
    const char *plain = "{\"messages\": []}", *tools = "{\"messages\": [], \"tools\": [1]}";
    const char *named =
        ", \"chat_template\": [{\"name\": \"default\", \"template\": \"D{{ tools }}\"}, "
        "{\"name\": \"tool_use\", \"template\": \"T{{ tools }}{{ add_generation_prompt }}\"}]";
    check_render(make_dir("file", ", \"chat_template\": \"config\"", "file {{ pad_token }}\n"), plain, ERR_OK, "file ");
    check_render(make_dir("string", ", \"chat_template\": \"config {{ messages }}\"", NULL), tools, ERR_OK,
                 "config []");
    check_render(make_dir("list", named, NULL), plain, ERR_OK, "DNone");
    check_render(make_dir("list", named, NULL), tools, ERR_OK, "T[1]False");
    check_render(make_dir("none", "", NULL), plain, ERR_NOT_FOUND, "no chat template");
    error err = {0};
    chat_template *t;
    assert_int_equal(chat_template_open(test_temp("list"), true, &t, &err), ERR_OK);
    template_destroy(t);
    assert_int_equal(chat_template_open(test_temp("none"), true, &t, &err), ERR_NOT_FOUND);
    chat_format *f;
    const char *broken = make_dir("broken", "", "a\n{% if %}");
    assert_int_equal(chat_format_open(broken, true, &f, &err), ERR_FORMAT);
    assert_non_null(strstr(err.message, "chat_template.jinja:2:"));
    write_text(broken, "tokenizer_config.json", "{");
    assert_int_equal(chat_format_open(broken, true, &f, &err), ERR_FORMAT);
}

static void test_arguments_parsed(void **state) {
    (void)state;
    const char *dir = make_dir("parsed", "", "{{ messages|tojson }}");
    const char *input =
        "{\"parse_arguments\": %s, \"messages\": [{\"role\": \"a\", \"tool_calls\": [{\"function\": {\"name\": \"f\", "
        "\"arguments\": \"{\\\"x\\\": 1.50}\"}}, {\"name\": \"g\", \"arguments\": \"[2]\"}]}]}";
    char text[400];
    snprintf(text, sizeof text, input, "true");
    check_render(dir, text, ERR_OK,
                 "[{\"role\": \"a\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1.5}}}, "
                 "{\"name\": \"g\", \"arguments\": [2]}]}]");
    snprintf(text, sizeof text, input, "false");
    check_render(dir, text, ERR_OK,
                 "[{\"role\": \"a\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"x\\\": "
                 "1.50}\"}}, {\"name\": \"g\", \"arguments\": \"[2]\"}]}]");
}

/* ---- prompts */

static void test_prompt(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("turns", "", turns_template), true);
    const char *messages =
        "[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"a\\nb\"}, "
        "{\"role\": \"user\", \"content\": \"x <think> y\"}]";
    chat_prompt p;
    error err = {0};
    assert_int_equal(prompt(f, messages, NULL, NULL, &p, &err), ERR_OK);
    const char *history =
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\na\nb<|im_end|>\n"
        "<|im_start|>user\nx <think> y<|im_end|>\n";
    check_text(f, &p, 0, p.history_count, history);
    check_text(f, &p, p.history_count, p.ids.count, "<|im_start|>assistant\n<think>\n");
    assert_true(p.reasoning_open);
    assert_int_equal(p.message_end_count, 3);
    check_text(f, &p, 0, p.message_ends[0], "<|im_start|>user\nhi<|im_end|>\n");
    check_text(f, &p, p.message_ends[0], p.message_ends[1], "<|im_start|>assistant\na\nb<|im_end|>\n");
    assert_int_equal(p.message_ends[2], p.history_count);
    chat_prompt_deinit(&p);
    assert_int_equal(prompt(f, messages, "[]", "{\"enable_thinking\": false}", &p, &err), ERR_OK);
    assert_false(p.reasoning_open);
    check_text(f, &p, p.history_count, p.ids.count, "<|im_start|>assistant\n<think>\n\n</think>\n\n");
    chat_prompt_deinit(&p);
    chat_format_close(f);
    f = open_dir(test_temp("turns"), false);
    assert_int_equal(prompt(f, messages, NULL, NULL, &p, &err), ERR_OK);
    assert_false(p.reasoning_open);
    chat_prompt_deinit(&p);
    assert_int_equal(prompt(f, messages, NULL, "{\"enable_thinking\": true}", &p, &err), ERR_OK);
    assert_true(p.reasoning_open);
    chat_prompt_deinit(&p);
    chat_format_close(f);
}

static void test_many_message_ends(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("turns", "", turns_template), true);
    buffer b = {0};
    chat_prompt p;
    error err = {0};
    buffer_char(&b, '[');
    for (int i = 0; i < 21; i++)
        buffer_printf(&b, "%s{\"role\": \"%s\", \"content\": \"m%d\"}", i ? "," : "", i % 2 ? "assistant" : "user", i);
    buffer_char(&b, ']');
    assert_int_equal(prompt(f, b.data, NULL, NULL, &p, &err), ERR_OK);
    assert_int_equal(p.message_end_count, 8);
    assert_int_equal(p.message_ends[7], p.history_count);
    for (int i = 1; i < 8; i++) assert_true(p.message_ends[i] > p.message_ends[i - 1]);
    check_text(f, &p, p.message_ends[6], p.message_ends[7], "<|im_start|>user\nm20<|im_end|>\n");
    chat_prompt_deinit(&p);
    buffer_deinit(&b);
    chat_format_close(f);
}

static void test_continued(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("turns", "", turns_template), true);
    chat_prompt p;
    error err = {0};
    const char *messages =
        "[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"Once \"}]";
    assert_int_equal(prompt(f, messages, NULL, NULL, &p, &err), ERR_OK);
    check_text(f, &p, p.history_count, p.ids.count, "<|im_start|>assistant\n<think>\n");
    chat_prompt_deinit(&p);
    assert_int_equal(prompt(f, messages, NULL, "{\"continue_final_message\": true}", &p, &err), ERR_OK);
    check_text(f, &p, 0, p.ids.count, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nOnce");
    assert_int_equal(p.history_count, p.ids.count);
    assert_false(p.reasoning_open);
    chat_prompt_deinit(&p);
    const char *user_last = "[{\"role\": \"user\", \"content\": \"hi\"}]";
    assert_int_equal(prompt(f, user_last, NULL, "{\"continue_final_message\": true}", &p, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "continue_final_message"));
    chat_prompt_deinit(&p);
    chat_format_close(f);
}

static void test_keywords(void **state) {
    (void)state;
    chat_format *f = open_dir(
        make_dir("keywords", "",
                 "{{ extra }}|{{ enable_thinking }}|{{ eos_token }}|{{ bos_token is defined }}|{{ pad_token }}"),
        false);
    static const struct {
        const char *kwargs;
        const char *expected; /* text, or part of the error */
        err_code code;
    } cases[] = {
        {NULL, "|False|<|im_end|>|False|<pad>", ERR_OK},
        {"{}", "|False|<|im_end|>|False|<pad>", ERR_OK},
        {"null", "|False|<|im_end|>|False|<pad>", ERR_OK},
        {"{\"extra\": [1, \"a\"], \"enable_thinking\": true}", "[1, 'a']|True|<|im_end|>|False|<pad>", ERR_OK},
        {"{\"extra\": 1, \"extra\": 2, \"pad_token\": \"p\"}", "2|False|<|im_end|>|False|p", ERR_OK},
        {"{\"enable_thinking\": \"false\"}", "chat_template_kwargs.enable_thinking: must be true or false",
         ERR_INVALID},
        {"{\"enable_thinking\": 0}", "chat_template_kwargs.enable_thinking: must be true or false", ERR_INVALID},
        {"{\"enable_thinking\": null}", "chat_template_kwargs.enable_thinking: must be true or false", ERR_INVALID},
        {"{\"preserve_thinking\": \"yes\"}", "chat_template_kwargs.preserve_thinking", ERR_INVALID},
        {"{\"whatever\": \"False\"}", "chat_template_kwargs.whatever", ERR_INVALID},
        {"{\"messages\": []}", "chat_template_kwargs.messages: cannot be set here", ERR_INVALID},
        {"{\"add_generation_prompt\": false}", "chat_template_kwargs.add_generation_prompt", ERR_INVALID},
        {"[]", "chat_template_kwargs: must be an object", ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        chat_prompt p;
        error err = {0};
        err_code code = prompt(f, "[{\"role\": \"user\", \"content\": \"x\"}]", NULL, cases[i].kwargs, &p, &err);
        if (code != cases[i].code) fail_msg("%s: %s", cases[i].kwargs, err.message);
        if (code == ERR_OK)
            check_text(f, &p, 0, p.ids.count, cases[i].expected);
        else if (!strstr(err.message, cases[i].expected))
            fail_msg("%s: %s", cases[i].kwargs, err.message);
        chat_prompt_deinit(&p);
    }
    chat_format_close(f);
}

static void test_refusals(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("raises", "", "{{ raise_exception('not like this') }}"), true);
    chat_prompt p;
    error err = {0};
    assert_int_equal(prompt(f, "[{\"role\": \"user\", \"content\": \"x\"}]", NULL, NULL, &p, &err), ERR_INVALID);
    assert_string_equal(err.message, "not like this");
    assert_int_equal(prompt(f, "[{\"role\": \"user\", \"content\": 5}]", NULL, NULL, &p, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "messages[0]"));
    chat_format_close(f);
}

static void test_many_keywords(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("turns", "", turns_template), true);
    buffer b = {0};
    chat_prompt p;
    error err = {0};
    buffer_char(&b, '{');
    for (int i = 0; i < 65; i++) buffer_printf(&b, "%s\"k%d\": 1", i ? ", " : "", i);
    buffer_char(&b, '}');
    assert_int_equal(prompt(f, "[{\"role\": \"user\", \"content\": \"x\"}]", NULL, b.data, &p, &err), ERR_INVALID);
    assert_string_equal(err.message, "chat_template_kwargs: 65 members, more than 64");
    buffer_deinit(&b);
    chat_format_close(f);
}

/* ---- memos */

static void cold_ids(chat_format *f, const char *text, size_t size, token_list *out) {
    error err = {0};
    if (tokenizer_encode(chat_format_tokenizer(f), span_make(text, size), true, out, &err) != ERR_OK)
        fail_msg("%s", err.message);
}

/* More conversations than memos, growing in turns and cut back now and then: always the cold ids. */
static void test_interleaved(void **state) {
    (void)state;
    chat_format *f = open_dir(make_dir("turns", "", turns_template), true);
    for (int step = 0; step < 120; step++) {
        int conversation = step * 7 % 11, length = 1 + (step * 5 % 13) / 2 * 2;
        buffer b = {0}, text = {0};
        chat_prompt p;
        error err = {0};
        buffer_char(&b, '[');
        for (int i = 0; i < length; i++) {
            const char *role = i % 2 ? "assistant" : "user";
            buffer_printf(&b, "%s{\"role\": \"%s\", \"content\": \"c%d m%d\"}", i ? "," : "", role,
                          i ? conversation : 0, i);
            buffer_printf(&text, "<|im_start|>%s\nc%d m%d<|im_end|>\n", role, i ? conversation : 0, i);
        }
        buffer_char(&b, ']');
        buffer_text(&text, "<|im_start|>assistant\n<think>\n");
        if (prompt(f, b.data, NULL, NULL, &p, &err) != ERR_OK) fail_msg("%s", err.message);
        token_list cold = {0};
        cold_ids(f, text.data, text.size, &cold);
        assert_int_equal(p.ids.count, cold.count);
        assert_memory_equal(p.ids.ids, cold.ids, cold.count * sizeof *cold.ids);
        token_list_deinit(&cold);
        chat_prompt_deinit(&p);
        buffer_deinit(&b);
        buffer_deinit(&text);
    }
    chat_format_close(f);
}

/* ---- the recorded conversation with the official template and tokenizer */

static chat_format *open_qwen(void) {
    const char *files = qwen_tokenizer_dir(), *template = test_shared("qwen/qwen36_chat_template.jinja");
    if (!files || !template) {
        print_message("skip: the reference tokenizer is not here (HEARTH_SHARED or ../shared)\n");
        skip();
    }
    const char *dir = test_temp("qwen");
    char from[2048], to[2048];
    mkdir(dir, 0777);
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", files, names[i]);
        snprintf(to, sizeof to, "%s/%s", dir, names[i]);
        char *real = realpath(from, NULL);
        if (symlink(real ? real : from, to) != 0) fail_msg("cannot link %s", to);
        free(real);
    }
    buffer source = {0};
    error err = {0};
    if (file_read(template, 1 << 20, &source, &err) != ERR_OK) fail_msg("%s", err.message);
    write_text(dir, "chat_template.jinja", source.data);
    buffer_deinit(&source);
    return open_dir(dir, false);
}

/* What a request means without any of chat.c's shortcuts. */
static void cold_text(chat_format *f, const json *messages, const json *tools, bool generation, buffer *out) {
    arena *a = arena_create();
    const json *normal;
    error err = {0};
    assert_int_equal(messages_normalize(a, messages, &normal, &err), ERR_OK);
    json *input = json_new(a, JSON_OBJECT);
    json_set(input, span_text("messages"), chat_input_share(a, normal));
    if (tools) json_set(input, span_text("tools"), chat_input_share(a, tools));
    json_set(input, span_text("enable_thinking"), json_new(a, JSON_FALSE));
    json_set(input, span_text("add_generation_prompt"), json_new(a, generation ? JSON_TRUE : JSON_FALSE));
    if (chat_format_render(f, input, out, &err) != ERR_OK) fail_msg("%s", err.message);
    arena_destroy(a);
}

static void test_recorded_turns(void **state) {
    (void)state;
    const char *path = test_need_shared("mlperf/agentic_coding_2.5h.jsonl");
    chat_format *f = open_qwen();
    trace t;
    error err = {0};
    if (trace_open(&t, path, &err) != ERR_OK) fail_msg("%s", err.message);
    size_t sum = 0;
    arena *a = arena_create();
    for (int turn = 0; turn < trace_turns(&t); turn++) {
        arena_reset(a);
        json *messages = trace_messages(a, &t, turn);
        const json *tools = json_get(t.rows[0], "tools");
        chat_prompt p;
        buffer text = {0}, history = {0};
        token_list cold = {0}, cold_history = {0};
        if (chat_format_prompt(f, messages, tools, NULL, &p, &err) != ERR_OK) fail_msg("%s", err.message);
        cold_text(f, messages, tools, true, &text);
        cold_text(f, messages, tools, false, &history);
        cold_ids(f, text.data, text.size, &cold);
        cold_ids(f, history.data, history.size, &cold_history);
        assert_int_equal(p.ids.count, cold.count);
        assert_memory_equal(p.ids.ids, cold.ids, cold.count * sizeof *cold.ids);
        assert_int_equal(p.history_count, cold_history.count);
        check_text(f, &p, p.history_count, p.ids.count, "<|im_start|>assistant\n<think>\n\n</think>\n\n");
        assert_false(p.reasoning_open);
        assert_true(p.message_end_count >= 2);
        assert_int_equal(p.message_ends[p.message_end_count - 1], p.history_count);
        sum += p.ids.count;
        token_list_deinit(&cold);
        token_list_deinit(&cold_history);
        buffer_deinit(&text);
        buffer_deinit(&history);
        chat_prompt_deinit(&p);
    }
    arena_destroy(a);
    print_message("%d turns, %zu prompt tokens\n", trace_turns(&t), sum);
    assert_int_equal(trace_turns(&t), 58);
    assert_int_equal(sum, 799264); /* the official client's count for this conversation */
    trace_close(&t);
    chat_format_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_places), cmocka_unit_test(test_arguments_parsed),
        cmocka_unit_test(test_prompt),          cmocka_unit_test(test_many_message_ends),
        cmocka_unit_test(test_continued),       cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_many_keywords),
        cmocka_unit_test(test_interleaved),     cmocka_unit_test(test_recorded_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
