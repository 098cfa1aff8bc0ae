/* Message model: every form of docs/messages.md, accepted with its meaning or refused with its place. */
#include "text/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- tables: request -> normalised JSON, or an error that starts as given */

typedef struct form {
    const char *name, *messages, *expected, *error;
} form;

static const json *parse(arena *a, const char *text) {
    const json *value;
    error err;
    if (json_parse(a, span_text(text), JSON_DEPTH_DEFAULT, &value, &err)) fail_msg("%s: %s", text, err.message);
    return value;
}

typedef err_code normalize(arena *a, const json *value, const json **out, error *err);

static void check_form(const form *f, normalize *run) {
    arena *a = arena_create();
    const json *out = NULL;
    error err = {.message = ""};
    err_code code = run(a, parse(a, f->messages), &out, &err);
    if (f->error) {
        if (code != ERR_INVALID || strcmp(err.message, f->error) != 0)
            fail_msg("%s: got %d \"%s\", expected \"%s\"", f->name, code, err.message, f->error);
    } else {
        if (code != ERR_OK) fail_msg("%s: refused: %s", f->name, err.message);
        buffer text = {0};
        json_write(&text, out, JSON_COMPACT);
        if (strcmp(text.data, f->expected) != 0)
            fail_msg("%s:\n  got      %s\n  expected %s", f->name, text.data, f->expected);
        buffer_deinit(&text);
    }
    arena_destroy(a);
}

#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define CALL_OF(arguments)                                                                                      \
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\"," \
    "\"arguments\":" arguments "}}]}"
#define CALLED(arguments)                                                                                          \
    "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{" \
    "\"name\":\"f\",\"arguments\":" arguments "}}]}]"
#define CALLS_AB "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[" CALL_ID("a") "," CALL_ID("b") "]}"
#define CALL_ID(id) "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}"
#define RESULT(id, text) "{\"role\":\"tool\",\"content\":\"" text "\",\"tool_call_id\":\"" id "\"}"
#define RESULT_NO_ID(text) "{\"role\":\"tool\",\"content\":\"" text "\"}"

static const form content_forms[] = {
    {"string", "[" USER "]", "[" USER "]", NULL},
    {"null user", "[{\"role\":\"user\",\"content\":null}]", "[{\"role\":\"user\",\"content\":\"\"}]", NULL},
    {"missing user", "[{\"role\":\"user\"}]", "[{\"role\":\"user\",\"content\":\"\"}]", NULL},
    {"empty user", "[{\"role\":\"user\",\"content\":\"\"}]", "[{\"role\":\"user\",\"content\":\"\"}]", NULL},
    {"null system", "[{\"role\":\"system\",\"content\":null}]", "[{\"role\":\"system\",\"content\":\"\"}]", NULL},
    {"null assistant", "[{\"role\":\"assistant\",\"content\":null}]", "[{\"role\":\"assistant\",\"content\":\"\"}]",
     NULL},
    {"missing assistant", "[{\"role\":\"assistant\"}]", "[{\"role\":\"assistant\",\"content\":\"\"}]", NULL},
    {"null tool", "[" USER ",{\"role\":\"tool\",\"content\":null}]", "[" USER ",{\"role\":\"tool\",\"content\":\"\"}]",
     NULL},
    {"parts",
     "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"input_text\",\"text\":\"b\"},"
     "{\"type\":\"output_text\",\"text\":\"c\"},\"d\",{\"text\":\"e\"}]}]",
     "[{\"role\":\"user\",\"content\":\"abcde\"}]", NULL},
    {"one part with cache_control",
     "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{\"type\":\"ephemeral\"}}]}"
     "]",
     "[{\"role\":\"user\",\"content\":\"a\"}]", NULL},
    {"no parts", "[{\"role\":\"user\",\"content\":[]}]", "[{\"role\":\"user\",\"content\":\"\"}]", NULL},
    {"parts of a system message", "[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]",
     "[{\"role\":\"system\",\"content\":\"a\"}]", NULL},
    {"parts of a tool message",
     "[" USER
     ",{\"role\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]",
     "[" USER ",{\"role\":\"tool\",\"content\":\"ab\"}]", NULL},
    {"refusal part", "[{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]}]",
     "[{\"role\":\"assistant\",\"content\":\"no\"}]", NULL},
    {"refusal field", "[{\"role\":\"assistant\",\"content\":null,\"refusal\":\"no\"}]",
     "[{\"role\":\"assistant\",\"content\":\"no\"}]", NULL},
    {"text and refusal", "[{\"role\":\"assistant\",\"content\":\"a\",\"refusal\":\"no\"}]",
     "[{\"role\":\"assistant\",\"content\":\"ano\"}]", NULL},
    {"refusal number", "[{\"role\":\"assistant\",\"refusal\":1}]", NULL,
     "messages[0].refusal: expected a string, got a number"},
    {"thinking part",
     "[{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"text\",\"text\":"
     "\"a\"}]}]",
     "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}]", NULL},
    {"image",
     "[" USER "," USER ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]",
     NULL, "messages[2].content[1]: image_url parts are not supported"},
    {"audio", "[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]", NULL,
     "messages[0].content[0]: input_audio parts are not supported"},
    {"text with an image", "[{\"role\":\"user\",\"content\":[{\"text\":\"a\",\"image\":\"x\"}]}]", NULL,
     "messages[0].content[0].image: only text is supported"},
    {"thinking of a user", "[{\"role\":\"user\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"}]}]", NULL,
     "messages[0].content[0]: thinking parts are not supported"},
    {"number", "[" USER ",{\"role\":\"user\",\"content\":5}]", NULL,
     "messages[1].content: expected a string, null or a list of text parts, got a number"},
    {"object", "[" USER ",{\"role\":\"tool\",\"content\":{\"a\":1}}]", NULL,
     "messages[1].content: expected a string, null or a list of text parts, got an object"},
    {"part number", "[{\"role\":\"user\",\"content\":[1]}]", NULL,
     "messages[0].content[0]: expected an object, got a number"},
    {"part without text", "[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", NULL,
     "messages[0].content[0].text: expected a string, got nothing"},
    {"part type number", "[{\"role\":\"user\",\"content\":[{\"type\":1,\"text\":\"a\"}]}]", NULL,
     "messages[0].content[0].type: expected a string, got a number"},
    {"content under another name", "[{\"role\":\"user\",\"text\":\"hi\"}]", NULL,
     "messages[0]: no content, and the field \"text\" is not known"},
};

static const form role_forms[] = {
    {"developer is system", "[{\"role\":\"developer\",\"content\":\"a\"}," USER "]",
     "[{\"role\":\"system\",\"content\":\"a\"}," USER "]", NULL},
    {"leading system messages are one",
     "[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"developer\",\"content\":\"\"},"
     "{\"role\":\"system\",\"content\":\"b\"},{\"role\":\"system\",\"content\":\"c\"}," USER "]",
     "[{\"role\":\"system\",\"content\":\"a\\n\\nb\\n\\nc\"}," USER "]", NULL},
    {"empty first system message", "[{\"role\":\"system\",\"content\":\"\"},{\"role\":\"system\",\"content\":\"b\"}]",
     "[{\"role\":\"system\",\"content\":\"b\"}]", NULL},
    {"later system message", "[" USER ",{\"role\":\"system\",\"content\":\"now this\"}," USER "]",
     "[" USER ",{\"role\":\"user\",\"content\":\"<system>\\nnow this\\n</system>\"}," USER "]", NULL},
    {"system message after a system message and a user",
     "[{\"role\":\"system\",\"content\":\"a\"}," USER ",{\"role\":\"developer\",\"content\":\"b\"}]",
     "[{\"role\":\"system\",\"content\":\"a\"}," USER ",{\"role\":\"user\",\"content\":\"<system>\\nb\\n</system>\"}]",
     NULL},
    {"no user", "[{\"role\":\"system\",\"content\":\"a\"}]", "[{\"role\":\"system\",\"content\":\"a\"}]", NULL},
    {"two users", "[" USER "," USER "]", "[" USER "," USER "]", NULL},
    {"trailing assistant", "[" USER ",{\"role\":\"assistant\",\"content\":\"I\"}]",
     "[" USER ",{\"role\":\"assistant\",\"content\":\"I\"}]", NULL},
    {"trailing assistant to be continued", "[" USER ",{\"role\":\"assistant\",\"content\":\"I\",\"prefix\":true}]",
     NULL, "messages[1].prefix: continuing a message is not supported"},
    {"name and unknown fields pass",
     "[{\"role\":\"user\",\"name\":\"bob\",\"content\":\"hi\",\"x\":{\"a\":1},\"y\":null}]",
     "[{\"role\":\"user\",\"content\":\"hi\",\"name\":\"bob\",\"x\":{\"a\":1}}]", NULL},
    {"usual assistant fields",
     "[{\"role\":\"assistant\",\"content\":\"a\",\"refusal\":null,\"annotations\":[],\"audio\":null,"
     "\"function_call\":null,\"tool_calls\":null,\"reasoning_content\":null}]",
     "[{\"role\":\"assistant\",\"content\":\"a\",\"annotations\":[]}]", NULL},
    {"repeated field", "[{\"role\":\"user\",\"x\":1,\"content\":\"a\",\"content\":\"b\",\"x\":2}]",
     "[{\"role\":\"user\",\"content\":\"b\",\"x\":2}]", NULL},
    {"audio answer", "[{\"role\":\"assistant\",\"content\":\"a\",\"audio\":{\"id\":\"x\"}}]", NULL,
     "messages[0].audio: only text is supported"},
    {"images field", "[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"x\"]}]", NULL,
     "messages[0].images: only text is supported"},
    {"unknown role", "[" USER ",{\"role\":\"human\",\"content\":\"a\"}]", NULL,
     "messages[1].role: expected system, developer, user, assistant, tool or function, got human"},
    {"no role", "[{\"content\":\"a\"}]", NULL,
     "messages[0].role: expected system, developer, user, assistant, tool or function, got nothing"},
    {"role number", "[{\"role\":1}]", NULL,
     "messages[0].role: expected system, developer, user, assistant, tool or function, got a number"},
    {"message string", "[\"hi\"]", NULL, "messages[0]: expected an object, got a string"},
    {"messages object", "{}", NULL, "messages: expected a non-empty array, got an object"},
    {"messages null", "null", NULL, "messages: expected a non-empty array, got null"},
    {"no messages", "[]", NULL, "messages: expected a non-empty array, got an empty one"},
    {"calls of a user", "[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[1]}]", NULL,
     "messages[0].tool_calls: only assistant messages may have it"},
    {"reasoning of a user", "[{\"role\":\"user\",\"content\":\"a\",\"reasoning\":\"x\"}]", NULL,
     "messages[0].reasoning: only assistant messages may have it"},
    {"empty fields of a user", "[{\"role\":\"user\",\"content\":\"a\",\"reasoning\":\"\",\"tool_calls\":[]}]",
     "[{\"role\":\"user\",\"content\":\"a\"}]", NULL},
};

#define THOUGHT "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}]"

static const form reasoning_forms[] = {
    {"reasoning_content", "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}]", THOUGHT, NULL},
    {"reasoning", "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"t\"}]", THOUGHT, NULL},
    {"thinking", "[{\"role\":\"assistant\",\"content\":\"a\",\"thinking\":\"t\"}]", THOUGHT, NULL},
    {"two equal", "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"t\",\"reasoning_content\":\"t\"}]",
     THOUGHT, NULL},
    {"one empty", "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"t\",\"reasoning_content\":\"\"}]",
     THOUGHT, NULL},
    {"empty is absent", "[{\"role\":\"assistant\",\"content\":\"<think>t</think>a\",\"reasoning_content\":\"\"}]",
     "[{\"role\":\"assistant\",\"content\":\"<think>t</think>a\"}]", NULL},
    {"inline stays", "[{\"role\":\"assistant\",\"content\":\"<think>\\nt\\n</think>\\n\\na\"}]",
     "[{\"role\":\"assistant\",\"content\":\"<think>\\nt\\n</think>\\n\\na\"}]", NULL},
    {"only reasoning", "[{\"role\":\"assistant\",\"reasoning\":\"t\"}]",
     "[{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"t\"}]", NULL},
    {"two that differ", "[" USER ",{\"role\":\"assistant\",\"reasoning\":\"t\",\"reasoning_content\":\"u\"}]", NULL,
     "messages[1].reasoning: differs from the reasoning in reasoning_content"},
    {"object", "[{\"role\":\"assistant\",\"reasoning\":{\"summary\":[]}}]", NULL,
     "messages[0].reasoning: expected a string, got an object"},
};

static const form call_forms[] = {
    {"object", "[" CALL_OF("{\"a\":1}") "]", CALLED("{\"a\":1}"), NULL},
    {"string", "[" CALL_OF("\"{\\\"a\\\":1}\"") "]", CALLED("{\"a\":1}"), NULL},
    {"spelling and order are kept", "[" CALL_OF("\"{\\\"b\\\":1.50,\\\"a\\\":[12345678901234567890,1e5]}\"") "]",
     CALLED("{\"b\":1.50,\"a\":[12345678901234567890,1e5]}"), NULL},
    {"repeated key", "[" CALL_OF("\"{\\\"a\\\":1,\\\"b\\\":2,\\\"a\\\":3}\"") "]", CALLED("{\"a\":3,\"b\":2}"), NULL},
    {"empty string", "[" CALL_OF("\"\"") "]", CALLED("{}"), NULL},
    {"blank string", "[" CALL_OF("\" \\n\"") "]", CALLED("{}"), NULL},
    {"null", "[" CALL_OF("null") "]", CALLED("{}"), NULL},
    {"null string", "[" CALL_OF("\"null\"") "]", CALLED("{}"), NULL},
    {"no arguments",
     "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":"
     "{\"name\":\"f\"}}]}]",
     CALLED("{}"), NULL},
    {"broken", "[" CALL_OF("\"{\\\"a\\\": \"") "]", CALLED("{\"arguments\":\"{\\\"a\\\": \"}"), NULL},
    {"text", "[" CALL_OF("\"ls -l\"") "]", CALLED("{\"arguments\":\"ls -l\"}"), NULL},
    {"array in a string", "[" CALL_OF("\"[1]\"") "]", CALLED("{\"arguments\":\"[1]\"}"), NULL},
    {"array", "[" CALL_OF("[1]") "]", CALLED("{\"arguments\":[1]}"), NULL},
    {"number", "[" CALL_OF("5") "]", CALLED("{\"arguments\":5}"), NULL},
    {"no id, no type, no envelope",
     "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"name\":\"f\","
     "\"arguments\":{}}]}]",
     "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"id\":\"call_0_0\",\"type\":\"function\","
     "\"function\":"
     "{\"name\":\"f\",\"arguments\":{}}}]}]",
     NULL},
    {"function_call",
     "[{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
     "{\"role\":\"function\",\"name\":\"f\",\"content\":\"r\"}]",
     "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_0_0\",\"type\":\"function\","
     "\"function\":"
     "{\"name\":\"f\",\"arguments\":{}}}]},"
     "{\"role\":\"tool\",\"content\":\"r\",\"name\":\"f\",\"tool_call_id\":\"call_0_0\"}]",
     NULL},
    {"no calls", "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[]}]",
     "[{\"role\":\"assistant\",\"content\":\"x\"}]", NULL},
    {"calls object", "[{\"role\":\"assistant\",\"tool_calls\":{}}]", NULL,
     "messages[0].tool_calls: expected an array, got an object"},
    {"call string", "[" USER ",{\"role\":\"assistant\",\"tool_calls\":[\"f\"]}]", NULL,
     "messages[1].tool_calls[0]: expected an object, got a string"},
    {"custom call", "[{\"role\":\"assistant\",\"tool_calls\":[" CALL_ID("a") ",{\"type\":\"custom\"}]}]", NULL,
     "messages[0].tool_calls[1].type: only \"function\" calls are supported"},
    {"no name", "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":{}}}]}]", NULL,
     "messages[0].tool_calls[0]: expected a function name, got nothing"},
    {"empty name", "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"\"}}]}]", NULL,
     "messages[0].tool_calls[0]: expected a function name, got an empty string"},
    {"id number", "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":1,\"function\":{\"name\":\"f\"}}]}]", NULL,
     "messages[0].tool_calls[0].id: expected a string, got a number"},
    {"both forms", "[{\"role\":\"assistant\",\"tool_calls\":[" CALL_ID("a") "],\"function_call\":{\"name\":\"f\"}}]",
     NULL, "messages[0]: tool_calls and function_call exclude each other"},
};

static const form result_forms[] = {
    {"in order", "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "2") "]",
     "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "2") "]", NULL},
    {"out of order", "[" CALLS_AB "," RESULT("b", "2") "," RESULT("a", "1") "," USER "]",
     "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "2") "," USER "]", NULL},
    {"without ids", "[" CALLS_AB "," RESULT_NO_ID("1") "," RESULT_NO_ID("2") "]",
     "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "2") "]", NULL},
    {"one id missing", "[" CALLS_AB "," RESULT_NO_ID("2") "," RESULT("a", "1") "]",
     "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "2") "]", NULL},
    {"one result missing", "[" CALLS_AB "," RESULT("b", "2") "]", "[" CALLS_AB "," RESULT("b", "2") "]", NULL},
    {"unknown id keeps the order", "[" CALLS_AB "," RESULT("x", "2") "," RESULT("a", "1") "]",
     "[" CALLS_AB "," RESULT("x", "2") "," RESULT("a", "1") "]", NULL},
    {"three in a row for two calls", "[" CALLS_AB "," RESULT("b", "2") "," RESULT("a", "1") "," RESULT_NO_ID("3") "]",
     "[" CALLS_AB "," RESULT("b", "2") "," RESULT("a", "1") "," RESULT_NO_ID("3") "]", NULL},
    {"result before its call", "[" USER "," RESULT("a", "1") "," CALLS_AB "]",
     "[" USER "," RESULT("a", "1") "," CALLS_AB "]", NULL},
    {"equal ids",
     "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[" CALL_ID("a") "," CALL_ID("a") "]}," RESULT(
         "a", "1") "," RESULT("a", "2") "]",
     "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[" CALL_ID("a") "," CALL_ID("a") "]}," RESULT(
         "a", "1") "," RESULT("a", "2") "]",
     NULL},
    {"first", "[" RESULT("a", "1") "," USER "]", NULL, "messages[0]: a tool result cannot open a conversation"},
    {"id number", "[" CALLS_AB ",{\"role\":\"tool\",\"content\":\"\",\"tool_call_id\":1}]", NULL,
     "messages[1].tool_call_id: expected a string, got a number"},
    {"fault in a run", "[" CALLS_AB "," RESULT("a", "1") ",{\"role\":\"tool\",\"content\":1}," USER "]", NULL,
     "messages[2].content: expected a string, null or a list of text parts, got a number"},
    {"fault after a run", "[" CALLS_AB "," RESULT("a", "1") "," RESULT("b", "1") ",{\"role\":\"user\",\"content\":1}]",
     NULL, "messages[3].content: expected a string, null or a list of text parts, got a number"},
};

static const form tool_forms[] = {
    {"tool", "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"z\":1,\"a\":1.50}}}]",
     "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"z\":1,\"a\":1.50}}}]", NULL},
    {"name only", "[{\"function\":{\"name\":\"a.b-c_d e\",\"parameters\":null}}]",
     "[{\"function\":{\"name\":\"a.b-c_d e\",\"parameters\":null}}]", NULL},
    {"object", "{}", NULL, "tools: expected an array, got an object"},
    {"string", "[\"f\"]", NULL, "tools[0]: expected an object, got a string"},
    {"flat", "[{\"type\":\"function\",\"name\":\"f\"}]", NULL, "tools[0].function: expected an object, got nothing"},
    {"type", "[{\"function\":{\"name\":\"f\"}},{\"type\":\"web_search\"}]", NULL,
     "tools[1].type: only \"function\" tools are supported"},
    {"no name", "[{\"function\":{}}]", NULL, "tools[0].function.name: expected a string, got nothing"},
    {"bad name", "[{\"function\":{\"name\":\"a>b\"}}]", NULL,
     "tools[0].function.name: expected 1 to 256 bytes on one line, without < and > or spaces at the ends"},
    {"empty name", "[{\"function\":{\"name\":\"\"}}]", NULL,
     "tools[0].function.name: expected 1 to 256 bytes on one line, without < and > or spaces at the ends"},
    {"parameters", "[{\"function\":{\"name\":\"f\",\"parameters\":[]}}]", NULL,
     "tools[0].function.parameters: expected an object, got an array"},
};

#define CHECK_FORMS(forms, run) \
    for (size_t i = 0; i < sizeof(forms) / sizeof *(forms); i++) check_form(&(forms)[i], run)

static void test_content(void **state) {
    (void)state;
    CHECK_FORMS(content_forms, messages_normalize);
}

static void test_roles(void **state) {
    (void)state;
    CHECK_FORMS(role_forms, messages_normalize);
}

static void test_reasoning(void **state) {
    (void)state;
    CHECK_FORMS(reasoning_forms, messages_normalize);
}

static void test_calls(void **state) {
    (void)state;
    CHECK_FORMS(call_forms, messages_normalize);
}

static void test_results(void **state) {
    (void)state;
    CHECK_FORMS(result_forms, messages_normalize);
}

static void test_tools(void **state) {
    (void)state;
    CHECK_FORMS(tool_forms, tools_normalize);
    arena *a = arena_create();
    const json *out = parse(a, "[1]");
    assert_int_equal(tools_normalize(a, NULL, &out, NULL), ERR_OK);
    assert_null(out);
    out = parse(a, "[1]");
    assert_int_equal(tools_normalize(a, parse(a, "null"), &out, NULL), ERR_OK);
    assert_null(out);
    out = parse(a, "[1]");
    assert_int_equal(tools_normalize(a, parse(a, "[]"), &out, NULL), ERR_OK);
    assert_null(out);
    arena_destroy(a);
}

/* ---- limits */

static err_code normalize_repeated(const char *before, const char *unit, int count, const char *after, error *err,
                                   size_t *used) {
    buffer text = {0};
    buffer_text(&text, before);
    for (int i = 0; i < count; i++) buffer_printf(&text, "%s%s", i ? "," : "", unit);
    buffer_text(&text, after);
    arena *a = arena_create();
    const json *value = parse(a, text.data), *out;
    size_t start = arena_used(a);
    err_code code = messages_normalize(a, value, &out, err);
    *used = arena_used(a) - start;
    arena_destroy(a);
    buffer_deinit(&text);
    return code;
}

static void test_limits(void **state) {
    (void)state;
    error err;
    size_t used;
    assert_int_equal(normalize_repeated("[", USER, 10000, "]", &err, &used), ERR_OK);
    assert_int_equal(normalize_repeated("[", USER, 10001, "]", &err, &used), ERR_INVALID);
    assert_string_equal(err.message, "messages: 10001 messages, the limit is 10000");
    assert_int_equal(normalize_repeated("[{\"role\":\"user\",", "\"x\":1", 64, "}]", &err, &used), ERR_INVALID);
    assert_string_equal(err.message, "messages[0]: 65 fields, the limit is 64");
    assert_int_equal(
        normalize_repeated("[{\"role\":\"assistant\",\"tool_calls\":[", CALL_ID("a"), 1025, "]}]", &err, &used),
        ERR_INVALID);
    assert_string_equal(err.message, "messages[0].tool_calls: 1025 calls, the limit is 1024");
}

/* Inputs that would take minutes or gigabytes if anything were quadratic. */
static void test_no_quadratic_work(void **state) {
    (void)state;
    error err;
    size_t used;
    char system[2000];
    snprintf(system, sizeof system, "{\"role\":\"system\",\"content\":\"%1900s\"}", "x");
    assert_int_equal(normalize_repeated("[", system, 9999, "]", &err, &used), ERR_OK);
    assert_true(used < 100 << 20);
    assert_int_equal(normalize_repeated("[{\"role\":\"user\",\"content\":[", "{\"type\":\"text\",\"text\":\"abc\"}",
                                        200000, "]}]", &err, &used),
                     ERR_OK);
    assert_true(used < 100 << 20);
    assert_int_equal(
        normalize_repeated("[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{",
                           "\"k\":1", 300000, "}}}]}]", &err, &used),
        ERR_OK);
    assert_int_equal(normalize_repeated("[" CALLS_AB ",", RESULT_NO_ID("x"), 9000, "]", &err, &used), ERR_OK);
}

/* The same prompt whether arguments came as an object or as text: the trees are equal, nested spelling included. */
static void test_object_and_string_arguments_agree(void **state) {
    (void)state;
    check_form(&(form){"object", "[" CALL_OF("{\"a\": {\"x\": [1.0, null, \"\\u00e9\"]}}") "]",
                       CALLED("{\"a\":{\"x\":[1.0,null,\"\xc3\xa9\"]}}"), NULL},
               messages_normalize);
    check_form(&(form){"string", "[" CALL_OF("\"{\\\"a\\\": {\\\"x\\\": [1.0, null, \\\"\\\\u00e9\\\"]}}\"") "]",
                       CALLED("{\"a\":{\"x\":[1.0,null,\"\xc3\xa9\"]}}"), NULL},
               messages_normalize);
}

/* ---- the recorded histories keep everything they hold */

static void test_recorded_messages_pass(void **state) {
    (void)state;
    const char *path = test_need_shared("oracle/template_cases.jsonl");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int accepted = 0, total = 0;
    while ((length = getline(&line, &capacity, file)) > 0) {
        arena *a = arena_create();
        const json *row, *out;
        error err;
        assert_int_equal(json_parse(a, span_make(line, (size_t)length - 1), JSON_DEPTH_DEFAULT, &row, &err), ERR_OK);
        const json *messages = json_get(json_get(row, "input"), "messages");
        err_code code = messages_normalize(a, messages, &out, &err);
        total++;
        accepted += code == ERR_OK;
        if (code == ERR_OK) {
            assert_true(out->count > 0 && out->count <= messages->count);
            for (const json *m = out->first; m; m = m->next) assert_true(json_is(json_get(m, "content"), JSON_STRING));
        } else {
            assert_int_equal(code, ERR_INVALID);
            assert_true(strncmp(err.message, "messages", 8) == 0);
        }
        arena_destroy(a);
    }
    free(line);
    fclose(file);
    print_message("%d of %d histories accepted\n", accepted, total);
    assert_true(total > 0 && accepted > total / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_reasoning),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_quadratic_work),
        cmocka_unit_test(test_object_and_string_arguments_agree),
        cmocka_unit_test(test_recorded_messages_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
