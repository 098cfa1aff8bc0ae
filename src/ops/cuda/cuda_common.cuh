/* What the CUDA kernels share: thin names for instructions that C has no word for, and the launch with programmatic
 * dependence. Instructions of sm_90 are nothing on older targets; only the bulk route needs them. */
#ifndef HEARTH_OPS_CUDA_CUDA_COMMON_CUH
#define HEARTH_OPS_CUDA_CUDA_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "ops/cuda/cuda_ops.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define HAVE_SM90 1
#else
#define HAVE_SM90 0
#endif

/* ---- order of kernels: the next one may start now; everything before this one is finished and visible */

static __device__ __forceinline__ void next_may_start() {
#if HAVE_SM90
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_for_previous() {
#if HAVE_SM90
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- shared memory */

/* Through an opaque move: the compiler would otherwise compute it again (a slow special register) at every use. */
static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    uint32_t at;
    asm volatile("mov.u32 %0, %1;" : "=r"(at) : "r"((uint32_t)__cvta_generic_to_shared(p)));
    return at;
}

static __device__ __forceinline__ uint4 shared_load16(uint32_t at) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
    return v;
}

static __device__ __forceinline__ uint32_t shared_load2(uint32_t at) {
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at));
    return v;
}

static __device__ __forceinline__ void copy16_async(uint32_t to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int LEFT>
static __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* Barrier of the first `count` threads of the CTA (whole warps). */
static __device__ __forceinline__ void barrier_of(int count) {
    asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");
}

/* ---- mbarriers, bulk copies, clusters: sm_90 */

#if HAVE_SM90
static __device__ __forceinline__ void mbarrier_init(uint32_t at, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(uint32_t at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

static __device__ __forceinline__ void mbarrier_expect(uint32_t at, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbarrier_wait(uint32_t at, int parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(at),
        "r"(parity)
        : "memory");
}

/* For arrivals from other CTAs of the cluster; invalidates L1, so not for the inner loop. */
static __device__ __forceinline__ void mbarrier_wait_cluster(uint32_t at, int parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(at),
        "r"(parity)
        : "memory");
}

static __device__ __forceinline__ void bulk_copy(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

static __device__ __forceinline__ uint32_t cluster_address(uint32_t at, int rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

static __device__ __forceinline__ float2 cluster_load8(uint32_t at) {
    float2 v;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
    return v;
}

static __device__ __forceinline__ void cluster_arrive_at(uint32_t barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

/* ---- arithmetic */

/* c += a b: a 16 x 16 row-major, b 16 x 8, bf16; c fp32. */
static __device__ __forceinline__ void mma_bf16(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Product of two pairs of bf16, subnormal inputs honoured. */
static __device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
    return d;
}

static __device__ __forceinline__ float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }
static __device__ __forceinline__ float silu_of(float x) { return x / (1.0f + expf(-x)); }

/* ---- launches */

/* Major compute capability of the current device; 0 when there is none. */
static inline int device_major(void) {
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    return major;
}

/* Queues `kernel` on grid x grid_y CTAs with programmatic dependence on its predecessor (where the device knows it) and
 * clusters of `cluster` CTAs. */
static inline err_code launch_kernel(const void *kernel, dim3 grid, int block, int cluster, size_t shared_bytes,
                                     void *stream, void **args, error *err) {
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)block);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = (cudaStream_t)stream;
    config.attrs = attributes;
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = (unsigned)cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.numAttrs = device_major() < 9 ? 0 : cluster > 1 ? 2 : 1;
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    if (status == cudaSuccess) status = cudaLaunchKernelExC(&config, kernel, args);
    if (status != cudaSuccess)
        ERR_FAIL(err, ERR_INTERNAL, "kernel launch of %u x %u CTAs of %d threads, %zu bytes of shared memory: %s",
                 grid.x, grid.y, block, shared_bytes, cudaGetErrorString(status));
    return ERR_OK;
}

static inline err_code cuda_launch(const void *kernel, int grid, int block, int cluster, size_t shared_bytes,
                                   void *stream, void **args, error *err) {
    return launch_kernel(kernel, dim3((unsigned)grid), block, cluster, shared_bytes, stream, args, err);
}

static inline err_code cuda_launch_2d(const void *kernel, int grid, int grid_y, int block, size_t shared_bytes,
                                      void *stream, void **args, error *err) {
    return launch_kernel(kernel, dim3((unsigned)grid, (unsigned)grid_y), block, 1, shared_bytes, stream, args, err);
}

#endif
