/* Limits that a container puts on this process, from cgroup v2, v1 or a mixture of both.
 *
 * A limit can sit at any level between the process's own group and the root, so every level is read and the tightest
 * counts. Inside a container /proc/self/cgroup may show a path that exists only outside; levels that are not there are
 * passed over, which leaves the root of the mount, and that is the container's own group. */
#ifndef HEARTH_BASE_CGROUP_H
#define HEARTH_BASE_CGROUP_H

/* root is put before "/proc" and "/sys": "" for this machine, a directory for tests. */

/* CPUs per second of the tightest quota, or a negative number when there is none. */
double cgroup_cpu_quota(const char *root);

/* Bytes left under the tightest memory limit: limit - use + page cache that the kernel would drop first
 * (inactive_file, the usual "working set" rule). ULLONG_MAX when there is no limit. */
unsigned long long cgroup_memory_left(const char *root);

#endif
