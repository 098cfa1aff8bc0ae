/* The model's text, as it streams, to a message: reasoning, content and tool calls (Qwen-XML form).
 *
 * Incremental and chop-invariant: the concatenated events are the same however the text is cut into feeds, and the
 * non-streamed message is built from the same events (output_message). Lossless for text: every byte that is not part
 * of a frame (think tags, call tags, the white space next to them) appears in an event. Time is linear; text is held
 * back only where docs/tool-calls.md, which defines every odd case, says so. */
#ifndef HEARTH_TEXT_OUTPUT_PARSER_H
#define HEARTH_TEXT_OUTPUT_PARSER_H

#include "base/error.h"
#include "base/json.h"

typedef enum {
    OUTPUT_REASONING,      /* text */
    OUTPUT_CONTENT,        /* text */
    OUTPUT_CALL_BEGIN,     /* text = function name */
    OUTPUT_CALL_ARGUMENTS, /* text = next piece of the arguments' JSON text */
    OUTPUT_CALL_END,       /* the pieces since CALL_BEGIN are one complete JSON object */
} output_event_type;

typedef struct output_event {
    output_event_type type;
    int index; /* call number, 0-based; 0 for text */
    span text; /* borrowed for the duration of the callback; valid UTF-8 */
} output_event;

typedef void output_sink(void *context, const output_event *event);

typedef struct output_parser output_parser;

/* tools: the normalised tools array or NULL; its schemas decide value types, and a call without <tool_call> is
 * recognised for its functions only. Borrowed: must outlive the parser. parse_calls alone decides whether calls are
 * recognised: false for tool_choice none and for requests without tools. reasoning_open: the prompt ended inside a
 * think block. */
typedef struct output_parser_options {
    const json *tools;
    bool parse_calls; /* false: calls stay text */
    bool reasoning_open;
} output_parser_options;

output_parser *output_parser_create(const output_parser_options *options, output_sink *sink, void *context);
void output_parser_destroy(output_parser *p);
/* text ends at a character border (utf8_complete); invalid bytes become U+FFFD. */
void output_parser_feed(output_parser *p, span text);
/* End of the output, once. truncated: the text was cut by a token limit or a stop string; an unfinished call then gives
 * no CALL_END. False: the model ended it; an unfinished call is closed where the text ends. */
void output_parser_finish(output_parser *p, bool truncated);
int output_parser_calls(const output_parser *p); /* complete calls so far */

/* ---- the message that the events make up; zero-initialise */

typedef struct output_call {
    buffer name, arguments; /* arguments: JSON text; a complete object if the call is complete */
    bool complete;
} output_call;

typedef struct output_message {
    buffer reasoning, content;
    output_call *calls; /* owned; call i has index i */
    int call_count;
} output_message;

void output_message_add(void *message, const output_event *event); /* an output_sink */
void output_message_deinit(output_message *message);

#endif
