/* See progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { WIDTH = 30, INTERVAL_MS = 100 };

void progress_begin(progress_bar *bar, const char *label) {
    *bar = (progress_bar){.label = label, .shown = isatty(STDERR_FILENO), .start_ns = clock_ns()};
}

void progress_update(void *context, uint64_t done, uint64_t total) {
    progress_bar *bar = context;
    bar->done = done;
    bar->total = total;
    uint64_t now = clock_ns();
    if (!bar->shown || !total || (done < total && now - bar->last_ns < INTERVAL_MS * 1000000ull)) return;
    bar->last_ns = now;
    double share = (double)done / (double)total, elapsed = (double)(now - bar->start_ns) / 1e9;
    int filled = (int)(share * WIDTH);
    fprintf(stderr, "\r%s [", bar->label);
    for (int i = 0; i < WIDTH; i++) fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3.0f %%  %.0f s left ", share * 100, done ? elapsed * (1 - share) / share : 0);
    fflush(stderr);
}

void progress_end(progress_bar *bar) {
    if (bar->shown) fputs("\r\033[K", stderr);
}
