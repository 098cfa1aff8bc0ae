/* Log: one line per event on stderr, "2026-11-30T18:24:15.123Z INFO  message". Thread-safe, whole lines.
 * Only serve, engine and cli log; everything below returns errors. */
#ifndef HEARTH_BASE_LOG_H
#define HEARTH_BASE_LOG_H
typedef enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;
void log_set_level(log_level most_detailed); /* default LOG_INFO */
void log_line(log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
