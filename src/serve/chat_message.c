/* See chat_message.h. */
#include "serve/chat_message.h"

#include <stdlib.h>

#include "base/json.h"

void chat_message_deinit(chat_message *m) {
    buffer_deinit(&m->content);
    buffer_deinit(&m->reasoning);
    for (size_t i = 0; i < m->call_count; i++) {
        buffer_deinit(&m->calls[i].name);
        buffer_deinit(&m->calls[i].arguments);
    }
    free(m->calls);
    *m = (chat_message){0};
}

static void begin_call(chat_message *m, const hearth_event *event) {
    m->calls = mem_grow(m->calls, m->call_count + 1, sizeof *m->calls);
    chat_call *call = &m->calls[m->call_count++];
    *call = (chat_call){0};
    reply_id(call->id, "call_");
    buffer_append(&call->name, event->text, event->text_size);
}

void chat_message_add(chat_message *m, const hearth_event *event) {
    switch (event->type) {
        case HEARTH_EVENT_REASONING:
            buffer_append(&m->reasoning, event->text, event->text_size);
            break;
        case HEARTH_EVENT_CONTENT:
            buffer_append(&m->content, event->text, event->text_size);
            break;
        case HEARTH_EVENT_CALL_BEGIN:
            begin_call(m, event);
            break;
        case HEARTH_EVENT_CALL_ARGUMENTS:
            HEARTH_ASSERT(m->call_count > 0); /* pieces of the call begun last */
            buffer_append(&m->calls[m->call_count - 1].arguments, event->text, event->text_size);
            break;
        case HEARTH_EVENT_CALL_END:
        case HEARTH_EVENT_START:
        case HEARTH_EVENT_FINISH:
        case HEARTH_EVENT_ERROR:
            break;
    }
}

static void write_text(buffer *out, const buffer *text) { json_write_bytes(out, span_make(text->data, text->size)); }

static void write_calls(const chat_message *m, buffer *out) {
    buffer_text(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < m->call_count; i++) {
        const chat_call *call = &m->calls[i];
        buffer_printf(out, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", i ? "," : "", call->id);
        write_text(out, &call->name);
        buffer_text(out, ",\"arguments\":");
        write_text(out, &call->arguments);
        buffer_text(out, "}}");
    }
    buffer_text(out, "]");
}

void chat_message_write(const chat_message *m, buffer *out, const reply_identity *identity,
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
