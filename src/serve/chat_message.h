/* The whole answer as one chat.completion object. It is made of the same events as the stream (output_message), so that
 * both give the same message: content is null when there are only calls, reasoning_content is there only if any. */
#ifndef HEARTH_SERVE_CHAT_MESSAGE_H
#define HEARTH_SERVE_CHAT_MESSAGE_H

#include "hearth.h"
#include "serve/reply_parts.h"
#include "text/output_parser.h"

/* HEARTH_EVENT_REASONING to _CALL_END; others are ignored. */
void chat_message_add(output_message *m, const hearth_event *event);
/* The response body. finish: the HEARTH_EVENT_FINISH event. */
void chat_message_write(const output_message *m, buffer *out, const reply_identity *identity,
                        const hearth_event *finish);

#endif
