// Plain ops on pictures: conv3x3 and max_pool, in float32, for any size. What they compute stands in backend/cpu/picture.c.
// A thread makes a number of the output or of an input's gradient; a gradient of weights is a sum over all places of all
// pictures, which a block takes for a row of them, in an order that depends on shapes alone.
#include "backend/cuda/plain.cuh"

__device__ static inline float *numbers(const tensor &t) {
    return (float *)t.p;
}

struct place { // of a number among pictures (rows, h, w, c)
    int64_t row;
    int y, x, channel;
};

__device__ static inline place place_of(int64_t i, int h, int w, int c) {
    place p;
    p.channel = (int)(i % c);
    p.x = (int)(i / c % w);
    p.y = (int)(i / c / w % h);
    p.row = i / c / w / h;
    return p;
}

// Places that a pool leaves of n, and how far its first window reaches out before them, as in tensor/graph.h.
__device__ static inline int pooled(int n) {
    return (n + 1) / 2;
}

__device__ static inline int before(int n) {
    return n % 2;
}

// ---- conv3x3 ----

// y = W x + b, a thread per number of y.
__global__ static void conv_forward(plain j) {
    int h = (int)j.a, w = (int)j.b, d = j.x[1].cols, c = j.x[1].rows / 9;
    const float *weights = numbers(j.x[1]), *bias = numbers(j.x[2]);
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        place p = place_of(i, h, w, d);
        const float *picture = numbers(j.x[0]) + p.row * j.x[0].cols;
        float sum = bias[p.channel];
        for (int tap = 0; tap < 9; tap++) {
            int y = p.y + tap / 3 - 1, x = p.x + tap % 3 - 1;
            if (y < 0 || y >= h || x < 0 || x >= w) continue;
            const float *from = picture + ((int64_t)y * w + x) * c;
            for (int k = 0; k < c; k++)
                sum += from[k] * weights[((int64_t)tap * c + k) * d + p.channel];
        }
        numbers(j.y)[i] = sum;
    }
}

// A thread per number of dx: from every place whose window has it.
__global__ static void conv_backward_x(plain j) {
    int h = (int)j.a, w = (int)j.b, d = j.x[1].cols, c = j.x[1].rows / 9;
    const float *weights = numbers(j.x[1]);
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        place p = place_of(i, h, w, c);
        const float *slopes = numbers(j.dy) + p.row * j.dy.cols;
        float sum = 0;
        for (int tap = 0; tap < 9; tap++) {
            int y = p.y + 1 - tap / 3, x = p.x + 1 - tap % 3;
            if (y < 0 || y >= h || x < 0 || x >= w) continue;
            const float *from = slopes + ((int64_t)y * w + x) * d,
                        *row = weights + ((int64_t)tap * c + p.channel) * d;
            for (int o = 0; o < d; o++)
                sum += from[o] * row[o];
        }
        numbers(j.y)[i] = j.add ? numbers(j.y)[i] + sum : sum;
    }
}

// A block per row of W (of the bias: one row, whose x is 1 everywhere), of which it makes `cols` columns at a time, a
// group of threads for each column. Groups' sums are added in their order.
template <bool BIAS> __global__ static void conv_backward_w(plain j) {
    __shared__ double sums[PLAIN_THREADS];
    int h = (int)j.a, w = (int)j.b, d = j.dy.cols / (h * w), c = j.x[0].cols / (h * w);
    int cols = min(d, PLAIN_THREADS), groups = PLAIN_THREADS / cols;
    int group = threadIdx.x / cols, channel = blockIdx.x % c;
    int up = BIAS ? 0 : blockIdx.x / c / 3 - 1, left = BIAS ? 0 : blockIdx.x / c % 3 - 1;
    int64_t places = (int64_t)j.dy.rows * h * w;
    upstream_wait();
    downstream_start();
    for (int first = 0; first < d; first += cols) {
        int o = first + threadIdx.x % cols;
        double sum = 0;
        for (int64_t i = group; group < groups && o < d && i < places; i += groups) {
            place p = place_of(i, h, w, 1);
            int y = p.y + up, x = p.x + left;
            if (y < 0 || y >= h || x < 0 || x >= w) continue;
            float v =
                BIAS ? 1
                     : numbers(j.x[0])[p.row * j.x[0].cols + ((int64_t)y * w + x) * c + channel];
            sum += (double)v * numbers(j.dy)[i * d + o];
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int g = 1; group == 0 && g < groups; g++)
            sum += sums[threadIdx.x + g * cols];
        float *to = numbers(j.y) + (int64_t)blockIdx.x * d + o;
        if (group == 0 && o < d) *to = j.add ? *to + (float)sum : (float)sum;
        __syncthreads();
    }
}

// ---- max_pool ----

struct pool_size {
    int h, w, c, out_h, out_w;
};

__device__ static inline pool_size pool_size_of(const plain &j) {
    int h = (int)j.a, w = (int)j.b;
    return pool_size{h, w, j.x[0].cols / (h * w), pooled(h), pooled(w)};
}

// Of the window at (y, x) and a channel the place of the largest number, the first of equals; NaN is larger than all.
__device__ static inline int64_t largest(const pool_size &s, const float *picture, int y, int x,
                                         int channel) {
    int y0 = 2 * y - before(s.h), x0 = 2 * x - before(s.w);
    int64_t best = -1;
    for (int v = max(y0, 0); v < min(y0 + 3, s.h); v++)
        for (int u = max(x0, 0); u < min(x0 + 3, s.w); u++) {
            int64_t here = ((int64_t)v * s.w + u) * s.c + channel;
            bool more =
                best < 0 || (!(picture[here] <= picture[best]) && picture[best] == picture[best]);
            if (more) best = here;
        }
    return best;
}

__global__ static void pool_forward(plain j) {
    pool_size s = pool_size_of(j);
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        place p = place_of(i, s.out_h, s.out_w, s.c);
        const float *picture = numbers(j.x[0]) + p.row * j.x[0].cols;
        numbers(j.y)[i] = picture[largest(s, picture, p.y, p.x, p.channel)];
    }
}

// A thread per number of dx: from each window that has it, if it is the one that counts there.
__global__ static void pool_backward(plain j) {
    pool_size s = pool_size_of(j);
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        place p = place_of(i, s.h, s.w, s.c);
        const float *picture = numbers(j.x[0]) + p.row * j.x[0].cols;
        int64_t here = ((int64_t)p.y * s.w + p.x) * s.c + p.channel;
        // Windows begin at 2 k - before and have three places.
        int y1 = (p.y + before(s.h)) / 2, x1 = (p.x + before(s.w)) / 2;
        float sum = 0;
        for (int y = max(y1 - 1, 0); y <= min(y1, s.out_h - 1); y++)
            for (int x = max(x1 - 1, 0); x <= min(x1, s.out_w - 1); x++)
                if (largest(s, picture, y, x, p.channel) == here)
                    sum += numbers(
                        j.dy)[p.row * j.dy.cols + ((int64_t)y * s.out_w + x) * s.c + p.channel];
        numbers(j.y)[i] = j.add ? numbers(j.y)[i] + sum : sum;
    }
}

// ---- launches ----

template <void (*KERNEL)(plain)> static dc_status by_numbers(dc_cuda *cuda, const plain *j) {
    return launch(cuda, KERNEL, dim3(plain_blocks(cells_of(j->y), PLAIN_THREADS)), PLAIN_THREADS, 0,
                  1, false, "picture(", *j);
}

static dc_status conv_backward(dc_cuda *cuda, const plain *j) {
    if (j->input == 0) return by_numbers<conv_backward_x>(cuda, j);
    if (j->input == 1)
        return launch(cuda, conv_backward_w<false>, dim3((unsigned)j->y.rows), PLAIN_THREADS, 0, 1,
                      false, "picture(", *j);
    return launch(cuda, conv_backward_w<true>, dim3(1), PLAIN_THREADS, 0, 1, false, "picture(", *j);
}

plain_fn *dc_plain_picture(dc_op op, bool back) {
    if (op == DC_OP_conv3x3) return back ? conv_backward : by_numbers<conv_forward>;
    if (op == DC_OP_max_pool) return back ? by_numbers<pool_backward> : by_numbers<pool_forward>;
    return NULL;
}
