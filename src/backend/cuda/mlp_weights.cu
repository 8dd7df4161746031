// dW = X^T dZ of every layer of a network that mlp.cu ran, in one launch: tiles of 128 inputs and 128 outputs. Blocks
// of a cluster share the rows of a tile and add up in order.
#include "backend/cuda/hopper.cuh"

#include <cooperative_groups.h>

enum { MANY_BLOCKS = 400 }; // that the device is given to do
enum { TILE = 128, CHUNK = 64, DW_STAGES = 3, DW_THREADS = 256 };
enum {
    PIECE_BYTES = CHUNK * 128,
    DW_STAGE = 4 * PIECE_BYTES
}; // pieces of 64 columns: two of x, two of dz

#ifdef HOPPER
struct dw_tile {
    const bf16 *x, *dz; // at the tile's first column
    int x_ld, x_cols;   // columns of x left from here on
    int z_ld, rows;
    float *out;
    int in; // rows of out left from here on
};

__device__ static dw_tile find_tile(const mlp &j) {
    int at = blockIdx.x, e = blockIdx.y, i = 0, across = j.width / TILE;
    for (;; i++) {
        int tiles = div_up(j.layer[i].in, TILE) * across;
        if (at < tiles) break;
        at -= tiles;
    }
    const mlp_layer &l = j.layer[i];
    int in0 = at / across * TILE, out0 = at % across * TILE;
    int64_t rows = j.hi - j.lo;
    dw_tile t;
    if (i == 0) {
        t.x = (const bf16 *)j.x.p + (int64_t)j.lo * j.x.ld + in0;
        t.x_ld = j.x.ld;
    } else {
        t.x = j.layer[i - 1].h + e * rows * j.width + in0;
        t.x_ld = j.width;
    }
    t.x_cols = t.x_ld - in0;
    t.dz = l.dz + e * rows * j.width + out0;
    t.z_ld = j.width;
    t.rows = (int)rows;
    t.out = l.dw + ((int64_t)e * l.in + in0) * j.width + out0;
    t.in = l.in - in0;
    return t;
}

// A chunk of rows, 128 columns: two pieces of 64 columns, swizzled.
__device__ static void load_columns(uint32_t to, const bf16 *from, int ld, int columns, int row0,
                                    int rows) {
#pragma unroll
    for (int k = 0; k < CHUNK * TILE / 8 / DW_THREADS; k++) {
        int i = k * DW_THREADS + threadIdx.x, row = i / 16, c = i % 16;
        bool there = row0 + row < rows && c * 8 < columns;
        copy_16(to + c / 8 * PIECE_BYTES + row * 128 + ((c % 8) ^ (row & 7)) * 16,
                there ? from + (int64_t)(row0 + row) * ld + c * 8 : from, there);
    }
}

__device__ static void load_chunk(const dw_tile &t, uint32_t to, int chunk) {
    load_columns(to, t.x, t.x_ld, t.x_cols, chunk * CHUNK, t.rows);
    load_columns(to + 2 * PIECE_BYTES, t.dz, t.z_ld, TILE, chunk * CHUNK, t.rows);
}

// Blocks of a cluster have sums over different rows: each adds up its part of the tile, in order, which is
// numbers [rank * 64 / TEAM, (rank + 1) * 64 / TEAM) of the 64 that a thread has.
template <int TEAM> __device__ static void gather_shares(float acc[64], char *shared, int rank) {
    enum { EACH = 64 / TEAM };
    cooperative_groups::cluster_group team = cooperative_groups::this_cluster();
    copies_wait<0>();
    team.sync(); // nobody reads its chunks any more
#pragma unroll
    for (int r = 0; r < TEAM; r++) {
        float *there = (float *)team.map_shared_rank(shared, r) + rank * EACH * DW_THREADS;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            there[i * DW_THREADS + threadIdx.x] = acc[r * EACH + i];
    }
    team.sync();
#pragma unroll
    for (int r = 0; r < TEAM; r++)
#pragma unroll
        for (int i = 0; i < EACH && r == rank; i++) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < TEAM; k++)
                sum += ((float *)shared)[(k * EACH + i) * DW_THREADS + threadIdx.x];
            acc[r * EACH + i] = sum;
        }
}

template <int TEAM> __device__ static void run_weights(const mlp &j) {
    extern __shared__ __align__(1024) char shared[];
    dw_tile t = find_tile(j);
    uint32_t base = shared_address(shared);
    int group = threadIdx.x / 128, all = div_up(t.rows, CHUNK);
    int per = div_up(all, TEAM), first = blockIdx.z * per; // chunks of this block
    int chunks = all - first < per ? all - first : per;
    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        acc[i] = 0;
    for (int c = 0; c < DW_STAGES - 1; c++) {
        if (c < chunks) load_chunk(t, base + c * DW_STAGE, first + c);
        copies_end();
    }
    for (int c = 0; c < chunks; c++) {
        copies_wait<DW_STAGES - 2>();
        rows_written();
        __syncthreads(); // and the products of the chunk before are done
        int next = c + DW_STAGES - 1;
        if (next < chunks) load_chunk(t, base + next % DW_STAGES * DW_STAGE, first + next);
        copies_end();
        uint32_t x = base + c % DW_STAGES * DW_STAGE + group * PIECE_BYTES,
                 z = base + c % DW_STAGES * DW_STAGE + 2 * PIECE_BYTES;
        products_begin();
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++)
            multiply_turned(acc, factor(x + k * 2048, 1024, PIECE_BYTES),
                            factor(z + k * 2048, 1024, PIECE_BYTES));
        products_end();
        products_wait<0>();
    }
    int rank = blockIdx.z, lane = threadIdx.x & 31;
    if (TEAM > 1) gather_shares<TEAM>(acc, shared, rank);
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        int row = group * 64 + threadIdx.x / 32 % 4 * 16 + i / 2 % 2 * 8 + lane / 4,
            c = i / 4 * 8 + lane % 4 * 2;
        if (i / (64 / TEAM) == rank && row < t.in)
            *(float2 *)(t.out + (int64_t)row * j.width + c) = make_float2(acc[i], acc[i + 1]);
    }
}
#endif // HOPPER

template <int TEAM>
__global__ static void __launch_bounds__(DW_THREADS, 2)
    weight_gradients(const __grid_constant__ mlp j) {
#ifdef HOPPER
    run_weights<TEAM>(j);
#endif
}

dc_status dc_mlp_weights(dc_cuda *cuda, const mlp *j) {
    int tiles = 0, chunks = div_up(j->hi - j->lo, CHUNK), bytes = DW_STAGES * DW_STAGE;
    for (int i = 0; i < j->layers; i++)
        tiles += div_up(j->layer[i].in, TILE) * (j->width / TILE);
    // Blocks share the rows of a tile, so that there is work for the whole device.
    if (chunks >= 16 && tiles * j->e * 4 <= MANY_BLOCKS)
        return launch(cuda, j, weight_gradients<4>, dim3(tiles, j->e, 4), DW_THREADS, bytes, 1, 4);
    if (chunks >= 8 && tiles * j->e * 2 <= MANY_BLOCKS)
        return launch(cuda, j, weight_gradients<2>, dim3(tiles, j->e, 2), DW_THREADS, bytes, 1, 2);
    return launch(cuda, j, weight_gradients<1>, dim3(tiles, j->e, 1), DW_THREADS, bytes, 1, 1);
}
