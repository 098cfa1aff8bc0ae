/* Embedding, norm and elementwise operators for AVX2. */
#include "ops/cpu/simd_avx2.h"

#include "ops/cpu/common_simd.h"
#include "ops/cpu/cpu_kernels.h"

#include "ops/cpu/rows_simd.h"
