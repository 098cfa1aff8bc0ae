/* Normalisation against utf8proc's own, the table of inert characters against every decomposition, and the way back. */
#include "support.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "text/nfc.h"

enum { CODE_POINTS = 0x110000 };

static bool is_surrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

static void test_inert_characters(void **state) {
    (void)state;
    bool *seconds = calloc(CODE_POINTS, sizeof *seconds); /* stand after another in some decomposition */
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        int32_t parts[8];
        int bound = 0;
        if (is_surrogate(c)) continue;
        long count = utf8proc_decompose_char((int32_t)c, parts, 8, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &bound);
        for (long i = 1; i < count; i++) seconds[parts[i]] = true;
    }
    int inert = 0;
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        if (is_surrogate(c) || !nfc_is_inert(c)) continue;
        inert++;
        int32_t parts[8] = {0};
        int bound = 0;
        long count = utf8proc_decompose_char((int32_t)c, parts, 8, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &bound);
        count = utf8proc_normalize_utf32(parts, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        if (seconds[c] || utf8proc_get_property((int32_t)c)->combining_class || count != 1 || parts[0] != (int32_t)c)
            fail_msg("U+%04X is not inert", c);
    }
    assert_true(inert > 100000);
    free(seconds);
}

static void append_character(buffer *b, uint32_t c) {
    char bytes[4];
    buffer_append(b, bytes, (size_t)utf8_encode(c, bytes));
}

static uint32_t random_character(void) {
    static const uint32_t some[] = {'a',    'e',    'A',    ' ',    '\n',   0x301,  0x316, 0x323,  0x338,
                                    0x345,  0x344,  0x1100, 0x1161, 0x11A8, 0xAC00, 0x915, 0x93C,  0x958,
                                    0x212B, 0x30AB, 0x3099, 0x4E00, 0xE9,   0x1E69, '>',   0x2190, 0x1F600};
    uint32_t c = (uint32_t)rand() % 0x20000;
    return rand() % 4 || is_surrogate(c) ? some[(size_t)rand() % (sizeof some / sizeof *some)] : c;
}

static void check_against_utf8proc(nfc *n, span text) {
    uint8_t *want = NULL;
    long size = utf8proc_map((const uint8_t *)text.data, (long)text.size, &want, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    span got = nfc_normalize(n, text);
    assert_int_equal(got.size, size);
    assert_memory_equal(got.data, want, (size_t)size);
    free(want);
}

/* Outside the changes the two texts are the same bytes, and each change is the normalised form of its source. */
static void check_changes(const nfc *n, span text) {
    size_t source = 0, out = 0;
    for (size_t i = 0; i < n->change_count; i++) {
        const nfc_change *c = &n->changes[i];
        assert_true(c->source_start >= source && c->out_start - out == c->source_start - source);
        assert_memory_equal(text.data + source, n->out.data + out, c->source_start - source);
        uint8_t *want = NULL;
        long size = utf8proc_map((const uint8_t *)text.data + c->source_start, (long)(c->source_end - c->source_start),
                                 &want, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        assert_int_equal(c->out_end - c->out_start, size);
        assert_memory_equal(n->out.data + c->out_start, want, (size_t)size);
        free(want);
        source = c->source_end;
        out = c->out_end;
    }
    if (n->change_count) assert_int_equal(text.size - source, n->out.size - out);
}

static void test_random_texts(void **state) {
    (void)state;
    srand(7);
    nfc n = {0};
    buffer b = {0};
    for (int round = 0; round < 20000; round++) {
        buffer_clear(&b);
        buffer_reserve(&b, 0);
        for (int i = rand() % 24; i > 0; i--) append_character(&b, random_character());
        span text = span_make(b.data, b.size);
        check_against_utf8proc(&n, text);
        check_changes(&n, text);
    }
    buffer_deinit(&b);
    nfc_deinit(&n);
}

static void test_long_runs_of_marks(void **state) {
    (void)state;
    nfc n = {0};
    buffer b = {0};
    append_character(&b, 'q');
    for (int i = 0; i < 300; i++) append_character(&b, i % 3 == 0 ? 0x301 : i % 3 == 1 ? 0x345 : 0x316);
    check_against_utf8proc(&n, span_make(b.data, b.size));
    for (int i = 0; i < 300000; i++) append_character(&b, i % 2 ? 0x316 : 0x301);
    uint64_t start = clock_ns();
    nfc_normalize(&n, span_make(b.data, b.size));
    assert_true(clock_ms_since(start) < 5000); /* by insertion: minutes */
    buffer_deinit(&b);
    nfc_deinit(&n);
}

static void test_unchanged_text_is_not_copied(void **state) {
    (void)state;
    nfc n = {0};
    span text = span_text("plain, \xC3\xA9 and \xE4\xBD\xA0\xE5\xA5\xBD, \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D");
    assert_ptr_equal(nfc_normalize(&n, text).data, text.data);
    assert_int_equal(n.change_count, 0);
    nfc_deinit(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inert_characters),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_long_runs_of_marks),
        cmocka_unit_test(test_unchanged_text_is_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
