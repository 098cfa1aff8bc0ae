/* The pre-tokeniser: pieces of hand-made texts, what the pattern translation refuses, and its limits. */
#include "support.h"

#include <string.h>

#include "text/pretokenize.h"

/* Pieces of text joined by '|'. */
static err_code split(const char *pattern, span text, buffer *out, error *err) {
    pretokenizer *p = NULL;
    ERR_TRY(pretokenizer_create(span_text(pattern), &p, err));
    pretoken_cursor c;
    pretoken_cursor_init(&c, p);
    pretoken_begin(&c, text);
    err_code code;
    span piece;
    while ((code = pretoken_next(&c, &piece, err)) == ERR_OK && piece.size) {
        buffer_append(out, piece.data, piece.size);
        buffer_char(out, '|');
    }
    pretoken_cursor_deinit(&c);
    pretokenizer_destroy(p);
    return code;
}

#define QWEN                                                                                                         \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static void test_pieces(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text, *pieces;
    } cases[] = {
        {QWEN, "", ""},
        {QWEN, "I'm here,  12\n\n x", "I|'m| here|,| | |1|2|\n\n| x|"},
        {QWEN, "  \t\n  a", "  \t\n| | a|"},
        {QWEN, "x\xC2\x85y", "x|\xC2\x85y|"},          /* U+0085 may lead a word as any other character */
        {QWEN, " \xE1\xA0\x8E!", " \xE1\xA0\x8E!|"},   /* U+180E is no white space */
        {QWEN, " \xE3\x80\x80!", " |\xE3\x80\x80|!|"}, /* U+3000 is: one blank stays behind the run before '!' */
        {QWEN, "it'\xC5\xBF", "it|'\xC5\xBF|"},        /* long s equals s without case */
        {"", "all of it", "all of it|"},
        {"b+", "aabbcb", "aa|bb|c|b|"}, /* gaps are pieces */
        {"(?=b)", "aab", "aa|b|"},      /* an empty match cuts */
        {"x*", "axxb", "a|xx|b|"},
        {"(?<=a)b", "abab", "a|b|a|b|"},
        {"\xC3\xA9|.", "\xC3\xA9z", "\xC3\xA9|z|"},
        {"[\\s\\d]+", "a 1b", "a| 1|b|"},
        {"[^\\S]", "a b", "a| |b|"},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer out = {0};
        buffer_reserve(&out, 0);
        buffer_text(&out, "");
        error err;
        assert_int_equal(split(cases[i].pattern, span_text(cases[i].text), &out, &err), ERR_OK);
        assert_string_equal(out.data, cases[i].pieces);
        buffer_deinit(&out);
    }
}

static void test_gpt2_pattern(void **state) {
    (void)state;
    buffer out = {0};
    error err;
    assert_int_equal(split(PRETOKENIZE_GPT2, span_text("It's 12 o'clock  now!\n"), &out, &err), ERR_OK);
    assert_string_equal(out.data, "It|'s| 12| o|'|clock| | now|!|\n|");
    buffer_deinit(&out);
}

static void test_refused_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        err_code code;
        const char *message;
    } cases[] = {
        {"\\w+", ERR_UNSUPPORTED, "'\\w'"},
        {"a\\b", ERR_UNSUPPORTED, "'\\b' at offset 1"},
        {"\\h", ERR_UNSUPPORTED, "'\\h'"},
        {"\\x41", ERR_UNSUPPORTED, "'\\x'"},
        {"\\p{Han}", ERR_UNSUPPORTED, "'\\p{Han}'"},
        {"\\p{^L}", ERR_UNSUPPORTED, "'\\p{^L}'"},
        {"\\pL", ERR_UNSUPPORTED, "'\\pL'"},
        {"\\p", ERR_UNSUPPORTED, "'\\p'"},
        {"\\", ERR_UNSUPPORTED, "'\\'"},
        {"^a", ERR_UNSUPPORTED, "'^a'"},
        {"a$", ERR_UNSUPPORTED, "'$'"},
        {"a{1,2}+", ERR_UNSUPPORTED, "'}+'"},
        {"a{,2}", ERR_UNSUPPORTED, "'{,'"},
        {"[a&&b]", ERR_UNSUPPORTED, "'&&'"},
        {"[[:alpha:]]", ERR_UNSUPPORTED, "'[:'"},
        {"[]a]", ERR_UNSUPPORTED, "']'"},
        {"(?#x)", ERR_UNSUPPORTED, "'(?#x'"},
        {"(?m)a", ERR_UNSUPPORTED, "'(?m)'"},
        {"(*UTF)a", ERR_UNSUPPORTED, "'(*UT'"},
        {"(a)\\1", ERR_UNSUPPORTED, "'\\1'"},
        {"(a", ERR_FORMAT, "parenthesis"},
        {"[a", ERR_FORMAT, "near offset 2"},
        {"a**", ERR_FORMAT, "pattern"},
        {"\xFF", ERR_FORMAT, "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer out = {0};
        error err = {0};
        assert_int_equal(split(cases[i].pattern, span_text("a"), &out, &err), cases[i].code);
        if (!strstr(err.message, cases[i].message)) fail_msg("%s: %s", cases[i].pattern, err.message);
        buffer_deinit(&out);
    }
    buffer long_pattern = {0}, out = {0};
    for (int i = 0; i < 5000; i++) buffer_text(&long_pattern, "a|");
    error err;
    assert_int_equal(split(long_pattern.data, span_text("a"), &out, &err), ERR_LIMIT);
    buffer_deinit(&long_pattern);
}

static void test_runaway_pattern_is_stopped(void **state) {
    (void)state;
    buffer out = {0};
    error err;
    span text = span_text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaacb");
    assert_int_equal(split("(?:(?:a|a)+)+b", text, &out, &err), ERR_LIMIT);
    assert_non_null(strstr(err.message, "match limit"));
    buffer_deinit(&out);
}

static void test_megabyte_of_blanks(void **state) {
    (void)state;
    buffer text = {0}, out = {0};
    error err;
    for (int i = 0; i < 1 << 20; i++) buffer_char(&text, ' ');
    buffer_char(&text, 'x');
    assert_int_equal(split(QWEN, span_make(text.data, text.size), &out, &err), ERR_OK);
    assert_int_equal(out.size, text.size + 2); /* all blanks but one, and " x" */
    buffer_deinit(&text);
    buffer_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_gpt2_pattern),
        cmocka_unit_test(test_refused_patterns),
        cmocka_unit_test(test_runaway_pattern_is_stopped),
        cmocka_unit_test(test_megabyte_of_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
