/* What a tensor's bytes mean, for display: a packed matrix with its scales is one thing of one format. */
#ifndef HEARTH_CLI_STORED_FORMAT_H
#define HEARTH_CLI_STORED_FORMAT_H

#include "format/checkpoint.h"

typedef struct stored_format {
    const char *name;        /* "NVFP4", "FP8", "FP8 blocks", or the dtype */
    const tensor *owner;     /* the matrix that this tensor is a scale of; else the tensor itself */
    int columns_per_element; /* 2 where two numbers share an element */
} stored_format;

stored_format stored_format_of(const checkpoint *c, const tensor *t);

#endif
