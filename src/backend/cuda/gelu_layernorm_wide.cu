// gelu_layernorm of any width: a block takes a row, and reads it as often as it needs it. The kernels of gelu_layernorm.cu,
// which keep a row in registers, end at 1024 columns.
#include "backend/cuda/internal.cuh"

enum { THREADS = 256, FWD_BLOCKS = 264 };

template <typename T> __device__ static inline float gate(float x) {
    float u2 = 1.5957691216057308f * x * (1 + 0.044715f * x * x);
    return sizeof(T) == 2 ? __fdividef(1, 1 + __expf(-u2)) : 1 / (1 + expf(-u2));
}

// What GELU reads in column c of a row.
template <typename T>
__device__ static inline float before(const layernorm &n, int e, int row, int c) {
    float x = (float)((const T *)n.x.p)[e * n.x.step + (int64_t)row * n.x.ld + c];
    return n.add ? x + n.add[(int64_t)e * n.x.cols + c] : x;
}

template <typename T> __global__ static void __launch_bounds__(THREADS) forward(layernorm n) {
    int e = blockIdx.y, cols = n.x.cols;
    for (int row = blockIdx.x; row < n.x.rows; row += gridDim.x) {
        double sum = 0, square = 0;
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            float x = before<T>(n, e, row, c);
            sum += x * gate<T>(x);
        }
        float mean = (float)(block_sum(sum) / cols);
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            float x = before<T>(n, e, row, c), d = x * gate<T>(x) - mean;
            square += d * d;
        }
        float inv = rsqrtf((float)(block_sum(square) / cols) + 1e-6f);
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            float x = before<T>(n, e, row, c);
            int64_t at = (int64_t)e * cols + c;
            ((T *)n.y.p)[e * n.y.step + (int64_t)row * n.y.ld + c] =
                (T)((x * gate<T>(x) - mean) * inv * n.scale[at] + n.bias[at]);
        }
        if (threadIdx.x == 0) n.stats[(int64_t)e * n.stats_rows + row] = make_float2(mean, inv);
    }
}

// As in gelu_layernorm.cu; sums over the block's rows grow in its part of memory, a column by one thread.
template <typename T>
__global__ static void __launch_bounds__(THREADS)
    backward(layernorm n, tensor dy, tensor dx, float *parts) {
    int e = blockIdx.y, cols = n.x.cols;
    float *part = parts + ((int64_t)e * gridDim.x + blockIdx.x) * 3 * cols;
    const float *scale = n.scale + (int64_t)e * cols;
    for (int i = threadIdx.x; i < 3 * cols; i += THREADS)
        part[i] = 0;
    for (int row = blockIdx.x; row < dy.rows; row += gridDim.x) {
        float2 stats = n.stats[(int64_t)e * n.stats_rows + row];
        const T *g = (const T *)dy.p + e * dy.step + (int64_t)row * dy.ld;
        double q1 = 0, q2 = 0;
        __syncthreads(); // the zeros are there
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            float x = before<T>(n, e, row, c), z = (x * gate<T>(x) - stats.x) * stats.y,
                  d = (float)g[c];
            part[c] += d * z;
            part[cols + c] += d;
            q1 += d * scale[c];
            q2 += d * scale[c] * z;
        }
        float m1 = (float)(block_sum(q1) / cols), m2 = (float)(block_sum(q2) / cols);
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            float x = before<T>(n, e, row, c), s = gate<T>(x), h = x * s,
                  z = (h - stats.x) * stats.y;
            float slope = s + h * (1 - s) * 1.5957691216057308f * (1 + 0.134145f * x * x);
            float v = ((float)g[c] * scale[c] - m1 - z * m2) * stats.y * slope;
            part[2 * cols + c] += v;
            if (dx.p) ((T *)dx.p)[e * dx.step + (int64_t)row * dx.ld + c] = (T)v;
        }
    }
}

template <typename T>
static void start(dc_cuda *cuda, const layernorm *n, const tensor *dy, tensor dx, float *parts) {
    int blocks = n->x.rows < FWD_BLOCKS ? n->x.rows : FWD_BLOCKS;
    if (!dy)
        forward<T><<<dim3(blocks, n->x.e), THREADS, 0, cuda->stream>>>(*n);
    else
        backward<T><<<dim3(dc_layernorm_parts(dy->e, dy->rows), dy->e), THREADS, 0, cuda->stream>>>(
            *n, *dy, dx, parts);
}

dc_status dc_layernorm_wide(dc_cuda *cuda, const layernorm *n, const tensor *dy, tensor dx,
                            float *parts) {
    if (n->x.half)
        start<bf16>(cuda, n, dy, dx, parts);
    else
        start<float>(cuda, n, dy, dx, parts);
    return dc_cuda_check(cudaGetLastError(), "gelu_layernorm(");
}
