/* UTF-8: every code point, every invalid form, cutting and repair as Python does them. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "support.h"

#define TEXT(text) \
    { text, sizeof(text) - 1 }
#define BYTES(text) span_make(text, sizeof(text) - 1)

static void test_every_code_point(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        char bytes[4];
        int length = utf8_encode(c, bytes);
        uint32_t back = ~c;
        if (utf8_decode(bytes, (size_t)length, &back) != length || back != c) fail_msg("U+%04X", c);
        for (int cut = 1; cut < length; cut++)
            if (utf8_decode(bytes, (size_t)cut, &back) != 0) fail_msg("U+%04X cut to %d", c, cut);
    }
}

/* All sequences of two bytes and the interesting ones of three and four, against arithmetic on the bytes. */
static bool valid_by_arithmetic(const unsigned char *s, int size) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = size == 2 ? s[0] & 0x1Fu : size == 3 ? s[0] & 0x0Fu : s[0] & 0x07u;
    if ((size == 2 && s[0] >> 5 != 6) || (size == 3 && s[0] >> 4 != 14) || (size == 4 && s[0] >> 3 != 30)) return false;
    for (int i = 1; i < size; i++) {
        if (s[i] >> 6 != 2) return false;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    return c >= smallest[size] && c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
}

static void test_byte_pairs(void **state) {
    (void)state;
    for (unsigned first = 0x80; first < 0x100; first++)
        for (unsigned second = 0; second < 0x100; second++)
            for (int size = 2; size <= 4; size++) {
                unsigned char s[4] = {(unsigned char)first, (unsigned char)second, 0x80, 0xBF};
                uint32_t c;
                bool decoded = utf8_decode((char *)s, (size_t)size, &c) == size;
                if (decoded != valid_by_arithmetic(s, size)) fail_msg("%02x %02x, size %d", first, second, size);
            }
}

static void test_valid(void **state) {
    (void)state;
    static const struct {
        span text;
        bool valid;
    } cases[] = {
        {TEXT(""), true},
        {TEXT("plain"), true},
        {TEXT("a\0b"), true},
        {TEXT("0123456789abcdef0123456789abcdef"), true},
        {TEXT("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), true},
        {TEXT("0123456789abcdef\xC3\xA9"), true},
        {TEXT("0123456789abcdef\xC3"), false},
        {TEXT("\x80"), false},
        {TEXT("\xC0\x80"), false},
        {TEXT("\xED\xA0\x80"), false},
        {TEXT("\xF4\x90\x80\x80"), false},
        {TEXT("\xE2\x82\xAC\xE2\x82"), false},
        {TEXT("\xFF"), false},
    };
    assert_true(utf8_valid((span){0}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_valid(cases[i].text), cases[i].valid);
}

/* A bad byte is found wherever it stands in a block of sixteen. */
static void test_valid_positions(void **state) {
    (void)state;
    for (size_t size = 1; size < 70; size++)
        for (size_t bad = 0; bad < size; bad++) {
            char *text = malloc(size);
            memset(text, 'x', size);
            assert_true(utf8_valid(span_make(text, size)));
            text[bad] = (char)0xA9;
            assert_false(utf8_valid(span_make(text, size)));
            if (bad > 0) {
                text[bad - 1] = (char)0xC3;
                assert_true(utf8_valid(span_make(text, size)));
            }
            free(text);
        }
}

static void test_complete(void **state) {
    (void)state;
    static const struct {
        span text;
        size_t complete;
    } cases[] = {
        {TEXT(""), 0},
        {TEXT("a"), 1},
        {TEXT("\xC3"), 0},
        {TEXT("a\xC3"), 1},
        {TEXT("\xC3\xA9"), 2},
        {TEXT("\xE2"), 0},
        {TEXT("\xE2\x82"), 0},
        {TEXT("\xE2\x82\xAC"), 3},
        {TEXT("\xF0\x9F\x98"), 0},
        {TEXT("ab\xF0\x9F\x98"), 2},
        {TEXT("\xF0\x9F\x98\x80"), 4},
        {TEXT("\x80"), 1}, /* can never become valid */
        {TEXT("a\x80\x80\x80"), 4},
        {TEXT("\xC0"), 1},
        {TEXT("\xFF"), 1},
        {TEXT("\xE0\x80"), 2}, /* overlong */
        {TEXT("\xED\xA0"), 2}, /* surrogate */
        {TEXT("\xED\x9F"), 0},
        {TEXT("\xF4\x90"), 2}, /* past U+10FFFF */
        {TEXT("\xF4\x8F"), 0},
        {TEXT("\xC3\xA9\x80"), 3},
        {TEXT("\xF0\x9F\x98\x80\xE2"), 4},
        {TEXT("\xE2\x82\xE2\x82"), 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (utf8_complete(cases[i].text) != cases[i].complete)
            fail_msg("case %zu: %zu", i, utf8_complete(cases[i].text));
}

/* Sending what is complete, piece by piece, gives what repairing the whole gives. */
static void test_complete_streams(void **state) {
    (void)state;
    span text =
        BYTES("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\x80\xE2\x82x\xF0\x9F\x98\xED\xA0\x80\xF4\x90\x80\x80\xC3");
    buffer whole = {0}, streamed = {0};
    utf8_repair(&whole, text);
    size_t sent = 0;
    for (size_t end = 0; end <= text.size; end++) {
        size_t ready = utf8_complete(span_make(text.data + sent, end - sent));
        assert_true(end - sent - ready <= 3);
        utf8_repair(&streamed, span_make(text.data + sent, ready));
        sent += ready;
    }
    utf8_repair(&streamed, span_make(text.data + sent, text.size - sent));
    assert_string_equal(streamed.data, whole.data);
    buffer_deinit(&whole);
    buffer_deinit(&streamed);
}

/* '#' stands for U+FFFD; expected texts are Python's bytes.decode(errors="replace"). */
static void test_repair(void **state) {
    (void)state;
    static const struct {
        span text;
        const char *repaired;
    } cases[] = {
        {TEXT("ok"), "ok"},
        {TEXT("\x80"), "#"},
        {TEXT("\x80\x80"), "##"},
        {TEXT("\xC3"), "#"},
        {TEXT("\xC3z"), "#z"},
        {TEXT("\xC0\x80"), "##"},
        {TEXT("\xC1\xBF"), "##"},
        {TEXT("\xE0\x80\x80"), "###"},
        {TEXT("\xE0\xA0"), "#"},
        {TEXT("\xE0\xA0z"), "#z"},
        {TEXT("\xE2\x82"), "#"},
        {TEXT("\xE2\x82z"), "#z"},
        {TEXT("\xE2\x82\xE2\x82\xAC"), "#\xE2\x82\xAC"},
        {TEXT("\xED\xA0\x80"), "###"},
        {TEXT("\xED\x9F"), "#"},
        {TEXT("\xED\xBF\xBF"), "###"},
        {TEXT("\xF0\x80\x80\x80"), "####"},
        {TEXT("\xF0\x90\x80"), "#"},
        {TEXT("\xF0\x9F\x98z"), "#z"},
        {TEXT("\xF0\x9F\xF0\x9F\x98\x80"), "#\xF0\x9F\x98\x80"},
        {TEXT("\xF4\x90\x80\x80"), "####"},
        {TEXT("\xF4\x8F\xBF"), "#"},
        {TEXT("\xF5\x80\x80\x80"), "####"},
        {TEXT("\xF8\x88\x80\x80\x80"), "#####"},
        {TEXT("\xFE\xFF"), "##"},
        {TEXT("\xFF"), "#"},
        {TEXT("a\xFF"
              "b\xC3\xA9\xFF"
              "c"),
         "a#b\xC3\xA9#c"},
        {TEXT("a\xF1\x80\x80\xE1\x80\xC2"
              "b\x80"
              "c\x80\xBF"
              "d"),
         "a###b#c##d"},
        {TEXT("0123456789abcdef0123\xF0\x9F\x98"
              "0123456789abcdef\xE2"),
         "0123456789abcdef0123#0123456789abcdef#"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer got = {0}, want = {0};
        utf8_repair(&got, cases[i].text);
        for (const char *p = cases[i].repaired; *p; p++)
            buffer_text(&want, *p == '#' ? "\xEF\xBF\xBD" : (char[]){*p, 0});
        if (!span_equal(span_make(got.data, got.size), span_make(want.data, want.size)))
            fail_msg("case %zu: '%s', expected '%s'", i, got.data, want.data);
        assert_true(utf8_valid(span_make(got.data, got.size)));
        buffer_deinit(&got);
        buffer_deinit(&want);
    }
}

static void test_repair_appends(void **state) {
    (void)state;
    buffer out = {0};
    utf8_repair(&out, (span){0});
    assert_null(out.data);
    buffer_text(&out, "x");
    utf8_repair(&out, BYTES("y\xFF"));
    assert_string_equal(out.data, "xy\xEF\xBF\xBD");
    buffer_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_byte_pairs),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_valid_positions),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_complete_streams),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_repair_appends),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
