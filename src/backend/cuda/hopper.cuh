// Hopper's own instructions, for kernels that need them: barriers and bulk copies in shared memory, clusters of
// blocks, products of groups of four warps. HOPPER is defined where a kernel is compiled for that chip (sm_90a).
#ifndef DC_CUDA_HOPPER_CUH
#define DC_CUDA_HOPPER_CUH

#include "backend/cuda/internal.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER 1
#endif

__device__ static inline uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline void copy_16(uint32_t to, const void *from, bool there) {
    int bytes = there ? 16 : 0; // the rest becomes zero
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ static inline void copies_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> __device__ static inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ static inline uint32_t pack(float a, float b) {
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

__device__ static inline float2 unpack(uint32_t v) {
    return __bfloat1622float2(*(__nv_bfloat162 *)&v);
}

#ifdef HOPPER
// Barriers of a ring, and copies that count on them.
__device__ static inline void barrier_new(uint32_t at, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

__device__ static inline void barrier_arrive(uint32_t at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

__device__ static inline void barrier_expect(uint32_t at, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

__device__ static inline void barrier_wait(uint32_t at, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\nbra again;\ndone:\n}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

__device__ static inline void bulk_copy(uint32_t to, const void *from, int bytes,
                                        uint32_t barrier) {
    barrier_expect(barrier, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// The same place in the shared memory of another block of the cluster.
__device__ static inline uint32_t of_block(uint32_t at, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

__device__ static inline void send(uint32_t to, uint32_t from, int bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ static inline void send_two(uint32_t to, float2 v, uint32_t barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
            "r"(to),
        "f"(v.x), "f"(v.y), "r"(barrier)
        : "memory");
}

__device__ static inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

__device__ static inline void workers_sync() { // the threads that compute
    asm volatile("bar.sync 1, 512;" ::: "memory");
}

// What ordinary stores wrote is seen by the tensor cores.
__device__ static inline void rows_written() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ static inline void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ static inline void products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> __device__ static inline void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Where a factor lies: rows of 128 bytes whose 16-byte pieces are swizzled, eight rows `eight` bytes apart;
// `across` bytes to the next 64 columns where the factor is transposed.
__device__ static inline uint64_t factor(uint32_t at, int eight, int across) {
    return (uint64_t)(at >> 4 & 0x3fff) | (uint64_t)(across >> 4) << 16 |
           (uint64_t)(eight >> 4) << 32 | (uint64_t)1 << 62;
}

#define FOUR(i)    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// c (64, N) += a b for 16 of the inner dimension; add 0: c = a b. A number i of c is column
// i / 4 * 8 + lane % 4 * 2 + i % 2 of row warp * 16 + i / 2 % 2 * 8 + lane / 4.
__device__ static inline void multiply_64(float c[32], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0;\n}"
                 : SIXTEEN(0), SIXTEEN(16)
                 : "l"(a), "l"(b), "r"(add));
}

__device__ static inline void multiply_32(float c[16], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "%16, %17, p, 1, 1, 0, 0;\n}"
                 : SIXTEEN(0)
                 : "l"(a), "l"(b), "r"(add));
}

// Both factors transposed: their rows are the inner dimension.
__device__ static inline void multiply_turned(float c[64], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, 1, 1, 1, 1, 1;"
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
                 : "l"(a), "l"(b));
}

#endif // HOPPER

// A cluster has `x` blocks along x, or `z` along z.
template <typename K>
static dc_status launch(dc_cuda *cuda, const mlp *j, K kernel, dim3 grid, int threads, size_t bytes,
                        int x, int z) {
    CU(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = dim3((unsigned)threads);
    launch.dynamicSmemBytes = bytes;
    launch.stream = cuda->stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(unsigned)x, 1, (unsigned)z};
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    return dc_cuda_check(cudaLaunchKernelEx(&launch, kernel, *j), "cluster(");
}

#endif
