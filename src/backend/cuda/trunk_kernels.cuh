// The kernels of an encoder's convolutions (nn/encoder.h) on pictures of 64 x 64, in bf16 on tensor cores: forward through
// three stages, backward through conv1. A block has some pictures and takes one after the other; what flows between layers
// is in its shared memory. Who includes this has defined the instructions that a warp has together: tensor_core.cuh for a
// GPU, tests/tensor/cuda_on_host.h for a test without conv1.
//
// A stage, of x (2h, 2h, c), is p = pool(conv(x)), m = relu(conv(relu(p))), out = p + conv(m), with d channels.
//
// A convolution is a product of tiles of 16 places with weights (9 c, d). In shared memory a picture has a padding of zeros
// of one place, and places lie so far apart that the eight of a quarter of a tile are read without conflict. Step s of
// the product takes the 16 of a tile's 9 c inputs from 16 s on; two taps where there are 8 channels, one or half a one else.
// Gradients of x are a convolution of dy with turned weights; gradients of W are products of the transposed tiles with
// dy, each warp with its part of W, over all pictures of the block. Blocks leave their sums one by one (trunk_parts).
#ifndef DC_CUDA_TRUNK_KERNELS_CUH
#define DC_CUDA_TRUNK_KERNELS_CUH

#include "backend/cuda/trunk.cuh"

// ---- products ----

// Where the lower (half 0) or upper 8 of the 16 inputs of a product's step lie, counted from a window's first number.
template <int C, int W> __device__ inline int offset_of(int step, int half) {
    int k = 16 * step + 8 * half, tap = k / C < 9 ? k / C : 8; // beyond the last tap weights are 0
    return ((tap / 3) * (W + 2) + tap % 3) * line_of_places(C) + k % C;
}

// Where the window of a place begins, in a padded picture.
template <int C, int W> __device__ inline int window_of(int place) {
    return ((place / W) * (W + 2) + place % W) * line_of_places(C);
}

// y (tiles of 16 places, D) = padded picture in (C channels, W wide) times weights (9 C, D). MANY tiles share what a warp
// reads of weights; SPLIT warps share a tile. put(place, channel, two numbers) takes what comes.
template <int C, int D, int W, int MANY, int SPLIT, typename PUT>
__device__ inline void convolve(const bits *in, const bits *weights, int tiles, PUT put) {
    constexpr int COLUMNS = D / 8 / SPLIT;
    int lane = (int)threadIdx.x % 32;
    for (int unit = (int)threadIdx.x / 32; unit < tiles / MANY * SPLIT; unit += TRUNK_WARPS) {
        int tile = unit / SPLIT * MANY, first = unit % SPLIT * COLUMNS * 8;
        float sums[MANY][COLUMNS][4] = {};
        const bits *at[MANY],
            *line = weights + (lane % 16) * line_of_places(D) + first + lane / 16 * 8;
        for (int m = 0; m < MANY; m++)
            at[m] = in + window_of<C, W>((tile + m) * 16 + lane % 16);
#pragma unroll
        for (int s = 0; s < steps_of(C); s++) {
            uint32_t a[MANY][4], b[COLUMNS / 2][4];
            int offset = offset_of<C, W>(s, lane / 16);
#pragma unroll
            for (int m = 0; m < MANY; m++)
                load_matrices(a[m], at[m] + offset);
#pragma unroll
            for (int n = 0; n < COLUMNS / 2; n++)
                load_transposed(b[n], line + 16 * s * line_of_places(D) + 16 * n);
#pragma unroll
            for (int m = 0; m < MANY; m++)
#pragma unroll
                for (int n = 0; n < COLUMNS; n++)
                    multiply(sums[m][n], a[m], b[n / 2] + n % 2 * 2);
        }
        for (int m = 0; m < MANY; m++)
            for (int n = 0; n < COLUMNS; n++) {
                int place = (tile + m) * 16 + lane / 4, channel = first + 8 * n + lane % 4 * 2;
                put(place, channel, sums[m][n][0], sums[m][n][1]);
                put(place + 8, channel, sums[m][n][2], sums[m][n][3]);
            }
    }
}

// A warp's part of dW: 16 of the 9 C lines, D / SPLIT columns; and of db, which warps with the first lines have.
template <int C, int D> struct weight_gradients {
    static constexpr int LINES = steps_of(C), SPLIT = C == 32 ? 1 : 2, COLUMNS = D / 8 / SPLIT;
    float w[COLUMNS][4], b[COLUMNS];

    __device__ void clear() {
        for (int n = 0; n < COLUMNS; n++) {
            b[n] = 0;
            for (int i = 0; i < 4; i++)
                w[n][i] = 0;
        }
    }

    __device__ static int unit() { return (int)threadIdx.x / 32; }

    // Add what `tiles` of 16 places give: x padded, W wide; dy has `dy_line` numbers from one line of places to the next.
    template <int W> __device__ void add(const bits *x, const bits *dy, int dy_line, int tiles) {
        if (unit() >= LINES * SPLIT) return;
        int lane = (int)threadIdx.x % 32, first = unit() % SPLIT * COLUMNS * 8;
        int offset = offset_of<C, W>(unit() / SPLIT, lane / 8 % 2);
        for (int t = 0; t < tiles; t++) {
            uint32_t a[4], g[(COLUMNS + 1) / 2][4];
            int row = t * 16 + lane % 16;
            load_transposed(a, x + window_of<C, W>(t * 16 + lane % 8 + lane / 16 * 8) + offset);
#pragma unroll
            for (int n = 0; n < (COLUMNS + 1) / 2; n++)
                load_transposed(g[n], dy + row / W * dy_line + row % W * line_of_places(D) + first +
                                          16 * n + lane / 16 * 8);
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                multiply(w[n], a, g[n / 2] + n % 2 * 2);
                b[n] += sum_of_pair(g[n / 2][n % 2 * 2]) + sum_of_pair(g[n / 2][n % 2 * 2 + 1]);
            }
        }
    }

    // To a block's part: dW (9 channels, D) and behind it db.
    __device__ void write(float *to, int channels) const {
        if (unit() >= LINES * SPLIT) return;
        int lane = (int)threadIdx.x % 32, first = unit() % SPLIT * COLUMNS * 8;
        for (int n = 0; n < COLUMNS; n++) {
            int column = first + 8 * n + lane % 4 * 2;
            for (int i = 0; i < 4; i++) {
                int k = unit() / SPLIT * 16 + lane / 4 + i / 2 * 8;
                if (k / C < 9 && k % C < channels)
                    to[(k / C * channels + k % C) * D + column + i % 2] = w[n][i];
            }
            float sum = b[n];
            sum += shuffle_xor(sum, 1);
            sum += shuffle_xor(sum, 2);
            if (unit() / SPLIT == 0 && lane % 4 == 0)
                to[9 * channels * D + first + 8 * n + lane / 4] = sum;
        }
    }
};

// ---- what comes into shared memory ----

// Zeros around a picture.
template <int SIDE_, int C> __device__ inline void clear_padding(bits *to) {
    constexpr int WIDE = SIDE_ + 2, LINE = line_of_places(C);
    for (int i = (int)threadIdx.x; i < 4 * WIDE * C; i += TRUNK_THREADS) {
        int at = i / C % WIDE, y = i / C / WIDE, x = at;
        if (y == 1) y = WIDE - 1;
        if (y >= 2 && y < WIDE - 1) {
            x = y == 2 ? 0 : WIDE - 1;
            y = at;
        }
        to[(y * WIDE + x) * LINE + i % C] = 0;
    }
}

// Where a place of a picture is, in the padded conv1.
template <int SIDE_, int C> __device__ inline int inside(int place) {
    return window_of<C, SIDE_>(place) + (SIDE_ + 3) * line_of_places(C);
}

// A picture (SIDE_, SIDE_, C) of bf16 from memory, two numbers at a time; change(two numbers, index of the first).
template <int SIDE_, int C, typename CHANGE>
__device__ inline void fetch(const bits *from, bits *to, CHANGE change) {
    for (int i = 2 * (int)threadIdx.x; i < SIDE_ * SIDE_ * C; i += 2 * TRUNK_THREADS)
        *(uint32_t *)(to + inside<SIDE_, C>(i / C) + i % C) =
            change(*(const uint32_t *)(from + i), i);
}

// The picture itself, of floats.
__device__ inline void fetch_picture(const trunk &t, int row, bits *to) {
    const float *from = t.x + row * t.x_step;
    for (int i = (int)threadIdx.x; i < SIDE * SIDE * X_CHANNELS / 2; i += TRUNK_THREADS) {
        int place = i / (X_CHANNELS / 2), c = i % (X_CHANNELS / 2) * 2;
        float a = c < t.channels ? from[place * t.channels + c] : 0,
              b = c + 1 < t.channels ? from[place * t.channels + c + 1] : 0;
        *(uint32_t *)(to + inside<SIDE, X_CHANNELS>(place) + c) = pair_of(a, b);
    }
}

// Weights (9 channels, D) as products read them, with room for C channels; beyond what is there they are 0.
template <int C, int D>
__device__ inline void fetch_weights(const float *w, int channels, bits *to) {
    for (int i = (int)threadIdx.x; i < steps_of(C) * 16 * D; i += TRUNK_THREADS) {
        int k = i / D;
        bool there = k / C < 9 && k % C < channels;
        to[k * line_of_places(D) + i % D] =
            there ? bits_of(w[(k / C * channels + k % C) * D + i % D]) : (bits)0;
    }
}

// The same turned: (9 D, C), for gradients of the input.
template <int C, int D> __device__ inline void fetch_turned(const float *w, bits *to) {
    for (int i = (int)threadIdx.x; i < 9 * C * D; i += TRUNK_THREADS) {
        int tap = i / D / C;
        to[((8 - tap) * D + i % D) * line_of_places(C) + i / D % C] = bits_of(w[i]);
    }
}

// ---- forward ----

// Rows of pooled places that are made at a time, from twice as many and one rows of the convolution.
__host__ __device__ constexpr int pooled_rows(int stage) {
    return stage ? side_of(stage) : 8;
}

// The largest of 3 x 3 places, every second one each way, of `rows` rows of a convolution (row `first` is the first).
template <int S>
__device__ inline void pool_strip(const bits *from, int first, int rows, bits *padded_to,
                                  bits *pool, uint8_t *argmax) {
    constexpr int D = channels_of(S), OUT = side_of(S), IN = 2 * OUT;
    for (int i = (int)threadIdx.x; i < pooled_rows(S) * OUT * D; i += TRUNK_THREADS) {
        int c = i % D, x = i / D % OUT, y = i / D / OUT, best = 0;
        float most = 0;
        for (int k = 0; k < 9; k++) {
            int v = 2 * y + k / 3, u = 2 * x + k % 3;
            if (v >= rows || u >= IN) continue;
            float here = float_of(from[(v * IN + u) * D + c]);
            if (k && (here <= most || most != most)) continue;
            most = here;
            best = k;
        }
        int at = (first / 2 + y) * OUT + x;
        padded_to[inside<OUT, D>(at) + c] = bits_of(most > 0 || most != most ? most : 0);
        pool[at * D + c] = bits_of(most);
        argmax[at * D + c] = (uint8_t)best;
    }
}

template <int S> struct forward_memory {
    static constexpr int C = channels_of(S - 1), D = channels_of(S), OUT = side_of(S), IN = 2 * OUT;
    static constexpr int STRIP = (pooled_rows(S) == OUT ? IN : 2 * pooled_rows(S) + 1) * IN * D;
    static constexpr int SOURCE = padded(IN, C) + STRIP, MIDDLE = padded(OUT, D);
    // The middle takes the place of the source.
    static constexpr int PICTURES = SOURCE > MIDDLE ? SOURCE : MIDDLE;
    static constexpr int WEIGHTS = weights_of(C, D) + 2 * weights_of(D, D);
    static constexpr int BYTES = 2 * (PICTURES + MIDDLE + WEIGHTS);
};

template <int S> __device__ inline void stage_forward(const trunk &t, int rows, bits *memory) {
    typedef forward_memory<S> m;
    constexpr int C = m::C, D = m::D, OUT = m::OUT, IN = m::IN;
    bits *source = memory, *strip = source + padded(IN, C), *middle = memory,
         *pooled = memory + m::PICTURES, *w0 = pooled + m::MIDDLE, *w1 = w0 + weights_of(C, D),
         *w2 = w1 + weights_of(D, D);
    const float *b0 = t.b[3 * S], *b1 = t.b[3 * S + 1], *b2 = t.b[3 * S + 2];
    fetch_weights<C, D>(t.w[3 * S], S ? C : t.channels, w0);
    fetch_weights<D, D>(t.w[3 * S + 1], D, w1);
    fetch_weights<D, D>(t.w[3 * S + 2], D, w2);
    clear_padding<OUT, D>(pooled);
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        bits *pool = t.pool[S] + (int64_t)row * cells_of_stage(S),
             *mid = t.middle[S] + (int64_t)row * cells_of_stage(S),
             *out = t.out[S] + (int64_t)row * cells_of_stage(S);
        clear_padding<IN, C>(source);
        if constexpr (S == 0)
            fetch_picture(t, row, source);
        else
            fetch<IN, C>(t.out[S - 1] + (int64_t)row * cells_of_stage(S - 1), source,
                         [](uint32_t v, int) { return v; });
        __syncthreads();
        for (int first = 0; first < IN; first += 2 * pooled_rows(S)) {
            int lines = first + 2 * pooled_rows(S) < IN ? 2 * pooled_rows(S) + 1 : IN - first;
            auto put = [&](int place, int c, float a, float b) {
                *(uint32_t *)(strip + place * D + c) = pair_of(a + b0[c], b + b0[c + 1]);
            };
            convolve<C, D, IN, S == 2 ? 1 : 2, 1>(source + first * (IN + 2) * line_of_places(C), w0,
                                                  lines * IN / 16, put);
            __syncthreads();
            pool_strip<S>(strip, first, lines, pooled, pool,
                          t.argmax[S] + (int64_t)row * cells_of_stage(S));
            __syncthreads();
        }
        clear_padding<OUT, D>(middle);
        convolve<D, D, OUT, S == 0 ? 2 : 1, S == 2 ? 2 : 1>(
            pooled, w1, OUT * OUT / 16, [&](int place, int c, float a, float b) {
                uint32_t v = relu_pair(pair_of(a + b1[c], b + b1[c + 1]));
                *(uint32_t *)(middle + inside<OUT, D>(place) + c) = v;
                *(uint32_t *)(mid + place * D + c) = v;
            });
        __syncthreads();
        convolve<D, D, OUT, S == 0 ? 2 : 1, S == 2 ? 2 : 1>(
            middle, w2, OUT * OUT / 16, [&](int place, int c, float a, float b) {
                uint32_t p = *(const uint32_t *)(pool + place * D + c);
                uint32_t v = pair_of(low_of(p) + a + b2[c], high_of(p) + b + b2[c + 1]);
                *(uint32_t *)(out + place * D + c) = S == STAGES - 1 ? relu_pair(v) : v;
            });
        __syncthreads();
    }
}

__device__ inline void trunk_forward_block(const trunk &t, bits *memory) {
    int rows = t.used && *t.used < t.rows ? *t.used : t.rows;
    stage_forward<0>(t, rows, memory);
    stage_forward<1>(t, rows, memory);
    stage_forward<2>(t, rows, memory);
}

constexpr int TRUNK_FORWARD_BYTES = forward_memory<0>::BYTES > forward_memory<1>::BYTES
                                        ? forward_memory<0>::BYTES
                                        : forward_memory<1>::BYTES;

// ---- backward ----

// Keep a number where another is above 0.
__device__ inline uint32_t masked(uint32_t v, uint32_t by) {
    return pair_of(low_of(by) > 0 ? low_of(v) : 0, high_of(by) > 0 ? high_of(v) : 0);
}

// The residual block, from the gradient of the stage's output to that of p.
template <int S> struct block_memory {
    static constexpr int D = channels_of(S), OUT = side_of(S), PICTURE = padded(OUT, D);
    static constexpr int BYTES = 2 * (3 * PICTURE + 2 * weights_of(D, D));
};

template <int S> __device__ inline void block_backward(const trunk &t, bits *memory) {
    typedef block_memory<S> m;
    constexpr int D = m::D, OUT = m::OUT, MANY = S == 0 ? 2 : 1, SPLIT = S == 2 ? 2 : 1;
    bits *dout = memory, *x = dout + m::PICTURE, *dmid = x + m::PICTURE, *w1 = dmid + m::PICTURE,
         *w2 = w1 + weights_of(D, D);
    weight_gradients<D, D> conv1, conv2;
    conv1.clear();
    conv2.clear();
    fetch_turned<D, D>(t.w[3 * S + 1], w1);
    fetch_turned<D, D>(t.w[3 * S + 2], w2);
    clear_padding<OUT, D>(dout);
    clear_padding<OUT, D>(x);
    clear_padding<OUT, D>(dmid);
    for (int row = t.lo + (int)blockIdx.x; row < t.hi; row += (int)gridDim.x) {
        int64_t at = (int64_t)row * cells_of_stage(S),
                mine = (int64_t)(row - t.lo) * cells_of_stage(S);
        const bits *pool = t.pool[S] + at, *out = t.out[S] + at;
        bits *grad = t.grad[S] + mine;
        if constexpr (S == STAGES - 1)
            fetch<OUT, D>(t.dout + mine, dout, [&](uint32_t v, int i) {
                return masked(v, *(const uint32_t *)(out + i));
            });
        else
            fetch<OUT, D>(grad, dout, [](uint32_t v, int) { return v; });
        fetch<OUT, D>(t.middle[S] + at, x, [](uint32_t v, int) { return v; });
        __syncthreads();
        int line = (OUT + 2) * line_of_places(D), start = (OUT + 3) * line_of_places(D);
        conv2.template add<OUT>(x, dout + start, line, OUT * OUT / 16);
        convolve<D, D, OUT, MANY, SPLIT>(
            dout, w2, OUT * OUT / 16, [&](int place, int c, float a, float b) {
                uint32_t by = *(const uint32_t *)(x + inside<OUT, D>(place) + c);
                *(uint32_t *)(dmid + inside<OUT, D>(place) + c) = masked(pair_of(a, b), by);
            });
        __syncthreads();
        fetch<OUT, D>(pool, x, [](uint32_t v, int) { return relu_pair(v); });
        __syncthreads();
        conv1.template add<OUT>(x, dmid + start, line, OUT * OUT / 16);
        convolve<D, D, OUT, MANY, SPLIT>(
            dmid, w1, OUT * OUT / 16, [&](int place, int c, float a, float b) {
                uint32_t over = *(const uint32_t *)(dout + inside<OUT, D>(place) + c),
                         by = *(const uint32_t *)(x + inside<OUT, D>(place) + c);
                *(uint32_t *)(grad + place * D + c) =
                    pair_of(low_of(over) + (low_of(by) > 0 ? a : 0),
                            high_of(over) + (high_of(by) > 0 ? b : 0));
            });
        __syncthreads();
    }
    float *part = t.parts + (int64_t)blockIdx.x * trunk_parts(t);
    conv1.write(part + part_of(t, 3 * S + 1), D);
    conv2.write(part + part_of(t, 3 * S + 2), D);
}

// What the pool hands back to a place of its input: from windows that took that place, of at most two rows and columns.
template <int S>
__device__ inline float unpooled(const bits *grad, const uint8_t *argmax, int y, int x, int c) {
    constexpr int D = channels_of(S), OUT = side_of(S);
    float sum = 0;
    for (int v = y / 2 - (y % 2 == 0); v <= y / 2; v++)
        for (int u = x / 2 - (x % 2 == 0); u <= x / 2; u++) {
            if (v < 0 || u < 0 || v >= OUT || u >= OUT) continue;
            int at = (v * OUT + u) * D + c;
            if (argmax[at] == (y - 2 * v) * 3 + x - 2 * u) sum += float_of(grad[at]);
        }
    return sum;
}

// A stage's first convolution, from the gradient of p to that of x. A picture is done in strips where it is large; then
// nobody asks for the gradient of x, and strips need no padding.
template <int S> struct first_memory {
    static constexpr int C = channels_of(S - 1), D = channels_of(S), IN = 2 * side_of(S);
    static constexpr int ROWS = S ? IN : 16;
    static constexpr int STRIP = S ? padded(IN, D) : ROWS * IN * line_of_places(D);
    static constexpr int BYTES = 2 * (padded(IN, C) + STRIP + (S ? weights_of(D, C) : 0));
};

template <int S> __device__ inline void first_backward(const trunk &t, bits *memory) {
    typedef first_memory<S> m;
    constexpr int C = m::C, D = m::D, IN = m::IN, FRAME = S ? 1 : 0;
    constexpr int LINE = (IN + 2 * FRAME) * line_of_places(D);
    bits *x = memory, *dy = x + padded(IN, C), *w = dy + m::STRIP;
    weight_gradients<C, D> conv0;
    conv0.clear();
    clear_padding<IN, C>(x);
    if constexpr (S > 0) {
        clear_padding<IN, D>(dy);
        fetch_turned<C, D>(t.w[3 * S], w);
    }
    for (int row = t.lo + (int)blockIdx.x; row < t.hi; row += (int)gridDim.x) {
        int64_t at = (int64_t)row * cells_of_stage(S),
                mine = (int64_t)(row - t.lo) * cells_of_stage(S);
        const bits *grad = t.grad[S] + mine;
        const uint8_t *argmax = t.argmax[S] + at;
        if constexpr (S == 0)
            fetch_picture(t, row, x);
        else
            fetch<IN, C>(t.out[S - 1] + (int64_t)row * cells_of_stage(S - 1), x,
                         [](uint32_t v, int) { return v; });
        for (int first = 0; first < IN; first += m::ROWS) {
            for (int i = 2 * (int)threadIdx.x; i < m::ROWS * IN * D; i += 2 * TRUNK_THREADS) {
                int c = i % D, u = i / D % IN, v = i / D / IN;
                *(uint32_t *)(dy + (v + FRAME) * LINE + (u + FRAME) * line_of_places(D) + c) =
                    pair_of(unpooled<S>(grad, argmax, first + v, u, c),
                            unpooled<S>(grad, argmax, first + v, u, c + 1));
            }
            __syncthreads();
            conv0.template add<IN>(x + first * (IN + 2) * line_of_places(C),
                                   dy + FRAME * (LINE + line_of_places(D)), LINE,
                                   m::ROWS * IN / 16);
            if constexpr (S > 0)
                convolve<D, C, IN, S == 1 ? 2 : 1, 1>(
                    dy, w, IN * IN / 16, [&](int place_, int c, float a, float b) {
                        *(uint32_t *)(t.grad[S - 1] +
                                      (int64_t)(row - t.lo) * cells_of_stage(S - 1) + place_ * C +
                                      c) = pair_of(a, b);
                    });
            __syncthreads();
        }
    }
    conv0.write(t.parts + (int64_t)blockIdx.x * trunk_parts(t) + part_of(t, 3 * S),
                S ? C : t.channels);
}

template <int S> __device__ inline void stage_backward(const trunk &t, bits *memory) {
    block_backward<S>(t, memory);
    __syncthreads();
    first_backward<S>(t, memory);
    __syncthreads();
}

__device__ inline void trunk_backward_block(const trunk &t, bits *memory) {
    stage_backward<2>(t, memory);
    stage_backward<1>(t, memory);
    stage_backward<0>(t, memory);
}

template <int S> __host__ __device__ constexpr int backward_bytes() {
    return block_memory<S>::BYTES > first_memory<S>::BYTES ? block_memory<S>::BYTES
                                                           : first_memory<S>::BYTES;
}
constexpr int TRUNK_BACKWARD_BYTES = backward_bytes<0>() > backward_bytes<1>()
                                         ? backward_bytes<0>()
                                         : backward_bytes<1>();

#endif
