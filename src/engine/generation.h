/* From sampled token ids to the events of an answer: bytes, whole characters, parsed message, stop strings.
 *
 *     token bytes -> whole UTF-8 characters -> output parser (reasoning | content | calls) -> stop strings -> emit
 *
 * Stop strings are looked for in the visible content only: a stop string never cuts reasoning or the arguments of a tool
 * call, which the client does not see as text of the answer. Tokens marked special are not text. Without a tokenizer the
 * text of a token is its id in decimal and a space. */
#ifndef HEARTH_ENGINE_GENERATION_H
#define HEARTH_ENGINE_GENERATION_H

#include "hearth.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

typedef void generation_emit(void *context, hearth_event_type type, int index, span text);

typedef struct generation_options {
    const tokenizer *tokens; /* borrowed, may be NULL */
    const json *tools;       /* borrowed */
    bool raw;                /* no parser: all text is content */
    bool parse_calls, reasoning_open;
    const char *const *stop;
    int stop_count;
    generation_emit *emit;
    void *context;
} generation_options;

typedef struct generation generation;
generation *generation_create(const generation_options *options);
void generation_destroy(generation *g);
/* True when a stop string is complete: the answer ends before it, generation_finish must not be called. */
bool generation_feed(generation *g, int32_t id);
/* The answer ends after what was fed; truncated: by a token limit. */
void generation_finish(generation *g, bool truncated);
bool generation_in_reasoning(const generation *g);
int generation_calls(const generation *g); /* complete calls */

#endif
