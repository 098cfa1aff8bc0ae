/* The model's text, as it streams, to a message: reasoning, content and tool calls (Qwen-XML form).
 *
 * Incremental and chop-invariant: the concatenated events are the same however the text is cut into feeds, and the
 * non-streamed message is built from the same events. Lossless for text: every byte that is not part of a call's frame
 * appears in an event. docs/tool-calls.md defines every odd case. */
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
    int index; /* call number, 0-based */
    span text; /* borrowed for the duration of the callback; valid UTF-8 */
} output_event;

typedef void output_sink(void *context, const output_event *event);

typedef struct output_parser output_parser;

/* tools: the normalised tools array or NULL (then no call is recognised unless parse_calls says so); its schemas decide
 * value types. Borrowed: must outlive the parser. reasoning_open: the prompt ended inside a think block. */
typedef struct output_parser_options {
    const json *tools;
    bool parse_calls; /* false: calls stay text (tool_choice none) */
    bool reasoning_open;
} output_parser_options;

output_parser *output_parser_create(const output_parser_options *options, output_sink *sink, void *context);
void output_parser_destroy(output_parser *p);
void output_parser_feed(output_parser *p, span text); /* text ends at a character border (utf8_complete) */
/* End of the output. truncated: stopped by a token limit; an unfinished call then gives no CALL_END and its text so far
 * is defined in docs/tool-calls.md. */
void output_parser_finish(output_parser *p, bool truncated);
int output_parser_calls(const output_parser *p); /* complete calls so far */

#endif
