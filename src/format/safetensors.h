/* One safetensors file as bytes in memory: header checked, tensors listed.
 *
 * Layout: u64 little-endian header length, a JSON object {name: {"dtype", "shape", "data_offsets": [begin, end]}} with an
 * optional "__metadata__" member, then the data that the offsets point into. */
#ifndef HEARTH_FORMAT_SAFETENSORS_H
#define HEARTH_FORMAT_SAFETENSORS_H

#include "base/error.h"
#include "base/memory.h"
#include "format/checkpoint.h"

enum { SAFETENSORS_HEADER_MAX = 100 << 20 };

typedef struct tensor_list {
    tensor *items; /* owned; release with free() */
    size_t count, capacity;
} tensor_list;

/* Appends the tensors of `bytes`, in file order. Names are copied into names; data pointers borrow from bytes; file must
 * outlive the list. Errors name file, tensor and byte offset. Names are unique within the file on success. */
err_code safetensors_parse(arena *names, const char *file, span bytes, tensor_list *out, error *err);

#endif
