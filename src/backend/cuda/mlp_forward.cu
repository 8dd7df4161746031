// Forward of a hidden layer of a whole network: a product, GELU, and the sums that LayerNorm needs of a row's tile.
#include "backend/cuda/mlp_tile.cuh"

enum { FOLD = 64 }; // columns that a block adds up for u and v

#ifdef HOPPER

// u and v of a layer's columns (the head's: all of them), from its packed weights.
template <typename T, int OUT>
__device__ static void fold(const mlp &j, const void *packed, const float *bias, int outputs,
                            const mlp_layer &below, float *u, float *v, int e) {
    enum { SHARE = 256 / OUT, SPAN = of<T>::SPAN, EACH = SPAN / 8 }; // SHARE: threads a column
    int n = threadIdx.x / SHARE;
    const float *scale = below.scale + e * j.width, *shift = below.shift + e * j.width;
    float2 sum = {0, 0};
#pragma unroll 4
    for (int k = 0; k < j.width / SPAN; k++)
#pragma unroll
        for (int c = threadIdx.x % SHARE; c < 8; c += SHARE) {
            some_weights<T> some(
                ((const uint4 *)packed)[(int64_t)k * (OUT == THIN ? THIN : PACK_OUT) * 8 + n * 8 +
                                        (c ^ (n & 7))]);
            const float *a = scale + k * SPAN + c * EACH, *b = shift + k * SPAN + c * EACH;
#pragma unroll
            for (int i = 0; i < EACH; i += 2) {
                float2 a2 = *(const float2 *)(a + i), b2 = *(const float2 *)(b + i);
                sum.x += some.w[i] * a2.x + some.w[i + 1] * a2.y;
                sum.y += some.w[i] * b2.x + some.w[i + 1] * b2.y;
            }
        }
#pragma unroll
    for (int d = SHARE / 2; d; d /= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, d);
        sum.y += __shfl_xor_sync(~0u, sum.y, d);
    }
    if (threadIdx.x % SHARE || n >= outputs) return;
    u[n] = sum.x;
    v[n] = sum.y + bias[n];
}

// Blocks beside those of the first layer: FOLD columns of a layer each, then the head.
template <typename T> __device__ static void fold_some(const mlp &j, int number) {
    int e = blockIdx.y, across = j.width / FOLD, layer = 1 + number / across;
    int column0 = number % across * FOLD;
    const mlp_layer &below = j.layer[layer - 1];
    if (layer == j.layers) {
        float *to = j.head_fold + e * 2 * THIN;
        fold<T, THIN>(j, (const T *)j.head_packed + (int64_t)e * j.width * THIN,
                      j.head_b + e * j.out, j.out, below, to, to + THIN, e);
    } else {
        const mlp_layer &l = j.layer[layer];
        float *to = l.fold + (int64_t)e * 2 * j.width + column0;
        const char *packed = packed_part(j, l.w, e, j.width / of<T>::SPAN, column0, 0);
        fold<T, FOLD>(j, packed, l.b + e * j.width + column0, FOLD, below, to, to + j.width, e);
    }
}

// The columns' numbers, and the rows' factors of a product and of u: loaded before the product, put into shared memory
// after it.
template <int WIDE, bool NORM> struct forward_numbers {
    float u, v, scale, shift;
    row_sums below;
    __device__ void ask(const mlp &j, const tile<WIDE> &t, int layer) {
        const mlp_layer &l = j.layer[layer];
        int c = threadIdx.x % WIDE, at = t.e * j.width + t.column0 + c;
        if (!NORM) {
            v = l.b[at];
            return;
        }
        u = layer ? l.fold[at + t.e * j.width] : 0;
        v = layer ? l.fold[at + (t.e + 1) * j.width] : l.b[at];
        scale = l.scale[at];
        shift = keeps_norm(l, t) ? l.shift[at] : 0;
        if (layer) below.ask(j, j.layer[layer - 1].stats, t.e, t.row0 + threadIdx.x / 2);
    }
    __device__ void finish(const mlp &j, const tile<WIDE> &t, int layer) {
        int c = threadIdx.x;
        if (!NORM) {
            if (c < WIDE) t.s->v[c] = v;
            return;
        }
        float2 r = {0, 1};
        if (layer) r = below.finish_stats(j);
        if (threadIdx.x % 2 == 0) t.s->below[threadIdx.x / 2] = make_float2(r.y, -r.x * r.y);
        if (c >= WIDE) return;
        t.s->u[c] = u;
        t.s->v[c] = v;
        t.s->scale[c] = scale;
        const mlp_layer &l = j.layer[layer];
        if (!keeps_norm(l, t)) return;
        float *norm = l.norm + (int64_t)t.e * 2 * j.width + t.column0 + c;
        norm[0] = scale;
        norm[j.width] = shift;
    }
    __device__ static bool keeps_norm(const mlp_layer &l, const tile<WIDE> &t) {
        return l.norm && t.row0 == 0;
    }
};

template <typename T, bool NORM, int WIDE>
__device__ static void activate(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                const float *acc, char *out) {
    float2 r[2];
    half_sums sums[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        r[h] = NORM ? t.s->below[t.group * MLP_ROWS + t.row + 8 * h] : make_float2(1, 0);
    bool keep = l.z && t.first() < j.hi && t.first() + MLP_ROWS > j.lo;
    uint4 *z = keep ? (uint4 *)kept<T>(j, l, t, t.first()) + threadIdx.x % 128 : NULL;
    kept_numbers<T> mine;
#pragma unroll
    for (int i = 0; i < WIDE / 8; i++) {
        int c = i * 8 + t.pair;
        float2 u, v = *(float2 *)&t.s->v[c], scale = {1, 1};
        if (NORM) u = *(float2 *)&t.s->u[c], scale = *(float2 *)&t.s->scale[c];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float a = acc[4 * i + 2 * h], b = acc[4 * i + 2 * h + 1];
            float2 x = NORM ? mine.set(i, h, a * r[h].x + (r[h].y * u.x + v.x),
                                       b * r[h].x + (r[h].y * u.y + v.y))
                            : mine.set(i, h, a + v.x, b + v.y);
            x.x *= gate_of<T>(x.x, x.x * x.x);
            x.y *= gate_of<T>(x.y, x.y * x.y);
            if (NORM) sums[h].add(i, x.x + x.y, x.x * x.x + x.y * x.y);
            put_pair<T>(out + place<T>(t.row + 8 * h, c), x.x * scale.x, x.y * scale.y);
        }
        if (z) mine.store(z, i);
    }
    if (NORM) store_row_sums(j, l.stats, t, sums);
}

template <typename T, int WIDE, bool NORM>
__device__ static void run_forward(const mlp &j, int layer) {
    extern __shared__ __align__(1024) char shared[];
    tile<WIDE> t(j, shared + shape<WIDE>::RING, 0);
    if (t.row0 >= j.x.rows) {
        if (NORM && !layer) fold_some<T>(j, blockIdx.x - div_up(j.x.rows, MLP_TILE) * t.across);
        return;
    }
    if (j.used && t.row0 >= *j.used) {
        upstream_wait(); // who follows counts on it
        return;
    }
    tiles<WIDE> r(shared, t.s->barriers, GROUPS * 4);
    const mlp_layer &l = j.layer[layer];
    int steps = l.in_pad / of<T>::SPAN;
    factors<T, WIDE> f = {layer ? j.layer[layer - 1].h : NULL, l.w, steps};
    auto weights = [&](int i) { f.ask_weights(j, t, r, i); };
    auto rows = [&](int i) { f.ask_rows(j, t, r, i); };
    r.start(steps, weights);
    upstream_wait();
    r.start(steps, rows);
    auto both = [&](int i) { weights(i), rows(i); };
    forward_numbers<WIDE, NORM> numbers;
    numbers.ask(j, t, layer);
    float acc[shape<WIDE>::EACH];
    r.run(steps, steps, both, [&](int i) { multiply<T>(t, r, acc, i); });
    downstream_start();
    numbers.finish(j, t, layer);
    __syncthreads(); // nobody reads the ring any more
    char *out = shared + t.group * block_of<T, WIDE>::BYTES;
    activate<T, NORM>(j, l, t, acc, out);
    store_block<T>(j, t, l.h, out);
    stores_wait();
}
#endif // HOPPER

template <typename T, int WIDE, bool NORM>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    forward(const __grid_constant__ mlp j, int layer) {
#ifdef HOPPER
    run_forward<T, WIDE, NORM>(j, layer);
#endif
}

static layer_kernel *const kernels[2][2][2] = {
    {{forward<bf16, COLUMNS, false>, forward<bf16, COLUMNS, true>},
     {forward<bf16, NARROW, false>, forward<bf16, NARROW, true>}},
    {{forward<float, COLUMNS, false>, forward<float, COLUMNS, true>},
     {forward<float, NARROW, false>,
      forward<float, NARROW, true>}}}; // TF32; half as wide; LayerNorm

// The first layer's launch makes the folds of all others as well.
dc_status dc_mlp_forward_layer(dc_cuda *cuda, const mlp *j, int layer) {
    int folds = layer || !j->norm ? 0 : (j->layers - 1) * (j->width / FOLD) + 1,
        blocks = div_up(j->x.rows, MLP_TILE) * j->across + folds;
    return start_layer(cuda, kernels, j, layer, blocks, layer > 0);
}
