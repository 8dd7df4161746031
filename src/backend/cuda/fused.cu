// Small ops: distances, targets, weights and losses are a few thousand numbers per step, so a launch for each op would
// cost more than its work. A list of ops is one launch (a fused launch). A thread takes one number through all of them,
// or through a chain of them that the others do not depend on, and keeps results in slots (in shared memory); there is a
// barrier only where a thread reads what another one made. Instructions for these slots say what the ops do
// (fused_steps.cu): an interpreter of a few hundred machine instructions, since on a cold start fetching code costs more
// than running it. Where there are barriers the blocks form a cluster if the GPU has clusters (compute capability 9),
// else there is one block. Reductions leave partial sums, in double and in a fixed order.
#include "backend/cuda/internal.cuh"

#include <cooperative_groups.h>

enum { THREADS = FUSED_THREADS, CLUSTER = 8, MOST_BLOCKS = 64 }; // CLUSTER: blocks of a cluster

bool dc_is_softmax(int op) {
    return op == DC_OP_expected || op == DC_OP_log_likelihood;
}

int dc_small_sums(dc_op op) {
    return op == DC_OP_relative_mean ? 2 : 1; // of the numbers and of their sizes
}

// ---- functions that take much code are there once ----

__device__ static __noinline__ float logistic(float v) {
    return 1 / (1 + expf(-v));
}

__device__ static __noinline__ float softplus(float v) { // log(1 + exp(v))
    return fmaxf(v, 0) + log1pf(expf(-fabsf(v)));
}

__device__ static __noinline__ float hyperbolic(float v) {
    return tanhf(v);
}

__device__ static __noinline__ float power(float a, float b) {
    return powf(a, b);
}

__device__ static inline bool known(float steps, float n) {
    return steps >= 0 && steps <= n;
}

// ---- softmax policies: a row of few columns at a time ----

__device__ static __noinline__ float log_sum(const float *x, int cols) {
    float most = x[0], sum = 0;
    for (int c = 1; c < cols; c++)
        most = fmaxf(most, x[c]);
    for (int c = 0; c < cols; c++)
        sum += expf(x[c] - most);
    return most + logf(sum);
}

__device__ static __noinline__ float expectation(const small_op *n, int64_t row) {
    const float *x = n->x[0] + row * n->cols, *q = n->x[1] + row * n->cols;
    float total = log_sum(x, n->cols), sum = 0;
    for (int c = 0; c < n->cols; c++)
        sum += expf(x[c] - total) * q[c];
    return sum;
}

__device__ static __noinline__ float likelihood(const small_op *n, int64_t row) {
    const float *x = n->x[0] + row * n->cols, *t = n->x[1] + row * n->cols;
    float total = log_sum(x, n->cols);
    double sum = 0;
    for (int c = 0; c < n->cols; c++)
        sum += (double)t[c] * (x[c] - total);
    return (float)sum;
}

__device__ static __noinline__ void softmax_back(const small_op *n, float up, int64_t row) {
    const float *x = n->x[0] + row * n->cols, *y = n->x[1] + row * n->cols;
    bool mean = n->op == DC_OP_expected;
    float total = log_sum(x, n->cols), mass = 0, middle = mean ? expectation(n, row) : 0;
    for (int c = 0; c < n->cols; c++)
        mass += y[c];
    for (int c = 0; c < n->cols; c++) {
        float p = expf(x[c] - total), *out = n->y + row * n->cols + c;
        float v = mean ? up * p * (y[c] - middle) : up * (y[c] - mass * p);
        *out = n->add ? *out + v : v;
    }
}

// ---- the interpreter ----

struct machine { // all in shared memory
    const fused_phase *phases;
    const fused_load *loads;
    const fused_measure *measures;
    const fused_step *steps;
    const small_op *rows;
    float *slots; // (slots, THREADS): the thread's own
    double *sums; // (sums, THREADS), likewise
};

__device__ static inline void load(float *to, const float *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
#else
    *to = *from;
#endif
}

__device__ static inline void loads_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

__device__ static int least_of(const float *slots, int first, int count) {
    int least = first;
    for (int k = first + 1; k < first + count; k++)
        if (slots[k * THREADS] < slots[least * THREADS]) least = k;
    return least;
}

__device__ static inline void do_step(const machine &t, const fused_step &s, int64_t m) {
    float *slots = t.slots;
    auto at = [&](int slot) { return slots[slot * THREADS]; };
    // Not every instruction has all operands; any slot can be read.
    float a = at(max(s.a, 0)), b = at(max(s.b, 0)), v = 0;
    bool inside = m < s.count;
    float *to = s.p;
    switch (s.code) {
    case N_COPY:
        v = a;
        break;
    case N_CONST:
        v = s.f;
        break;
    case N_ADD:
        v = a + b;
        break;
    case N_MUL:
        v = a * b;
        break;
    case N_AFFINE:
        v = a * s.f + s.g;
        break;
    case N_CLIP:
        v = a < s.f ? s.f : a > s.g ? s.g : a;
        break;
    case N_WITHIN:
        v = known(a, s.f) ? b : at(s.c);
        break;
    case N_GATHER:
        v = inside && a >= 0 ? s.p[(int64_t)a] : 0;
        to = NULL;
        break;
    case N_DECAY:
        v = power(1 + fmaxf(a, 0), s.f);
        break;
    case N_POWER:
        v = power(s.f, a);
        break;
    case N_EXP:
        v = expf(a);
        break;
    case N_TANH:
        v = hyperbolic(a);
        break;
    case N_ABS:
        v = fabsf(a);
        break;
    case N_SIGMOID:
        v = logistic(a);
        break;
    case N_SOFTPLUS:
        v = softplus(a);
        break;
    case N_LEAST:
        v = at(least_of(slots, s.b, s.c));
        break;
    case N_SQUARE:
        v = (a - b) * (a - b);
        break;
    case N_BCE: {
        float weight = (b >= logistic(a) ? s.f : 1 - s.f) * (s.c < 0 ? 1 : at(s.c));
        v = weight * (b * softplus(-a) + (1 - b) * softplus(a));
        break;
    }
    case N_EXPECTILE:
        v = (s.c < 0 ? 1 : at(s.c)) * (a < b ? s.f : 1 - s.f) * (a - b) * (a - b);
        break;
    case N_CLIP_BACK:
        v = b >= s.f && b <= s.g ? a : 0;
        break;
    case N_WITHIN_BACK:
        v = known(b, s.f) ? 0 : a;
        break;
    case N_DECAY_BACK:
        v = b <= 0 ? 0 : a * s.f * power(1 + b, s.g);
        break;
    case N_EXP_BACK:
        v = a * expf(b);
        break;
    case N_TANH_BACK: {
        float y = hyperbolic(b);
        v = a * (1 - y * y);
        break;
    }
    case N_ABS_BACK:
        v = b > 0 ? a : b < 0 ? -a : 0;
        break;
    case N_SIGMOID_BACK: {
        float open = logistic(b);
        v = a * open * (1 - open);
        break;
    }
    case N_SOFTPLUS_BACK:
        v = a * logistic(b);
        break;
    case N_LEAST_BACK:
        v = least_of(slots, s.b, s.c) - s.b == (int)s.f ? a : 0;
        break;
    case N_SQUARE_BACK:
        v = s.f * (a - b);
        break;
    case N_BCE_BACK: {
        float q = logistic(a);
        v = s.f * (b >= q ? s.g : 1 - s.g) * (s.c < 0 ? 1 : at(s.c)) * (q - b);
        break;
    }
    case N_EXPECTILE_BACK:
        v = s.f * (s.c < 0 ? 1 : at(s.c)) * (a < b ? s.g : 1 - s.g) * (a - b);
        break;
    case N_SUM:
        if (inside) t.sums[s.d * THREADS] += a;
        return;
    case N_SUM_SIZE:
        if (inside) t.sums[s.d * THREADS] += fabsf(a);
        return;
    case N_EXPECTED:
        if (inside) v = expectation(t.rows + s.c, m);
        break;
    case N_LIKELIHOOD:
        if (inside) v = likelihood(t.rows + s.c, m);
        break;
    case N_SOFTMAX_BACK:
        if (inside) softmax_back(t.rows + s.c, t.rows[s.c].op == DC_OP_expected ? a : s.f, m);
        return;
    }
    slots[s.d * THREADS] = v;
    if (to && inside) to[m] = v;
}

// A thread takes its numbers through all instructions of a phase's chain, after it has loaded what they need. The next
// instruction is fetched while one is done.
__device__ static void run_phase(const machine &t, const fused_phase &phase, int chains) {
    int blocks = gridDim.z / chains;
    const fused_chain p = phase.chain[blockIdx.z / blocks];
    for (int64_t m = (int64_t)(blockIdx.z % blocks) * THREADS + threadIdx.x; m < p.most;
         m += (int64_t)blocks * THREADS) {
#pragma unroll 1
        for (int i = p.load; i < p.load_end; i++) {
            fused_load l = t.loads[i];
            if (m < l.count) load(&t.slots[l.slot * THREADS], l.p + m);
        }
        loads_wait();
        fused_step s = t.steps[p.step];
#pragma unroll 1
        for (int i = p.step; i < p.step_end; i++) {
            fused_step next = t.steps[min(i + 1, p.step_end - 1)];
            do_step(t, s, m);
            s = next;
        }
    }
}

// Every block finds the mean of |x| for itself.
__device__ static void measure(const machine &t, const fused_measure &n) {
    double sum = 0;
    for (int e = 0; e < n.members; e++)
#pragma unroll 4
        for (int64_t m = threadIdx.x; m < n.count; m += THREADS)
            sum += fabsf(n.x[e * n.step + m]);
    double size = block_sum(sum) / ((double)n.members * n.count) + 1e-6;
    t.slots[n.slot * THREADS] = (float)(n.scale / size);
}

// All threads of the cluster wait for each other and see what the others wrote.
__device__ static void cluster_sync() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.z > 1) return cooperative_groups::this_cluster().sync();
#endif
    __syncthreads();
}

// Each warp adds up, then one thread for all warps.
__device__ static void leave_sums(const fused_list &list, double *sums) {
#pragma unroll 1
    for (int i = 0; i < list.sums; i++) {
        double sum = warp_sum(sums[i * THREADS + threadIdx.x]);
        if (threadIdx.x % 32 == 0) sums[i * THREADS + threadIdx.x] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < list.sums; i += THREADS) {
        double sum = 0;
        for (int w = 0; w < THREADS; w += 32)
            sum += sums[i * THREADS + w];
        list.partials[i * gridDim.z + blockIdx.z] = sum;
    }
}

__global__ static void __launch_bounds__(THREADS) run(fused_list list) {
    extern __shared__ __align__(16) char shared[];
    uint4 *words = (uint4 *)shared;
    for (int i = threadIdx.x; i < list.word_count; i += THREADS)
        words[i] = list.words[i];
    machine t;
    t.phases = (const fused_phase *)shared;
    t.loads = (const fused_load *)(t.phases + list.phases);
    t.measures = (const fused_measure *)(t.loads + list.loads);
    t.steps = (const fused_step *)(t.measures + list.measures);
    t.rows = (const small_op *)(t.steps + list.steps);
    double *sums = (double *)(words + list.word_count);
    t.sums = sums + threadIdx.x;
    t.slots = (float *)(sums + list.sums * THREADS) + threadIdx.x;
    for (int i = 0; i < list.sums; i++)
        t.sums[i * THREADS] = 0;
    upstream_wait();
    downstream_start();
    __syncthreads();
    for (int i = 0; i < list.phases; i++) {
        const fused_phase &p = t.phases[i];
        if (i) cluster_sync();
        for (int k = p.measure; k < p.measure_end; k++)
            measure(t, t.measures[k]);
        run_phase(t, p, list.chains);
    }
    if (list.sums) leave_sums(list, sums);
}

int dc_fused_blocks(const dc_cuda *cuda, bool barriers) {
    return !barriers ? MOST_BLOCKS : cuda->clusters ? CLUSTER : 1;
}

size_t dc_fused_bytes(int words, int sums, int slots) {
    return (size_t)words * sizeof(uint4) + (size_t)sums * THREADS * sizeof(double) +
           (size_t)slots * THREADS * sizeof(float);
}

dc_status dc_fused_run(dc_cuda *cuda, const fused_list *list) {
    int cluster = list->phases > 1 ? list->blocks : 1;
    return launch(cuda, run, dim3(1, 1, (unsigned)list->blocks), THREADS,
                  dc_fused_bytes(list->word_count, list->sums, list->slots), cluster, false,
                  "fused(", *list);
}

// ---- splice: wide, and its output is a network's input ----

__global__ static void splice_fwd(tensor x, tensor y, tensor out, int column) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int row = (int)(i / out.ld), c = (int)(i % out.ld);
    upstream_wait();
    downstream_start();
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
    int blocks = div_up((int64_t)out.rows * out.ld, 256);
    return launch(cuda, splice_fwd, dim3(blocks), 256, 0, 1, false, "splice(", x, y, out, column);
}

__global__ static void splice_bwd(tensor dout, tensor dy, int column, bool add) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int row = (int)(i / dy.cols), c = (int)(i % dy.cols);
    upstream_wait();
    downstream_start();
    if (row >= dy.rows) return;
    int64_t from = (int64_t)row * dout.ld + column + c;
    float v = cell(dout, from);
    float *out = (float *)dy.p + (int64_t)row * dy.ld + c;
    *out = add ? *out + v : v;
}

dc_status dc_splice_bwd(dc_cuda *cuda, tensor dout, tensor dy, int column, bool add) {
    int blocks = div_up((int64_t)dy.rows * dy.cols, 256);
    return launch(cuda, splice_bwd, dim3(blocks), 256, 0, 1, false, "splice(", dout, dy, column,
                  add);
}

__global__ static void splice_sum(const float *dx, int e, int64_t step, int64_t count, float *out,
                                  bool add) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    upstream_wait();
    downstream_start();
    if (i >= count) return;
    float v = add ? out[i] : 0;
    for (int k = 0; k < e; k++)
        v += dx[k * step + i];
    out[i] = v;
}

dc_status dc_splice_sum(dc_cuda *cuda, const mlp *j, tensor dy, bool add) {
    int64_t count = (int64_t)dy.rows * dy.cols;
    DC_CHECK(dy.rows == j->hi - j->lo && dy.cols == j->dx_count && dy.ld == dy.cols);
    return launch(cuda, splice_sum, dim3(div_up(count, 256)), 256, 0, 1, false, "splice(",
                  (const float *)j->dx, j->e, count, count, (float *)dy.p, add);
}
