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

__global__ static void update(update_job j) {
    double norm2 = norm2_of(j);
    if (!good(j, norm2)) return;
    __shared__ rates shared;
    int64_t done = (int64_t)j.state->step;
    bool late = j.policy_after && done >= j.policy_after; // as dc_agent_adam has it
    int64_t from = late ? j.policy_first : 0,
            to = j.policy_after && !late ? j.policy_first : j.size;
    if (threadIdx.x == 0) {
        double t = (double)(done + 1 - (late ? j.policy_after : 0)), c1 = 1 - pow(j.beta1, t),
               c2 = 1 - pow(j.beta2, t);
        shared = {(float)j.tau,         (float)(1 - j.tau), (float)(j.lr / c1),
                  (float)j.beta1,       (float)j.beta2,     (float)(1 - j.beta1),
                  (float)(1 - j.beta2), (float)j.eps,       (float)(1 / c2)};
    }
    __syncthreads();
    const rates r = shared;
    int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = from / 4 + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < to / 4;
         i += stride) {
        float4 p = ((float4 *)j.live)[i], m = ((float4 *)j.m)[i], v = ((float4 *)j.v)[i],
               g = ((const float4 *)j.grad)[i];
        if (i < j.ema_size / 4) { // from the weights before the step
            float4 e = ((float4 *)j.ema)[i];
            e.x = r.tau * p.x + r.rest_tau * e.x;
            e.y = r.tau * p.y + r.rest_tau * e.y;
            e.z = r.tau * p.z + r.rest_tau * e.z;
            e.w = r.tau * p.w + r.rest_tau * e.w;
            ((float4 *)j.ema)[i] = e;
        }
        one_weight(r, g.x, &p.x, &m.x, &v.x);
        one_weight(r, g.y, &p.y, &m.y, &v.y);
        one_weight(r, g.z, &p.z, &m.z, &v.z);
        one_weight(r, g.w, &p.w, &m.w, &v.w);
        ((float4 *)j.live)[i] = p;
        ((float4 *)j.m)[i] = m;
        ((float4 *)j.v)[i] = v;
    }
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

dc_status dc_shadows_run(dc_cuda *cuda, const update_job *j) {
    if (!j->shadow_count) return DC_OK;
    shadows<<<dim3(64, j->shadow_count), 256, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "shadows(");
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
    update<<<264, 512, 0, cuda->stream>>>(*j);
    DC_TRY(dc_shadows_run(cuda, j));
    tick<<<1, NORM_BLOCKS, 0, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), "update(");
}
