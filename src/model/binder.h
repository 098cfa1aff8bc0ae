/* Finding tensors by name and turning them into vectors and matrices, whatever layout they are stored in. Private to
 * src/model.
 *
 * A binder never stops at the first problem: a checkpoint in an unknown layout is understood from the list. Every tensor
 * that was asked for is marked, so that what remains unmarked at the end is known to be unknown. Warnings are what can be
 * run but looks wrong. */
#ifndef HEARTH_MODEL_BINDER_H
#define HEARTH_MODEL_BINDER_H

#include "base/memory.h"
#include "format/checkpoint.h"
#include "format/quant_config.h"
#include "ops/ops.h"

enum { BINDER_NAME_MAX = 256, WARNINGS_MAX = 32 };

typedef struct binder {
    const checkpoint *ckpt;
    const quant_config *quant;
    arena *memory;   /* vectors, scales, warnings */
    bool *used;      /* [checkpoint_count] */
    buffer problems; /* text */
    int problem_count, problems_shown;
    char **warnings; /* [WARNINGS_MAX], in memory */
    int warning_count;
    uint64_t bytes;               /* bound so far */
    int quantised_inputs;         /* matrices whose inputs the checkpoint quantises */
    int misfits;                  /* matrices stored otherwise than the configuration says */
    char misfit[BINDER_NAME_MAX]; /* the first of them */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
    uint64_t looked_at, to_look_at; /* bytes of matrices, for progress */
} binder;

void binder_problem(binder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* At most WARNINGS_MAX are kept: the last one then says how many more there are. */
void binder_warn(binder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* prefix + name, marked as used; NULL when absent. */
const tensor *binder_find(binder *b, const char *prefix, const char *name);
/* Of the given shape and BF16, F16 or F32, else NULL and a problem. */
const tensor *binder_need(binder *b, const char *prefix, const char *name, const int64_t *shape, int rank);
/* A number stored as [] or [1]: finite and above zero, else a problem and 1. `absent` when there is no such tensor. */
float binder_scale(binder *b, const char *prefix, const char *name, float absent);

float binder_element(const tensor *t, uint64_t i); /* of a BF16, F16 or F32 tensor */
float *binder_vector(binder *b, const tensor *t);  /* an fp32 copy, 64-byte aligned */
void binder_shape_text(char out[64], const int64_t *shape, int rank);

/* bind_matrix.c: prefix + module + ".weight" in any layout, its values checked. `vocabulary`: one row per token id, zero
 * rows at the end are padding. Zero-filled, with problems, when something is wrong. */
typedef enum { MATRIX_OF_LAYER, MATRIX_OF_VOCABULARY } matrix_role;
matrix binder_matrix(binder *b, const char *prefix, const char *module, int rows, int cols, matrix_role role);
/* The same, but BF16, F16 or F32 only. */
matrix binder_plain_matrix(binder *b, const char *prefix, const char *module, int rows, int cols, matrix_role role);
/* Whether the module is there in any layout. */
bool binder_has_matrix(const binder *b, const char *prefix, const char *module);

/* weight_check.c: looks at the numbers: what cannot be right is a problem, what looks wrong a warning. */
void weight_check(binder *b, const char *name, const matrix *w, matrix_role role);

#endif
