/* What a checkpoint says about its quantisation: which method, which layer how, which layers not at all.
 *
 * Read from hf_quant_config.json (ModelOpt) and from quantization_config in config.json; where both exist they must name
 * the same algorithm. How a tensor is stored is decided by the tensors, never by this: it is used to refuse methods that
 * this build does not know, to tell W4A16 layers from W4A4 ones, and to notice a file that contradicts itself.
 *
 * Known: ModelOpt NVFP4, W4A16_NVFP4, FP8 and MIXED_PRECISION of these; compressed-tensors nvfp4-pack-quantized; fp8 with
 * blocks of 128 x 128. */
#ifndef HEARTH_FORMAT_QUANT_CONFIG_H
#define HEARTH_FORMAT_QUANT_CONFIG_H

#include <stdbool.h>

#include "base/error.h"

typedef enum { QUANT_NONE, QUANT_NVFP4, QUANT_W4A16_NVFP4, QUANT_FP8, QUANT_FP8_BLOCK } quant_algo;

typedef struct quant_config quant_config;

/* *out is never NULL on success: a directory without either description quantises nothing. Errors name file, field and
 * value; an unknown method is ERR_UNSUPPORTED. */
err_code quant_config_read(const char *dir, quant_config **out, error *err);
void quant_config_free(quant_config *q);

/* What the module (a tensor's name without ".weight") should be. */
quant_algo quant_config_of(const quant_config *q, const char *module);
const char *quant_config_name(const quant_config *q); /* "ModelOpt NVFP4"; "none" */

#endif
