/* Reasoning, content and tool calls out of the model's text; output_parser.h has the contract, docs/tool-calls.md the
 * rules.
 *
 * A state machine over a small buffer. Each step looks at the text ahead and either consumes some of it or waits for
 * more; what it waits for is bounded (output_tags.h), so a feed rescans a few hundred bytes at most and the whole is
 * linear. Events of one kind are gathered during a feed and sent once.
 *
 * White space is the one thing that is held without bound: a run of it is sent only when text follows, because at the
 * ends of reasoning and next to a call it is frame.
 *
 * A call inside an open think block can be the call, when the model forgot </think>, or a draft of it: only </think> or
 * the end of the text tells. A second parser (the draft) then reads on and its events are queued; the raw text is kept
 * as well, to become reasoning if it was a draft after all. So that reasoning does not stop for good behind a mere
 * example of a call, PROSE_MAX bytes of text after a complete call settle that it was an example. */
#include "text/output_parser.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/output_tags.h"
#include "text/tool_schema.h"

enum {
    PARAMETERS_MAX = 512, /* of one call; a further <parameter= is text. Keeps the search for repeated names short */
    PROSE_MAX = 4096,     /* bytes of text after a complete call in an open think block */
    DRAFT_PIECE = 4096,   /* bytes given to the draft at a time */
};

typedef enum {
    AT_START,       /* <think> may come */
    IN_REASONING,   /* until </think> */
    IN_DRAFT,       /* a call in reasoning: held */
    IN_CONTENT,     /* after or without reasoning */
    IN_PARAMETERS,  /* in a call, between values */
    AT_VALUE,       /* behind <parameter=NAME>: one line end is frame */
    IN_VALUE,       /* until a closing tag that counts */
    BEHIND_FUNCTION /* </tool_call> may come */
} parser_state;

typedef struct queued {
    output_event_type type;
    int index;
    size_t start, size; /* of the text in queue_text */
} queued;

struct output_parser {
    output_parser_options options;
    output_sink *sink;
    void *context;

    parser_state state;
    buffer in; /* text fed and not consumed, from `at` on */
    size_t at;
    bool ended, cut; /* no more text comes; it was cut */

    /* Events not sent yet: all of one type and index. */
    buffer out;
    output_event_type out_type;
    int out_index;

    /* Text outside calls. */
    output_event_type text_type; /* OUTPUT_REASONING or OUTPUT_CONTENT */
    buffer space;                /* white space that is text only if more text follows */
    bool space_full;             /* white space behind a call adds nothing to it */
    bool text_seen;              /* of text_type, so far */
    bool frame_before;           /* a call or <think> is the last thing before the text to come */
    bool skip_lines;             /* line ends behind </think> are frame */
    bool line_start;             /* the text to come starts a line */

    /* The call at hand. */
    int begun, complete;
    bool open, stray; /* stray: text stands where parameters belong */
    const json *function;
    buffer keys; /* names given so far, each between line ends */
    int key_count;
    value_type type;
    buffer value; /* text of a value whose type is still open */
    size_t value_scanned;
    bool value_streams; /* it is a string and its opening quote is out */
    int depth;          /* calls opened inside the value */

    /* The draft, and what it said. */
    output_parser *draft;
    buffer raw, queue_text;
    queued *queue;
    size_t queue_count, queue_capacity;

    /* Of a draft itself. */
    bool is_draft, rejected;
    size_t consumed;    /* bytes of its text before `in` */
    size_t calls_end;   /* bytes of its text up to the end of the last call */
    size_t prose_bytes; /* content since then */
};

/* ---- events out */

static void send(output_parser *p, output_event_type type, int index, span text) {
    output_event event = {type, index, text};
    p->sink(p->context, &event);
}

static void flush(output_parser *p) {
    if (p->out.size) send(p, p->out_type, p->out_index, span_make(p->out.data, p->out.size));
    buffer_clear(&p->out);
}

/* The buffer that takes more text of this type. */
static buffer *out_of(output_parser *p, output_event_type type, int index) {
    if (p->out_type != type || p->out_index != index) flush(p);
    p->out_type = type;
    p->out_index = index;
    return &p->out;
}

static buffer *arguments(output_parser *p) { return out_of(p, OUTPUT_CALL_ARGUMENTS, p->begun - 1); }

/* ---- text ahead */

static span rest(const output_parser *p) { return span_make(p->in.data ? p->in.data + p->at : "", p->in.size - p->at); }

static tag_cursor cursor(const output_parser *p) { return (tag_cursor){rest(p), 0, p->ended}; }

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Offset of the next '<' from `from` on, or the size. */
static size_t find_tag(span text, size_t from) {
    const char *hit = from < text.size ? memchr(text.data + from, '<', text.size - from) : NULL;
    return hit ? (size_t)(hit - text.data) : text.size;
}

/* ---- text outside calls */

static size_t leading_space(span text) {
    size_t size = 0;
    while (size < text.size && is_space(text.data[size])) size++;
    return size;
}

static span skip(span text, size_t size) { return span_make(text.data + size, text.size - size); }

/* White space behind a call separates the text before it from the text behind it, if nothing else does. */
static span put_space_behind_call(output_parser *p, span text) {
    size_t size = leading_space(text);
    if (p->text_seen && !p->space_full) buffer_append(&p->space, text.data, size);
    return skip(text, size);
}

static void put_text(output_parser *p, span text) {
    if (text.size) p->line_start = text.data[text.size - 1] == '\n';
    while (p->skip_lines && text.size && text.data[0] == '\n') text = skip(text, 1);
    if (text.size) p->skip_lines = false;
    if (p->frame_before) text = put_space_behind_call(p, text);
    size_t end = text.size;
    while (end && is_space(text.data[end - 1])) end--;
    if (end) {
        buffer *out = out_of(p, p->text_type, 0);
        buffer_append(out, p->space.data, p->space.size);
        buffer_append(out, text.data, end);
        buffer_clear(&p->space);
        p->text_seen = true;
        p->frame_before = false;
    }
    buffer_append(&p->space, text.data + end, text.size - end);
}

/* A call begins or ends here: white space next to it is frame, unless text stands on both sides. */
static void mark_frame(output_parser *p) {
    if (!p->text_seen) buffer_clear(&p->space);
    p->space_full = p->space.size > 0;
    p->frame_before = true;
    p->line_start = true;
}

static void open_reasoning(output_parser *p) {
    p->text_type = OUTPUT_REASONING;
    p->frame_before = true;
    p->state = IN_REASONING;
}

static void close_reasoning(output_parser *p) {
    p->text_type = OUTPUT_CONTENT;
    buffer_clear(&p->space);
    p->text_seen = p->frame_before = false;
    p->skip_lines = p->line_start = true;
    p->state = IN_CONTENT;
}

/* A prompt that ends inside a think block says so; a model whose prompt does not open the block may open it itself. */
static bool step_start(output_parser *p) {
    tag_cursor c = cursor(p);
    tag_answer answer = tag_space(&c);
    if (answer == TAG_YES) answer = tag_literal(&c, "<think>");
    if (answer == TAG_WAIT) return false;
    if (answer == TAG_YES) p->at += c.at;
    p->state = IN_CONTENT;
    if (answer == TAG_YES || p->options.reasoning_open) open_reasoning(p);
    return true;
}

/* ---- calls */

static void begin_call(output_parser *p, span name) {
    mark_frame(p);
    flush(p);
    p->prose_bytes = 0;
    p->open = true;
    p->stray = false;
    p->function = tool_find(p->options.tools, name);
    p->key_count = 0;
    buffer_clear(&p->keys);
    buffer_char(&p->keys, '\n');
    send(p, OUTPUT_CALL_BEGIN, p->begun++, name);
    p->state = IN_PARAMETERS;
}

static void end_call(output_parser *p, parser_state next) {
    buffer_text(arguments(p), p->key_count ? "}" : "{}");
    flush(p);
    send(p, OUTPUT_CALL_END, p->begun - 1, (span){"", 0});
    p->complete++;
    p->open = false;
    mark_frame(p);
    p->calls_end = p->consumed + p->at;
    p->state = next;
}

/* "\nNAME\n" is looked for; names hold no line end. */
static bool is_given(const output_parser *p, span name) {
    span keys = span_make(p->keys.data, p->keys.size);
    while (keys.size > name.size + 1) {
        keys = skip(keys, 1);
        if (span_starts(keys, name) && keys.data[name.size] == '\n') return true;
        const char *line = memchr(keys.data, '\n', keys.size);
        keys = skip(keys, (size_t)(line - keys.data));
    }
    return false;
}

static bool may_give(const output_parser *p, span name) { return p->key_count < PARAMETERS_MAX && !is_given(p, name); }

static void begin_value(output_parser *p, span name) {
    buffer *out = arguments(p);
    buffer_char(out, p->key_count++ ? ',' : '{');
    json_write_string(out, name, JSON_COMPACT);
    buffer_char(out, ':');
    buffer_append(&p->keys, name.data, name.size);
    buffer_char(&p->keys, '\n');
    p->type = tool_value_type(p->function, name);
    buffer_clear(&p->value);
    p->value_scanned = 0;
    p->value_streams = false;
    p->depth = 0;
    p->state = AT_VALUE;
}

/* Text as the inside of a JSON string: as json_write_string has it, without the quotes. */
static void put_escaped(output_parser *p, span text) {
    buffer *out = arguments(p);
    size_t start = out->size;
    json_write_string(out, text, JSON_COMPACT);
    out->size -= 2;
    memmove(out->data + start, out->data + start + 1, out->size - start);
    out->data[out->size] = 0;
}

static void stream_value(output_parser *p) {
    buffer_char(arguments(p), '"');
    put_escaped(p, span_make(p->value.data, p->value.size));
    p->value_streams = true;
}

static void put_value(output_parser *p, span text) {
    if (p->value_streams) {
        if (text.size) put_escaped(p, text);
        return;
    }
    buffer_append(&p->value, text.data, text.size);
    if (tool_value_is_string(p->type, span_make(p->value.data, p->value.size), &p->value_scanned)) stream_value(p);
}

static void end_value(output_parser *p) {
    if (p->value_streams)
        buffer_char(arguments(p), '"');
    else
        tool_value_write(arguments(p), p->type, span_make(p->value.data ? p->value.data : "", p->value.size));
    p->state = IN_PARAMETERS;
}

/* Text between <function=NAME> and the first parameter: a model that forgot the parameter tags. It is no argument, and
 * it must not get lost. */
static void put_stray(output_parser *p) {
    span text = rest(p);
    size_t size = find_tag(text, text.data[0] == '<');
    put_text(p, span_make(text.data, size));
    p->at += size;
    p->stray = true;
}

static bool step_parameters(output_parser *p) {
    span text = rest(p), name;
    if (is_space(text.data[0]) && !p->stray) {
        p->at += leading_space(text);
        return true;
    }
    tag_cursor parameter = cursor(p), function = cursor(p), call = cursor(p), next = cursor(p);
    tag_answer is_parameter = tag_named(&parameter, "<parameter=", &name);
    if (is_parameter == TAG_YES && may_give(p, name)) {
        p->at += parameter.at;
        begin_value(p, name);
        return true;
    }
    if (tag_literal(&function, "</function>") == TAG_YES) {
        p->at += function.at;
        end_call(p, BEHIND_FUNCTION);
        return true;
    }
    tag_answer is_call = tag_literal(&call, "</tool_call>"), is_next = tag_call(&next, &name);
    if (is_call == TAG_YES || is_next == TAG_YES) {
        if (is_call == TAG_YES) p->at += call.at;
        end_call(p, IN_CONTENT);
        return true;
    }
    function = cursor(p);
    if (is_parameter == TAG_WAIT || is_call == TAG_WAIT || is_next == TAG_WAIT ||
        tag_literal(&function, "</function>") == TAG_WAIT)
        return false;
    put_stray(p);
    return true;
}

static bool step_behind_function(output_parser *p) {
    tag_cursor c = cursor(p);
    tag_answer answer = tag_space(&c);
    if (answer == TAG_YES) answer = tag_literal(&c, "</tool_call>");
    if (answer == TAG_WAIT) return false;
    if (answer == TAG_YES) {
        p->at += c.at;
        p->calls_end = p->consumed + p->at;
    }
    p->state = IN_CONTENT;
    return true;
}

static bool step_at_value(output_parser *p) {
    if (p->in.data[p->at] == '\n') p->at++;
    p->state = IN_VALUE;
    put_value(p, (span){"", 0}); /* a string's opening quote need not wait for its text */
    return true;
}

static bool step_plain_value(output_parser *p, size_t size) {
    put_value(p, span_make(rest(p).data, size));
    p->at += size;
    return size > 0;
}

/* Closes of a call inside the value: </function>, and </tool_call> if it comes next. */
static tag_answer inner_call_ends(tag_cursor *c) {
    tag_answer answer = tag_literal(c, "</function>");
    if (answer != TAG_YES) return answer;
    tag_cursor look = *c;
    answer = tag_space(&look);
    if (answer == TAG_YES) answer = tag_literal(&look, "</tool_call>");
    if (answer == TAG_YES) *c = look;
    return answer == TAG_WAIT ? TAG_WAIT : TAG_YES;
}

/* At a '<', after_line telling whether a line end is before it: no end of the value. Calls inside are counted. */
static bool step_tag_in_value(output_parser *p, bool after_line) {
    span name;
    tag_cursor call = cursor(p), close = cursor(p);
    call.at = close.at = after_line;
    tag_answer opens = tag_bare_call(&call, &name), closes = p->depth ? inner_call_ends(&close) : TAG_NO;
    if (opens == TAG_WAIT || closes == TAG_WAIT) return false;
    if (opens == TAG_YES) p->depth++;
    if (closes == TAG_YES) p->depth--;
    return step_plain_value(p, closes == TAG_YES ? close.at : (size_t)after_line + 1);
}

static bool step_value(output_parser *p) {
    span text = rest(p);
    size_t tag = find_tag(text, 0);
    bool after_line = tag > 0 && text.data[tag - 1] == '\n';
    if (tag > after_line) return step_plain_value(p, tag - after_line);
    if (tag == text.size) return p->ended && p->cut && step_plain_value(p, text.size);
    tag_cursor c = cursor(p);
    c.at = after_line;
    tag_value_end end = tag_find_value_end(c, after_line, p->depth, p->cut);
    if (end.answer == TAG_WAIT) return false;
    bool ends = end.answer == TAG_YES;
    if (ends && end.parameter) ends = may_give(p, end.name);
    if (ends && end.parameter && !end.closed) ends = tool_value_type(p->function, end.name).declared;
    if (!ends) return step_tag_in_value(p, after_line);
    end_value(p);
    p->at += after_line + (end.closed ? strlen("</parameter>") : 0);
    return true;
}

/* ---- reasoning and content */

static void begin_draft(output_parser *p);

static void take_text(output_parser *p, size_t size) {
    put_text(p, span_make(rest(p).data, size));
    p->at += size;
    p->prose_bytes += size;
    if (p->is_draft && p->prose_bytes > PROSE_MAX) p->rejected = true;
}

/* A call begins here; c moves behind its name. A call without <tool_call> must start a line and be declared. */
static tag_answer find_call(const output_parser *p, tag_cursor *c, span *name) {
    tag_answer answer = tag_call(c, name);
    if (answer != TAG_NO || !p->line_start) return answer;
    answer = tag_bare_call(c, name);
    return answer == TAG_YES && !tool_find(p->options.tools, *name) ? TAG_NO : answer;
}

static bool step_text(output_parser *p) {
    span text = rest(p), name;
    size_t tag = find_tag(text, 0);
    if (tag > 0) {
        take_text(p, tag);
        return true;
    }
    tag_cursor think = cursor(p), call = cursor(p);
    tag_answer is_think = p->state == IN_REASONING ? tag_literal(&think, "</think>") : TAG_NO;
    tag_answer is_call = p->options.parse_calls ? find_call(p, &call, &name) : TAG_NO;
    if (is_think == TAG_WAIT || is_call == TAG_WAIT) return false;
    if (is_think == TAG_YES) {
        p->at += think.at;
        close_reasoning(p);
    } else if (is_call == TAG_YES && p->state == IN_REASONING) {
        begin_draft(p);
    } else if (is_call == TAG_YES) {
        p->at += call.at;
        begin_call(p, name);
    } else {
        take_text(p, find_tag(text, 1));
    }
    return true;
}

/* ---- the draft */

static void run(output_parser *p);

static void queue_event(void *context, const output_event *event) {
    output_parser *p = context;
    if (p->queue_count == p->queue_capacity) {
        p->queue_capacity = p->queue_capacity ? p->queue_capacity * 2 : 16;
        p->queue = mem_grow(p->queue, p->queue_capacity, sizeof *p->queue);
    }
    p->queue[p->queue_count++] = (queued){event->type, event->index, p->queue_text.size, event->text.size};
    buffer_append(&p->queue_text, event->text.data, event->text.size);
}

static void begin_draft(output_parser *p) {
    p->draft = output_parser_create(&p->options, queue_event, p);
    p->draft->state = IN_CONTENT;
    p->draft->is_draft = true;
    p->queue_count = 0;
    buffer_clear(&p->queue_text);
    buffer_clear(&p->raw);
    p->state = IN_DRAFT;
}

/* The first `size` bytes of the held text are reasoning; what is left is looked at again. */
static void end_draft(output_parser *p, size_t size) {
    output_parser_destroy(p->draft);
    p->draft = NULL;
    p->state = IN_REASONING;
    put_text(p, span_make(p->raw.data, size));
    if (size == p->raw.size) return;
    buffer left = {0};
    span unread = rest(p);
    buffer_append(&left, p->raw.data + size, p->raw.size - size);
    buffer_append(&left, unread.data, unread.size);
    buffer_deinit(&p->in);
    p->in = left;
    p->at = 0;
}

/* The block was never closed: the calls are calls, text between and behind them is reasoning. */
static void accept_draft(output_parser *p) {
    for (size_t i = 0; i < p->queue_count; i++) {
        const queued *event = &p->queue[i];
        span text = span_make(p->queue_text.data + event->start, event->size);
        if (event->type == OUTPUT_CONTENT) {
            put_text(p, text);
            continue;
        }
        if (event->type == OUTPUT_CALL_BEGIN) mark_frame(p);
        flush(p);
        send(p, event->type, event->index, text);
    }
    p->begun = p->draft->begun;
    p->complete = p->draft->complete;
    output_parser_destroy(p->draft);
    p->draft = NULL;
    p->state = IN_CONTENT;
}

/* Bytes of the text ahead that surely come before a </think>, at most DRAFT_PIECE; *closes: it comes right behind. */
static size_t draft_piece(const output_parser *p, bool *closes) {
    span text = rest(p);
    size_t tag = 0;
    tag_answer answer = TAG_NO;
    for (; tag < DRAFT_PIECE; tag++) {
        tag = find_tag(text, tag);
        if (tag >= text.size) break;
        tag_cursor c = cursor(p);
        c.at = tag;
        answer = tag_literal(&c, "</think>");
        if (answer != TAG_NO) break;
    }
    *closes = answer == TAG_YES && tag <= DRAFT_PIECE;
    if (tag > DRAFT_PIECE) {
        *closes = false;
        tag = utf8_complete(span_make(text.data, DRAFT_PIECE));
    }
    return tag;
}

static void feed_draft(output_parser *p, span text) {
    buffer_append(&p->raw, text.data, text.size);
    buffer_append(&p->draft->in, text.data, text.size);
    run(p->draft);
}

static bool step_draft(output_parser *p) {
    bool closes;
    size_t size = draft_piece(p, &closes);
    if (size) {
        feed_draft(p, span_make(rest(p).data, size));
        p->at += size;
    }
    if (p->draft->rejected)
        end_draft(p, p->draft->calls_end);
    else if (closes)
        end_draft(p, p->raw.size);
    else
        return size > 0;
    return true;
}

static void finish_draft(output_parser *p) {
    output_parser_finish(p->draft, p->cut);
    if (p->draft->rejected)
        end_draft(p, p->draft->calls_end);
    else
        accept_draft(p);
}

/* ---- running */

static bool step(output_parser *p) {
    if (p->state == IN_DRAFT) return step_draft(p);
    if (p->rejected || p->at == p->in.size) return false;
    switch (p->state) {
        case AT_START:
            return step_start(p);
        case IN_REASONING:
        case IN_CONTENT:
            return step_text(p);
        case IN_PARAMETERS:
            return step_parameters(p);
        case AT_VALUE:
            return step_at_value(p);
        case IN_VALUE:
            return step_value(p);
        default:
            return step_behind_function(p);
    }
}

static void run(output_parser *p) {
    while (step(p)) continue;
    flush(p);
    p->consumed += p->at;
    if (p->at) memmove(p->in.data, p->in.data + p->at, p->in.size - p->at);
    p->in.size -= p->at;
    p->at = 0;
}

output_parser *output_parser_create(const output_parser_options *options, output_sink *sink, void *context) {
    output_parser *p = mem_zero(1, sizeof *p);
    p->options = *options;
    p->sink = sink;
    p->context = context;
    p->text_type = OUTPUT_CONTENT;
    p->line_start = true;
    return p;
}

void output_parser_destroy(output_parser *p) {
    if (!p) return;
    output_parser_destroy(p->draft);
    buffer *const buffers[] = {&p->in, &p->out, &p->space, &p->keys, &p->value, &p->raw, &p->queue_text};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_deinit(buffers[i]);
    free(p->queue);
    free(p);
}

void output_parser_feed(output_parser *p, span text) {
    if (utf8_valid(text))
        buffer_append(&p->in, text.data, text.size);
    else
        utf8_repair(&p->in, text);
    run(p);
}

/* What is open when the model ends its text by itself is closed there. When the text was cut it stays open, and a value
 * whose type was not settled yet is shown as an unfinished string. */
static void finish_call(output_parser *p) {
    bool in_value = p->state == AT_VALUE || p->state == IN_VALUE;
    if (in_value && !p->cut) end_value(p);
    if (in_value && p->cut && !p->value_streams) stream_value(p);
    if (!p->cut) end_call(p, IN_CONTENT);
}

void output_parser_finish(output_parser *p, bool truncated) {
    HEARTH_ASSERT(!p->ended);
    p->cut = truncated;
    run(p);
    if (truncated && p->state == IN_PARAMETERS) buffer_clear(&p->in); /* the beginning of a tag */
    p->ended = true;
    run(p);
    while (p->draft) {
        finish_draft(p);
        run(p);
    }
    if (p->open) finish_call(p);
    if (!p->frame_before) buffer_append(out_of(p, p->text_type, 0), p->space.data, p->space.size);
    flush(p);
}

int output_parser_calls(const output_parser *p) { return p->complete; }
