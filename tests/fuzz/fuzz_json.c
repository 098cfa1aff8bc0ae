/* Any bytes as JSON: refused with a message, or a tree that every way of writing and copying reproduces. The same bytes
 * are also written as a string, repaired and cut, which must always give valid text. */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static span contents(const buffer *b) { return span_make(b->data, b->size); }

static const json *parse_again(arena *a, const buffer *text) {
    const json *value = NULL;
    HEARTH_ASSERT(json_parse(a, contents(text), 1000, &value, NULL) == ERR_OK);
    return value;
}

/* Writing in each style and reading back gives the same tree: the compact forms are equal. */
static void check_writers(arena *a, const json *value) {
    buffer compact = {0}, styled = {0}, again = {0};
    json_write(&compact, value, JSON_COMPACT);
    for (int style = JSON_COMPACT; style <= (JSON_SPACED | JSON_ASCII); style++) {
        buffer_clear(&styled);
        buffer_clear(&again);
        json_write(&styled, value, (json_style)style);
        json_write(&again, parse_again(a, &styled), JSON_COMPACT);
        HEARTH_ASSERT(span_equal(contents(&again), contents(&compact)));
    }
    buffer_clear(&again);
    json_write(&again, json_clone(a, value), JSON_COMPACT);
    HEARTH_ASSERT(span_equal(contents(&again), contents(&compact)));
    buffer_deinit(&compact);
    buffer_deinit(&styled);
    buffer_deinit(&again);
}

static void check_number(arena *a, const json *value) {
    double number, back;
    int64_t integer;
    json_integer(value, &integer);
    if (!json_double(value, &number)) return;
    buffer text = {0};
    json_write_double(&text, number);
    HEARTH_ASSERT(json_double(parse_again(a, &text), &back) && back == number);
    buffer_deinit(&text);
}

/* Spans of the direct children lie in the source, in order. */
static void check_spans(arena *a, const json *value) {
    const char *at = value->source.data, *end = at + value->source.size;
    uint32_t count = 0;
    for (const json *child = value->first; child; child = child->next, count++) {
        HEARTH_ASSERT(child->source.data > at && child->source.data + child->source.size < end);
        at = child->source.data + child->source.size;
        HEARTH_ASSERT(child->next || child == value->last);
        check_number(a, child);
    }
    HEARTH_ASSERT(count == value->count);
}

static void check_bytes(arena *a, span bytes) {
    buffer text = {0}, repaired = {0};
    json_write_bytes(&text, bytes);
    utf8_repair(&repaired, bytes);
    HEARTH_ASSERT(utf8_valid(contents(&repaired)));
    HEARTH_ASSERT(!utf8_valid(bytes) || span_equal(contents(&repaired), bytes));
    HEARTH_ASSERT(span_equal(parse_again(a, &text)->text, contents(&repaired)));
    size_t complete = utf8_complete(bytes);
    HEARTH_ASSERT(complete <= bytes.size && bytes.size - complete <= 3);
    buffer_deinit(&text);
    buffer_deinit(&repaired);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_create();
    const json *value = NULL;
    error err = {0};
    span bytes = span_make((const char *)data, size);
    if (json_parse(a, bytes, 100, &value, &err) == ERR_OK) {
        HEARTH_ASSERT(utf8_valid(bytes));
        check_writers(a, value);
        check_spans(a, value);
        check_number(a, value);
    } else {
        HEARTH_ASSERT(strncmp(err.message, "byte ", 5) == 0);
    }
    check_bytes(a, bytes);
    arena_destroy(a);
    return 0;
}
