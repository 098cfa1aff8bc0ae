/* Error messages and assertions; see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

err_code error_set(error *err, err_code code, const char *file, int line, const char *format, ...) {
    if (!err) return code;
    err->code = code;
    err->file = base_name(file);
    err->line = line;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

const char *error_name(err_code code) {
    static const char *const names[] = {"ok",          "invalid", "not_found", "io",        "format",
                                        "unsupported", "limit",   "memory",    "cancelled", "internal"};
    HEARTH_ASSERT((unsigned)code < sizeof names / sizeof *names);
    return names[code];
}

void assert_failed(const char *condition, const char *file, int line) {
    fprintf(stderr, "hearth: assertion failed: %s (%s:%d)\n", condition, base_name(file), line);
    abort();
}
