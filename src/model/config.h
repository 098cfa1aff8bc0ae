/* config.json and generation_config.json of a Qwen3.5 / 3.6 checkpoint, every number checked. */
#ifndef HEARTH_MODEL_CONFIG_H
#define HEARTH_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LAYERS_MAX = 256, STOP_IDS_MAX = 8 };

typedef struct model_config {
    int layers, hidden, ffn, vocab_rows;
    bool full_attention[LAYERS_MAX]; /* else Gated DeltaNet */
    int attention_layers, gdn_layers;
    int heads, kv_heads, head_dim, rotary_dim;
    double rope_theta;
    int key_heads, value_heads, key_dim, value_dim, conv_taps, channels;
    float norm_eps;
    bool tied_head;
    int mtp_layers;      /* 0 or 1 */
    int64_t context_max; /* max_position_embeddings */
    bool vision;         /* a vision tower is described: its tensors are expected and ignored */
    char model_type[64];
    /* generation_config.json; where it is silent: stop ids of config.json, temperature 1, no filter, sampling on */
    int32_t stop_ids[STOP_IDS_MAX];
    int stop_count;
    float temperature, top_p, min_p;
    int top_k; /* 0 = no limit */
    bool do_sample;
} model_config;

/* Reads DIR/config.json (fields at top level or under text_config) and DIR/generation_config.json (optional). Errors name
 * file, field and value. Unknown architectures, rope types, activations etc. are refused by name, never assumed. */
err_code model_config_read(const char *dir, model_config *out, error *err);

#endif
