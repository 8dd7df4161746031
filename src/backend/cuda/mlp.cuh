// What the kernels of whole networks share (mlp.cu, mlp_weights.cu): tiles, pieces, a row's mean and spread.
#ifndef DC_CUDA_MLP_CUH
#define DC_CUDA_MLP_CUH

#include "backend/cuda/hopper.cuh"

enum {
    COLUMNS = 128,                      // of a tile
    SPAN = PANEL_IN,                    // columns of a piece, and rows
    PIECE_BYTES = MLP_ROWS * SPAN * 2,  // of rows
    HALF_BYTES = COLUMNS * SPAN * 2,    // of a panel
    BLOCK_BYTES = MLP_ROWS * COLUMNS * 2, // what a group of four warps makes
};

// The piece of 64 rows and 64 columns that begins at (row, column).
__device__ static inline char *piece_at(const mlp &j, bf16 *p, int e, int row, int column) {
    return (char *)p + (((int64_t)e * j.rows + row) / MLP_ROWS * (j.width / SPAN) + column / SPAN) *
                           PIECE_BYTES;
}

// Where a column of a row lies in pieces that follow each other.
__device__ static inline int place(int row, int column) {
    return column / SPAN * PIECE_BYTES + row * 128 + ((column % SPAN * 2) ^ ((row & 7) << 4));
}

__device__ static inline float2 sum_of_row(const mlp &j, const float2 *sums, int e, int row) {
    int across = j.width / COLUMNS;
    const float2 *p = sums + ((int64_t)e * j.rows + row) * across;
    float2 sum = {0, 0};
#pragma unroll 4
    for (int i = 0; i < across; i++) {
        float2 v = p[i];
        sum.x += v.x;
        sum.y += v.y;
    }
    return make_float2(sum.x / (float)j.width, sum.y / (float)j.width);
}

// Mean, 1/spread.
__device__ static inline float2 stats_of_row(const mlp &j, const mlp_layer &l, int e, int row) {
    float2 m = sum_of_row(j, l.stats, e, row);
    return make_float2(m.x, rsqrtf(fmaxf(m.y - m.x * m.x, 0.0f) + 1e-6f));
}

#endif
