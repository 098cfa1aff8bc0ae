/* Files: mapped read-only, read whole, written atomically.
 *
 * Every message begins with the path. A path that does not exist is ERR_NOT_FOUND, any other refusal of the system
 * ERR_IO, a thing of the wrong kind (a pipe to map, a device to replace) ERR_INVALID. */
#ifndef HEARTH_BASE_FILE_H
#define HEARTH_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct file_map {
    const uint8_t *data; /* read-only; NULL when size is 0 */
    uint64_t size;
} file_map;

/* Maps a regular file. A file that shrinks while mapped is the user's doing (SIGBUS). */
err_code file_map_open(const char *path, file_map *out, error *err);
void file_map_close(file_map *map);

/* Reads a regular file, a pipe or standard input ("-") whole; more than size_max bytes are ERR_LIMIT. *out is set, not
 * appended to: an owned buffer whose data is never NULL on success, and empty on failure. */
err_code file_read(const char *path, size_t size_max, buffer *out, error *err);

/* Writes path through a temporary file in the same directory, fsync and rename: readers see the old or the new file,
 * also after a crash. The mode of an existing file is kept; a symbolic link is replaced by the file. */
err_code file_write_atomic(const char *path, span data, error *err);
/* Whether that could begin now: for telling before a long run rather than after it. Leaves nothing behind. */
err_code file_check_writable(const char *path, error *err);

bool file_exists(const char *path);
err_code file_make_dirs(const char *path, error *err); /* mkdir -p */
/* "dir/name" into an owned string. */
char *file_join(const char *dir, const char *name);

#endif
