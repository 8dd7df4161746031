// mrn and mrn_pairs. A row's columns come in K chunks of two halves; d(x, y) is the mean over chunks of the largest of 0 and
// x - y in one half plus the length of x - y in the other (DC_MRN_TMD and DC_MRN_QRL say which, and how the length is kept
// from having no slope at 0).
//
// mrn: a warp takes a row, its lanes take columns of a half. Backward finds the largest differences again.
//
// mrn_pairs, from every row of x to every row of y, is a product of matrices in form, with another sum: tiles of rows of both
// lie in shared memory, transposed, a few columns at a time, and a thread has 4 x 4 pairs in registers, so that a number read
// serves four. Forward keeps of each pair and chunk what backward needs: where the largest difference is, and the length's
// slope. With these the gradient of a row is a sum over the rows that it meets, which a block takes for some rows and
// columns, in order: no atomics, the same bytes every time. It is a launch for each input.
#include "backend/cuda/plain.cuh"

struct mrn { // how columns are cut
    int chunks, chunk, half;
    int most, square; // where in a chunk the half of the largest difference begins, and the other
    bool qrl;
};

static mrn mrn_of(const plain *j) {
    int chunk = j->x[0].cols / (int)j->a, half = chunk / 2;
    bool qrl = j->b == DC_MRN_QRL;
    return mrn{(int)j->a, chunk, half, qrl ? half : 0, qrl ? 0 : half, qrl};
}

// The length, of a sum of squares. NaN stays NaN.
__device__ static inline float length_of(const mrn &s, float squares) {
    float kept = squares < 1e-12f ? 1e-12f : squares;
    return sqrtf(s.qrl ? kept : squares + 1e-6f);
}

// What x - y is multiplied by for its gradient; 0 where the length does not move.
__device__ static inline float slope_of(const mrn &s, float squares) {
    return s.qrl && squares < 1e-12f ? 0 : 1 / length_of(s, squares);
}

__device__ static inline const float *row_at(const tensor &t, int e, int64_t r) {
    return (const float *)t.p + (t.e == 1 ? 0 : e * t.step) + r * t.ld;
}

// ---- mrn ----

struct part { // of a distance: what a chunk gives
    float most, squares;
    int first; // column of the half, the first of equals; -1: no difference is above 0
    float bad; // 0, or NaN where a difference is NaN or Inf
};

// The same for all lanes of a warp.
__device__ static inline part part_of(const mrn &s, const float *x, const float *y) {
    part t = {0, 0, -1, 0};
    for (int c = threadIdx.x & 31; c < s.half; c += 32) {
        float v = x[s.most + c] - y[s.most + c], w = x[s.square + c] - y[s.square + c];
        t.squares += w * w;
        t.bad += 0 * v;
        if (v > t.most) {
            t.most = v;
            t.first = c;
        }
    }
    t.squares = warp_sum(t.squares);
    t.bad = warp_sum(t.bad);
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        float most = __shfl_xor_sync(~0u, t.most, d);
        int first = __shfl_xor_sync(~0u, t.first, d);
        if (most > t.most || (most == t.most && first < t.first)) {
            t.most = most;
            t.first = first;
        }
    }
    return t;
}

__device__ static inline int64_t warp_row() {
    return (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / 32;
}

__global__ static void row_forward(plain j, mrn s) {
    int64_t r = warp_row();
    int e = blockIdx.y;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    const float *x = row_at(j.x[0], e, r), *y = row_at(j.x[1], e, r);
    float sum = 0;
    for (int k = 0; k < s.chunks; k++) {
        part t = part_of(s, x + k * s.chunk, y + k * s.chunk);
        sum += t.most + length_of(s, t.squares) + t.bad;
    }
    if ((threadIdx.x & 31) == 0) *(float *)row_at(j.y, e, r) = sum / (float)s.chunks;
}

__global__ static void row_backward(plain j, mrn s) {
    int64_t r = warp_row();
    int e = blockIdx.y;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    float g = *row_at(j.dy, e, r) / (float)s.chunks;
    if (j.input) g = -g;
    for (int k = 0; k < s.chunks; k++) {
        const float *x = row_at(j.x[0], e, r) + k * s.chunk,
                    *y = row_at(j.x[1], e, r) + k * s.chunk;
        float *to = (float *)row_at(j.y, e, r) + k * s.chunk;
        part t = part_of(s, x, y);
        float slope = g * slope_of(s, t.squares);
        for (int c = threadIdx.x & 31; c < s.half; c += 32) {
            float most = c == t.first ? g : 0, square = slope * (x[s.square + c] - y[s.square + c]);
            to[s.most + c] = j.add ? to[s.most + c] + most : most;
            to[s.square + c] = j.add ? to[s.square + c] + square : square;
        }
    }
}

// ---- mrn_pairs ----

// Rows and columns that lie in shared memory at a time; a line of rows is padded, so that fewer banks are asked twice.
enum { TILE = 64, SLICE = 32, LINE_OF_ROWS = TILE + 4, LINE_OF_COLUMNS = SLICE + 4 };
enum { FORWARD_THREADS = TILE / 4 * TILE / 4, BACKWARD_THREADS = TILE / 4 * SLICE / 4 };
typedef float slab[SLICE][LINE_OF_ROWS]; // by column

// What forward keeps of pair (j, i) and chunk k; i: row of x, j: row of y.
__device__ static inline int64_t kept_at(const mrn &s, int e, int members, int64_t j, int64_t i,
                                         int n, int k) {
    return ((j * members + e) * s.chunks + k) * n + i;
}

// to = columns [0, cols) of rows first ... first + TILE - 1, zeros where there are none.
__device__ static inline void load_slab(slab to, const tensor &t, int e, int first, int column,
                                        int cols) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += FORWARD_THREADS) {
        int c = i % SLICE, r = i / SLICE;
        bool there = first + r < t.rows && c < cols;
        to[c][r] = there ? row_at(t, e, first + r)[column + c] : 0;
    }
}

// The larger, or NaN.
__device__ static inline float larger(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
#else
    return a > b || a != a ? a : b;
#endif
}

struct quads { // of 4 x 4 pairs, by row of y, then of x
    float most[4][4], squares[4][4];
    int first[4][4];
};

__device__ static inline void load_quad(const float *line, int at, float v[4]) {
    float4 four = *(const float4 *)(line + at);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

// Column `c` of the half, whose slices' line `line` is in shared memory.
template <bool KEEP>
__device__ static inline void meet(quads &q, const slab *x, const slab *y, int line, int c) {
    int tx = threadIdx.x % (TILE / 4) * 4, ty = threadIdx.x / (TILE / 4) * 4;
    float xs[4], ys[4];
    load_quad(x[0][line], tx, xs);
    load_quad(y[0][line], ty, ys);
#pragma unroll
    for (int k = 0; k < 16; k++) {
        float v = xs[k % 4] - ys[k / 4], &most = q.most[k / 4][k % 4];
        if (KEEP && v > most) q.first[k / 4][k % 4] = c;
        most = larger(v, most);
    }
    load_quad(x[1][line], tx, xs);
    load_quad(y[1][line], ty, ys);
#pragma unroll
    for (int k = 0; k < 16; k++) {
        float v = xs[k % 4] - ys[k / 4];
        q.squares[k / 4][k % 4] += v * v;
    }
}

__device__ static inline void keep_chunk(const plain &j, const mrn &s, const quads &q, int e,
                                         int i0, int j0, int k) {
#pragma unroll
    for (int m = 0; m < 16; m++) {
        int row = j0 + m / 4, col = i0 + m % 4;
        if (row >= j.y.rows || col >= j.y.cols) continue;
        int64_t at = kept_at(s, e, j.y.e, row, col, j.y.cols, k);
        j.kept[at] = slope_of(s, q.squares[m / 4][m % 4]);
        j.which[at] = (int16_t)q.first[m / 4][m % 4];
    }
}

// A block makes TILE x TILE pairs: rows of x along blockIdx.x, rows of y along blockIdx.y.
template <bool KEEP>
__global__ static void __launch_bounds__(FORWARD_THREADS) pairs_forward(plain j, mrn s) {
    __shared__ __align__(16) slab x[2], y[2]; // the half of largest differences, the other
    int e = blockIdx.z, x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
    int i0 = x0 + threadIdx.x % (TILE / 4) * 4, j0 = y0 + threadIdx.x / (TILE / 4) * 4;
    float sum[4][4] = {};
    upstream_wait();
    downstream_start();
    for (int k = 0; k < s.chunks; k++) {
        quads q = {};
#pragma unroll
        for (int m = 0; m < 16; m++)
            q.first[m / 4][m % 4] = -1;
        for (int c = 0; c < s.half; c += SLICE) {
            int cols = min(SLICE, s.half - c), at = k * s.chunk + c;
            __syncthreads();
            load_slab(x[0], j.x[0], e, x0, at + s.most, cols);
            load_slab(y[0], j.x[1], e, y0, at + s.most, cols);
            load_slab(x[1], j.x[0], e, x0, at + s.square, cols);
            load_slab(y[1], j.x[1], e, y0, at + s.square, cols);
            __syncthreads();
            for (int line = 0; line < cols; line++)
                meet<KEEP>(q, x, y, line, c + line);
        }
        if constexpr (KEEP) keep_chunk(j, s, q, e, i0, j0, k);
#pragma unroll
        for (int m = 0; m < 16; m++)
            sum[m / 4][m % 4] += q.most[m / 4][m % 4] + length_of(s, q.squares[m / 4][m % 4]);
    }
#pragma unroll
    for (int m = 0; m < 16; m++)
        if (j0 + m / 4 < j.y.rows && i0 + m % 4 < j.y.cols)
            ((float *)row_at(j.y, e, j0 + m / 4))[i0 + m % 4] = sum[m / 4][m % 4] / (float)s.chunks;
}

// ---- its gradients: `own` rows get them, the `other` rows are what they meet ----

struct meeting {                         // shared memory of a block: SLICE others at a time
    float weight[SLICE][LINE_OF_ROWS];   // of an other and an own row
    int which[SLICE][LINE_OF_ROWS];      // column of the largest difference
    float other[SLICE][LINE_OF_COLUMNS]; // columns of the others
};

struct patch {                // rows and columns that a block has
    int e, row, column, cols; // first row of own; first column; columns, at most SLICE
    int k, half_column;       // chunk; first column within the half
    bool squares;             // of which half
};

// blockIdx.y: chunk, half, slice of it.
__device__ static inline patch my_patch(const mrn &s) {
    int slices = (s.half + SLICE - 1) / SLICE, at = blockIdx.y % slices * SLICE,
        half = blockIdx.y / slices;
    patch p = {(int)blockIdx.z, (int)blockIdx.x * TILE, 0, min(SLICE, s.half - at), half / 2, at,
               half % 2 == 1};
    p.column = p.k * s.chunk + (p.squares ? s.square : s.most) + at;
    return p;
}

// Weights of others o0 ... o0 + SLICE - 1 with the block's rows: what of dy reaches a difference.
__device__ static inline void load_weights(meeting &m, const plain &j, const mrn &s, const patch &p,
                                           int o0) {
    bool own_is_x = j.input == 0;
    int n = j.x[0].rows, others = own_is_x ? j.dy.rows : n, owns = own_is_x ? n : j.dy.rows;
    float share = (own_is_x || p.squares ? 1 : -1) / (float)s.chunks;
    for (int i = threadIdx.x; i < SLICE * TILE; i += BACKWARD_THREADS) {
        // Neighbours in a warp are neighbours in memory: rows of x.
        int o = own_is_x ? i / TILE : i % SLICE, r = own_is_x ? i % TILE : i / SLICE;
        int own = p.row + r, other = o0 + o, x = own_is_x ? own : other, y = own_is_x ? other : own;
        bool there = own < owns && other < others;
        int64_t at = there ? kept_at(s, p.e, j.x[0].e, j.lo + y, x, n, p.k) : 0;
        float g = there ? share * row_at(j.dy, p.e, y)[x] : 0;
        if (p.squares)
            m.weight[o][r] = there ? g * j.kept[at] : 0;
        else
            m.weight[o][r] = g;
        if (!p.squares) m.which[o][r] = there ? j.which[at] - p.half_column : -1;
    }
}

__device__ static inline void load_others(meeting &m, const tensor &t, const patch &p, int o0) {
    for (int i = threadIdx.x; i < SLICE * SLICE; i += BACKWARD_THREADS) {
        int o = i / SLICE, c = i % SLICE;
        bool there = o0 + o < t.rows && c < p.cols;
        m.other[o][c] = there ? row_at(t, p.e, o0 + o)[p.column + c] : 0;
    }
}

__global__ static void __launch_bounds__(BACKWARD_THREADS) pairs_backward(plain j, mrn s) {
    __shared__ __align__(16) meeting m;
    patch p = my_patch(s);
    tensor own = j.x[j.input], other = j.x[1 - j.input];
    int ty = threadIdx.x / (SLICE / 4) * 4, tx = threadIdx.x % (SLICE / 4) * 4;
    float mine[4][4], sum[4][4] = {};
    upstream_wait();
    downstream_start();
#pragma unroll
    for (int k = 0; k < 16; k++) {
        int r = p.row + ty + k / 4, c = tx + k % 4;
        mine[k / 4][k % 4] = r < own.rows && c < p.cols ? row_at(own, p.e, r)[p.column + c] : 0;
    }
    for (int o0 = 0; o0 < other.rows; o0 += SLICE) {
        __syncthreads();
        load_weights(m, j, s, p, o0);
        if (p.squares) load_others(m, other, p, o0);
        __syncthreads();
        for (int o = 0; o < SLICE; o++) {
            float weight[4], theirs[4];
            load_quad(m.weight[o], ty, weight);
            if (p.squares) {
                load_quad(m.other[o], tx, theirs);
#pragma unroll
                for (int k = 0; k < 16; k++)
                    sum[k / 4][k % 4] += weight[k / 4] * (mine[k / 4][k % 4] - theirs[k % 4]);
            } else {
                int4 which = *(const int4 *)&m.which[o][ty];
                int at[4] = {which.x, which.y, which.z, which.w};
#pragma unroll
                for (int k = 0; k < 16; k++)
                    if (at[k / 4] == tx + k % 4) sum[k / 4][k % 4] += weight[k / 4];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < 16; k++) {
        int r = p.row + ty + k / 4, c = tx + k % 4;
        if (r >= own.rows || c >= p.cols) continue;
        float *to = (float *)row_at(j.y, p.e, r) + p.column + c;
        *to = j.add ? *to + sum[k / 4][k % 4] : sum[k / 4][k % 4];
    }
}

// ---- launches ----

static dc_status rows(dc_cuda *cuda, const plain *j) {
    dim3 grid((unsigned)div_up(j->y.rows, PLAIN_WARPS), (unsigned)j->y.e);
    return launch(cuda, j->input < 0 ? row_forward : row_backward, grid, PLAIN_THREADS, 0, 1, false,
                  "mrn(", *j, mrn_of(j));
}

static dc_status forward(dc_cuda *cuda, const plain *j) {
    dim3 grid((unsigned)div_up(j->y.cols, TILE), (unsigned)div_up(j->y.rows, TILE),
              (unsigned)j->y.e);
    return launch(cuda, j->kept ? pairs_forward<true> : pairs_forward<false>, grid, FORWARD_THREADS,
                  0, 1, false, "mrn_pairs(", *j, mrn_of(j));
}

static dc_status backward(dc_cuda *cuda, const plain *j) {
    mrn s = mrn_of(j);
    const tensor &own = j->x[j->input];
    DC_CHECK(j->kept && own.rows == j->y.rows);
    dim3 grid((unsigned)div_up(own.rows, TILE), (unsigned)(s.chunks * 2 * div_up(s.half, SLICE)),
              (unsigned)own.e);
    return launch(cuda, pairs_backward, grid, BACKWARD_THREADS, 0, 1, false, "mrn_pairs(", *j, s);
}

plain_fn *dc_plain_mrn(dc_op op, bool back) {
    if (op == DC_OP_mrn) return rows;
    if (op == DC_OP_mrn_pairs) return back ? backward : forward;
    return NULL;
}
