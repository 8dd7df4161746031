// The end of a step: column sums, the gradient's norm as a guard, EMA and Adam in one pass over the
// slabs, the bf16 copies of matrices, metrics and the step counter.
#include "backend/cuda/internal.cuh"

__global__ static void column_sums(const column_sum *sums) {
    column_sum s = sums[blockIdx.y];
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= s.length) return;
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < s.count; i++)
        sum += s.parts[i * s.stride + k];
    s.out[k] = s.add ? s.out[k] + sum : sum;
}

dc_status dc_column_sums(dc_cuda *cuda, const update_job *j) {
    if (!j->sum_count) return DC_OK;
    column_sums<<<dim3(div_up(j->sum_longest, 128), j->sum_count), 128, 0, cuda->stream>>>(j->sums);
    return dc_cuda_check(cudaGetLastError(), "column_sums(");
}

__global__ static void norm(update_job j) {
    double sum = 0;
    const float4 *g = (const float4 *)j.grad; // sizes are multiples of 16
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < j.size / 4;
         i += (int64_t)gridDim.x * blockDim.x) {
        float4 v = g[i];
        sum += (double)(v.x * v.x + v.y * v.y) + (double)(v.z * v.z + v.w * v.w);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) j.norms[blockIdx.x] = sum;
}

// Every block adds up the same norms in the same order, so all agree.
__device__ static double norm2_of(const update_job &j) {
    return block_sum(threadIdx.x < NORM_BLOCKS ? j.norms[threadIdx.x] : 0);
}

__device__ static bool good(const update_job &j, double norm2) {
    return j.state->bad_step < 0 && isfinite((float)norm2) && isfinite(*j.loss);
}

struct rates {
    float tau, rest_tau, rate, beta1, beta2, rest1, rest2, eps, inv_c2;
};

__device__ static void one_weight(const rates &r, float g, float *p, float *m, float *v) {
    *m = r.beta1 * *m + r.rest1 * g;
    *v = r.beta2 * *v + r.rest2 * g * g;
    *p -= r.rate * *m / (sqrtf(*v * r.inv_c2) + r.eps);
}

__device__ static float pull(const rates &r, float ema, float p) {
    return r.tau * p + r.rest_tau * ema;
}

// Which numbers are updated this step, and how.
struct plan {
    bool go;
    int64_t from, to;
    rates r;
};

__device__ static void make_plan(const update_job &j, plan *p) {
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

// A span of numbers; from the weights before the step comes the EMA. Ends are multiples of 4.
__device__ static void update_span(const update_job &j, const plan &p, const piece &s) {
    const rates &r = p.r;
    for (int64_t i = s.offset / 4 + threadIdx.x; i < (s.offset + s.count) / 4; i += blockDim.x) {
        if (4 * i < p.from || 4 * i >= p.to) continue;
        float4 w = ((float4 *)j.live)[i], m = ((float4 *)j.m)[i], v = ((float4 *)j.v)[i],
               g = ((const float4 *)j.grad)[i];
        if (i < j.ema_size / 4) {
            float4 e = ((float4 *)j.ema)[i];
            ((float4 *)j.ema)[i] = make_float4(pull(r, e.x, w.x), pull(r, e.y, w.y),
                                               pull(r, e.z, w.z), pull(r, e.w, w.w));
        }
        one_weight(r, g.x, &w.x, &m.x, &v.x);
        one_weight(r, g.y, &w.y, &m.y, &v.y);
        one_weight(r, g.z, &w.z, &m.z, &v.z);
        one_weight(r, g.w, &w.w, &m.w, &v.w);
        ((float4 *)j.live)[i] = w;
        ((float4 *)j.m)[i] = m;
        ((float4 *)j.v)[i] = v;
    }
}

__device__ static uint32_t pair_of(float a, float b) {
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

__device__ static uint32_t turn(uint32_t v) { // an 8 x 8 matrix held by a warp
    uint32_t out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(v));
    return out;
}

// Where the fragment of rows [row, row + 16) and columns [c, c + 16) lies.
__device__ static uint4 *place(bf16 *w, int rows, int cols, int e, int row, int c) {
    int64_t slab = ((int64_t)(e * cols + c / 64 * 64) * rows + row * 64 + c / 16 % 4 * 256) / 8;
    return (uint4 *)w + slab + (threadIdx.x & 31);
}

// 16 rows of a matrix, 16 columns a warp: a lane has the numbers that its fragment needs.
template <bool TRAIN>
__device__ static void update_strip(const update_job &j, const plan &p, const piece &s) {
    const fragments f = j.matrices[s.matrix];
    int lane = threadIdx.x & 31, in_pad = (f.rows + 31) / 32 * 32;
    bool has_ema = s.offset < j.ema_size, goes = TRAIN && s.offset >= p.from && s.offset < p.to;
    for (int c0 = threadIdx.x / 32 * 16; c0 < f.cols; c0 += blockDim.x / 32 * 16) {
        float w[8], ema[8];
#pragma unroll
        for (int i = 0; i < 8; i++) { // i: column +8, row +8, row +1
            int row = lane % 4 * 2 + i % 2 + (i / 2 % 2) * 8, c = c0 + lane / 4 + i / 4 * 8;
            int64_t at = s.offset + (int64_t)row * f.cols + c;
            bool there = s.row + row < f.rows;
            w[i] = there ? j.live[at] : 0;
            ema[i] = there && has_ema ? j.ema[at] : 0;
            if (!there || !goes) continue;
            float m = j.m[at], v = j.v[at];
            if (has_ema) j.ema[at] = ema[i] = pull(p.r, ema[i], w[i]);
            one_weight(p.r, j.grad[at], &w[i], &m, &v);
            j.live[at] = w[i];
            j.m[at] = m;
            j.v[at] = v;
        }
        uint4 part = {pair_of(w[0], w[1]), pair_of(w[2], w[3]), pair_of(w[4], w[5]),
                      pair_of(w[6], w[7])};
        if (f.live) *place(f.live, in_pad, f.cols, s.e, s.row, c0) = part;
        if (f.ema)
            *place(f.ema, in_pad, f.cols, s.e, s.row, c0) =
                make_uint4(pair_of(ema[0], ema[1]), pair_of(ema[2], ema[3]),
                           pair_of(ema[4], ema[5]), pair_of(ema[6], ema[7]));
        if (f.turned)
            *place(f.turned, f.cols, in_pad, s.e, c0, s.row) =
                make_uint4(turn(part.x), turn(part.z), turn(part.y), turn(part.w));
    }
}

// A block takes a piece. Without TRAIN: fragments alone.
template <bool TRAIN> __global__ static void __launch_bounds__(256) update(update_job j) {
    __shared__ plan shared;
    if (TRAIN) {
        double norm2 = norm2_of(j);
        if (!good(j, norm2)) return;
        if (threadIdx.x == 0) make_plan(j, &shared);
        __syncthreads();
    }
    piece s = j.pieces[blockIdx.x];
    if (s.matrix >= 0)
        update_strip<TRAIN>(j, shared, s);
    else if (TRAIN)
        update_span(j, shared, s);
}

__device__ static void copy4(bf16 *to, const float *from) {
    float4 v = *(const float4 *)from;
    __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
    uint2 raw = {*(unsigned *)&a, *(unsigned *)&b};
    *(uint2 *)to = raw;
}

// bf16 copies: block y takes matrix y, four numbers a thread where rows allow it.
__global__ static void shadows(update_job j) {
    shadow s = j.shadows[blockIdx.y];
    int width = s.cols % 4 ? 1 : 4;
    int64_t cells = (int64_t)s.e * s.rows * s.cols / width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < cells;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at = i * width, to = s.ld == s.cols ? at : at / s.cols * s.ld + at % s.cols;
        if (width == 4) {
            if (s.live) copy4(s.live + to, j.live + s.offset + at);
            if (s.ema) copy4(s.ema + to, j.ema + s.offset + at);
        } else {
            if (s.live) s.live[to] = __float2bfloat16(j.live[s.offset + at]);
            if (s.ema) s.ema[to] = __float2bfloat16(j.ema[s.offset + at]);
        }
    }
}

static dc_status copy_shadows(dc_cuda *cuda, const update_job *j) {
    if (!j->shadow_count) return DC_OK;
    shadows<<<dim3(64, j->shadow_count), 256, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "shadows(");
}

dc_status dc_shadows_run(dc_cuda *cuda, const update_job *j) {
    update<false><<<j->piece_count, 256, 0, cuda->stream>>>(*j);
    return copy_shadows(cuda, j);
}

// Metrics of the step, and the counter.
__global__ static void tick(update_job j) {
    double norm2 = norm2_of(j);
    bool fine = good(j, norm2);
    __syncthreads();
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
    norm<<<NORM_BLOCKS, 256, 0, cuda->stream>>>(*j);
    update<true><<<j->piece_count, 256, 0, cuda->stream>>>(*j);
    DC_TRY(copy_shadows(cuda, j));
    tick<<<1, NORM_BLOCKS, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "update(");
}
