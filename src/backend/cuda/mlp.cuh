// What the kernels of whole networks share: tiles, pieces, a row's mean and spread.
#ifndef DC_CUDA_MLP_CUH
#define DC_CUDA_MLP_CUH

#include "backend/cuda/hopper.cuh"

enum {
    COLUMNS = 128,                 // of a tile
    NARROW = 64,                   // of a layer's tile where tiles are few
    PIECE_BYTES = MLP_ROWS * LINE, // of rows
};

// Do so many blocks find room in the 228 kB of a multiprocessor's shared memory? Beside what it asks for, a block takes a
// kilobyte for the system, and one for arrays that its kernel declares: rings begin at whole ones.
constexpr bool shared_holds(int blocks, size_t bytes) {
    return blocks * (bytes + 2048) <= 228 * 1024;
}

// Products read numbers of type T: bf16, or float that was rounded to TF32 (x is not; they take its upper bits).
template <typename T> struct of {
    enum { SPAN = LINE / sizeof(T) }; // columns of a piece
};

// The piece of 64 rows that begins at (row, column).
template <typename T>
__device__ static inline char *piece_at(const mlp &j, void *p, int e, int row, int column) {
    enum { SPAN = of<T>::SPAN };
    return (char *)p + (((int64_t)e * j.rows + row) / MLP_ROWS * (j.width / SPAN) + column / SPAN) *
                           PIECE_BYTES;
}

// Where a column of a row lies in pieces that follow each other.
template <typename T> __device__ static inline int place(int row, int column) {
    enum { SPAN = of<T>::SPAN };
    return column / SPAN * PIECE_BYTES + row * LINE +
           ((column % SPAN * (int)sizeof(T)) ^ ((row & 7) << 4));
}

// A gradient of TF32, transposed: 128 columns of 32 rows, a column being a line whose 16 bytes are swizzled as in a piece.
enum { TRANSPOSED_ROWS = 32, TRANSPOSED_BYTES = COLUMNS * LINE };
__device__ static inline char *transposed_at(const mlp &j, void *p, int e, int row, int column) {
    return (char *)p + (((int64_t)e * j.rows + row) / TRANSPOSED_ROWS * (j.width / COLUMNS) +
                        column / COLUMNS) *
                           TRANSPOSED_BYTES;
}

// Where a number of it lies. Of eight rows those with even numbers come first: whoever multiplies by this reads the other
// factor in that order, and so asks no bank of shared memory twice.
__device__ static inline int transposed_place(int row, int column) {
    int at = row % TRANSPOSED_ROWS / 8 * 8 + row % 8 / 2 + row % 2 * 4;
    return column * LINE + ((at * 4) ^ ((column & 7) << 4));
}

#ifdef HOPPER
// ROWS rows and a line of columns of x.
template <int ROWS>
__device__ static inline void ask_x(const mlp &j, uint32_t to, int column, int row,
                                    uint32_t barrier) {
#pragma unroll
    for (int i = 0; i < ROWS; i += X_ROWS)
        box_copy(to + i * LINE, &j.x_map, column, row + i, barrier);
}
#endif

// Two sums over a row, of which each block left the parts of its columns: two threads load a row's parts (ask) and add
// them up later (finish), so that other work goes on while they load. Parts of 64 columns become parts of 128 first.
struct row_sums {
    enum { MOST = MLP_WIDEST / COLUMNS }; // parts of a row
    float2 part[MOST / 2];
    __device__ void ask(const mlp &j, const float2 *sums, int e, int row) {
        const float2 *p = sums + ((int64_t)e * j.rows + row) * j.across;
#pragma unroll
        for (int i = 0; i < MOST / 2; i++) {
            int odd = threadIdx.x % 2, at = halves(j) ? i / 2 * 4 + odd * 2 + i % 2 : 2 * i + odd;
            part[i] = at < j.across ? p[at] : make_float2(0, 0);
        }
    }
    static_assert(MOST == 8, "a thread has four parts");
    __device__ static bool halves(const mlp &j) {
        return j.across * COLUMNS > j.width;
    }
    __device__ static float2 both(float2 a, float2 b) {
        return make_float2(a.x + b.x, a.y + b.y);
    }
    __device__ float2 finish(const mlp &j) const { // means over the row
        float2 first = both(part[0], part[1]), sum = halves(j)
                                                         ? both(first, both(part[2], part[3]))
                                                         : both(both(first, part[2]), part[3]);
        sum.x += __shfl_xor_sync(~0u, sum.x, 1);
        sum.y += __shfl_xor_sync(~0u, sum.y, 1);
        return make_float2(sum.x / (float)j.width, sum.y / (float)j.width);
    }
    __device__ float2 finish_stats(const mlp &j) const { // mean, 1/spread
        float2 m = finish(j);
        return make_float2(m.x, rsqrtf(fmaxf(m.y - m.x * m.x, 0.0f) + 1e-6f));
    }
};

// ---- a network's launches ----
dc_status dc_mlp_forward_layer(dc_cuda *cuda, const mlp *j, int layer);
dc_status dc_mlp_backward_layer(dc_cuda *cuda, const mlp *j, int layer);
dc_status dc_mlp_head(dc_cuda *cuda, const mlp *j);
dc_status dc_mlp_dx(dc_cuda *cuda, const mlp *j); // of some inputs

#endif
