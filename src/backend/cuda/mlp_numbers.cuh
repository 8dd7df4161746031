// Where networks in bf16 and in TF32 differ number by number (mlp.cu): how exact GELU is, what is kept for backward, what
// products read.
#ifndef DC_CUDA_MLP_NUMBERS_CUH
#define DC_CUDA_MLP_NUMBERS_CUH

#include "backend/cuda/mlp.cuh"

#ifdef HOPPER

// The share of x that GELU (tanh form) lets through; x2 is its square.
template <typename T> __device__ static inline float gate_of(float x, float x2);
template <> __device__ inline float gate_of<bf16>(float x, float x2) {
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * (0.7978845608f + 0.0356774081f * x2)));
    return 0.5f + 0.5f * t;
}
template <> __device__ inline float gate_of<float>(float x, float x2) { // to 1e-6, not 5e-4
    return __fdividef(1.0f, 1.0f + __expf(x * (-1.5957691216f - 0.0713548162f * x2)));
}

// Two numbers as products read them, into shared memory.
template <typename T> __device__ static inline void put_pair(char *to, float a, float b);
template <> __device__ inline void put_pair<bf16>(char *to, float a, float b) {
    *(uint32_t *)to = pack(a, b);
}
template <> __device__ inline void put_pair<float>(char *to, float a, float b) {
    *(float2 *)to = make_float2(to_tf32(a), to_tf32(b));
}

// What GELU got, of 8 columns a thread has four numbers. 16 bytes of memory at a time: two times four of bf16, or four.
// GELU goes on with what backward will read, which `set` gives.
template <typename T> struct kept_numbers;
template <> struct kept_numbers<bf16> {
    uint32_t word[4];
    __device__ float2 set(int i, int h, float a, float b) {
        uint32_t both = pack(a, b);
        word[i % 2 * 2 + h] = both;
        return unpack(both);
    }
    __device__ void store(uint4 *to, int i) {
        if (i % 2) to[i / 2 * 128] = make_uint4(word[0], word[1], word[2], word[3]);
    }
};
template <> struct kept_numbers<float> {
    float2 v[2];
    __device__ float2 set(int i, int h, float a, float b) { return v[h] = make_float2(a, b); }
    __device__ void store(uint4 *to, int i) {
        *(float4 *)(to + i * 128) = make_float4(v[0].x, v[0].y, v[1].x, v[1].y);
    }
};

// 16 bytes of a pack.
template <typename T> struct some_weights;
template <> struct some_weights<bf16> {
    alignas(16) float w[8];
    __device__ some_weights(uint4 raw) {
        const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            *(float2 *)&w[2 * i] = unpack(words[i]);
    }
};
template <> struct some_weights<float> {
    alignas(16) float w[4];
    __device__ some_weights(uint4 raw) { *(uint4 *)w = raw; }
};

// What GELU got, four numbers for each of COUNT times 8 columns.
template <typename T> struct kept_columns;
template <> struct kept_columns<bf16> {
    enum { COUNT = 2 };
    uint4 raw;
    template <typename G> __device__ kept_columns(const uint4 *z, int i, const G &) {
        raw = z[i / 2 * 128];
    }
    __device__ float2 get(int i, int h) const {
        return unpack(i % 2 ? (h ? raw.w : raw.z) : (h ? raw.y : raw.x));
    }
};
template <> struct kept_columns<float> {
    enum { COUNT = 4 }; // a piece's, which is overwritten
    float4 v[COUNT];
    template <typename G> __device__ kept_columns(const uint4 *z, int i, const G &group) {
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            v[k] = *(const float4 *)(z + (i + k) * 128);
        group.group_sync();
    }
    __device__ float2 get(int i, int h) const {
        return h ? make_float2(v[i % COUNT].z, v[i % COUNT].w)
                 : make_float2(v[i % COUNT].x, v[i % COUNT].y);
    }
};

#endif // HOPPER

#endif
