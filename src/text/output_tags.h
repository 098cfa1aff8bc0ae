/* The tag grammar of Qwen-XML tool calls, as questions about the text ahead.
 *
 * Each question is answered yes, no, or "wait": the text so far does not tell. The look-ahead is bounded (white space
 * between tags and names have limits), so "wait" ends after a few hundred bytes; at the end of the text it is never the
 * answer. The functions keep nothing: the same text gives the same answer however it arrived. */
#ifndef HEARTH_TEXT_OUTPUT_TAGS_H
#define HEARTH_TEXT_OUTPUT_TAGS_H

#include <stdbool.h>

#include "base/memory.h"

typedef enum { TAG_NO, TAG_YES, TAG_WAIT } tag_answer;

enum { TAG_SPACE_MAX = 64, TAG_NAME_MAX = 256 };

/* Text ahead. A question that is answered yes moves `at` behind what it matched, otherwise it stays. */
typedef struct tag_cursor {
    span text;
    size_t at;
    bool ended; /* nothing follows the text */
} tag_cursor;

tag_answer tag_literal(tag_cursor *c, const char *literal);
/* White space up to the next other byte or the end; no = more than TAG_SPACE_MAX of it. */
tag_answer tag_space(tag_cursor *c);
/* prefix ("<function="), then a name that ends in ">" or, the bracket being missing, before a line end. */
tag_answer tag_named(tag_cursor *c, const char *prefix, span *name);

/* <tool_call> <function=NAME> */
tag_answer tag_call(tag_cursor *c, span *name);
/* <function=NAME>, if <parameter= or </function> comes next. */
tag_answer tag_bare_call(tag_cursor *c, span *name);

/* Whether a value ends here. after_line: a line end comes just before; depth: calls opened inside the value and not
 * closed; cut: the text was cut, so that its end closes nothing. */
typedef struct tag_value_end {
    tag_answer answer;
    bool closed;    /* a </parameter> is here; it belongs to the frame */
    bool parameter; /* what follows is <parameter=NAME */
    span name;
} tag_value_end;
tag_value_end tag_find_value_end(tag_cursor c, bool after_line, int depth, bool cut);

#endif
