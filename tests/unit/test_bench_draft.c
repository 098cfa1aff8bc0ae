/* hearth bench draft: token ids of recorded turns, counts that can be computed by hand, repeatability, the report. */
#include "bench/bench_draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "support.h"

static const char qwen_dir[] = "build/qwen-tokenizer", own_trace[] = "demo/agent_trace.jsonl";
static const draft_bench_options usual = {".87,.80,.75,.72,.70", ".93,.88,.84,.82,.80", 16};

/* Qwen's tokenizer and template laid out as a model directory, or the test is skipped. */
static turn_tokens *open_tokens(void) {
    char root[1024], command[2200];
    const char *file = test_need_shared("qwen/tokenizer.json.gz");
    snprintf(root, sizeof root, "%.*s", (int)(strlen(file) - strlen("/qwen/tokenizer.json.gz")), file);
    snprintf(command, sizeof command, "sh demo/qwen_tokenizer.sh '%s' %s", root, qwen_dir);
    assert_int_equal(system(command), 0);
    turn_tokens *t;
    error err;
    if (turn_tokens_open(qwen_dir, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    return t;
}

static void read_trace(const char *path, size_t conversations, trace *t) {
    error err;
    if (trace_read(path, conversations, 0, t, &err) != ERR_OK) fail_msg("%s", err.message);
}

static draft_bench_report run(const trace *t, turn_tokens *tokens, draft_bench_options options) {
    draft_bench_report r;
    error err;
    if (draft_bench_run(t, tokens, &options, &r, &err) != ERR_OK) fail_msg("%s", err.message);
    return r;
}

/* Prompts end in the generation prompt; an answer is what the model writes behind it, without the recorded reasoning. */
static void turns_as_tokens(void **state) {
    (void)state;
    turn_tokens *tokens = open_tokens();
    tokenizer *tok;
    error err;
    assert_int_equal(tokenizer_open(qwen_dir, &tok, &err), ERR_OK);
    const char *path = test_temp("trace.jsonl");
    assert_int_equal(
        file_write_atomic(
            path,
            span_text(
                "{\"conversation_id\":\"a\",\"turn\":1,\"role\":\"user\",\"content\":\"hi\"}\n"
                "{\"conversation_id\":\"a\",\"turn\":2,\"role\":\"assistant\",\"reasoning_content\":\"hm\",\"tool_"
                "calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": \\\"ls\\\"}\"}}]}\n"
                "{\"conversation_id\":\"a\",\"turn\":3,\"role\":\"user\",\"content\":\"more\"}\n"
                "{\"conversation_id\":\"a\",\"turn\":4,\"role\":\"assistant\",\"content\":\"done, two\"}\n"
                "{\"conversation_id\":\"a\",\"turn\":5,\"role\":\"user\",\"content\":\"?\"}\n"
                "{\"conversation_id\":\"a\",\"turn\":6,\"role\":\"assistant\"}\n"),
            &err),
        ERR_OK);
    const char *answers[] = {
        "<tool_call>\n<function=f>\n<parameter=x>\nls\n</parameter>\n</function>\n</tool_call><|im_end|>",
        "done, two<|im_end|>", "<|im_end|>"};
    const char opening[] = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
    trace t;
    transcript history;
    read_trace(path, 0, &t);
    transcript_begin(&history, &t.conversations[0]);
    for (size_t i = 0; i < 3; i++) {
        token_list prompt = {0}, answer = {0};
        buffer before = {0}, text = {0};
        transcript_extend(&history, &t.conversations[0], i);
        assert_int_equal(turn_tokens_read(tokens, &t.conversations[0], i, history.messages, &prompt, &answer, &err),
                         ERR_OK);
        tokenizer_decode(tok, prompt.ids, prompt.count, false, &before);
        tokenizer_decode(tok, answer.ids, answer.count, false, &text);
        assert_string_equal(text.data, answers[i]);
        assert_string_equal(before.data + before.size - strlen(opening), opening);
        buffer_deinit(&before);
        buffer_deinit(&text);
        token_list_deinit(&prompt);
        token_list_deinit(&answer);
    }
    transcript_end(&history);
    trace_deinit(&t);
    tokenizer_close(tok);
    turn_tokens_close(tokens);
}

/* Steps that yield `most` tokens each, the last of a turn what is left; the first token of a turn is no step's. */
static uint64_t steps_of(const trace *t, turn_tokens *tokens, uint64_t most) {
    uint64_t steps = 0;
    for (size_t c = 0; c < t->count; c++) {
        transcript history;
        transcript_begin(&history, &t->conversations[c]);
        for (size_t i = 0; i < t->conversations[c].turn_count; i++) {
            token_list prompt = {0}, answer = {0};
            transcript_extend(&history, &t->conversations[c], i);
            assert_int_equal(
                turn_tokens_read(tokens, &t->conversations[c], i, history.messages, &prompt, &answer, NULL), ERR_OK);
            steps += (answer.count - 1 + most - 1) / most;
            token_list_deinit(&prompt);
            token_list_deinit(&answer);
        }
        transcript_end(&history);
    }
    return steps;
}

enum { MTP_3, MTP_5, TREE, LOOKUP, GRAFT, GRAFT_TREE };

static void always_and_never_right(void **state) {
    (void)state;
    turn_tokens *tokens = open_tokens();
    trace t;
    read_trace(own_trace, 0, &t);
    draft_bench_report always = run(&t, tokens, (draft_bench_options){"1", "1", 16});
    draft_bench_report never = run(&t, tokens, (draft_bench_options){"0", "0", 16});
    uint64_t plain = steps_of(&t, tokens, 1);
    for (int i = 0; i < DRAFT_BENCH_ROWS; i++) {
        assert_int_equal(always.rows[i].tokens, plain);
        assert_int_equal(never.rows[i].tokens, plain);
    }
    assert_int_equal(always.output_tokens, plain + t.turn_count);
    assert_int_equal(always.rows[MTP_3].steps, steps_of(&t, tokens, 4));
    assert_int_equal(always.rows[MTP_5].steps, steps_of(&t, tokens, 6));
    assert_int_equal(always.rows[TREE].steps, steps_of(&t, tokens, 9));
    const int mtp_alone[] = {MTP_3, MTP_5, TREE};
    for (int i = 0; i < 3; i++) assert_int_equal(never.rows[mtp_alone[i]].steps, plain);
    assert_int_equal(never.rows[GRAFT].steps, plain); /* its lookup stands behind a wrong chain */
    assert_true(always.rows[GRAFT].steps < always.rows[MTP_3].steps);
    assert_true(never.rows[GRAFT_TREE].steps < plain);                     /* here the root is looked up too */
    assert_int_equal(always.rows[LOOKUP].steps, never.rows[LOOKUP].steps); /* it knows nothing of the simulation */
    trace_deinit(&t);
    turn_tokens_close(tokens);
}

static void repeatable(void **state) {
    (void)state;
    turn_tokens *tokens = open_tokens();
    trace t;
    read_trace(own_trace, 0, &t);
    buffer a = {0}, b = {0};
    draft_bench_report first = run(&t, tokens, usual), second = run(&t, tokens, usual);
    draft_bench_json(&first, &usual, &a);
    draft_bench_json(&second, &usual, &b);
    assert_string_equal(a.data, b.data);
    buffer_deinit(&a);
    buffer_deinit(&b);
    trace_deinit(&t);
    turn_tokens_close(tokens);
}

static void widths_keep_the_limit(void **state) {
    (void)state;
    turn_tokens *tokens = open_tokens();
    trace t;
    read_trace(own_trace, 2, &t);
    const int limits[] = {0, 1, 2, 5, 63};
    for (int i = 0; i < 5; i++) {
        draft_bench_options options = usual;
        options.nodes = limits[i];
        draft_bench_report r = run(&t, tokens, options);
        for (int k = 0; k < DRAFT_BENCH_ROWS; k++) {
            assert_true(r.rows[k].drafts <= r.rows[k].steps * (uint64_t)limits[i]);
            assert_true(r.rows[k].tokens <= r.rows[k].steps * (uint64_t)(limits[i] + 1));
            if (!limits[i]) assert_int_equal(r.rows[k].steps, r.rows[k].tokens);
        }
    }
    trace_deinit(&t);
    turn_tokens_close(tokens);
}

/* Conversations of the benchmark's trace: what the design counts on. */
static void recorded_tool_calls(void **state) {
    (void)state;
    turn_tokens *tokens = open_tokens();
    trace t;
    read_trace(test_need_shared("mlperf/agentic_coding_2.5h.jsonl"), 2, &t);
    draft_bench_report r = run(&t, tokens, usual);
    double rate[DRAFT_BENCH_ROWS];
    for (int i = 0; i < DRAFT_BENCH_ROWS; i++) {
        rate[i] = (double)r.rows[i].tokens / (double)r.rows[i].steps;
        assert_int_equal(r.rows[i].simulated, i != LOOKUP);
    }
    assert_true(rate[LOOKUP] >= 3.3);
    assert_true(rate[GRAFT] >= 1.6 * rate[MTP_3]);
    assert_true(rate[MTP_3] > 2.9 && rate[MTP_3] < 3.2);
    assert_true(rate[GRAFT_TREE] > rate[GRAFT]);
    trace_deinit(&t);
    turn_tokens_close(tokens);
}

static void report(void **state) {
    (void)state;
    draft_bench_report r = {.conversations = 1, .turns = 2, .prompt_tokens = 30, .output_tokens = 12};
    r.rows[0] = (draft_bench_row){"mtp-3", true, 4, 10, 12, 12};
    r.rows[1] = (draft_bench_row){"lookup", false, 0, 0, 0, 0}; /* no step: no division */
    buffer out = {0};
    arena *a = arena_create();
    const json *o;
    draft_bench_json(&r, &usual, &out);
    assert_int_equal(json_parse(a, span_make(out.data, out.size), 8, &o, NULL), ERR_OK);
    const json *row = json_at(json_get(o, "rows"), 0);
    double value;
    assert_true(json_string_is(json_get(row, "drafter"), "mtp-3"));
    assert_true(json_double(json_get(row, "tokens_per_step"), &value) && value == 2.5);
    assert_true(json_double(json_get(row, "mean_width"), &value) && value == 3);
    assert_true(json_is(json_get(row, "simulated"), JSON_TRUE));
    assert_true(json_is(json_get(json_at(json_get(o, "rows"), 1), "simulated"), JSON_FALSE));
    assert_true(json_double(json_get(json_at(json_get(o, "rows"), 1), "tokens_per_step"), &value) && value == 0);
    buffer_clear(&out);
    draft_bench_text(&r, &usual, &out);
    assert_non_null(strstr(out.data, "mtp-3                 2.500        3.00         3.00  simulated\n"));
    buffer_deinit(&out);
    arena_destroy(a);
}

static void wrong_options(void **state) {
    (void)state;
    error err;
    draft_bench_options options = usual;
    assert_int_equal(draft_bench_check(&options, &err), ERR_OK);
    options.nodes = 64;
    assert_int_equal(draft_bench_check(&options, &err), ERR_INVALID);
    options = usual;
    options.acceptance = "x";
    assert_int_equal(draft_bench_check(&options, &err), ERR_INVALID);
}

/* Templates that write an answer so that it cannot be told from what stands before it. */
static void unsuitable_templates(void **state) {
    (void)state;
    turn_tokens_close(open_tokens());
    const char *dir = test_temp("model");
    char command[2200], path[1200];
    snprintf(command, sizeof command, "mkdir -p '%s' && ln -sf \"$PWD/%s/tokenizer.json\" '%s/'", dir, qwen_dir, dir);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    error err;
    turn_tokens *t;
    assert_int_equal(file_write_atomic(path, span_text("{{ messages|length }}{{ add_generation_prompt }}"), &err),
                     ERR_OK);
    assert_int_equal(turn_tokens_open(dir, &t, &err), ERR_UNSUPPORTED);
    assert_null(t);
    /* The empty answer fits, another does not. */
    const char *picky = "{% if messages|length > 1 and messages[-1].content %}B{% else %}A{% endif %}";
    assert_int_equal(file_write_atomic(path, span_text(picky), &err), ERR_OK);
    const char *trace_path = test_temp("short.jsonl");
    assert_int_equal(file_write_atomic(
                         trace_path,
                         span_text("{\"conversation_id\":\"c\",\"turn\":1,\"role\":\"user\",\"content\":\"hi\"}\n"
                                   "{\"conversation_id\":\"c\",\"turn\":2,\"role\":\"assistant\",\"content\":\"x\"}\n"),
                         &err),
                     ERR_OK);
    trace recorded;
    read_trace(trace_path, 0, &recorded);
    draft_bench_report r;
    assert_int_equal(turn_tokens_open(dir, &t, &err), ERR_OK);
    assert_int_equal(draft_bench_run(&recorded, t, &usual, &r, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "conversation 'c' turn 2: "));
    turn_tokens_close(t);
    trace_deinit(&recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_as_tokens),       cmocka_unit_test(always_and_never_right), cmocka_unit_test(repeatable),
        cmocka_unit_test(widths_keep_the_limit), cmocka_unit_test(recorded_tool_calls),    cmocka_unit_test(report),
        cmocka_unit_test(wrong_options),         cmocka_unit_test(unsuitable_templates),
    };
    return cmocka_run_group_tests_name("bench_draft", tests, NULL, NULL);
}
