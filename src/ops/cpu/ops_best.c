/* The tables of the vector kernels, and the choice among them by what the CPU can run. */
#include <stdlib.h>
#include <string.h>

#include "ops/cpu/cpu_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define TABLE(isa)                                                                                                \
    {                                                                                                             \
        .name = #isa, .embed = embed_##isa, .rms_norm = rms_norm_##isa, .matmul = matmul_##isa, .add = add_##isa, \
        .swiglu = swiglu_##isa, .qkv_store = qkv_store_##isa, .attention = attention_##isa, .conv = conv_##isa,   \
        .gdn = gdn_##isa, .gdn_commit = gdn_commit_##isa,                                                         \
    }

static const ops avx2 = TABLE(avx2), avx512 = TABLE(avx512);

static bool has_avx2(void) {
    unsigned a, b, c, d; /* clang 14 does not know f16c as a feature name */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C);
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

#endif

const ops *ops_cpu_best(void) {
    const char *cap = getenv("HEARTH_ISA");
    if (!cap || !*cap) cap = "avx512";
    const bool avx512_allowed = strcmp(cap, "avx512") == 0, avx2_allowed = avx512_allowed || strcmp(cap, "avx2") == 0;
    if (!avx2_allowed && strcmp(cap, "scalar") != 0) return NULL;
#if defined(__x86_64__)
    if (avx512_allowed && has_avx512()) return &avx512;
    if (avx2_allowed && has_avx2()) return &avx2;
#endif
    return ops_cpu_scalar();
}
