/* Output parser: every odd shape of an answer, cut in every way, against the events docs/tool-calls.md promises. */
#include "text/output_parser.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "support.h"
#include "text/message.h"
#include "text/tool_schema.h"

/* ---- tools used by most cases */

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"command\":{\"type\":\"string\"},\"timeout\":{\"type\":\"integer\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"write\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"},\"mode\":{\"type\":\"integer\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"a.b-c_d.0123456789012345678901234567890123456789012345678901234\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"$x y\":{\"type\":\"number\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"typed\",\"parameters\":{\"type\":\"object\","
    "\"$defs\":{\"Color\":{\"enum\":[\"red\",\"1\"]},\"Id\":{\"$ref\":\"#/$defs/Num\"},\"Num\":{\"type\":\"integer\"},"
    "\"Loop\":{\"anyOf\":[{\"$ref\":\"#/$defs/Loop\"},{\"$ref\":\"#/$defs/Loop\"},{\"type\":\"null\"}]}},"
    "\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},\"n\":{\"type\":\"number\"},"
    "\"b\":{\"type\":\"boolean\"},\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"o\":{\"type\":\"object\"},\"z\":{\"type\":\"null\"},\"any\":{\"description\":\"anything\"},"
    "\"sn\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},\"in\":{\"type\":[\"integer\",\"null\"]},"
    "\"si\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},\"as\":{\"type\":[\"array\",\"string\"]},"
    "\"ref\":{\"$ref\":\"#/$defs/Id\"},\"color\":{\"$ref\":\"#/$defs/Color\"},\"level\":{\"enum\":[1,2,3.5]},"
    "\"mix\":{\"enum\":[\"1\",2,null]},\"k\":{\"const\":7},\"nu\":{\"type\":\"integer\",\"nullable\":true},"
    "\"all\":{\"allOf\":[{\"type\":[\"integer\",\"string\"]},{\"type\":[\"integer\",\"boolean\"]}]},"
    "\"loop\":{\"$ref\":\"#/$defs/Loop\"},\"lost\":{\"$ref\":\"#/$defs/Nope\"},"
    "\"bs\":{\"type\":[\"boolean\",\"string\"]},\"odd\":{\"type\":\"tuple\"}},"
    "\"additionalProperties\":{\"type\":\"boolean\"}}}}]";

typedef struct fixture {
    arena *a;
    const json *tools;
} fixture;

static const json *parse(arena *a, const char *text) {
    const json *value;
    error err;
    if (json_parse(a, span_text(text), JSON_DEPTH_DEFAULT, &value, &err)) fail_msg("%s", err.message);
    return value;
}

static int setup(void **state) {
    fixture *f = mem_zero(1, sizeof *f);
    f->a = arena_create();
    error err;
    if (tools_normalize(f->a, parse(f->a, tools_text), &f->tools, &err)) return -1;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    arena_destroy(f->a);
    free(f);
    return 0;
}

/* ---- a transcript of events: neighbours of one type joined, as R[..] C[..] B[name] A[json] E */

typedef struct transcript {
    buffer text;
    int open; /* event type whose bracket is open, -1 = none */
    output_message message;
    size_t events, largest;
} transcript;

static void transcript_close(transcript *t) {
    if (t->open >= 0) buffer_char(&t->text, ']');
    t->open = -1;
}

static void transcript_sink(void *context, const output_event *event) {
    transcript *t = context;
    assert_true(utf8_valid(event->text));
    output_message_add(&t->message, event);
    t->events++;
    if (event->text.size > t->largest) t->largest = event->text.size;
    bool joins = event->type != OUTPUT_CALL_BEGIN && event->type != OUTPUT_CALL_END;
    if (event->type != OUTPUT_CALL_END) assert_true(event->text.size > 0);
    if (!joins || t->open != (int)event->type) {
        transcript_close(t);
        buffer_char(&t->text, "RCBAE"[event->type]);
        if (event->type == OUTPUT_CALL_END) return;
        buffer_char(&t->text, '[');
        t->open = (int)event->type;
    }
    buffer_append(&t->text, event->text.data, event->text.size);
}

static void transcript_deinit(transcript *t) {
    buffer_deinit(&t->text);
    output_message_deinit(&t->message);
}

enum { THINK = 1, CUT = 2, NO_CALLS = 4, NO_TOOLS = 8 };

static output_parser *open_parser(const fixture *f, int flags, transcript *t) {
    *t = (transcript){.open = -1};
    output_parser_options options = {.tools = flags & NO_TOOLS ? NULL : f->tools,
                                     .parse_calls = !(flags & NO_CALLS),
                                     .reasoning_open = (flags & THINK) != 0};
    return output_parser_create(&options, transcript_sink, t);
}

static void close_parser(output_parser *p, int flags, transcript *t) {
    output_parser_finish(p, (flags & CUT) != 0);
    int complete = 0;
    for (int i = 0; i < t->message.call_count; i++) complete += t->message.calls[i].complete;
    assert_int_equal(output_parser_calls(p), complete);
    output_parser_destroy(p);
    transcript_close(t);
    buffer_reserve(&t->text, 0)[0] = 0;
}

/* Pieces of the given size, stretched to the next character border. */
static void feed_pieces(output_parser *p, span text, size_t size) {
    size_t at = 0;
    while (at < text.size) {
        size_t end = at + size < text.size ? at + size : text.size;
        while (end < text.size && ((unsigned char)text.data[end] & 0xC0) == 0x80) end++;
        output_parser_feed(p, span_make(text.data + at, end - at));
        at = end;
    }
}

static void run_pieces(const fixture *f, span text, int flags, size_t size, transcript *t) {
    output_parser *p = open_parser(f, flags, t);
    feed_pieces(p, text, size);
    close_parser(p, flags, t);
}

static void run_split(const fixture *f, span text, int flags, size_t at, transcript *t) {
    output_parser *p = open_parser(f, flags, t);
    output_parser_feed(p, span_make(text.data, at));
    output_parser_feed(p, span_make(text.data + at, text.size - at));
    close_parser(p, flags, t);
}

static uint32_t random_next(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 8; }

static void run_random(const fixture *f, span text, int flags, uint32_t seed, transcript *t) {
    output_parser *p = open_parser(f, flags, t);
    size_t at = 0;
    while (at < text.size) {
        size_t end = at + random_next(&seed) % 40;
        if (end > text.size) end = text.size;
        while (end < text.size && ((unsigned char)text.data[end] & 0xC0) == 0x80) end++;
        output_parser_feed(p, span_make(text.data + at, end - at));
        at = end;
    }
    close_parser(p, flags, t);
}

/* ---- cases */

typedef struct parse_case {
    const char *name, *text;
    int flags;
    const char *expected;
} parse_case;

#define CALL(name, inner) "<tool_call>\n<function=" name ">\n" inner "</function>\n</tool_call>"
#define PARAM(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define LS CALL("bash", PARAM("command", "ls"))
#define LS_EVENTS "B[bash]A[{\"command\":\"ls\"}]E"
#define WRITE_X "B[write]A[{\"content\":\""

static const parse_case cases[] = {
    /* text */
    {"empty", "", 0, ""},
    {"plain", "Hello, world", 0, "C[Hello, world]"},
    {"white space kept without calls", " \n a \n\n", 0, "C[ \n a \n\n]"},
    {"only white space", "\n\n", 0, "C[\n\n]"},
    {"angle brackets", "a < b << c <d> </e> <<", 0, "C[a < b << c <d> </e> <<]"},
    {"unicode", "caf\xc3\xa9 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe0\xb8\x81\xe0\xb8\xb3", 0,
     "C[caf\xc3\xa9 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe0\xb8\x81\xe0\xb8\xb3]"},
    {"literal tool_call in prose", "Use `<tool_call>` and `</tool_call>` tags.", 0,
     "C[Use `<tool_call>` and `</tool_call>` tags.]"},
    {"literal tool_call, then white space", "<tool_call>\n\n   x", 0, "C[<tool_call>\n\n   x]"},
    {"empty tool_call", "<tool_call></tool_call>", 0, "C[<tool_call></tool_call>]"},
    {"empty tool_call in lines", "a\n<tool_call>\n</tool_call>\nb", 0, "C[a\n<tool_call>\n</tool_call>\nb]"},
    {"json in tool_call is text", "<tool_call>\n{\"name\": \"bash\"}\n</tool_call>", 0,
     "C[<tool_call>\n{\"name\": \"bash\"}\n</tool_call>]"},
    {"stray closers", "</function> a </tool_call> b </parameter>", 0, "C[</function> a </tool_call> b </parameter>]"},
    {"function in prose", "call <function=bash> now", 0, "C[call <function=bash> now]"},
    {"function line in prose", "x\n<function=bash>\nls", 0, "C[x\n<function=bash>\nls]"},
    {"end text in mid tag", "x <tool_cal", 0, "C[x <tool_cal]"},
    {"end text in mid name", "<tool_call>\n<function=ba", 0, "C[<tool_call>\n<function=ba]"},
    {"no name", "<tool_call>\n<function=>\n</function>\n</tool_call>", 0,
     "C[<tool_call>\n<function=>\n</function>\n</tool_call>]"},
    {"think tag in the middle is text", "a <think> b </think> c", 0, "C[a <think> b </think> c]"},
    {"calls off", LS, NO_CALLS, "C[" LS "]"},
    {"calls off, thinking", "a <tool_call> b\n</think>\n\n" LS, NO_CALLS | THINK, "R[a <tool_call> b]C[" LS "]"},

    /* reasoning */
    {"reasoning and answer", "Let me see.\n</think>\n\nHi.", THINK, "R[Let me see.]C[Hi.]"},
    {"reasoning starts with a line end", "\nLet me.\n\n</think>\n\n  Hi\n", THINK, "R[Let me.]C[  Hi\n]"},
    {"empty reasoning", "</think>\n\nHi", THINK, "C[Hi]"},
    {"blank reasoning", "\n\n</think>\n\n", THINK, ""},
    {"reasoning never closed", "a\n b \n", THINK, "R[a\n b \n]"},
    {"think tag opened twice", "<think>\na</think>b", THINK, "R[a]C[b]"},
    {"think opened by the model", "<think>\na\n</think>\n\nb", 0, "R[a]C[b]"},
    {"second think block is text", "a</think><think>b</think>c", THINK, "R[a]C[<think>b</think>c]"},
    {"near miss of think", "a </thin k> </think", THINK, "R[a </thin k> </think]"},
    {"tool_call named in reasoning", "I use <tool_call> and </tool_call>.</think>ok", THINK,
     "R[I use <tool_call> and </tool_call>.]C[ok]"},

    /* calls */
    {"one call", LS, 0, LS_EVENTS},
    {"call after reasoning", "why\n</think>\n\n" LS, THINK, "R[why]" LS_EVENTS},
    {"text before", "Let me look.\n\n" LS, 0, "C[Let me look.]" LS_EVENTS},
    {"text after", LS "\n\nDone.", 0, LS_EVENTS "C[Done.]"},
    {"text before, between and after", "A\n" LS "\nB\n\n" LS "\nC", 0, "C[A]" LS_EVENTS "C[\nB]" LS_EVENTS "C[\n\nC]"},
    {"text around without white space", "A" LS "B", 0, "C[A]" LS_EVENTS "C[B]"},
    {"space behind separates", "A" LS " \nB\n", 0, "C[A]" LS_EVENTS "C[ \nB\n]"},
    {"white space before, text after", "\n\n" LS "\nDone", 0, LS_EVENTS "C[Done]"},
    {"white space around", "\n\n " LS " \n", 0, LS_EVENTS},
    {"two calls", LS "\n" CALL("now", ""), 0, LS_EVENTS "B[now]A[{}]E"},
    {"two calls of one tool", LS LS, 0, LS_EVENTS LS_EVENTS},
    {"no arguments", CALL("now", ""), 0, "B[now]A[{}]E"},
    {"no arguments, tight", "<tool_call><function=now></function></tool_call>", 0, "B[now]A[{}]E"},
    {"several parameters", CALL("bash", PARAM("command", "ls") PARAM("timeout", "30")), 0,
     "B[bash]A[{\"command\":\"ls\",\"timeout\":30}]E"},
    {"undeclared function", CALL("nope", PARAM("x", "1")), 0, "B[nope]A[{\"x\":\"1\"}]E"},
    {"undeclared parameter", CALL("bash", PARAM("x", "{}")), 0, "B[bash]A[{\"x\":\"{}\"}]E"},
    {"no tools given", CALL("bash", PARAM("timeout", "1")), NO_TOOLS, "B[bash]A[{\"timeout\":\"1\"}]E"},
    {"dots, dashes and 64 characters",
     CALL("a.b-c_d.0123456789012345678901234567890123456789012345678901234", PARAM("$x y", "1.50")), 0,
     "B[a.b-c_d.0123456789012345678901234567890123456789012345678901234]A[{\"$x y\":1.50}]E"},
    {"repeated parameter stays in the value", CALL("bash", PARAM("command", "a") PARAM("command", "b")), 0,
     "B[bash]A[{\"command\":\"a\\n</parameter>\\n<parameter=command>\\nb\"}]E"},
    {"inline values", "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>", 0,
     LS_EVENTS},

    /* framing of values */
    {"empty value", CALL("write", PARAM("content", "")), 0, WRITE_X "\"}]E"},
    {"empty value, one line end", CALL("write", "<parameter=content>\n</parameter>\n"), 0, WRITE_X "\"}]E"},
    {"a line end", CALL("write", PARAM("content", "\n")), 0, WRITE_X "\\n\"}]E"},
    {"a space", CALL("write", PARAM("content", " ")), 0, WRITE_X " \"}]E"},
    {"cr lf", CALL("write", PARAM("content", "\r\n")), 0, WRITE_X "\\r\\n\"}]E"},
    {"tab and space", CALL("write", PARAM("content", "\tA ")), 0, WRITE_X "\\tA \"}]E"},
    {"code", CALL("write", PARAM("content", "    if x:\n\n        return 1\n")), 0,
     WRITE_X "    if x:\\n\\n        return 1\\n\"}]E"},
    {"entities and escapes", CALL("write", PARAM("content", "&amp; \\n \"q\" \x01")), 0,
     WRITE_X "&amp; \\\\n \\\"q\\\" \\u0001\"}]E"},
    {"unicode value", CALL("write", PARAM("content", "\xc3\xa9\n\xf0\x9f\x98\x80")), 0,
     WRITE_X "\xc3\xa9\\n\xf0\x9f\x98\x80\"}]E"},

    /* tags inside values */
    {"closer in a value", CALL("write", PARAM("content", "a </parameter> b\n</parameter>\nc")), 0,
     WRITE_X "a </parameter> b\\n</parameter>\\nc\"}]E"},
    {"tool_call closer in a value", CALL("write", PARAM("content", "a\n</tool_call>\nb </function> c")), 0,
     WRITE_X "a\\n</tool_call>\\nb </function> c\"}]E"},
    {"openers in a value", CALL("write", PARAM("content", "<tool_call>\n<tool_call> <function=x> <parameter=y>")), 0,
     WRITE_X "<tool_call>\\n<tool_call> <function=x> <parameter=y>\"}]E"},
    {"a call in a value", CALL("write", PARAM("content", "see:\n" LS "\nend")), 0,
     WRITE_X "see:\\n<tool_call>\\n<function=bash>\\n<parameter=command>\\nls\\n</parameter>\\n</function>\\n"
             "</tool_call>\\nend\"}]E"},
    {"a call is the value", CALL("write", PARAM("content", LS)), 0,
     WRITE_X
     "<tool_call>\\n<function=bash>\\n<parameter=command>\\nls\\n</parameter>\\n</function>\\n</tool_call>\"}]E"},
    {"two calls in a value, then a parameter and a call",
     CALL("write", PARAM("content", LS "\n" LS "\n") PARAM("path", "x")) "\n" LS, 0,
     WRITE_X "<tool_call>\\n<function=bash>\\n<parameter=command>\\nls\\n</parameter>\\n</function>\\n</tool_call>\\n"
             "<tool_call>\\n<function=bash>\\n<parameter=command>\\nls\\n</parameter>\\n</function>\\n</tool_call>\\n"
             "\",\"path\":\"x\"}]E" LS_EVENTS},
    {"a call in a call in a value", CALL("write", PARAM("content", CALL("write", PARAM("content", LS)))), 0,
     WRITE_X "<tool_call>\\n<function=write>\\n<parameter=content>\\n<tool_call>\\n<function=bash>\\n"
             "<parameter=command>\\nls\\n</parameter>\\n</function>\\n</tool_call>\\n</parameter>\\n</function>\\n"
             "</tool_call>\"}]E"},
    {"closers are the value", CALL("write", PARAM("content", "</parameter>\n</function>\n</tool_call>")), 0,
     WRITE_X "</parameter>\\n</function>\\n</tool_call>\"}]E"},
    {"a call opened in a value and never closed", CALL("write", PARAM("content", "<function=x>\n<parameter=y>\n1")), 0,
     WRITE_X "<function=x>\\n<parameter=y>\\n1\"}]E"},
    {"special tokens in a value", CALL("write", PARAM("content", "<|im_end|>\n<|im_start|>x</think>")), 0,
     WRITE_X "<|im_end|>\\n<|im_start|>x</think>\"}]E"},

    /* missing pieces */
    {"no > on the function", "<tool_call>\n<function=bash\n" PARAM("command", "ls") "</function>\n</tool_call>", 0,
     LS_EVENTS},
    {"no > on the parameter", CALL("bash", "<parameter=command\nls\n</parameter>\n"), 0, LS_EVENTS},
    {"no </parameter> before </function>", CALL("bash", "<parameter=command>\nls\n"), 0, LS_EVENTS},
    {"no </parameter> before the next", CALL("bash", "<parameter=command>\nls\n" PARAM("timeout", "3")), 0,
     "B[bash]A[{\"command\":\"ls\",\"timeout\":3}]E"},
    {"undeclared parameter tag in a value is text", CALL("bash", PARAM("command", "ls\n<parameter=z>\n1")), 0,
     "B[bash]A[{\"command\":\"ls\\n<parameter=z>\\n1\"}]E"},
    {"no </function>", "<tool_call>\n<function=bash>\n" PARAM("command", "ls") "</tool_call>\nx", 0, LS_EVENTS "C[x]"},
    {"no </tool_call>", "<tool_call>\n<function=bash>\n" PARAM("command", "ls") "</function>\n", 0, LS_EVENTS},
    {"no </tool_call>, text", "<tool_call>\n<function=bash>\n" PARAM("command", "ls") "</function>\n\nx", 0,
     LS_EVENTS "C[x]"},
    {"no </tool_call>, next call", "<tool_call>\n<function=bash>\n" PARAM("command", "ls") "</function>\n" LS, 0,
     LS_EVENTS LS_EVENTS},
    {"only </tool_call>", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>", 0, LS_EVENTS},
    {"only </tool_call>, next call", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>\n" LS, 0,
     LS_EVENTS LS_EVENTS},
    {"no closers", "<tool_call>\n<function=bash>\n<parameter=command>\nls", 0, LS_EVENTS},
    {"no closers, line end", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n", 0, LS_EVENTS},
    {"end after </parameter>", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>", 0, LS_EVENTS},
    {"end in mid closer", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</param", 0,
     "B[bash]A[{\"command\":\"ls\\n</param\"}]E"},
    {"end after the name", "<tool_call>\n<function=bash>", 0, "B[bash]A[{}]E"},
    {"end in the parameter tag", "<tool_call>\n<function=bash>\n<parameter=com", 0, "B[bash]C[<parameter=com]A[{}]E"},
    {"no <tool_call>", "<function=bash>\n" PARAM("command", "ls") "</function>\n</tool_call>", 0, LS_EVENTS},
    {"no <tool_call>, text before", "Now:\n<function=bash>\n" PARAM("command", "ls") "</function>", 0,
     "C[Now:]" LS_EVENTS},
    {"no <tool_call>, in a line", "x <function=bash>\n" PARAM("command", "ls") "</function>", 0,
     "C[x <function=bash>\n" PARAM("command", "ls") "</function>]"},
    {"no <tool_call>, undeclared", "<function=nope>\n" PARAM("command", "ls") "</function>", 0,
     "C[<function=nope>\n" PARAM("command", "ls") "</function>]"},
    {"two functions in one tool_call",
     "<tool_call>\n<function=now>\n</function>\n<function=bash>\n" PARAM("command", "ls") "</function>\n</tool_call>",
     0, "B[now]A[{}]E" LS_EVENTS},
    {"closer twice", LS "\n</tool_call>", 0, LS_EVENTS "C[</tool_call>]"},
    {"text instead of parameters", CALL("bash", "ls -l\n"), 0, "B[bash]C[ls -l]A[{}]E"},
    {"text before the first parameter", CALL("bash", "run <this>\n" PARAM("command", "ls")), 0,
     "B[bash]C[run <this>]A[{\"command\":\"ls\"}]E"},
    {"a call where parameters belong", "<tool_call>\n<function=now>\n" LS, 0, "B[now]A[{}]E" LS_EVENTS},

    /* a call in an open think block */
    {"call in an unclosed block", "Let me look.\n" LS, THINK, "R[Let me look.]" LS_EVENTS},
    {"two calls in an unclosed block", "a\n" LS "\n" LS "\n", THINK, "R[a]" LS_EVENTS LS_EVENTS},
    {"call in an unclosed block, text after", "a\n" LS "\nand more", THINK, "R[a]" LS_EVENTS "R[\nand more]"},
    {"draft in a closed block", "a\n" LS "\nhm\n</think>\n\nb", THINK, "R[a\n" LS "\nhm]C[b]"},
    {"draft, then the call", "a " LS "\n</think>\n\n" LS, THINK, "R[a " LS "]" LS_EVENTS},
    {"unfinished draft", "a <tool_call>\n<function=bash>\n<parameter=command>\nhm</think>\n" LS, THINK,
     "R[a <tool_call>\n<function=bash>\n<parameter=command>\nhm]" LS_EVENTS},
    {"unfinished call in an unclosed block", "a\n<tool_call>\n<function=bash>\n<parameter=command>\nls", THINK,
     "R[a]" LS_EVENTS},
    {"call without <tool_call> in an unclosed block", "a\n<function=bash>\n" PARAM("command", "ls") "</function>",
     THINK, "R[a]" LS_EVENTS},

    /* cut by a limit */
    {"cut in text", "Hello <tool", CUT, "C[Hello <tool]"},
    {"cut in reasoning", "Hello\n", THINK | CUT, "R[Hello\n]"},
    {"cut after the name", "<tool_call>\n<function=bash>", CUT, "B[bash]"},
    {"cut in the parameter tag", "<tool_call>\n<function=bash>\n<parameter=com", CUT, "B[bash]"},
    {"cut in a string", "<tool_call>\n<function=bash>\n<parameter=command>\nls -", CUT,
     "B[bash]A[{\"command\":\"ls -]"},
    {"a number", CALL("bash", "<parameter=timeout>\n12"), 0, "B[bash]A[{\"timeout\":12}]E"},
    {"cut in a number", "<tool_call>\n<function=bash>\n<parameter=timeout>\n12", CUT, "B[bash]A[{\"timeout\":\"12]"},
    {"cut between parameters", "<tool_call>\n<function=bash>\n" PARAM("command", "ls"), CUT,
     "B[bash]A[{\"command\":\"ls\"]"},
    {"cut after </function>", "<tool_call>\n<function=bash>\n" PARAM("command", "ls") "</function>", CUT, LS_EVENTS},
    {"cut in a call inside a value", "<tool_call>\n<function=write>\n<parameter=content>\n" LS, CUT,
     WRITE_X "<tool_call>\\n<function=bash>\\n<parameter=command>\\nls\\n</parameter>\\n</function>\\n</tool_call>]"},
    {"cut after a whole call in an unclosed block", "a\n" LS, THINK | CUT, "R[a]" LS_EVENTS},
    {"cut in the second call", LS "\n<tool_call>\n<function=bash>\n<param", CUT, LS_EVENTS "B[bash]"},
};

enum { CASE_COUNT = sizeof cases / sizeof *cases };

static void check_equal(const char *name, const char *how, size_t number, const transcript *t, const char *expected) {
    if (strcmp(t->text.data, expected) != 0)
        fail_msg("%s (%s %zu):\n  got      %s\n  expected %s", name, how, number, t->text.data, expected);
}

static void test_cases(void **state) {
    for (size_t i = 0; i < CASE_COUNT; i++) {
        transcript t;
        run_pieces(*state, span_text(cases[i].text), cases[i].flags, SIZE_MAX / 2, &t);
        check_equal(cases[i].name, "whole", 0, &t, cases[i].expected);
        transcript_deinit(&t);
    }
}

/* Every chopping gives the same events. */
static void test_chopping(void **state) {
    static const size_t sizes[] = {1, 2, 3, 7};
    for (size_t i = 0; i < CASE_COUNT; i++) {
        span text = span_text(cases[i].text);
        transcript t;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            run_pieces(*state, text, cases[i].flags, sizes[s], &t);
            check_equal(cases[i].name, "pieces of", sizes[s], &t, cases[i].expected);
            transcript_deinit(&t);
        }
        for (size_t at = 0; at <= text.size; at++) {
            if (at < text.size && ((unsigned char)text.data[at] & 0xC0) == 0x80) continue;
            run_split(*state, text, cases[i].flags, at, &t);
            check_equal(cases[i].name, "split at", at, &t, cases[i].expected);
            transcript_deinit(&t);
        }
        for (uint32_t seed = 0; seed < 5; seed++) {
            run_random(*state, text, cases[i].flags, seed, &t);
            check_equal(cases[i].name, "random", seed, &t, cases[i].expected);
            transcript_deinit(&t);
        }
    }
}

/* ---- nothing is lost, wherever the text ends */

static const char *const tags[] = {"<tool_call>", "</tool_call>", "</function>", "</parameter>",
                                   "<think>",     "</think>",     "<function=",  "<parameter="};

/* Text without tags, brackets and white space, names included: what must be in the events. */
static void squeeze(buffer *out, span text) {
    for (size_t i = 0; i < text.size;) {
        span left = span_make(text.data + i, text.size - i);
        size_t skip = memchr("> \t\r\n", left.data[0], 5) ? 1 : 0;
        for (size_t t = 0; t < sizeof tags / sizeof *tags; t++)
            if (span_starts(left, span_text(tags[t]))) skip = strlen(tags[t]);
        if (!skip) buffer_char(out, left.data[0]);
        i += skip ? skip : 1;
    }
}

typedef struct gatherer {
    buffer text, arguments;
    arena *a;
} gatherer;

static void gather_arguments(gatherer *g) {
    const json *object;
    error err;
    char *copy = arena_copy(g->a, g->arguments.data, g->arguments.size);
    if (json_parse(g->a, span_text(copy), JSON_DEPTH_DEFAULT, &object, &err)) fail_msg("%s: %s", copy, err.message);
    assert_true(json_is(object, JSON_OBJECT));
    for (const json *value = object->first; value; value = value->next) {
        squeeze(&g->text, value->key);
        squeeze(&g->text, value->type == JSON_STRING ? value->text : value->source);
    }
}

static void gather(void *context, const output_event *event) {
    gatherer *g = context;
    switch (event->type) {
        case OUTPUT_REASONING:
        case OUTPUT_CONTENT:
            squeeze(&g->text, event->text);
            break;
        case OUTPUT_CALL_BEGIN:
            squeeze(&g->text, event->text);
            buffer_clear(&g->arguments);
            break;
        case OUTPUT_CALL_ARGUMENTS:
            buffer_append(&g->arguments, event->text.data, event->text.size);
            break;
        case OUTPUT_CALL_END:
            gather_arguments(g);
            break;
    }
}

static void check_lossless(const fixture *f, const char *name, span text, int flags) {
    gatherer g = {.a = arena_create()};
    buffer expected = {0};
    output_parser_options options = {f->tools, !(flags & NO_CALLS), (flags & THINK) != 0};
    output_parser *p = output_parser_create(&options, gather, &g);
    output_parser_feed(p, text);
    output_parser_finish(p, false);
    output_parser_destroy(p);
    squeeze(&expected, text);
    buffer_reserve(&expected, 0)[0] = 0;
    buffer_reserve(&g.text, 0)[0] = 0;
    if (strcmp(g.text.data, expected.data) != 0)
        fail_msg("%s, %zu bytes: lost text\n  got      %s\n  expected %s", name, text.size, g.text.data, expected.data);
    buffer_deinit(&expected);
    buffer_deinit(&g.text);
    buffer_deinit(&g.arguments);
    arena_destroy(g.a);
}

static void test_lossless_at_every_end(void **state) {
    for (size_t i = 0; i < CASE_COUNT; i++) {
        span text = span_text(cases[i].text);
        for (size_t end = 0; end <= text.size; end++) {
            if (end < text.size && ((unsigned char)text.data[end] & 0xC0) == 0x80) continue;
            check_lossless(*state, cases[i].name, span_make(text.data, end), cases[i].flags);
        }
    }
}

/* Complete calls are valid JSON, an incomplete one is not, and only the last one may be incomplete. */
static void check_calls(const char *name, size_t end, const output_message *message) {
    for (int i = 0; i < message->call_count; i++) {
        const output_call *call = &message->calls[i];
        arena *a = arena_create();
        const json *value;
        span arguments = span_make(call->arguments.data ? call->arguments.data : "", call->arguments.size);
        bool valid = json_parse(a, arguments, JSON_DEPTH_DEFAULT, &value, NULL) == ERR_OK;
        if (valid != call->complete || (!call->complete && i < message->call_count - 1))
            fail_msg("%s cut at %zu: call %d: %s", name, end, i, arguments.data);
        arena_destroy(a);
    }
}

static void test_cut_at_every_byte(void **state) {
    for (size_t i = 0; i < CASE_COUNT; i++) {
        size_t size = strlen(cases[i].text);
        for (size_t end = 0; end <= size; end++) {
            if (end < size && ((unsigned char)cases[i].text[end] & 0xC0) == 0x80) continue;
            span text = span_make(cases[i].text, end);
            transcript whole, t;
            run_pieces(*state, text, cases[i].flags | CUT, SIZE_MAX / 2, &whole);
            check_calls(cases[i].name, end, &whole.message);
            run_pieces(*state, text, cases[i].flags | CUT, 3, &t);
            check_equal(cases[i].name, "cut at", end, &t, whole.text.data);
            transcript_deinit(&t);
            transcript_deinit(&whole);
        }
    }
}

/* ---- values by schema */

static const struct {
    const char *key, *text, *json;
} values[] = {
    {"s", "null", "\"null\""},
    {"s", "123", "\"123\""},
    {"s", "true", "\"true\""},
    {"s", "[1]", "\"[1]\""},
    {"s", "\"q\"", "\"\\\"q\\\"\""},
    {"i", "123", "123"},
    {"i", "-0", "-0"},
    {"i", "123456789012345678901234567890", "123456789012345678901234567890"},
    {"i", "5.0", "5.0"},
    {"i", "1e3", "1e3"},
    {"i", "120e-1", "120e-1"},
    {"i", "5.5", "\"5.5\""},
    {"i", "1e-3", "\"1e-3\""},
    {"i", "abc", "\"abc\""},
    {"i", "", "\"\""},
    {"i", "007", "\"007\""},
    {"i", "True", "\"True\""},
    {"i", "null", "\"null\""},
    {"i", " 7\n", "7"},
    {"n", "1.50", "1.50"},
    {"n", "1E+2", "1E+2"},
    {"n", "NaN", "\"NaN\""},
    {"n", ".5", "\".5\""},
    {"b", "true", "true"},
    {"b", "True", "true"},
    {"b", "False", "false"},
    {"b", "FALSE", "\"FALSE\""},
    {"b", "1", "\"1\""},
    {"z", "null", "null"},
    {"z", "None", "null"},
    {"a", "[{\"a\": 1.0}, {\"b\": [ ]}]", "[{\"a\": 1.0}, {\"b\": [ ]}]"},
    {"a", "[1, 2", "\"[1, 2\""},
    {"a", "{}", "\"{}\""},
    {"o", "{\"b\":1,\"a\":\"\\u00e9\"}", "{\"b\":1,\"a\":\"\\u00e9\"}"},
    {"o", "{\n  \"x\": 1\n}", "{\n  \"x\": 1\n}"},
    {"o", "{'x': 1}", "\"{'x': 1}\""},
    {"o", "null", "\"null\""},
    {"any", "3", "3"},
    {"any", "null", "null"},
    {"any", "true", "true"},
    {"any", "True", "\"True\""},
    {"any", "text", "\"text\""},
    {"any", "{\"a\":1}", "{\"a\":1}"},
    {"any", "{a}", "\"{a}\""},
    {"any", "2024-01-02", "\"2024-01-02\""},
    {"any", "-", "\"-\""},
    {"any", "nullable", "\"nullable\""},
    {"any", "\"q\"", "\"\\\"q\\\"\""},
    {"any", " 3", "\" 3\""},
    {"sn", "null", "null"},
    {"sn", "None", "\"None\""},
    {"sn", "nul", "\"nul\""},
    {"sn", "null\n", "\"null\\n\""},
    {"sn", "3", "\"3\""},
    {"in", "null", "null"},
    {"in", "None", "null"},
    {"in", "4", "4"},
    {"si", "12", "12"},
    {"si", "12a", "\"12a\""},
    {"si", "1.5", "\"1.5\""},
    {"as", "[1]", "[1]"},
    {"as", "[x]", "\"[x]\""},
    {"as", "{}", "\"{}\""},
    {"ref", "9", "9"},
    {"ref", "x", "\"x\""},
    {"color", "1", "\"1\""},
    {"color", "red", "\"red\""},
    {"level", "2", "2"},
    {"level", "3.5", "3.5"},
    {"level", "high", "\"high\""},
    {"mix", "1", "\"1\""},
    {"mix", "2", "2"},
    {"mix", "null", "null"},
    {"k", "7", "7"},
    {"nu", "null", "null"},
    {"all", "3", "3"},
    {"all", "x", "\"x\""},
    {"loop", "null", "null"},
    {"loop", "[1]", "[1]"},
    {"lost", "1", "1"},
    {"bs", "true", "true"},
    {"bs", "True", "\"True\""},
    {"bs", "false", "false"},
    {"bs", "fals", "\"fals\""},
    {"odd", "[1]", "[1]"},
    {"extra", "true", "true"},
    {"extra", "x", "\"x\""},
};

static void test_values(void **state) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        buffer text = {0}, expected = {0};
        buffer_printf(&text,
                      "<tool_call>\n<function=typed>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</tool_call>",
                      values[i].key, values[i].text);
        buffer_printf(&expected, "B[typed]A[{\"%s\":%s}]E", values[i].key, values[i].json);
        static const size_t sizes[] = {SIZE_MAX / 2, 1, 2, 3, 7};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            transcript t;
            run_pieces(*state, span_make(text.data, text.size), 0, sizes[s], &t);
            check_equal(values[i].key, "pieces of", sizes[s], &t, expected.data);
            transcript_deinit(&t);
        }
        buffer_deinit(&text);
        buffer_deinit(&expected);
    }
}

/* Parameters schemas that are no plain object with properties. */
static void test_schema_forms(void **state) {
    static const struct {
        const char *parameters;
        unsigned kinds;
    } forms[] = {
        {"{}", VALUE_STRING},
        {"null", VALUE_STRING},
        {"{\"properties\":{\"x\":true}}", VALUE_ANY},
        {"{\"properties\":{\"x\":{\"type\":[]}}}", VALUE_ANY},
        {"{\"properties\":{\"x\":{\"type\":\"integer\",\"enum\":[\"a\"]}}}", VALUE_ANY},
        {"{\"additionalProperties\":false}", VALUE_STRING},
        {"{\"additionalProperties\":{\"type\":\"array\"}}", VALUE_ARRAY},
        {"{\"$ref\":\"#/definitions/P\",\"definitions\":{\"P\":{\"properties\":{\"x\":{\"type\":\"null\"}}}}}",
         VALUE_NULL},
        {"{\"$ref\":\"#\"}", VALUE_STRING},
        {"{\"allOf\":[{\"properties\":{\"y\":{}}},{\"properties\":{\"x\":{\"type\":\"object\"}}}]}", VALUE_OBJECT},
        {"{\"properties\":{\"x\":{\"$ref\":\"#/$defs/a~1b~0c/1\"}},\"$defs\":{\"a/b~c\":[0,{\"type\":\"boolean\"}]}}",
         VALUE_BOOLEAN},
        {"{\"properties\":{\"x\":{\"$ref\":\"other.json#/x\"}}}", VALUE_ANY},
        {"{\"properties\":{\"x\":{\"$ref\":\"#x\"}}}", VALUE_ANY},
        {"{\"properties\":{\"x\":{\"$ref\":\"#/properties/x\"}}}", VALUE_ANY},
        {"{\"properties\":{\"x\":{\"const\":\"a\"}}}", VALUE_STRING},
        {"{\"properties\":{\"x\":{\"type\":\"string\",\"format\":\"date\",\"anyOf\":[{\"minLength\":1}]}}}",
         VALUE_STRING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        arena *a = arena_create();
        json *function = json_new(a, JSON_OBJECT);
        json_set(function, span_text("parameters"), json_clone(a, parse(a, forms[i].parameters)));
        unsigned kinds = tool_value_type(function, span_text("x")).kinds;
        if (kinds != forms[i].kinds) fail_msg("%s: %u, not %u", forms[i].parameters, kinds, forms[i].kinds);
        arena_destroy(a);
    }
}

/* ---- streaming */

static size_t held(const fixture *f, const char *before, const char *piece, int flags) {
    transcript t;
    output_parser *p = open_parser(f, flags, &t);
    output_parser_feed(p, span_text(before));
    size_t events = t.events;
    output_parser_feed(p, span_text(piece));
    events = t.events - events;
    output_parser_destroy(p);
    transcript_deinit(&t);
    return events;
}

static void test_held_back_no_longer_than_needed(void **state) {
    const fixture *f = *state;
    assert_int_equal(held(f, "", "Hello", 0), 1);
    assert_int_equal(held(f, "a <tool_call>", "x", 0), 1);
    assert_int_equal(held(f, "a <tool_call>\n", "no function", 0), 1);
    assert_int_equal(held(f, "<tool_call>\n<function=bash", ">", 0), 1);                        /* name first */
    assert_int_equal(held(f, "<tool_call>\n<function=bash>\n<parameter=command>", "\n", 0), 1); /* the quote */
    assert_int_equal(held(f, "<tool_call>\n<function=bash>\n<parameter=command>\n", "l", 0), 1);
    assert_int_equal(held(f, "<tool_call>\n<function=typed>\n<parameter=sn>\nnu", "m", 0), 1);
    assert_int_equal(held(f, "<tool_call>\n<function=typed>\n<parameter=sn>\nab", "c", 0), 1);
    assert_int_equal(held(f, "think", " on", THINK), 1);
    char spaces[80];
    memset(spaces, ' ', sizeof spaces);
    spaces[79] = 0;
    assert_int_equal(held(f, "<tool_call>", spaces, 0), 1); /* too much white space for a call: known to be text */
}

static void test_long_string_streams(void **state) {
    transcript t;
    output_parser *p = open_parser(*state, 0, &t);
    output_parser_feed(p, span_text("<tool_call>\n<function=write>\n<parameter=content>\n"));
    for (int i = 0; i < 2000; i++) {
        size_t before = t.events;
        output_parser_feed(p, span_text("line of \"text\"\n"));
        assert_int_equal(t.events, before + 1);
    }
    output_parser_feed(p, span_text("\n</parameter>\n</function>\n</tool_call>"));
    close_parser(p, 0, &t);
    assert_true(t.largest < 100);
    assert_int_equal(t.message.call_count, 1);
    assert_true(t.message.calls[0].complete);
    assert_int_equal(t.message.calls[0].arguments.size, 2000 * 18 + strlen("{\"content\":\"\"}"));
    transcript_deinit(&t);
}

/* An example of a call in a long thought: reasoning goes on while the block is still open. */
static void test_example_in_a_long_thought(void **state) {
    for (size_t size = 1; size <= 8192; size *= 8) {
        for (int closed = 0; closed < 2; closed++) {
            buffer text = {0};
            buffer_text(&text, "Like this:\n" LS "\n");
            for (int i = 0; i < 1000; i++) buffer_text(&text, "more thought ");
            buffer_text(&text, closed ? "and " LS "\n</think>\n\nDone" : "and\n" LS);
            transcript t;
            output_parser *p = open_parser(*state, THINK, &t);
            feed_pieces(p, span_make(text.data, 6000), size);
            assert_true(t.message.reasoning.size > 4096);
            feed_pieces(p, span_make(text.data + 6000, text.size - 6000), size);
            close_parser(p, THINK, &t);
            assert_int_equal(t.message.call_count, closed ? 0 : 1);
            size_t expected = text.size - strlen(closed ? "\n</think>\n\nDone" : "\n" LS);
            assert_int_equal(t.message.reasoning.size, expected);
            assert_memory_equal(t.message.reasoning.data, text.data, expected);
            transcript_deinit(&t);
            buffer_deinit(&text);
        }
    }
}

/* The last bytes, held as a beginning of a tag until the end of the text, are what exceeds the limit. */
static void test_example_settled_by_the_end(void **state) {
    for (size_t size = 4080; size < 4100; size++) {
        buffer text = {0};
        buffer_text(&text, LS);
        for (size_t i = 0; i < size; i++) buffer_char(&text, 'x');
        buffer_text(&text, "<tool_call");
        for (size_t piece = 1; piece < 10000; piece *= 97) {
            transcript t;
            run_pieces(*state, span_make(text.data, text.size), THINK, piece, &t);
            bool example = size + strlen("<tool_call") > 4096;
            assert_int_equal(t.message.call_count, !example);
            assert_int_equal(t.message.reasoning.size, text.size - (example ? 0 : strlen(LS)));
            transcript_deinit(&t);
        }
        buffer_deinit(&text);
    }
}

/* ---- round trip of random arguments through the form the template writes */

static void random_text(buffer *out, uint32_t *seed) {
    static const char *const pieces[] = {"a",
                                         " ",
                                         "\n",
                                         "\r\n",
                                         "\t",
                                         "\"",
                                         "\\",
                                         "</parameter>",
                                         "\n</parameter>\n",
                                         "</function>",
                                         "<parameter=x>",
                                         "</tool_call>\n",
                                         "<tool_call>",
                                         "<function=",
                                         "null",
                                         "12",
                                         "{",
                                         "[1]",
                                         "<",
                                         ">",
                                         "\xc3\xa9",
                                         "\xf0\x9f\x98\x80",
                                         "&lt;",
                                         "</think>",
                                         LS,
                                         "\n\n",
                                         "</",
                                         "\n<"};
    int count = (int)(random_next(seed) % 12);
    for (int i = 0; i < count; i++) buffer_text(out, pieces[random_next(seed) % (sizeof pieces / sizeof *pieces)]);
}

/* A random text may spell a legal end by accident; such a text has no unique reading. */
static bool has_legal_end(const buffer *text) {
    static const char *const ends[] = {"</parameter>\n</function>",
                                       "</parameter></function>",
                                       "</parameter><parameter=",
                                       "</parameter>\n<parameter=",
                                       "</parameter>\n\n<parameter=",
                                       "</function></tool_call>",
                                       "</parameter></tool_call>",
                                       "</parameter>\n</tool_call>",
                                       "<function=",
                                       "</parameter>\r\n",
                                       "</parameter>\t",
                                       "</parameter> ",
                                       "</parameter>\n\n",
                                       "</parameter>\n\r",
                                       "</parameter>\n\t",
                                       "</parameter>\n ",
                                       "</tool_call>\n<tool_call>"};
    span all = span_make(text->data ? text->data : "", text->size);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (span_find(all, span_text(ends[i])) >= 0) return true;
    return false;
}

static void test_round_trip(void **state) {
    uint32_t seed = 7;
    int tried = 0, with_calls = 0;
    for (int round = 0; round < 20000; round++) {
        buffer a = {0}, b = {0}, text = {0}, expected = {0};
        random_text(&a, &seed);
        random_text(&b, &seed);
        bool nested = random_next(&seed) % 8 == 0; /* a whole call in a value is read back as well */
        bool usable = !has_legal_end(&a) && !has_legal_end(&b);
        if (nested && a.size) usable = usable && span_find(span_make(a.data, a.size), span_text("</tool_call>")) < 0;
        if (usable && nested) buffer_text(&a, LS);
        if (usable) {
            tried++;
            with_calls += nested;
            buffer_reserve(&a, 0)[0] = buffer_reserve(&b, 0)[0] = 0;
            buffer_printf(
                &text,
                CALL("typed", PARAM("s", "%s") PARAM("i", "%d") PARAM("o", "{\"k\": \"%d\"}") PARAM("sn", "x%s")),
                a.data, round, round, b.data);
            buffer_text(&expected, "B[typed]A[{\"s\":");
            json_write_string(&expected, span_make(a.data, a.size), JSON_COMPACT);
            buffer_printf(&expected, ",\"i\":%d,\"o\":{\"k\": \"%d\"},\"sn\":\"x", round, round);
            size_t quote = expected.size - 2;
            json_write_string(&expected, span_make(b.data, b.size), JSON_COMPACT);
            memmove(expected.data + quote + 2, expected.data + quote + 3, expected.size - quote - 3);
            expected.size--;
            expected.data[expected.size] = 0;
            buffer_text(&expected, "}]E");
            transcript t;
            run_random(*state, span_make(text.data, text.size), 0, seed, &t);
            check_equal(text.data, "round", (size_t)round, &t, expected.data);
            transcript_deinit(&t);
        }
        buffer_deinit(&a);
        buffer_deinit(&b);
        buffer_deinit(&text);
        buffer_deinit(&expected);
    }
    assert_true(tried > 3000 && with_calls > 300);
}

/* The calls of a recorded assistant message as the template writes them, and the transcript they must give. */
static void render_recorded(arena *a, const json *row, buffer *text, buffer *expected) {
    for (const json *call = json_get(row, "tool_calls")->first; call; call = call->next) {
        span arguments = json_get(json_get(call, "function"), "arguments")->text;
        const json *object;
        assert_int_equal(json_parse(a, arguments, JSON_DEPTH_DEFAULT, &object, NULL), ERR_OK);
        span command = json_get(object, "command")->text;
        assert_int_equal(object->count, 1);
        buffer_text(text, text->size ? "\n" : "");
        buffer_text(text, "<tool_call>\n<function=bash>\n<parameter=command>\n");
        buffer_append(text, command.data, command.size);
        buffer_text(text, "\n</parameter>\n</function>\n</tool_call>");
        buffer_text(expected, "B[bash]A[{\"command\":");
        json_write_string(expected, command, JSON_COMPACT);
        buffer_text(expected, "}]E");
    }
}

static void test_recorded_calls(void **state) {
    FILE *file = fopen(test_need_shared("mlperf/agentic_coding_2.5h.jsonl"), "rb");
    assert_non_null(file);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    int rows = 0;
    while ((length = getline(&line, &capacity, file)) > 0) {
        arena *a = arena_create();
        const json *row;
        assert_int_equal(json_parse(a, span_make(line, (size_t)length), JSON_DEPTH_DEFAULT, &row, NULL), ERR_OK);
        if (json_string_is(json_get(row, "role"), "assistant")) {
            buffer text = {0}, expected = {0};
            render_recorded(a, row, &text, &expected);
            transcript t;
            run_random(*state, span_make(text.data, text.size), 0, (uint32_t)rows, &t);
            check_equal("recorded", "row", (size_t)rows++, &t, expected.data);
            transcript_deinit(&t);
            buffer_deinit(&text);
            buffer_deinit(&expected);
        }
        arena_destroy(a);
    }
    free(line);
    fclose(file);
    assert_true(rows > 0);
}

/* Random sequences of tags and text: any chopping gives the same events, and nothing is lost. */
static void test_random_tag_soup(void **state) {
    static const char *const pieces[] = {"<tool_call>",
                                         "\n",
                                         "<function=bash>",
                                         "<parameter=command>",
                                         "<parameter=timeout>",
                                         "</parameter>",
                                         "</function>",
                                         "</tool_call>",
                                         "</think>",
                                         "<think>",
                                         "x",
                                         " ",
                                         "12",
                                         "<function=nope>",
                                         "<parameter=z",
                                         "<",
                                         "\n\n",
                                         "<tool_call>\n<function=bash>\n",
                                         "\n</parameter>\n",
                                         "</function>\n</tool_call>",
                                         LS,
                                         "\xc3\xa9"};
    uint32_t seed = 11;
    for (int round = 0; round < 4000; round++) {
        buffer text = {0};
        int count = (int)(random_next(&seed) % 24), flags = (int)(random_next(&seed) % 4);
        for (int i = 0; i < count; i++)
            buffer_text(&text, pieces[random_next(&seed) % (sizeof pieces / sizeof *pieces)]);
        buffer_reserve(&text, 0)[0] = 0;
        span all = span_make(text.data, text.size);
        transcript whole, t;
        run_pieces(*state, all, flags, SIZE_MAX / 2, &whole);
        for (size_t size = 1; size < 4; size++) {
            run_pieces(*state, all, flags, size, &t);
            check_equal(text.data, "pieces of", size, &t, whole.text.data);
            transcript_deinit(&t);
        }
        run_random(*state, all, flags, seed, &t);
        check_equal(text.data, "random", (size_t)round, &t, whole.text.data);
        transcript_deinit(&t);
        transcript_deinit(&whole);
        check_lossless(*state, text.data, all, flags);
        buffer_deinit(&text);
    }
}

/* Text that is not UTF-8 comes out repaired. */
static void test_invalid_bytes(void **state) {
    transcript t;
    run_split(*state,
              span_make("a\xff"
                        "b\xed\xa0\x80",
                        6),
              0, 2, &t);
    assert_string_equal(t.text.data,
                        "C[a\xef\xbf\xbd"
                        "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd]");
    transcript_deinit(&t);
}

/* ---- linear time */

static double parse_ms(const fixture *f, const char *start, const char *unit, int flags, size_t piece) {
    buffer text = {0};
    buffer_text(&text, start);
    while (text.size < 1000000) buffer_text(&text, unit);
    clock_t begin = clock(); /* processor time: other programs may be running */
    transcript t;
    output_parser_options options = {f->tools, true, (flags & THINK) != 0};
    t = (transcript){.open = -1};
    output_parser *p = output_parser_create(&options, output_message_add, &t.message);
    feed_pieces(p, span_make(text.data, text.size), piece);
    output_parser_finish(p, false);
    output_parser_destroy(p);
    double ms = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    transcript_deinit(&t);
    buffer_deinit(&text);
    return ms;
}

static void test_linear_time(void **state) {
    static const struct {
        const char *start, *unit;
        int flags;
    } inputs[] = {
        {"", "<", 0},
        {"", "\n", 0},
        {"", " \n<", 0},
        {"", "<tool_call", 0},
        {"", "<tool_call>", 0},
        {"", "<tool_call>\n", 0},
        {"", "<tool_call>                                                                <", 0},
        {"", "\n<function=bash>\n", 0},
        {"", "<function=", 0},
        {"", LS, 0},
        {"", "</think>", THINK},
        {"", "</thin", THINK},
        {"", LS "\n", THINK},
        {LS, "<", THINK},
        {"", "<tool_call>\n<function=x>\n", THINK},
        {"",
         LS
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         THINK},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "\n</parameter", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "\n</parameter>", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "\n</parameter>                                ", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "\n</parameter>\n<parameter=content>", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "</parameter></function></tool_call>", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "<function=x>\n<parameter=", 0},
        {"<tool_call>\n<function=write>\n<parameter=content>\n", "\n", 0},
        {"<tool_call>\n<function=typed>\n<parameter=any>\n", "1", 0},
        {"<tool_call>\n<function=typed>\n<parameter=any>\n[", "1,", 0},
        {"<tool_call>\n<function=typed>\n<parameter=n>\n", "1", 0},
        {"<tool_call>\n<function=bash>\n", "x", 0},
        {"<tool_call>\n<function=bash>\n", "<parameter", 0},
        {"<tool_call>\n<function=bash>\n", " ", 0},
    };
    static const size_t pieces[] = {SIZE_MAX / 2, 4};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        for (size_t s = 0; s < 2; s++) {
            double ms = parse_ms(*state, inputs[i].start, inputs[i].unit, inputs[i].flags, pieces[s]);
            if (getenv("HEARTH_TEST_VERBOSE")) printf("%6.1f ms  %zu %.40s\n", ms, s, inputs[i].unit);
            if (ms > 2000) fail_msg("%.0f ms for 1 MB of \"%s\"", ms, inputs[i].unit); /* quadratic takes minutes */
        }
}

/* Names given: 600 distinct parameters, of which 512 are read as such. */
static void test_many_parameters(void **state) {
    buffer text = {0};
    buffer_text(&text, "<tool_call>\n<function=bash>\n");
    for (int i = 0; i < 600; i++) buffer_printf(&text, "<parameter=p%d>\n%d\n</parameter>\n", i, i);
    buffer_text(&text, "</function>\n</tool_call>");
    transcript t;
    run_pieces(*state, span_make(text.data, text.size), 0, 7, &t);
    assert_int_equal(t.message.call_count, 1);
    arena *a = arena_create();
    const json *arguments = parse(a, t.message.calls[0].arguments.data);
    assert_int_equal(arguments->count, 512);
    assert_non_null(strstr(t.message.calls[0].arguments.data, "<parameter=p599>\\n599"));
    arena_destroy(a);
    transcript_deinit(&t);
    check_lossless(*state, "many", span_make(text.data, text.size), 0);
    buffer_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_chopping),
        cmocka_unit_test(test_lossless_at_every_end),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_schema_forms),
        cmocka_unit_test(test_held_back_no_longer_than_needed),
        cmocka_unit_test(test_long_string_streams),
        cmocka_unit_test(test_example_in_a_long_thought),
        cmocka_unit_test(test_example_settled_by_the_end),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_recorded_calls),
        cmocka_unit_test(test_random_tag_soup),
        cmocka_unit_test(test_invalid_bytes),
        cmocka_unit_test(test_linear_time),
        cmocka_unit_test(test_many_parameters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
