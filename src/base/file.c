/* Files; see file.h. Every message begins with the path, and ends with strerror where the system refused. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAIL_SYSTEM(err, path, action) \
    ERR_FAIL(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: cannot %s: %s", path, action, strerror(errno))

/* Mapping. */

static err_code map_descriptor(int fd, const char *path, file_map *out, error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) FAIL_SYSTEM(err, path, "stat");
    if (S_ISDIR(st.st_mode)) ERR_FAIL(err, ERR_IO, "%s: cannot map: %s", path, strerror(EISDIR));
    if (!S_ISREG(st.st_mode)) ERR_FAIL(err, ERR_INVALID, "%s: not a regular file", path);
    *out = (file_map){0};
    if (st.st_size == 0) return ERR_OK;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) FAIL_SYSTEM(err, path, "map");
    *out = (file_map){data, (uint64_t)st.st_size};
    return ERR_OK;
}

err_code file_map_open(const char *path, file_map *out, error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for the writer of a pipe */
    if (fd < 0) FAIL_SYSTEM(err, path, "open");
    err_code code = map_descriptor(fd, path, out, err);
    close(fd);
    return code;
}

void file_map_close(file_map *map) {
    if (map->data) munmap((void *)map->data, map->size);
    *map = (file_map){0};
}

/* Reading. */

static err_code read_descriptor(int fd, const char *name, size_t size_max, buffer *out, error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) FAIL_SYSTEM(err, name, "stat");
    size_t expected = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0; /* a hint: /proc files say 0 */
    if (expected > size_max) ERR_FAIL(err, ERR_LIMIT, "%s: %zu bytes exceed the limit %zu", name, expected, size_max);
    for (;;) {
        size_t room = expected >= out->size ? expected - out->size + 1 : 0; /* + 1 to meet the end in one read */
        if (room < 65536) room = 65536;
        ssize_t got = read(fd, buffer_reserve(out, room), room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) FAIL_SYSTEM(err, name, "read");
        out->size += (size_t)got;
        out->data[out->size] = 0;
        if (out->size > size_max)
            ERR_FAIL(err, ERR_LIMIT, "%s: at least %zu bytes exceed the limit %zu", name, out->size, size_max);
        if (got == 0) return ERR_OK;
    }
}

err_code file_read(const char *path, size_t size_max, buffer *out, error *err) {
    bool standard_input = strcmp(path, "-") == 0;
    const char *name = standard_input ? "standard input" : path;
    *out = (buffer){0};
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) FAIL_SYSTEM(err, path, "open");
    err_code code = read_descriptor(fd, name, size_max, out, err);
    if (!standard_input) close(fd);
    if (code != ERR_OK) buffer_deinit(out);
    return code;
}

/* Writing. */

static err_code write_all(int fd, const char *path, span data, error *err) {
    for (size_t done = 0; done < data.size;) {
        ssize_t wrote = write(fd, data.data + done, data.size - done);
        if (wrote < 0 && errno != EINTR) FAIL_SYSTEM(err, path, "write");
        if (wrote > 0) done += (size_t)wrote;
    }
    return ERR_OK;
}

/* Creates a new file beside path, with the mode that path has or a new file would get. The caller frees *temp. */
static err_code open_temp(const char *path, const char *dir, char **temp, int *fd, error *err) {
    static atomic_uint counter;
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) ERR_FAIL(err, ERR_INVALID, "%s: not a regular file", path);
    do { /* a crashed process may have left a file of this name */
        char name[64];
        snprintf(name, sizeof name, ".hearth-%ld-%u.tmp", (long)getpid(), atomic_fetch_add(&counter, 1));
        *temp = file_join(dir, name);
        *fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0) break;
        free(*temp);
    } while (errno == EEXIST);
    if (*fd < 0) FAIL_SYSTEM(err, path, "create a temporary file beside it");
    if (exists) (void)!fchmod(*fd, st.st_mode & 07777); /* best effort: the contents matter more */
    return ERR_OK;
}

static err_code write_and_sync(int fd, const char *path, span data, error *err) {
    ERR_TRY(write_all(fd, path, data, err));
    if (fsync(fd) != 0) FAIL_SYSTEM(err, path, "sync");
    return ERR_OK;
}

/* Makes the rename itself last; file systems that cannot sync a directory say EINVAL. */
static err_code sync_dir(const char *dir, error *err) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) FAIL_SYSTEM(err, dir, "open");
    int failed = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    if (failed) ERR_FAIL(err, ERR_IO, "%s: cannot sync: %s", dir, strerror(failed));
    return ERR_OK;
}

static err_code replace_file(const char *temp, int fd, const char *path, span data, error *err) {
    err_code code = write_and_sync(fd, path, data, err);
    if (close(fd) != 0 && code == ERR_OK) FAIL_SYSTEM(err, path, "close");
    ERR_TRY(code);
    if (rename(temp, path) != 0) FAIL_SYSTEM(err, path, "rename a temporary file to it");
    return ERR_OK;
}

static err_code write_in_dir(const char *path, const char *dir, span data, error *err) {
    char *temp;
    int fd;
    ERR_TRY(open_temp(path, dir, &temp, &fd, err));
    err_code code = replace_file(temp, fd, path, data, err);
    if (code != ERR_OK) unlink(temp);
    free(temp);
    return code == ERR_OK ? sync_dir(dir, err) : code;
}

static char *dir_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? mem_copy(path, slash == path ? 1 : (size_t)(slash - path)) : mem_copy(".", 1);
}

err_code file_check_writable(const char *path, error *err) {
    char *dir = dir_of(path), *temp;
    int fd;
    err_code code = open_temp(path, dir, &temp, &fd, err);
    free(dir);
    if (code != ERR_OK) return code;
    close(fd);
    unlink(temp);
    free(temp);
    return ERR_OK;
}

err_code file_write_atomic(const char *path, span data, error *err) {
    char *dir = dir_of(path);
    err_code code = write_in_dir(path, dir, data, err);
    free(dir);
    return code;
}

/* Names. */

bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static err_code make_dir(const char *path, error *err) {
    if (mkdir(path, 0777) == 0) return ERR_OK;
    int reason = errno;
    struct stat st;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return ERR_OK;
        reason = ENOTDIR;
    }
    ERR_FAIL(err, reason == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: cannot create the directory: %s", path,
             strerror(reason));
}

err_code file_make_dirs(const char *path, error *err) {
    char *prefix = mem_copy(path, strlen(path));
    err_code code = ERR_OK;
    for (char *slash = prefix; code == ERR_OK && *slash && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        code = make_dir(prefix, err);
        *slash = '/';
    }
    if (code == ERR_OK) code = make_dir(path, err);
    free(prefix);
    return code;
}

char *file_join(const char *dir, const char *name) {
    buffer path = {0};
    buffer_text(&path, dir);
    if (path.size && path.data[path.size - 1] != '/') buffer_char(&path, '/');
    buffer_text(&path, name);
    return buffer_take(&path);
}
