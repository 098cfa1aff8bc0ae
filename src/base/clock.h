/* Time: one monotonic clock for every measurement. */
#ifndef HEARTH_BASE_CLOCK_H
#define HEARTH_BASE_CLOCK_H
#include <stdint.h>
uint64_t clock_ns(void);    /* CLOCK_MONOTONIC */
int64_t clock_unix_s(void); /* seconds since 1970, for `created` fields and logs only */
static inline double clock_ms_since(uint64_t start_ns) { return (double)(clock_ns() - start_ns) / 1e6; }
#endif
