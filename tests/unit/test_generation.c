/* From token ids to events: whole characters, the parser's split, and where stop strings count. The tokenizer is the
 * byte-level one of synthetic checkpoints: one token a byte, so every border between tokens is tried. */
#include <stdlib.h>

#include "base/file.h"
#include "base/utf8.h"
#include "engine/generation.h"
#include "model/synth_text.h"
#include "support.h"

static tokenizer *tokens;

static int open_tokenizer(void **state) {
    (void)state;
    const char *dir = test_temp("tokenizer");
    buffer text = {0};
    synth_tokenizer_json(&text);
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    char *path = file_join(dir, "tokenizer.json");
    assert_int_equal(file_write_atomic(path, span_make(text.data, text.size), NULL), ERR_OK);
    error err;
    if (tokenizer_open(dir, &tokens, &err) != ERR_OK) fail_msg("%s", err.message);
    free(path);
    buffer_deinit(&text);
    return 0;
}

static int close_tokenizer(void **state) {
    (void)state;
    tokenizer_close(tokens);
    return 0;
}

/* Events as text: "R:think" "C:content" "B:name" "A:{...}" "E:", pieces of one kind joined. */
typedef struct events {
    buffer text;
    hearth_event_type last;
    bool any;
} events;

static void on_event(void *context, hearth_event_type type, int index, span text) {
    (void)index;
    events *e = context;
    assert_true(utf8_valid(text));
    if (!e->any || type != e->last) {
        buffer_text(&e->text, e->any ? "|" : "");
        buffer_char(&e->text, "?RCBAE"[type]);
        buffer_char(&e->text, ':');
    }
    e->any = true;
    e->last = type;
    buffer_append(&e->text, text.data, text.size);
}

typedef struct generation_case {
    const char *text; /* what the model writes */
    const char *stop[3];
    bool reasoning_open, raw, truncated;
    const char *expected;
    bool stopped;
    int calls, reasoning; /* calls completed; tokens chosen while reasoning was open */
} generation_case;

#define CALL(value) "<tool_call>\n<function=f>\n<parameter=x>\n" value "\n</parameter>\n</function>\n</tool_call>"

static const generation_case CASES[] = {
    {.text = "Hello", .expected = "C:Hello"},
    {.text = "h\xc3\xa9 \xf0\x9f\x98\x80!", .expected = "C:h\xc3\xa9 \xf0\x9f\x98\x80!"},
    {.text = "a\xf0\x9f\x98", .truncated = true, .expected = "C:a\xef\xbf\xbd"},
    {.text = "a\xff"
             "b",
     .expected = "C:a\xef\xbf\xbd"
                 "b"},
    {.text = "one<|im_end|>two", .expected = "C:onetwo"}, /* special tokens are not text */
    {.text = "some END here", .stop = {"END"}, .expected = "C:some ", .stopped = true},
    {.text = "some EN", .stop = {"END"}, .expected = "C:some EN"},
    {.text = "some EN", .stop = {"END"}, .truncated = true, .expected = "C:some EN"},
    {.text = "so END</think>\n\nit is END",
     .stop = {"END"},
     .reasoning_open = true,
     .expected = "R:so END|C:it is ",
     .stopped = true,
     .reasoning = 6 + 1 + 2 + 1 /* the text, </think>, the two newlines, and the token that shows it is over */},
    {.text = "x" CALL("END"), .stop = {"END"}, .expected = "C:x|B:f|A:{\"x\":\"END\"}|E:", .calls = 1},
    {.text = "EN" CALL("D"), .stop = {"END"}, .expected = "C:EN|B:f|A:{\"x\":\"D\"}|E:", .calls = 1},
    {.text = CALL("1") "\nEND", .stop = {"END"}, .expected = "B:f|A:{\"x\":\"1\"}|E:", .stopped = true, .calls = 1},
    {.text = "a<think>b " CALL("1"), .raw = true, .expected = "C:a<think>b " CALL("1")},
    {.text = "a</think>" CALL("1") "S",
     .raw = true,
     .stop = {"S"},
     .expected = "C:a</think>" CALL("1"),
     .stopped = true},
};

static void events_of_what_the_model_writes(void **state) {
    (void)state;
    static const char tools_text[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":"
        "{\"x\":{\"type\":\"string\"}}}}}]";
    arena *a = arena_create();
    const json *tools;
    assert_int_equal(json_parse(a, span_text(tools_text), 16, &tools, NULL), ERR_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const generation_case *c = &CASES[i];
        events seen = {0};
        int stops = 0;
        while (stops < 3 && c->stop[stops]) stops++;
        generation_options options = {.tokens = tokens,
                                      .tools = tools,
                                      .raw = c->raw,
                                      .parse_calls = true,
                                      .reasoning_open = c->reasoning_open,
                                      .stop = c->stop,
                                      .stop_count = stops,
                                      .emit = on_event,
                                      .context = &seen};
        generation *g = generation_create(&options);
        token_list ids = {0};
        assert_int_equal(tokenizer_encode(tokens, span_text(c->text), true, &ids, NULL), ERR_OK);
        bool stopped = false;
        int reasoning = 0;
        for (size_t k = 0; k < ids.count && !stopped; k++) {
            reasoning += generation_in_reasoning(g);
            stopped = generation_feed(g, ids.ids[k]);
        }
        if (!stopped) generation_finish(g, c->truncated);
        assert_string_equal(seen.text.data, c->expected);
        assert_int_equal(stopped, c->stopped);
        assert_int_equal(generation_calls(g), c->calls);
        if (c->reasoning) assert_int_equal(reasoning, c->reasoning);
        generation_destroy(g);
        token_list_deinit(&ids);
        buffer_deinit(&seen.text);
    }
    arena_destroy(a);
}

static void without_a_tokenizer_ids_are_text(void **state) {
    (void)state;
    events seen = {0};
    generation_options options = {.raw = true, .emit = on_event, .context = &seen};
    generation *g = generation_create(&options);
    generation_feed(g, 12);
    generation_feed(g, 0);
    generation_finish(g, false);
    assert_string_equal(seen.text.data, "C:12 0 ");
    generation_destroy(g);
    buffer_deinit(&seen.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_what_the_model_writes),
        cmocka_unit_test(without_a_tokenizer_ids_are_text),
    };
    return cmocka_run_group_tests_name("generation", tests, open_tokenizer, close_tokenizer);
}
