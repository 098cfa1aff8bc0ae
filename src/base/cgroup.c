/* Reads the cgroup files; see cgroup.h.
 *
 * /proc/self/cgroup has a line per hierarchy: "0::/path" for v2 and "4:memory:/path" or "2:cpu,cpuacct:/path" for v1.
 * v2 lies in /sys/fs/cgroup, or in /sys/fs/cgroup/unified on mixed systems; v1 in /sys/fs/cgroup/<controller>. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

/* The file's first size-1 bytes as text; false when it cannot be read or is empty. */
static bool read_text(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(text, 1, size - 1, f);
    fclose(f);
    text[n] = 0;
    return n > 0;
}

static bool read_number(const char *dir, const char *name, unsigned long long *out) {
    char path[PATH_SIZE + 64], text[64], *end;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return false; /* "max", "-1" */
    *out = strtoull(text, &end, 10);
    return end != text;
}

/* The value after "key " at the start of a line of dir/name, else 0. */
static unsigned long long read_stat(const char *dir, const char *name, const char *key) {
    char path[PATH_SIZE + 64], text[8192];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!read_text(path, text, sizeof text)) return 0;
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ') return strtoull(line + length + 1, NULL, 10);
    }
    return 0;
}

/* This process's path in the hierarchy of a v1 controller, or of v2 when controller is "". */
static bool own_path(const char *root, const char *controller, char *out, size_t size) {
    char file[PATH_SIZE], text[8192], *rest = text;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    if (!read_text(file, text, sizeof text)) return false;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        bool found = false;
        names++;
        for (char *name = strsep(&names, ","); name && !found; name = strsep(&names, ","))
            found = strcmp(name, controller) == 0; /* v2 has one, empty, name */
        if (found) return snprintf(out, size, "%s", path) < (int)size;
    }
    return false;
}

/* Calls visit for the directory of each level of base/path, deepest first, base itself last. */
static void each_level(const char *base, char *path, void (*visit)(const char *dir, void *context), void *context) {
    char dir[2 * PATH_SIZE];
    for (;;) {
        size_t length = strlen(path);
        while (length && path[length - 1] == '/') path[--length] = 0;
        snprintf(dir, sizeof dir, "%s%s", base, path);
        visit(dir, context);
        if (!length) return;
        char *slash = strrchr(path, '/');
        *(slash ? slash : path) = 0;
    }
}

static void each_group(const char *root, const char *controller, void (*v2)(const char *dir, void *context),
                       void (*v1)(const char *dir, void *context), void *context) {
    char base[PATH_SIZE], path[PATH_SIZE];
    static const char *const mounts[] = {"", "/unified"};
    for (int i = 0; i < 2; i++) {
        if (!own_path(root, "", path, sizeof path)) path[0] = 0;
        snprintf(base, sizeof base, "%s/sys/fs/cgroup%s", root, mounts[i]);
        each_level(base, path, v2, context);
    }
    if (!own_path(root, controller, path, sizeof path)) return;
    snprintf(base, sizeof base, "%s/sys/fs/cgroup/%s", root, controller);
    each_level(base, path, v1, context);
}

static void take_quota(double *best, double quota, double period) {
    if (period <= 0 || quota <= 0) return;
    if (*best < 0 || quota / period < *best) *best = quota / period;
}

static void cpu_v2(const char *dir, void *context) {
    char path[2 * PATH_SIZE + 16], text[64], *end;
    snprintf(path, sizeof path, "%s/cpu.max", dir); /* "quota period" or "max period" */
    if (!read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return;
    unsigned long long quota = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);
    take_quota(context, (double)quota, (double)period);
}

static void cpu_v1(const char *dir, void *context) {
    unsigned long long quota, period;
    if (read_number(dir, "cpu.cfs_quota_us", &quota) && read_number(dir, "cpu.cfs_period_us", &period))
        take_quota(context, (double)quota, (double)period);
}

double cgroup_cpu_quota(const char *root) {
    double best = -1;
    each_group(root, "cpu", cpu_v2, cpu_v1, &best);
    return best;
}

static void take_memory(unsigned long long *best, unsigned long long limit, unsigned long long use,
                        unsigned long long cache) {
    if (limit >= 1ull << 62) return; /* v1 writes "no limit" as a huge number */
    use = use > cache ? use - cache : 0;
    unsigned long long left = limit > use ? limit - use : 0;
    if (left < *best) *best = left;
}

static void memory_v2(const char *dir, void *context) {
    unsigned long long limit, use;
    if (read_number(dir, "memory.max", &limit) && read_number(dir, "memory.current", &use))
        take_memory(context, limit, use, read_stat(dir, "memory.stat", "inactive_file"));
}

static void memory_v1(const char *dir, void *context) {
    unsigned long long limit, use;
    if (read_number(dir, "memory.limit_in_bytes", &limit) && read_number(dir, "memory.usage_in_bytes", &use))
        take_memory(context, limit, use, read_stat(dir, "memory.stat", "total_inactive_file"));
}

unsigned long long cgroup_memory_left(const char *root) {
    unsigned long long best = ULLONG_MAX;
    each_group(root, "memory", memory_v2, memory_v1, &best);
    return best;
}
