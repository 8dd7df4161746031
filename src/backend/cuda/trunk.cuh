// An encoder's convolutions as its kernels see them: sizes, and where things lie in memory. See trunk_kernels.cuh.
#ifndef DC_CUDA_TRUNK_CUH
#define DC_CUDA_TRUNK_CUH

#include <stdint.h>

typedef uint16_t bits; // of a bf16

enum { STAGES = 3, CONVS = 9, SIDE = 64, TRUNK_WARPS = 18, TRUNK_THREADS = 32 * TRUNK_WARPS };
enum { X_CHANNELS = 8 }; // of a picture in shared memory; the last ones are 0

// Side of a stage's pooled pictures, and its channels.
__host__ __device__ constexpr int side_of(int stage) {
    return SIDE >> (stage + 1);
}

__host__ __device__ constexpr int channels_of(int stage) {
    return stage < 0 ? X_CHANNELS : stage ? 32 : 16;
}

// Numbers in a stage's output.
__host__ __device__ constexpr int cells_of_stage(int stage) {
    return side_of(stage) * side_of(stage) * channels_of(stage);
}

// Numbers from one place to the next, of a line of weights to the next.
__host__ __device__ constexpr int line_of_places(int channels) {
    return channels == X_CHANNELS ? channels : channels + 8;
}

// Numbers of a picture (side, side, channels) with its padding.
__host__ __device__ constexpr int padded(int side, int channels) {
    return (side + 2) * (side + 2) * line_of_places(channels);
}

__host__ __device__ constexpr int steps_of(int channels) {
    return (9 * channels + 15) / 16;
}

__host__ __device__ constexpr int weights_of(int c, int d) {
    return steps_of(c) * 16 * line_of_places(d);
}

struct trunk {
    int rows, channels; // of x: channels as they are, at most X_CHANNELS
    const float *x;     // (rows, 64 x 64 x channels)
    int64_t x_step;     // from one row to the next
    const int *used;    // Nullable: rows that are wanted this time
    const float *w[CONVS], *b[CONVS];
    bits *pool[STAGES], *middle[STAGES],
        *out[STAGES];        // p, m and out, (rows, cells) each; the last out is relu's
    uint8_t *argmax[STAGES]; // which of a window's 9 places the pool took, (rows, cells)
    // Backward, of rows [lo, hi).
    int lo, hi;
    const bits *dout;   // (hi - lo, cells) of the last stage's relu
    bits *grad[STAGES]; // (hi - lo, cells): gradient of p; of the stage's output before that
    float *parts;       // (blocks, trunk_parts)
};

// Where a convolution's sums lie in a block's part: dW (9 c, d), then db (d).
__host__ __device__ inline int inputs_of(const trunk &t, int conv) {
    return conv ? channels_of((conv + 2) / 3 - 1) : t.channels;
}

__host__ __device__ inline int part_of(const trunk &t, int conv) {
    int at = 0;
    for (int k = 0; k < conv; k++)
        at += (9 * inputs_of(t, k) + 1) * channels_of(k / 3);
    return at;
}

__host__ __device__ inline int trunk_parts(const trunk &t) {
    return part_of(t, CONVS);
}

#endif
