// GELU, the tanh form x sigmoid(2u), over the matrices between layers, with the bias of the linear layer before it. A thread
// has V neighbouring columns and walks down rows: the bias stays in registers, and so does, in backward, the sum over rows
// that is the bias's gradient; update.cu adds up what the blocks leave, in order. What a product reads or made is bf16 or
// float, each of x and y for itself.
#include "backend/cuda/plain.cuh"

enum { WIDEST_BLOCK = 256, MOST_PARTS = 264, UNROLL = 4 }; // rows at a time

template <typename T, int V> __device__ static inline void load(const T *p, float v[V]) {
    if constexpr (V == 1) {
        v[0] = (float)p[0];
    } else if constexpr (sizeof(T) == 2) {
        uint2 raw = *(const uint2 *)p;
        float2 a = __bfloat1622float2(*(__nv_bfloat162 *)&raw.x),
               b = __bfloat1622float2(*(__nv_bfloat162 *)&raw.y);
        v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
    } else {
        float4 raw = *(const float4 *)p;
        v[0] = raw.x, v[1] = raw.y, v[2] = raw.z, v[3] = raw.w;
    }
}

template <typename T, int V> __device__ static inline void store(T *p, const float v[V]) {
    if constexpr (V == 1) {
        p[0] = (T)v[0];
    } else if constexpr (sizeof(T) == 2) {
        __nv_bfloat162 a = __floats2bfloat162_rn(v[0], v[1]), b = __floats2bfloat162_rn(v[2], v[3]);
        *(uint2 *)p = make_uint2(*(unsigned *)&a, *(unsigned *)&b);
    } else {
        *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
    }
}

// sigmoid(2u); beside bf16 the fast exponential is exact enough.
template <bool FAST> __device__ static inline float gate(float x) {
    float u2 = 1.5957691216057308f * x * (1 + 0.044715f * x * x);
    return FAST ? __fdividef(1, 1 + __expf(-u2)) : 1 / (1 + expf(-u2));
}

// Row of a member, V columns from c on.
template <typename T>
__device__ static inline T *place(const tensor &t, int e, int64_t row, int c) {
    return (T *)t.p + (t.e == 1 ? 0 : e * t.step) + row * t.ld + c;
}

template <int V>
__device__ static inline void load_bias(const gelu_job &j, int e, int c, float v[V]) {
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = j.bias ? j.bias[(int64_t)e * j.x.cols + c + k] : 0;
}

// Block x takes columns, block y rows (every gridDim.y-th of them), block z a member.
template <typename TX, typename TY, int V>
__global__ static void __launch_bounds__(WIDEST_BLOCK) forward(gelu_job j) {
    enum { FAST = sizeof(TX) == 2 || sizeof(TY) == 2 };
    int c = (blockIdx.x * blockDim.x + threadIdx.x) * V, e = blockIdx.z;
    float bias[V];
    upstream_wait();
    downstream_start();
    if (c >= j.x.cols) return;
    load_bias<V>(j, e, c, bias);
#pragma unroll UNROLL
    for (int row = blockIdx.y; row < j.x.rows; row += gridDim.y) {
        float v[V];
        load<TX, V>(place<TX>(j.x, e, row, c), v);
#pragma unroll
        for (int k = 0; k < V; k++) {
            v[k] += bias[k];
            v[k] *= gate<FAST>(v[k]);
        }
        store<TY, V>(place<TY>(j.y, e, row, c), v);
    }
}

// dx = dy gelu'(x + bias), of type TX as x is, and its sum over the block's rows.
template <typename TX, typename TY, int V>
__global__ static void __launch_bounds__(WIDEST_BLOCK) backward(gelu_job j) {
    enum { FAST = sizeof(TX) == 2 || sizeof(TY) == 2 };
    int c = (blockIdx.x * blockDim.x + threadIdx.x) * V, e = blockIdx.z, cols = j.x.cols;
    float bias[V], sum[V] = {0};
    upstream_wait();
    downstream_start();
    if (c >= cols) return;
    load_bias<V>(j, e, c, bias);
#pragma unroll UNROLL
    for (int row = blockIdx.y; row < j.dy.rows; row += gridDim.y) {
        float x[V], g[V], old[V];
        load<TX, V>(place<TX>(j.x, e, row, c), x);
        load<TY, V>(place<TY>(j.dy, e, row, c), g);
        if (j.add) load<TX, V>(place<TX>(j.y, e, row, c), old);
#pragma unroll
        for (int k = 0; k < V; k++) {
            float v = x[k] + bias[k], s = gate<FAST>(v);
            float slope = s + v * s * (1 - s) * 1.5957691216057308f * (1 + 0.134145f * v * v);
            g[k] *= slope;
            sum[k] += g[k];
            if (j.add) g[k] += old[k];
        }
        store<TX, V>(place<TX>(j.y, e, row, c), g);
    }
    if (!j.parts) return;
    float *part = j.parts + ((int64_t)e * gridDim.y + blockIdx.y) * cols + c;
#pragma unroll
    for (int k = 0; k < V; k++)
        part[k] = sum[k];
}

// ---- launches ----

// Blocks over rows: at least `each` rows per block, and about `most` blocks in all.
static int blocks_over(int e, int rows, int each, int most) {
    return std::max(1, std::min(most / e, div_up(rows, each)));
}

int dc_gelu_parts(int e,
                  int rows) { // about two per multiprocessor, so that there are few parts to add up
    return blocks_over(e, rows, UNROLL, MOST_PARTS);
}

// As many threads as there are columns, by warps.
template <int V> static dim3 grid_of(const gelu_job *j, bool back, int *threads) {
    int each = div_up(div_up(j->x.cols, V), 32) * 32, e = j->x.e;
    int down = back ? dc_gelu_parts(e, j->dy.rows) : blocks_over(e, j->x.rows, 2, 4 * MOST_PARTS);
    *threads = each < WIDEST_BLOCK ? each : WIDEST_BLOCK;
    return dim3((unsigned)div_up(j->x.cols, *threads * V), (unsigned)down, (unsigned)e);
}

template <typename TX, typename TY, int V>
static dc_status start(dc_cuda *cuda, const gelu_job *j) {
    int threads;
    bool back = j->dy.p != NULL;
    dim3 grid = grid_of<V>(j, back, &threads);
    return launch(cuda, back ? backward<TX, TY, V> : forward<TX, TY, V>, grid, threads, 0, 1, false,
                  "gelu(", *j);
}

// Rows and members begin at multiples of four numbers?
static bool fours(const tensor &t) {
    int64_t size = t.half ? 2 : 4;
    return !t.p || (t.cols % 4 == 0 && t.ld % 4 == 0 && (t.e == 1 || t.step % 4 == 0) &&
                    (uintptr_t)t.p % (uintptr_t)(4 * size) == 0);
}

template <typename TX, typename TY> static dc_status by_width(dc_cuda *cuda, const gelu_job *j) {
    if (fours(j->x) && fours(j->y) && fours(j->dy)) return start<TX, TY, 4>(cuda, j);
    return start<TX, TY, 1>(cuda, j);
}

static dc_status by_type(dc_cuda *cuda, const gelu_job *j, bool y_half) {
    if (j->x.half) return y_half ? by_width<bf16, bf16>(cuda, j) : by_width<bf16, float>(cuda, j);
    return y_half ? by_width<float, bf16>(cuda, j) : by_width<float, float>(cuda, j);
}

dc_status dc_gelu_fwd(dc_cuda *cuda, const gelu_job *j) {
    return by_type(cuda, j, j->y.half);
}

dc_status dc_gelu_bwd(dc_cuda *cuda, const gelu_job *j) {
    return by_type(cuda, j, j->dy.half);
}
