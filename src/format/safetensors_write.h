/* Writing a safetensors file: the header first, then the data of each tensor, streamed in the order of the plan.
 * Nothing of a tensor's size is held in memory. */
#ifndef HEARTH_FORMAT_SAFETENSORS_WRITE_H
#define HEARTH_FORMAT_SAFETENSORS_WRITE_H

#include "base/error.h"
#include "format/checkpoint.h"

typedef struct tensor_plan {
    const char *name; /* borrowed */
    dtype type;
    int rank;
    int64_t shape[TENSOR_RANK_MAX];
} tensor_plan;

uint64_t tensor_plan_count(const tensor_plan *t); /* elements */
uint64_t tensor_plan_bytes(const tensor_plan *t);

typedef struct safetensors_writer safetensors_writer;

/* Creates path and writes the header for count tensors. */
err_code safetensors_write_begin(const char *path, const tensor_plan *plan, int count, safetensors_writer **out,
                                 error *err);
/* Appends data; the pieces of all tensors together must be exactly what the plan says. */
err_code safetensors_write_data(safetensors_writer *w, const void *data, size_t size, error *err);
/* Checks that everything was written, syncs, closes and frees w, also on failure. */
err_code safetensors_write_end(safetensors_writer *w, error *err);
/* Closes and frees w without finishing (after an error elsewhere). The file stays incomplete. NULL is allowed. */
void safetensors_write_abort(safetensors_writer *w);

#endif
