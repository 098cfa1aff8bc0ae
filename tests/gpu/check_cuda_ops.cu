/* Checks of the CUDA operators: against double precision on the host, with random inputs from printed seeds and poisoned
 * outputs, and bit for bit between routes, row counts, and trees and chains. Prints a line a case and a closing count. */
#include "check_attention.cuh"
#include "check_gdn.cuh"
#include "check_rows.cuh"
#include "check_small_m.cuh"

int main(int argc, char **argv) {
    need_gpu(1);
    bool quick = argc > 1 && strcmp(argv[1], "quick") == 0; /* for compute-sanitizer */
    check_small_matmul(quick);
    check_gdn(quick);
    check_attention(quick);
    check_rows(quick);
    printf("%d passed, %d failed\n", cases_passed, cases_failed);
    return cases_failed != 0;
}
