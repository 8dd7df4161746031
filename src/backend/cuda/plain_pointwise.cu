// Plain ops that go number by number, and reductions: sums over everything of such numbers. An input of one member serves
// all members; its gradient is the sum over them, in order.
#include "backend/cuda/plain.cuh"

#define POINTWISE_OPS(F)                                                                           \
    F(add)                                                                                         \
    F(mul)                                                                                         \
    F(affine)                                                                                      \
    F(clip)                                                                                        \
    F(within)                                                                                      \
    F(decay) F(power) F(exp) F(tanh) F(abs) F(sigmoid) F(softplus) F(linex) F(relu) F(side)
#define REDUCTION_OPS(F) F(mean) F(expectile) F(bce) F(square) F(relative_mean)

struct numbers { // operands of such an op
    const float *x[DC_INPUTS];
    int64_t step[DC_INPUTS];
    float a, b;
    int64_t count; // of one member
    int e;         // members of the widest input
    // Forward and backward.
    float *y;
    int64_t ystep;
    // Backward.
    const float *dy;
    int64_t dystep;
    bool one_dy;          // dy is one number, of a reduction
    float scale;          // all numbers of the gradient are multiplied by
    const float *divisor; // Nullable: and divided by
    int input, summed;    // members that are added up: 1, or e
    bool add;
};

// ---- what an op computes ----

__device__ static inline float logistic(float v) {
    return 1 / (1 + expf(-v));
}

__device__ static inline float softplus(float v) { // log(1 + exp(v))
    return fmaxf(v, 0) + log1pf(expf(-fabsf(v)));
}

__device__ static inline bool known(float steps, float most) {
    return steps >= 0 && steps <= most;
}

__device__ static inline float positive(float v) { // NaN stays NaN, so that the guard sees it
    return v < 0 ? 0 : v;
}

// The value, or a reduction's term, of one number of each input.
template <int OP>
__device__ static inline float value(float x, float y, float z, float a, float b) {
    switch (OP) {
    case DC_OP_add:
        return x + y;
    case DC_OP_mul:
        return x * y;
    case DC_OP_affine:
        return x * a + b;
    case DC_OP_clip:
        return x < a ? a : x > b ? b : x;
    case DC_OP_within:
        return known(x, a) ? y : z;
    case DC_OP_decay:
        return powf(1 + positive(x), -a);
    case DC_OP_power:
        return powf(a, x);
    case DC_OP_exp:
        return expf(x);
    case DC_OP_tanh:
        return tanhf(x);
    case DC_OP_abs:
        return fabsf(x);
    case DC_OP_sigmoid:
        return logistic(x);
    case DC_OP_softplus:
        return softplus(x);
    case DC_OP_linex:
        return x - y > a ? x - y : b * expf(x - y) - x;
    case DC_OP_relu:
        return positive(x);
    case DC_OP_side:
        return x >= 0 ? a : 1 - a;
    case DC_OP_expectile:
        return z * (x < y ? a : 1 - a) * (x - y) * (x - y);
    case DC_OP_bce:
        return z * (y >= logistic(x) ? a : 1 - a) * (y * softplus(-x) + (1 - y) * softplus(x));
    case DC_OP_square:
        return (x - y) * (x - y);
    }
    return x; // mean, relative_mean
}

// What one number of input i receives, for the output's gradient g.
template <int OP>
__device__ static inline float slope(int i, float g, float x, float y, float z, float a, float b) {
    float sign = i ? -1 : 1;
    switch (OP) {
    case DC_OP_mul:
        return g * (i ? x : y);
    case DC_OP_affine:
        return g * a;
    case DC_OP_clip:
        return x >= a && x <= b ? g : 0;
    case DC_OP_within:
        return known(x, a) ? 0 : g;
    case DC_OP_decay:
        return x <= 0 ? 0 : g * -a * powf(1 + x, -(a + 1));
    case DC_OP_exp:
        return g * expf(x);
    case DC_OP_tanh:
        return g * (1 - tanhf(x) * tanhf(x));
    case DC_OP_abs:
        return x > 0 ? g : x < 0 ? -g : 0;
    case DC_OP_sigmoid:
        return g * logistic(x) * (1 - logistic(x));
    case DC_OP_softplus:
        return g * logistic(x);
    case DC_OP_linex:
        return x - y > a ? g : g * (b * expf(x - y) - 1);
    case DC_OP_relu:
        return x > 0 ? g : 0;
    case DC_OP_expectile:
        return sign * g * z * (x < y ? a : 1 - a) * (x - y);
    case DC_OP_bce: {
        float q = logistic(x);
        return g * z * (y >= q ? a : 1 - a) * (q - y);
    }
    case DC_OP_square:
        return sign * g * (x - y);
    }
    return g; // add, mean, relative_mean
}

template <int V> __device__ static inline void load(const float *p, float v[V]) {
    if constexpr (V == 4) {
        float4 raw = *(const float4 *)p;
        v[0] = raw.x, v[1] = raw.y, v[2] = raw.z, v[3] = raw.w;
    } else {
        v[0] = *p;
    }
}

template <int V> __device__ static inline void store(float *p, const float v[V]) {
    if constexpr (V == 4)
        *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
    else
        *p = v[0];
}

// Numbers m ... m + V - 1 of member e of all inputs; a third that is not there (a weight) is 1.
template <int V>
__device__ static inline void load_inputs(const numbers &j, int e, int64_t m,
                                          float x[DC_INPUTS][V]) {
#pragma unroll
    for (int i = 0; i < DC_INPUTS; i++) {
#pragma unroll
        for (int k = 0; k < V; k++)
            x[i][k] = 1;
        if (j.x[i]) load<V>(j.x[i] + e * j.step[i] + m, x[i]);
    }
}

template <int OP, int V> __global__ static void forward(numbers j) {
    int e = blockIdx.y;
    upstream_wait();
    downstream_start();
    for (int64_t m = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V; m < j.count;
         m += (int64_t)gridDim.x * blockDim.x * V) {
        float x[DC_INPUTS][V], y[V];
        load_inputs<V>(j, e, m, x);
#pragma unroll
        for (int k = 0; k < V; k++)
            y[k] = value<OP>(x[0][k], x[1][k], x[2][k], j.a, j.b);
        store<V>(j.y + e * j.ystep + m, y);
    }
}

template <int OP, int V> __global__ static void backward(numbers j) {
    upstream_wait();
    downstream_start();
    float one = j.scale;
    if (j.one_dy) one *= *j.dy;
    if (j.divisor) one /= *j.divisor;
    for (int64_t m = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V; m < j.count;
         m += (int64_t)gridDim.x * blockDim.x * V) {
        float sum[V] = {0}, *to = j.y + blockIdx.y * j.ystep + m;
        if (j.add) load<V>(to, sum);
        for (int s = 0; s < j.summed; s++) {
            int e = blockIdx.y + s;
            float x[DC_INPUTS][V], g[V];
            load_inputs<V>(j, e, m, x);
            if (!j.one_dy) load<V>(j.dy + e * j.dystep + m, g);
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] +=
                    slope<OP>(j.input, j.one_dy ? one : g[k], x[0][k], x[1][k], x[2][k], j.a, j.b);
        }
        store<V>(to, sum);
    }
}

// ---- reductions ----

struct total { // of a reduction
    double scale, cells;
    double *sums;
    unsigned *done;
    float *kept;
};

// `size` is of relative_mean: the sum of sizes, which it divides by.
__device__ static void finish(const numbers &j, const total &t, double sum, double size,
                              bool sized) {
    if (threadIdx.x) return;
    double v = t.scale * sum / t.cells, divisor = size / t.cells + 1e-6;
    if (sized) *t.kept = (float)divisor;
    *j.y = (float)(sized ? v / divisor : v);
}

template <int OP> __global__ static void reduce(numbers j, total t) {
    enum { SIZED = OP == DC_OP_relative_mean };
    double sum = 0, size = 0, all;
    upstream_wait();
    downstream_start();
    for (int e = 0; e < j.e; e++)
        for (int64_t m = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; m < j.count;
             m += (int64_t)gridDim.x * blockDim.x) {
            float x[DC_INPUTS][1];
            load_inputs<1>(j, e, m, x);
            float v = value<OP>(x[0][0], x[1][0], x[2][0], j.a, j.b);
            sum += v;
            if (SIZED) size += fabsf(v);
        }
    if (!SIZED) {
        if (add_up(sum, t.sums, t.done, &all)) finish(j, t, all, 0, false);
        return;
    }
    // Two sums: both partial ones are there when the second is counted.
    size = block_sum(size);
    if (threadIdx.x == 0) t.sums[PLAIN_SUMS + blockIdx.x] = size;
    if (!add_up(sum, t.sums, t.done, &all)) return;
    double sizes = 0;
    for (int i = threadIdx.x; i < (int)gridDim.x; i += blockDim.x)
        sizes += __ldcg(&t.sums[PLAIN_SUMS + i]);
    finish(j, t, all, block_sum(sizes), true);
}

// ---- launches ----

static numbers numbers_of(const plain *j) {
    numbers n = {};
    n.e = 1;
    for (int i = 0; i < j->in_count; i++) {
        DC_CHECK(!j->x[i].half && j->x[i].ld == j->x[i].cols);
        n.x[i] = (const float *)j->x[i].p;
        n.step[i] = step_of_members(j->x[i]);
        n.e = j->x[i].e > n.e ? j->x[i].e : n.e;
    }
    n.a = j->a;
    n.b = j->b;
    n.count = cells_of(j->x[0]);
    n.y = (float *)j->y.p;
    n.ystep = step_of_members(j->y);
    n.dy = (const float *)j->dy.p;
    n.dystep = step_of_members(j->dy);
    n.scale = 1;
    n.input = j->input;
    n.add = j->add;
    n.summed = j->input >= 0 && j->y.e < n.e ? n.e : 1;
    return n;
}

// Are all operands read four numbers at a time?
static bool fours(const plain *j) {
    int64_t count = cells_of(j->x[0]);
    bool all = by_four(j->y, count) && (cells_of(j->dy) != count || by_four(j->dy, count));
    for (int i = 0; i < j->in_count; i++)
        all = all && by_four(j->x[i], count);
    return all;
}

template <int OP> static dc_status start_forward(dc_cuda *cuda, const plain *j) {
    numbers n = numbers_of(j);
    if (fours(j))
        return launch(cuda, forward<OP, 4>,
                      dim3(plain_blocks(n.count, 4 * PLAIN_THREADS), (unsigned)n.e), PLAIN_THREADS,
                      0, 1, false, "pointwise(", n);
    return launch(cuda, forward<OP, 1>, dim3(plain_blocks(n.count, PLAIN_THREADS), (unsigned)n.e),
                  PLAIN_THREADS, 0, 1, false, "pointwise(", n);
}

template <int OP>
static dc_status launch_backward(dc_cuda *cuda, const plain *j, const numbers &n) {
    unsigned members = (unsigned)(n.e / n.summed);
    if (fours(j))
        return launch(cuda, backward<OP, 4>,
                      dim3(plain_blocks(n.count, 4 * PLAIN_THREADS), members), PLAIN_THREADS, 0, 1,
                      false, "pointwise(", n);
    return launch(cuda, backward<OP, 1>, dim3(plain_blocks(n.count, PLAIN_THREADS), members),
                  PLAIN_THREADS, 0, 1, false, "pointwise(", n);
}

template <int OP> static dc_status start_backward(dc_cuda *cuda, const plain *j) {
    return launch_backward<OP>(cuda, j, numbers_of(j));
}

template <int OP> static dc_status start_reduce(dc_cuda *cuda, const plain *j) {
    numbers n = numbers_of(j);
    double scale = OP == DC_OP_bce         ? j->b
                   : OP == DC_OP_square    ? j->a
                   : OP == DC_OP_expectile ? 2
                                           : 1;
    total t = {scale, (double)n.e * (double)n.count, j->sums, j->done, j->kept};
    unsigned blocks = plain_blocks(n.count, 4 * PLAIN_THREADS);
    return launch(cuda, reduce<OP>, dim3(std::min<unsigned>(blocks, PLAIN_SUMS)), PLAIN_THREADS, 0,
                  1, false, "reduction(", n, t);
}

template <int OP> static dc_status start_reduce_back(dc_cuda *cuda, const plain *j) {
    numbers n = numbers_of(j);
    double scale = OP == DC_OP_bce         ? j->b
                   : OP == DC_OP_square    ? 2 * j->a
                   : OP == DC_OP_expectile ? 4
                                           : 1;
    n.scale = (float)(scale / ((double)n.e * (double)n.count));
    n.one_dy = true;
    n.divisor = OP == DC_OP_relative_mean ? j->kept : NULL;
    return launch_backward<OP>(cuda, j, n);
}

plain_fn *dc_plain_pointwise(dc_op op, bool back) {
    switch (op) {
#define F(name)                                                                                    \
    case DC_OP_##name:                                                                             \
        return back ? start_backward<DC_OP_##name> : start_forward<DC_OP_##name>;
        POINTWISE_OPS(F)
#undef F
    default:
        return NULL;
    }
}

plain_fn *dc_plain_reduction(dc_op op, bool back) {
    switch (op) {
#define F(name)                                                                                    \
    case DC_OP_##name:                                                                             \
        return back ? start_reduce_back<DC_OP_##name> : start_reduce<DC_OP_##name>;
        REDUCTION_OPS(F)
#undef F
    default:
        return NULL;
    }
}
