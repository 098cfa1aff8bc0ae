/* The parts of the GPU check, one file an operator family. */
#ifndef HEARTH_TESTS_GPU_CHECK_CUDA_CUH
#define HEARTH_TESTS_GPU_CHECK_CUDA_CUH

#include "check_gdn.cuh"
#include "check_small_m.cuh"
#include "gpu_support.cuh"

#endif
