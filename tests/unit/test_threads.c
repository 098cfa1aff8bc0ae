/* The pool runs every index exactly once and leaves its results visible; limits are read from all cgroup layouts. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/threads.h"
#include "support.h"

enum { COUNT_MAX = 2000 };
static int marks[COUNT_MAX]; /* plain on purpose: the pool must order the tasks' writes before the caller's reads */

static void mark(void *context, int index) { marks[index] += *(int *)context; }

static void each_index_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        pool *p;
        assert_int_equal(pool_create(threads, &p, NULL), ERR_OK);
        assert_int_equal(pool_threads(p), threads);
        for (int job = 1; job < 300; job++) {
            int count = job * 37 % 50;
            memset(marks, 0, sizeof marks);
            pool_run(p, count, mark, &job);
            for (int i = 0; i < COUNT_MAX; i++) assert_int_equal(marks[i], i < count ? job : 0);
        }
        pool_destroy(p);
    }
}

static void many_short_jobs(void **state) {
    (void)state;
    pool *p;
    assert_int_equal(pool_create(3, &p, NULL), ERR_OK);
    int one = 1;
    memset(marks, 0, sizeof marks);
    for (int job = 0; job < 20000; job++) pool_run(p, 2 + job % 3, mark, &one);
    assert_int_equal(marks[0], 20000);
    assert_int_equal(marks[3], 6666);
    pool_destroy(p);
}

static void runs_on_sleeping_workers(void **state) {
    (void)state;
    pool *p;
    assert_int_equal(pool_create(4, &p, NULL), ERR_OK);
    int one = 1;
    memset(marks, 0, sizeof marks);
    for (int job = 0; job < 20; job++) {
        usleep(2000); /* longer than workers spin */
        pool_run(p, 100, mark, &one);
    }
    for (int i = 0; i < 100; i++) assert_int_equal(marks[i], 20);
    pool_destroy(p);
}

static void mark_late(void *context, int index) {
    usleep(1000); /* the workers are still at it when the caller runs out of indices */
    mark(context, index);
}

static void returns_when_all_are_done(void **state) {
    (void)state;
    pool *p;
    assert_int_equal(pool_create(4, &p, NULL), ERR_OK);
    int one = 1;
    for (int job = 0; job < 20; job++) {
        memset(marks, 0, sizeof marks);
        pool_run(p, 6, mark_late, &one);
        for (int i = 0; i < 6; i++) assert_int_equal(marks[i], 1);
    }
    pool_destroy(p);
}

static double process_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void idle_is_idle(void **state) {
    (void)state;
    pool *p;
    assert_int_equal(pool_create(4, &p, NULL), ERR_OK);
    int one = 1;
    pool_run(p, 100, mark, &one);
    usleep(50000);
    double before = process_seconds();
    usleep(200000);
    assert_true(process_seconds() - before < 0.02);
    pool_destroy(p);
}

static void without_pool(void **state) {
    (void)state;
    int two = 2;
    memset(marks, 0, sizeof marks);
    pool_run(NULL, 7, mark, &two);
    for (int i = 0; i < 9; i++) assert_int_equal(marks[i], i < 7 ? 2 : 0);
    assert_int_equal(pool_threads(NULL), 1);
    pool_destroy(NULL);
}

static void refuses_bad_counts(void **state) {
    (void)state;
    pool *p;
    error err;
    assert_int_equal(pool_create(-1, &p, &err), ERR_INVALID);
    assert_int_equal(pool_create(100000, &p, &err), ERR_INVALID);
    assert_int_equal(pool_create(0, &p, &err), ERR_OK);
    assert_int_equal(pool_threads(p), cpu_count());
    pool_destroy(p);
}

static void use_scratch(void *context, int index) {
    (void)context;
    size_t size = 1000 + (size_t)index * 100;
    unsigned char *task = thread_scratch(SCRATCH_TASK, size);
    memset(task, index, size);
    marks[index] = (uintptr_t)task % 64 == 0 ? task[size - 1] : -1;
}

static void scratch_is_per_thread(void **state) {
    (void)state;
    pool *p;
    assert_int_equal(pool_create(4, &p, NULL), ERR_OK);
    char *call = thread_scratch(SCRATCH_CALL, 10);
    memcpy(call, "untouched", 10);
    pool_run(p, 200, use_scratch, NULL);
    for (int i = 0; i < 200; i++) assert_int_equal(marks[i], i);
    assert_string_equal(call, "untouched");
    char *task = thread_scratch(SCRATCH_TASK, 5000);
    assert_ptr_equal(task, thread_scratch(SCRATCH_TASK, 100));
    pool_destroy(p);
}

/* A made-up /proc and /sys under a temporary directory. */
static void put_file(const char *root, const char *path, const char *text) {
    char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

typedef struct limits_case {
    const char *name;
    const char *files[16]; /* path, text pairs */
    double cpus;
    unsigned long long memory;
} limits_case;

static const limits_case limits_cases[] = {
    {"nothing", {NULL}, -1, ULLONG_MAX},
    {"v2 without limits",
     {"/proc/self/cgroup", "0::/user.slice\n", "/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n",
      "/sys/fs/cgroup/user.slice/memory.max", "max\n", "/sys/fs/cgroup/user.slice/memory.current", "5000\n"},
     -1,
     ULLONG_MAX},
    {"v2, the parent is tighter",
     {"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n", "/sys/fs/cgroup/a/cpu.max",
      "150000 100000\n", "/sys/fs/cgroup/a/memory.max", "10000\n", "/sys/fs/cgroup/a/memory.current", "7000\n",
      "/sys/fs/cgroup/a/memory.stat", "anon 3\ninactive_file 1500\nactive_file 9\n"},
     1.5,
     4500},
    {"container: the path exists outside only",
     {"/proc/self/cgroup", "0::/docker/0123\n", "/sys/fs/cgroup/cpu.max", "50000 100000\n", "/sys/fs/cgroup/memory.max",
      "900\n", "/sys/fs/cgroup/memory.current", "1000\n"},
     0.5,
     0},
    {"v1",
     {"/proc/self/cgroup", "4:memory:/x\n2:cpu,cpuacct:/y\n", "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "300000\n",
      "/sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n", "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "8000\n",
      "/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "5000\n", "/sys/fs/cgroup/memory/x/memory.stat",
      "inactive_file 1\ntotal_inactive_file 100\n"},
     3,
     3100},
    {"v1 without limits",
     {"/proc/self/cgroup", "4:memory:/\n2:cpu:/\n0::/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
      "9223372036854771712\n", "/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"},
     -1,
     ULLONG_MAX},
};

static void reads_cgroup_limits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof limits_cases / sizeof *limits_cases; i++) {
        const limits_case *c = &limits_cases[i];
        char name[32], root[300];
        snprintf(name, sizeof name, "limits-%zu", i);
        snprintf(root, sizeof root, "%s", test_temp(name));
        for (int f = 0; f < 16 && c->files[f]; f += 2) put_file(root, c->files[f], c->files[f + 1]);
        print_message("%s\n", c->name);
        assert_true(cgroup_cpu_quota(root) == c->cpus);
        assert_true(cgroup_memory_left(root) == c->memory);
    }
}

static void this_machine(void **state) {
    (void)state;
    assert_in_range(cpu_count(), 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_in_range(memory_available(), 1, (unsigned long long)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_once),
        cmocka_unit_test(many_short_jobs),
        cmocka_unit_test(runs_on_sleeping_workers),
        cmocka_unit_test(returns_when_all_are_done),
        cmocka_unit_test(idle_is_idle),
        cmocka_unit_test(without_pool),
        cmocka_unit_test(refuses_bad_counts),
        cmocka_unit_test(scratch_is_per_thread),
        cmocka_unit_test(reads_cgroup_limits),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
