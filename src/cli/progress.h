/* A progress bar on stderr with an estimate of the time left; silent when stderr is not a terminal. */
#ifndef HEARTH_CLI_PROGRESS_H
#define HEARTH_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress_bar {
    const char *label; /* borrowed */
    bool shown;
    uint64_t start_ns, last_ns, done, total;
} progress_bar;

void progress_begin(progress_bar *bar, const char *label);
/* Has the signature of the progress callbacks; context is the bar. done and total in bytes, or in any unit. */
void progress_update(void *context, uint64_t done, uint64_t total);
void progress_end(progress_bar *bar); /* clears the line */

#endif
