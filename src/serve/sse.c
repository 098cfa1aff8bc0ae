/* See sse.h. */
#include "serve/sse.h"

#include "base/json.h"

void sse_init(sse *s, const reply_identity *identity, bool include_usage) {
    *s = (sse){.include_usage = include_usage};
    buffer_text(&s->prefix, "data: {");
    reply_write_identity(&s->prefix, identity, "chat.completion.chunk");
}

void sse_deinit(sse *s) { buffer_deinit(&s->prefix); }

static void open_delta(const sse *s, buffer *out) {
    buffer_append(out, s->prefix.data, s->prefix.size);
    buffer_text(out, ",\"choices\":[{\"index\":0,\"delta\":{");
}

static void close_delta(const sse *s, buffer *out, const char *finish_reason) {
    buffer_text(out, "},\"logprobs\":null,\"finish_reason\":");
    if (finish_reason)
        buffer_printf(out, "\"%s\"", finish_reason);
    else
        buffer_text(out, "null");
    buffer_text(out, s->include_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

void sse_begin(const sse *s, buffer *out) {
    open_delta(s, out);
    buffer_text(out, "\"role\":\"assistant\"");
    close_delta(s, out, NULL);
}

static void text_delta(const sse *s, buffer *out, const char *name, const hearth_event *event) {
    open_delta(s, out);
    buffer_printf(out, "\"%s\":", name);
    json_write_bytes(out, span_make(event->text, event->text_size));
    close_delta(s, out, NULL);
}

static void call_begin(const sse *s, buffer *out, const hearth_event *event) {
    char id[REPLY_ID_SIZE];
    reply_id(id, "call_");
    open_delta(s, out);
    buffer_printf(out, "\"tool_calls\":[{\"index\":%d,\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":",
                  event->index, id);
    json_write_bytes(out, span_make(event->text, event->text_size));
    buffer_text(out, ",\"arguments\":\"\"}}]");
    close_delta(s, out, NULL);
}

static void call_arguments(const sse *s, buffer *out, const hearth_event *event) {
    open_delta(s, out);
    buffer_printf(out, "\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":", event->index);
    json_write_bytes(out, span_make(event->text, event->text_size));
    buffer_text(out, "}}]");
    close_delta(s, out, NULL);
}

static void finish(const sse *s, buffer *out, const hearth_event *event) {
    open_delta(s, out);
    close_delta(s, out, reply_finish_reason(event->finish));
    if (s->include_usage) {
        buffer_append(out, s->prefix.data, s->prefix.size);
        buffer_text(out, ",\"choices\":[],\"usage\":");
        reply_write_usage(out, &event->usage);
        buffer_text(out, "}\n\n");
    }
    buffer_text(out, "data: [DONE]\n\n");
}

void sse_event(const sse *s, buffer *out, const hearth_event *event) {
    switch (event->type) {
        case HEARTH_EVENT_REASONING:
            text_delta(s, out, "reasoning_content", event);
            break;
        case HEARTH_EVENT_CONTENT:
            text_delta(s, out, "content", event);
            break;
        case HEARTH_EVENT_CALL_BEGIN:
            call_begin(s, out, event);
            break;
        case HEARTH_EVENT_CALL_ARGUMENTS:
            call_arguments(s, out, event);
            break;
        case HEARTH_EVENT_FINISH:
            finish(s, out, event);
            break;
        case HEARTH_EVENT_CALL_END:
        case HEARTH_EVENT_START:
        case HEARTH_EVENT_ERROR:
            break;
    }
}

void sse_error(buffer *out, const api_error *e) {
    buffer_text(out, "data: ");
    api_error_write(out, e);
    buffer_text(out, "\n\n");
}
