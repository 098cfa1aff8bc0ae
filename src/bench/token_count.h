/* Tokens of prompts and answers, counted from text with the model's own tokenizer and template.
 *
 * Servers count differently (special tokens, reasoning, hidden text), so a comparison counts on the client's side. */
#ifndef HEARTH_BENCH_TOKEN_COUNT_H
#define HEARTH_BENCH_TOKEN_COUNT_H

#include "bench/reply.h"

typedef struct token_counter token_counter;

/* dir: tokenizer and template of a model directory; weights are not needed. */
err_code token_counter_open(const char *dir, token_counter **out, error *err);
void token_counter_close(token_counter *c);

/* Tokens of the prompt that a server with reasoning off makes of the request. tools may be NULL. */
err_code token_counter_prompt(token_counter *c, const json *messages, const json *tools, size_t *out, error *err);

/* Tokens of an assistant message. Text alone is tokenised as it is. With calls the message is rendered through the
 * template behind a user message, less what an empty message takes; when the template refuses (a call without a name:
 * the rest of one that began in the first delta), its text and the calls' compact JSON are counted instead. */
size_t token_counter_message(token_counter *c, const reply_message *m);

#endif
