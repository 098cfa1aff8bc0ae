/* Any bytes as a safetensors file: an error or a consistent list, nothing else. */
#include <stdint.h>
#include <stdlib.h>

#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *names = arena_create();
    tensor_list list = {0};
    error err;
    span bytes = span_make((const char *)data, size);
    if (!safetensors_parse(names, "fuzz", bytes, &list, &err)) {
        for (size_t i = 0; i < list.count; i++) {
            const tensor *t = &list.items[i];
            HEARTH_ASSERT(t->offset <= size && t->bytes <= size - t->offset);
            HEARTH_ASSERT(t->bytes == t->count * dtype_size(t->type));
        }
    }
    free(list.items);
    arena_destroy(names);
    return 0;
}
