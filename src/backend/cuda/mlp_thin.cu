// Thin products at either end of a whole network: 64 rows times at most 32 columns.
#include "backend/cuda/mlp.cuh"

enum {
    THIN_BLOCKS = 2, // that a multiprocessor holds
    THIN_STAGES = 8,
    THIN_STAGE = PIECE_BYTES + THIN * LINE,
    THIN_BYTES = THIN_STAGES * (THIN_STAGE + 16), // with barriers
    THIN_THREADS = 128,
};
static_assert(shared_holds(THIN_BLOCKS, THIN_BYTES), "a multiprocessor holds THIN_BLOCKS");

#ifdef HOPPER

// The head (of the last layer's rows) or the gradient of some inputs (of the first layer's gradient).
template <typename T, bool HEAD, bool NORM> __device__ static void run_thin(const mlp &j) {
    extern __shared__ __align__(1024) char shared[];
    int e = blockIdx.y, row0 = (HEAD ? 0 : j.lo) + blockIdx.x * MLP_ROWS;
    if (HEAD && j.used && row0 >= *j.used) {
        upstream_wait();
        return;
    }
    ring<THIN_STAGES, THIN_STAGE> r(shared, shared + THIN_STAGES * THIN_STAGE, 4);
    int steps = j.width / of<T>::SPAN, lane = threadIdx.x & 31;
    const mlp_layer &l = j.layer[HEAD ? j.layers - 1 : 0];
    const char *packed =
        (const char *)(HEAD ? j.head_packed : j.dx_packed) + (int64_t)e * steps * THIN * LINE;
    auto ask_weights = [&](int i) {
        r.claim(i, THIN_STAGE);
        bulk_copy(r.address(i) + PIECE_BYTES, packed + i * THIN * LINE, THIN * LINE, r.barrier(i));
    };
    auto ask_rows = [&](int i) {
        bulk_copy(r.address(i), piece_at<T>(j, HEAD ? l.h : l.d, e, row0, i * of<T>::SPAN),
                  PIECE_BYTES, r.barrier(i));
    };
    r.start(steps, ask_weights);
    upstream_wait();
    downstream_start();
    r.start(steps, ask_rows);
    auto ask = [&](int i) { ask_weights(i), ask_rows(i); };
    __shared__ float2 stats[MLP_ROWS];
    row_sums sums;
    if (HEAD && NORM) sums.ask(j, l.stats, e, row0 + threadIdx.x / 2);
    float acc[16];
    r.run(steps, steps, ask, [&](int i) {
#pragma unroll
        for (int k = 0; k < LINE; k += 32)
            mma<T, THIN>(acc, factor(r.address(i) + k, 1024, 16),
                         factor(r.address(i) + PIECE_BYTES + k, 1024, 16), i || k);
    });
    if (HEAD && NORM) {
        stats[threadIdx.x / 2] = sums.finish_stats(j);
        __syncthreads();
    }
    int row = threadIdx.x / 32 * 16 + lane / 4;
    int count = HEAD ? j.out : j.dx_count, first = HEAD ? 0 : j.lo, end = HEAD ? j.x.rows : j.hi;
    float *to = (HEAD ? j.y : j.dx) + (int64_t)e * (end - first) * count;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int c = i / 4 * 8 + lane % 4 * 2 + i % 2, in_block = row + i / 2 % 2 * 8,
            at = row0 + in_block;
        if (c >= count || at >= end) continue;
        float v = acc[i];
        if (HEAD && !NORM) v += j.head_b[e * j.out + c];
        if (HEAD && NORM) {
            const float *f = j.head_fold + e * 2 * THIN + c;
            float2 s = stats[in_block];
            v = (v - s.x * f[0]) * s.y + f[THIN];
        }
        to[(int64_t)(at - first) * count + c] = v;
    }
}
#endif // HOPPER

template <typename T, bool HEAD, bool NORM>
__global__ static void __launch_bounds__(THIN_THREADS) thin(const __grid_constant__ mlp j) {
#ifdef HOPPER
    run_thin<T, HEAD, NORM>(j);
#endif
}

template <bool HEAD, bool NORM> static dc_status start(dc_cuda *cuda, const mlp *j) {
    int blocks = div_up(HEAD ? j->x.rows : j->hi - j->lo, MLP_ROWS);
    return launch(cuda, j->tf32 ? thin<float, HEAD, NORM> : thin<bf16, HEAD, NORM>,
                  dim3(blocks, j->e), THIN_THREADS, THIN_BYTES, 1, true, "network(", *j);
}

dc_status dc_mlp_head(dc_cuda *cuda, const mlp *j) {
    return j->norm ? start<true, true>(cuda, j) : start<true, false>(cuda, j);
}

dc_status dc_mlp_dx(dc_cuda *cuda, const mlp *j) {
    return start<false, true>(cuda, j); // which no LayerNorm stands behind
}
