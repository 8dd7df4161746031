// What the kernels of hidden layers share (mlp_forward.cu, mlp_backward.cu): a block makes a tile of 128 columns (WIDE; 64 where
// tiles are few, so that twice as many blocks have half the work each), and what LayerNorm needs of whole rows is put off
// until the next layer (internal.cuh says how). Groups of four warps have 64 rows of the tile each. All that lies in memory
// is the same for both widths, but for a network's own sums over a row and what it keeps for backward: a network has one
// width. Kernels for networks without LayerNorm (NORM false) are compiled apart, and leave out all that serves it.
#ifndef DC_CUDA_MLP_TILE_CUH
#define DC_CUDA_MLP_TILE_CUH

#include "backend/cuda/mlp_numbers.cuh"

enum {
    GROUPS = MLP_TILE / MLP_ROWS,
    THREADS = GROUPS * 128,
    BLOCKS = 2, // that a multiprocessor holds
};

template <int WIDE> struct shape {
    enum {
        PACK_BYTES = WIDE * LINE, // of a pack, what the tile reads
        STAGE = GROUPS * PIECE_BYTES + PACK_BYTES,
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

static_assert(shared_holds(BLOCKS, shared_bytes<COLUMNS>()) &&
                  shared_holds(BLOCKS, shared_bytes<NARROW>()),
              "a multiprocessor holds BLOCKS");

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

// The tile's part of a pack: inputs from step * SPAN on.
__device__ static inline const char *packed_part(const mlp &j, const void *w, int e, int steps,
                                                 int column0, int step) {
    int64_t pack = (int64_t)(e * (j.width / PACK_OUT) + column0 / PACK_OUT) * steps + step;
    return (const char *)w + pack * (PACK_OUT * LINE) + column0 % PACK_OUT * LINE;
}

// Ask for step i of what a product reads: packed weights, and rows (of x where `rows` is NULL).
template <typename T, int WIDE> struct factors {
    void *rows;
    const void *packed;
    int steps;
    __device__ void ask_weights(const mlp &j, const tile<WIDE> &t, const tiles<WIDE> &r,
                                int i) const {
        r.claim(i, shape<WIDE>::STAGE);
        bulk_copy(r.address(i) + GROUPS * PIECE_BYTES,
                  packed_part(j, packed, t.e, steps, t.column0, i), shape<WIDE>::PACK_BYTES,
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
             pack = r.address(i) + GROUPS * PIECE_BYTES;
#pragma unroll
    for (int k = 0; k < LINE; k += 32)
        mma<T, WIDE>(acc, factor(rows + k, 1024, 16), factor(pack + k, 1024, 16), i || k);
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
#endif // HOPPER

// A layer's kernel, by what the network is made of.
typedef void layer_kernel(mlp, int);

static inline dc_status start_layer(dc_cuda *cuda, layer_kernel *const kernels[2][2][2],
                                    const mlp *j, int layer, int blocks, bool early) {
    bool narrow = j->width / j->across == NARROW;
    return launch(cuda, kernels[j->tf32][narrow][j->norm], dim3(blocks, j->e), THREADS,
                  narrow ? shared_bytes<NARROW>() : shared_bytes<COLUMNS>(), 1, early, "network(",
                  *j, layer);
}

#endif
