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

// Copies that a barrier has been told to expect.
__device__ static inline void bulk_copy(uint32_t to, const void *from, int bytes,
                                        uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// The box at (column, row) of a row-major tensor; what is outside becomes zero.
__device__ static inline void box_copy(uint32_t to, const CUtensorMap *map, int column, int row,
                                       uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

// One thread writes what others left in shared memory; it stays there until the wait is over.
__device__ static inline void bulk_store(void *to, uint32_t from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

__device__ static inline void bulk_stores_wait() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ static inline void some_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
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

// c (64, N) += a b for 32 bytes of the inner dimension; add 0: c = a b. A number i of c is column
// i / 4 * 8 + lane % 4 * 2 + i % 2 of row warp * 16 + i / 2 % 2 * 8 + lane / 4.
#define PRODUCT_128(type, order)                                                                   \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                      \
                 "wgmma.mma_async.sync.aligned.m64n128" type " {"                                  \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "     \
                 "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "     \
                 "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, "     \
                 "%61, %62, %63}, %64, %65, p, 1, 1" order ";\n}"                                  \
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)                               \
                 : "l"(a), "l"(b), "r"(add))
#define PRODUCT_64(type, order)                                                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                      \
                 "wgmma.mma_async.sync.aligned.m64n64" type " {"                                   \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "     \
                 "%31}, %32, %33, p, 1, 1" order ";\n}"                                            \
                 : SIXTEEN(0), SIXTEEN(16)                                                         \
                 : "l"(a), "l"(b), "r"(add))
#define PRODUCT_32(type, order)                                                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"                                      \
                 "wgmma.mma_async.sync.aligned.m64n32" type " {"                                   \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "         \
                 "%16, %17, p, 1, 1" order ";\n}"                                                  \
                 : SIXTEEN(0)                                                                      \
                 : "l"(a), "l"(b), "r"(add))

// N columns, of bf16 or TF32.
template <typename T, int N>
__device__ static inline void mma(float *c, uint64_t a, uint64_t b, int add) {
#define PRODUCT_OF(n)                                                                              \
    if constexpr (N == n && sizeof(T) == 2) PRODUCT_##n("k16.f32.bf16.bf16", ", 0, 0");            \
    if constexpr (N == n && sizeof(T) == 4) PRODUCT_##n("k8.f32.tf32.tf32", "")
    PRODUCT_OF(128);
    PRODUCT_OF(64);
    PRODUCT_OF(32);
#undef PRODUCT_OF
}

// Both factors transposed: their rows are the inner dimension. There is none for TF32.
template <int N>
__device__ static inline void mma_transposed(float *c, uint64_t a, uint64_t b, int add) {
    if constexpr (N == 128) PRODUCT_128("k16.f32.bf16.bf16", ", 1, 1");
    if constexpr (N == 64) PRODUCT_64("k16.f32.bf16.bf16", ", 1, 1");
}

// As mma in TF32, with the first factor in registers: with g = lane / 4 and t = lane % 4, row warp * 16 + g has
// numbers t and t + 4 of the inner dimension in a[0] and a[2], row warp * 16 + g + 8 in a[1] and a[3]. They must stay until
// it is done.
__device__ static inline void mma_held(float c[64], const float a[4], uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1;\n}"
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])),
                   "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])), "l"(b), "r"(add));
}

// ---- a ring of stages: thread 0 asks for what products read, all use it and give it back ----
// GIVERS: lanes of a warp that give a stage back. One will do where tensor cores alone read it; where lanes load from it,
// each gives it back for itself, after its own loads.
template <int STAGES, int BYTES, int GIVERS = 1> struct ring {
    char *p;
    uint32_t at, full, empty;

    // `barriers`: 16 * STAGES bytes of shared memory; `users`: warps.
    __device__ ring(char *stages, void *barriers, int users) : p(stages) {
        at = shared_address(stages);
        full = shared_address(barriers);
        empty = full + STAGES * 8;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                barrier_new(full + i * 8, 1);
                barrier_new(empty + i * 8, users * GIVERS);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }
    __device__ uint32_t barrier(int i) const { return full + i % STAGES * 8; }
    __device__ uint32_t address(int i) const { return at + i % STAGES * BYTES; }
    __device__ char *memory(int i) const { return p + i % STAGES * BYTES; }
    __device__ void claim(int i, int bytes) const { // before stage i is asked for
        if (i >= STAGES) barrier_wait(empty + i % STAGES * 8, (i / STAGES - 1) & 1);
        barrier_expect(barrier(i), bytes);
    }
    __device__ void await(int i) const { barrier_wait(barrier(i), (i / STAGES) & 1); }
    __device__ void release(int i) const { barrier_arrive(empty + i % STAGES * 8); }

    // For the first stages of `count`.
    template <typename A> __device__ void start(int count, A ask) const {
        for (int i = 0; i < STAGES && i < count && threadIdx.x == 0; i++)
            ask(i);
        __syncwarp();
    }

    // use(i) begins products with stages i below `steps`; meanwhile those before are given back, and the stages that
    // take their place asked for, up to `count`.
    template <typename A, typename U>
    __device__ void run(int steps, int count, A ask, U use) const {
        for (int i = 0; i < steps; i++) {
            await(i);
            products_begin();
            use(i);
            products_end();
            products_wait<1>();
            if (!i) continue;
            if (threadIdx.x % 32 < GIVERS) release(i - 1);
            if (threadIdx.x == 0 && i - 1 + STAGES < count) ask(i - 1 + STAGES);
            __syncwarp();
        }
        products_wait<0>();
    }
};

#endif // HOPPER

#endif
