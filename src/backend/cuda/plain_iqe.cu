// iqe: columns are cut into groups; the intervals [x_i, y_i] of a group (those with x_i < y_i) have a union, whose length is
// the group's component. d = m mean + (1 - m) max over components, m = sigmoid(rho). A warp takes a row, a lane a group.
//
// The union's length is the sum of the right ends that close a piece of it, less that of the left ends that open one: which
// ends those are, each interval finds by looking at the others (k^2 comparisons, no sorting), and they are the gradient too.
// Of equal ends the first counts. Forward keeps each row's mean and largest component.
#include "backend/cuda/plain.cuh"

// Does interval i's left end open a piece of the union: is there no other that covers it?
__device__ static inline bool opens(const float *x, const float *y, int group, int i) {
    if (!(x[i] < y[i])) return false;
    for (int k = 0; k < group; k++)
        if (k != i && x[k] < y[k] && x[i] <= y[k] && (x[k] < x[i] || (x[k] == x[i] && k < i)))
            return false;
    return true;
}

__device__ static inline bool closes(const float *x, const float *y, int group, int i) {
    if (!(x[i] < y[i])) return false;
    for (int k = 0; k < group; k++)
        if (k != i && x[k] < y[k] && x[k] <= y[i] && (y[k] > y[i] || (y[k] == y[i] && k < i)))
            return false;
    return true;
}

__device__ static inline float component(const float *x, const float *y, int group) {
    float length = 0;
    for (int i = 0; i < group; i++) {
        length += 0 * (y[i] - x[i]); // NaN and Inf stay, so that the guard sees them
        if (closes(x, y, group, i)) length += y[i];
        if (opens(x, y, group, i)) length -= x[i];
    }
    return length;
}

// The same of a group in registers; G is a multiple of 4.
template <int G>
__device__ static inline float component(const float *from_x, const float *from_y) {
    float x[G], y[G], length = 0;
#pragma unroll
    for (int k = 0; k < G; k += 4) {
        float4 a = *(const float4 *)(from_x + k), b = *(const float4 *)(from_y + k);
        x[k] = a.x, x[k + 1] = a.y, x[k + 2] = a.z, x[k + 3] = a.w;
        y[k] = b.x, y[k + 1] = b.y, y[k + 2] = b.z, y[k + 3] = b.w;
    }
#pragma unroll
    for (int i = 0; i < G; i++) {
        bool open = x[i] < y[i], close = open;
#pragma unroll
        for (int k = 0; k < G; k++) {
            if (k == i) continue;
            bool there = x[k] < y[k];
            if (there && x[i] <= y[k] && (k < i ? x[k] <= x[i] : x[k] < x[i])) open = false;
            if (there && x[k] <= y[i] && (k < i ? y[k] >= y[i] : y[k] > y[i])) close = false;
        }
        length += 0 * (y[i] - x[i]) + (close ? y[i] : 0) - (open ? x[i] : 0);
    }
    return length;
}

struct summary { // of a row's components, as forward keeps it for backward
    float mean, most;
    int first; // the first that is largest
};
static_assert(sizeof(summary) == DC_IQE_STATS * sizeof(float), "what plain.cu has memory for");

// G: columns of a group, in registers; 0: any number of them.
template <int G>
__device__ static inline summary summarise(const float *x, const float *y, int cols, int group) {
    int lane = threadIdx.x & 31, count = cols / group;
    summary s = {0, -INFINITY, count};
    for (int g = lane; g < count; g += 32) {
        float length;
        if constexpr (G)
            length = component<G>(x + g * G, y + g * G);
        else
            length = component(x + g * group, y + g * group, group);
        s.mean += length;
        if (length > s.most || s.first == count) {
            s.most = length;
            s.first = g;
        }
    }
    s.mean = warp_sum(s.mean) / (float)count;
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        float most = __shfl_xor_sync(~0u, s.most, d);
        int first = __shfl_xor_sync(~0u, s.first, d);
        if (most > s.most || (most == s.most && first < s.first)) {
            s.most = most;
            s.first = first;
        }
    }
    return s;
}

__device__ static inline float sigmoid(const float *rho) {
    return 1 / (1 + expf(-*rho));
}

__device__ static inline int64_t warp_row() {
    return (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / 32;
}

__device__ static inline const float *row_at(const tensor &t, int64_t r) {
    return (const float *)t.p + r * t.ld;
}

template <int G> __global__ static void iqe_forward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    summary s = summarise<G>(row_at(j.x[0], r), row_at(j.x[1], r), j.x[0].cols, (int)j.a);
    float m = sigmoid((const float *)j.x[2].p);
    if (threadIdx.x & 31) return;
    ((float *)j.y.p)[r] = m * s.mean + (1 - m) * s.most;
    ((summary *)j.kept)[r] = s;
}

// To x (input 0) or y (1): a component counts m / groups, the largest 1 - m more.
__global__ static void iqe_backward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    const float *x = row_at(j.x[0], r), *y = row_at(j.x[1], r);
    int cols = j.x[0].cols, group = (int)j.a, count = cols / group;
    int first = ((const summary *)j.kept)[j.lo + r].first;
    float m = sigmoid((const float *)j.x[2].p), g = ((const float *)j.dy.p)[r];
    float *to = (float *)j.y.p + r * j.y.ld;
    for (int c = threadIdx.x & 31; c < cols; c += 32) {
        int k = c / group;
        const float *xs = x + k * group, *ys = y + k * group;
        float weight = g * (m / (float)count + (k == first ? 1 - m : 0)), v = 0;
        if (j.input == 0 && opens(xs, ys, group, c % group)) v = -weight;
        if (j.input == 1 && closes(xs, ys, group, c % group)) v = weight;
        to[c] = j.add ? to[c] + v : v;
    }
}

// To rho: the sum over rows of dy (mean - max) m (1 - m).
__global__ static void iqe_rho(plain j) {
    double sum = 0, all;
    upstream_wait();
    downstream_start();
    for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < j.dy.rows;
         r += (int64_t)gridDim.x * blockDim.x) {
        summary s = ((const summary *)j.kept)[j.lo + r];
        sum += (double)((const float *)j.dy.p)[r] * (double)(s.mean - s.most);
    }
    if (!add_up(sum, j.sums, j.done, &all) || threadIdx.x) return;
    float m = sigmoid((const float *)j.x[2].p), v = (float)(all * m * (1 - m)),
          *to = (float *)j.y.p;
    *to = j.add ? *to + v : v;
}

template <int G> static dc_status start_forward(dc_cuda *cuda, const plain *j) {
    return launch(cuda, iqe_forward<G>, dim3((unsigned)div_up(j->y.rows, PLAIN_WARPS)),
                  PLAIN_THREADS, 0, 1, false, "iqe(", *j);
}

static dc_status forward(dc_cuda *cuda, const plain *j) {
    bool fours = by_four(j->x[0], j->x[0].cols) && by_four(j->x[1], j->x[1].cols);
    if (fours && j->a == 8) return start_forward<8>(cuda, j);
    if (fours && j->a == 16) return start_forward<16>(cuda, j);
    return start_forward<0>(cuda, j);
}

static dc_status backward(dc_cuda *cuda, const plain *j) {
    if (j->input < 2)
        return launch(cuda, iqe_backward, dim3((unsigned)div_up(j->dy.rows, PLAIN_WARPS)),
                      PLAIN_THREADS, 0, 1, false, "iqe(", *j);
    int blocks = std::min<int>(div_up(j->dy.rows, PLAIN_THREADS), PLAIN_SUMS);
    return launch(cuda, iqe_rho, dim3((unsigned)blocks), PLAIN_THREADS, 0, 1, false, "iqe(", *j);
}

plain_fn *dc_plain_iqe(dc_op op, bool back) {
    if (op != DC_OP_iqe) return NULL;
    return back ? backward : forward;
}
