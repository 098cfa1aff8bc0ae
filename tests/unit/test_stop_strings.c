/* Stop strings: where the text ends, that near misses lose nothing, and that cutting the text changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "engine/stop_strings.h"
#include "support.h"

typedef struct stop_case {
    const char *stop[4];
    const char *text, *expected;
    bool hit;
} stop_case;

static const stop_case CASES[] = {
    {{NULL}, "anything", "anything", false},
    {{"END"}, "some text", "some text", false},
    {{"END"}, "some ENDtext", "some ", true},
    {{"END"}, "END", "", true},
    {{"END"}, "some EN", "some EN", false},
    {{"END"}, "EEND", "E", true},
    {{"aab"}, "aaaaab", "aaa", true},
    {{"abab"}, "abaabab", "aba", true},
    {{"abcd", "bc"}, "xabcd", "xa", true}, /* bc is complete first */
    {{"bc", "abc"}, "xabcd", "x", true},   /* complete together: the longer one */
    {{"abcx", "cd"}, "abcd", "ab", true},  /* the near miss of one is the start of the other */
    {{"\n\n"}, "one\ntwo\n\nthree", "one\ntwo", true},
    {{"\xf0\x9f\x98\x80"},
     "a\xf0\x9f\x98\x81"
     "b\xf0\x9f\x98\x80"
     "c",
     "a\xf0\x9f\x98\x81"
     "b",
     true},
    {{"a", "b", "c", "d"}, "xyz d", "xyz ", true},
};

static char *run(const stop_case *c, size_t piece, bool *hit) {
    int count = 0;
    while (count < 4 && c->stop[count]) count++;
    stop_strings s;
    stop_strings_init(&s, c->stop, count);
    buffer out = {0};
    for (size_t at = 0, size = strlen(c->text); at < size; at += piece)
        stop_strings_feed(&s, span_make(c->text + at, size - at < piece ? size - at : piece), &out);
    *hit = s.hit;
    stop_strings_flush(&s, &out);
    stop_strings_deinit(&s);
    return buffer_take(&out);
}

static void ends_before_the_first_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t piece = 1; piece <= 16; piece++) {
            bool hit;
            char *text = run(&CASES[i], piece, &hit);
            assert_string_equal(text, CASES[i].expected);
            assert_int_equal(hit, CASES[i].hit);
            free(text);
        }
}

static void holds_back_no_more_than_needed(void **state) {
    (void)state;
    const char *stop[] = {"STOP"};
    stop_strings s;
    stop_strings_init(&s, stop, 1);
    buffer out = {0};
    stop_strings_feed(&s, span_text("go S"), &out);
    assert_string_equal(out.data, "go ");
    stop_strings_feed(&s, span_text("TO"), &out);
    assert_string_equal(out.data, "go ");
    stop_strings_feed(&s, span_text("S"), &out);
    assert_string_equal(out.data, "go STO");
    assert_false(stop_strings_feed(&s, span_text("TO"), &out));
    assert_true(stop_strings_feed(&s, span_text("P and on"), &out));
    assert_true(stop_strings_feed(&s, span_text("and on"), &out));
    stop_strings_flush(&s, &out);
    assert_string_equal(out.data, "go STO");
    buffer_deinit(&out);
    stop_strings_deinit(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_before_the_first_however_it_is_cut),
        cmocka_unit_test(holds_back_no_more_than_needed),
    };
    return cmocka_run_group_tests_name("stop_strings", tests, NULL, NULL);
}
