/* JSON: what is accepted and refused and where, lossless reading, lookups, building, both writers, numbers. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "support.h"

static span literal(const char *text) { return span_text(text); }
#define BYTES(text) span_make(text, sizeof(text) - 1)
#define TEXT(text) \
    { text, sizeof(text) - 1 } /* the same where a constant is needed */

static const json *parse(arena *a, span text) {
    const json *value = NULL;
    error err = {0};
    if (json_parse(a, text, JSON_DEPTH_DEFAULT, &value, &err) != ERR_OK)
        fail_msg("'%.*s': %s", (int)text.size, text.data, err.message);
    return value;
}

/* Accepted documents, each with its compact form; NULL: it is its own compact form. */
static const struct {
    span text;
    const char *compact;
} accepted[] = {
    {TEXT("null"), NULL},
    {TEXT("true"), NULL},
    {TEXT("false"), NULL},
    {TEXT(" \t\r\n1 \t\r\n"), "1"},
    {TEXT("0"), NULL},
    {TEXT("-0"), NULL},
    {TEXT("-1"), NULL},
    {TEXT("10"), NULL},
    {TEXT("0.0"), NULL},
    {TEXT("-0.0e-0"), NULL},
    {TEXT("1e5"), NULL},
    {TEXT("1E+05"), NULL},
    {TEXT("1.50E-007"), NULL},
    {TEXT("1e400"), NULL},
    {TEXT("123456789012345678901234567890"), NULL},
    {TEXT("0.1000000000000000055511151231257827021181583404541015625"), NULL},
    {TEXT("\"\""), NULL},
    {TEXT("\"a\""), NULL},
    {TEXT("\"\\u0041\""), "\"A\""},
    {TEXT("\"\\u00e9\\u00E9\""), "\"\xC3\xA9\xC3\xA9\""},
    {TEXT("\"\\uFFFF\""), "\"\xEF\xBF\xBF\""},
    {TEXT("\"\\ud83d\\ude00\""), "\"\xF0\x9F\x98\x80\""},
    {TEXT("\"\\uDBFF\\uDFFF\""), "\"\xF4\x8F\xBF\xBF\""},
    {TEXT("\"\\ud800\\udc00\""), "\"\xF0\x90\x80\x80\""},
    {TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
    {TEXT("\"\\u0000\""), NULL},
    {TEXT("\"\\u001F\\u007f\""), "\"\\u001f\x7F\""},
    {TEXT("\"\x7F\""), NULL},
    {TEXT("\"\xC2\x80\xDF\xBF\""), NULL},
    {TEXT("\"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\""), NULL},
    {TEXT("\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""), NULL},
    {TEXT("\"\xEF\xBB\xBF\""), NULL},
    {TEXT("\"\xE2\x80\xA8\xE2\x80\xA9\""), NULL},
    {TEXT("\"a string longer than one word \\\" with a quote \\\\\""), NULL},
    {TEXT("\"\\\\u0041\""), NULL},
    {TEXT("\"// no comment /* */\""), NULL},
    {TEXT("[]"), NULL},
    {TEXT("[ ]"), "[]"},
    {TEXT("{}"), NULL},
    {TEXT("{ }"), "{}"},
    {TEXT("[[]]"), NULL},
    {TEXT("[[],[]]"), NULL},
    {TEXT("[{}]"), NULL},
    {TEXT("[1]"), NULL},
    {TEXT("[1,2]"), NULL},
    {TEXT("[ 1 , 2 ]"), "[1,2]"},
    {TEXT("[1\n,\n2]"), "[1,2]"},
    {TEXT("[null,true,false,0,\"\",[],{}]"), NULL},
    {TEXT("{\"a\":1}"), NULL},
    {TEXT("{ \"a\" : 1 , \"b\" : 2 }"), "{\"a\":1,\"b\":2}"},
    {TEXT("{\"a\":{\"b\":{\"c\":[]}}}"), NULL},
    {TEXT("{\"\":0}"), NULL},
    {TEXT("{\"b\":1,\"a\":2,\"b\":3}"), NULL},
    {TEXT("{\"\\u0061\":1}"), "{\"a\":1}"},
    {TEXT("{\"a\\u0000b\":1}"), NULL},
    {TEXT("{\"a\":[1,{\"b\":[2]},3],\"c\":4}"), NULL},
    {TEXT("[[[[[[[[[[1]]]]]]]]]]"), NULL},
};

static void test_accepted(void **state) {
    (void)state;
    arena *a = arena_create();
    buffer out = {0};
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        buffer_clear(&out);
        json_write(&out, parse(a, accepted[i].text), JSON_COMPACT);
        if (accepted[i].compact)
            assert_string_equal(out.data, accepted[i].compact);
        else
            assert_true(span_equal(span_make(out.data, out.size), accepted[i].text));
    }
    buffer_deinit(&out);
    arena_destroy(a);
}

/* Refused documents with the message. */
static const struct {
    span text;
    const char *message;
} refused[] = {
    /* nothing, or not a value */
    {TEXT(""), "byte 0: text ends, expected a value"},
    {TEXT("  "), "byte 2: text ends, expected a value"},
    {TEXT("\xEF\xBB\xBF{}"), "byte 0: expected a value"},
    {TEXT("\0"), "byte 0: expected a value"},
    {TEXT("x"), "byte 0: expected a value"},
    {TEXT("nul"), "byte 0: expected a value"},
    {TEXT("nulL"), "byte 0: expected a value"},
    {TEXT("True"), "byte 0: expected a value"},
    {TEXT("NaN"), "byte 0: expected a value"},
    {TEXT("Infinity"), "byte 0: expected a value"},
    {TEXT("-Infinity"), "byte 1: expected a digit"},
    {TEXT("undefined"), "byte 0: expected a value"},
    {TEXT("'a'"), "byte 0: expected a value"},
    {TEXT("// c\n1"), "byte 0: expected a value"},
    {TEXT("/**/1"), "byte 0: expected a value"},
    {TEXT("\v1"), "byte 0: expected a value"},
    {TEXT("\f1"), "byte 0: expected a value"},
    {TEXT("\xC2\xA0"
          "1"),
     "byte 0: expected a value"},
    {TEXT("\\u0031"), "byte 0: expected a value"},
    {TEXT("]"), "byte 0: expected a value"},
    {TEXT("}"), "byte 0: expected a value"},
    {TEXT(","), "byte 0: expected a value"},
    {TEXT(":"), "byte 0: expected a value"},
    /* text after the value */
    {TEXT("1 2"), "byte 2: text after the value"},
    {TEXT("truex"), "byte 4: text after the value"},
    {TEXT("nullnull"), "byte 4: text after the value"},
    {TEXT("{}}"), "byte 2: text after the value"},
    {TEXT("[]]"), "byte 2: text after the value"},
    {TEXT("[],"), "byte 2: text after the value"},
    {TEXT("{} //"), "byte 3: text after the value"},
    {TEXT("1\0"), "byte 1: text after the value"},
    {TEXT("\"a\"\"b\""), "byte 3: text after the value"},
    {TEXT("{\"a\":1}{\"a\":2}"), "byte 7: text after the value"},
    /* numbers */
    {TEXT("-"), "byte 1: expected a digit"},
    {TEXT("--1"), "byte 1: expected a digit"},
    {TEXT("+1"), "byte 0: expected a value"},
    {TEXT("01"), "byte 0: number starts with a zero"},
    {TEXT("-01"), "byte 1: number starts with a zero"},
    {TEXT("00"), "byte 0: number starts with a zero"},
    {TEXT("-00.5"), "byte 1: number starts with a zero"},
    {TEXT("1."), "byte 2: expected a digit"},
    {TEXT("1.e5"), "byte 2: expected a digit"},
    {TEXT(".5"), "byte 0: expected a value"},
    {TEXT("-.5"), "byte 1: expected a digit"},
    {TEXT("1e"), "byte 2: expected a digit"},
    {TEXT("1e+"), "byte 3: expected a digit"},
    {TEXT("1e-"), "byte 3: expected a digit"},
    {TEXT("1e+-1"), "byte 3: expected a digit"},
    {TEXT("1e1.5"), "byte 3: text after the value"},
    {TEXT("1.2.3"), "byte 3: text after the value"},
    {TEXT("1ee1"), "byte 2: expected a digit"},
    {TEXT("0x10"), "byte 1: text after the value"},
    {TEXT("1_000"), "byte 1: text after the value"},
    {TEXT("1,5"), "byte 1: text after the value"},
    {TEXT("- 1"), "byte 1: expected a digit"},
    {TEXT("1a"), "byte 1: text after the value"},
    {TEXT("[1 2]"), "byte 3: expected ',' or ']'"},
    {TEXT("[-]"), "byte 2: expected a digit"},
    {TEXT("[1.]"), "byte 3: expected a digit"},
    {TEXT("\xEF\xBC\x91"), "byte 0: expected a value"},
    /* strings */
    {TEXT("\""), "byte 0: string is not closed"},
    {TEXT("\"abc"), "byte 0: string is not closed"},
    {TEXT("[\"abc]"), "byte 1: string is not closed"},
    {TEXT("\"abc\\"), "byte 0: string is not closed"},
    {TEXT("\"abc\\\""), "byte 0: string is not closed"},
    {TEXT("\"a\nb\""), "byte 2: control character 0x0a in a string"},
    {TEXT("\"a\tb\""), "byte 2: control character 0x09 in a string"},
    {TEXT("\"a\0b\""), "byte 2: control character 0x00 in a string"},
    {TEXT("\"0123456789\x1F\""), "byte 11: control character 0x1f in a string"},
    {TEXT("\"\\a\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\x41\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\'\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\U0041\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\\0\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\\n\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\\xC3\xA9\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\0\""), "byte 1: unknown escape in a string"},
    {TEXT("\"\\u\""), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u123\""), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u12"), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u00g0\""), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u+123\""), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u 123\""), "byte 1: \\u needs four hexadecimal digits"},
    {TEXT("\"\\u{41}\""), "byte 1: \\u needs four hexadecimal digits"},
    /* surrogates */
    {TEXT("\"\\ud800\""), "byte 1: lone surrogate \\ud800"},
    {TEXT("\"\\udc00\""), "byte 1: lone surrogate \\udc00"},
    {TEXT("\"\\uDFFF\""), "byte 1: lone surrogate \\udfff"},
    {TEXT("\"ab\\ud800x\""), "byte 3: lone surrogate \\ud800"},
    {TEXT("\"\\ud800\\n\""), "byte 1: lone surrogate \\ud800"},
    {TEXT("\"\\ud800\\u0041\""), "byte 1: lone surrogate \\ud800"},
    {TEXT("\"\\ud800\\ud800\""), "byte 1: lone surrogate \\ud800"},
    {TEXT("\"\\udc00\\ud800\""), "byte 1: lone surrogate \\udc00"},
    {TEXT("\"\\ud800\\udc0\""), "byte 1: lone surrogate \\ud800"},
    {TEXT("\"\\ud800\\udc00\\udc00\""), "byte 13: lone surrogate \\udc00"},
    {TEXT("\"\\uD83D"), "byte 1: lone surrogate \\ud83d"},
    {TEXT("\"\\uD83D\\uDE00"), "byte 0: string is not closed"},
    /* UTF-8 */
    {TEXT("\"\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xBF\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xC0\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xC1\xBF\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xE0\x80\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xE0\x9F\xBF\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xED\xA0\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xED\xBF\xBF\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xF0\x80\x80\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xF4\x90\x80\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xF5\x80\x80\x80\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xFE\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xFF\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"abcdefghij\xE2\x82\""), "byte 11: invalid UTF-8 in a string"},
    {TEXT("\"\xC3\""), "byte 1: invalid UTF-8 in a string"},
    {TEXT("\"\xF0\x9F\x98"), "byte 1: invalid UTF-8 in a string"},
    {TEXT("{\"\xFF\":1}"), "byte 2: invalid UTF-8 in a string"},
    {TEXT("[1,\xC3\xA9]"), "byte 3: expected a value"},
    /* arrays */
    {TEXT("["), "byte 1: text ends, expected a value"},
    {TEXT("[1"), "byte 2: text ends, expected ',' or ']'"},
    {TEXT("[1,"), "byte 3: text ends, expected a value"},
    {TEXT("[1,]"), "byte 3: expected a value"},
    {TEXT("[,1]"), "byte 1: expected a value"},
    {TEXT("[1,,2]"), "byte 3: expected a value"},
    {TEXT("[1 true]"), "byte 3: expected ',' or ']'"},
    {TEXT("[1}"), "byte 2: expected ',' or ']'"},
    {TEXT("[1:2]"), "byte 2: expected ',' or ']'"},
    {TEXT("[1;2]"), "byte 2: expected ',' or ']'"},
    {TEXT("[[1]"), "byte 4: text ends, expected ',' or ']'"},
    {TEXT("[\"a\" \"b\"]"), "byte 5: expected ',' or ']'"},
    {TEXT("[[] []]"), "byte 4: expected ',' or ']'"},
    /* objects */
    {TEXT("{"), "byte 1: text ends, expected '\"' to begin a key"},
    {TEXT("{1:2}"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{a:2}"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{'a':2}"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{null:2}"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{,}"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{]"), "byte 1: expected '\"' to begin a key"},
    {TEXT("{\"a\""), "byte 4: text ends, expected ':'"},
    {TEXT("{\"a\"}"), "byte 4: expected ':'"},
    {TEXT("{\"a\" 1}"), "byte 5: expected ':'"},
    {TEXT("{\"a\",1}"), "byte 4: expected ':'"},
    {TEXT("{\"a\"::1}"), "byte 5: expected a value"},
    {TEXT("{\"a\":"), "byte 5: text ends, expected a value"},
    {TEXT("{\"a\":}"), "byte 5: expected a value"},
    {TEXT("{\"a\":1"), "byte 6: text ends, expected ',' or '}'"},
    {TEXT("{\"a\":1]"), "byte 6: expected ',' or '}'"},
    {TEXT("{\"a\":1,"), "byte 7: text ends, expected '\"' to begin a key"},
    {TEXT("{\"a\":1,}"), "byte 7: expected '\"' to begin a key"},
    {TEXT("{\"a\":1,,\"b\":2}"), "byte 7: expected '\"' to begin a key"},
    {TEXT("{\"a\":1 \"b\":2}"), "byte 7: expected ',' or '}'"},
    {TEXT("{\"a\":[1}"), "byte 7: expected ',' or ']'"},
    {TEXT("{\"a"), "byte 1: string is not closed"},
    {TEXT("[{\"a\":1}"), "byte 8: text ends, expected ',' or ']'"},
};

/* The text ends exactly at the end of an allocation, so that AddressSanitizer sees a read past it. */
static err_code parse_copy(arena *a, span text, int depth_max, error *err) {
    char *copy = malloc(text.size ? text.size : 1);
    if (text.size) memcpy(copy, text.data, text.size);
    const json *value = NULL;
    err_code code = json_parse(a, span_make(copy, text.size), depth_max, &value, err);
    free(copy);
    return code;
}

static void test_refused(void **state) {
    (void)state;
    arena *a = arena_create();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        error err = {0};
        if (parse_copy(a, refused[i].text, JSON_DEPTH_DEFAULT, &err) != ERR_FORMAT ||
            strcmp(err.message, refused[i].message) != 0)
            fail_msg("'%.*s': '%s', expected '%s'", (int)refused[i].text.size, refused[i].text.data, err.message,
                     refused[i].message);
    }
    arena_destroy(a);
}

/* Every proper prefix of a document that needs its last byte is refused. */
static void test_prefixes_refused(void **state) {
    (void)state;
    static const char text[] = "{\"a\\n\\ud83d\\ude00\":[1.5e+3,null,true,false,{\"b\":\"\xE2\x82\xAC\"}],\"c\":{}}";
    arena *a = arena_create();
    for (size_t size = 0; size < sizeof text - 1; size++) {
        error err = {0};
        assert_int_equal(parse_copy(a, span_make(text, size), JSON_DEPTH_DEFAULT, &err), ERR_FORMAT);
    }
    assert_int_equal(parse_copy(a, BYTES(text), JSON_DEPTH_DEFAULT, NULL), ERR_OK);
    arena_destroy(a);
}

static void test_empty_span(void **state) {
    (void)state;
    arena *a = arena_create();
    const json *value;
    assert_int_equal(json_parse(a, (span){0}, 1, &value, NULL), ERR_FORMAT);
    arena_destroy(a);
}

static char *nested(int depth, const char *open, const char *inside, const char *close) {
    buffer text = {0};
    for (int i = 0; i < depth; i++) buffer_text(&text, open);
    buffer_text(&text, inside);
    for (int i = 0; i < depth; i++) buffer_text(&text, close);
    return buffer_take(&text);
}

static void test_depth_limit(void **state) {
    (void)state;
    arena *a = arena_create();
    error err = {0};
    assert_int_equal(parse_copy(a, literal("[[1]]"), 2, &err), ERR_OK);
    assert_int_equal(parse_copy(a, literal("[[1]]"), 1, &err), ERR_LIMIT);
    assert_string_equal(err.message, "byte 1: nesting depth 2 exceeds the limit 1");
    assert_int_equal(parse_copy(a, literal("{\"a\":{}}"), 1, &err), ERR_LIMIT);
    assert_string_equal(err.message, "byte 5: nesting depth 2 exceeds the limit 1");
    assert_int_equal(parse_copy(a, literal("1"), 0, &err), ERR_OK);
    assert_int_equal(parse_copy(a, literal("[]"), 0, &err), ERR_LIMIT);
    assert_int_equal(parse_copy(a, literal("[[],[],[[]]]"), 2, &err), ERR_LIMIT); /* closed ones do not count */
    assert_int_equal(parse_copy(a, literal("[[],[],[[]]]"), 3, &err), ERR_OK);
    arena_destroy(a);
}

/* Reading, copying and writing take no stack per level. */
static void test_deep_document(void **state) {
    (void)state;
    static const struct {
        const char *open, *inside, *close;
    } cases[] = {{"[", "", "]"}, {"{\"a\":", "1", "}"}, {"[{\"k\":", "[]", "}]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = nested(100000, cases[i].open, cases[i].inside, cases[i].close);
        arena *a = arena_create();
        const json *value;
        assert_int_equal(json_parse(a, span_text(text), 300000, &value, NULL), ERR_OK);
        buffer out = {0};
        json_write(&out, json_clone(a, value), JSON_COMPACT);
        assert_string_equal(out.data, text);
        error err = {0};
        assert_int_equal(json_parse(a, span_text(text), 10000, &value, &err), ERR_LIMIT);
        buffer_deinit(&out);
        arena_destroy(a);
        free(text);
    }
}

static void test_source_spans(void **state) {
    (void)state;
    arena *a = arena_create();
    span text = BYTES(" { \"a\" : [ 1.50 , \"x\\ny\" ] , \"b\":null } ");
    const json *root = parse(a, text), *array = json_get(root, "a");
    assert_true(root->source.data == text.data + 1);
    assert_true(span_is(root->source, "{ \"a\" : [ 1.50 , \"x\\ny\" ] , \"b\":null }"));
    assert_true(span_is(array->source, "[ 1.50 , \"x\\ny\" ]"));
    assert_true(span_is(json_at(array, 0)->source, "1.50"));
    assert_true(json_at(array, 0)->text.data == json_at(array, 0)->source.data);
    assert_true(span_is(json_at(array, 1)->source, "\"x\\ny\""));
    assert_true(span_is(json_at(array, 1)->text, "x\ny"));
    assert_true(span_is(json_get(root, "b")->source, "null"));
    assert_int_equal(array->count, 2);
    assert_int_equal(root->count, 2);
    assert_true(root->first == array && array->next == root->last && root->last->next == NULL);
    arena_destroy(a);
}

/* A string without escapes is not copied; one with escapes does not depend on its length. */
static void test_string_storage(void **state) {
    (void)state;
    arena *a = arena_create();
    span text = BYTES("[\"plain \xC3\xA9 text that is longer than a word\",\"\\u0000a\"]");
    const json *array = parse(a, text), *escaped = json_at(array, 1);
    assert_true(json_at(array, 0)->text.data == text.data + 2);
    assert_int_equal(escaped->text.size, 2);
    assert_memory_equal(escaped->text.data, "\0a", 2);
    assert_false(json_string_is(escaped, ""));
    arena_destroy(a);
}

/* A special byte at every distance from every alignment is found. */
static void test_scan_positions(void **state) {
    (void)state;
    arena *a = arena_create();
    static const char *const specials[] = {"\\n", "\\\"", "\xC3\xA9", "\\u0041", "\x7F", "~", " ", "!", "#", "[", "]"};
    for (size_t s = 0; s < sizeof specials / sizeof *specials; s++)
        for (int before = 0; before < 20; before++)
            for (int after = 0; after < 20; after++) {
                char text[80], want[80];
                const char *decoded = !strcmp(specials[s], "\\n")       ? "\n"
                                      : !strcmp(specials[s], "\\\"")    ? "\""
                                      : !strcmp(specials[s], "\\u0041") ? "A"
                                                                        : specials[s];
                snprintf(text, sizeof text, "\"%.*s%s%.*s\"", before, "abcdefghijklmnopqrstuvwxyz", specials[s], after,
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
                snprintf(want, sizeof want, "%.*s%s%.*s", before, "abcdefghijklmnopqrstuvwxyz", decoded, after,
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
                assert_true(json_string_is(parse(a, span_text(text)), want));
            }
    for (int c = 0; c < 0x20; c++)
        for (int before = 0; before < 20; before++) {
            char text[64];
            int size = snprintf(text, sizeof text, "\"%.*s%c123456789\"", before, "abcdefghijklmnopqrstuvwxyz", c);
            error err = {0};
            assert_int_equal(parse_copy(a, span_make(text, (size_t)size), 1, &err), ERR_FORMAT);
        }
    arena_destroy(a);
}

static void test_lookups(void **state) {
    (void)state;
    arena *a = arena_create();
    const json *root = parse(a, literal("{\"a\":1,\"b\":[true,\"x\"],\"a\":2,\"n\\u0000\":3}"));
    int64_t n = 0;
    assert_true(json_integer(json_get(root, "a"), &n));
    assert_int_equal(n, 2);
    assert_true(json_integer(json_get_span(root, BYTES("n\0")), &n));
    assert_int_equal(n, 3);
    assert_null(json_get(root, "n"));
    assert_null(json_get(root, "missing"));
    assert_null(json_get(NULL, "a"));
    assert_null(json_get(json_get(root, "b"), "a"));
    assert_true(json_is(json_at(json_get(root, "b"), 0), JSON_TRUE));
    assert_true(json_string_is(json_at(json_get(root, "b"), 1), "x"));
    assert_null(json_at(json_get(root, "b"), 2));
    assert_null(json_at(root, 0));
    assert_null(json_at(NULL, 0));
    assert_false(json_is(NULL, JSON_NULL));
    assert_false(json_string_is(NULL, "x"));
    assert_false(json_string_is(json_get(root, "a"), "2"));
    arena_destroy(a);
}

static void test_integer(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"3", true, 3},
        {"-17", true, -17},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"3.0", false, 0},
        {"1e2", false, 0},
        {"\"3\"", false, 0},
        {"true", false, 0},
        {"null", false, 0},
    };
    arena *a = arena_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        assert_int_equal(json_integer(parse(a, literal(cases[i].text)), &value), cases[i].ok);
        assert_int_equal(value, cases[i].value);
    }
    int64_t value;
    assert_false(json_integer(NULL, &value));
    arena_destroy(a);
}

static void test_double(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0.0},
        {"1.5", 1.5},
        {"-2e3", -2000.0},
        {"9007199254740993", 9007199254740992.0}, /* a tie, to even */
        {"9007199254740992.99999999999999999999999999999999999999999999999999", 9007199254740992.0},
        {"9007199254740993.00000000000000000000000000000000000000000000000001", 9007199254740994.0},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
        {"4.9e-324", 0x1p-1074},
        {"1e-400", 0.0},
        {"1.7976931348623157e308", DBL_MAX},
        {"0.1", 0.1},
    };
    arena *a = arena_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        assert_true(json_double(parse(a, literal(cases[i].text)), &value));
        assert_true(value == cases[i].value);
    }
    double value = 7;
    assert_true(json_double(parse(a, literal("-0")), &value));
    assert_true(value == 0 && signbit(value));
    assert_false(json_double(parse(a, literal("1e309")), &value));
    assert_false(json_double(parse(a, literal("-1e999999999999999999999")), &value));
    assert_false(json_double(parse(a, literal("\"1\"")), &value));
    assert_false(json_double(NULL, &value));
    arena_destroy(a);
}

/* Expected texts are Python's repr of the same value. */
static void test_write_double(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0x0.0p+0, "0.0"},
        {-0x0.0p+0, "-0.0"},
        {0x1.0000000000000p+0, "1.0"},
        {-0x1.8000000000000p+0, "-1.5"},
        {0x1.999999999999ap-4, "0.1"},
        {0x1.5555555555555p-2, "0.3333333333333333"},
        {0x1.5555555555555p-1, "0.6666666666666666"},
        {0x1.86a0000000000p+16, "100000.0"},
        {0x1.c6bf526340000p+49, "1000000000000000.0"},
        {0x1.1c37937e07fffp+53, "9999999999999998.0"},
        {0x1.1c37937e08000p+53, "1e+16"},
        {0x1.5eddb25e04800p+53, "1.2345e+16"},
        {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
        {0x1.6345785d8a000p+56, "1e+17"},
        {0x1.0f0cf064dd592p+73, "1e+22"},
        {0x1.52d02c7e14af6p+76, "1e+23"},
        {0x1.0624dd2f1a9fcp-10, "0.001"},
        {0x1.a36e2eb1c432dp-14, "0.0001"},
        {0x1.02e4b6ce5dc68p-13, "0.00012345"},
        {0x1.4f8b588e368f1p-17, "1e-05"},
        {0x1.f75104d551d69p-17, "1.5e-05"},
        {0x1.a36371ea531a8p-14, "9.999e-05"},
        {0x1.ad7f29abcaf48p-24, "1e-07"},
        {0x0.0000000000001p-1022, "5e-324"},
        {0x0.0000000000002p-1022, "1e-323"},
        {0x0.0000000000003p-1022, "1.5e-323"},
        {0x0.0000000000059p-1022, "4.4e-322"},
        {0x1.0000000000000p-1022, "2.2250738585072014e-308"},
        {0x0.fffffffffffffp-1022, "2.225073858507201e-308"},
        {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
        {0x1.0000000000000p-44, "5.684341886080802e-14"},
        {0x1.0000000000000p+52, "4503599627370496.0"},
        {0x1.0000000000000p+53, "9007199254740992.0"},
        {0x1.0000000000000p+63, "9.223372036854776e+18"},
        {0x1.0000000000000p+64, "1.8446744073709552e+19"},
        {0x1.0000000000000p+100, "1.2676506002282294e+30"},
        {0x0.0100000000000p-1022, "8.691694759794e-311"},
        {0x1.0000000000000p+1023, "8.98846567431158e+307"},
        {0x1.921fb54442d18p+1, "3.141592653589793"},
        {-0x1.5bf0a8b145769p+1, "-2.718281828459045"},
        {0x1.3333333333334p-2, "0.30000000000000004"},
        {0x1.1666666666666p+2, "4.35"},
        {0x1.199999999999ap+0, "1.1"},
        {0x1.edd2f1a9fbe77p+6, "123.456"},
        {0x1.249ad2594c37dp+332, "1e+100"},
        {0x1.14626eab6dbc7p-332, "1.234e-100"},
        {-0x1.b7cdfd9d7bdbbp-34, "-1e-10"},
        {0x1.1de784a000000p+28, "299792458.0"},
        {0x1.fe185ca57c517p+78, "6.02214076e+23"},
        {-0x1.62e42fefa39efp-1, "-0.6931471805599453"},
        {-0x1.9800000000000p+3, "-12.75"},
        {0x1.b1ae4d6e2ef50p+69, "1e+21"},
        {0x1.78c29dccccccdp+23, "12345678.9"},
        {0x1.a36e2eb1c432dp-15, "5e-05"},
        {0x1.7e43c8800759cp+996, "1e+300"},
        {0x1.0000000000000p-1000, "9.332636185032189e-302"},
        {0x1.0000000000000p-700, "1.90109156629516e-211"},
        {0x1.0000000000000p-333, "5.714936956411375e-101"},
        {0x1.0000000000000p-95, "2.524354896707238e-29"},
        {0x1.0000000000000p-20, "9.5367431640625e-07"},
        {0x1.0000000000000p+89, "6.189700196426902e+26"},
        {0x1.0000000000000p+167, "1.8707220957835557e+50"},
        {0x1.0000000000000p+500, "3.273390607896142e+150"},
        {0x1.0000000000000p+900, "8.452712498170644e+270"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {NAN, "null"},
    };
    buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer_clear(&out);
        json_write_double(&out, cases[i].value);
        assert_string_equal(out.data, cases[i].text);
    }
    buffer_deinit(&out);
}

/* Any bit pattern reads back as itself. */
static void test_double_round_trip(void **state) {
    (void)state;
    arena *a = arena_create();
    buffer out = {0};
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double value, back = 0;
        memcpy(&value, &seed, sizeof value);
        if (!isfinite(value)) continue;
        buffer_clear(&out);
        json_write_double(&out, value);
        assert_true(json_double(parse(a, span_make(out.data, out.size)), &back));
        assert_memory_equal(&back, &value, sizeof value);
        arena_reset(a);
    }
    buffer_deinit(&out);
    arena_destroy(a);
}

/* Turns on a locale with a decimal comma: one of the system's, else one that localedef makes for this test. */
static bool set_comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) return true;
    char command[1200];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s >/dev/null 2>&1", test_temp("de_DE.UTF-8"));
    if (system(command) != 0) return false;
    setenv("LOCPATH", test_temp(""), 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

static void test_locale_does_not_matter(void **state) {
    (void)state;
    if (!set_comma_locale()) {
        print_message("skip: no locale with a decimal comma is installed, and localedef cannot make one\n");
        skip();
    }
    arena *a = arena_create();
    buffer out = {0};
    double value = 0;
    bool comma = strcmp(localeconv()->decimal_point, ",") == 0;
    bool ok = json_double(parse(a, literal("1234.5")), &value);
    json_write_double(&out, 1234.5);
    setlocale(LC_ALL, "C");
    assert_true(comma);
    assert_true(ok && value == 1234.5);
    assert_string_equal(out.data, "1234.5");
    buffer_deinit(&out);
    arena_destroy(a);
}

static void test_build(void **state) {
    (void)state;
    arena *a = arena_create();
    json *root = json_new(a, JSON_OBJECT), *list = json_new(a, JSON_ARRAY);
    json_append(list, json_new_integer(a, INT64_MIN));
    json_append(list, json_new_number(a, literal("1.50")));
    json_append(list, json_new(a, JSON_NULL));
    json_append(list, json_new(a, JSON_ARRAY));
    json_set(root, literal("list"), list);
    json_set(root, literal("k\n"), json_new_string(a, literal("v\"")));
    buffer out = {0};
    json_write(&out, root, JSON_SPACED);
    assert_string_equal(out.data, "{\"list\": [-9223372036854775808, 1.50, null, []], \"k\\n\": \"v\\\"\"}");
    assert_int_equal(list->count, 4);
    buffer_deinit(&out);
    arena_destroy(a);
}

/* A value inside a tree is written and copied alone, without its siblings and its key. */
static void test_inner_value(void **state) {
    (void)state;
    arena *a = arena_create();
    const json *root = parse(a, literal("{\"a\":[1,{\"b\":[]},2],\"c\":3}"));
    buffer out = {0};
    json_write(&out, json_get(root, "a"), JSON_COMPACT);
    assert_string_equal(out.data, "[1,{\"b\":[]},2]");
    buffer_clear(&out);
    json_write(&out, json_at(json_get(root, "a"), 0), JSON_COMPACT);
    assert_string_equal(out.data, "1");

    json *copy = json_clone(a, json_get(root, "a")), *list = json_new(a, JSON_ARRAY);
    assert_null(copy->next);
    assert_int_equal(copy->key.size, 0);
    json_append(list, copy);
    json_append(list, json_clone(a, json_get(root, "c")));
    json_append(copy, json_new_integer(a, 9)); /* a copy can grow, the source does not */
    buffer_clear(&out);
    json_write(&out, list, JSON_COMPACT);
    assert_string_equal(out.data, "[[1,{\"b\":[]},2,9],3]");
    buffer_clear(&out);
    json_write(&out, root, JSON_COMPACT);
    assert_string_equal(out.data, "{\"a\":[1,{\"b\":[]},2],\"c\":3}");
    buffer_deinit(&out);
    arena_destroy(a);
}

/* Expected texts are what Python's json.dumps gives. */
static void test_write_string(void **state) {
    (void)state;
    static const struct {
        span text;
        const char *plain, *ascii;
    } cases[] = {
        {TEXT(""), "\"\"", "\"\""},
        {TEXT("a/b"), "\"a/b\"", "\"a/b\""},
        {TEXT("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
        {TEXT("\0\x01\x1F"), "\"\\u0000\\u0001\\u001f\"", "\"\\u0000\\u0001\\u001f\""},
        {TEXT("\x7F"), "\"\x7F\"", "\"\\u007f\""},
        {TEXT("0123456789\x7F"
              "0123456789\xC3\xA9"),
         "\"0123456789\x7F"
         "0123456789\xC3\xA9\"",
         "\"0123456789\\u007f0123456789\\u00e9\""},
        {TEXT("\xC3\xA9\xE2\x82\xAC"), "\"\xC3\xA9\xE2\x82\xAC\"", "\"\\u00e9\\u20ac\""},
        {TEXT("\xF0\x9F\x98\x80"), "\"\xF0\x9F\x98\x80\"", "\"\\ud83d\\ude00\""},
        {TEXT("\xF4\x8F\xBF\xBF"), "\"\xF4\x8F\xBF\xBF\"", "\"\\udbff\\udfff\""},
        {TEXT("\xE2\x80\xA8"), "\"\xE2\x80\xA8\"", "\"\\u2028\""},
    };
    buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer_clear(&out);
        json_write_string(&out, cases[i].text, JSON_SPACED);
        assert_string_equal(out.data, cases[i].plain);
        buffer_clear(&out);
        json_write_string(&out, cases[i].text, JSON_SPACED | JSON_ASCII);
        assert_string_equal(out.data, cases[i].ascii);
    }
    buffer_clear(&out);
    json_write_string(&out, (span){0}, JSON_COMPACT);
    assert_string_equal(out.data, "\"\"");
    buffer_deinit(&out);
}

static void test_write_bytes(void **state) {
    (void)state;
    static const struct {
        span bytes;
        const char *text;
    } cases[] = {
        {TEXT("ok \xC3\xA9\n"), "\"ok \xC3\xA9\\n\""},
        {TEXT("\xFF"), "\"\xEF\xBF\xBD\""},
        {TEXT("a\xE2\x82"
              "b\x80"),
         "\"a\xEF\xBF\xBD"
         "b\xEF\xBF\xBD\""},
    };
    buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer_clear(&out);
        json_write_bytes(&out, cases[i].bytes);
        assert_string_equal(out.data, cases[i].text);
    }
    buffer_deinit(&out);
}

/* The recorded trace is Python's own output: reading and writing it is the identity, byte by byte. */
static void test_trace_is_identity(void **state) {
    (void)state;
    FILE *file = fopen(test_need_shared("mlperf/agentic_coding_2.5h.jsonl"), "r");
    assert_non_null(file);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    arena *a = arena_create();
    buffer out = {0};
    while ((size = getline(&line, &capacity, file)) > 0) {
        while (size > 0 && line[size - 1] == '\n') size--;
        buffer_clear(&out);
        arena_reset(a);
        json_write(&out, parse(a, span_make(line, (size_t)size)), JSON_SPACED);
        bool ascii_same = out.size == (size_t)size && memcmp(out.data, line, out.size) == 0;
        if (!ascii_same) {
            buffer_clear(&out);
            json_write(&out, parse(a, span_make(line, (size_t)size)), JSON_SPACED | JSON_ASCII);
        }
        assert_int_equal(out.size, size);
        assert_memory_equal(out.data, line, out.size);
    }
    free(line);
    fclose(file);
    buffer_deinit(&out);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prefixes_refused),
        cmocka_unit_test(test_empty_span),
        cmocka_unit_test(test_depth_limit),
        cmocka_unit_test(test_deep_document),
        cmocka_unit_test(test_source_spans),
        cmocka_unit_test(test_string_storage),
        cmocka_unit_test(test_scan_positions),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_integer),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_write_double),
        cmocka_unit_test(test_double_round_trip),
        cmocka_unit_test(test_locale_does_not_matter),
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_inner_value),
        cmocka_unit_test(test_write_string),
        cmocka_unit_test(test_write_bytes),
        cmocka_unit_test(test_trace_is_identity),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
