/* The body of POST /v1/chat/completions, checked field by field. No sockets, no engine.
 *
 * Nothing is ignored silently: a field is honoured, or known not to change the answer (docs/http-api.md lists those), or
 * refused with its name. null counts as absent everywhere. What is inside messages, tools and chat_template_kwargs is
 * checked by the library when it renders the prompt. */
#ifndef HEARTH_SERVE_CHAT_REQUEST_H
#define HEARTH_SERVE_CHAT_REQUEST_H

#include "base/json.h"
#include "hearth.h"
#include "serve/api_error.h"

enum { STOP_MAX = 16 };

typedef struct chat_request {
    hearth_request_params params; /* borrows from the body and the arena; `ready` is not set */
    const char *stop[STOP_MAX];
    bool stream, include_usage;
} chat_request;

/* model: the only id that is known; context_max: the largest max_tokens. The body must outlive *out. */
bool chat_request_parse(arena *a, span body, const char *model, int context_max, chat_request *out, api_error *e);

#endif
