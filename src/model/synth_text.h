/* The text side of a synthetic checkpoint without a tokenizer of its own: byte-level, no merges, Qwen's special tokens
 * and message format. */
#ifndef HEARTH_MODEL_SYNTH_TEXT_H
#define HEARTH_MODEL_SYNTH_TEXT_H

#include "base/memory.h"

void synth_tokenizer_json(buffer *out); /* appends a whole tokenizer.json */
extern const char synth_tokenizer_config[];
extern const char synth_chat_template[];

#endif
