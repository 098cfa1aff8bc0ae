/* Gated DeltaNet for AVX-512. */
#include "ops/cpu/simd_avx512.h"

#include "ops/cpu/common_simd.h"
#include "ops/cpu/cpu_kernels.h"

#include "ops/cpu/gdn_simd.h"
