// Backward of a hidden layer of a whole network: a product with the layer above, LayerNorm and GELU backward, and sums over
// rows.
#include "backend/cuda/mlp_tile.cuh"

#ifdef HOPPER

// Add up v over the eight rows that a warp's lanes hold of a column. With 8 numbers (4, 2) a lane ends with the sum of
// number lane / 4 (lane / 8, lane / 16) alone.
template <int COUNT> __device__ static inline float spread_sum(float v[COUNT], int lane) {
    int bit = 16;
#pragma unroll
    for (int half = COUNT / 2; half; half /= 2, bit /= 2) {
        bool up = lane & bit;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float send = up ? v[i] : v[i + half], stay = up ? v[i + half] : v[i];
            v[i] = stay + __shfl_xor_sync(~0u, send, bit);
        }
    }
#pragma unroll
    for (; bit >= 4; bit /= 2)
        v[0] += __shfl_xor_sync(~0u, v[0], bit);
    return v[0];
}

// Sums over a group's rows. In bf16 those of the gradient itself are a product, the others are added up by warps; in TF32
// all are, since its products take no transposed factor.
template <typename T, int WIDE> struct group_sums;
template <int WIDE> struct group_sums<bf16, WIDE> {
    enum { BY_WARPS = 2 };             // D_SCALE, D_SHIFT
    float warp[4][BY_WARPS + 1][WIDE]; // and the head's
    float product[4][WIDE];            // D_B in two shares, D_MEAN in two
};
template <int WIDE> struct group_sums<float, WIDE> {
    enum { BY_WARPS = 4 }; // D_SCALE, D_SHIFT, D_B, D_MEAN
    float warp[4][BY_WARPS + 1][WIDE];
};

// Where things lie in the ring when the product is done. In bf16: what GELU got, in the stage after its own; then the
// gradient's block; then the factors of its sums, and the sums. A block of TF32 takes twice the room: a group has a stage
// for what GELU got, in whose place the gradient comes; then the sums. The head's weights are there before a gradient is.
template <typename T, int WIDE> struct places;
template <int WIDE> struct places<bf16, WIDE> {
    enum { KEPT = 1, BYTES = block_of<bf16, WIDE>::BYTES }; // KEPT: stages of what GELU got
    typedef group_sums<bf16, WIDE> sums_type;
    static_assert(GROUPS * BYTES <= shape<WIDE>::STAGE &&
                      GROUPS * (sizeof(sums_type) + PIECE_BYTES) <= shape<WIDE>::STAGE,
                  "all have their place in a stage");
    char *z, *out, *factors;
    sums_type *sums;
    float *head;
    __device__ places(const tiles<WIDE> &r, int steps, int group) {
        z = r.memory(steps) + group * BYTES;
        out = r.memory(steps + 1) + group * BYTES;
        factors = r.memory(steps + 2) + group * PIECE_BYTES;
        sums = (sums_type *)(r.memory(steps + 2) + GROUPS * PIECE_BYTES) + group;
        head = (float *)r.memory(steps + 1);
    }
};
template <int WIDE> struct places<float, WIDE> {
    enum { KEPT = 2, BYTES = block_of<float, WIDE>::BYTES };
    typedef group_sums<float, WIDE> sums_type;
    static_assert(GROUPS == 2 && BYTES <= shape<WIDE>::STAGE &&
                      GROUPS * sizeof(sums_type) <= shape<WIDE>::STAGE,
                  "all have their place in a stage");
    char *z, *out;
    sums_type *sums;
    float *head;
    __device__ places(const tiles<WIDE> &r, int steps, int group) {
        z = out = r.memory(steps + group);
        sums = (sums_type *)r.memory(steps + 2) + group;
        head = (float *)r.memory(steps + 2);
    }
};
static_assert((int)shape<COLUMNS>::STAGES >= 3 && (int)shape<NARROW>::STAGES >= 3 &&
                  HEAD_MAX * COLUMNS * sizeof(float) <= shape<COLUMNS>::STAGE &&
                  HEAD_MAX * NARROW * sizeof(float) <= shape<NARROW>::STAGE,
              "three stages are apart, and the head's weights fit one");

// Ask for what GELU got, number `part` of the stages that it takes.
template <typename T, int WIDE>
__device__ static void ask_kept(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                const tiles<WIDE> &r, int part, int i) {
    enum { BYTES = block_of<T, WIDE>::BYTES, EACH = GROUPS / places<T, WIDE>::KEPT };
    r.claim(i, EACH * BYTES);
    for (int k = 0; k < EACH; k++)
        bulk_copy(r.address(i) + k * BYTES, kept<T>(j, l, t, t.row0 + (EACH * part + k) * MLP_ROWS),
                  BYTES, r.barrier(i));
}

__device__ static inline float dy_of(const mlp &j, int e, int row, int o) {
    bool there = row >= j.lo && row < j.hi;
    return there ? j.dy[((int64_t)e * (j.hi - j.lo) + row - j.lo) * j.out + o] : 0;
}

// The two means of a row that LayerNorm's gradient needs, below the head.
__device__ static float2 head_means(const mlp &j, int e, int row) {
    const float *fold = j.head_fold + e * 2 * THIN;
    float2 mean = {0, 0};
    for (int o = 0; row < j.hi && o < j.out; o++) {
        float dy = dy_of(j, e, row, o), y = j.y[((int64_t)e * j.x.rows + row) * j.out + o];
        mean.x += dy * fold[o] / (float)j.width;
        mean.y += dy * (y - fold[THIN + o]) / (float)j.width;
    }
    return mean;
}

// The columns' numbers; the rows': mean and spread, and what is taken off of a gradient. As in forward.
template <int WIDE, bool NORM> struct backward_numbers {
    float u, v, scale, shift;
    row_sums own, above, below;
    __device__ void ask(const mlp &j, const tile<WIDE> &t, int layer) {
        if (!NORM) return;
        const mlp_layer &l = j.layer[layer];
        int at = t.e * j.width + t.column0 + threadIdx.x % WIDE;
        int row = t.row0 + threadIdx.x / 2;
        u = layer ? l.fold[at + t.e * j.width] : 0;
        v = layer ? l.fold[at + (t.e + 1) * j.width] : 0;
        scale = l.scale[at];
        shift = l.shift[at];
        own.ask(j, l.stats, t.e, row);
        if (layer) below.ask(j, j.layer[layer - 1].stats, t.e, row);
        if (layer < j.layers - 1) above.ask(j, j.layer[layer + 1].sums, t.e, row);
    }
    __device__ void finish(const mlp &j, const tile<WIDE> &t, int layer) {
        int i = threadIdx.x / 2, row = t.row0 + i;
        if (!NORM) {
            t.s->row[i] = make_float4(0, 1, 0, 0);
            t.s->below[i] = make_float2(0, 1);
            return;
        }
        float2 r = own.finish_stats(j), b = {0, 1}, m;
        if (layer) b = below.finish_stats(j);
        m = layer < j.layers - 1 ? above.finish(j) : head_means(j, t.e, row);
        if (row >= j.hi) r = b = make_float2(0, 1), m = make_float2(0, 0);
        if (threadIdx.x % 2 == 0) {
            t.s->row[i] = make_float4(r.x, r.y, r.y * m.x, r.y * r.y * m.y);
            t.s->below[i] = b;
        }
        int c = threadIdx.x;
        if (c >= WIDE) return;
        t.s->u[c] = u;
        t.s->v[c] = v;
        t.s->scale[c] = scale;
        t.s->shift[c] = shift;
    }
};

// The head's weights of the tile's columns, output by output, for head_gradient.
template <int WIDE> __device__ static void load_head(const mlp &j, const tile<WIDE> &t, float *w) {
    const float *from = j.head_w + ((int64_t)t.e * j.width + t.column0) * j.out;
    for (int i = threadIdx.x; i < WIDE * j.out; i += THREADS)
        w[i % j.out * WIDE + i / j.out] = from[i];
}

// The head's gradient in place of a product, with the rows' 1/spread as products have it.
template <int WIDE>
__device__ static void head_gradient(const mlp &j, const tile<WIDE> &t, const float *w,
                                     float *acc) {
    float inv[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        inv[h] = t.s->row[t.group * MLP_ROWS + t.row + 8 * h].y;
#pragma unroll
    for (int i = 0; i < shape<WIDE>::EACH; i++)
        acc[i] = 0;
    for (int o = 0; o < j.out; o++) {
        float dy[2];
#pragma unroll
        for (int h = 0; h < 2; h++)
            dy[h] = dy_of(j, t.e, t.first() + t.row + 8 * h, o) * inv[h];
#pragma unroll
        for (int i = 0; i < WIDE / 8; i++) {
            float2 two = *(const float2 *)&w[o * WIDE + i * 8 + t.pair];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                acc[4 * i + 2 * h] += dy[h] * two.x;
                acc[4 * i + 2 * h + 1] += dy[h] * two.y;
            }
        }
    }
}

// Through LayerNorm and GELU. acc is the gradient of LayerNorm's result, divided by the rows' spread. Rows past the end
// have acc 0, and numbers that make all of theirs 0. The layer's own gradient is left in acc.
template <typename T, bool HEAD, bool NORM, int WIDE>
__device__ static void through_layer(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                     float *acc, const places<T, WIDE> &p) {
    enum {
        SUMS = group_sums<T, WIDE>::BY_WARPS,
        // Of them here; without LayerNorm D_B alone, if it is not by a product.
        HERE = NORM ? (int)SUMS : sizeof(T) == 4,
        COUNT = kept_columns<T>::COUNT
    };
    float4 r[2];
    float2 below[2];
    float spread[2], dy[2];
    half_sums q[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = t.group * MLP_ROWS + t.row + 8 * h;
        if (NORM) r[h] = t.s->row[row], below[h] = t.s->below[row], spread[h] = 1 / r[h].y;
        dy[h] = HEAD ? dy_of(j, t.e, t.row0 + row, 0) : 0;
    }
    // A lane ends with the sum of one number of all, see spread_sum.
    int number = NORM ? t.lane / (16 / SUMS) : D_B * 2 + t.lane / 16;
    float *sums = &p.sums->warp[threadIdx.x / 32 % 4][number / 2][t.pair + number % 2],
          *head_sums = &p.sums->warp[threadIdx.x / 32 % 4][SUMS][t.pair + t.lane / 16];
#pragma unroll
    for (int i0 = 0; i0 < WIDE / 8; i0 += COUNT) {
        kept_columns<T> z((const uint4 *)p.z + threadIdx.x % 128, i0, t);
#pragma unroll
        for (int i = i0; i < i0 + COUNT; i++) {
            int c = i * 8 + t.pair;
            float2 u, v, scale, shift;
            if (NORM) {
                u = *(float2 *)&t.s->u[c], v = *(float2 *)&t.s->v[c];
                scale = *(float2 *)&t.s->scale[c], shift = *(float2 *)&t.s->shift[c];
            }
            float s[HERE ? 2 * HERE : 1] = {}, head[2] = {};
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float2 x = z.get(i, h);
                float d[2], q1 = 0, q2 = 0;
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    float g = acc[4 * i + 2 * h + k], a = k ? x.y : x.x, a2 = a * a,
                          open = gate_of<T>(a, a2), y = a * open;
                    float slope =
                        open + (y - y * open) * (1.5957691216057308f + 0.2140644488f * a2);
                    if constexpr (!NORM) {
                        d[k] = g * slope;
                        if constexpr (HERE > 0) s[k] += d[k];
                        if (HEAD) head[k] += dy[h] * y;
                    } else {
                        float off = y - r[h].x;
                        float full = (g * (k ? scale.y : scale.x) - r[h].z - off * r[h].w) * slope;
                        d[k] = full * below[h].y;
                        s[D_SCALE * 2 + k] += g * off;
                        s[D_SHIFT * 2 + k] += g * spread[h];
                        if (SUMS > D_B) s[D_B % SUMS * 2 + k] += full;
                        if (SUMS > D_B) s[D_MEAN % SUMS * 2 + k] += d[k] * below[h].x;
                        if (HEAD)
                            head[k] += dy[h] * (off * r[h].y * (k ? scale.y : scale.x) +
                                                (k ? shift.y : shift.x));
                        q1 += full * (k ? u.y : u.x);
                        q2 += full * (a - (k ? v.y : v.x));
                    }
                }
                if (NORM) q[h].add(i, q1, q2);
                put_pair<T>(p.out + place<T>(t.row + 8 * h, c), d[0], d[1]);
#pragma unroll
                for (int k = 0; k < 2; k++)
                    acc[4 * i + 2 * h + k] = d[k];
            }
            if (!l.parts) continue;
            if constexpr (HERE > 0) sums[i * 8] = spread_sum<2 * HERE>(s, t.lane);
            if (HEAD) head_sums[i * 8] = spread_sum<2>(head, t.lane);
        }
    }
    if (NORM && l.sums) store_row_sums(j, l.sums, t, q);
}

// A number as two of bf16 that add up to it.
__device__ static inline uint32_t in_two(float v) {
    float high = __bfloat162float(__float2bfloat16(v));
    return pack(high, v - high);
}

// What the gradient's rows are multiplied by for D_B and D_MEAN: the spread and the mean of the row that the layer read,
// as columns of a piece.
template <int WIDE>
__device__ static void write_factors(const tile<WIDE> &t, const places<bf16, WIDE> &p) {
    int row = threadIdx.x % 128 / 2, half = threadIdx.x % 2 * 4;
    float2 below = t.s->below[t.group * MLP_ROWS + row];
#pragma unroll
    for (int c = half; c < half + 4; c++)
        *(uint4 *)(p.factors + place<bf16>(row, c * 8)) =
            c ? make_uint4(0, 0, 0, 0) : make_uint4(in_two(1 / below.y), in_two(below.x), 0, 0);
}

template <int WIDE>
__device__ static void write_factors(const tile<WIDE> &, const places<float, WIDE> &) {}

// The sums of the gradient that lies in shared memory.
template <int WIDE>
__device__ static void sum_gradient(const tile<WIDE> &t, const places<bf16, WIDE> &p) {
    float acc[shape<WIDE>::EACH];
    __syncwarp();
    products_begin();
#pragma unroll
    for (int k = 0; k < MLP_ROWS / 16; k++)
        mma_transposed<WIDE>(acc, factor(shared_address(p.factors) + k * 2048, 1024, PIECE_BYTES),
                             factor(shared_address(p.out) + k * 2048, 1024, PIECE_BYTES), k);
    products_end();
    products_wait<0>();
    if (threadIdx.x % 128 >= 16) return; // who has the first four rows
#pragma unroll
    for (int i = 0; i < WIDE / 8; i++)
        *(float2 *)&p.sums->product[t.lane / 4][i * 8 + t.pair] =
            make_float2(acc[4 * i], acc[4 * i + 1]);
}

template <int WIDE>
__device__ static void sum_gradient(const tile<WIDE> &, const places<float, WIDE> &) {}

// The gradient once more, transposed for dW, when its block has gone.
template <int WIDE>
__device__ static void store_transposed(const mlp &, const mlp_layer &, const tile<WIDE> &,
                                        const float *, const places<bf16, WIDE> &) {}

template <int WIDE>
__device__ static void store_transposed(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                        const float *acc, const places<float, WIDE> &p) {
    enum { BYTES = WIDE * LINE }; // the tile's columns of 32 rows, which follow each other
    stores_wait();
    t.group_sync();
    char *out = p.out + t.row / TRANSPOSED_ROWS * BYTES;
#pragma unroll
    for (int i = 0; i < shape<WIDE>::EACH; i++)
        *(float *)(out + transposed_place(t.row + i / 2 % 2 * 8, i / 4 * 8 + t.pair + i % 2)) =
            to_tf32(acc[i]);
    rows_written();
    t.group_sync();
    for (int i = 0; i < MLP_ROWS / TRANSPOSED_ROWS && threadIdx.x % 128 == 0; i++)
        bulk_store(transposed_at(j, l.transposed, t.e, t.first() + i * TRANSPOSED_ROWS, t.column0) +
                       t.column0 % COLUMNS * LINE,
                   shared_address(p.out) + i * BYTES, BYTES);
}

template <typename S> __device__ static inline float warps_sum(const S *s, int number, int c) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 4; w++)
        sum += s->warp[w][number][c];
    return sum;
}

// Sum `kind` of the group, of a column.
template <int WIDE>
__device__ static inline float group_sum(const group_sums<bf16, WIDE> *s, int kind, int c) {
    if (kind == D_B || kind == D_MEAN) {
        int first = kind == D_B ? 0 : 2;
        return s->product[first][c] + s->product[first + 1][c];
    }
    return warps_sum(s, kind == D_HEAD ? 2 : kind, c);
}

template <int WIDE>
__device__ static inline float group_sum(const group_sums<float, WIDE> *s, int kind, int c) {
    return warps_sum(s, kind, c);
}

// All groups' sums, in order.
template <typename T, bool NORM, int WIDE>
__device__ static void store_sums(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                  const tiles<WIDE> &r, int steps, bool head) {
    int part = (int)blockIdx.x / t.across;
    float *to = l.parts + ((int64_t)t.e * j.parts + part) * MLP_SUMS * j.width + t.column0;
    for (int i = threadIdx.x; i < (head ? MLP_SUMS : D_HEAD) * WIDE; i += THREADS) {
        int kind = i / WIDE, c = i % WIDE;
        if (!NORM && kind != D_B && kind != D_HEAD) continue;
        float sum = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            sum += group_sum(places<T, WIDE>(r, steps, g).sums, kind, c);
        to[(int64_t)kind * j.width + c] = sum;
    }
    if (!head || t.column0 || threadIdx.x >= 32) return;
    float sum = 0; // the head's bias
    for (int row = t.row0 + t.lane; row < t.row0 + MLP_TILE; row += 32)
        sum += dy_of(j, t.e, row, 0);
    sum = warp_sum(sum);
    if (t.lane == 0) j.head_bias[t.e * j.parts + part] = sum;
}

template <typename T, int WIDE, bool NORM>
__device__ static void run_backward(const mlp &j, int layer) {
    extern __shared__ __align__(1024) char shared[];
    tile<WIDE> t(j, shared + shape<WIDE>::RING, j.lo);
    tiles<WIDE> r(shared, t.s->barriers, GROUPS * 4);
    const mlp_layer &l = j.layer[layer];
    bool last = layer == j.layers - 1, head = last && j.head_bias;
    int steps = last ? 0 : j.width / of<T>::SPAN;
    int all = steps + places<T, WIDE>::KEPT;
    const mlp_layer &above = j.layer[last ? layer : layer + 1];
    factors<T, WIDE> f = {above.d, above.wt, steps};
    auto old = [&](int i) { // what was there before the layer above
        if (i < steps)
            f.ask_weights(j, t, r, i);
        else
            ask_kept<T>(j, l, t, r, i - steps, i);
    };
    auto rows = [&](int i) {
        if (i < steps) f.ask_rows(j, t, r, i);
    };
    auto ask = [&](int i) { old(i), rows(i); };
    places<T, WIDE> p(r, steps, t.group);
    r.start(all, old);
    upstream_wait();
    r.start(steps, rows);
    backward_numbers<WIDE, NORM> numbers;
    numbers.ask(j, t, layer);
    float acc[shape<WIDE>::EACH];
    if (!last) r.run(steps, all, ask, [&](int i) { multiply<T>(t, r, acc, i); });
    downstream_start();
    numbers.finish(j, t, layer);
    if (last) load_head(j, t, p.head);
    __syncthreads(); // nobody reads the factors any more
    if (last) {
        head_gradient(j, t, p.head, acc);
        __syncthreads();
    }
    r.await(steps + t.group * places<T, WIDE>::KEPT / GROUPS);
    if (head)
        through_layer<T, true, NORM>(j, l, t, acc, p);
    else
        through_layer<T, false, NORM>(j, l, t, acc, p);
    if (l.parts) write_factors(t, p);
    store_block<T>(j, t, l.d, p.out);
    if (l.parts) {
        sum_gradient(t, p);
        __syncthreads();
        store_sums<T, NORM>(j, l, t, r, steps, head);
        store_transposed(j, l, t, acc, p);
    }
    stores_wait();
}
#endif // HOPPER

template <typename T, int WIDE, bool NORM>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    backward(const __grid_constant__ mlp j, int layer) {
#ifdef HOPPER
    run_backward<T, WIDE, NORM>(j, layer);
#endif
}

static layer_kernel *const kernels[2][2][2] = {
    {{backward<bf16, COLUMNS, false>, backward<bf16, COLUMNS, true>},
     {backward<bf16, NARROW, false>, backward<bf16, NARROW, true>}},
    {{backward<float, COLUMNS, false>, backward<float, COLUMNS, true>},
     {backward<float, NARROW, false>,
      backward<float, NARROW, true>}}}; // TF32; half as wide; LayerNorm

dc_status dc_mlp_backward_layer(dc_cuda *cuda, const mlp *j, int layer) {
    int blocks = div_up(j->hi - j->lo, MLP_TILE) * j->across;
    return start_layer(cuda, kernels, j, layer, blocks, layer < j->layers - 1);
}
