/* Files: what is read, mapped and written, and that every refusal names the path and the reason. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "support.h"

#define BYTES(text) span_make(text, sizeof(text) - 1)

static const char *write_file(const char *name, span data) {
    const char *path = test_temp(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data.data, 1, data.size, file), data.size);
    fclose(file);
    return path;
}

static void expect(err_code got, err_code want, const error *err, const char *path, const char *rest) {
    assert_int_equal(got, want);
    char message[1400];
    snprintf(message, sizeof message, "%s%s", path, rest);
    assert_string_equal(err->message, message);
}

static void test_read(void **state) {
    (void)state;
    buffer b;
    assert_int_equal(file_read(write_file("small", BYTES("a\0b\n")), 100, &b, NULL), ERR_OK);
    assert_int_equal(b.size, 4);
    assert_memory_equal(b.data, "a\0b\n\0", 5);
    buffer_deinit(&b);
    assert_int_equal(file_read(write_file("empty", BYTES("")), 100, &b, NULL), ERR_OK);
    assert_int_equal(b.size, 0);
    assert_string_equal(b.data, "");
    buffer_deinit(&b);
}

static void test_read_large(void **state) {
    (void)state;
    enum { SIZE = 300001 };
    char *data = malloc(SIZE);
    for (int i = 0; i < SIZE; i++) data[i] = (char)(i * 31 >> 3);
    buffer b;
    assert_int_equal(file_read(write_file("large", span_make(data, SIZE)), SIZE, &b, NULL), ERR_OK);
    assert_int_equal(b.size, SIZE);
    assert_memory_equal(b.data, data, SIZE);
    buffer_deinit(&b);
    free(data);
}

static void test_read_limit(void **state) {
    (void)state;
    const char *path = write_file("limit", BYTES("12345"));
    error err = {0};
    buffer b;
    assert_int_equal(file_read(path, 5, &b, &err), ERR_OK);
    buffer_deinit(&b);
    expect(file_read(path, 4, &b, &err), ERR_LIMIT, &err, path, ": 5 bytes exceed the limit 4");
    assert_null(b.data);
    assert_int_equal(file_read(path, SIZE_MAX, &b, &err), ERR_OK);
    buffer_deinit(&b);
}

/* Files of /proc have no size, yet have contents. */
static void test_read_without_size(void **state) {
    (void)state;
    buffer b;
    error err = {0};
    assert_int_equal(file_read("/proc/version", 1 << 20, &b, &err), ERR_OK);
    size_t size = b.size;
    assert_true(size > 10);
    buffer_deinit(&b);
    assert_int_equal(file_read("/proc/version", size, &b, &err), ERR_OK);
    buffer_deinit(&b);
    assert_int_equal(file_read("/proc/version", size - 1, &b, &err), ERR_LIMIT);
    assert_non_null(strstr(err.message, "bytes exceed the limit"));
}

static void test_read_refused(void **state) {
    (void)state;
    error err = {0};
    buffer b;
    const char *missing = test_temp("missing");
    expect(file_read(missing, 10, &b, &err), ERR_NOT_FOUND, &err, missing, ": cannot open: No such file or directory");
    const char *dir = test_temp(".");
    expect(file_read(dir, 1 << 20, &b, &err), ERR_IO, &err, dir, ": cannot read: Is a directory");
    assert_null(b.data);
    expect(file_read("", 10, &b, &err), ERR_NOT_FOUND, &err, "", ": cannot open: No such file or directory");
}

static void *feed_pipe(void *path) {
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 50000; i++) fputs("0123456789", file);
    fclose(file);
    return NULL;
}

static void test_read_pipe(void **state) {
    (void)state;
    const char *path = test_temp("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed_pipe, (void *)path);
    buffer b;
    assert_int_equal(file_read(path, 1 << 20, &b, NULL), ERR_OK);
    pthread_join(feeder, NULL);
    assert_int_equal(b.size, 500000);
    assert_memory_equal(b.data + 499990, "0123456789\0", 11);
    buffer_deinit(&b);
}

static void test_read_standard_input(void **state) {
    (void)state;
    int saved = dup(STDIN_FILENO), fd = open(write_file("stdin", BYTES("typed")), O_RDONLY);
    dup2(fd, STDIN_FILENO);
    close(fd);
    buffer b;
    error err = {0};
    err_code code = file_read("-", 100, &b, &err);
    lseek(STDIN_FILENO, 0, SEEK_SET);
    buffer too_long;
    err_code refused = file_read("-", 2, &too_long, &err);
    bool still_open = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_int_equal(code, ERR_OK);
    assert_string_equal(b.data, "typed");
    expect(refused, ERR_LIMIT, &err, "standard input", ": 5 bytes exceed the limit 2");
    assert_true(still_open);
    buffer_deinit(&b);
}

static void test_map(void **state) {
    (void)state;
    file_map map;
    assert_int_equal(file_map_open(write_file("map", BYTES("mapped")), &map, NULL), ERR_OK);
    assert_int_equal(map.size, 6);
    assert_memory_equal(map.data, "mapped", 6);
    file_map_close(&map);
    assert_null(map.data);
    file_map_close(&map);
    assert_int_equal(file_map_open(write_file("map_empty", BYTES("")), &map, NULL), ERR_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    file_map_close(&map);
}

static void test_map_refused(void **state) {
    (void)state;
    file_map map;
    error err = {0};
    const char *missing = test_temp("missing"), *dir = test_temp("."), *pipe = test_temp("map_pipe");
    expect(file_map_open(missing, &map, &err), ERR_NOT_FOUND, &err, missing,
           ": cannot open: No such file or directory");
    expect(file_map_open(dir, &map, &err), ERR_IO, &err, dir, ": cannot map: Is a directory");
    assert_int_equal(mkfifo(pipe, 0600), 0); /* nobody writes: must not wait */
    expect(file_map_open(pipe, &map, &err), ERR_INVALID, &err, pipe, ": not a regular file");
    expect(file_map_open("/dev/null", &map, &err), ERR_INVALID, &err, "/dev/null", ": not a regular file");
}

static void expect_contents(const char *path, const char *text) {
    buffer b;
    assert_int_equal(file_read(path, 1 << 20, &b, NULL), ERR_OK);
    assert_string_equal(b.data, text);
    buffer_deinit(&b);
}

static int entries_in(const char *dir) {
    DIR *d = opendir(dir);
    assert_non_null(d);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(d));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(d);
    return count;
}

static void test_write(void **state) {
    (void)state;
    char dir[1024], path[1100];
    snprintf(dir, sizeof dir, "%s", test_temp("write"));
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    mode_t mask = umask(027);
    assert_int_equal(file_write_atomic(path, BYTES("one"), NULL), ERR_OK);
    umask(mask);
    expect_contents(path, "one");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(file_write_atomic(path, BYTES("second"), NULL), ERR_OK);
    expect_contents(path, "second");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);

    assert_int_equal(file_write_atomic(path, (span){0}, NULL), ERR_OK);
    expect_contents(path, "");
    assert_int_equal(entries_in(dir), 1);
}

static void test_write_relative(void **state) {
    (void)state;
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(test_temp(".")), 0);
    err_code code = file_write_atomic("relative", BYTES("x"), NULL);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(code, ERR_OK);
    expect_contents(test_temp("relative"), "x");
}

static void test_write_refused(void **state) {
    (void)state;
    error err = {0};
    char dir[1024], path[1100];
    snprintf(dir, sizeof dir, "%s", test_temp("refused"));
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    expect(file_write_atomic(dir, BYTES("x"), &err), ERR_INVALID, &err, dir, ": not a regular file");
    expect(file_write_atomic("/dev/null", BYTES("x"), &err), ERR_INVALID, &err, "/dev/null", ": not a regular file");
    snprintf(path, sizeof path, "%s/none/file", dir);
    expect(file_write_atomic(path, BYTES("x"), &err), ERR_NOT_FOUND, &err, path,
           ": cannot create a temporary file beside it: No such file or directory");
    /* The rename fails: a name too long for the file system. The temporary file goes. */
    memset(path, 'n', sizeof path);
    size_t at = (size_t)snprintf(path, sizeof path, "%s/", dir);
    path[at] = 'n';
    path[at + 300] = 0;
    expect(file_write_atomic(path, BYTES("x"), &err), ERR_IO, &err, path,
           ": cannot rename a temporary file to it: File name too long");
    assert_int_equal(entries_in(dir), 0);
}

static void test_check_writable(void **state) {
    (void)state;
    error err = {0};
    char dir[1024], path[1100];
    snprintf(dir, sizeof dir, "%s", test_temp("writable"));
    snprintf(path, sizeof path, "%s/file", dir);
    expect(file_check_writable(path, &err), ERR_NOT_FOUND, &err, path,
           ": cannot create a temporary file beside it: No such file or directory");
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    assert_int_equal(file_check_writable(path, NULL), ERR_OK);
    assert_int_equal(entries_in(dir), 0);
    expect(file_check_writable(dir, &err), ERR_INVALID, &err, dir, ": not a regular file");
}

/* The disk fills up (here: the process may not write more). The old file stays whole, the new one goes. */
static void test_write_full(void **state) {
    (void)state;
    char dir[1024], path[1100];
    snprintf(dir, sizeof dir, "%s", test_temp("full"));
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
    assert_int_equal(file_write_atomic(path, BYTES("old"), NULL), ERR_OK);
    struct rlimit saved, small;
    getrlimit(RLIMIT_FSIZE, &saved);
    small = saved;
    small.rlim_cur = 10;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    error err = {0};
    err_code code = file_write_atomic(path, BYTES("more than ten bytes"), &err);
    setrlimit(RLIMIT_FSIZE, &saved);
    signal(SIGXFSZ, handler);
    expect(code, ERR_IO, &err, path, ": cannot write: File too large");
    expect_contents(path, "old");
    assert_int_equal(entries_in(dir), 1);
}

static void test_make_dirs(void **state) {
    (void)state;
    char path[1100];
    static const char *const names[] = {"d/e/f", "d/e/f", "d//g/", "d/./h/../i"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *dir = test_temp(names[i]);
        assert_int_equal(file_make_dirs(dir, NULL), ERR_OK);
        assert_true(file_exists(dir));
    }
    assert_int_equal(file_make_dirs("/", NULL), ERR_OK);
    assert_int_equal(file_make_dirs(".", NULL), ERR_OK);
    error err = {0};
    snprintf(path, sizeof path, "%s", write_file("plain", BYTES("x")));
    expect(file_make_dirs(path, &err), ERR_IO, &err, path, ": cannot create the directory: Not a directory");
    char below[1200];
    snprintf(below, sizeof below, "%s/below", path);
    expect(file_make_dirs(below, &err), ERR_IO, &err, path, ": cannot create the directory: Not a directory");
    assert_int_equal(file_make_dirs("", &err), ERR_NOT_FOUND);
}

static void test_exists(void **state) {
    (void)state;
    assert_true(file_exists(write_file("here", BYTES("x"))));
    assert_false(file_exists(test_temp("not_here")));
    assert_false(file_exists(""));
}

static void test_join(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"dir", "name", "dir/name"}, {"dir/", "name", "dir/name"}, {"/", "name", "/name"},
        {"", "name", "name"},        {"a/b", "c/d", "a/b/c/d"},    {"dir", "", "dir/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = file_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_large),
        cmocka_unit_test(test_read_limit),
        cmocka_unit_test(test_read_without_size),
        cmocka_unit_test(test_read_refused),
        cmocka_unit_test(test_read_pipe),
        cmocka_unit_test(test_read_standard_input),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_refused),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_relative),
        cmocka_unit_test(test_write_refused),
        cmocka_unit_test(test_check_writable),
        cmocka_unit_test(test_write_full),
        cmocka_unit_test(test_make_dirs),
        cmocka_unit_test(test_exists),
        cmocka_unit_test(test_join),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
