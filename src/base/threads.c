/* Fork-join pool; see threads.h.
 *
 * All a worker needs to know is in one 64-bit word, `ticket`: the number of the job in the upper half and how many of
 * its indices are still to be claimed in the lower half. A thread claims one by decrementing the word with a
 * compare-and-swap. Success proves that the job is not finished (the claimed index is not), so the job's fields, read
 * before the swap, belong to it: the caller writes them only when every index of the job before is done. A worker that
 * sleeps or is not scheduled holds nobody up; it finds nothing left to claim.
 *
 * Between jobs a worker spins for SPIN_NS, since the operators of a layer follow each other within microseconds, then
 * waits on a condition variable. Whether anyone sleeps is one counter; it and the ticket are sequentially consistent,
 * so either the caller sees the sleeper or the sleeper sees the job. */
#include "base/threads.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/memory.h"

enum { SPIN_NS = 50000, THREADS_MAX = 1024, CACHE_LINE = 64 };

struct pool {
    int threads;
    pthread_t *workers; /* threads - 1 */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    /* The job. Atomic because a late worker may read them while the next job is written; its swap then fails. */
    _Atomic(void (*)(void *, int)) task;
    _Atomic(void *) context;
    atomic_int count;
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
    _Alignas(CACHE_LINE) atomic_int done; /* indices of the job that are finished */
    _Alignas(CACHE_LINE) atomic_int sleepers;
    atomic_bool stop;
};

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Claims and runs indices until none is left. */
static void work(pool *p) {
    int finished = 0;
    uint64_t ticket = atomic_load(&p->ticket);
    while ((uint32_t)ticket != 0) {
        void (*task)(void *, int) = atomic_load_explicit(&p->task, memory_order_relaxed);
        void *context = atomic_load_explicit(&p->context, memory_order_relaxed);
        int count = atomic_load_explicit(&p->count, memory_order_relaxed);
        if (!atomic_compare_exchange_weak(&p->ticket, &ticket, ticket - 1)) continue;
        task(context, count - (int)(uint32_t)ticket);
        finished++;
        ticket = atomic_load(&p->ticket);
    }
    /* No other job has begun since: a job ends only when all its indices are reported. */
    if (finished) atomic_fetch_add_explicit(&p->done, finished, memory_order_release);
}

static bool has_work(pool *p) { return (uint32_t)atomic_load(&p->ticket) != 0 || atomic_load(&p->stop); }

/* Waits for a job or the end; false for the end. */
static bool wait_for_work(pool *p) {
    uint64_t start = clock_ns();
    do {
        for (int i = 0; i < 64; i++) {
            if (has_work(p)) return !atomic_load(&p->stop);
            pause_cpu();
        }
    } while (clock_ns() - start < SPIN_NS);
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->sleepers, 1);
    while (!has_work(p)) pthread_cond_wait(&p->wake, &p->mutex);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->mutex);
    return !atomic_load(&p->stop);
}

static void *worker_main(void *argument) {
    pool *p = argument;
    while (wait_for_work(p)) work(p);
    return NULL;
}

static void wake_sleepers(pool *p) {
    if (atomic_load(&p->sleepers) == 0) return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
}

void pool_run(pool *p, int count, void (*task)(void *context, int index), void *context) {
    if (!p || p->threads == 1 || count <= 1) {
        for (int i = 0; i < count; i++) task(context, i);
        return;
    }
    uint64_t job = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&p->task, task, memory_order_relaxed);
    atomic_store_explicit(&p->context, context, memory_order_relaxed);
    atomic_store_explicit(&p->count, count, memory_order_relaxed);
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store(&p->ticket, job << 32 | (uint32_t)count);
    wake_sleepers(p);
    work(p);
    /* The rest is running elsewhere. Its thread may have lost its CPU to another process: give ours up then. */
    for (int spins = 0; atomic_load_explicit(&p->done, memory_order_acquire) != count; spins++) {
        if (spins < 2000) {
            pause_cpu();
        } else {
            sched_yield();
        }
    }
}

int pool_threads(const pool *p) { return p ? p->threads : 1; }

err_code pool_create(int threads, pool **out, error *err) {
    if (threads == 0) threads = cpu_count();
    if (threads < 1 || threads > THREADS_MAX)
        ERR_FAIL(err, ERR_INVALID, "%d threads: between 1 and %d are possible", threads, THREADS_MAX);
    pool *p = aligned_alloc(CACHE_LINE, sizeof *p);
    if (!p) ERR_FAIL(err, ERR_MEMORY, "no memory for a thread pool");
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->workers = mem_zero((size_t)threads, sizeof *p->workers);
    p->threads = 1;
    for (int i = 0; i < threads - 1; i++) {
        int failure = pthread_create(&p->workers[i], NULL, worker_main, p);
        if (failure) {
            pool_destroy(p);
            ERR_FAIL(err, ERR_LIMIT, "cannot start thread %d of %d: %s", i + 2, threads, strerror(failure));
        }
        p->threads++;
    }
    *out = p;
    return ERR_OK;
}

void pool_destroy(pool *p) {
    if (!p) return;
    atomic_store(&p->stop, true);
    wake_sleepers(p);
    for (int i = 0; i < p->threads - 1; i++) pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    free(p->workers);
    free(p);
}

/* Scratch: a thread-specific value rather than a _Thread_local variable, for its destructor. */

typedef struct scratch {
    void *data[SCRATCH_SLOTS];
    size_t size[SCRATCH_SLOTS];
} scratch;

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void scratch_destroy(void *value) {
    scratch *s = value;
    for (int i = 0; i < SCRATCH_SLOTS; i++) free(s->data[i]);
    free(s);
}

static void scratch_init(void) { HEARTH_ASSERT(pthread_key_create(&scratch_key, scratch_destroy) == 0); }

void *thread_scratch(scratch_slot slot, size_t size) {
    pthread_once(&scratch_once, scratch_init);
    scratch *s = pthread_getspecific(scratch_key);
    if (!s) {
        s = mem_zero(1, sizeof *s);
        pthread_setspecific(scratch_key, s);
    }
    if (size > s->size[slot]) {
        size = (size + 4095) & ~(size_t)4095;
        free(s->data[slot]);
        s->data[slot] = aligned_alloc(4096, size);
        HEARTH_ASSERT(s->data[slot] != NULL);
        s->size[slot] = size;
    }
    return s->data[slot];
}

/* What the process may use. */

static int affinity_count(void) {
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int failed = sched_getaffinity(0, size, set), count = failed ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (!failed) return count;
        if (errno != EINVAL) break; /* EINVAL: the machine has more CPUs than the set */
    }
    return 1;
}

/* A quota of 1.5 CPUs runs one thread: two spinning threads would be stopped together for part of every period. */
int cpu_count(void) {
    int count = affinity_count();
    double quota = cgroup_cpu_quota("");
    if (quota >= 0 && quota < count) count = (int)quota;
    return count < 1 ? 1 : count;
}

unsigned long long memory_available(void) {
    unsigned long long available = ULLONG_MAX, kib;
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "MemAvailable:", 13) != 0) continue;
        kib = strtoull(line + 13, NULL, 10);
        available = kib * 1024;
    }
    if (f) fclose(f);
    unsigned long long left = cgroup_memory_left("");
    if (left < available) available = left;
    return available == ULLONG_MAX ? 0 : available;
}
