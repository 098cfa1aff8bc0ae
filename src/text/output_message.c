/* Collecting events into a message; see output_parser.h. The array of calls doubles at each power of two. */
#include <stdlib.h>

#include "text/output_parser.h"

static output_call *call_new(output_message *m) {
    size_t count = (size_t)m->call_count;
    if ((count & (count - 1)) == 0) m->calls = mem_grow(m->calls, count ? count * 2 : 1, sizeof *m->calls);
    m->calls[m->call_count] = (output_call){0};
    return &m->calls[m->call_count++];
}

void output_message_add(void *message, const output_event *event) {
    output_message *m = message;
    buffer *to = NULL;
    switch (event->type) {
        case OUTPUT_REASONING:
            to = &m->reasoning;
            break;
        case OUTPUT_CONTENT:
            to = &m->content;
            break;
        case OUTPUT_CALL_BEGIN:
            HEARTH_ASSERT(event->index == m->call_count);
            to = &call_new(m)->name;
            break;
        case OUTPUT_CALL_ARGUMENTS:
        case OUTPUT_CALL_END:
            HEARTH_ASSERT(event->index == m->call_count - 1 && !m->calls[event->index].complete);
            to = &m->calls[event->index].arguments;
            m->calls[event->index].complete = event->type == OUTPUT_CALL_END;
            break;
    }
    buffer_append(to, event->text.data, event->text.size);
}

void output_message_deinit(output_message *m) {
    for (int i = 0; i < m->call_count; i++) {
        buffer_deinit(&m->calls[i].name);
        buffer_deinit(&m->calls[i].arguments);
    }
    free(m->calls);
    buffer_deinit(&m->reasoning);
    buffer_deinit(&m->content);
    *m = (output_message){0};
}
