/* Memory: alignment, the arena's reuse and red zones, the buffer's ending NUL, spans. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define BYTES(text) span_make(text, sizeof(text) - 1)

static bool aligned(const void *p, uintptr_t to) { return ((uintptr_t)p & (to - 1)) == 0; }

static void test_alloc(void **state) {
    (void)state;
    void *nothing = mem_alloc(0);
    assert_non_null(nothing);
    free(nothing);
    unsigned char *zeros = mem_zero(100, 3);
    for (int i = 0; i < 300; i++) assert_int_equal(zeros[i], 0);
    memset(zeros, 7, 300);
    zeros = mem_grow(zeros, 200, 3);
    assert_int_equal(zeros[299], 7);
    free(zeros);
    free(mem_zero(0, 8));
    free(mem_grow(NULL, 0, 8));
    char *copy = mem_copy("a\0b", 3);
    assert_memory_equal(copy, "a\0b\0", 4);
    free(copy);
    char *empty = mem_copy(NULL, 0);
    assert_string_equal(empty, "");
    free(empty);
}

static void test_map(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p = NULL;
        assert_int_equal(memory_map(sizes[i], "test", &p, NULL), ERR_OK);
        assert_true(aligned(p, 64));
        for (size_t at = 0; at < sizes[i]; at += 997) assert_int_equal(((unsigned char *)p)[at], 0);
        memset(p, 1, sizes[i]);
        memory_unmap(p, sizes[i]);
    }
    memory_unmap(NULL, 10);
    error err = {0};
    void *p = NULL;
    assert_int_equal(memory_map((size_t)1 << 62, "KV pages", &p, &err), ERR_MEMORY);
    assert_non_null(strstr(err.message, "KV pages: cannot map 4611686018427387904 bytes: "));
}

/* Allocations of many sizes are aligned and do not overlap. */
static void test_arena_allocations(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    static unsigned char *items[COUNT];
    static size_t sizes[COUNT];
    arena *a = arena_create();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            sizes[i] = i % 500 == 499 ? 200000 : (size_t)(i * 7 % 301);
            items[i] = arena_alloc(a, sizes[i]);
            assert_true(aligned(items[i], 16));
            memset(items[i], i & 0xFF, sizes[i]);
        }
        size_t total = 0;
        for (int i = 0; i < COUNT; i++) {
            total += sizes[i];
            for (size_t k = 0; k < sizes[i]; k++)
                if (items[i][k] != (i & 0xFF)) fail_msg("item %d overwritten at %zu", i, k);
        }
        assert_true(arena_used(a) >= total);
        arena_reset(a);
        assert_int_equal(arena_used(a), 0);
    }
    arena_destroy(a);
    arena_destroy(NULL);
}

static void test_arena_block_borders(void **state) {
    (void)state;
    for (size_t size = 65536 - 200; size < 65536 + 200; size++) {
        arena *a = arena_create();
        memset(arena_alloc(a, size), 1, size);
        memset(arena_alloc(a, 40), 2, 40);
        arena_destroy(a);
    }
}

static void test_arena_reset_keeps_first_block(void **state) {
    (void)state;
    arena *a = arena_create();
    void *first = arena_alloc(a, 10);
    arena_alloc(a, 1 << 20);
    arena_reset(a);
    assert_ptr_equal(arena_alloc(a, 10), first);
    arena_destroy(a);
}

static void test_arena_copy(void **state) {
    (void)state;
    arena *a = arena_create();
    assert_memory_equal(arena_copy(a, "x\0y", 3), "x\0y\0", 4);
    assert_string_equal(arena_copy(a, NULL, 0), "");
    arena_destroy(a);
}

#ifdef WITH_ASAN
/* Every byte next to an allocation is poisoned, no byte of it is, and a reset poisons what was handed out. */
static void test_arena_red_zones(void **state) {
    (void)state;
    arena *a = arena_create();
    for (size_t size = 0; size < 100; size++) {
        char *p = arena_alloc(a, size), *next = arena_alloc(a, 1);
        for (size_t i = 0; i < size; i++) assert_false(__asan_address_is_poisoned(p + i));
        for (char *q = p + size; q < next; q++) assert_true(__asan_address_is_poisoned(q));
        assert_true(next - (p + size) >= 15);
        assert_true(__asan_address_is_poisoned(next + 1));
        arena_reset(a);
        assert_true(__asan_address_is_poisoned(next));
    }
    char *large = arena_alloc(a, 1 << 20);
    assert_true(__asan_address_is_poisoned(large + (1 << 20)));
    arena_destroy(a);
}
#else
static void test_arena_red_zones(void **state) {
    (void)state;
    print_message("skip: red zones exist under AddressSanitizer only (SAN=asan)\n");
    skip();
}
#endif

static void test_buffer(void **state) {
    (void)state;
    buffer b = {0};
    buffer_clear(&b);
    assert_null(b.data);
    buffer_text(&b, "");
    assert_string_equal(b.data, "");
    for (int i = 0; i < 1000; i++) {
        buffer_char(&b, (char)('a' + i % 26));
        assert_int_equal(b.size, i + 1);
        assert_int_equal(b.data[b.size], 0);
        assert_true(b.capacity > b.size);
    }
    buffer_clear(&b);
    assert_string_equal(b.data, "");
    buffer_append(&b, "a\0b", 3);
    buffer_append(&b, NULL, 0);
    assert_int_equal(b.size, 3);
    buffer_printf(&b, "%d-%s", 42, "x");
    assert_memory_equal(b.data, "a\0b42-x\0", 8);
    assert_int_equal(b.size, 7);
    buffer_deinit(&b);
    assert_null(b.data);
    buffer_deinit(&b);
}

static void test_buffer_printf_long(void **state) {
    (void)state;
    buffer b = {0};
    buffer_printf(&b, "%0500d%s", 7, "end");
    assert_int_equal(b.size, 503);
    assert_string_equal(b.data + 499, "7end");
    buffer_deinit(&b);
}

static void test_buffer_reserve(void **state) {
    (void)state;
    buffer b = {0};
    buffer_text(&b, "ab");
    char *end = buffer_reserve(&b, 10000);
    assert_ptr_equal(end, b.data + 2);
    assert_int_equal(b.size, 2);
    memset(end, 'c', 10000);
    b.size += 10000;
    buffer_char(&b, 'd');
    assert_int_equal(b.data[10002], 'd');
    buffer_deinit(&b);
}

static void test_buffer_take(void **state) {
    (void)state;
    buffer b = {0};
    char *nothing = buffer_take(&b);
    assert_string_equal(nothing, "");
    free(nothing);
    buffer_text(&b, "text");
    char *text = buffer_take(&b);
    assert_string_equal(text, "text");
    assert_null(b.data);
    assert_int_equal(b.size, 0);
    free(text);
}

static void test_spans(void **state) {
    (void)state;
    span empty = {0}, text = BYTES("hello\0world");
    assert_int_equal(text.size, 11);
    assert_true(span_equal(empty, BYTES("")));
    assert_true(span_equal(text, BYTES("hello\0world")));
    assert_false(span_equal(text, BYTES("hello\0worlD")));
    assert_false(span_is(text, "hello"));
    assert_true(span_is(span_make(text.data, 5), "hello"));
    assert_true(span_is(empty, ""));
    assert_true(span_starts(text, BYTES("hell")));
    assert_true(span_starts(text, empty));
    assert_true(span_starts(empty, empty));
    assert_false(span_starts(empty, BYTES("h")));
    assert_false(span_starts(BYTES("he"), BYTES("hello")));
    assert_int_equal(span_find(text, BYTES("\0w")), 5);
    assert_int_equal(span_find(text, BYTES("ld")), 9);
    assert_int_equal(span_find(text, BYTES("lx")), -1);
    assert_int_equal(span_find(text, empty), 0);
    assert_int_equal(span_find(empty, empty), 0);
    assert_int_equal(span_find(empty, BYTES("x")), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_arena_allocations),
        cmocka_unit_test(test_arena_block_borders),
        cmocka_unit_test(test_arena_reset_keeps_first_block),
        cmocka_unit_test(test_arena_copy),
        cmocka_unit_test(test_arena_red_zones),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_buffer_printf_long),
        cmocka_unit_test(test_buffer_reserve),
        cmocka_unit_test(test_buffer_take),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
