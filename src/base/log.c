/* The log; see log.h.
 *
 * A line is formatted on the stack and leaves with one write(2), so lines of several threads never mix and nothing is
 * lost in a buffer when the process dies. Messages may hold text from outside: control characters become '?', so that
 * nobody forges a line or drives a terminal, and invalid UTF-8 never leaves the process. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

static atomic_int level_max = LOG_INFO;

void log_set_level(log_level most_detailed) { atomic_store(&level_max, most_detailed); }

static size_t write_prefix(char *line, size_t size, log_level level) {
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG"};
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &utc);
    int rest = snprintf(line + length, size - length, ".%03dZ %-5s ", (int)(now.tv_nsec / 1000000), names[level]);
    return length + (size_t)rest;
}

/* In place: one '?' for every byte that must not be written. */
static void clean(char *text, size_t size) {
    for (size_t i = 0; i < size;) {
        uint32_t c;
        int length = utf8_decode(text + i, size - i, &c);
        if (length == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0)) {
            memset(text + i, '?', length ? (size_t)length : 1);
        }
        i += length ? (size_t)length : 1;
    }
}

void log_line(log_level level, const char *format, ...) {
    HEARTH_ASSERT(level >= LOG_ERROR && level <= LOG_DEBUG);
    if ((int)level > atomic_load(&level_max)) return;
    char line[2048];
    size_t prefix = write_prefix(line, sizeof line, level);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line + prefix, sizeof line - prefix, format, args);
    va_end(args);
    size_t size = prefix + (length > 0 ? (size_t)length : 0);
    if (size > sizeof line - 1) size = utf8_complete(span_make(line, sizeof line - 1));
    clean(line + prefix, size - prefix);
    line[size++] = '\n'; /* over the NUL */
    (void)!write(STDERR_FILENO, line, size);
}
