// Narrow ops: distances, targets, weights and losses are a few thousand numbers a step, so a launch
// of its own for each would cost more than its work. A list of them is one launch: a thread takes a number
// through all of them, with what it made in registers (slots of shared memory); a barrier stands only
// where a number's maker was another thread. The blocks form a cluster where the GPU has those (compute
// capability 9), else there is one. Reductions leave partial sums, in double and in a fixed order.
#include "backend/cuda/internal.cuh"

#include <cooperative_groups.h>

enum { THREADS = 256, TEAM = 8 }; // threads a block, blocks of a cluster

struct registers {
    float *slot;  // (slots, THREADS)
    double *sums; // (sums, THREADS)
};

__device__ static inline float &at_slot(const registers &r, int slot) {
    return r.slot[slot * THREADS + threadIdx.x];
}

// All threads of the team wait for each other and see what the others wrote.
__device__ static void team_sync() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x > 1) return cooperative_groups::this_cluster().sync();
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

int dc_narrow_sums(dc_op op) {
    return op == DC_OP_relative_mean ? 2 : 1; // of the numbers and of their sizes
}

// Sum over the team, the same for all its threads.
__device__ static double team_sum(double v) {
    double sum = block_sum(v);
#if __CUDA_ARCH__ >= 900
    if (gridDim.x > 1) {
        __shared__ double total;
        cooperative_groups::cluster_group team = cooperative_groups::this_cluster();
        if (threadIdx.x == 0) total = sum;
        team.sync();
        sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
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

__device__ static inline float at(const narrow &n, const registers &r, int i, int e, int64_t m) {
    int k = n.members[i] > 1 ? e : 0;
    return n.x_slot[i] >= 0 ? at_slot(r, n.x_slot[i] + k) : n.x[i][k * n.step[i] + m];
}

__device__ static inline float upstream(const narrow &n, const registers &r, int e, int64_t m) {
    return n.dy_slot >= 0 ? at_slot(r, n.dy_slot + (n.dystep ? e : 0)) : n.dy[e * n.dystep + m];
}

__device__ static void put(const narrow &n, const registers &r, int e, int64_t m, float v) {
    float *out = n.y + e * n.ystep + m;
    if (n.add) v += n.y_there ? at_slot(r, n.y_slot + e) : *out;
    *out = v;
    if (n.y_slot >= 0) at_slot(r, n.y_slot + e) = v;
}

__device__ static float expectation(const narrow &n, int64_t row);
__device__ static double likelihood(const narrow &n, int64_t row);

// Value of a number of an op that works number by number.
__device__ static float forward(const narrow &n, const registers &r, int e, int64_t m) {
    if (n.op == DC_OP_expected) return expectation(n, m);
    float x = at(n, r, 0, e, m), a = (float)n.a, b = (float)n.b;
    switch (n.op) {
    case DC_OP_add:
        return x + at(n, r, 1, e, m);
    case DC_OP_mul:
        return x * at(n, r, 1, e, m);
    case DC_OP_affine:
        return x * a + b;
    case DC_OP_clip:
        return x < a ? a : x > b ? b : x;
    case DC_OP_within:
        return known(x, a) ? at(n, r, 1, e, m) : at(n, r, 2, e, m);
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
    case DC_OP_ensemble_min:
        for (int k = 1; k < n.members[0]; k++)
            x = fminf(x, at(n, r, 0, k, m));
        return x;
    }
    return 0;
}

// What a reduction adds up.
__device__ static double term(const narrow &n, const registers &r, int e, int64_t m) {
    if (n.op == DC_OP_log_likelihood) return likelihood(n, m);
    float p = at(n, r, 0, e, m);
    if (n.op == DC_OP_mean || n.op == DC_OP_relative_mean) return p;
    float t = at(n, r, 1, e, m), d = p - t;
    if (n.op == DC_OP_square) return (double)d * d;
    float w = n.x[2] ? at(n, r, 2, e, m) : 1;
    if (n.op == DC_OP_bce) {
        float weight = (t >= logistic(p) ? (float)n.a : 1 - (float)n.a) * w;
        return weight * (t * softplus(-p) + (1 - t) * softplus(p));
    }
    return w * (p < t ? (float)n.a : 1 - (float)n.a) * d * d; // expectile
}

__device__ static void add_terms(const narrow &n, const registers &r, int64_t m) {
    double *sum = r.sums + n.sum * THREADS + threadIdx.x;
    for (int e = 0; e < n.members[0]; e++) {
        double v = term(n, r, e, m);
        *sum += v;
        if (n.op == DC_OP_relative_mean) sum[THREADS] += fabs(v);
    }
}

// Gradient of a reduction toward a number of input n.input; g is its own gradient, scaled.
__device__ static float reduction_grad(const narrow &n, const registers &r, float g, int e,
                                       int64_t m) {
    if (n.op == DC_OP_mean || n.op == DC_OP_relative_mean) return g;
    float p = at(n, r, 0, e, m), t = at(n, r, 1, e, m), sign = n.input == 0 ? 1 : -1;
    if (n.op == DC_OP_square) return sign * g * (p - t);
    float w = n.x[2] ? at(n, r, 2, e, m) : 1;
    if (n.op == DC_OP_bce) {
        float q = logistic(p);
        return g * (t >= q ? (float)n.a : 1 - (float)n.a) * w * (q - t);
    }
    return sign * g * w * (p < t ? (float)n.a : 1 - (float)n.a) * (p - t);
}

__device__ static double mean_size(const narrow &n, int64_t first, int64_t stride) { // of |x|
    double sum = 0;
    for (int e = 0; e < n.members[0]; e++)
        for (int64_t m = first; m < n.count; m += stride)
            sum += fabsf(n.x[0][e * n.step[0] + m]);
    return team_sum(sum) / (double)(n.members[0] * n.count) + 1e-6;
}

__device__ static float reduction_scale(const narrow &n) {
    double cells = (double)(n.members[0] * n.count);
    if (n.op == DC_OP_bce) return (float)(n.g * n.b / cells);
    if (n.op == DC_OP_square) return (float)(n.g * 2 * n.a / cells);
    if (n.op == DC_OP_expectile) return (float)(n.g * 4 / cells);
    return (float)(n.g / cells);
}

__device__ static float backward(const narrow &n, const registers &r, int e, int64_t m) {
    float g = upstream(n, r, e, m), a = (float)n.a, b = (float)n.b;
    switch (n.op) {
    case DC_OP_add:
        return g;
    case DC_OP_mul:
        return g * at(n, r, 1 - n.input, e, m);
    case DC_OP_affine:
        return g * a;
    case DC_OP_clip: {
        float x = at(n, r, 0, e, m);
        return x >= a && x <= b ? g : 0;
    }
    case DC_OP_within:
        return known(at(n, r, 0, e, m), a) ? 0 : g;
    case DC_OP_decay: {
        float x = at(n, r, 0, e, m);
        return x <= 0 ? 0 : g * -a * decayed(x, a + 1);
    }
    case DC_OP_sigmoid: {
        float s = logistic(at(n, r, 0, e, m));
        return g * s * (1 - s);
    }
    case DC_OP_softplus:
        return g * logistic(at(n, r, 0, e, m));
    }
    return 0;
}

// d of ensemble_min goes to the member that was least; the others get 0.
__device__ static void min_grad(const narrow &n, const registers &r, int64_t m) {
    int least = 0;
    float lowest = at(n, r, 0, 0, m), g = upstream(n, r, 0, m);
    for (int k = 1; k < n.members[0]; k++) {
        float v = at(n, r, 0, k, m);
        if (v < lowest) {
            lowest = v;
            least = k;
        }
    }
    for (int k = 0; k < n.members[0]; k++)
        put(n, r, k, m, k == least ? g : 0);
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

__device__ static float expectation(const narrow &n, int64_t row) {
    const float *x = n.x[0] + row * n.cols, *q = n.x[1] + row * n.cols;
    float total = log_sum(x, n.cols), sum = 0;
    for (int c = 0; c < n.cols; c++)
        sum += expf(x[c] - total) * q[c];
    return sum;
}

__device__ static double likelihood(const narrow &n, int64_t row) {
    const float *x = n.x[0] + row * n.cols, *t = n.x[1] + row * n.cols;
    float total = log_sum(x, n.cols);
    double sum = 0;
    for (int c = 0; c < n.cols; c++)
        sum += (double)t[c] * (x[c] - total);
    return sum;
}

__device__ static void softmax_grad(const narrow &n, const registers &r, float g, int64_t row) {
    const float *x = n.x[0] + row * n.cols, *y = n.x[1] + row * n.cols;
    bool mean = n.op == DC_OP_expected;
    float total = log_sum(x, n.cols), mass = 0, middle = mean ? expectation(n, row) : 0,
          up = mean ? upstream(n, r, 0, row) : g;
    for (int c = 0; c < n.cols; c++)
        mass += y[c];
    for (int c = 0; c < n.cols; c++) {
        float p = expf(x[c] - total), *out = n.y + row * n.cols + c;
        float v = mean ? up * p * (y[c] - middle) : up * (y[c] - mass * p);
        *out = n.add ? *out + v : v;
    }
}

// One number through one op.
__device__ static void run_one(const narrow &n, const registers &r, float scale, int64_t m) {
    bool reduction = n.op < DC_OPS && reduces(n.op);
    if (n.input < 0 && reduction)
        add_terms(n, r, m);
    else if (n.input >= 0 && n.op == DC_OP_ensemble_min)
        min_grad(n, r, m);
    else if (n.input >= 0 && (n.op == DC_OP_expected || n.op == DC_OP_log_likelihood))
        softmax_grad(n, r, scale, m);
    else
        for (int e = 0; e < n.e; e++)
            put(n, r, e, m,
                n.op == NARROW_ZERO ? 0
                : n.input < 0       ? forward(n, r, e, m)
                : reduction         ? reduction_grad(n, r, scale, e, m)
                                    : backward(n, r, e, m));
}

// Ops [from, to) have no barrier among them: each thread takes its numbers through all of them.
__device__ static void run_phase(const narrow *ops, int from, int to, const registers &r,
                                 float *scale, int64_t first, int64_t stride) {
    int64_t most = 0;
    for (int i = from; i < to; i++) {
        most = ops[i].count > most ? ops[i].count : most;
        if (ops[i].input < 0 || !(ops[i].op < DC_OPS && reduces(ops[i].op))) continue;
        double size = ops[i].op == DC_OP_relative_mean ? mean_size(ops[i], first, stride) : 1;
        if (threadIdx.x == 0) scale[i] = (float)(reduction_scale(ops[i]) / size);
    }
    __syncthreads();
    for (int64_t m = first; m < most; m += stride)
        for (int i = from; i < to; i++)
            if (m < ops[i].count) run_one(ops[i], r, scale[i], m);
}

__global__ static void __launch_bounds__(THREADS) run(narrow_list list) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float scale[NARROW_MOST];
    registers r;
    r.sums = (double *)shared;
    narrow *ops = (narrow *)(r.sums + list.sums * THREADS);
    r.slot = (float *)(ops + list.count);
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x,
            stride = (int64_t)gridDim.x * THREADS;
    for (int w = threadIdx.x; w < (int)(sizeof *ops / 4) * list.count; w += THREADS)
        ((uint32_t *)ops)[w] = ((const uint32_t *)list.ops)[w];
    for (int i = 0; i < list.sums; i++)
        r.sums[i * THREADS + threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0, end; i < list.count; i = end) {
        if (ops[i].sync) team_sync();
        for (end = i + 1; end < list.count && !ops[end].sync; end++)
            ;
        run_phase(ops, i, end, r, scale, first, stride);
    }
    for (int i = 0; i < list.sums; i++) {
        double sum = block_sum(r.sums[i * THREADS + threadIdx.x]);
        if (threadIdx.x == 0) list.partials[i * gridDim.x + blockIdx.x] = sum;
    }
}

int dc_narrow_blocks(const dc_cuda *cuda) {
    return cuda->clusters ? TEAM : 1;
}

dc_status dc_narrow_run(dc_cuda *cuda, const narrow_list *list) {
    size_t bytes = (size_t)list->sums * THREADS * sizeof(double) +
                   (size_t)list->count * sizeof(narrow) +
                   (size_t)list->slots * THREADS * sizeof(float);
    DC_TRY(want_shared(cuda, run));
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)dc_narrow_blocks(cuda));
    launch.blockDim = dim3(THREADS);
    launch.dynamicSmemBytes = bytes;
    launch.stream = cuda->stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {launch.gridDim.x, 1, 1};
    launch.attrs = &attribute;
    launch.numAttrs = cuda->clusters ? 1 : 0;
    return dc_cuda_check(cudaLaunchKernelEx(&launch, run, *list), "narrow(");
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
    DC_TRY(want_shared(cuda, splice_fwd));
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
    DC_TRY(want_shared(cuda, splice_bwd));
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
    DC_TRY(want_shared(cuda, splice_sum));
    splice_sum<<<div_up(count, 256), 256, 0, cuda->stream>>>(j->dx, j->e, count, count,
                                                             (float *)dy.p, add);
    return dc_cuda_check(cudaGetLastError(), "splice(");
}
