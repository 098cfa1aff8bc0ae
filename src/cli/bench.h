/* The subjects of `hearth bench`; argv[0] is the subject's name. */
#ifndef HEARTH_CLI_BENCH_H
#define HEARTH_CLI_BENCH_H

int bench_cache(int argc, char **argv);
int bench_draft(int argc, char **argv);
int bench_perf(int argc, char **argv);

#endif
