// Networks of equal layers (256, 512 or 1024 wide) in bf16 or TF32 on Hopper, a launch a layer: a block makes a tile of 128
// columns (WIDE; 64 where tiles are few, so that twice as many blocks have half the work each), and what LayerNorm needs
// of whole rows is put off until the next layer (internal.cuh says how). Groups of four warps have 64 rows of the tile
// each. All that lies in memory is the same for both widths, but for a network's own sums over a row and what it keeps
// for backward: a network has one width. Kernels for networks without LayerNorm (NORM false) are compiled apart, and leave
// out all that serves it.
#include "backend/cuda/mlp_numbers.cuh"

enum {
    GROUPS = MLP_TILE / MLP_ROWS,
    THREADS = GROUPS * 128,
    BLOCKS = 2, // that a multiprocessor holds
};

template <int WIDE> struct shape {
    enum {
        PANEL_BYTES = WIDE * LINE, // of a panel, what the tile reads
        STAGE = GROUPS * PIECE_BYTES + PANEL_BYTES,
        STAGES = WIDE == NARROW ? 4 : 3,
        RING = STAGES * STAGE,
        EACH = WIDE / 2, // numbers of a block that a thread has
    };
};

template <typename T, int WIDE> struct block_of { // what a group of four warps makes
    enum { BYTES = MLP_ROWS * WIDE * sizeof(T) };
};

template <int WIDE> struct scratch { // beside the ring
    float u[WIDE], v[WIDE], scale[WIDE], shift[WIDE];
    float4 row[MLP_TILE];
    float2 below[MLP_TILE];
    uint64_t barriers[2 * shape<WIDE>::STAGES];
};

template <int WIDE> static constexpr size_t shared_bytes() {
    return shape<WIDE>::RING + sizeof(scratch<WIDE>);
}

enum { FOLD = 64 }; // columns that a block adds up for u and v
enum {
    THIN_STAGES = 8,
    THIN_STAGE = PIECE_BYTES + THIN * LINE,
    THIN_BYTES = THIN_STAGES * (THIN_STAGE + 16), // with barriers
    THIN_THREADS = 128,
};
static_assert(shared_holds(BLOCKS, shared_bytes<COLUMNS>()) &&
                  shared_holds(BLOCKS, shared_bytes<NARROW>()) && shared_holds(BLOCKS, THIN_BYTES),
              "a multiprocessor holds BLOCKS, of the thin ones too");

#ifdef HOPPER

template <int WIDE> using tiles = ring<shape<WIDE>::STAGES, shape<WIDE>::STAGE>;

template <int WIDE> struct tile { // a block's, and a thread's place in it
    int e, row0, column0, across;
    int group, lane, row, pair; // row: the lane's first in the group's 64
    scratch<WIDE> *s;
    __device__ tile(const mlp &j, char *beside, int first_row) {
        e = blockIdx.y;
        across = j.width / WIDE;
        row0 = first_row + (int)blockIdx.x / across * MLP_TILE;
        column0 = (int)blockIdx.x % across * WIDE;
        group = threadIdx.x / 128;
        lane = threadIdx.x & 31;
        row = threadIdx.x / 32 % 4 * 16 + lane / 4;
        pair = lane % 4 * 2;
        s = (scratch<WIDE> *)beside;
    }
    __device__ void group_sync() const { some_sync(1 + group, 128); }
    __device__ int first() const { return row0 + group * MLP_ROWS; } // row of the group
};

__device__ static inline float sum_of_four(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

// Two sums over a row of the tile, which four lanes have. 64 columns are added up at a time, so that the rows' sums are the
// same numbers for tiles of either width (row_sums has the other half of it).
struct half_sums {
    float2 all = {0, 0};
    float x = 0, y = 0;
    __device__ void add(int i, float dx, float dy) { // in turn, of columns from 8 i on
        x += dx;
        y += dy;
        if (i % (NARROW / 8) < NARROW / 8 - 1) return;
        all.x += sum_of_four(x);
        all.y += sum_of_four(y);
        x = y = 0;
    }
};

// The two sums over each row of the group, of the tile's columns.
template <int WIDE>
__device__ static inline void store_row_sums(const mlp &j, float2 *to, const tile<WIDE> &t,
                                             const half_sums sums[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int64_t row = (int64_t)t.e * j.rows + t.first() + t.row + 8 * h;
        if (!t.pair) to[row * t.across + t.column0 / WIDE] = sums[h].all;
    }
}

// The tile's part of a panel: inputs from step * SPAN on.
__device__ static inline const char *panel_part(const mlp &j, const void *w, int e, int steps,
                                                int column0, int step) {
    int64_t panel = (int64_t)(e * (j.width / PANEL_OUT) + column0 / PANEL_OUT) * steps + step;
    return (const char *)w + panel * (PANEL_OUT * LINE) + column0 % PANEL_OUT * LINE;
}

// Ask for step i of what a product reads: panels, and rows (of x where `rows` is NULL).
template <typename T, int WIDE> struct factors {
    void *rows;
    const void *panels;
    int steps;
    __device__ void ask_panel(const mlp &j, const tile<WIDE> &t, const tiles<WIDE> &r,
                              int i) const {
        r.claim(i, shape<WIDE>::STAGE);
        bulk_copy(r.address(i) + GROUPS * PIECE_BYTES,
                  panel_part(j, panels, t.e, steps, t.column0, i), shape<WIDE>::PANEL_BYTES,
                  r.barrier(i));
    }
    __device__ void ask_rows(const mlp &j, const tile<WIDE> &t, const tiles<WIDE> &r, int i) const {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            int row = t.row0 + g * MLP_ROWS, column = i * of<T>::SPAN;
            uint32_t to = r.address(i) + g * PIECE_BYTES;
            if (rows)
                bulk_copy(to, piece_at<T>(j, rows, t.e, row, column), PIECE_BYTES, r.barrier(i));
            else
                ask_x<MLP_ROWS>(j, to, column, row, r.barrier(i));
        }
    }
};

template <typename T, int WIDE>
__device__ static inline void multiply(const tile<WIDE> &t, const tiles<WIDE> &r, float *acc,
                                       int i) {
    uint32_t rows = r.address(i) + t.group * PIECE_BYTES,
             panel = r.address(i) + GROUPS * PIECE_BYTES;
#pragma unroll
    for (int k = 0; k < LINE; k += 32)
        mma<T, WIDE>(acc, factor(rows + k, 1024, 16), factor(panel + k, 1024, 16), i || k);
}

// What GELU got, of the group's 64 rows.
template <typename T, int WIDE>
__device__ static inline char *kept(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                    int row) {
    int64_t block = ((int64_t)t.e * j.rows + row) / MLP_ROWS * t.across + t.column0 / WIDE;
    return (char *)l.z + block * block_of<T, WIDE>::BYTES;
}

// The group's block goes to memory as pieces, from where its threads left it, and where it stays until stores_wait.
template <typename T, int WIDE>
__device__ static void store_block(const mlp &j, const tile<WIDE> &t, void *to, char *from) {
    rows_written();
    t.group_sync();
    if (threadIdx.x % 128 == 0)
        bulk_store(piece_at<T>(j, to, t.e, t.first(), t.column0), shared_address(from),
                   block_of<T, WIDE>::BYTES);
}

__device__ static inline void stores_wait() {
    if (threadIdx.x % 128 == 0) bulk_stores_wait();
}

// ---- forward ----

// u and v of a layer's columns (the head's: all of them), from its panels.
template <typename T, int OUT>
__device__ static void fold(const mlp &j, const void *panels, const float *bias, int outputs,
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
                ((const uint4 *)panels)[(int64_t)k * (OUT == THIN ? THIN : PANEL_OUT) * 8 + n * 8 +
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
        fold<T, THIN>(j, (const T *)j.head_panel + (int64_t)e * j.width * THIN,
                      j.head_b + e * j.out, j.out, below, to, to + THIN, e);
    } else {
        const mlp_layer &l = j.layer[layer];
        float *to = l.fold + (int64_t)e * 2 * j.width + column0;
        const char *panels = panel_part(j, l.w, e, j.width / of<T>::SPAN, column0, 0);
        fold<T, FOLD>(j, panels, l.b + e * j.width + column0, FOLD, below, to, to + j.width, e);
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
    auto panel = [&](int i) { f.ask_panel(j, t, r, i); };
    auto rows = [&](int i) { f.ask_rows(j, t, r, i); };
    r.start(steps, panel);
    upstream_wait();
    r.start(steps, rows);
    auto both = [&](int i) { panel(i), rows(i); };
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

// ---- thin products, at either end: 64 rows times at most 32 columns ----

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
    const char *panel =
        (const char *)(HEAD ? j.head_panel : j.dx_panel) + (int64_t)e * steps * THIN * LINE;
    auto ask_panel = [&](int i) {
        r.claim(i, THIN_STAGE);
        bulk_copy(r.address(i) + PIECE_BYTES, panel + i * THIN * LINE, THIN * LINE, r.barrier(i));
    };
    auto ask_rows = [&](int i) {
        bulk_copy(r.address(i), piece_at<T>(j, HEAD ? l.h : l.d, e, row0, i * of<T>::SPAN),
                  PIECE_BYTES, r.barrier(i));
    };
    r.start(steps, ask_panel);
    upstream_wait();
    downstream_start();
    r.start(steps, ask_rows);
    auto ask = [&](int i) { ask_panel(i), ask_rows(i); };
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

// ---- backward ----

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
        mma_turned<WIDE>(acc, factor(shared_address(p.factors) + k * 2048, 1024, PIECE_BYTES),
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
__device__ static void store_turned(const mlp &, const mlp_layer &, const tile<WIDE> &,
                                    const float *, const places<bf16, WIDE> &) {}

template <int WIDE>
__device__ static void store_turned(const mlp &j, const mlp_layer &l, const tile<WIDE> &t,
                                    const float *acc, const places<float, WIDE> &p) {
    enum { BYTES = WIDE * LINE }; // the tile's columns of 32 rows, which follow each other
    stores_wait();
    t.group_sync();
    char *out = p.out + t.row / TURNED_ROWS * BYTES;
#pragma unroll
    for (int i = 0; i < shape<WIDE>::EACH; i++)
        *(float *)(out + turned_place(t.row + i / 2 % 2 * 8, i / 4 * 8 + t.pair + i % 2)) =
            to_tf32(acc[i]);
    rows_written();
    t.group_sync();
    for (int i = 0; i < MLP_ROWS / TURNED_ROWS && threadIdx.x % 128 == 0; i++)
        bulk_store(turned_at(j, l.turned, t.e, t.first() + i * TURNED_ROWS, t.column0) +
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
            f.ask_panel(j, t, r, i);
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
        store_turned(j, l, t, acc, p);
    }
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

template <typename T, int WIDE, bool NORM>
__global__ static void __launch_bounds__(THREADS, BLOCKS)
    backward(const __grid_constant__ mlp j, int layer) {
#ifdef HOPPER
    run_backward<T, WIDE, NORM>(j, layer);
#endif
}

template <typename T, bool HEAD, bool NORM>
__global__ static void __launch_bounds__(THIN_THREADS) thin(const __grid_constant__ mlp j) {
#ifdef HOPPER
    run_thin<T, HEAD, NORM>(j);
#endif
}

// ---- launches ----

bool dc_mlp_fits(const dc_cuda *cuda, int width, int in) {
    return cuda->hopper && (width == 256 || width == 512 || width == 1024) && in <= width;
}

int dc_mlp_tiles(int e, int rows, int width) {
    return div_up(rows, MLP_TILE) * (width / COLUMNS) * e;
}

int dc_mlp_across(int width, bool few) {
    return width / (few && width / NARROW <= row_sums::MOST ? NARROW : COLUMNS);
}

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver is asked for by name, so that the program starts where there is none.
dc_status dc_mlp_map(mlp *j) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                        &result));
#else
    CU(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result));
#endif
    cuuint64_t sizes[2] = {(cuuint64_t)j->x.ld, (cuuint64_t)j->x.rows},
               stride = (cuuint64_t)j->x.ld * (j->tf32 ? 4 : 2);
    cuuint32_t box[2] = {(cuuint32_t)line_of(j->tf32), X_ROWS}, steps[2] = {1, 1};
    CUtensorMapDataType type =
        j->tf32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    CUresult done =
        result != cudaDriverEntryPointSuccess
            ? CUDA_ERROR_NOT_FOUND
            : ((encode_fn *)found)(&j->x_map, type, 2, j->x.p, sizes, &stride, box, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return dc_cuda_check(done == CUDA_SUCCESS ? cudaSuccess : cudaErrorNotSupported,
                         "cuTensorMapEncodeTiled(");
}

template <typename T, int WIDE, bool NORM>
static dc_status start_kind(dc_cuda *cuda, const mlp *j, bool back, int layer, int blocks) {
    bool early = back ? layer < j->layers - 1 : layer > 0;
    return launch(cuda, back ? backward<T, WIDE, NORM> : forward<T, WIDE, NORM>, dim3(blocks, j->e),
                  THREADS, shared_bytes<WIDE>(), 1, early, "network(", *j, layer);
}

template <typename T, int WIDE>
static dc_status start_layer(dc_cuda *cuda, const mlp *j, bool back, int layer, int blocks) {
    return j->norm ? start_kind<T, WIDE, true>(cuda, j, back, layer, blocks)
                   : start_kind<T, WIDE, false>(cuda, j, back, layer, blocks);
}

static dc_status start_any(dc_cuda *cuda, const mlp *j, bool back, int layer) {
    int rows = back ? j->hi - j->lo : j->x.rows,
        folds = back || layer || !j->norm ? 0 : (j->layers - 1) * (j->width / FOLD) + 1,
        blocks = div_up(rows, MLP_TILE) * j->across + folds;
    if (j->width / j->across == NARROW)
        return j->tf32 ? start_layer<float, NARROW>(cuda, j, back, layer, blocks)
                       : start_layer<bf16, NARROW>(cuda, j, back, layer, blocks);
    return j->tf32 ? start_layer<float, COLUMNS>(cuda, j, back, layer, blocks)
                   : start_layer<bf16, COLUMNS>(cuda, j, back, layer, blocks);
}

template <bool HEAD, bool NORM> static dc_status start_thin(dc_cuda *cuda, const mlp *j) {
    int blocks = div_up(HEAD ? j->x.rows : j->hi - j->lo, MLP_ROWS);
    return launch(cuda, j->tf32 ? thin<float, HEAD, NORM> : thin<bf16, HEAD, NORM>,
                  dim3(blocks, j->e), THIN_THREADS, THIN_BYTES, 1, true, "network(", *j);
}

dc_status dc_mlp_forward(dc_cuda *cuda, const mlp *j) {
    for (int i = 0; i < j->layers; i++)
        DC_TRY(start_any(cuda, j, false, i));
    return j->norm ? start_thin<true, true>(cuda, j) : start_thin<true, false>(cuda, j);
}

int dc_mlp_parts(const mlp *j) {
    return div_up(j->hi - j->lo, MLP_TILE);
}

dc_status dc_mlp_backward(dc_cuda *cuda, const mlp *j) {
    for (int i = j->layers - 1; i >= 0; i--)
        DC_TRY(start_any(cuda, j, true, i));
    return j->dx ? start_thin<false, true>(cuda, j) : DC_OK; // which no LayerNorm stands behind
}
