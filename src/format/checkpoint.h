/* A checkpoint directory as published: safetensors shards, mapped read-only, as one table of named tensors.
 *
 * Opens model.safetensors, or the shards that model.safetensors.index.json names. Every header field is checked against
 * the file size before use: dtype known, shape times size equals the byte range, ranges in bounds and not overlapping,
 * names unique. An error names file, tensor and byte offset. */
#ifndef HEARTH_FORMAT_CHECKPOINT_H
#define HEARTH_FORMAT_CHECKPOINT_H

#include "base/error.h"
#include "format/dtype.h"

enum { TENSOR_RANK_MAX = 8 };

typedef struct tensor {
    const char *name; /* owned by the checkpoint, as everything here */
    dtype type;
    int rank;
    int64_t shape[TENSOR_RANK_MAX];
    uint64_t count;   /* elements */
    const void *data; /* in the mapped file: read-only, possibly unaligned */
    uint64_t bytes;
    const char *file; /* base name of the shard */
    uint64_t offset;  /* of data in the shard */
} tensor;

typedef struct checkpoint checkpoint;
err_code checkpoint_open(const char *dir, checkpoint **out, error *err);
void checkpoint_close(checkpoint *c);
int checkpoint_count(const checkpoint *c);
const tensor *checkpoint_at(const checkpoint *c, int index);          /* in name order */
const tensor *checkpoint_find(const checkpoint *c, const char *name); /* NULL when absent */

#endif
