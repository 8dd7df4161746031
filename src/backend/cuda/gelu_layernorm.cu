// bias + GELU + LayerNorm in one pass: a warp takes a row and keeps it in registers. Backward computes
// GELU again, leaves sums over rows (for scale, bias and the linear layer's bias) a block at a time,
// and update.cu adds those up in order.
#include "backend/cuda/internal.cuh"

enum {
    WARPS = 8,
    FWD_BLOCKS = 264,
    BWD_BLOCKS = 264
}; // over all members: two for each multiprocessor

// Numbers that a lane holds: groups of V neighbours, 32 V apart.
template <int V> __device__ static inline int column(int k, int lane) {
    return (k / V * 32 + lane) * V + k % V;
}

template <typename T, int V, int PER>
__device__ static inline void load(const T *p, int cols, int lane, float v[PER]) {
#pragma unroll
    for (int k = 0; k < PER; k += V) {
        int c = column<V>(k, lane);
        if (V == 4 && c < cols) {
            if (sizeof(T) == 2) {
                uint2 raw = *(const uint2 *)(p + c);
                float2 a = __bfloat1622float2(*(__nv_bfloat162 *)&raw.x),
                       b = __bfloat1622float2(*(__nv_bfloat162 *)&raw.y);
                v[k] = a.x, v[k + 1 < PER ? k + 1 : k] = a.y;
                v[k + 2 < PER ? k + 2 : k] = b.x, v[k + 3 < PER ? k + 3 : k] = b.y;
            } else {
                float4 raw = *(const float4 *)(p + c);
                v[k] = raw.x, v[k + 1 < PER ? k + 1 : k] = raw.y;
                v[k + 2 < PER ? k + 2 : k] = raw.z, v[k + 3 < PER ? k + 3 : k] = raw.w;
            }
        } else {
#pragma unroll
            for (int j = 0; j < V; j++)
                v[k + j] = c + j < cols ? (float)p[c + j] : 0;
        }
    }
}

template <typename T, int V, int PER>
__device__ static inline void store(T *p, int cols, int lane, const float v[PER]) {
#pragma unroll
    for (int k = 0; k < PER; k += V) {
        int c = column<V>(k, lane);
        if (V == 4 && c < cols) {
            if (sizeof(T) == 2) {
                __nv_bfloat162 a = __floats2bfloat162_rn(v[k], v[k + 1 < PER ? k + 1 : k]);
                __nv_bfloat162 b =
                    __floats2bfloat162_rn(v[k + 2 < PER ? k + 2 : k], v[k + 3 < PER ? k + 3 : k]);
                uint2 raw = {*(unsigned *)&a, *(unsigned *)&b};
                *(uint2 *)(p + c) = raw;
            } else {
                *(float4 *)(p + c) =
                    make_float4(v[k], v[k + 1 < PER ? k + 1 : k], v[k + 2 < PER ? k + 2 : k],
                                v[k + 3 < PER ? k + 3 : k]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < V; j++)
                if (c + j < cols) p[c + j] = (T)v[k + j];
        }
    }
}

// sigmoid(2u) of the tanh form of GELU; with bf16 around it the fast exponential is exact enough.
template <typename T> __device__ static inline float gate(float x) {
    float u2 = 1.5957691216057308f * x * (1 + 0.044715f * x * x);
    return sizeof(T) == 2 ? __fdividef(1, 1 + __expf(-u2)) : 1 / (1 + expf(-u2));
}

// A warp takes every so many rows, so that the layer's own numbers are read once.
template <typename T, int V, int PER>
__global__ static void __launch_bounds__(32 * WARPS, PER > 16 ? 1 : 2) forward(layernorm n) {
    int lane = threadIdx.x & 31, e = blockIdx.y, cols = n.x.cols;
    float add[PER] = {0}, scale[PER], bias[PER];
    if (n.add) load<float, V, PER>(n.add + (int64_t)e * cols, cols, lane, add);
    load<float, V, PER>(n.scale + (int64_t)e * cols, cols, lane, scale);
    load<float, V, PER>(n.bias + (int64_t)e * cols, cols, lane, bias);
    upstream_wait(); // the layer's own numbers are there before
    downstream_start();
    for (int row = blockIdx.x * WARPS + threadIdx.x / 32; row < n.x.rows;
         row += gridDim.x * WARPS) {
        float h[PER], sum = 0, square = 0;
        load<T, V, PER>((const T *)n.x.p + e * n.x.step + (int64_t)row * n.x.ld, cols, lane, h);
#pragma unroll
        for (int k = 0; k < PER; k++) {
            h[k] += add[k];
            h[k] *= gate<T>(h[k]);
            sum += h[k]; // columns past the end hold 0
        }
        float mean = warp_sum(sum) / cols;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            float d = h[k] - mean;
            square += column<V>(k, lane) < cols ? d * d : 0;
        }
        float inv = rsqrtf(warp_sum(square) / cols + 1e-6f);
#pragma unroll
        for (int k = 0; k < PER; k++)
            h[k] = (h[k] - mean) * inv * scale[k] + bias[k];
        store<T, V, PER>((T *)n.y.p + e * n.y.step + (int64_t)row * n.y.ld, cols, lane, h);
        if (lane == 0) n.stats[(int64_t)e * n.stats_rows + row] = make_float2(mean, inv);
    }
}

// With z = (h - mean) / std and q = dy * scale: dh = (q - mean(q) - z mean(q z)) / std, dx = dh gelu'(x).
template <typename T, int V, int PER>
__global__ static void __launch_bounds__(32 * WARPS, PER > 16 ? 1 : 2)
    backward(layernorm n, tensor dy, tensor dx, float *parts) {
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31, e = blockIdx.y, cols = n.x.cols;
    float d_scale[PER] = {0}, d_bias[PER] = {0}, d_add[PER] = {0};
    upstream_wait();
    downstream_start();
    for (int row = blockIdx.x * WARPS + warp; row < dy.rows; row += gridDim.x * WARPS) {
        float x[PER], g[PER], w[PER];
        load<T, V, PER>((const T *)n.x.p + e * n.x.step + (int64_t)row * n.x.ld, cols, lane, x);
        load<T, V, PER>((const T *)dy.p + e * dy.step + (int64_t)row * dy.ld, cols, lane, g);
        if (n.add) {
            load<float, V, PER>(n.add + (int64_t)e * cols, cols, lane, w);
#pragma unroll
            for (int k = 0; k < PER; k++)
                x[k] += w[k];
        }
        load<float, V, PER>(n.scale + (int64_t)e * cols, cols, lane, w);
        float2 stats = n.stats[(int64_t)e * n.stats_rows + row];
        float q1 = 0, q2 = 0;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            float z = (x[k] * gate<T>(x[k]) - stats.x) * stats.y;
            d_scale[k] += g[k] * z;
            d_bias[k] += g[k];
            g[k] *= w[k];
            q1 += g[k];
            q2 += g[k] * z;
        }
        q1 = warp_sum(q1) / cols;
        q2 = warp_sum(q2) / cols;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            float s = gate<T>(x[k]), h = x[k] * s, z = (h - stats.x) * stats.y;
            float slope = s + h * (1 - s) * 1.5957691216057308f * (1 + 0.134145f * x[k] * x[k]);
            g[k] = column<V>(k, lane) < cols ? (g[k] - q1 - z * q2) * stats.y * slope : 0;
            d_add[k] += g[k];
        }
        if (dx.p) store<T, V, PER>((T *)dx.p + e * dx.step + (int64_t)row * dx.ld, cols, lane, g);
    }
    // Warps add up in order, one sum after the other.
    __shared__ float sums[WARPS][32 * PER];
    float *part = parts + ((int64_t)e * gridDim.x + blockIdx.x) * 3 * cols;
    for (int s = 0; s < 3; s++) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER; k++)
            sums[warp][column<V>(k, lane)] = s == 0 ? d_scale[k] : s == 1 ? d_bias[k] : d_add[k];
        __syncthreads();
        for (int c = threadIdx.x; c < cols; c += 32 * WARPS) {
            float sum = 0;
            for (int w = 0; w < WARPS; w++)
                sum += sums[w][c];
            part[(int64_t)s * cols + c] = sum;
        }
    }
}

int dc_layernorm_parts(int e, int rows) {
    int blocks = BWD_BLOCKS / e, most = div_up(rows, WARPS);
    return blocks < most ? (blocks < 1 ? 1 : blocks) : most;
}

static int forward_blocks(const layernorm *n) {
    int blocks = FWD_BLOCKS / n->x.e, most = div_up(n->x.rows, WARPS);
    return blocks < most ? (blocks < 1 ? 1 : blocks) : most;
}

template <typename T, int V, int PER>
static dc_status start(dc_cuda *cuda, const layernorm *n, const tensor *dy, tensor dx,
                       float *parts) {
    if (!dy)
        return launch(cuda, forward<T, V, PER>, dim3(forward_blocks(n), n->x.e), 32 * WARPS, 0, 1,
                      false, "gelu_layernorm(", *n);
    return launch(cuda, backward<T, V, PER>, dim3(dc_layernorm_parts(dy->e, dy->rows), dy->e),
                  32 * WARPS, 0, 1, false, "gelu_layernorm(", *n, *dy, dx, parts);
}

template <typename T>
static dc_status choose(dc_cuda *cuda, const layernorm *n, const tensor *dy, tensor dx,
                        float *parts) {
    int cols = n->x.cols;
    if (cols > 1024) return dc_layernorm_wide(cuda, n, dy, dx, parts);
    if (cols % 4) return start<T, 1, 32>(cuda, n, dy, dx, parts);
    if (cols <= 128) return start<T, 4, 4>(cuda, n, dy, dx, parts);
    if (cols <= 256) return start<T, 4, 8>(cuda, n, dy, dx, parts);
    if (cols <= 512) return start<T, 4, 16>(cuda, n, dy, dx, parts);
    return start<T, 4, 32>(cuda, n, dy, dx, parts);
}

dc_status dc_layernorm_fwd(dc_cuda *cuda, const layernorm *n) {
    tensor none = {};
    return n->x.half ? choose<bf16>(cuda, n, NULL, none, NULL)
                     : choose<float>(cuda, n, NULL, none, NULL);
}

dc_status dc_layernorm_bwd(dc_cuda *cuda, const layernorm *n, tensor dy, tensor dx, float *parts) {
    return n->x.half ? choose<bf16>(cuda, n, &dy, dx, parts)
                     : choose<float>(cuda, n, &dy, dx, parts);
}
