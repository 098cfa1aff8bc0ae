/* See chat_message.h. */
#include "serve/chat_message.h"

#include "base/json.h"

void chat_message_add(output_message *m, const hearth_event *event) {
    static const struct {
        hearth_event_type from;
        output_event_type to;
    } map[] = {{HEARTH_EVENT_REASONING, OUTPUT_REASONING},
               {HEARTH_EVENT_CONTENT, OUTPUT_CONTENT},
               {HEARTH_EVENT_CALL_BEGIN, OUTPUT_CALL_BEGIN},
               {HEARTH_EVENT_CALL_ARGUMENTS, OUTPUT_CALL_ARGUMENTS},
               {HEARTH_EVENT_CALL_END, OUTPUT_CALL_END}};
    for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
        if (map[i].from != event->type) continue;
        output_event part = {map[i].to, event->index, span_make(event->text, event->text_size)};
        output_message_add(m, &part);
    }
}

static void write_text(buffer *out, const buffer *text) { json_write_bytes(out, span_make(text->data, text->size)); }

static void write_calls(const output_message *m, buffer *out) {
    buffer_text(out, ",\"tool_calls\":[");
    for (int i = 0; i < m->call_count; i++) {
        const output_call *call = &m->calls[i];
        char id[REPLY_ID_SIZE];
        reply_id(id, "call_");
        buffer_printf(out, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", i ? "," : "", id);
        write_text(out, &call->name);
        buffer_text(out, ",\"arguments\":");
        write_text(out, &call->arguments);
        buffer_text(out, "}}");
    }
    buffer_text(out, "]");
}

void chat_message_write(const output_message *m, buffer *out, const reply_identity *identity,
                        const hearth_event *finish) {
    buffer_text(out, "{");
    reply_write_identity(out, identity, "chat.completion");
    buffer_text(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (m->call_count && !m->content.size)
        buffer_text(out, "null");
    else
        write_text(out, &m->content);
    if (m->reasoning.size) {
        buffer_text(out, ",\"reasoning_content\":");
        write_text(out, &m->reasoning);
    }
    if (m->call_count) write_calls(m, out);
    buffer_printf(out,
                  "},\"logprobs\":null,\"finish_reason\":\"%s\"}],\"usage\":", reply_finish_reason(finish->finish));
    reply_write_usage(out, &finish->usage);
    buffer_text(out, "}\n");
}
