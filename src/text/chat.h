/* From a conversation to token ids: message model, template and tokenizer of one model directory together. */
#ifndef HEARTH_TEXT_CHAT_H
#define HEARTH_TEXT_CHAT_H

#include "text/template.h"
#include "text/tokenizer.h"

typedef struct chat_format chat_format;

/* Opens tokenizer and template of DIR: chat_template.jinja, else `chat_template` of tokenizer_config.json (a string, or
 * a list of named templates: "default", and "tool_use" where tools are given). Works without weights.
 * reasoning: the default of enable_thinking. A directory without a template opens; rendering then fails with a message. */
err_code chat_format_open(const char *dir, bool reasoning, chat_format **out, error *err);
void chat_format_close(chat_format *f);
const tokenizer *chat_format_tokenizer(const chat_format *f);
bool chat_format_has_template(const chat_format *f);

typedef struct chat_prompt {
    token_list ids;         /* the canonical tokenisation of the rendered text */
    size_t history_count;   /* leading ids that do not belong to the generation prompt */
    size_t message_ends[8]; /* ascending ids counts at which the last messages end; candidates for snapshots */
    int message_end_count;
    bool reasoning_open; /* the generation prompt leaves a think block open */
} chat_prompt;
void chat_prompt_deinit(chat_prompt *p);

/* messages, tools, kwargs: parsed JSON (tools and kwargs may be NULL; kwargs is chat_template_kwargs, an object whose
 * enable_thinking etc. must be booleans). Normalises, renders with and without the generation prompt, tokenises through
 * the memo whose text is closest. One thread at a time.
 *
 * A last message of the assistant is history, and a new turn begins after it. With the keyword argument
 * continue_final_message (true) the prompt instead ends in that message's text, without its end marker, and there is no
 * generation prompt. */
err_code chat_format_prompt(chat_format *f, const json *messages, const json *tools, const json *kwargs,
                            chat_prompt *out, error *err);

/* The rendered text only (dump prompt, tests). input is given to the template as it is. */
err_code chat_format_render(chat_format *f, const json *input, buffer *out, error *err);

/* The template of DIR alone, compiled, as chat_format_open finds it; needs no tokenizer. ERR_NOT_FOUND if there is none. */
err_code chat_template_open(const char *dir, bool tools, chat_template **out, error *err);

#endif
