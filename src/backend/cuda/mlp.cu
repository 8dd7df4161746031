// Whole networks in one launch each, for bf16 and layers of one width: a block takes 64 rows through
// all layers and keeps them in shared memory, its warps 64 columns each. Weights come as fragments
// (see internal.cuh), so that a warp streams its own part of every matrix in one line, by bulk copies into a
// ring of its own: no barrier stands inside a product. Backward goes the same way with the transposed
// matrices, and leaves what dW needs; a second kernel forms all dW of a network.
#include "backend/cuda/internal.cuh"

enum {
    ROWS = MLP_ROWS,
    M = ROWS / 16, // tiles of 16 rows
    STAGES = 4,    // of a warp's ring, each two tiles of 16 inputs
    STAGE = 4096   // bytes: 64 columns of 32 inputs
};

// ---- PTX ----

__device__ static inline uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline void load_a(uint32_t r[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ static inline void load_turned(uint32_t r[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ static inline void load_16(uint32_t r[4], uint32_t at) {
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

__device__ static inline void multiply(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ static inline void copy_16(uint32_t to, const void *from, bool there) {
    int bytes = there ? 16 : 0; // the rest becomes zero
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ static inline void copies_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> __device__ static inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Barriers of a ring, and copies that count on them. Compute capability 9 and newer.
__device__ static inline void barrier_new(uint32_t at) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
}

__device__ static inline void barrier_wait(uint32_t at, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\nbra again;\ndone:\n}" ::"r"(at),
                 "r"(parity)
                 : "memory");
#endif
}

__device__ static inline void bulk_copy(uint32_t to, const void *from, int bytes,
                                        uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
#endif
}

__device__ static inline uint32_t pack(float a, float b) {
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

__device__ static inline float2 unpack(uint32_t v) {
    return __bfloat1622float2(*(__nv_bfloat162 *)&v);
}

// ---- a warp's way through the matrices ----

struct weight_stream {
    uint32_t ring, barriers; // of the warp
    const char *from;        // next to ask for
    int left;                // stages of the layer asked for
    int layer, step, end;    // layer asked for, +1 or -1, where to stop
    int asked, taken;
    int member, warp;
    bool leads; // lane 0
};

__device__ static inline void enter_layer(const mlp &j, weight_stream *s) {
    const mlp_layer &l = j.layer[s->layer];
    const bf16 *w = s->step > 0 ? l.w : l.wt;
    int in = s->step > 0 ? l.in_pad : j.width; // of this product
    s->from = (const char *)(w + ((int64_t)s->member * j.width + 64 * s->warp) * in);
    s->left = in / 32;
}

__device__ static inline void ask(const mlp &j, weight_stream *s) {
    if (s->layer == s->end) return;
    int stage = s->asked++ % STAGES;
    if (s->leads) bulk_copy(s->ring + stage * STAGE, s->from, STAGE, s->barriers + stage * 8);
    s->from += STAGE;
    if (--s->left == 0) {
        s->layer += s->step;
        if (s->layer != s->end) enter_layer(j, s);
    }
}

__device__ static inline void stream_start(const mlp &j, weight_stream *s, int first, int end) {
    if (s->leads)
        for (int i = 0; i < STAGES; i++)
            barrier_new(s->barriers + i * 8);
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    __syncwarp();
    s->asked = s->taken = 0;
    s->layer = first;
    s->end = end;
    s->step = first < end ? 1 : -1;
    if (first == end) return;
    enter_layer(j, s);
    for (int i = 0; i < STAGES; i++)
        ask(j, s);
}

// acc (64 rows, the warp's 64 columns) = rows in shared memory times the next matrix of the stream.
__device__ static void product(const mlp &j, float acc[M][8][4], uint32_t rows, int row_bytes,
                               int stages, weight_stream *s) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                acc[m][n][i] = 0;
    rows += (lane & 15) * row_bytes + (lane >> 4) * 16;
    for (int k = 0; k < stages; k++) {
        int stage = s->taken % STAGES;
        barrier_wait(s->barriers + stage * 8, (s->taken / STAGES) & 1);
        uint32_t from = s->ring + stage * STAGE + lane * 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t a[M][4], b[4][4];
#pragma unroll
            for (int m = 0; m < M; m++)
                load_a(a[m], rows + m * 16 * row_bytes + (2 * k + half) * 32);
#pragma unroll
            for (int n = 0; n < 4; n++)
                load_16(b[n], from + half * (STAGE / 2) + n * 512);
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int m = 0; m < M; m++) {
                    multiply(acc[m][2 * n], a[m], b[n][0], b[n][1]);
                    multiply(acc[m][2 * n + 1], a[m], b[n][2], b[n][3]);
                }
        }
        __syncwarp(); // all lanes have read
        s->taken++;
        ask(j, s);
    }
}

// ---- what both directions share ----

struct block { // a block's place
    int warp, lane, group, pair, e, tile, row0;
    char *rows;       // (64) bf16 rows, row_bytes apart
    float2 *exchange; // (warps, 64)
};

__device__ static inline int row_of(const block &b, int m, int h) {
    return m * 16 + h * 8 + b.group;
}

__device__ static inline int column_of(const block &b, int n) {
    return b.warp * 64 + n * 8 + b.pair;
}

__device__ static block enter(const mlp &j, weight_stream *s, int first_tile) {
    extern __shared__ __align__(128) char shared[];
    block b;
    b.warp = threadIdx.x / 32;
    b.lane = threadIdx.x & 31;
    b.group = b.lane / 4;
    b.pair = b.lane % 4 * 2;
    b.e = blockIdx.y;
    b.tile = first_tile + blockIdx.x;
    b.row0 = b.tile * ROWS;
    int warps = j.width / 64;
    char *ring = shared;
    b.exchange = (float2 *)(ring + warps * STAGES * STAGE);
    char *barriers = (char *)(b.exchange + warps * ROWS);
    b.rows = barriers + warps * STAGES * 8;
    s->ring = shared_address(ring + b.warp * STAGES * STAGE);
    s->barriers = shared_address(barriers + b.warp * STAGES * 8);
    s->member = b.e;
    s->warp = b.warp;
    s->leads = b.lane == 0;
    return b;
}

static size_t shared_bytes(const mlp *j) {
    int warps = j->width / 64;
    return (size_t)warps * (STAGES * STAGE + ROWS * sizeof(float2) + STAGES * 8) +
           (size_t)ROWS * j->row_bytes;
}

__device__ static inline float sum_of_four(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

// The share of x that GELU (tanh form) lets through.
__device__ static inline float gate(float x) {
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.7978845608f * x * (1 + 0.044715f * x * x)));
    return 0.5f + 0.5f * t;
}

// Rows of the block go to memory, 16 bytes a thread.
__device__ static void store_rows(const mlp &j, const block &b, bf16 *to, int first, int end) {
    int chunks = j.width / 8;
    for (int i = threadIdx.x; i < ROWS * chunks; i += blockDim.x) {
        int row = i / chunks, c = i % chunks;
        if (b.row0 + row < first || b.row0 + row >= end) continue;
        *(uint4 *)(to + (int64_t)(b.row0 + row - first) * j.width + c * 8) =
            *(const uint4 *)(b.rows + row * j.row_bytes + c * 16);
    }
}

// sum over columns of a row of the block times a vector in float, for `count` vectors `stride` apart.
template <typename F>
__device__ static void dots(const mlp &j, const block &b, const float *v, int step, int vector_step,
                            int count, F out) {
    int part = threadIdx.x & 3;
    for (int row = threadIdx.x / 4; row < ROWS; row += blockDim.x / 4)
        for (int o = 0; o < count; o++) {
            const float *w = v + (int64_t)o * vector_step;
            float sum = 0;
#pragma unroll 8
            for (int c = 2 * part; c < j.width; c += 8) {
                float2 x = unpack(*(const uint32_t *)(b.rows + row * j.row_bytes + c * 2));
                sum += x.x * w[(int64_t)c * step] + x.y * w[(int64_t)(c + 1) * step];
            }
            sum = sum_of_four(sum);
            if (part == 0) out(row, o, sum);
        }
}

// ---- forward ----

__device__ static void load_input(const mlp &j, const block &b) {
    int chunks = j.layer[0].in_pad / 8;
    const bf16 *x = (const bf16 *)j.x.p + (j.x.e > 1 ? b.e * j.x.step : 0);
    for (int i = threadIdx.x; i < ROWS * chunks; i += blockDim.x) {
        int row = i / chunks, c = i % chunks;
        uint4 v = {0, 0, 0, 0};
        if (b.row0 + row < j.x.rows)
            v = *(const uint4 *)(x + (int64_t)(b.row0 + row) * j.x.ld + c * 8);
        *(uint4 *)(b.rows + row * j.row_bytes + c * 16) = v;
    }
}

// acc: bias, then what backward needs (rounded as it will read it), then GELU; mean and spread of each row's 64
// columns go to the other warps.
__device__ static void activate(const mlp &j, const mlp_layer &l, const block &b,
                                float acc[M][8][4], bool keep) {
    uint4 *z = (uint4 *)l.z + ((int64_t)b.e * j.tiles + b.tile) * ROWS * j.width / 8 +
               b.warp * 16 * 32 + b.lane;
    float sum[M][2] = {};
#pragma unroll
    for (int p = 0; p < 4; p++) {
        float2 bias[2];
        for (int k = 0; k < 2; k++)
            bias[k] = *(const float2 *)(l.b + (int64_t)b.e * j.width + column_of(b, 2 * p + k));
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint32_t word[4];
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float *v = &acc[m][2 * p + k][2 * h];
                    uint32_t w = pack(v[0] + bias[k].x, v[1] + bias[k].y);
                    float2 x = unpack(w);
                    word[2 * k + h] = w;
                    v[0] = x.x * gate(x.x);
                    v[1] = x.y * gate(x.y);
                    sum[m][h] += v[0] + v[1];
                }
            if (keep) z[(m * 4 + p) * 32] = make_uint4(word[0], word[1], word[2], word[3]);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float mean = sum_of_four(sum[m][h]) / 64, square = 0;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                float d = acc[m][n][2 * h] - mean, f = acc[m][n][2 * h + 1] - mean;
                square += d * d + f * f;
            }
            square = sum_of_four(square);
            if (b.pair == 0)
                b.exchange[b.warp * ROWS + row_of(b, m, h)] = make_float2(mean, square);
        }
}

// LayerNorm with the means and spreads of all warps; the rows become bf16 in shared memory.
__device__ static void normalise(const mlp &j, const mlp_layer &l, const block &b,
                                 float acc[M][8][4], bool keep) {
    int warps = j.width / 64;
    float2 stats[M][2];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = row_of(b, m, h);
            float mean = 0, square = 0;
            for (int w = 0; w < warps; w++)
                mean += b.exchange[w * ROWS + row].x;
            mean /= warps;
            for (int w = 0; w < warps; w++) {
                float2 part = b.exchange[w * ROWS + row];
                square += part.y + 64 * (part.x - mean) * (part.x - mean);
            }
            stats[m][h] = make_float2(mean, rsqrtf(square / j.width + 1e-6f));
            if (keep && b.warp == 0 && b.pair == 0)
                l.stats[((int64_t)b.e * j.tiles + b.tile) * ROWS + row] = stats[m][h];
        }
#pragma unroll
    for (int n = 0; n < 8; n++) {
        int64_t c = (int64_t)b.e * j.width + column_of(b, n);
        float2 scale = *(const float2 *)(l.scale + c), shift = *(const float2 *)(l.shift + c);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float2 s = stats[m][h];
                float y0 = (acc[m][n][2 * h] - s.x) * s.y * scale.x + shift.x,
                      y1 = (acc[m][n][2 * h + 1] - s.x) * s.y * scale.y + shift.y;
                *(uint32_t *)(b.rows + row_of(b, m, h) * j.row_bytes + column_of(b, n) * 2) =
                    pack(y0, y1);
            }
    }
}

template <int WARPS>
__global__ static void __launch_bounds__(32 * WARPS, 1) forward(const __grid_constant__ mlp j) {
    weight_stream s;
    block b = enter(j, &s, 0);
    if (j.used && b.row0 >= *j.used) return;
    stream_start(j, &s, 0, j.layers);
    load_input(j, b);
    __syncthreads();
    bool keep = b.row0 < j.hi && b.row0 + ROWS > j.lo;
    float acc[M][8][4];
    for (int i = 0; i < j.layers; i++) {
        const mlp_layer &l = j.layer[i];
        product(j, acc, shared_address(b.rows), j.row_bytes, l.in_pad / 32, &s);
        activate(j, l, b, acc, keep);
        __syncthreads();
        normalise(j, l, b, acc, keep);
        __syncthreads();
        if (keep && l.h) store_rows(j, b, l.h + b.e * (int64_t)(j.hi - j.lo) * j.width, j.lo, j.hi);
    }
    const float *w = j.head_w + (int64_t)b.e * j.width * j.out, *bias = j.head_b + b.e * j.out;
    float *y = j.y + ((int64_t)b.e * j.x.rows + b.row0) * j.out;
    dots(j, b, w, j.out, 1, j.out, [&](int row, int o, float sum) {
        if (b.row0 + row < j.x.rows) y[row * j.out + o] = sum + bias[o];
    });
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

struct row_numbers { // of the rows whose columns a lane holds
    float2 stats[M][2];
    float dy[M][2]; // of a head with one output
};

// The gradient that reaches the last hidden layer.
__device__ static void head_gradient(const mlp &j, const block &b, float acc[M][8][4],
                                     row_numbers *r) {
    const float *dy = j.dy + (int64_t)b.e * (j.hi - j.lo) * j.out;
    const float *w = j.head_w + (int64_t)b.e * j.width * j.out;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                acc[m][n][i] = 0;
    for (int o = 0; o < j.out; o++) {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = b.row0 + row_of(b, m, h);
                r->dy[m][h] = row >= j.lo && row < j.hi ? dy[(int64_t)(row - j.lo) * j.out + o] : 0;
            }
#pragma unroll
        for (int n = 0; n < 8; n++) {
            float w0 = w[column_of(b, n) * j.out + o], w1 = w[(column_of(b, n) + 1) * j.out + o];
#pragma unroll
            for (int m = 0; m < M; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    acc[m][n][2 * h] += r->dy[m][h] * w0;
                    acc[m][n][2 * h + 1] += r->dy[m][h] * w1;
                }
        }
    }
}

// Sums over the block's rows for scale and shift (and a head of one output); acc becomes the gradient of
// the normalised row, whose two means go to the other warps.
__device__ static void sums_of_layer(const mlp &j, const mlp_layer &l, const block &b,
                                     float acc[M][8][4], const uint4 *z, const row_numbers &r,
                                     float *parts, float *head_parts) {
    float q1[M][2] = {}, q2[M][2] = {};
#pragma unroll
    for (int p = 0; p < 4; p++) {
        float2 scale[2], shift[2];
        float v[8] = {}, v_head[4] = {};
#pragma unroll
        for (int k = 0; k < 2; k++) {
            int64_t c = (int64_t)b.e * j.width + column_of(b, 2 * p + k);
            scale[k] = *(const float2 *)(l.scale + c);
            shift[k] = *(const float2 *)(l.shift + c);
        }
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint4 raw = z[(m * 4 + p) * 32];
            uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float2 x = unpack(word[2 * k + h]), s = r.stats[m][h];
                    float *g = &acc[m][2 * p + k][2 * h];
                    float n0 = (x.x * gate(x.x) - s.x) * s.y, n1 = (x.y * gate(x.y) - s.x) * s.y;
                    v[2 * k] += g[0] * n0;
                    v[2 * k + 1] += g[1] * n1;
                    v[4 + 2 * k] += g[0];
                    v[4 + 2 * k + 1] += g[1];
                    if (head_parts) {
                        v_head[2 * k] += r.dy[m][h] * (n0 * scale[k].x + shift[k].x);
                        v_head[2 * k + 1] += r.dy[m][h] * (n1 * scale[k].y + shift[k].y);
                    }
                    g[0] *= scale[k].x;
                    g[1] *= scale[k].y;
                    q1[m][h] += g[0] + g[1];
                    q2[m][h] += g[0] * n0 + g[1] * n1;
                }
        }
        int index;
        float sum = spread_sum<8>(v, b.lane, &index);
        parts[(index / 4) * j.width + column_of(b, 2 * p + index / 2 % 2) + index % 2] = sum;
        if (!head_parts) continue;
        sum = spread_sum<4>(v_head, b.lane, &index);
        if (!(b.lane & 4)) head_parts[column_of(b, 2 * p + index / 2) + index % 2] = sum;
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float2 q = make_float2(sum_of_four(q1[m][h]), sum_of_four(q2[m][h]));
            if (b.pair == 0) b.exchange[b.warp * ROWS + row_of(b, m, h)] = q;
        }
}

// Through LayerNorm and GELU: the gradient before the bias goes to shared memory as bf16, its sums to parts.
__device__ static void through_layer(const mlp &j, const block &b, float acc[M][8][4],
                                     const uint4 *z, const row_numbers &r, float *parts) {
    int warps = j.width / 64;
    float2 q[M][2];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float2 sum = {0, 0};
            for (int w = 0; w < warps; w++) {
                float2 part = b.exchange[w * ROWS + row_of(b, m, h)];
                sum.x += part.x;
                sum.y += part.y;
            }
            q[m][h] = make_float2(sum.x / j.width, sum.y / j.width);
        }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        float v[4] = {};
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint4 raw = z[(m * 4 + p) * 32];
            uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float2 two = unpack(word[2 * k + h]), s = r.stats[m][h];
                    float d[2];
#pragma unroll
                    for (int c = 0; c < 2; c++) {
                        float x = c ? two.y : two.x, open = gate(x), y = x * open,
                              n = (y - s.x) * s.y;
                        float slope =
                            open + y * (1 - open) * 1.5957691216057308f * (1 + 0.134145f * x * x);
                        d[c] = (acc[m][2 * p + k][2 * h + c] - q[m][h].x - n * q[m][h].y) * s.y *
                               slope;
                        v[2 * k + c] += d[c];
                    }
                    *(uint32_t *)(b.rows + row_of(b, m, h) * j.row_bytes +
                                  column_of(b, 2 * p + k) * 2) = pack(d[0], d[1]);
                }
        }
        int index;
        float sum = spread_sum<4>(v, b.lane, &index);
        if (!(b.lane & 4)) parts[2 * j.width + column_of(b, 2 * p + index / 2) + index % 2] = sum;
    }
}

// The head's bias: one warp adds up dy over the block's rows.
__device__ static void head_bias(const block &b, const row_numbers &r, float *out) {
    float sum = 0;
#pragma unroll
    for (int m = 0; m < M; m++)
        sum += r.dy[m][0] + r.dy[m][1];
    for (int bit = 4; bit < 32; bit *= 2)
        sum += __shfl_xor_sync(~0u, sum, bit);
    if (threadIdx.x == 0) *out = sum;
}

template <int WARPS>
__global__ static void __launch_bounds__(32 * WARPS, 1) backward(const __grid_constant__ mlp j) {
    weight_stream s;
    block b = enter(j, &s, j.lo / ROWS);
    stream_start(j, &s, j.layers - 1, 0);
    float acc[M][8][4];
    row_numbers r;
    head_gradient(j, b, acc, &r);
    int64_t part = (int64_t)b.e * gridDim.x + blockIdx.x;
    float *head_parts = j.head_parts ? j.head_parts + part * (j.width + 1) : NULL;
    if (head_parts) head_bias(b, r, head_parts + j.width);
    for (int i = j.layers - 1; i >= 0; i--) {
        const mlp_layer &l = j.layer[i];
        int64_t tile = (int64_t)b.e * j.tiles + b.tile;
        const uint4 *z = (const uint4 *)l.z + tile * ROWS * j.width / 8 + b.warp * 16 * 32 + b.lane;
        float *parts = l.parts + part * 3 * j.width;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                r.stats[m][h] = l.stats[tile * ROWS + row_of(b, m, h)];
        sums_of_layer(j, l, b, acc, z, r, parts, i == j.layers - 1 ? head_parts : NULL);
        __syncthreads();
        through_layer(j, b, acc, z, r, parts);
        __syncthreads();
        if (l.dz) store_rows(j, b, l.dz + b.e * (int64_t)(j.hi - j.lo) * j.width, j.lo, j.hi);
        if (i) product(j, acc, shared_address(b.rows), j.row_bytes, j.width / 32, &s);
    }
    if (!j.dx) return;
    // The first matrix in float, its rows from dx_first on.
    const float *w = j.first_w + ((int64_t)b.e * j.in + j.dx_first) * j.width;
    float *dx = j.dx + (int64_t)b.e * (j.hi - j.lo) * j.dx_count;
    dots(j, b, w, 1, j.width, j.dx_count, [&](int row, int o, float sum) {
        int at = b.row0 + row;
        if (at >= j.lo && at < j.hi) dx[(int64_t)(at - j.lo) * j.dx_count + o] = sum;
    });
}

// ---- dW = X^T dZ of every layer: tiles of 128 inputs and 64 outputs ----

enum { TILE_IN = 128, TILE_OUT = 64, CHUNK = 32, DW_STAGES = 4, DW_THREADS = 256 };
enum { X_BYTES = TILE_IN * 2 + 16, Z_BYTES = TILE_OUT * 2 + 16 }; // of a row of a chunk
enum { DW_STAGE = CHUNK * (X_BYTES + Z_BYTES) };

struct dw_tile {
    const bf16 *x, *dz; // at the tile's first column
    int x_ld, x_cols;   // columns of x left from here on
    int z_ld, rows;
    float *out;
    int out_ld, in; // rows of out left from here on
};

__device__ static dw_tile find_tile(const mlp &j) {
    int at = blockIdx.x, e = blockIdx.y, i = 0, across = j.width / TILE_OUT;
    for (;; i++) {
        int tiles = div_up(j.layer[i].in, TILE_IN) * across;
        if (at < tiles) break;
        at -= tiles;
    }
    const mlp_layer &l = j.layer[i];
    int in0 = at / across * TILE_IN, out0 = at % across * TILE_OUT;
    int64_t rows = j.hi - j.lo;
    dw_tile t;
    if (i == 0) {
        t.x = (const bf16 *)j.x.p + (j.x.e > 1 ? e * j.x.step : 0) + (int64_t)j.lo * j.x.ld + in0;
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
    t.out_ld = j.width;
    t.in = l.in - in0;
    return t;
}

__device__ static void load_chunk(const dw_tile &t, uint32_t to, int row0) {
    for (int i = threadIdx.x; i < CHUNK * TILE_IN / 8; i += DW_THREADS) {
        int row = i / (TILE_IN / 8), c = i % (TILE_IN / 8) * 8;
        bool there = row0 + row < t.rows && c < t.x_cols;
        copy_16(to + row * X_BYTES + c * 2, there ? t.x + (int64_t)(row0 + row) * t.x_ld + c : t.x,
                there);
    }
    to += CHUNK * X_BYTES;
    for (int i = threadIdx.x; i < CHUNK * TILE_OUT / 8; i += DW_THREADS) {
        int row = i / (TILE_OUT / 8), c = i % (TILE_OUT / 8) * 8;
        bool there = row0 + row < t.rows;
        copy_16(to + row * Z_BYTES + c * 2,
                there ? t.dz + (int64_t)(row0 + row) * t.z_ld + c : t.dz, there);
    }
}

__global__ static void __launch_bounds__(DW_THREADS)
    weight_gradients(const __grid_constant__ mlp j) {
    extern __shared__ __align__(128) char shared[];
    dw_tile t = find_tile(j);
    uint32_t base = shared_address(shared);
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32, in0 = warp / 2 * 32, out0 = warp % 2 * 32;
    int chunks = div_up(t.rows, CHUNK);
    float acc[2][4][4] = {};
    for (int c = 0; c < DW_STAGES - 1; c++) {
        if (c < chunks) load_chunk(t, base + c * DW_STAGE, c * CHUNK);
        copies_end();
    }
    uint32_t x_at = ((lane & 7) + (lane >> 4 & 1) * 8) * X_BYTES + (in0 + (lane >> 3 & 1) * 8) * 2;
    uint32_t z_at = CHUNK * X_BYTES + ((lane & 7) + (lane >> 3 & 1) * 8) * Z_BYTES +
                    (out0 + (lane >> 4 & 1) * 8) * 2;
    for (int c = 0; c < chunks; c++) {
        copies_wait<DW_STAGES - 2>();
        __syncthreads();
        int next = c + DW_STAGES - 1;
        if (next < chunks) load_chunk(t, base + next % DW_STAGES * DW_STAGE, next * CHUNK);
        copies_end();
        uint32_t from = base + c % DW_STAGES * DW_STAGE;
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++) {
            uint32_t a[2][4], b[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
                load_turned(a[m], from + x_at + k * 16 * X_BYTES + m * 32);
#pragma unroll
            for (int n = 0; n < 2; n++)
                load_turned(b[n], from + z_at + k * 16 * Z_BYTES + n * 32);
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int n = 0; n < 2; n++) {
                    multiply(acc[m][2 * n], a[m], b[n][0], b[n][1]);
                    multiply(acc[m][2 * n + 1], a[m], b[n][2], b[n][3]);
                }
        }
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = in0 + m * 16 + h * 8 + lane / 4, c = out0 + n * 8 + lane % 4 * 2;
                if (row < t.in)
                    *(float2 *)(t.out + (int64_t)row * t.out_ld + c) =
                        make_float2(acc[m][n][2 * h], acc[m][n][2 * h + 1]);
            }
}

// ---- launches ----

bool dc_mlp_fits(const dc_cuda *cuda, int width, int in) {
    int in_pad = div_up(in, 32) * 32;
    return cuda->clusters && (width == 128 || width == 256 || width == 512) && in_pad <= 512;
}

void dc_mlp_finish(mlp *j) {
    int widest = j->layer[0].in_pad > j->width ? j->layer[0].in_pad : j->width;
    j->row_bytes = (widest + 8) * 2; // an odd number of 16 bytes: rows lie in different banks
    j->tiles = div_up(j->x.rows, ROWS);
}

template <typename K>
static dc_status launch(dc_cuda *cuda, const mlp *j, K kernel, dim3 grid, int threads, size_t bytes,
                        const char *what) {
    CU(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<grid, threads, bytes, cuda->stream>>>(*j);
    return dc_cuda_check(cudaGetLastError(), what);
}

dc_status dc_mlp_forward(dc_cuda *cuda, const mlp *j) {
    auto kernel = j->width == 512 ? forward<8> : j->width == 256 ? forward<4> : forward<2>;
    return launch(cuda, j, kernel, dim3(j->tiles, j->e), j->width / 2, shared_bytes(j), "mlp(");
}

int dc_mlp_parts(int rows) {
    return div_up(rows, ROWS);
}

dc_status dc_mlp_backward(dc_cuda *cuda, const mlp *j) {
    auto kernel = j->width == 512 ? backward<8> : j->width == 256 ? backward<4> : backward<2>;
    dim3 grid(dc_mlp_parts(j->hi - j->lo), j->e);
    return launch(cuda, j, kernel, grid, j->width / 2, shared_bytes(j), "mlp(");
}

dc_status dc_mlp_weights(dc_cuda *cuda, const mlp *j) {
    int tiles = 0;
    for (int i = 0; i < j->layers; i++)
        tiles += div_up(j->layer[i].in, TILE_IN) * (j->width / TILE_OUT);
    return launch(cuda, j, weight_gradients, dim3(tiles, j->e), DW_THREADS, DW_STAGES * DW_STAGE,
                  "mlp(");
}
