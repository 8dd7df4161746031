// The end of a step: column sums and the guard, EMA and Adam of all weights that have their gradient in memory (those of
// networks: mlp_weights.cu), bf16 copies of matrices, metrics and the step counter.
#include "backend/cuda/update.cuh"

// Value of a reduction from its partial sums.
__device__ static float reduced(const final_op &f) {
    double sum = 0, size = 0;
    for (int b = 0; b < f.blocks; b++) {
        sum += f.partials[b];
        if (f.op == DC_OP_relative_mean) size += f.partials[f.blocks + b];
    }
    double scale = f.op == DC_OP_bce         ? f.b
                   : f.op == DC_OP_square    ? f.a
                   : f.op == DC_OP_expectile ? 2
                                             : 1;
    float value = (float)(scale * sum / f.cells);
    return f.op == DC_OP_relative_mean ? (float)(value / (size / f.cells + 1e-6)) : value;
}

// Reductions side by side, then what is made of them, in order.
__device__ static void finish(const update_job &j) {
    for (int i = threadIdx.x; i < j.final_count; i += blockDim.x)
        if (j.finals[i].partials) *j.finals[i].out = reduced(j.finals[i]);
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 0; i < j.final_count; i++) {
        const final_op &f = j.finals[i];
        if (f.op == DC_OP_add) *f.out = *f.x + *f.y;
        if (f.op == DC_OP_affine) *f.out = *f.x * (float)f.a + (float)f.b;
    }
}

__device__ static void make_plan(const update_job &j, update_plan *p) {
    int64_t done = (int64_t)j.state->step;
    bool late = j.policy_after && done >= j.policy_after; // as dc_agent_adam has it
    p->from = late ? j.policy_first : 0;
    p->to = j.policy_after && !late ? j.policy_first : j.size;
    double t = (double)(done + 1 - (late ? j.policy_after : 0)), c1 = 1 - pow(j.beta1, t),
           c2 = 1 - pow(j.beta2, t);
    p->r = {(float)j.tau,         (float)(1 - j.tau), (float)(j.lr / c1),
            (float)j.beta1,       (float)j.beta2,     (float)(1 - j.beta1),
            (float)(1 - j.beta2), (float)j.eps,       (float)(1 / c2)};
}

// A block leaves share `number` of the norm. Who is the last of `blocks` adds all of them up in order, and says whether the
// step counts.
__device__ static void leave_norm(const update_job &j, double sum, int number, int blocks) {
    __shared__ bool last;
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        j.norms[number] = sum;
        __threadfence();
        last = atomicInc(&j.plan->arrived, (unsigned)blocks - 1) == (unsigned)blocks - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    double norm2 = 0;
    for (int i = threadIdx.x; i < j.norm_count; i += blockDim.x)
        norm2 += __ldcg(&j.norms[i]);
    norm2 = block_sum(norm2);
    if (threadIdx.x) return;
    bool so_far = j.before ? j.before->go : j.state->bad_step < 0;
    j.plan->norm2 = norm2 + (j.before ? j.before->norm2 : 0);
    j.plan->go = so_far && isfinite((float)norm2) && (!j.last || isfinite(__ldcg(j.loss)));
}

// Of all gradients, where some come from layers that leave no shares.
__global__ static void norm(update_job j) {
    double sum = 0;
    const float4 *g = (const float4 *)j.grad; // sizes are multiples of 16
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < j.size / 4;
         i += (int64_t)gridDim.x * blockDim.x) {
        float4 v = g[i];
        sum += (double)(v.x * v.x + v.y * v.y) + (double)(v.z * v.z + v.w * v.w);
    }
    leave_norm(j, sum, blockIdx.x, NORM_BLOCKS);
}

// In order; the more loads are under way, the sooner a long sum is done.
__device__ static float sum_of(const column_sum &s, int k) {
    enum { MANY = 32 };
    float sum = 0;
    int i = 0;
    for (; i + MANY <= s.count; i += MANY) {
        float v[MANY];
#pragma unroll
        for (int n = 0; n < MANY; n++)
            v[n] = s.parts[(i + n) * s.stride + k];
#pragma unroll
        for (int n = 0; n < MANY; n++)
            sum += v[n];
    }
#pragma unroll 8
    for (; i < s.count; i++)
        sum += s.parts[i * s.stride + k];
    return sum;
}

// Block i takes 128 numbers of a sum; the last block what is left of reductions, and the plan of the update.
__global__ static void column_sums(update_job j) {
    double share = 0;
    downstream_start(); // at once, since it never starts early itself
    if ((int)blockIdx.x == j.sum_count) {
        if (j.loss && threadIdx.x == blockDim.x - 1) make_plan(j, j.plan);
        if (j.last) finish(j);
        __syncthreads();
    } else {
        int2 mine = j.sum_blocks[blockIdx.x];
        column_sum s = j.sums[mine.x];
        int k = mine.y + threadIdx.x;
        if (k < s.length) {
            float sum = sum_of(s, k);
            for (int more = s.next; more >= 0; more = j.sums[more].next)
                sum += sum_of(j.sums[more], k);
            if (s.add) sum += s.out[k];
            s.out[k] = sum;
            share = (double)sum * sum;
        }
    }
    if (j.loss && !j.whole_norm) leave_norm(j, share, blockIdx.x, gridDim.x);
}

dc_status dc_column_sums(dc_cuda *cuda, const update_job *j) {
    if (!j->sum_count && !j->final_count && !j->loss) return DC_OK;
    DC_TRY(want_shared(cuda, column_sums));
    column_sums<<<j->sum_count + 1, SUM_BLOCK, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "column_sums(");
}

// A span of numbers; from the weights before the step comes the EMA. Ends are multiples of 4.
__device__ static void update_flat(const update_job &j, const update_plan &p,
                                   const update_span &s) {
    const rates &r = p.r;
    bf16_copy f = {};
    if (s.bf16_copy >= 0) f = j.copies[s.bf16_copy];
    for (int64_t i = s.offset / 4 + threadIdx.x; i < (s.offset + s.count) / 4; i += blockDim.x) {
        if (4 * i < p.from || 4 * i >= p.to) continue;
        float4 w = ((float4 *)j.live)[i], m = ((float4 *)j.m)[i], v = ((float4 *)j.v)[i],
               g = ((const float4 *)j.grad)[i], e = w;
        if (i < j.ema_size / 4) ((float4 *)j.ema)[i] = e = pull_all(r, ((float4 *)j.ema)[i], w);
        step_of(r, g, &w, &m, &v);
        if (f.live) round_to(f.live + 4 * i - f.offset, w);
        if (f.ema) round_to(f.ema + 4 * i - f.offset, e);
        ((float4 *)j.live)[i] = w;
        ((float4 *)j.m)[i] = m;
        ((float4 *)j.v)[i] = v;
    }
}

// ---- packed matrices: strips of rows pass through shared memory, so that memory is read and written in lines ----

enum { AT_ONCE = 2 };

template <typename T> struct strip {
    enum { ROWS = SECTOR / sizeof(T) };
    T *p;
    int ld;
    __device__ T *cell(int row, int c) const { return p + row * ld + c; }
};

template <typename V> __device__ static V zero();
template <> __device__ float zero<float>() {
    return 0;
}
template <> __device__ float4 zero<float4>() {
    return make_float4(0, 0, 0, 0);
}

// Update the strip's numbers (V: one or four at a time) and leave them, rounded, in shared memory. Loads go
// before stores, so that many are under way.
template <bool TRAIN, typename V, typename T>
__device__ static void update_numbers(const update_job &j, const update_plan &p,
                                      const update_span &s, const packed_matrix &f,
                                      const strip<T> &live, const strip<T> &ema) {
    enum { N = sizeof(V) / sizeof(float), STRIP = strip<T>::ROWS };
    bool has_ema = f.offset < j.ema_size, goes = TRAIN && s.offset >= p.from && s.offset < p.to;
    int each = f.cols / N, rows = f.rows - s.row < STRIP ? f.rows - s.row : STRIP;
    int64_t first = s.offset / N;
    for (int i0 = threadIdx.x; i0 < STRIP * each; i0 += AT_ONCE * blockDim.x) {
        V w[AT_ONCE], e[AT_ONCE], g[AT_ONCE], m[AT_ONCE], v[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int i = i0 + k * blockDim.x;
            bool there = i < rows * each; // rows past the end are zeros
            w[k] = there ? ((V *)j.live)[first + i] : zero<V>();
            e[k] = there && has_ema ? ((V *)j.ema)[first + i] : zero<V>();
            g[k] = there && goes ? ((const V *)j.grad)[first + i] : zero<V>();
            m[k] = there && goes ? ((V *)j.m)[first + i] : zero<V>();
            v[k] = there && goes ? ((V *)j.v)[first + i] : zero<V>();
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int i = i0 + k * blockDim.x;
            if (i >= STRIP * each) continue;
            if (i < rows * each && goes) {
                if (has_ema) ((V *)j.ema)[first + i] = e[k] = pull_all(p.r, e[k], w[k]);
                step_of(p.r, g[k], &w[k], &m[k], &v[k]);
                ((V *)j.live)[first + i] = w[k];
                ((V *)j.m)[first + i] = m[k];
                ((V *)j.v)[first + i] = v[k];
            }
            round_to(live.cell(i / each, i % each * N), w[k]);
            if (f.ema) round_to(ema.cell(i / each, i % each * N), e[k]);
        }
    }
}

// Columns of the strip are the packed matrix's rows.
template <typename T>
__device__ static void store_down(const update_span &s, const packed_matrix &f,
                                  const strip<T> &from, void *to) {
    enum { SPAN = LINE / sizeof(T), EACH = 16 / sizeof(T), PARTS = strip<T>::ROWS / EACH };
    int in_pad = (f.rows + SPAN - 1) / SPAN * SPAN;
    for (int i = threadIdx.x; i < PARTS * f.cols; i += blockDim.x) {
        int c = i / PARTS, part = i % PARTS * EACH;
        alignas(16) T v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            v[k] = *from.cell(part + k, c);
        *packed_place<T>(to, in_pad, f.cols, s.e, c, s.row + part) = *(uint4 *)v;
    }
}

// Rows of the strip are: those from `first` on.
template <typename T>
__device__ static void store_along(const update_span &s, const packed_matrix &f,
                                   const strip<T> &from, void *to, int first, int count, int wide) {
    enum { EACH = 16 / sizeof(T) };
    for (int i = threadIdx.x; i < strip<T>::ROWS * f.cols / EACH; i += blockDim.x) {
        int row = i / (f.cols / EACH), c = i % (f.cols / EACH) * EACH, n = s.row + row - first;
        if (n >= 0 && n < count)
            *packed_place<T>(to, f.cols, wide, s.e, n, c) = *(const uint4 *)from.cell(row, c);
    }
}

// Between rows, so that store_down asks no bank twice in TF32 (and some twice in bf16).
template <typename T> static __host__ __device__ inline int strip_ld(const update_job &j) {
    return (j.widest + 7) / 8 * 8 + (sizeof(T) == 2 ? 8 : 4);
}

template <bool TRAIN, typename T>
__device__ static void update_strip(const update_job &j, const update_plan &p,
                                    const update_span &s) {
    extern __shared__ __align__(16) char shared[];
    int ld = strip_ld<T>(j);
    strip<T> live = {(T *)shared, ld}, ema = {(T *)shared + strip<T>::ROWS * ld, ld};
    const packed_matrix f = j.matrices[s.matrix];
    if (f.cols % 4)
        update_numbers<TRAIN, float>(j, p, s, f, live, ema);
    else
        update_numbers<TRAIN, float4>(j, p, s, f, live, ema);
    __syncthreads();
    if (f.live) store_down(s, f, live, f.live);
    if (f.ema) store_down(s, f, ema, f.ema);
    if (f.transposed) store_along(s, f, live, f.transposed, 0, f.rows, f.rows);
    if (f.some) store_along(s, f, live, f.some, f.some_first, f.some_count, THIN);
}

// A block takes a span. Without TRAIN: packed weights alone.
template <bool TRAIN, typename T>
__global__ static void __launch_bounds__(256, 3) update(update_job j) {
    update_plan plan = {};
    if (TRAIN) plan = *j.plan;
    if (TRAIN && !plan.go) return;
    update_span s = j.spans[blockIdx.x];
    if (s.matrix >= 0)
        update_strip<TRAIN, T>(j, plan, s);
    else if (TRAIN)
        update_flat(j, plan, s);
}

// bf16 copies: block y takes matrix y, four numbers a thread where rows allow it.
__global__ static void copies(update_job j) {
    bf16_copy s = j.copies[blockIdx.y];
    int width = s.cols % 4 ? 1 : 4;
    int64_t cells = (int64_t)s.e * s.rows * s.cols / width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < cells;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at = i * width, to = s.ld == s.cols ? at : at / s.cols * s.ld + at % s.cols;
        if (width == 4) {
            if (s.live) round_to(s.live + to, *(const float4 *)(j.live + s.offset + at));
            if (s.ema) round_to(s.ema + to, *(const float4 *)(j.ema + s.offset + at));
        } else {
            if (s.live) round_to(s.live + to, j.live[s.offset + at]);
            if (s.ema) round_to(s.ema + to, j.ema[s.offset + at]);
        }
    }
}

static dc_status copy_first(dc_cuda *cuda, const update_job *j, int count) {
    if (!count) return DC_OK;
    copies<<<dim3(64, count), 256, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "copies(");
}

dc_status dc_copies_loose(dc_cuda *cuda, const update_job *j) {
    return copy_first(cuda, j, j->loose_count);
}

template <bool TRAIN, typename T>
static dc_status start_update_of(dc_cuda *cuda, const update_job *j) {
    int blocks = TRAIN ? j->train_count : j->span_count;
    if (!blocks) return DC_OK;
    size_t bytes = j->matrices ? (size_t)(2 * SECTOR * strip_ld<T>(*j)) : 0;
    DC_TRY(want_shared(cuda, update<TRAIN, T>));
    update<TRAIN, T><<<blocks, 256, bytes, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "update(");
}

template <bool TRAIN> static dc_status start_update(dc_cuda *cuda, const update_job *j) {
    return j->tf32 ? start_update_of<TRAIN, float>(cuda, j) : start_update_of<TRAIN, bf16>(cuda, j);
}

dc_status dc_copies_refresh(dc_cuda *cuda, const update_job *j) {
    DC_TRY(start_update<false>(cuda, j));
    return copy_first(cuda, j, j->copy_count);
}

// Metrics of the step, and the counter.
__global__ static void tick(update_job j) {
    double norm2 = 0;
    for (int i = threadIdx.x; i < j.dw_norm_count; i += blockDim.x)
        norm2 += j.dw_norms[i];
    norm2 = block_sum(norm2) + j.plan->norm2;
    bool fine = j.plan->go && isfinite((float)norm2);
    if (fine && threadIdx.x < j.metric_count) j.state->sums[threadIdx.x] += *j.metrics[threadIdx.x];
    if (threadIdx.x) return;
    j.state->norm2 = norm2;
    if (fine) {
        j.state->sums[j.metric_count] += sqrt(norm2);
        j.state->step++;
    } else if (j.state->bad_step < 0) {
        j.state->bad_step = (int64_t)j.state->step + 1;
    }
}

dc_status dc_update_run(dc_cuda *cuda, const update_job *j) {
    if (j->whole_norm) norm<<<NORM_BLOCKS, 256, 0, cuda->stream>>>(*j);
    DC_TRY(start_update<true>(cuda, j));
    return dc_cuda_check(cudaGetLastError(), "update(");
}

dc_status dc_tick_run(dc_cuda *cuda, const update_job *j) {
    DC_TRY(want_shared(cuda, tick));
    tick<<<1, NORM_BLOCKS, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "update(");
}
