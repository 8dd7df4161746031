// Plain ops that take a row to a row or a number: a warp takes a row, its lanes take columns.
#include "backend/cuda/plain.cuh"

struct row { // that a warp takes, of a member
    int e, lane;
    int64_t r;
};

__device__ static inline row my_row() {
    return row{(int)blockIdx.y, (int)threadIdx.x & 31,
               (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / 32};
}

__device__ static inline const float *row_of(const tensor &t, const row &w) {
    return (const float *)t.p + (t.e == 1 ? 0 : w.e * t.step) + w.r * t.ld;
}

__device__ static inline float *row_to(const tensor &t, const row &w) {
    return (float *)row_of(t, w);
}

// to (+)= value(column) over a row. A lane makes several columns before it stores any, so that their loads are under way
// together.
template <typename F>
__device__ static inline void put_row(float *to, int cols, int lane, bool add, F value) {
    enum { AT_ONCE = 8 };
    for (int c0 = lane; c0 < cols; c0 += 32 * AT_ONCE) {
        float v[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int c = c0 + 32 * k;
            if (c < cols) v[k] = add ? to[c] + value(c) : value(c);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (c0 + 32 * k < cols) to[c0 + 32 * k] = v[k];
    }
}

// ---- row_dot, row_square ----

template <bool DOT> __global__ static void pair_forward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w), *y = row_of(j.x[1], w);
    float sum = 0;
    for (int c = w.lane; c < j.x[0].cols; c += 32)
        sum += DOT ? x[c] * y[c] : (x[c] - y[c]) * (x[c] - y[c]);
    sum = warp_sum(sum);
    if (w.lane == 0) *row_to(j.y, w) = sum;
}

template <bool DOT> __global__ static void pair_backward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w), *y = row_of(j.x[1], w), g = *row_of(j.dy, w);
    float twice = j.input ? -2 * g : 2 * g;
    put_row(row_to(j.y, w), j.y.cols, w.lane, j.add,
            [&](int c) { return DOT ? g * (j.input ? x[c] : y[c]) : twice * (x[c] - y[c]); });
}

// ---- normalise: y = sqrt(cols) x / |x| ----

// At least 1e-12, so that a row of zeros stays one. NaN stays NaN.
__device__ static inline float square_sum(const float *x, int cols, int lane) {
    float sum = 0;
    for (int c = lane; c < cols; c += 32)
        sum += x[c] * x[c];
    sum = warp_sum(sum);
    return sum < 1e-12f ? 1e-12f : sum;
}

__global__ static void normalise_forward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w);
    int cols = j.y.cols;
    float scale = sqrtf((float)cols / square_sum(x, cols, w.lane));
    put_row(row_to(j.y, w), cols, w.lane, false, [&](int c) { return x[c] * scale; });
}

// dx = sqrt(cols) / |x| (dy - x (x dy) / |x|^2)
__global__ static void normalise_backward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w), *dy = row_of(j.dy, w);
    int cols = j.y.cols;
    float square = square_sum(x, cols, w.lane), scale = sqrtf((float)cols / square), dot = 0;
    for (int c = w.lane; c < cols; c += 32)
        dot += x[c] * dy[c];
    dot = warp_sum(dot) / square;
    put_row(row_to(j.y, w), cols, w.lane, j.add,
            [&](int c) { return scale * (dy[c] - x[c] * dot); });
}

// ---- softmax ----

__device__ static inline float warp_most(float v) {
#pragma unroll
    for (int d = 16; d; d >>= 1)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

// Log of the sum of exp over a row, without overflow.
__device__ static inline float log_sum(const float *x, int cols, int lane) {
    float most = -INFINITY, sum = 0;
    for (int c = lane; c < cols; c += 32)
        most = fmaxf(most, x[c]);
    most = warp_most(most);
    for (int c = lane; c < cols; c += 32)
        sum += expf(x[c] - most);
    return most + logf(warp_sum(sum));
}

// Sum of softmax(x) q over a row.
__device__ static inline float expectation(const float *x, const float *q, int cols, int lane,
                                           float total) {
    float sum = 0;
    for (int c = lane; c < cols; c += 32)
        sum += expf(x[c] - total) * q[c];
    return warp_sum(sum);
}

// q (1, n cols, 1) has a row of x's shape for each row of x.
__global__ static void expected_forward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w);
    int cols = j.x[0].cols;
    float total = log_sum(x, cols, w.lane),
          v = expectation(x, (const float *)j.x[1].p + w.r * cols, cols, w.lane, total);
    if (w.lane == 0) *row_to(j.y, w) = v;
}

__global__ static void expected_backward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    int cols = j.x[0].cols;
    const float *x = row_of(j.x[0], w), *q = (const float *)j.x[1].p + w.r * cols,
                g = *row_of(j.dy, w);
    float total = log_sum(x, cols, w.lane), mean = expectation(x, q, cols, w.lane, total);
    put_row(row_to(j.y, w), cols, w.lane, j.add,
            [&](int c) { return g * expf(x[c] - total) * (q[c] - mean); });
}

__global__ static void log_sum_forward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    float total = log_sum(row_of(j.x[0], w), j.x[0].cols, w.lane);
    if (w.lane == 0) *row_to(j.y, w) = total;
}

// dx = dy softmax(x)
__global__ static void log_sum_backward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    const float *x = row_of(j.x[0], w), g = *row_of(j.dy, w);
    float total = log_sum(x, j.y.cols, w.lane);
    put_row(row_to(j.y, w), j.y.cols, w.lane, j.add, [&](int c) { return g * expf(x[c] - total); });
}

// ---- log_likelihood: a reduction whose terms are rows ----

__global__ static void likelihood_forward(plain j) {
    int lane = threadIdx.x & 31, cols = j.x[0].cols;
    double sum = 0, all;
    upstream_wait();
    downstream_start();
    for (int64_t r = (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / 32; r < j.x[0].rows;
         r += (int64_t)gridDim.x * PLAIN_WARPS) {
        const float *x = (const float *)j.x[0].p + r * cols,
                    *t = (const float *)j.x[1].p + r * cols;
        float total = log_sum(x, cols, lane);
        for (int c = lane; c < cols; c += 32)
            sum += (double)t[c] * (x[c] - total);
    }
    if (add_up(sum, j.sums, j.done, &all) && threadIdx.x == 0)
        *(float *)j.y.p = (float)(all / j.x[0].rows);
}

// dx = dy / rows (t - softmax(x) sum of t)
__global__ static void likelihood_backward(plain j) {
    row w = my_row();
    upstream_wait();
    downstream_start();
    if (w.r >= j.y.rows) return;
    int cols = j.y.cols;
    const float *x = row_of(j.x[0], w), *t = row_of(j.x[1], w);
    float total = log_sum(x, cols, w.lane), mass = 0, g = *(const float *)j.dy.p / j.y.rows;
    for (int c = w.lane; c < cols; c += 32)
        mass += t[c];
    mass = warp_sum(mass);
    put_row(row_to(j.y, w), cols, w.lane, j.add,
            [&](int c) { return g * (t[c] - mass * expf(x[c] - total)); });
}

// ---- launches ----

// A warp per row of y.
template <void (*KERNEL)(plain)> static dc_status by_rows(dc_cuda *cuda, const plain *j) {
    return launch(cuda, KERNEL, dim3((unsigned)div_up(j->y.rows, PLAIN_WARPS), (unsigned)j->y.e),
                  PLAIN_THREADS, 0, 1, false, "rows(", *j);
}

static dc_status likelihood(dc_cuda *cuda, const plain *j) {
    int blocks = div_up(j->x[0].rows, PLAIN_WARPS);
    return launch(cuda, likelihood_forward, dim3((unsigned)std::min<int>(blocks, PLAIN_SUMS)),
                  PLAIN_THREADS, 0, 1, false, "log_likelihood(", *j);
}

plain_fn *dc_plain_rows(dc_op op, bool back) {
    switch (op) {
    case DC_OP_row_dot:
        return back ? by_rows<pair_backward<true>> : by_rows<pair_forward<true>>;
    case DC_OP_row_square:
        return back ? by_rows<pair_backward<false>> : by_rows<pair_forward<false>>;
    case DC_OP_normalise:
        return back ? by_rows<normalise_backward> : by_rows<normalise_forward>;
    case DC_OP_logsumexp:
        return back ? by_rows<log_sum_backward> : by_rows<log_sum_forward>;
    case DC_OP_expected:
        return back ? by_rows<expected_backward> : by_rows<expected_forward>;
    case DC_OP_log_likelihood:
        return back ? by_rows<likelihood_backward> : likelihood;
    default:
        return NULL;
    }
}
