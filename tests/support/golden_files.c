/* See golden_files.h. */
#include "golden_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support.h"

static buffer read_whole(const char *dir, const char *name) {
    error err;
    buffer bytes = {0};
    char *path = file_join(dir, name);
    if (file_read(path, (size_t)1 << 30, &bytes, &err)) fail_msg("%s", err.message);
    free(path);
    return bytes;
}

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (8, 640), } */
npy npy_load(const char *dir, const char *name) {
    npy a = {.bytes = read_whole(dir, name)};
    assert_true(a.bytes.size > 10 && !memcmp(a.bytes.data, "\x93NUMPY\x01\x00", 8));
    size_t header = (size_t)(uint8_t)a.bytes.data[8] | (size_t)(uint8_t)a.bytes.data[9] << 8;
    char text[512] = "";
    assert_true(header < sizeof text && a.bytes.size >= 10 + header);
    memcpy(text, a.bytes.data + 10, header);
    a.is_float = strstr(text, "<f4") != NULL;
    a.is_byte = strstr(text, "|u1") != NULL;
    assert_true(a.is_float || a.is_byte || strstr(text, "<i4"));
    const char *at = strchr(strstr(text, "shape"), '(') + 1;
    for (; *at && *at != ')' && a.rank < 4; at += strspn(at, ", ")) {
        char *end;
        a.shape[a.rank++] = strtoll(at, &end, 10);
        assert_true(end != at);
        at = end;
    }
    int64_t count = 1;
    for (int i = 0; i < 4; i++) count *= i < a.rank ? a.shape[i] : (a.shape[i] = 1);
    assert_int_equal(a.bytes.size, 10 + header + (a.is_byte ? 1 : 4) * (size_t)count);
    a.data = a.bytes.data + 10 + header;
    return a;
}

void npy_free(npy *a) { buffer_deinit(&a->bytes); }

const float *npy_row(const npy *a, int64_t row) {
    assert_true(a->is_float && row < a->shape[0]);
    return (const float *)a->data + row * a->shape[1] * a->shape[2] * a->shape[3];
}

json_file json_load(const char *dir, const char *name) {
    error err;
    json_file f = {.bytes = read_whole(dir, name), .tree = arena_create()};
    if (json_parse(f.tree, span_make(f.bytes.data, f.bytes.size), JSON_DEPTH_DEFAULT, &f.root, &err))
        fail_msg("%s/%s: %s", dir, name, err.message);
    return f;
}

void json_file_free(json_file *f) {
    arena_destroy(f->tree);
    buffer_deinit(&f->bytes);
}

const json *golden_get(const json *object, const char *key) {
    const json *value = json_get(object, key);
    if (!value) fail_msg("golden data without '%s'", key);
    return value;
}

int64_t golden_integer(const json *object, const char *key) {
    int64_t out;
    if (!json_integer(golden_get(object, key), &out)) fail_msg("'%s' is not an integer", key);
    return out;
}

double golden_number(const json *object, const char *key) {
    double out;
    if (!json_double(golden_get(object, key), &out)) fail_msg("'%s' is not a number", key);
    return out;
}

int golden_ints(const json *object, const char *key, int32_t *out, int max) {
    int count = 0;
    for (const json *item = golden_get(object, key)->first; item; item = item->next) {
        int64_t value = 0;
        assert_true(count < max && json_integer(item, &value));
        out[count++] = (int32_t)value;
    }
    return count;
}

static bool present(const char *dir, const char *file) {
    char *path = file_join(dir, file);
    bool there = file_exists(path);
    free(path);
    return there;
}

/* All cases at once, since the quantised ones are made from others. Written aside and moved, so that a killed run leaves
 * nothing half made, and two at a time do not disturb each other. */
static bool write_checkpoints(void) {
    static const char out[] = "build/oracle-ckpt";
    const char *script = test_shared("oracle/make_checkpoint.py");
    const char *python = getenv("PYTHON");
    buffer command = {0};
    error err;
    if (!script) {
        print_message("skip: reference data 'oracle/make_checkpoint.py' is not here (HEARTH_SHARED or ../shared)\n");
        return false;
    }
    if (file_make_dirs(out, &err)) fail_msg("%s", err.message);
    buffer_printf(&command,
                  "'%s' -B '%s' --all %s.%d >/dev/null && for d in %s.%d/*; do mv -n \"$d\" %s; done; rm -rf %s.%d",
                  python && *python ? python : "/usr/bin/python3", script, out, (int)getpid(), out, (int)getpid(), out,
                  out, (int)getpid());
    int status = system(command.data);
    buffer_deinit(&command);
    if (status == 0) return true;
    print_message("skip: '%s' could not write the checkpoints (python3 with numpy missing?)\n", script);
    return false;
}

const char *golden_checkpoint(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "oracle/ckpt/%s", name);
    const char *kept = test_shared(path);
    if (kept) {
        snprintf(path, sizeof path, "%s", kept);
        return path;
    }
    snprintf(path, sizeof path, "build/oracle-ckpt/%s", name);
    if (!present(path, "config.json") && !write_checkpoints()) return NULL;
    return present(path, "config.json") ? path : NULL;
}
