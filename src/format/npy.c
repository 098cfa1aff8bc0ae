/* See npy.h. The header is a Python literal, padded with spaces so that the data starts at a multiple of 64. */
#include "format/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy_write stores floats as they are in memory"
#endif

static err_code put(npy_writer *w, const void *data, size_t size, error *err) {
    if (fwrite(data, 1, size, w->file) != size) ERR_FAIL(err, ERR_IO, "%s: cannot write: %s", w->path, strerror(errno));
    return ERR_OK;
}

static err_code put_header(npy_writer *w, int64_t rows, int64_t cols, error *err) {
    buffer b = {0};
    buffer_append(&b, "\x93NUMPY\x01\x00\0\0", 10);
    buffer_printf(&b, "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }", rows, cols);
    while ((b.size + 1) % 64) buffer_char(&b, ' ');
    buffer_char(&b, '\n');
    b.data[8] = (char)((b.size - 10) & 255);
    b.data[9] = (char)((b.size - 10) >> 8);
    err_code code = put(w, b.data, b.size, err);
    buffer_deinit(&b);
    return code;
}

err_code npy_create(const char *path, int64_t rows, int64_t cols, npy_writer *out, error *err) {
    *out = (npy_writer){.file = fopen(path, "wb"), .path = path, .cols = cols, .missing = rows};
    if (!out->file) ERR_FAIL(err, ERR_IO, "%s: cannot create: %s", path, strerror(errno));
    err_code code = put_header(out, rows, cols, err);
    if (code) npy_abandon(out);
    return code;
}

err_code npy_write(npy_writer *w, const float *data, int64_t rows, error *err) {
    HEARTH_ASSERT(rows <= w->missing);
    w->missing -= rows;
    return put(w, data, (size_t)rows * (size_t)w->cols * sizeof *data, err);
}

/* A file that is not whole goes; a device or a pipe that was given as the output is not ours to remove. */
static void discard(npy_writer *w) {
    struct stat st;
    if (stat(w->path, &st) == 0 && S_ISREG(st.st_mode)) unlink(w->path);
}

err_code npy_close(npy_writer *w, error *err) {
    HEARTH_ASSERT(!w->missing);
    FILE *file = w->file;
    w->file = NULL;
    if (fclose(file) == 0) return ERR_OK;
    int why = errno;
    discard(w);
    ERR_FAIL(err, ERR_IO, "%s: cannot write: %s", w->path, strerror(why));
}

void npy_abandon(npy_writer *w) {
    if (!w->file) return;
    fclose(w->file);
    w->file = NULL;
    discard(w);
}
