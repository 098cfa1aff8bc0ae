/* Tag grammar; see output_tags.h.
 *
 * The hard question is where a value ends, since a value may hold any text, tags included, and nothing is escaped. A
 * closing tag counts only with what may legally follow it:
 *
 *     </parameter> <parameter=NAME>            the next parameter
 *     </parameter> </function> [</tool_call>]  the end of the call
 *     </parameter> </tool_call>                the same, </function> missing
 *     [</function>] </tool_call> <tool_call> <function=NAME>   </parameter> missing, and the next call
 *     (line end) <parameter=NAME> (line end)   </parameter> missing; the caller checks that NAME is declared
 *     any closer, then the end of the text
 *
 * and not if the end of the call is followed by a </parameter> that itself counts: then all of this was inside a value.
 * Calls that are opened inside a value (depth) swallow their own closers; inside them only the end of the text ends the
 * value. */
#include "text/output_tags.h"

#include <string.h>

tag_answer tag_literal(tag_cursor *c, const char *literal) {
    size_t length = strlen(literal), rest = c->text.size - c->at;
    size_t common = rest < length ? rest : length;
    if (common && memcmp(c->text.data + c->at, literal, common) != 0) return TAG_NO;
    if (common < length) return c->ended ? TAG_NO : TAG_WAIT;
    c->at += length;
    return TAG_YES;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

tag_answer tag_space(tag_cursor *c) {
    size_t end = c->at;
    while (end < c->text.size && is_space(c->text.data[end])) end++;
    if (end - c->at > TAG_SPACE_MAX) return TAG_NO;
    if (end == c->text.size && !c->ended) return TAG_WAIT;
    c->at = end;
    return TAG_YES;
}

static span trim_blanks(span name) {
    while (name.size && (name.data[0] == ' ' || name.data[0] == '\t')) name.data++, name.size--;
    while (name.size && is_space(name.data[name.size - 1])) name.size--;
    return name;
}

tag_answer tag_named(tag_cursor *c, const char *prefix, span *name) {
    tag_cursor look = *c;
    tag_answer answer = tag_literal(&look, prefix);
    if (answer != TAG_YES) return answer;
    for (size_t end = look.at; end < look.text.size; end++) {
        char byte = look.text.data[end];
        if (byte == '<' || end - look.at > TAG_NAME_MAX) return TAG_NO;
        if (byte != '>' && byte != '\n') continue;
        *name = trim_blanks(span_make(look.text.data + look.at, end - look.at));
        if (!name->size) return TAG_NO;
        c->at = end + (byte == '>');
        return TAG_YES;
    }
    return c->ended || look.text.size - look.at > TAG_NAME_MAX ? TAG_NO : TAG_WAIT;
}

/* literal, then white space */
static tag_answer spaced(tag_cursor *c, const char *literal) {
    tag_cursor look = *c;
    tag_answer answer = tag_literal(&look, literal);
    if (answer == TAG_YES) answer = tag_space(&look);
    if (answer == TAG_YES) *c = look;
    return answer;
}

static bool at_end(const tag_cursor *c) { return c->ended && c->at == c->text.size; }

/* Yes if one says yes, else wait if one says wait. */
static tag_answer either(tag_answer x, tag_answer y) {
    if (x == TAG_YES || y == TAG_YES) return TAG_YES;
    return x == TAG_WAIT || y == TAG_WAIT ? TAG_WAIT : TAG_NO;
}

tag_answer tag_call(tag_cursor *c, span *name) {
    tag_cursor look = *c;
    tag_answer answer = spaced(&look, "<tool_call>");
    if (answer == TAG_YES) answer = tag_named(&look, "<function=", name);
    if (answer == TAG_YES) *c = look;
    return answer;
}

tag_answer tag_bare_call(tag_cursor *c, span *name) {
    tag_cursor look = *c;
    tag_answer answer = tag_named(&look, "<function=", name);
    if (answer != TAG_YES) return answer;
    tag_cursor behind = look;
    answer = tag_space(&behind);
    if (answer != TAG_YES) return answer;
    tag_cursor other = behind;
    answer = either(tag_literal(&behind, "<parameter="), tag_literal(&other, "</function>"));
    if (answer == TAG_YES) *c = look;
    return answer;
}

/* </parameter> with a tag after it that makes it count. */
static tag_answer counting_closer(tag_cursor c) {
    tag_answer answer = spaced(&c, "</parameter>");
    if (answer != TAG_YES) return answer;
    tag_cursor x = c, y = c;
    return either(tag_literal(&x, "</function>"), tag_literal(&y, "<parameter="));
}

/* Behind </function>, or behind the </tool_call> that stands for it: whether the call really ends. */
static tag_answer call_ends(tag_cursor c, int depth, bool cut) {
    tag_cursor look = c;
    tag_answer answer = tag_space(&look);
    if (answer == TAG_WAIT) return TAG_WAIT;
    if (answer == TAG_YES) {
        answer = spaced(&look, "</tool_call>");
        if (answer == TAG_WAIT) return TAG_WAIT;
        if (at_end(&look)) return depth == 0 || !cut ? TAG_YES : TAG_NO;
        answer = counting_closer(look);
        if (answer != TAG_NO) return answer == TAG_YES ? TAG_NO : TAG_WAIT;
    }
    return depth == 0 ? TAG_YES : TAG_NO;
}

/* c is behind "</parameter>". */
static tag_value_end after_parameter(tag_cursor c, int depth, bool cut) {
    tag_value_end end = {.closed = true};
    end.answer = tag_space(&c);
    if (end.answer != TAG_YES) return end;
    if (at_end(&c)) {
        end.answer = depth == 0 || !cut ? TAG_YES : TAG_NO;
        return end;
    }
    if (depth == 0) {
        tag_cursor look = c;
        end.answer = tag_named(&look, "<parameter=", &end.name);
        end.parameter = end.answer == TAG_YES;
        if (end.answer != TAG_NO) return end;
    }
    tag_cursor function = c, call = c;
    tag_answer x = tag_literal(&function, "</function>"), y = tag_literal(&call, "</tool_call>");
    end.answer = either(x, y);
    if (end.answer == TAG_YES) end.answer = call_ends(x == TAG_YES ? function : call, depth, cut);
    return end;
}

/* Behind closers that miss a </parameter> before them: weak evidence, so only the end of the text or the next call
 * lets them count. */
static tag_answer weak_end(tag_cursor c, int depth, bool cut) {
    if (at_end(&c)) return depth == 0 || !cut ? TAG_YES : TAG_NO;
    span name;
    return depth == 0 ? tag_call(&c, &name) : TAG_NO;
}

/* "</function>", "</function> </tool_call>" or "</tool_call>" without "</parameter>" before it. */
static tag_answer unclosed_value(tag_cursor c, int depth, bool cut) {
    tag_cursor call = c;
    tag_answer answer = spaced(&c, "</function>");
    if (answer == TAG_WAIT) return TAG_WAIT;
    if (answer == TAG_YES && at_end(&c)) return weak_end(c, depth, cut);
    if (answer == TAG_YES) call = c;
    answer = spaced(&call, "</tool_call>");
    return answer == TAG_YES ? weak_end(call, depth, cut) : answer;
}

static tag_value_end unclosed_parameter(tag_cursor c) {
    tag_value_end end = {0};
    end.answer = tag_named(&c, "<parameter=", &end.name);
    if (end.answer == TAG_YES) {
        bool line = c.at < c.text.size && c.text.data[c.at] == '\n' && c.text.data[c.at - 1] == '>';
        end.answer = line ? TAG_YES : c.at == c.text.size && !c.ended ? TAG_WAIT : TAG_NO;
    }
    end.parameter = end.answer == TAG_YES;
    return end;
}

tag_value_end tag_find_value_end(tag_cursor c, bool after_line, int depth, bool cut) {
    tag_cursor look = c;
    tag_answer answer = tag_literal(&look, "</parameter>");
    if (answer == TAG_YES) return after_parameter(look, depth, cut);
    if (after_line && depth == 0) {
        tag_value_end end = unclosed_parameter(c);
        if (end.answer != TAG_NO) return end;
    }
    return (tag_value_end){.answer = either(answer, unclosed_value(c, depth, cut))};
}
