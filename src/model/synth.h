/* Random checkpoints of named shapes: for benches, demos and tests where no real weights are at hand.
 *
 * The files look like published ones (config.json, generation_config.json, safetensors shards, tokenizer, chat template);
 * the weights are bell-shaped with scales that keep activations and logits in a sane range. The same preset, seed and
 * tokenizer give the same bytes on every machine and for any number of threads. */
#ifndef HEARTH_MODEL_SYNTH_H
#define HEARTH_MODEL_SYNTH_H

#include <stdint.h>

#include "base/error.h"
#include "base/threads.h"

typedef struct synth_options {
    uint64_t seed;
    const char *tokenizer_dir; /* copied; sets the vocabulary. NULL: a byte-level tokenizer of our own is written */
    pool *pool;                /* borrowed, or NULL */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes); /* may be NULL */
    void *progress_context;
} synth_options;

/* preset: "tiny", "0.8b", "2b", "4b", "9b" or "27b". Writes DIR, which must not exist or be empty; it appears when
 * complete. */
err_code synth_write(const char *preset, const char *dir, const synth_options *options, error *err);

#endif
