/* From a conversation to token ids.
 *
 * The prompt is the template's rendering, tokenised as a whole: ids are always those of the canonical tokenisation of the
 * rendered text, so that two requests share as many leading ids as their texts share. What makes this cheap is that the
 * next request of a conversation repeats the last one's text up to its end: tokenisation goes through a memo of an earlier
 * text and works only from where they differ. MEMOS conversations are remembered; one is chosen when it shares at least
 * half of its text with the new one, otherwise the one longest unused starts afresh.
 *
 * The template is rendered twice, without and with the generation prompt. What the two have in common is the history;
 * the rest ("<|im_start|>assistant\n<think>\n") is the generation prompt, whatever family the template belongs to. It also
 * tells whether the answer begins inside a think block, which must not be guessed from the messages. */
#include "text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/chat_input.h"
#include "text/message.h"

enum { MEMOS = 8, KEYWORDS_MAX = 64, CONFIG_MAX = 64 << 20, TEMPLATE_MAX = 4 << 20 };

typedef struct memo_slot {
    token_memo *memo;
    size_t size; /* bytes of its text */
    uint64_t used;
} memo_slot;

struct chat_format {
    char *dir; /* owned */
    bool reasoning;
    tokenizer *tokenizer;
    chat_template *plain, *with_tools; /* NULL: the directory has none */
    arena *config;                     /* the tree of tokenizer_config.json */
    buffer config_text;
    json *tokens;        /* bos_token, eos_token ... as variables; NULL without a config */
    int32_t end_of_turn; /* id of eos_token, or -1 */
    memo_slot memos[MEMOS];
    uint64_t clock;
    arena *work; /* one prompt at a time */
    buffer history, prompt;
};

void chat_prompt_deinit(chat_prompt *p) {
    token_list_deinit(&p->ids);
    *p = (chat_prompt){0};
}

/* ---- what the directory holds */

/* A file of the directory, empty when it is not there. */
static err_code read_optional(const char *dir, const char *name, size_t size_max, bool *found, buffer *out,
                              error *err) {
    char *path = file_join(dir, name);
    *found = file_exists(path);
    err_code code = *found ? file_read(path, size_max, out, err) : ERR_OK;
    free(path);
    return code;
}

/* tokenizer_config.json as a tree that borrows from text; *config is NULL when there is none. */
static err_code read_config(const char *dir, arena *a, buffer *text, const json **config, error *err) {
    bool found;
    *config = NULL;
    ERR_TRY(read_optional(dir, "tokenizer_config.json", CONFIG_MAX, &found, text, err));
    if (!found) return ERR_OK;
    error inner;
    if (json_parse(a, span_make(text->data, text->size), JSON_DEPTH_DEFAULT, config, &inner) != ERR_OK)
        ERR_FAIL(err, ERR_FORMAT, "%s/tokenizer_config.json: %s", dir, inner.message);
    return ERR_OK;
}

/* The source among the config's templates: a string, or a list of {"name", "template"}. */
static const json *find_source(const json *config, const char *name) {
    const json *templates = json_get(config, "chat_template");
    if (json_is(templates, JSON_STRING)) return strcmp(name, "default") == 0 ? templates : NULL;
    if (!json_is(templates, JSON_ARRAY)) return NULL;
    for (const json *t = templates->first; t; t = t->next)
        if (json_string_is(json_get(t, "name"), name) && json_is(json_get(t, "template"), JSON_STRING))
            return json_get(t, "template");
    return NULL;
}

static err_code compile_from_config(const json *config, const char *name, chat_template **out, error *err) {
    const json *source = find_source(config, name);
    *out = NULL;
    return source ? template_compile(source->text, "chat_template", out, err) : ERR_OK;
}

/* Both templates; *with_tools stays NULL where there is no separate one. */
static err_code open_templates(const char *dir, const json *config, chat_template **plain, chat_template **with_tools,
                               error *err) {
    buffer source = {0};
    bool found;
    *plain = *with_tools = NULL;
    err_code code = read_optional(dir, "chat_template.jinja", TEMPLATE_MAX, &found, &source, err);
    if (code == ERR_OK && found)
        code = template_compile(span_make(source.data, source.size), "chat_template.jinja", plain, err);
    buffer_deinit(&source);
    if (code != ERR_OK || found) return code;
    ERR_TRY(compile_from_config(config, "default", plain, err));
    return compile_from_config(config, "tool_use", with_tools, err);
}

static err_code no_template(const char *dir, error *err) {
    ERR_FAIL(err, ERR_NOT_FOUND,
             "%s: no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)", dir);
}

err_code chat_template_open(const char *dir, bool tools, chat_template **out, error *err) {
    arena *a = arena_create();
    buffer text = {0};
    const json *config;
    chat_template *plain = NULL, *with_tools = NULL;
    err_code code = read_config(dir, a, &text, &config, err);
    if (code == ERR_OK) code = open_templates(dir, config, &plain, &with_tools, err);
    arena_destroy(a);
    buffer_deinit(&text);
    bool special = (tools && with_tools) || !plain;
    *out = code != ERR_OK ? NULL : special ? with_tools : plain;
    if (*out != plain) template_destroy(plain);
    if (*out != with_tools) template_destroy(with_tools);
    return code == ERR_OK && !*out ? no_template(dir, err) : code;
}

/* The special tokens that transformers passes to a template. Each is a string or an object with `content`. */
static json *special_tokens(arena *a, const json *config) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    json *tokens = json_new(a, JSON_OBJECT);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json *token = json_get(config, names[i]);
        if (json_is(token, JSON_OBJECT)) token = json_get(token, "content");
        if (json_is(token, JSON_STRING)) json_set(tokens, span_text(names[i]), json_new_string(a, token->text));
    }
    return tokens;
}

static err_code open_parts(chat_format *f, error *err) {
    const json *config;
    ERR_TRY(tokenizer_open(f->dir, &f->tokenizer, err));
    ERR_TRY(read_config(f->dir, f->config, &f->config_text, &config, err));
    ERR_TRY(open_templates(f->dir, config, &f->plain, &f->with_tools, err));
    f->tokens = special_tokens(f->config, config);
    const json *end = json_get(f->tokens, "eos_token");
    f->end_of_turn = end ? tokenizer_find(f->tokenizer, end->text) : -1;
    return ERR_OK;
}

err_code chat_format_open(const char *dir, bool reasoning, chat_format **out, error *err) {
    chat_format *f = mem_zero(1, sizeof *f);
    f->dir = mem_copy(dir, strlen(dir));
    f->reasoning = reasoning;
    f->config = arena_create();
    f->work = arena_create();
    err_code code = open_parts(f, err);
    *out = code == ERR_OK ? f : NULL;
    if (code != ERR_OK) chat_format_close(f);
    return code;
}

void chat_format_close(chat_format *f) {
    if (!f) return;
    for (int i = 0; i < MEMOS; i++) token_memo_destroy(f->memos[i].memo);
    tokenizer_close(f->tokenizer);
    template_destroy(f->plain);
    template_destroy(f->with_tools);
    arena_destroy(f->config);
    arena_destroy(f->work);
    buffer_deinit(&f->config_text);
    buffer_deinit(&f->history);
    buffer_deinit(&f->prompt);
    free(f->dir);
    free(f);
}

const tokenizer *chat_format_tokenizer(const chat_format *f) { return f->tokenizer; }

bool chat_format_has_template(const chat_format *f) { return f->plain || f->with_tools; }

/* ---- rendering */

static err_code render(chat_format *f, const json *variables, buffer *out, error *err) {
    const json *tools = json_get(variables, "tools");
    const chat_template *t =
        f->with_tools && (!f->plain || (tools && !json_is(tools, JSON_NULL))) ? f->with_tools : f->plain;
    if (!t) return no_template(f->dir, err);
    return template_render(t, variables, NULL, out, err);
}

err_code chat_format_render(chat_format *f, const json *input, buffer *out, error *err) {
    const json *variables;
    arena_reset(f->work);
    ERR_TRY(chat_input_variables(f->work, input, &variables, err));
    return render(f, variables, out, err);
}

/* ---- chat_template_kwargs */

static bool is_one_of(span name, const char *const *names) {
    for (; *names; names++)
        if (span_is(name, *names)) return true;
    return false;
}

/* "false" as a string would be true in a template: switches are booleans or refused. */
static err_code check_keyword(const json *k, error *err) {
    static const char *const switches[] = {"enable_thinking", "preserve_thinking",      "thinking",
                                           "add_vision_id",   "continue_final_message", NULL};
    static const char *const reserved[] = {"messages", "tools", "add_generation_prompt", NULL};
    static const char *const words[] = {"true", "false", "True", "False", NULL};
    int n = (int)(k->key.size < 64 ? k->key.size : 64);
    if (is_one_of(k->key, reserved))
        ERR_FAIL(err, ERR_INVALID, "chat_template_kwargs.%.*s: cannot be set here", n, k->key.data);
    bool boolean = json_is(k, JSON_TRUE) || json_is(k, JSON_FALSE);
    bool spelled = json_is(k, JSON_STRING) && is_one_of(k->text, words);
    if (spelled || (is_one_of(k->key, switches) && !boolean))
        ERR_FAIL(err, ERR_INVALID, "chat_template_kwargs.%.*s: must be true or false (a JSON boolean)", n, k->key.data);
    return ERR_OK;
}

static err_code add_keywords(arena *a, const json *kwargs, json *variables, error *err) {
    if (!kwargs || json_is(kwargs, JSON_NULL)) return ERR_OK;
    if (!json_is(kwargs, JSON_OBJECT)) ERR_FAIL(err, ERR_INVALID, "chat_template_kwargs: must be an object");
    if (kwargs->count > KEYWORDS_MAX)
        ERR_FAIL(err, ERR_INVALID, "chat_template_kwargs: %u members, more than %d", kwargs->count, KEYWORDS_MAX);
    for (const json *k = kwargs->first; k; k = k->next) {
        if (json_get_span(kwargs, k->key) != k) continue; /* repeated: the last one counts */
        ERR_TRY(check_keyword(k, err));
        if (!span_is(k->key, "continue_final_message")) json_set(variables, k->key, chat_input_share(a, k));
    }
    return ERR_OK;
}

/* The template's variables, generation prompt aside. Keyword arguments come first so that defaults fill what is absent. */
static err_code make_variables(chat_format *f, const json *messages, const json *tools, const json *kwargs, json **out,
                               error *err) {
    arena *a = f->work;
    json *v = *out = json_new(a, JSON_OBJECT);
    ERR_TRY(add_keywords(a, kwargs, v, err));
    json_set(v, span_text("messages"), chat_input_share(a, messages));
    json_set(v, span_text("tools"), tools ? chat_input_share(a, tools) : json_new(a, JSON_NULL));
    if (!json_get(v, "enable_thinking"))
        json_set(v, span_text("enable_thinking"), json_new(a, f->reasoning ? JSON_TRUE : JSON_FALSE));
    for (const json *t = f->tokens->first; t; t = t->next)
        if (!json_get_span(v, t->key)) json_set(v, t->key, chat_input_share(a, t));
    return ERR_OK;
}

/* ---- the generation prompt */

static size_t common_prefix(const buffer *a, const buffer *b) {
    size_t n = a->size < b->size ? a->size : b->size, i = 0;
    while (i + 4096 <= n && memcmp(a->data + i, b->data + i, 4096) == 0) i += 4096;
    while (i < n && a->data[i] == b->data[i]) i++;
    return i;
}

static ptrdiff_t find_last(span s, span what) {
    for (size_t i = s.size + 1; i-- > 0;)
        if (s.size - i >= what.size && memcmp(s.data + i, what.data, what.size) == 0) return (ptrdiff_t)i;
    return -1;
}

static bool leaves_think_open(span text) {
    return find_last(text, span_text("<think>")) > find_last(text, span_text("</think>"));
}

/* Cuts the prompt (rendered without a generation prompt) after the text of its last message, the assistant's. */
static err_code cut_after_final(buffer *prompt, const json *messages, bool *think_open, error *err) {
    const json *last = messages->count ? json_at(messages, messages->count - 1) : NULL,
               *content = json_get(last, "content");
    span text = json_is(content, JSON_STRING) ? content->text : (span){0};
    while (text.size && strchr(" \t\r\n", text.data[text.size - 1])) text.size--;
    while (text.size && strchr(" \t\r\n", text.data[0])) text = span_make(text.data + 1, text.size - 1);
    if (!json_string_is(json_get(last, "role"), "assistant") || !text.size || json_get(last, "tool_calls"))
        ERR_FAIL(err, ERR_INVALID,
                 "chat_template_kwargs.continue_final_message: the last message must be the assistant's, with text and "
                 "without tool calls");
    ptrdiff_t at = find_last(span_make(prompt->data, prompt->size), text);
    if (at < 0)
        ERR_FAIL(err, ERR_UNSUPPORTED,
                 "chat_template_kwargs.continue_final_message: the template changes the message's text");
    prompt->size = (size_t)at + text.size;
    prompt->data[prompt->size] = 0;
    *think_open = leaves_think_open(text);
    return ERR_OK;
}

/* Fills f->prompt; *history = bytes of it that are not generation prompt. */
static err_code render_prompt(chat_format *f, json *variables, bool continues, size_t *history, bool *think_open,
                              error *err) {
    json *generate = json_new(f->work, JSON_FALSE);
    json_set(variables, span_text("add_generation_prompt"), generate);
    buffer_clear(&f->history);
    buffer_clear(&f->prompt);
    ERR_TRY(render(f, variables, continues ? &f->prompt : &f->history, err));
    if (continues) {
        ERR_TRY(cut_after_final(&f->prompt, json_get(variables, "messages"), think_open, err));
        *history = f->prompt.size;
        return ERR_OK;
    }
    generate->type = JSON_TRUE;
    ERR_TRY(render(f, variables, &f->prompt, err));
    *history = common_prefix(&f->history, &f->prompt);
    *think_open = leaves_think_open(span_make(f->prompt.data + *history, f->prompt.size - *history));
    return ERR_OK;
}

/* ---- tokens */

static memo_slot *choose_memo(chat_format *f, span text) {
    memo_slot *best = NULL, *oldest = &f->memos[0];
    size_t most = 0;
    for (memo_slot *m = f->memos; m < f->memos + MEMOS; m++) {
        size_t common = m->memo ? token_memo_common(m->memo, text) : 0;
        if (common > most && common >= m->size / 2) {
            most = common;
            best = m;
        }
        if (m->used < oldest->used) oldest = m;
    }
    if (!best) best = oldest;
    if (!best->memo) best->memo = token_memo_create();
    best->size = text.size;
    best->used = ++f->clock;
    return best;
}

/* The last places where a turn ends: after the end-of-turn token and the newline that follows it. */
static void find_message_ends(const chat_format *f, chat_prompt *p) {
    enum { MAX = sizeof p->message_ends / sizeof *p->message_ends };
    size_t ends[MAX];
    int n = 0;
    for (size_t i = p->history_count; i-- > 0 && n < MAX && f->end_of_turn >= 0;) {
        if (p->ids.ids[i] != f->end_of_turn) continue;
        size_t end = i + 1;
        if (end < p->history_count && span_is(tokenizer_bytes(f->tokenizer, p->ids.ids[end]), "\n")) end++;
        ends[n++] = end;
    }
    p->message_end_count = n;
    for (int i = 0; i < n; i++) p->message_ends[i] = ends[n - 1 - i];
}

static err_code tokenize(chat_format *f, size_t history, chat_prompt *out, error *err) {
    span text = span_make(f->prompt.data, f->prompt.size);
    memo_slot *slot = choose_memo(f, text);
    const int32_t *ids;
    size_t count;
    ERR_TRY(token_memo_encode(slot->memo, f->tokenizer, text, &ids, &count, NULL, err));
    out->ids = (token_list){.ids = mem_alloc(count * sizeof *ids), .count = count, .capacity = count};
    if (count) memcpy(out->ids.ids, ids, count * sizeof *ids);
    out->history_count = token_memo_index(slot->memo, history);
    find_message_ends(f, out);
    return ERR_OK;
}

err_code chat_format_prompt(chat_format *f, const json *messages, const json *tools, const json *kwargs,
                            chat_prompt *out, error *err) {
    const json *normal, *normal_tools;
    json *variables;
    size_t history = 0;
    *out = (chat_prompt){0};
    arena_reset(f->work);
    ERR_TRY(messages_normalize(f->work, messages, &normal, err));
    ERR_TRY(tools_normalize(f->work, tools, &normal_tools, err));
    ERR_TRY(make_variables(f, normal, normal_tools, kwargs, &variables, err));
    bool continues = json_is(json_get(kwargs, "continue_final_message"), JSON_TRUE);
    ERR_TRY(render_prompt(f, variables, continues, &history, &out->reasoning_open, err));
    return tokenize(f, history, out, err);
}
