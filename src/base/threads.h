/* Threads: a fork-join pool for CPU operators.
 *
 * pool_run calls task(context, i) for every i in [0, count) on the calling thread and the workers, and returns when all
 * are done. Which thread runs which i is not defined, so a task must compute the same bits whoever runs it: results of
 * an operator never depend on the number of threads. Workers spin briefly between calls, then sleep: idle is idle. */
#ifndef HEARTH_BASE_THREADS_H
#define HEARTH_BASE_THREADS_H

#include <stddef.h>

#include "base/error.h"

typedef struct pool pool;
/* threads >= 1 counts the caller; 0 = the CPUs this process may run on (affinity and cgroup quota). */
err_code pool_create(int threads, pool **out, error *err);
void pool_destroy(pool *p);
int pool_threads(const pool *p); /* 1 for NULL */
/* One caller at a time, never from inside a task. A NULL pool runs everything on the caller. */
void pool_run(pool *p, int count, void (*task)(void *context, int index), void *context);

/* Working memory of the calling thread: size bytes, 64-byte aligned, not initialised, valid until the same thread asks
 * for the same slot again. It only ever grows and is freed when the thread ends, so steady state allocates nothing.
 * An operator keeps what its tasks share in SCRATCH_CALL (asked for by the caller before pool_run); a task keeps its
 * own in SCRATCH_TASK. */
typedef enum { SCRATCH_CALL, SCRATCH_TASK, SCRATCH_SLOTS } scratch_slot;
void *thread_scratch(scratch_slot slot, size_t size);

int cpu_count(void);                       /* CPUs this process may use: affinity mask and cgroup quota, at least 1 */
unsigned long long memory_available(void); /* bytes: min(MemAvailable, cgroup limit less its use) */

#endif
