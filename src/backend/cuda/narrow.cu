// Narrow ops: distances, targets, weights and losses are a few thousand numbers a step, so a launch
// of its own for each would cost more than its work. A list of them is one launch: a team of blocks
// walks the list, its threads walk the numbers, and a barrier stands only where a number's maker was
// another thread. The team is a cluster where the GPU has those (compute capability 9), else one
// block. Sums are taken in double and in a fixed order.
#include "backend/cuda/internal.cuh"

#include <cooperative_groups.h>

enum { THREADS = 512, TEAM = 8 }; // threads a block, blocks of a cluster

// All threads of the team wait for each other and see what the others wrote.
__device__ static void team_sync() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.y > 1) return cooperative_groups::this_cluster().sync();
#endif
    __syncthreads();
}

bool dc_is_narrow(dc_op op) {
    return op >= DC_FIRST_COMPUTED && op != DC_OP_linear && op != DC_OP_gelu_layernorm &&
           op != DC_OP_splice;
}

// Ops that end in one number.
__host__ __device__ static bool reduces(int op) {
    return op == DC_OP_expectile || op == DC_OP_mean || op == DC_OP_bce || op == DC_OP_square ||
           op == DC_OP_relative_mean || op == DC_OP_log_likelihood;
}

bool dc_is_reduction(dc_op op) {
    return reduces(op);
}

// Sum over the team, the same for all its threads.
__device__ static double team_sum(double v) {
    double sum = block_sum(v);
#if __CUDA_ARCH__ >= 900
    if (gridDim.y > 1) {
        __shared__ double total;
        cooperative_groups::cluster_group team = cooperative_groups::this_cluster();
        if (threadIdx.x == 0) total = sum;
        team.sync();
        sum = 0;
        for (unsigned b = 0; b < gridDim.y; b++)
            sum += *team.map_shared_rank(&total, b);
        team.sync(); // nobody leaves or writes again before all have read
    }
#endif
    return sum;
}

__device__ static inline float logistic(float v) {
    return 1 / (1 + expf(-v));
}

__device__ static inline float softplus(float v) { // log(1 + exp(v))
    return fmaxf(v, 0) + log1pf(expf(-fabsf(v)));
}

__device__ static inline bool known(float steps, float n) {
    return steps >= 0 && steps <= n;
}

__device__ static inline float decayed(float v, float lambda) {
    return powf(1 + fmaxf(v, 0), -lambda);
}

__device__ static inline float at(const narrow &n, int i, int e, int64_t m) {
    return n.x[i][e * n.step[i] + m];
}

__device__ static float expectation(const narrow &n, int64_t r);
__device__ static double likelihood(const narrow &n, int64_t r);

// Value of a number of an op that works number by number.
__device__ static float forward(const narrow &n, int e, int64_t m) {
    float x = at(n, 0, e, m), a = (float)n.a, b = (float)n.b;
    switch (n.op) {
    case DC_OP_add:
        return x + at(n, 1, e, m);
    case DC_OP_mul:
        return x * at(n, 1, e, m);
    case DC_OP_affine:
        return x * a + b;
    case DC_OP_clip:
        return x < a ? a : x > b ? b : x;
    case DC_OP_within:
        return known(x, a) ? at(n, 1, e, m) : at(n, 2, e, m);
    case DC_OP_unpack:
        return x >= 0 ? n.x[1][e * n.step[1] + (int64_t)x] : 0;
    case DC_OP_decay:
        return decayed(x, a);
    case DC_OP_sigmoid:
        return logistic(x);
    case DC_OP_softplus:
        return softplus(x);
    case DC_OP_power:
        return powf(a, x);
    case DC_OP_expected:
        return expectation(n, m);
    case DC_OP_ensemble_min: {
        float least = x;
        for (int k = 1; k < n.members[0]; k++) {
            float v = n.x[0][k * n.step[0] + m];
            least = v < least ? v : least;
        }
        return least;
    }
    }
    return 0;
}

// What a reduction adds up.
__device__ static double term(const narrow &n, int e, int64_t m) {
    float p = at(n, 0, e, m);
    if (n.op == DC_OP_mean || n.op == DC_OP_relative_mean) return p;
    if (n.op == DC_OP_log_likelihood) return likelihood(n, m);
    float t = at(n, 1, e, m), d = p - t;
    if (n.op == DC_OP_square) return (double)d * d;
    if (n.op == DC_OP_bce) {
        float weight =
            (t >= logistic(p) ? (float)n.a : 1 - (float)n.a) * (n.x[2] ? at(n, 2, e, m) : 1);
        return weight * (t * softplus(-p) + (1 - t) * softplus(p));
    }
    float w = n.x[2] ? at(n, 2, e, m) : 1;
    return w * (p < t ? (float)n.a : 1 - (float)n.a) * d * d; // expectile
}

__device__ static double mean_size(const narrow &n, int64_t first, int64_t stride) { // of |x|
    double sum = 0;
    for (int e = 0; e < n.members[0]; e++)
        for (int64_t m = first; m < n.count; m += stride)
            sum += fabsf(at(n, 0, e, m));
    return team_sum(sum) / (double)(n.members[0] * n.count) + 1e-6;
}

__device__ static void reduce(const narrow &n, int64_t first, int64_t stride) {
    double sum = 0, cells = (double)(n.members[0] * n.count);
    for (int e = 0; e < n.members[0]; e++)
        for (int64_t m = first; m < n.count; m += stride)
            sum += term(n, e, m);
    sum = team_sum(sum);
    double scale = n.op == DC_OP_bce         ? n.b
                   : n.op == DC_OP_square    ? n.a
                   : n.op == DC_OP_expectile ? 2
                                             : 1;
    double value = scale * sum / cells;
    if (n.op == DC_OP_relative_mean) value = (double)(float)value / mean_size(n, first, stride);
    if (first == 0) *n.y = (float)value;
}

// Gradient of a reduction toward a number of input n.input; g is its own gradient, scaled.
__device__ static float reduction_grad(const narrow &n, float g, int e, int64_t m) {
    if (n.op == DC_OP_mean || n.op == DC_OP_relative_mean) return g;
    float p = at(n, 0, e, m), t = at(n, 1, e, m), sign = n.input == 0 ? 1 : -1;
    if (n.op == DC_OP_square) return sign * g * (p - t);
    if (n.op == DC_OP_bce) {
        float q = logistic(p);
        return g * (t >= q ? (float)n.a : 1 - (float)n.a) * (n.x[2] ? at(n, 2, e, m) : 1) * (q - t);
    }
    float w = n.x[2] ? at(n, 2, e, m) : 1;
    return sign * g * w * (p < t ? (float)n.a : 1 - (float)n.a) * (p - t);
}

__device__ static float reduction_scale(const narrow &n, int64_t first, int64_t stride) {
    double g = *n.dy, cells = (double)(n.members[0] * n.count);
    if (n.op == DC_OP_bce) return (float)(g * n.b / cells);
    if (n.op == DC_OP_square) return (float)(g * 2 * n.a / cells);
    if (n.op == DC_OP_expectile) return (float)(g * 4 / cells);
    if (n.op == DC_OP_relative_mean) return (float)(g / mean_size(n, first, stride) / cells);
    return (float)(g / cells);
}

__device__ static float backward(const narrow &n, int e, int64_t m) {
    float g = n.dy[e * n.dystep + m], a = (float)n.a, b = (float)n.b;
    switch (n.op) {
    case DC_OP_add:
        return g;
    case DC_OP_mul:
        return g * at(n, 1 - n.input, e, m);
    case DC_OP_affine:
        return g * a;
    case DC_OP_clip: {
        float x = at(n, 0, e, m);
        return x >= a && x <= b ? g : 0;
    }
    case DC_OP_within:
        return known(at(n, 0, e, m), a) ? 0 : g;
    case DC_OP_decay: {
        float x = at(n, 0, e, m);
        return x <= 0 ? 0 : g * -a * decayed(x, a + 1);
    }
    case DC_OP_sigmoid: {
        float s = logistic(at(n, 0, e, m));
        return g * s * (1 - s);
    }
    case DC_OP_softplus:
        return g * logistic(at(n, 0, e, m));
    }
    return 0;
}

__device__ static void put(const narrow &n, int e, int64_t m, float v) {
    float *out = n.y + e * n.ystep + m;
    *out = n.add ? *out + v : v;
}

// d of ensemble_min goes to the member that was least; the others get 0.
__device__ static void min_grad(const narrow &n, int64_t m) {
    int least = 0;
    for (int k = 1; k < n.members[0]; k++)
        if (n.x[0][k * n.step[0] + m] < n.x[0][least * n.step[0] + m]) least = k;
    for (int k = 0; k < n.members[0]; k++)
        put(n, k, m, k == least ? n.dy[m] : 0);
}

// ---- softmax policies: a row of few columns at a time ----

__device__ static float log_sum(const float *x, int cols) {
    float most = x[0], sum = 0;
    for (int c = 1; c < cols; c++)
        most = fmaxf(most, x[c]);
    for (int c = 0; c < cols; c++)
        sum += expf(x[c] - most);
    return most + logf(sum);
}

__device__ static float expectation(const narrow &n, int64_t r) {
    const float *x = n.x[0] + r * n.cols, *q = n.x[1] + r * n.cols;
    float total = log_sum(x, n.cols), sum = 0;
    for (int c = 0; c < n.cols; c++)
        sum += expf(x[c] - total) * q[c];
    return sum;
}

__device__ static double likelihood(const narrow &n, int64_t r) {
    const float *x = n.x[0] + r * n.cols, *t = n.x[1] + r * n.cols;
    float total = log_sum(x, n.cols);
    double sum = 0;
    for (int c = 0; c < n.cols; c++)
        sum += (double)t[c] * (x[c] - total);
    return sum;
}

__device__ static void softmax_grad(const narrow &n, float g, int64_t r) {
    const float *x = n.x[0] + r * n.cols, *y = n.x[1] + r * n.cols;
    bool mean = n.op == DC_OP_expected;
    float total = log_sum(x, n.cols), mass = 0, middle = mean ? expectation(n, r) : 0;
    for (int c = 0; c < n.cols; c++)
        mass += y[c];
    for (int c = 0; c < n.cols; c++) {
        float p = expf(x[c] - total);
        put(n, 0, r * n.cols + c, mean ? n.dy[r] * p * (y[c] - middle) : g * (y[c] - mass * p));
    }
}

__device__ static void run_one(const narrow &n, int64_t first, int64_t stride) {
    if (n.op == NARROW_ONE) {
        if (first == 0) *n.y = 1;
        return;
    }
    if (n.op < DC_OPS && n.input < 0 && reduces(n.op)) {
        reduce(n, first, stride);
        return;
    }
    float g =
        n.op < DC_OPS && n.input >= 0 && reduces(n.op) ? reduction_scale(n, first, stride) : 0;
    for (int64_t m = first; m < n.count; m += stride) {
        if (n.op == DC_OP_ensemble_min && n.input >= 0) {
            min_grad(n, m);
            continue;
        }
        if ((n.op == DC_OP_expected || n.op == DC_OP_log_likelihood) && n.input >= 0) {
            softmax_grad(n, g, m);
            continue;
        }
        for (int e = 0; e < n.e; e++) {
            if (n.op == NARROW_ZERO)
                n.y[e * n.ystep + m] = 0;
            else if (n.input < 0)
                n.y[e * n.ystep + m] = forward(n, e, m);
            else
                put(n, e, m, reduces(n.op) ? reduction_grad(n, g, e, m) : backward(n, e, m));
        }
    }
}

// Grid (x, y): x blocks side by side for lists without barriers, or y blocks that form a team.
__global__ static void __launch_bounds__(THREADS) run(const narrow *list, int count) {
    int64_t block = (int64_t)blockIdx.x * gridDim.y + blockIdx.y,
            blocks = (int64_t)gridDim.x * gridDim.y;
    int64_t first = block * blockDim.x + threadIdx.x, stride = blocks * blockDim.x;
    __shared__ narrow copy[NARROW_MOST];
    for (int w = threadIdx.x; w < (int)(sizeof *copy / 4) * count; w += blockDim.x)
        ((uint32_t *)copy)[w] = ((const uint32_t *)list)[w];
    __syncthreads();
    for (int i = 0; i < count; i++) {
        if (copy[i].sync) team_sync();
        run_one(copy[i], first, stride);
    }
}

dc_status dc_narrow_run(dc_cuda *cuda, const narrow *list, int count, int64_t widest,
                        bool together) {
    if (!together) {
        int blocks = div_up(widest, THREADS);
        if (blocks > 264) blocks = 264;
        run<<<blocks, THREADS, 0, cuda->stream>>>(list, count);
        return dc_cuda_check(cudaGetLastError(), "narrow(");
    }
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(1, cuda->clusters ? TEAM : 1);
    launch.blockDim = dim3(THREADS);
    launch.stream = cuda->stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {1, launch.gridDim.y, 1};
    launch.attrs = &attribute;
    launch.numAttrs = cuda->clusters ? 1 : 0;
    return dc_cuda_check(cudaLaunchKernelEx(&launch, run, list, count), "narrow(");
}

// ---- splice: wide, and its output is a network's input ----

__global__ static void splice_fwd(tensor x, tensor y, tensor out, int column) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int row = (int)(i / out.ld), c = (int)(i % out.ld);
    if (row >= out.rows) return;
    bool mine = c >= column && c < column + y.cols;
    float v = 0;
    if (mine)
        v = ((const float *)y.p)[(int64_t)row * y.ld + c - column];
    else if (c < out.cols)
        v = cell(x, (int64_t)row * x.ld + c);
    set_cell(out, i, v);
}

dc_status dc_splice_fwd(dc_cuda *cuda, tensor x, tensor y, tensor out, int column) {
    splice_fwd<<<div_up((int64_t)out.rows * out.ld, 256), 256, 0, cuda->stream>>>(x, y, out,
                                                                                  column);
    return dc_cuda_check(cudaGetLastError(), "splice(");
}

__global__ static void splice_bwd(tensor dout, tensor dy, int column, bool add) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int row = (int)(i / dy.cols), c = (int)(i % dy.cols);
    if (row >= dy.rows) return;
    int64_t from = (int64_t)row * dout.ld + column + c;
    float v = cell(dout, from);
    float *out = (float *)dy.p + (int64_t)row * dy.ld + c;
    *out = add ? *out + v : v;
}

dc_status dc_splice_bwd(dc_cuda *cuda, tensor dout, tensor dy, int column, bool add) {
    splice_bwd<<<div_up((int64_t)dy.rows * dy.cols, 256), 256, 0, cuda->stream>>>(dout, dy, column,
                                                                                  add);
    return dc_cuda_check(cudaGetLastError(), "splice(");
}

__global__ static void splice_sum(const float *dx, int e, int64_t step, int64_t count, float *out,
                                  bool add) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = add ? out[i] : 0;
    for (int k = 0; k < e; k++)
        v += dx[k * step + i];
    out[i] = v;
}

dc_status dc_splice_sum(dc_cuda *cuda, const mlp *j, tensor dy, bool add) {
    int64_t count = (int64_t)dy.rows * dy.cols;
    DC_CHECK(dy.rows == j->hi - j->lo && dy.cols == j->dx_count && dy.ld == dy.cols);
    splice_sum<<<div_up(count, 256), 256, 0, cuda->stream>>>(j->dx, j->e, count, count,
                                                             (float *)dy.p, add);
    return dc_cuda_check(cudaGetLastError(), "splice(");
}
