// Whole networks in one launch each, for bf16 and layers of one width (256, 512 or 1024) on Hopper: a
// cluster of blocks takes 64 rows through all layers. Each block has 256 columns of every layer, streams its
// panels of the matrices (internal.cuh) into a ring, keeps all columns of the rows in its shared
// memory, and sends what it computed to the others. Backward goes the same way with the transposed
// matrices, and leaves what dW needs; a second kernel forms all dW of a network.
#include "backend/cuda/hopper.cuh"

enum {
    ROWS = MLP_ROWS,
    GROUPS = 4,                     // of four warps in a block
    PART = PANEL_OUT / GROUPS,      // columns of a group
    COLUMNS = PANEL_OUT,            // of a block
    PANEL = COLUMNS * PANEL_IN * 2, // bytes
    PIECE_OF_ROWS = ROWS * PANEL_IN * 2,
    SLICE = COLUMNS / PANEL_IN * PIECE_OF_ROWS, // what a block computes of a layer, bytes
    THREADS = GROUPS * 128,
};

template <int CTAS> struct block { // a block's place, and a thread's in it
    enum {
        WIDTH = CTAS * COLUMNS,
        STAGES = CTAS == 4 ? 2 : 4,
        ROWS_BYTES = WIDTH / PANEL_IN * PIECE_OF_ROWS
    };
    int rank, group, warp, lane, row, pair; // warp: in the group; row: the lane's first
    int column;                             // the lane's first, of the layer
    int e, tile, row0;
    char *ring, *rows; // panels; (64) bf16 rows as a factor of products: pieces of 64 columns
    float2 *exchange;  // (CTAS, GROUPS, 64)
    float (*sums)[4][COLUMNS]; // (4 warps)
    // Barriers: a panel is there, is done with; all groups told their numbers; the others' slices are there.
    uint32_t full, empty, told, sent;
    // Thread 0 asks for panels: of layers from `layer` to `end`, then of a thin matrix.
    const char *from;
    int layer, step, end, left, bytes, asked;
    const bf16 *thin;
    int taken, waited; // panels; slices
};

template <int CTAS> static size_t shared_bytes() {
    typedef block<CTAS> B;
    return B::STAGES * PANEL + B::ROWS_BYTES + CTAS * GROUPS * ROWS * sizeof(float2) +
           sizeof(float) * 4 * 4 * COLUMNS + (2 * B::STAGES + 2) * 8;
}

#ifdef HOPPER

// ---- a block's way through the matrices ----

template <int CTAS> __device__ static block<CTAS> enter(int first_tile) {
    extern __shared__ __align__(1024) char shared[];
    block<CTAS> b;
    b.rank = blockIdx.x % CTAS;
    b.group = threadIdx.x / 128;
    b.warp = threadIdx.x / 32 % 4;
    b.lane = threadIdx.x & 31;
    b.row = b.warp * 16 + b.lane / 4;
    b.pair = b.lane % 4 * 2;
    b.column = b.rank * COLUMNS + b.group * PART + b.pair;
    b.e = blockIdx.y;
    b.tile = first_tile + blockIdx.x / CTAS;
    b.row0 = b.tile * ROWS;
    b.ring = shared;
    b.rows = b.ring + b.STAGES * PANEL;
    b.exchange = (float2 *)(b.rows + b.ROWS_BYTES);
    b.sums = (float(*)[4][COLUMNS])(b.exchange + CTAS * GROUPS * ROWS);
    b.full = shared_address(b.sums + 4);
    b.empty = b.full + b.STAGES * 8;
    b.told = b.empty + b.STAGES * 8;
    b.sent = b.told + 8;
    b.taken = b.waited = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < b.STAGES; i++) {
            barrier_new(b.full + i * 8, 1);
            barrier_new(b.empty + i * 8, THREADS / 32);
        }
        barrier_new(b.told, 1);
        barrier_new(b.sent, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    return b;
}

// The next panel, if there is one, into the stage that was released longest ago.
template <int CTAS> __device__ static void ask(const mlp &j, block<CTAS> &b) {
    enum { THIN_BYTES = block<CTAS>::WIDTH * THIN * 2 };
    if (b.left == 0) {
        if (b.layer != b.end) {
            const mlp_layer &l = j.layer[b.layer];
            b.left = (b.step > 0 ? l.in_pad : b.WIDTH) / PANEL_IN;
            b.from = (const char *)(b.step > 0 ? l.w : l.wt) +
                     ((int64_t)b.e * CTAS + b.rank) * b.left * PANEL;
            b.bytes = PANEL;
            b.layer += b.step;
        } else if (b.thin) {
            b.bytes = THIN_BYTES < PANEL ? THIN_BYTES : PANEL;
            b.left = THIN_BYTES / b.bytes;
            b.from = (const char *)b.thin + (int64_t)b.e * THIN_BYTES;
            b.thin = NULL;
        } else
            return;
    }
    int stage = b.asked % b.STAGES;
    if (b.asked >= b.STAGES) barrier_wait(b.empty + stage * 8, (b.asked / b.STAGES - 1) & 1);
    bulk_copy(shared_address(b.ring) + stage * PANEL, b.from, b.bytes, b.full + stage * 8);
    b.from += PANEL;
    b.left--;
    b.asked++;
}

template <int CTAS>
__device__ static void start_asking(const mlp &j, block<CTAS> &b, int first, int end,
                                    const bf16 *thin) {
    b.layer = first;
    b.end = end;
    b.step = first < end ? 1 : -1;
    b.left = b.asked = 0;
    b.thin = b.rank ? NULL : thin;
    for (int i = 0; i < b.STAGES && threadIdx.x == 0; i++)
        ask(j, b);
}

template <int CTAS> __device__ static inline uint32_t await_panel(block<CTAS> &b) {
    int stage = b.taken % b.STAGES;
    barrier_wait(b.full + stage * 8, (b.taken / b.STAGES) & 1);
    b.taken++;
    return shared_address(b.ring) + stage * PANEL;
}

// A panel has been read by the warp; thread 0 asks for what takes its place.
template <int CTAS> __device__ static inline void release(const mlp &j, block<CTAS> &b, int panel) {
    if (b.lane == 0) barrier_arrive(b.empty + panel % b.STAGES * 8);
    if (threadIdx.x == 0) ask(j, b);
    __syncwarp();
}

// acc = the rows times the group's columns of the next matrix; `meanwhile` runs beside it.
template <int CTAS, typename F>
__device__ static void product(const mlp &j, block<CTAS> &b, float acc[32], int panels,
                               F meanwhile) {
    uint32_t rows = shared_address(b.rows);
    for (int p = 0; p < panels; p++) {
        uint32_t panel = await_panel(b) + b.group * (PANEL / GROUPS);
        products_begin();
#pragma unroll
        for (int k = 0; k < PANEL_IN / 16; k++)
            multiply_64(acc, factor(rows + p * PIECE_OF_ROWS + k * 32, 1024, 16),
                        factor(panel + k * 32, 1024, 16), p || k);
        products_end();
        if (!p) {
            meanwhile();
            continue;
        }
        products_wait<1>(); // the panel before this one has been read
        release(j, b, b.taken - 2);
    }
    products_wait<0>();
    release(j, b, b.taken - 1);
}

// The same with a matrix of at most 32 columns, for the first group of the first block.
template <int CTAS> __device__ static void thin_product(block<CTAS> &b, float acc[16]) {
    enum {
        PIECES = PANEL / (THIN * PANEL_IN * 2)
    }; // pieces of 64 inputs in what is asked for at once
    uint32_t rows = shared_address(b.rows), panel = 0;
    for (int k = 0; k < b.WIDTH / 16; k++) {
        if (k % (4 * PIECES) == 0) panel = await_panel(b);
        products_begin();
        multiply_32(acc, factor(rows + k / 4 * PIECE_OF_ROWS + k % 4 * 32, 1024, 16),
                    factor(panel + k / 4 % PIECES * (THIN * PANEL_IN * 2) + k % 4 * 32, 1024, 16),
                    k);
    }
    products_end();
    products_wait<0>();
}

// ---- what both directions share ----

// Where a column pair of a row lies; 16 bytes stay together.
__device__ static inline int place(int row, int column) {
    return column / 64 * PIECE_OF_ROWS + row * 128 + ((column % 64 * 2) ^ ((row & 7) << 4));
}

__device__ static inline float sum_of_four(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

// The share of x that GELU (tanh form) lets through.
__device__ static inline float gate(float x) {
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * (0.7978845608f + 0.0356774081f * x * x)));
    return 0.5f + 0.5f * t;
}

// Two numbers of each of the lane's rows, of the group's columns, for all blocks: those who wait see them, and that the
// group is done with the rows.
template <int CTAS> __device__ static void tell(const block<CTAS> &b, const float2 v[2]) {
    if (threadIdx.x == 0) barrier_expect(b.told, CTAS * GROUPS * ROWS * (int)sizeof(float2));
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t at =
            shared_address(&b.exchange[(b.rank * GROUPS + b.group) * ROWS + b.row + 8 * h]);
        if (b.pair / 2 < CTAS) // four lanes have the same row
            send_two(of_block(at, b.pair / 2), v[h], of_block(b.told, b.pair / 2));
    }
}

template <int CTAS> __device__ static void await_numbers(const block<CTAS> &b) {
    barrier_wait(b.told, b.waited & 1);
}

// The block's columns are written: send them to the others, and wait for theirs.
template <int CTAS> __device__ static void share_slice(block<CTAS> &b) {
    rows_written();
    workers_sync();
    if (threadIdx.x == 0) {
        barrier_expect(b.sent, (CTAS - 1) * SLICE);
        uint32_t mine = shared_address(b.rows) + b.rank * SLICE;
        for (int k = 1; k < CTAS; k++) {
            int r = (b.rank + k) % CTAS;
            send(of_block(mine, r), mine, SLICE, of_block(b.sent, r));
        }
    }
}

template <int CTAS> __device__ static void await_slices(block<CTAS> &b) {
    barrier_wait(b.sent, b.waited++ & 1);
}

// The block's columns of rows [first, end) of the network go to memory, 16 bytes a thread.
template <int CTAS>
__device__ static void store_slice(const block<CTAS> &b, bf16 *to, int first, int end) {
#pragma unroll
    for (int k = 0; k < ROWS * COLUMNS / 8 / THREADS; k++) {
        int i = k * THREADS + threadIdx.x, row = i / (COLUMNS / 8),
            c = b.rank * COLUMNS + i % (COLUMNS / 8) * 8, at = b.row0 + row;
        if (at >= first && at < end)
            *(uint4 *)(to + (int64_t)(at - first) * b.WIDTH + c) =
                *(const uint4 *)(b.rows + place(row, c));
    }
}

// What GELU got is kept in the order of the products' registers.
template <int CTAS>
__device__ static inline uint4 *kept(const mlp &j, const mlp_layer &l, const block<CTAS> &b) {
    int64_t tile = (int64_t)b.e * j.tiles + b.tile;
    return (uint4 *)l.z + (((tile * CTAS + b.rank) * GROUPS + b.group) * 4) * 128 +
           threadIdx.x % 128;
}

template <int CTAS>
__device__ static void store_kept(const mlp &j, const mlp_layer &l, const block<CTAS> &b,
                                  const uint32_t z[16]) {
    uint4 *to = kept(j, l, b);
#pragma unroll
    for (int q = 0; q < 4; q++)
        to[q * 128] = make_uint4(z[4 * q], z[4 * q + 1], z[4 * q + 2], z[4 * q + 3]);
}

template <int CTAS>
__device__ static void load_kept(const mlp &j, const mlp_layer &l, const block<CTAS> &b,
                                 uint32_t z[16]) {
    const uint4 *from = kept(j, l, b);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        uint4 v = from[q * 128];
        z[4 * q] = v.x, z[4 * q + 1] = v.y, z[4 * q + 2] = v.z, z[4 * q + 3] = v.w;
    }
}

// ---- forward ----

template <int CTAS> __device__ static void load_input(const mlp &j, const block<CTAS> &b) {
    int pieces = j.layer[0].in_pad / 8;
    const bf16 *x = (const bf16 *)j.x.p;
    for (int i = threadIdx.x; i < ROWS * pieces; i += THREADS) {
        int row = i / pieces, c = i % pieces;
        uint4 v = {0, 0, 0, 0};
        if (b.row0 + row < j.x.rows)
            v = *(const uint4 *)(x + (int64_t)(b.row0 + row) * j.x.ld + c * 8);
        *(uint4 *)(b.rows + place(row, c * 8)) = v;
    }
    rows_written();
    workers_sync();
}

// Bias, then GELU; mean and spread of the group's columns of each row go to all blocks. z is what GELU got, rounded as
// backward will read it.
template <int CTAS>
__device__ static void activate(const mlp_layer &l, const block<CTAS> &b, float acc[32],
                                uint32_t z[16]) {
    const float *bias = l.b + b.e * b.WIDTH + b.column;
    float sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float2 add = *(const float2 *)(bias + i * 8);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float *v = &acc[4 * i + 2 * h];
            z[2 * i + h] = pack(v[0] + add.x, v[1] + add.y);
            float2 x = unpack(z[2 * i + h]);
            v[0] = x.x * gate(x.x);
            v[1] = x.y * gate(x.y);
            sum[h] += v[0] + v[1];
        }
    }
    float2 numbers[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float mean = sum_of_four(sum[h]) / PART, square = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float d = acc[4 * i + 2 * h] - mean, f = acc[4 * i + 2 * h + 1] - mean;
            square += d * d + f * f;
        }
        numbers[h] = make_float2(mean, sum_of_four(square));
    }
    tell(b, numbers);
}

// LayerNorm with the means and spreads of all groups; the columns become part of the rows.
template <int CTAS>
__device__ static void normalise(const mlp &j, const mlp_layer &l, const block<CTAS> &b,
                                 float acc[32], bool keep) {
    float2 stats[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = b.row + 8 * h;
        float mean = 0, square = 0;
#pragma unroll
        for (int g = 0; g < CTAS * GROUPS; g++)
            mean += b.exchange[g * ROWS + row].x / (float)(CTAS * GROUPS);
#pragma unroll
        for (int g = 0; g < CTAS * GROUPS; g++) {
            float2 part = b.exchange[g * ROWS + row];
            square += part.y + PART * (part.x - mean) * (part.x - mean);
        }
        stats[h] = make_float2(mean, rsqrtf(square / (float)b.WIDTH + 1e-6f));
        if (keep && b.rank == 0 && b.group == 0 && b.pair == 0)
            l.stats[((int64_t)b.e * j.tiles + b.tile) * ROWS + row] = stats[h];
    }
    int c = b.e * b.WIDTH + b.column;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float2 scale = *(const float2 *)(l.scale + c + 8 * i),
               shift = *(const float2 *)(l.shift + c + 8 * i);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float y0 = (acc[4 * i + 2 * h] - stats[h].x) * stats[h].y * scale.x + shift.x,
                  y1 = (acc[4 * i + 2 * h + 1] - stats[h].x) * stats[h].y * scale.y + shift.y;
            *(uint32_t *)(b.rows + place(b.row + 8 * h, b.column + 8 * i)) = pack(y0, y1);
        }
    }
}

// Numbers of a thin product go to (row, column), columns below `count`.
template <int CTAS, typename F>
__device__ static void each_thin(const block<CTAS> &b, const float thin[16], int count, F out) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int column = i / 4 * 8 + b.pair + i % 2, row = b.row0 + b.row + i / 2 % 2 * 8;
        if (column < count) out(row, column, thin[i]);
    }
}

template <int CTAS> __device__ static void work_forward(const mlp &j, block<CTAS> &b) {
    load_input(j, b);
    bool keep = b.row0 < j.hi && b.row0 + ROWS > j.lo;
    float acc[32];
    uint32_t z[16];
    auto store = [&](int i) { // of layer i what backward needs
        if (i < 0 || !keep) return;
        const mlp_layer &l = j.layer[i];
        if (l.z) store_kept(j, l, b, z);
        if (l.h) store_slice(b, l.h + b.e * (int64_t)(j.hi - j.lo) * b.WIDTH, j.lo, j.hi);
    };
    for (int i = 0; i < j.layers; i++) {
        const mlp_layer &l = j.layer[i];
        product(j, b, acc, l.in_pad / PANEL_IN, [&] { store(i - 1); });
        activate(l, b, acc, z);
        await_numbers(b);
        normalise(j, l, b, acc, keep);
        share_slice(b);
        await_slices(b);
    }
    store(j.layers - 1);
    if (b.rank || b.group) return;
    float thin[16];
    thin_product(b, thin);
    const float *bias = j.head_b + b.e * j.out;
    float *y = j.y + (int64_t)b.e * j.x.rows * j.out;
    each_thin(b, thin, j.out, [&](int row, int o, float v) {
        if (row < j.x.rows) y[(int64_t)row * j.out + o] = v + bias[o];
    });
}

template <int CTAS> __device__ static void run_forward(const mlp &j) {
    if (j.used && (int)blockIdx.x / CTAS * ROWS >= *j.used) return;
    block<CTAS> b = enter<CTAS>(0);
    cluster_sync(); // everybody's barriers are there
    start_asking(j, b, 0, j.layers, j.head_panel);
    work_forward(j, b);
    __syncwarp();
    cluster_sync(); // nobody leaves while others may send
}

// ---- backward ----

// Add up v over the eight rows that a warp's lanes hold of a column. With 8 numbers (or 4) a lane
// ends with the sum of number *index alone (with 4, two lanes end with each).
template <int COUNT>
__device__ static inline float spread_sum(float v[COUNT], int lane, int *index) {
    int at = 0, bit = 16;
#pragma unroll
    for (int half = COUNT / 2; half; half /= 2, bit /= 2) {
        bool up = lane & bit;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float send = up ? v[i] : v[i + half], stay = up ? v[i + half] : v[i];
            v[i] = stay + __shfl_xor_sync(~0u, send, bit);
        }
        at += up ? half : 0;
    }
    for (; bit >= 4; bit /= 2)
        v[0] += __shfl_xor_sync(~0u, v[0], bit);
    *index = at;
    return v[0];
}

struct row_numbers { // of the two rows that a lane holds
    float2 stats[2];
    float dy[2]; // of a head with one output
};

// The gradient that reaches the last hidden layer.
template <int CTAS>
__device__ static void head_gradient(const mlp &j, const block<CTAS> &b, float acc[32],
                                     row_numbers *r) {
    const float *dy = j.dy + (int64_t)b.e * (j.hi - j.lo) * j.out;
    const float *w = j.head_w + ((int64_t)b.e * b.WIDTH + b.column) * j.out;
#pragma unroll
    for (int i = 0; i < 32; i++)
        acc[i] = 0;
    for (int o = 0; o < j.out; o++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = b.row0 + b.row + 8 * h;
            r->dy[h] = row >= j.lo && row < j.hi ? dy[(int64_t)(row - j.lo) * j.out + o] : 0;
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float w0 = w[8 * i * j.out + o], w1 = w[(8 * i + 1) * j.out + o];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                acc[4 * i + 2 * h] += r->dy[h] * w0;
                acc[4 * i + 2 * h + 1] += r->dy[h] * w1;
            }
        }
    }
}

enum { D_SCALE, D_SHIFT, D_B, D_HEAD }; // sums over rows

// Sums over a warp's rows for scale and shift (and a head of one output); acc becomes the gradient of the
// normalised row, whose two means go to all blocks.
template <int CTAS>
__device__ static void sums_of_layer(const mlp_layer &l, const block<CTAS> &b, float acc[32],
                                     const uint32_t z[16], const row_numbers &r, bool head) {
    float q1[2] = {0, 0}, q2[2] = {0, 0};
    int c0 = b.group * PART + b.pair;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        float v[8] = {}, v_head[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int c = b.e * b.WIDTH + b.column + (2 * q + k / 2) * 8;
            float2 scale = *(const float2 *)(l.scale + c), shift = *(const float2 *)(l.shift + c);
            float2 x = unpack(z[4 * q + k]), s = r.stats[k % 2];
            float *g = &acc[8 * q + 2 * k];
            float n0 = (x.x * gate(x.x) - s.x) * s.y, n1 = (x.y * gate(x.y) - s.x) * s.y;
            v[k / 2 * 2] += g[0] * n0;
            v[k / 2 * 2 + 1] += g[1] * n1;
            v[4 + k / 2 * 2] += g[0];
            v[4 + k / 2 * 2 + 1] += g[1];
            v_head[k / 2 * 2] += r.dy[k % 2] * (n0 * scale.x + shift.x);
            v_head[k / 2 * 2 + 1] += r.dy[k % 2] * (n1 * scale.y + shift.y);
            g[0] *= scale.x;
            g[1] *= scale.y;
            q1[k % 2] += g[0] + g[1];
            q2[k % 2] += g[0] * n0 + g[1] * n1;
        }
        int index;
        float sum = spread_sum<8>(v, b.lane, &index);
        b.sums[b.warp][index / 4][c0 + (2 * q + index / 2 % 2) * 8 + index % 2] = sum;
        if (!head) continue;
        sum = spread_sum<4>(v_head, b.lane, &index);
        if (!(b.lane & 4)) b.sums[b.warp][D_HEAD][c0 + (2 * q + index / 2) * 8 + index % 2] = sum;
    }
    float2 numbers[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        numbers[h] = make_float2(sum_of_four(q1[h]), sum_of_four(q2[h]));
    tell(b, numbers);
}

// Through LayerNorm and GELU: the gradient before the bias becomes part of the rows, its sums are taken too.
template <int CTAS>
__device__ static void through_layer(const block<CTAS> &b, float acc[32], const uint32_t z[16],
                                     const row_numbers &r) {
    float2 mean[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        mean[h] = make_float2(0, 0);
#pragma unroll
        for (int g = 0; g < CTAS * GROUPS; g++) {
            float2 part = b.exchange[g * ROWS + b.row + 8 * h];
            mean[h].x += part.x / (float)b.WIDTH;
            mean[h].y += part.y / (float)b.WIDTH;
        }
    }
    int c0 = b.group * PART + b.pair;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        float v[4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float2 two = unpack(z[4 * q + k]), s = r.stats[k % 2];
            float d[2];
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float x = c ? two.y : two.x, open = gate(x), y = x * open, n = (y - s.x) * s.y;
                float slope = open + y * (1 - open) * (1.5957691216057308f + 0.2140644488f * x * x);
                d[c] = (acc[8 * q + 2 * k + c] - mean[k % 2].x - n * mean[k % 2].y) * s.y * slope;
                v[k / 2 * 2 + c] += d[c];
            }
            *(uint32_t *)(b.rows + place(b.row + k % 2 * 8, b.column + (2 * q + k / 2) * 8)) =
                pack(d[0], d[1]);
        }
        int index;
        float sum = spread_sum<4>(v, b.lane, &index);
        if (!(b.lane & 4)) b.sums[b.warp][D_B][c0 + (2 * q + index / 2) * 8 + index % 2] = sum;
    }
}

// The four warps' sums, in order.
template <int CTAS>
__device__ static void store_sums(const block<CTAS> &b, float *parts, float *head_parts) {
    for (int i = threadIdx.x; i < (head_parts ? 4 : 3) * COLUMNS; i += THREADS) {
        int kind = i / COLUMNS, c = i % COLUMNS;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < 4; w++)
            sum += b.sums[w][kind][c];
        float *to = kind == D_HEAD ? head_parts : parts + kind * b.WIDTH;
        to[b.rank * COLUMNS + c] = sum;
    }
}

// The head's bias: dy over the rows.
template <int CTAS>
__device__ static void head_bias(const mlp &j, const block<CTAS> &b, float *out) {
    if (b.rank || threadIdx.x >= 32) return;
    const float *dy = j.dy + (int64_t)b.e * (j.hi - j.lo) - j.lo;
    float sum = 0;
    for (int row = b.row0 + b.lane; row < b.row0 + ROWS; row += 32)
        sum += row >= j.lo && row < j.hi ? dy[row] : 0;
    sum = warp_sum(sum);
    if (b.lane == 0) *out = sum;
}

template <int CTAS> __device__ static void work_backward(const mlp &j, block<CTAS> &b) {
    float acc[32];
    row_numbers r;
    head_gradient(j, b, acc, &r);
    int64_t part = ((int64_t)b.e * gridDim.x + blockIdx.x) / CTAS;
    float *head_parts = j.head_parts ? j.head_parts + part * (b.WIDTH + 1) : NULL;
    if (head_parts) head_bias(j, b, head_parts + b.WIDTH);
    uint32_t z[16];
    load_kept(j, j.layer[j.layers - 1], b, z);
    for (int i = j.layers - 1; i >= 0; i--) {
        const mlp_layer &l = j.layer[i];
        bool head = head_parts && i == j.layers - 1;
#pragma unroll
        for (int h = 0; h < 2; h++)
            r.stats[h] = l.stats[((int64_t)b.e * j.tiles + b.tile) * ROWS + b.row + 8 * h];
        sums_of_layer(l, b, acc, z, r, head);
        await_numbers(b);
        through_layer(b, acc, z, r);
        share_slice(b);
        if (l.dz) { // weights are trained
            store_sums(b, l.parts + part * 3 * b.WIDTH, head ? head_parts : NULL);
            store_slice(b, l.dz + b.e * (int64_t)(j.hi - j.lo) * b.WIDTH, j.lo, j.hi);
        }
        await_slices(b);
        if (!i) break;
        load_kept(j, j.layer[i - 1], b, z); // while the product runs
        product(j, b, acc, b.WIDTH / PANEL_IN, [] {});
        workers_sync(); // nobody reads the sums any more
    }
    if (!j.dx || b.rank || b.group) return;
    float thin[16];
    thin_product(b, thin);
    float *dx = j.dx + (int64_t)b.e * (j.hi - j.lo) * j.dx_count;
    each_thin(b, thin, j.dx_count, [&](int row, int o, float v) {
        if (row >= j.lo && row < j.hi) dx[(int64_t)(row - j.lo) * j.dx_count + o] = v;
    });
}

template <int CTAS> __device__ static void run_backward(const mlp &j) {
    block<CTAS> b = enter<CTAS>(j.lo / ROWS);
    cluster_sync();
    start_asking(j, b, j.layers - 1, 0, j.dx_panel);
    work_backward(j, b);
    __syncwarp();
    cluster_sync();
}
#endif // HOPPER

template <int CTAS>
__global__ static void __launch_bounds__(THREADS, 1) forward(const __grid_constant__ mlp j) {
#ifdef HOPPER
    run_forward<CTAS>(j);
#endif
}

template <int CTAS>
__global__ static void __launch_bounds__(THREADS, 1) backward(const __grid_constant__ mlp j) {
#ifdef HOPPER
    run_backward<CTAS>(j);
#endif
}

// ---- launches ----

bool dc_mlp_fits(const dc_cuda *cuda, int width, int in) {
    return cuda->hopper && (width == 256 || width == 512 || width == 1024) && in <= width;
}

template <int CTAS> static dc_status start(dc_cuda *cuda, const mlp *j, bool back, int tiles) {
    return launch(cuda, j, back ? backward<CTAS> : forward<CTAS>, dim3(tiles * CTAS, j->e), THREADS,
                  shared_bytes<CTAS>(), CTAS, 1);
}

static dc_status start_any(dc_cuda *cuda, const mlp *j, bool back, int tiles) {
    switch (j->width) {
    case 256:
        return start<1>(cuda, j, back, tiles);
    case 512:
        return start<2>(cuda, j, back, tiles);
    default:
        return start<4>(cuda, j, back, tiles);
    }
}

dc_status dc_mlp_forward(dc_cuda *cuda, const mlp *j) {
    return start_any(cuda, j, false, j->tiles);
}

int dc_mlp_parts(const mlp *j) {
    return div_up(j->hi - j->lo, ROWS);
}

dc_status dc_mlp_backward(dc_cuda *cuda, const mlp *j) {
    return start_any(cuda, j, true, dc_mlp_parts(j));
}
