/* Error messages and assertions; see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Messages quote names and text from outside and reach JSON answers, which must be UTF-8: a character cut at the end
 * goes, and every other invalid byte becomes '?'. */
static void make_valid(char *message) {
    size_t size = utf8_complete(span_text(message));
    message[size] = 0;
    for (size_t i = 0; i < size;) {
        uint32_t code_point;
        int length = utf8_decode(message + i, size - i, &code_point);
        if (length == 0) message[i] = '?';
        i += length ? (size_t)length : 1;
    }
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
    make_valid(err->message);
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
