/* See generation.h. */
#include "engine/generation.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/stop_strings.h"

struct generation {
    const tokenizer *tokens;
    generation_emit *emit;
    void *context;
    output_parser *parser; /* NULL: raw */
    stop_strings stop;
    buffer bytes;   /* start of a character that is not complete yet */
    buffer text;    /* whole characters on their way to the parser */
    buffer content; /* past the stop strings, on its way to emit */
    bool reasoning;
};

static void send_content(generation *g) {
    if (g->content.size) g->emit(g->context, HEARTH_EVENT_CONTENT, 0, span_make(g->content.data, g->content.size));
    buffer_clear(&g->content);
}

static void take_content(generation *g, span text) {
    g->reasoning = false;
    stop_strings_feed(&g->stop, text, &g->content);
    send_content(g);
}

/* Content is interrupted by something else or over: a stop string cannot go on across it. */
static void flush_content(generation *g) {
    stop_strings_flush(&g->stop, &g->content);
    send_content(g);
}

static void on_output(void *context, const output_event *event) {
    static const hearth_event_type types[] = {[OUTPUT_REASONING] = HEARTH_EVENT_REASONING,
                                              [OUTPUT_CONTENT] = HEARTH_EVENT_CONTENT,
                                              [OUTPUT_CALL_BEGIN] = HEARTH_EVENT_CALL_BEGIN,
                                              [OUTPUT_CALL_ARGUMENTS] = HEARTH_EVENT_CALL_ARGUMENTS,
                                              [OUTPUT_CALL_END] = HEARTH_EVENT_CALL_END};
    generation *g = context;
    if (g->stop.hit) return;
    if (event->type == OUTPUT_CONTENT) {
        take_content(g, event->text);
        return;
    }
    g->reasoning = event->type == OUTPUT_REASONING;
    flush_content(g);
    g->emit(g->context, types[event->type], event->index, event->text);
}

generation *generation_create(const generation_options *o) {
    generation *g = mem_zero(1, sizeof *g);
    g->tokens = o->tokens;
    g->emit = o->emit;
    g->context = o->context;
    g->reasoning = o->reasoning_open && !o->raw;
    stop_strings_init(&g->stop, o->stop, o->stop_count);
    output_parser_options parser = {
        .tools = o->tools, .parse_calls = o->parse_calls, .reasoning_open = o->reasoning_open};
    if (!o->raw) g->parser = output_parser_create(&parser, on_output, g);
    return g;
}

void generation_destroy(generation *g) {
    if (!g) return;
    if (g->parser) output_parser_destroy(g->parser);
    stop_strings_deinit(&g->stop);
    buffer_deinit(&g->bytes);
    buffer_deinit(&g->text);
    buffer_deinit(&g->content);
    free(g);
}

/* Passes on the first `size` bytes. */
static void take_bytes(generation *g, size_t size) {
    if (!size) return;
    buffer_clear(&g->text);
    utf8_repair(&g->text, span_make(g->bytes.data, size));
    memmove(g->bytes.data, g->bytes.data + size, g->bytes.size - size);
    g->bytes.size -= size;
    span text = span_make(g->text.data, g->text.size);
    if (g->parser)
        output_parser_feed(g->parser, text);
    else
        take_content(g, text);
}

bool generation_feed(generation *g, int32_t id) {
    if (!g->tokens) {
        buffer_printf(&g->bytes, "%d ", id);
    } else {
        if (tokenizer_is_special(g->tokens, id)) return g->stop.hit;
        span bytes = tokenizer_bytes(g->tokens, id);
        buffer_append(&g->bytes, bytes.data, bytes.size);
    }
    take_bytes(g, utf8_complete(span_make(g->bytes.data, g->bytes.size)));
    return g->stop.hit;
}

void generation_finish(generation *g, bool truncated) {
    take_bytes(g, g->bytes.size); /* a character cut in the middle shows as U+FFFD */
    if (g->parser) output_parser_finish(g->parser, truncated);
    flush_content(g);
}

bool generation_in_reasoning(const generation *g) { return g->reasoning; }
int generation_calls(const generation *g) { return g->parser ? output_parser_calls(g->parser) : 0; }
