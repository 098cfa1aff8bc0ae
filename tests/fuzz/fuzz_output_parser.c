/* Any text in any pieces gives the events that the whole text gives; complete calls are JSON objects. The first byte
 * chooses options and the size of the pieces. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/output_parser.h"

static const char tools_text[] =
    "[{\"function\":{\"name\":\"bash\",\"parameters\":{\"properties\":{\"command\":{\"type\":\"string\"},"
    "\"timeout\":{\"type\":\"integer\"},\"any\":{},\"list\":{\"type\":[\"array\",\"string\",\"null\"]}}}}}]";

/* The events as text, pieces of one kind joined. */
typedef struct record {
    buffer text, arguments;
    int last;
} record;

static void check_arguments(span text) {
    arena *a = arena_create();
    const json *value;
    HEARTH_ASSERT(json_parse(a, text, JSON_DEPTH_DEFAULT + 1, &value, NULL) == ERR_OK && json_is(value, JSON_OBJECT));
    arena_destroy(a);
}

static void sink(void *context, const output_event *event) {
    record *r = context;
    HEARTH_ASSERT(utf8_valid(event->text));
    bool joins = event->type != OUTPUT_CALL_BEGIN && event->type != OUTPUT_CALL_END;
    if (!joins || r->last != (int)event->type) buffer_printf(&r->text, "\001%d:%d:", event->type, event->index);
    r->last = (int)event->type;
    buffer_append(&r->text, event->text.data, event->text.size);
    if (event->type == OUTPUT_CALL_BEGIN) buffer_clear(&r->arguments);
    if (event->type == OUTPUT_CALL_ARGUMENTS) buffer_append(&r->arguments, event->text.data, event->text.size);
    if (event->type == OUTPUT_CALL_END) check_arguments(span_make(r->arguments.data, r->arguments.size));
}

static void run(const json *tools, span text, unsigned flags, size_t piece, record *r) {
    *r = (record){.last = -1};
    output_parser_options options = {tools, !(flags & 1), (flags & 2) != 0};
    output_parser *p = output_parser_create(&options, sink, r);
    for (size_t at = 0; at < text.size;) {
        size_t end = piece < text.size - at ? at + piece : text.size;
        while (end < text.size && ((unsigned char)text.data[end] & 0xC0) == 0x80) end++;
        output_parser_feed(p, span_make(text.data + at, end - at));
        at = end;
    }
    output_parser_finish(p, (flags & 4) != 0);
    output_parser_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    buffer text = {0};
    utf8_repair(&text, span_make((const char *)data + 1, size - 1));
    arena *a = arena_create();
    const json *tools;
    HEARTH_ASSERT(json_parse(a, span_text(tools_text), JSON_DEPTH_DEFAULT, &tools, NULL) == ERR_OK);
    record whole, pieces;
    span all = span_make(text.data ? text.data : "", text.size);
    run(tools, all, data[0], SIZE_MAX, &whole);
    run(tools, all, data[0], 1 + (data[0] >> 3), &pieces);
    HEARTH_ASSERT(whole.text.size == pieces.text.size);
    HEARTH_ASSERT(whole.text.size == 0 || memcmp(whole.text.data, pieces.text.data, whole.text.size) == 0);
    buffer *const buffers[] = {&whole.text, &whole.arguments, &pieces.text, &pieces.arguments, &text};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_deinit(buffers[i]);
    arena_destroy(a);
    return 0;
}
