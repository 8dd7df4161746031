// dW of layers of a network that mlp.cu ran: tiles of 128 inputs and 128 outputs, whose weights are updated on the spot if
// that is wanted (decision 50). Blocks of a cluster share the rows of a tile and add up in order. A layer read rows
// X = (h' - mean scale) / std + shift of which the pieces hold h' alone, and d = dz / std: so
// dW = h'^T d - scale (mean^T d) + shift (1^T dz). Without LayerNorm h' is X, and d is dz.
#include "backend/cuda/mlp.cuh"
#include "backend/cuda/update.cuh"

#include <cooperative_groups.h>

enum { DW_STAGES = 3, DW_STAGE = 4 * PIECE_BYTES, DW_THREADS = 256, DW_BLOCKS = 2 };
template <typename T> struct chunk { // of rows, that a stage holds; pieces of 128 columns
    enum {
        ROWS = sizeof(T) == 2 ? (int)MLP_ROWS : (int)TRANSPOSED_ROWS,
        PIECES = COLUMNS / (int)of<T>::SPAN,
        BYTES = ROWS * LINE
    };
};
struct dw_scratch { // beside the ring
    float mean[COLUMNS], all[COLUMNS], scale[COLUMNS], shift[COLUMNS];
    uint64_t barriers[2 * DW_STAGES];
};
enum { DW_BYTES = DW_STAGES * DW_STAGE + sizeof(dw_scratch) };
static_assert(2 * chunk<bf16>::PIECES * chunk<bf16>::BYTES <= DW_STAGE &&
                  chunk<float>::PIECES * chunk<float>::BYTES + TRANSPOSED_BYTES <= DW_STAGE,
              "a stage holds a chunk of X and of d");
static_assert(COLUMNS * COLUMNS * sizeof(float) <= DW_STAGES * DW_STAGE,
              "the ring holds the shares of a tile (gather_shares)");
static_assert(shared_holds(DW_BLOCKS, DW_BYTES), "a multiprocessor holds DW_BLOCKS");

#ifdef HOPPER
template <typename T> using dw_ring = ring<DW_STAGES, DW_STAGE, sizeof(T) == 2 ? 1 : 32>;

struct dw_tile {
    int layer, e, in0, out0, chunks, first; // chunks of this block
};

template <typename T, int SPLIT>
__device__ static dw_tile find_tile(const mlp &j, int first_layer) {
    int at = blockIdx.x, i = first_layer, across = j.width / COLUMNS;
    for (;; i++) {
        int tiles = div_up(j.layer[i].in, COLUMNS) * across;
        if (at < tiles) break;
        at -= tiles;
    }
    int all = div_up(j.hi - j.lo, chunk<T>::ROWS), each = div_up(all, SPLIT),
        first = blockIdx.z * each;
    return dw_tile{
        i,    (int)blockIdx.y, at / across * COLUMNS, at % across * COLUMNS, min(each, all - first),
        first};
}

// A chunk: 128 columns of X, and of d. A first layer may have fewer columns than a tile.
template <typename T>
__device__ static void ask_chunk(const mlp &j, const dw_tile &t, const dw_ring<T> &r, int c) {
    enum { ROWS = chunk<T>::ROWS, PIECES = chunk<T>::PIECES, BYTES = chunk<T>::BYTES };
    const mlp_layer &l = j.layer[t.layer];
    int row = j.lo + (t.first + c) * ROWS, inside = row % MLP_ROWS * LINE,
        there = min(PIECES, (l.in_pad - t.in0) / of<T>::SPAN);
    uint32_t at = r.address(c), barrier = r.barrier(c);
    r.claim(c, (PIECES + there) * BYTES);
    if (!t.layer) {
        for (int k = 0; k < there; k++)
            ask_x<ROWS>(j, at + k * BYTES, t.in0 + k * of<T>::SPAN, row, barrier);
    } else if (ROWS == MLP_ROWS) { // pieces follow each other
        bulk_copy(at, piece_at<T>(j, j.layer[t.layer - 1].h, t.e, row, t.in0), PIECES * BYTES,
                  barrier);
    } else {
        char *from = piece_at<T>(j, j.layer[t.layer - 1].h, t.e, row, t.in0) + inside;
        for (int k = 0; k < PIECES; k++)
            bulk_copy(at + k * BYTES, from + k * PIECE_BYTES, BYTES, barrier);
    }
    bulk_copy(at + PIECES * BYTES,
              ROWS == MLP_ROWS ? piece_at<T>(j, l.d, t.e, row, t.out0)
                               : transposed_at(j, l.transposed, t.e, row, t.out0),
              PIECES * BYTES, barrier);
}

// What turns h' into X: sums over all rows, of the tile's columns, and LayerNorm's numbers of its inputs.
__device__ static void load_corrections(const mlp &j, const dw_tile &t, dw_scratch *s) {
    if (!j.norm) return;
    const mlp_layer &l = j.layer[t.layer];
    int c = threadIdx.x % COLUMNS, kind = threadIdx.x / COLUMNS ? D_B : D_MEAN;
    float sum = 0;
    const float *p = l.parts + ((int64_t)t.e * j.parts * MLP_SUMS + kind) * j.width + t.out0 + c;
#pragma unroll 4
    for (int i = 0; t.layer && i < j.parts; i++)
        sum += p[(int64_t)i * MLP_SUMS * j.width];
    (kind == D_B ? s->all : s->mean)[c] = sum;
    if (!t.layer) return;
    const float *norm = j.layer[t.layer - 1].norm + (int64_t)t.e * 2 * j.width + t.in0 + c;
    if (kind == D_B)
        s->shift[c] = norm[j.width];
    else
        s->scale[c] = norm[0];
}

// Blocks of a cluster have sums over different rows: each adds up its part of the tile, in order, which is
// numbers [rank * 64 / SPLIT, (rank + 1) * 64 / SPLIT) of the 64 that a thread has.
template <int SPLIT> __device__ static void gather_shares(float acc[64], char *shared, int rank) {
    enum { EACH = 64 / SPLIT };
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    cluster.sync(); // nobody reads its chunks any more
#pragma unroll
    for (int r = 0; r < SPLIT; r++) {
        float *there = (float *)cluster.map_shared_rank(shared, r) + rank * EACH * DW_THREADS;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            there[i * DW_THREADS + threadIdx.x] = acc[r * EACH + i];
    }
    cluster.sync();
#pragma unroll
    for (int r = 0; r < SPLIT; r++)
#pragma unroll
        for (int i = 0; i < EACH && r == rank; i++) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < SPLIT; k++)
                sum += ((float *)shared)[(k * EACH + i) * DW_THREADS + threadIdx.x];
            acc[r * EACH + i] = sum;
        }
}

// acc += X^T d for a chunk's rows: a group of four warps has 64 inputs and all outputs of the tile.
template <typename T> struct tile_product;
template <> struct tile_product<bf16> {
    __device__ void run(float acc[64], const dw_ring<bf16> &r, int c) const {
        uint32_t x = r.address(c) + threadIdx.x / 128 * PIECE_BYTES,
                 d = r.address(c) + 2 * PIECE_BYTES;
#pragma unroll
        for (int k = 0; k < MLP_ROWS / 16; k++)
            mma_transposed<COLUMNS>(acc, factor(x + k * 2048, 1024, PIECE_BYTES),
                                    factor(d + k * 2048, 1024, PIECE_BYTES), c || k);
    }
};

// TF32's products take no transposed factor from shared memory. So X goes through registers, and backward leaves d
// transposed. Of eight rows lane t (of four) takes 2t and 2t + 1, see transposed_place.
template <> struct tile_product<float> {
    int at[4]; // of a lane's four numbers in the first eight rows
    __device__ tile_product() {
        int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[i] = warp / 2 * chunk<float>::BYTES +
                    place<float>(lane % 4 * 2 + i / 2, warp % 2 * 16 + i % 2 * 8 + lane / 4);
    }
    __device__ void run(float acc[64], const dw_ring<float> &r, int c) const {
        float x[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[k][i] = *(const float *)(r.memory(c) + k * 8 * LINE + at[i]);
        products_begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            mma_held(acc, x[k], factor(r.address(c) + TRANSPOSED_BYTES + k * 32, 1024, 16), c || k);
        products_end();
        products_wait<0>(); // x is free again
    }
};

// ---- the update of a tile's weights ----

// What a block has of a tile, in the ring's memory: the gradient, and in its place the new weights as they are packed.
// Of bf16 both the weights and their EMA go into the place of a gradient, four numbers at a time; of TF32 the EMA has its
// own, for ROWS rows.
template <typename T, int SPLIT> struct tile_share {
    enum {
        WIDE = COLUMNS / SPLIT,
        LD = (WIDE + 4) * sizeof(float), // bytes between rows
        ROWS = sizeof(T) == 2 || SPLIT > 1 ? COLUMNS : TRANSPOSED_ROWS,
        BYTES = (COLUMNS + (sizeof(T) == 2 ? 0 : ROWS)) * LD,
    };
    char *p;
    __device__ float *gradient(int row, int c) const { return (float *)(p + row * LD) + c; }
    __device__ T *live(int row, int c) const { return (T *)(p + row * LD + c / 4 * 16) + c % 4; }
    __device__ T *ema(int row, int c) const {
        return sizeof(T) == 2 ? live(row, c) + 4 : live(COLUMNS + row % ROWS, c);
    }
    static_assert(BYTES <= DW_STAGES * DW_STAGE, "a tile has its place in the ring");
};

// Where the block's share lies among the weights.
struct weight_place {
    const update_job &u;
    const rates &r;
    const mlp_layer &l;
    int64_t offset; // of its first number
    int e, in0, out0, width;
    bool ema; // there are target weights
};

template <typename T, int SPLIT>
__device__ static void update_rows(const weight_place &w, const tile_share<T, SPLIT> &s, int row0) {
    typedef tile_share<T, SPLIT> share;
    enum { EACH = share::WIDE / 4, AT_ONCE = 2 };
    static_assert(share::ROWS * EACH % (AT_ONCE * DW_THREADS) == 0, "threads have the same to do");
    for (int i0 = threadIdx.x; i0 < s.ROWS * EACH; i0 += AT_ONCE * DW_THREADS) {
        float4 g[AT_ONCE], p[AT_ONCE], m[AT_ONCE], v[AT_ONCE], e[AT_ONCE];
        auto row = [&](int k) { return row0 + (i0 + k * DW_THREADS) / EACH; };
        auto column = [&](int k) { return (i0 + k * DW_THREADS) % EACH * 4; };
        auto at = [&](int k) { return (w.offset + (int64_t)row(k) * w.width + column(k)) / 4; };
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            g[k] = *(float4 *)s.gradient(row(k), column(k)); // whose place is taken below
            p[k] = ((float4 *)w.u.live)[at(k)];
            m[k] = ((float4 *)w.u.m)[at(k)];
            v[k] = ((float4 *)w.u.v)[at(k)];
            e[k] = w.ema ? ((float4 *)w.u.ema)[at(k)] : p[k];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            e[k] = pull_all(w.r, e[k], p[k]);
            step_of(w.r, g[k], &p[k], &m[k], &v[k]);
            if (w.ema) ((float4 *)w.u.ema)[at(k)] = e[k];
            ((float4 *)w.u.live)[at(k)] = p[k];
            ((float4 *)w.u.m)[at(k)] = m[k];
            ((float4 *)w.u.v)[at(k)] = v[k];
            round_to(s.live(row(k), column(k)), p[k]);
            round_to(s.ema(row(k), column(k)), e[k]);
        }
    }
}

// Columns of the share are the packed matrix's rows; a thread makes 16 bytes, two threads a sector.
template <typename T, int SPLIT, typename C>
__device__ static void store_down(const weight_place &w, const tile_share<T, SPLIT> &s, int row0,
                                  void *to, C cell) {
    enum { EACH = 16 / sizeof(T) };
    for (int i = threadIdx.x; i < s.ROWS / EACH * s.WIDE; i += DW_THREADS) {
        int c = i / 2 % s.WIDE, row = row0 + (i / (2 * s.WIDE) * 2 + i % 2) * EACH;
        alignas(16) T v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            v[k] = *cell(row + k, c);
        *packed_place<T>(to, w.width, w.width, w.e, w.out0 + c, w.in0 + row) = *(uint4 *)v;
    }
}

// Rows of the share are.
template <typename T, int SPLIT>
__device__ static void store_along(const weight_place &w, const tile_share<T, SPLIT> &s, int row0) {
    enum { EACH = 16 / sizeof(T) };
    struct alignas(4 * sizeof(T)) four {
        T v[4];
    };
    for (int i = threadIdx.x; i < s.ROWS * s.WIDE / EACH; i += DW_THREADS) {
        int row = row0 + i / (s.WIDE / EACH), c = i % (s.WIDE / EACH) * EACH;
        alignas(16) four v[EACH / 4];
#pragma unroll
        for (int k = 0; k < EACH / 4; k++)
            v[k] = *(const four *)s.live(row, c + 4 * k);
        *packed_place<T>(w.l.wt, w.width, w.width, w.e, w.in0 + row, w.out0 + c) = *(uint4 *)v;
    }
}

// Adam and EMA of the share, whose gradient is there, and its packed weights.
template <typename T, int SPLIT>
__device__ static void update_share(const weight_place &w, const tile_share<T, SPLIT> &s) {
    for (int row0 = 0; row0 < COLUMNS; row0 += s.ROWS) {
        __syncthreads();
        update_rows(w, s, row0);
        __syncthreads();
        store_down(w, s, row0, w.l.w, [&](int row, int c) { return s.live(row, c); });
        if (w.l.ema) store_down(w, s, row0, w.l.ema, [&](int r, int c) { return s.ema(r, c); });
        store_along(w, s, row0);
    }
}

// ---- the whole of it ----

template <typename T, int SPLIT>
__device__ static void run_weights(const mlp &j, int first_layer, double *norms,
                                   const update_job &u) {
    extern __shared__ __align__(1024) char shared[];
    dw_tile t = find_tile<T, SPLIT>(j, first_layer);
    dw_scratch *s = (dw_scratch *)(shared + DW_STAGES * DW_STAGE);
    dw_ring<T> r(shared, s->barriers, DW_THREADS / 32);
    const mlp_layer &l = j.layer[t.layer];
    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        acc[i] = 0;
    auto ask = [&](int c) { ask_chunk<T>(j, t, r, c); };
    tile_product<T> product;
    int rank = blockIdx.z, lane = threadIdx.x & 31;
    if (!u.plan) upstream_wait(); // else what it reads was there before whom it follows
    r.start(t.chunks, ask);
    load_corrections(j, t, s);
    r.run(t.chunks, t.chunks, ask, [&](int c) { product.run(acc, r, c); });
    if (!u.plan) downstream_start();
    if (SPLIT > 1)
        gather_shares<SPLIT>(acc, shared, rank);
    else
        __syncthreads();
    if (u.plan) upstream_wait();
    bool counts = u.plan && u.plan->go;
    tile_share<T, SPLIT> share = {shared};
    int64_t first = ((int64_t)t.e * l.in + t.in0) * j.width + t.out0;
    float *out = l.dw + first, squares = 0;
    if (u.plan) __syncthreads(); // nobody reads others' shares any more
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        int row = threadIdx.x / 32 * 16 + i / 2 % 2 * 8 + lane / 4, c = i / 4 * 8 + lane % 4 * 2;
        if (i / (64 / SPLIT) != rank || t.in0 + row >= l.in) continue;
        float2 v = make_float2(acc[i], acc[i + 1]);
        if (t.layer && j.norm) {
            float scale = s->scale[row], shift = s->shift[row];
            v.x += shift * s->all[c] - scale * s->mean[c];
            v.y += shift * s->all[c + 1] - scale * s->mean[c + 1];
        }
        if (!u.plan)
            *(float2 *)(out + (int64_t)row * j.width + c) = v;
        else
            *(float2 *)share.gradient(row, c % share.WIDE) = v;
        squares += v.x * v.x + v.y * v.y;
    }
    double sum = block_sum(squares);
    if (threadIdx.x == 0)
        norms[((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = sum;
    int64_t offset = out - u.grad;
    if (!counts || offset < u.plan->from || offset >= u.plan->to) return;
    int out0 = t.out0 + rank * share.WIDE;
    rates rate = u.plan->r;
    update_share(weight_place{u, rate, l, offset + rank * share.WIDE, t.e, t.in0, out0, j.width,
                              offset < u.ema_size},
                 share);
}

// ---- the head's, where it has several outputs ----

// A thread has an input, a block as many rows as dc_head_parts counts.
template <typename T> __device__ static void run_head_weights(const mlp &j, float *parts) {
    __shared__ float2 stats[HEAD_ROWS];
    __shared__ float dy[HEAD_ROWS][HEAD_MAX];
    int k = blockIdx.x * blockDim.x + threadIdx.x, e = blockIdx.z, out = j.out;
    int from = j.lo + blockIdx.y * HEAD_ROWS, rows = min(HEAD_ROWS, j.hi - from);
    const mlp_layer &l = j.layer[j.layers - 1];
    upstream_wait();
    downstream_start();
    if (j.norm && (int)threadIdx.x < 2 * HEAD_ROWS) {
        row_sums sums;
        sums.ask(j, l.stats, e, from + threadIdx.x / 2);
        stats[threadIdx.x / 2] = sums.finish_stats(j);
    }
    for (int i = threadIdx.x; i < HEAD_ROWS * out; i += blockDim.x) {
        int64_t row = (int64_t)e * (j.hi - j.lo) + from - j.lo + i / out;
        dy[i / out][i % out] = i / out < rows ? j.dy[row * out + i % out] : 0;
    }
    __syncthreads();
    float *part = parts + ((int64_t)e * gridDim.y + blockIdx.y) * ((int64_t)j.width * out + out);
    float scale = j.norm ? l.scale[e * j.width + k] : 0,
          shift = j.norm ? l.shift[e * j.width + k] : 0;
    const char *piece = piece_at<T>(j, l.h, e, from / MLP_ROWS * MLP_ROWS, k);
    float x[HEAD_ROWS]; // rows past the end have no gradient, and are finite
#pragma unroll
    for (int r = 0; r < HEAD_ROWS; r++)
        x[r] = (float)*(const T *)(piece + place<T>(from % MLP_ROWS + r, k % of<T>::SPAN));
    if (j.norm)
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++)
            x[r] = (x[r] - stats[r].x * scale) * stats[r].y + shift;
    for (int o = 0; o < out; o++) {
        float sum = 0;
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++)
            sum += x[r] * dy[r][o];
        part[(int64_t)k * out + o] = sum;
    }
    if (k >= out) return;
    float sum = 0; // the bias
    for (int r = 0; r < HEAD_ROWS; r++)
        sum += dy[r][k];
    part[(int64_t)j.width * out + k] = sum;
}
#endif // HOPPER

template <typename T, int SPLIT>
__global__ static void __launch_bounds__(DW_THREADS, DW_BLOCKS)
    weight_gradients(const __grid_constant__ mlp j, int first_layer, double *norms,
                     const __grid_constant__ update_job u) {
#ifdef HOPPER
    run_weights<T, SPLIT>(j, first_layer, norms, u);
#endif
}

template <typename T>
__global__ static void __launch_bounds__(128)
    head_weights(const __grid_constant__ mlp j, float *parts) {
#ifdef HOPPER
    run_head_weights<T>(j, parts);
#endif
}

// A launch takes the first layer, whose input is there until the next step's comes, or all the others.
static int weight_tiles(const mlp *j, bool first) {
    int tiles = 0;
    for (int i = first ? 0 : 1; i < (first ? 1 : j->layers); i++)
        tiles += div_up(j->layer[i].in, COLUMNS) * (j->width / COLUMNS);
    return tiles;
}

// Blocks share the rows of a tile where there are few, so that it does not take long; not where other things go on beside
// it, whose blocks would find no room. (Members of a population split as single runs do, so as to have their bytes.)
static int split_for(const mlp *j, int tiles, bool first) {
    int chunks = div_up(j->hi - j->lo, MLP_ROWS), most = MULTIPROCESSORS;
    if (!first) most = j->early ? 0 : MULTIPROCESSORS / 2;
    tiles *= j->e;
    return chunks >= 16 && tiles * 4 <= most ? 4 : chunks >= 8 && tiles * 2 <= most ? 2 : 1;
}

static int weight_blocks(const mlp *j, bool first) {
    int tiles = weight_tiles(j, first);
    return tiles * j->e * split_for(j, tiles, first);
}

int dc_mlp_weight_blocks(const mlp *j) {
    return weight_blocks(j, true) + weight_blocks(j, false);
}

template <int SPLIT>
static dc_status start(dc_cuda *cuda, const mlp *j, bool first, const update_job *u) {
    double *norms = j->norms + (first ? 0 : weight_blocks(j, true));
    return launch(cuda, j->tf32 ? weight_gradients<float, SPLIT> : weight_gradients<bf16, SPLIT>,
                  dim3(weight_tiles(j, first), j->e, SPLIT), DW_THREADS, DW_BYTES, SPLIT, false,
                  "network(", *j, first ? 0 : 1, norms, *u);
}

dc_status dc_mlp_weights(dc_cuda *cuda, const mlp *j, bool first, const update_job *update) {
    static const update_job none = {};
    const update_job *u = update ? update : &none;
    int tiles = weight_tiles(j, first), split = split_for(j, tiles, first);
    if (!tiles) return DC_OK;
    return split == 4   ? start<4>(cuda, j, first, u)
           : split == 2 ? start<2>(cuda, j, first, u)
                        : start<1>(cuda, j, first, u);
}

dc_status dc_mlp_head_weights(dc_cuda *cuda, const mlp *j, float *parts) {
    int count = dc_head_parts(j->hi - j->lo);
    return launch(cuda, j->tf32 ? head_weights<float> : head_weights<bf16>,
                  dim3(j->width / 128, count, j->e), 128, 0, 1, false, "network(", *j, parts);
}
