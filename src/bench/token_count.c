/* See token_count.h. */
#include "bench/token_count.h"

#include <stdlib.h>

#include "text/chat.h"

struct token_counter {
    chat_format *format; /* owned */
    size_t frame;        /* tokens of a user message and an empty answer, rendered; 0 when the template refuses */
};

static size_t count_text(const token_counter *c, span text) {
    token_list ids = {0};
    size_t count = 0;
    if (tokenizer_encode(chat_format_tokenizer(c->format), text, true, &ids, NULL) == ERR_OK) count = ids.count;
    token_list_deinit(&ids);
    return count;
}

static json *add_message(arena *a, json *messages, const char *role, span content) {
    json *message = json_new(a, JSON_OBJECT);
    json_set(message, span_text("role"), json_new_string(a, span_text(role)));
    json_set(message, span_text("content"), json_new_string(a, content));
    json_append(messages, message);
    return message;
}

/* Tokens of the rendered pair of a user message and m; false when the template refuses it. */
static bool count_rendered(token_counter *c, arena *a, const reply_message *m, size_t *out) {
    json *input = json_new(a, JSON_OBJECT), *messages = json_new(a, JSON_ARRAY);
    add_message(a, messages, "user", span_text("x"));
    json *answer = add_message(a, messages, "assistant", span_make(m->content.data, m->content.size));
    if (m->reasoning.size)
        json_set(answer, span_text("reasoning_content"),
                 json_new_string(a, span_make(m->reasoning.data, m->reasoning.size)));
    json *calls = reply_calls_json(a, m, CALLS_PARSED);
    if (calls) json_set(answer, span_text("tool_calls"), calls);
    json_set(input, span_text("messages"), messages);
    json_set(input, span_text("add_generation_prompt"), json_new(a, JSON_FALSE));
    buffer text = {0};
    bool rendered = chat_format_render(c->format, input, &text, NULL) == ERR_OK;
    if (rendered) *out = count_text(c, span_make(text.data, text.size));
    buffer_deinit(&text);
    return rendered;
}

err_code token_counter_open(const char *dir, token_counter **out, error *err) {
    chat_format *format;
    ERR_TRY(chat_format_open(dir, false, &format, err));
    token_counter *c = mem_zero(1, sizeof *c);
    c->format = format;
    arena *a = arena_create();
    const reply_message empty = {0};
    count_rendered(c, a, &empty, &c->frame);
    arena_destroy(a);
    *out = c;
    return ERR_OK;
}

void token_counter_close(token_counter *c) {
    if (!c) return;
    chat_format_close(c->format);
    free(c);
}

err_code token_counter_prompt(token_counter *c, const json *messages, const json *tools, size_t *out, error *err) {
    chat_prompt prompt = {0};
    arena *a = arena_create();
    json *kwargs = json_new(a, JSON_OBJECT);
    json_set(kwargs, span_text("enable_thinking"), json_new(a, JSON_FALSE));
    err_code code = chat_format_prompt(c->format, messages, tools, kwargs, &prompt, err);
    if (code == ERR_OK) *out = prompt.ids.count;
    chat_prompt_deinit(&prompt);
    arena_destroy(a);
    return code;
}

static void add_part(buffer *out, const char *data, size_t size) {
    if (!size) return;
    if (out->size) buffer_char(out, '\n');
    buffer_append(out, data, size);
}

static size_t count_plain(const token_counter *c, const reply_message *m, const json *calls) {
    buffer text = {0}, written = {0};
    add_part(&text, m->content.data, m->content.size);
    add_part(&text, m->reasoning.data, m->reasoning.size);
    if (calls) json_write(&written, calls, JSON_COMPACT);
    add_part(&text, written.data, written.size);
    size_t count = count_text(c, span_make(text.data, text.size));
    buffer_deinit(&written);
    buffer_deinit(&text);
    return count;
}

size_t token_counter_message(token_counter *c, const reply_message *m) {
    arena *a = arena_create();
    size_t count = 0;
    bool rendered = m->call_count && c->frame && count_rendered(c, a, m, &count);
    if (rendered)
        count = count > c->frame ? count - c->frame : 0;
    else
        count = count_plain(c, m, reply_calls_json(a, m, CALLS_INDEXED));
    arena_destroy(a);
    return count;
}
