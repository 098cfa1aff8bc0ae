/* See turn_tokens.h.
 *
 * The answer is rendered behind a user message of one letter instead of the whole history: templates write a message the
 * same whatever went before, and a thousand histories need not be rendered twice. What the same user message and the
 * generation prompt take is cut off the front. */
#include "bench/turn_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "text/message.h"

struct turn_tokens {
    chat_format *format; /* owned */
    buffer opening;      /* a user message and the generation prompt */
    buffer closing;      /* what the template writes behind the text of an answer: its first token ends the message */
};

static json *new_flag(arena *a, bool value) { return json_new(a, value ? JSON_TRUE : JSON_FALSE); }

static json *add_message(arena *a, json *messages, const char *role, span content) {
    json *message = json_new(a, JSON_OBJECT);
    json_set(message, span_text("role"), json_new_string(a, span_text(role)));
    json_set(message, span_text("content"), json_new_string(a, content));
    json_append(messages, message);
    return message;
}

/* Renders a user message and, when turn is given, its recorded answer; else the generation prompt behind it. */
static err_code render(const turn_tokens *t, arena *a, const trace_turn *turn, buffer *out, error *err) {
    json *input = json_new(a, JSON_OBJECT), *messages = json_new(a, JSON_ARRAY);
    add_message(a, messages, "user", span_text("x"));
    if (turn) {
        json *answer = add_message(a, messages, "assistant", turn->content ? turn->content->text : span_text(""));
        if (turn->calls) json_set(answer, span_text("tool_calls"), json_clone(a, turn->calls));
    }
    const json *normal;
    ERR_TRY(messages_normalize(a, messages, &normal, err));
    json_set(input, span_text("messages"), json_clone(a, normal));
    json_set(input, span_text("add_generation_prompt"), new_flag(a, !turn));
    json_set(input, span_text("enable_thinking"), new_flag(a, false));
    return chat_format_render(t->format, input, out, err);
}

static err_code check_template(turn_tokens *t, error *err) {
    arena *a = arena_create();
    const trace_turn empty = {0};
    buffer whole = {0};
    err_code code = render(t, a, NULL, &t->opening, err);
    if (code == ERR_OK) code = render(t, a, &empty, &whole, err);
    span opening = span_make(t->opening.data, t->opening.size), text = span_make(whole.data, whole.size);
    bool split = code == ERR_OK && span_starts(text, opening);
    if (split) buffer_append(&t->closing, text.data + opening.size, text.size - opening.size);
    arena_destroy(a);
    buffer_deinit(&whole);
    ERR_TRY(code);
    if (!split)
        ERR_FAIL(err, ERR_UNSUPPORTED, "the chat template begins an answer otherwise than its generation prompt ends");
    return ERR_OK;
}

err_code turn_tokens_open(const char *dir, turn_tokens **out, error *err) {
    turn_tokens *t = mem_zero(1, sizeof *t);
    *out = NULL;
    err_code code = chat_format_open(dir, false, &t->format, err);
    if (code == ERR_OK) code = check_template(t, err);
    if (code == ERR_OK)
        *out = t;
    else
        turn_tokens_close(t);
    return code;
}

void turn_tokens_close(turn_tokens *t) {
    if (!t) return;
    chat_format_close(t->format);
    buffer_deinit(&t->opening);
    buffer_deinit(&t->closing);
    free(t);
}

static err_code read_prompt(turn_tokens *t, arena *a, const json *messages, const json *tools, token_list *out,
                            error *err) {
    chat_prompt prompt = {0};
    json *kwargs = json_new(a, JSON_OBJECT);
    json_set(kwargs, span_text("enable_thinking"), new_flag(a, false));
    err_code code = chat_format_prompt(t->format, messages, tools, kwargs, &prompt, err);
    for (size_t i = 0; code == ERR_OK && i < prompt.ids.count; i++) token_list_push(out, prompt.ids.ids[i]);
    chat_prompt_deinit(&prompt);
    return code;
}

/* The text between opening and closing. */
static bool cut(const turn_tokens *t, span *text) {
    size_t begin = t->opening.size, end = t->closing.size;
    if (text->size < begin + end || !span_starts(*text, span_make(t->opening.data, begin))) return false;
    if (end && memcmp(text->data + text->size - end, t->closing.data, end)) return false;
    *text = span_make(text->data + begin, text->size - begin - end);
    return true;
}

/* Of the closing the first token is the model's; the rest (a line end) is the template's. */
static err_code read_answer(turn_tokens *t, arena *a, const trace_turn *turn, token_list *out, error *err) {
    const tokenizer *tok = chat_format_tokenizer(t->format);
    buffer whole = {0};
    token_list end = {0};
    err_code code = render(t, a, turn, &whole, err);
    span text = span_make(whole.data, whole.size);
    if (code == ERR_OK && !cut(t, &text))
        code = error_set(err, ERR_UNSUPPORTED, __FILE__, __LINE__,
                         "the chat template writes this answer otherwise than an empty one");
    if (code == ERR_OK) code = tokenizer_encode(tok, text, true, out, err);
    if (code == ERR_OK) code = tokenizer_encode(tok, span_make(t->closing.data, t->closing.size), true, &end, err);
    if (code == ERR_OK && end.count) token_list_push(out, end.ids[0]);
    token_list_deinit(&end);
    buffer_deinit(&whole);
    return code;
}

err_code turn_tokens_read(turn_tokens *t, const trace_conversation *c, size_t at, const json *messages,
                          token_list *prompt, token_list *answer, error *err) {
    arena *a = arena_create();
    error inner;
    err_code code = read_prompt(t, a, messages, c->tools, prompt, &inner);
    if (code == ERR_OK) code = read_answer(t, a, &c->turns[at], answer, &inner);
    arena_destroy(a);
    if (code != ERR_OK)
        ERR_FAIL(err, code, "conversation '%.*s' turn %d: %s", (int)(c->id.size < 100 ? c->id.size : 100), c->id.data,
                 c->turns[at].number, inner.message);
    return ERR_OK;
}
