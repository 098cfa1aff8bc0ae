/* The memo must never differ from a cold encode: random edits in and around added tokens and combining characters. */
#include "support.h"

#include <string.h>

#include "text/tokenizer.h"

#define GOLDEN "tests/golden/tokenizer"

/* Small units, so that edits often meet: the golden tokenizer has <a, <a> and <a>b, and more in its configuration. */
static const char *const units[] = {
    "<a",
    ">",
    "b",
    "<",
    "<a>b",
    "<|im_end|>",
    "<|im_start|>",
    "<think>",
    "</think>",
    "|",
    "im_end",
    "\xCC\x81",
    "\xCC\xB8",
    "e",
    "e\xCC\x81",
    "a\xCC\xA3\xCC\x87",
    "\xC3\xA9",
    " ",
    "  ",
    "\n",
    "\n\n",
    "the ",
    "robot reads",
    "12",
    "'s",
    "\xFF",
    "\xE4\xBD",
    "\xE4\xBD\xA0",
    "\xE1\x84\x80\xE1\x85\xA1",
    "\xE1\x86\xA8",
    "<\xC3\xA9>",
    "<e\xCC\x81>",
    "<|audio|>",
    "==",
    "a",
};

static uint32_t random_state = 1;

static size_t below(size_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return limit ? random_state % limit : 0;
}

static void append_units(buffer *b, size_t count) {
    for (size_t i = 0; i < count; i++) buffer_text(b, units[below(sizeof units / sizeof *units)]);
}

/* text with a random piece replaced by other units; the piece is often near the end, often empty. */
static void edit(buffer *text) {
    buffer out = {0};
    size_t at = below(2) ? below(text->size + 1) : text->size - below(text->size < 40 ? text->size + 1 : 40);
    size_t removed = below(3) ? below(text->size - at < 12 ? text->size - at + 1 : 12) : text->size - at;
    if (below(3) == 0) removed = 0;
    buffer_append(&out, text->data, at);
    append_units(&out, below(4));
    if (at + removed < text->size) buffer_append(&out, text->data + at + removed, text->size - at - removed);
    buffer_deinit(text);
    *text = out;
}

static tokenizer *open_golden(void) {
    tokenizer *t = NULL;
    error err;
    if (tokenizer_open(GOLDEN, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    return t;
}

typedef struct memo_result {
    const int32_t *ids;
    size_t count, kept;
} memo_result;

static memo_result remember(token_memo *m, const tokenizer *t, span text) {
    memo_result r;
    error err;
    if (token_memo_encode(m, t, text, &r.ids, &r.count, &r.kept, &err) != ERR_OK) fail_msg("%s", err.message);
    return r;
}

static void check_equal(const tokenizer *t, span text, memo_result r) {
    token_list cold = {0};
    assert_int_equal(tokenizer_encode(t, text, true, &cold, NULL), ERR_OK);
    if (cold.count != r.count || (r.count && memcmp(cold.ids, r.ids, r.count * sizeof *r.ids) != 0))
        fail_msg("memo differs from a cold encode of '%.*s'", (int)text.size, text.data);
    token_list_deinit(&cold);
}

static void test_random_edits(void **state) {
    (void)state;
    tokenizer *t = open_golden();
    size_t kept_total = 0;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        random_state = seed;
        token_memo *m = token_memo_create();
        buffer text = {0};
        append_units(&text, 1 + below(60));
        token_list before = {0};
        for (int step = 0; step < 60; step++) {
            memo_result r = remember(m, t, span_make(text.data, text.size));
            check_equal(t, span_make(text.data, text.size), r);
            assert_true(r.kept <= r.count && r.kept <= before.count);
            if (r.kept) assert_memory_equal(before.ids, r.ids, r.kept * sizeof *r.ids);
            kept_total += r.kept;
            before.count = 0;
            for (size_t i = 0; i < r.count; i++) token_list_push(&before, r.ids[i]);
            edit(&text);
        }
        token_list_deinit(&before);
        buffer_deinit(&text);
        token_memo_destroy(m);
    }
    assert_true(kept_total > 10000);
    tokenizer_close(t);
}

/* Ids that end at or before an offset: against a cold encode of the prefix where an added token starts or ends. */
static void test_index(void **state) {
    (void)state;
    tokenizer *t = open_golden();
    token_memo *m = token_memo_create();
    assert_int_equal(token_memo_index(m, 10), 0);
    for (uint32_t seed = 1; seed <= 200; seed++) {
        random_state = seed;
        buffer text = {0};
        for (int i = 0; i < 6; i++) {
            append_units(&text, below(12));
            size_t start = text.size;
            buffer_text(&text, "<|im_end|>");
            remember(m, t, span_make(text.data, text.size));
            for (size_t at = start; at <= text.size; at += text.size - start) {
                token_list prefix = {0};
                assert_int_equal(tokenizer_encode(t, span_make(text.data, at), true, &prefix, NULL), ERR_OK);
                assert_int_equal(token_memo_index(m, at), prefix.count);
                token_list_deinit(&prefix);
            }
        }
        memo_result r = remember(m, t, span_make(text.data, text.size));
        size_t last = 0;
        for (size_t at = 0; at <= text.size; at++) {
            size_t index = token_memo_index(m, at);
            assert_true(index >= last && index <= r.count);
            last = index;
        }
        assert_int_equal(last, r.count);
        assert_int_equal(token_memo_index(m, SIZE_MAX), r.count);
        buffer_deinit(&text);
    }
    token_memo_destroy(m);
    tokenizer_close(t);
}

/* Inside a stretch that normalisation changes, a token ends where the stretch does. */
static void test_index_in_changed_text(void **state) {
    (void)state;
    tokenizer *t = open_golden();
    token_memo *m = token_memo_create();
    /* "xe" + combining acute (U+0301, 2 bytes) + "y": x, the two bytes of the composed letter as one token or two, y */
    memo_result r = remember(m, t, span_text("xe\xCC\x81y"));
    assert_int_equal(token_memo_index(m, 0), 0);
    assert_int_equal(token_memo_index(m, 1), 1);
    assert_int_equal(token_memo_index(m, 2), 1);
    assert_int_equal(token_memo_index(m, 3), 1);
    assert_int_equal(token_memo_index(m, 4), r.count - 1);
    assert_int_equal(token_memo_index(m, 5), r.count);
    token_memo_destroy(m);
    tokenizer_close(t);
}

static void test_kept_and_common(void **state) {
    (void)state;
    tokenizer *t = open_golden(), *other = open_golden();
    token_memo *m = token_memo_create();
    span text = span_text("one<|im_end|>two<|im_end|>three"), longer = span_text("one<|im_end|>two<|im_end|>thrift");
    assert_int_equal(token_memo_common(m, text), 0);
    assert_int_equal(remember(m, t, text).kept, 0);
    assert_int_equal(token_memo_common(m, longer), text.size - 2);
    memo_result same = remember(m, t, text);
    assert_int_equal(same.kept, same.count);
    size_t barrier = token_memo_index(m, text.size - strlen("three"));
    assert_int_equal(remember(m, t, longer).kept, barrier);
    assert_int_equal(remember(m, other, longer).kept, 0); /* another tokenizer: nothing holds */
    check_equal(other, longer, remember(m, other, longer));
    assert_int_equal(remember(m, other, span_text("")).count, 0);
    assert_int_equal(remember(m, other, text).kept, 0);
    const int32_t *ids;
    size_t count;
    assert_int_equal(token_memo_encode(m, other, text, &ids, &count, NULL, NULL), ERR_OK);
    token_memo_destroy(m);
    tokenizer_close(t);
    tokenizer_close(other);
}

/* A longer added token may grow out of one that the old text ended with, or out of bytes before it. */
static void test_added_token_that_grows(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"x<a", "x<a>"},
        {"x<a>", "x<a>b"},
        {"x<a>c", "x<a>b"},
        {"<a<|im_end", "<a<|im_end|>"},
        {"x<a>b", "x<a>"},
        {"<|im_end|>", "<|im_end|"},
        {"<<a>", "<<a>b<a>"},
        {"<think>", "<think>\xCC\xB8"},
        {"e<|im_end|>", "e<|im_end|>\xCC\x81"},
        {"<a>bc<a>", "<a>bc<a"},
        {"", "<a>"},
    };
    tokenizer *t = open_golden();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        token_memo *m = token_memo_create();
        for (int j = 0; j < 4; j++) {
            span text = span_text(pairs[i][j % 2]);
            check_equal(t, text, remember(m, t, text));
        }
        token_memo_destroy(m);
    }
    tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_edits),           cmocka_unit_test(test_index),
        cmocka_unit_test(test_index_in_changed_text),  cmocka_unit_test(test_kept_and_common),
        cmocka_unit_test(test_added_token_that_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
