/* The whole answer: engine events gathered to one chat.completion object. Built from the same events as the stream, so
 * that both give the same message: content is null when there are only calls, reasoning_content is there only if any. */
#ifndef HEARTH_SERVE_CHAT_MESSAGE_H
#define HEARTH_SERVE_CHAT_MESSAGE_H

#include "hearth.h"
#include "serve/reply_parts.h"

typedef struct chat_call {
    char id[REPLY_ID_SIZE];
    buffer name, arguments;
} chat_call;

typedef struct chat_message {
    buffer content, reasoning;
    chat_call *calls; /* owned */
    size_t call_count;
} chat_message;

void chat_message_deinit(chat_message *m);
/* HEARTH_EVENT_REASONING to _CALL_END; others are ignored. */
void chat_message_add(chat_message *m, const hearth_event *event);
/* The response body. finish: the HEARTH_EVENT_FINISH event. */
void chat_message_write(const chat_message *m, buffer *out, const reply_identity *identity, const hearth_event *finish);

#endif
