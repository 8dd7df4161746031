// What a warp does together on tensor cores, and pairs of bf16 in one register: products of 16 x 16 by 16 x 8 numbers
// (mma.m16n8k16) and matrices of 8 x 8 from shared memory (ldmatrix), on Ampere and later.
#ifndef DC_CUDA_TENSOR_CORE_CUH
#define DC_CUDA_TENSOR_CORE_CUH

#include "backend/cuda/internal.cuh"

// Four matrices of 8 x 8, whose rows lie where lanes 8 i to 8 i + 7 say.
__device__ static inline void load_matrices(uint32_t to[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

__device__ static inline void load_transposed(uint32_t to[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

// sums += a b
__device__ static inline void multiply(float sums[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ static inline float shuffle_xor(float value, int by) {
    return __shfl_xor_sync(0xffffffff, value, by);
}

__device__ static inline float float_of(uint16_t bits) {
    return __uint_as_float((uint32_t)bits << 16);
}

__device__ static inline uint16_t bits_of(float x) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

__device__ static inline uint32_t pair_of(float low, float high) {
    __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&v;
}

__device__ static inline float low_of(uint32_t pair) {
    return __uint_as_float(pair << 16);
}

__device__ static inline float high_of(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000);
}

__device__ static inline float sum_of_pair(uint32_t pair) {
    return low_of(pair) + high_of(pair);
}

// What is not above 0 becomes 0; NaN stays.
__device__ static inline uint32_t relu_pair(uint32_t pair) {
    float a = low_of(pair), b = high_of(pair);
    return pair_of(a > 0 || a != a ? a : 0, b > 0 || b != b ? b : 0);
}

#endif
