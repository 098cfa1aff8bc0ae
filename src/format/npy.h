/* Writing fp32 matrices as NumPy's .npy (version 1.0, C order, little endian), row by row. */
#ifndef HEARTH_FORMAT_NPY_H
#define HEARTH_FORMAT_NPY_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

typedef struct npy_writer {
    FILE *file;
    const char *path;      /* borrowed */
    int64_t cols, missing; /* rows still to be written */
} npy_writer;

/* Creates path for a [rows, cols] array. The shape is fixed here; npy_close fails when rows are missing. */
err_code npy_create(const char *path, int64_t rows, int64_t cols, npy_writer *out, error *err);
err_code npy_write(npy_writer *w, const float *data, int64_t rows, error *err);
err_code npy_close(npy_writer *w, error *err);
void npy_abandon(npy_writer *w); /* closes and removes the file; harmless after npy_close */

#endif
