// What updates weights share (update.cu, mlp_weights.cu): Adam, EMA, and how new weights are packed.
#ifndef DC_CUDA_UPDATE_CUH
#define DC_CUDA_UPDATE_CUH

#include "backend/cuda/internal.cuh"

__device__ static inline void one_weight(const rates &r, float g, float *p, float *m, float *v) {
    *m = r.beta1 * *m + r.rest1 * g;
    *v = r.beta2 * *v + r.rest2 * g * g;
    *p -= r.rate * *m / (sqrtf(*v * r.inv_c2) + r.eps);
}

__device__ static inline float pull(const rates &r, float ema, float p) {
    return r.tau * p + r.rest_tau * ema;
}

__device__ static inline void step_of(const rates &r, float g, float *w, float *m, float *v) {
    one_weight(r, g, w, m, v);
}

__device__ static inline void step_of(const rates &r, float4 g, float4 *w, float4 *m, float4 *v) {
    one_weight(r, g.x, &w->x, &m->x, &v->x);
    one_weight(r, g.y, &w->y, &m->y, &v->y);
    one_weight(r, g.z, &w->z, &m->z, &v->z);
    one_weight(r, g.w, &w->w, &m->w, &v->w);
}

__device__ static inline float pull_all(const rates &r, float e, float w) {
    return pull(r, e, w);
}

__device__ static inline float4 pull_all(const rates &r, float4 e, float4 w) {
    return make_float4(pull(r, e.x, w.x), pull(r, e.y, w.y), pull(r, e.z, w.z), pull(r, e.w, w.w));
}

// Four numbers, or one, as products read them.
__device__ static inline void round_to(bf16 *to, float v) {
    *to = __float2bfloat16(v);
}

__device__ static inline void round_to(bf16 *to, float4 v) {
    __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
    uint2 raw = {*(unsigned *)&a, *(unsigned *)&b};
    *(uint2 *)to = raw;
}

__device__ static inline void round_to(float *to, float v) {
    *to = to_tf32(v);
}

__device__ static inline void round_to(float *to, float4 v) {
    *(float4 *)to = make_float4(to_tf32(v.x), to_tf32(v.y), to_tf32(v.z), to_tf32(v.w));
}

// 16 bytes of packed weights: inputs from k on, of output n.
template <typename T>
__device__ static inline uint4 *packed_place(void *w, int in_pad, int wide, int e, int n, int k) {
    enum { SPAN = LINE / sizeof(T), EACH = 16 / sizeof(T) };
    int block = wide <= THIN ? THIN : PACK_OUT, columns = wide <= THIN ? THIN : wide;
    int64_t pack = (int64_t)(n / block) * (in_pad / SPAN) + k / SPAN;
    int64_t row = (int64_t)e * columns * (in_pad / SPAN) + pack * block + n % block;
    return (uint4 *)w + row * 8 + ((k % SPAN / EACH) ^ (n & 7));
}

#endif
