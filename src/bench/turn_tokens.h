/* Token ids of recorded turns: the prompt as a server sees it, and the recorded answer as the model would emit it.
 *
 * Teacher-forced as the replay is: the prompt holds the recorded history (its reasoning included, as the client sends it)
 * and ends with the generation prompt of a server with reasoning off. The answer leaves the reasoning out, since such a
 * server does not write any: what follows the generation prompt, up to and with the token that ends the message. */
#ifndef HEARTH_BENCH_TURN_TOKENS_H
#define HEARTH_BENCH_TURN_TOKENS_H

#include "bench/agent_trace.h"
#include "text/chat.h"

typedef struct turn_tokens turn_tokens;

/* dir: tokenizer and template of a model directory; weights are not needed. ERR_UNSUPPORTED when the template puts
 * something else than the generation prompt in front of an answer, so that the two cannot be told apart. */
err_code turn_tokens_open(const char *dir, turn_tokens **out, error *err);
void turn_tokens_close(turn_tokens *t);

/* messages: the transcript up to and with what precedes the answer. Appends to prompt and answer; errors name the turn. */
err_code turn_tokens_read(turn_tokens *t, const trace_conversation *c, size_t at, const json *messages,
                          token_list *prompt, token_list *answer, error *err);

#endif
