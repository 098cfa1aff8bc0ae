/* Reading golden numbers: .npy arrays, golden.json, and the checkpoints they belong to. Failures fail the running test. */
#ifndef HEARTH_TESTS_GOLDEN_FILES_H
#define HEARTH_TESTS_GOLDEN_FILES_H

#include <stdbool.h>

#include "base/json.h"
#include "base/memory.h"

/* A .npy array, '<f4', '<i4' or '|u1'. */
typedef struct npy {
    buffer bytes; /* owned */
    const void *data;
    int64_t shape[4]; /* missing dimensions are 1 */
    int rank;
    bool is_float, is_byte;
} npy;
npy npy_load(const char *dir, const char *name);
void npy_free(npy *a);
const float *npy_row(const npy *a, int64_t row); /* row of the first dimension */

typedef struct json_file {
    buffer bytes;
    arena *tree;
    const json *root;
} json_file;
json_file json_load(const char *dir, const char *name);
void json_file_free(json_file *f);

/* Members that must be there. */
const json *golden_get(const json *object, const char *key);
int64_t golden_integer(const json *object, const char *key);
double golden_number(const json *object, const char *key);
int golden_ints(const json *object, const char *key, int32_t *out, int max); /* the number of items */

/* Directory of an oracle checkpoint: among the reference data, else written once into build/oracle-ckpt by the reference
 * script. NULL, with the reason printed, where neither is possible. Static storage. */
const char *golden_checkpoint(const char *name);

#endif
