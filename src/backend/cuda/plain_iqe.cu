// iqe: columns are cut into groups; the intervals [x_i, y_i] of a group (those with x_i < y_i) have a union, whose length is
// the group's component. d = m mean + (1 - m) max over components, m = sigmoid(rho). A warp takes a row, a lane a group.
//
// The union's length is the sum of the right ends that close a piece of it, less that of the left ends that open one: which
// ends those are, each interval finds by looking at the others (k^2 comparisons, no sorting), and they are the gradient too.
// Of equal ends the first counts.
#include "backend/cuda/plain.cuh"

// Does interval i's left end open a piece of the union: is there no other that covers it?
__device__ static inline bool opens(const float *x, const float *y, int group, int i) {
    if (!(x[i] < y[i])) return false;
    for (int k = 0; k < group; k++)
        if (k != i && x[k] < y[k] && x[i] <= y[k] && (x[k] < x[i] || (x[k] == x[i] && k < i)))
            return false;
    return true;
}

__device__ static inline bool closes(const float *x, const float *y, int group, int i) {
    if (!(x[i] < y[i])) return false;
    for (int k = 0; k < group; k++)
        if (k != i && x[k] < y[k] && x[k] <= y[i] && (y[k] > y[i] || (y[k] == y[i] && k < i)))
            return false;
    return true;
}

__device__ static inline float component(const float *x, const float *y, int group) {
    float length = 0;
    for (int i = 0; i < group; i++) {
        if (isnan(x[i]) || isnan(y[i])) return x[i] + y[i]; // so that the guard sees it
        if (closes(x, y, group, i)) length += y[i];
        if (opens(x, y, group, i)) length -= x[i];
    }
    return length;
}

struct summary { // of a row's components
    float mean, most;
    int first; // the first that is largest
};

// Of all lanes, each of which has the sum of some components, and the largest of them.
__device__ static inline summary over_lanes(summary s, int count) {
    s.mean = warp_sum(s.mean) / (float)count;
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        float most = __shfl_xor_sync(~0u, s.most, d);
        int first = __shfl_xor_sync(~0u, s.first, d);
        if (most > s.most || (most == s.most && first < s.first)) {
            s.most = most;
            s.first = first;
        }
    }
    return s;
}

__device__ static inline summary summarise(const float *x, const float *y, int cols, int group) {
    int lane = threadIdx.x & 31, count = cols / group;
    summary s = {0, -INFINITY, count};
    for (int g = lane; g < count; g += 32) {
        float length = component(x + g * group, y + g * group, group);
        s.mean += length;
        if (length > s.most || s.first == count) {
            s.most = length;
            s.first = g;
        }
    }
    return over_lanes(s, count);
}

__device__ static inline float sigmoid(const float *rho) {
    return 1 / (1 + expf(-*rho));
}

__device__ static inline int64_t warp_row() {
    return (int64_t)blockIdx.x * PLAIN_WARPS + threadIdx.x / 32;
}

__device__ static inline const float *row_at(const tensor &t, int64_t r) {
    return (const float *)t.p + r * t.ld;
}

__global__ static void iqe_forward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    summary s = summarise(row_at(j.x[0], r), row_at(j.x[1], r), j.x[0].cols, (int)j.a);
    float m = sigmoid((const float *)j.x[2].p);
    if ((threadIdx.x & 31) == 0) ((float *)j.y.p)[r] = m * s.mean + (1 - m) * s.most;
}

// To x (input 0) or y (1): a component counts m / groups, the largest 1 - m more.
__global__ static void iqe_backward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    const float *x = row_at(j.x[0], r), *y = row_at(j.x[1], r);
    int cols = j.x[0].cols, group = (int)j.a, count = cols / group;
    summary s = summarise(x, y, cols, group);
    float m = sigmoid((const float *)j.x[2].p), g = ((const float *)j.dy.p)[r];
    float *to = (float *)j.y.p + r * j.y.ld;
    for (int c = threadIdx.x & 31; c < cols; c += 32) {
        int k = c / group;
        const float *xs = x + k * group, *ys = y + k * group;
        float weight = g * (m / (float)count + (k == s.first ? 1 - m : 0)), v = 0;
        if (j.input == 0 && opens(xs, ys, group, c % group)) v = -weight;
        if (j.input == 1 && closes(xs, ys, group, c % group)) v = weight;
        to[c] = j.add ? to[c] + v : v;
    }
}

// To rho: the sum over rows of dy (mean - max) m (1 - m).
__global__ static void iqe_rho(plain j) {
    double sum = 0, all;
    upstream_wait();
    downstream_start();
    for (int64_t r = warp_row(); r < j.dy.rows; r += (int64_t)gridDim.x * PLAIN_WARPS) {
        summary s = summarise(row_at(j.x[0], r), row_at(j.x[1], r), j.x[0].cols, (int)j.a);
        if ((threadIdx.x & 31) == 0)
            sum += (double)((const float *)j.dy.p)[r] * (double)(s.mean - s.most);
    }
    if (!add_up(sum, j.sums, j.done, &all) || threadIdx.x) return;
    float m = sigmoid((const float *)j.x[2].p), v = (float)(all * m * (1 - m)),
          *to = (float *)j.y.p;
    *to = j.add ? *to + v : v;
}

// ---- groups in registers ----

struct ends {
    unsigned marks; // bit i: x[i] opens a piece of the union, bit IQE_GROUP + i: y[i] closes one
    float length;
};

// As opens, closes and component have it. An empty interval is put where it covers nothing.
__device__ static inline ends union_of(float x[IQE_GROUP], float y[IQE_GROUP]) {
    ends all = {0, 0};
    bool bad = false;
#pragma unroll
    for (int i = 0; i < IQE_GROUP; i++) {
        bad |= isnan(x[i]) | isnan(y[i]);
        bool there = x[i] < y[i];
        x[i] = there ? x[i] : INFINITY;
        y[i] = there ? y[i] : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < IQE_GROUP; i++) {
        bool open = x[i] < y[i], close = open;
#pragma unroll
        for (int k = 0; k < IQE_GROUP; k++) {
            if (k == i) continue;
            bool before = k < i ? x[k] <= x[i] : x[k] < x[i],
                 after = k < i ? y[k] >= y[i] : y[k] > y[i];
            open &= !(before & (x[i] <= y[k]));
            close &= !(after & (x[k] <= y[i]));
        }
        if (close) all.length += y[i];
        if (open) all.length -= x[i];
        all.marks |= (unsigned)open << i | (unsigned)close << (IQE_GROUP + i);
    }
    if (bad) all.length = NAN; // so that the guard sees it
    return all;
}

__device__ static inline void load_group(const float *p, float v[IQE_GROUP]) {
#pragma unroll
    for (int i = 0; i < IQE_GROUP; i += 4) {
        float4 four = *(const float4 *)(p + i);
        v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
    }
}

// As summarise, leaving marks if they are wanted.
__device__ static inline summary mark_row(const float *x, const float *y, int count,
                                          uint16_t *marks) {
    int lane = threadIdx.x & 31;
    summary s = {0, -INFINITY, count};
#pragma unroll 2
    for (int g = lane; g < count; g += 32) {
        float xs[IQE_GROUP], ys[IQE_GROUP];
        load_group(x + g * IQE_GROUP, xs);
        load_group(y + g * IQE_GROUP, ys);
        ends e = union_of(xs, ys);
        if (marks) marks[g] = (uint16_t)e.marks;
        s.mean += e.length;
        if (e.length > s.most || s.first == count) {
            s.most = e.length;
            s.first = g;
        }
    }
    return over_lanes(s, count);
}

__global__ static void marked_forward(plain j) {
    int64_t r = warp_row();
    int count = j.x[0].cols / IQE_GROUP;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    summary s =
        mark_row(row_at(j.x[0], r), row_at(j.x[1], r), count, j.marks ? j.marks + r * count : NULL);
    float m = sigmoid((const float *)j.x[2].p);
    if (threadIdx.x & 31) return;
    ((float *)j.y.p)[r] = m * s.mean + (1 - m) * s.most;
    if (j.marks) j.row_stats[r] = make_float2(s.mean - s.most, __int_as_float(s.first));
}

// `weight` for each of four columns whose bit is set.
__device__ static inline void put_four(float *to, unsigned bits, float weight, bool add) {
    float4 old = add ? *(float4 *)to : make_float4(0, 0, 0, 0);
    old.x += bits & 1 ? weight : 0;
    old.y += bits & 2 ? weight : 0;
    old.z += bits & 4 ? weight : 0;
    old.w += bits & 8 ? weight : 0;
    *(float4 *)to = old;
}

// As iqe_backward, a thread has four columns; to x and y at once if j.y1 is there.
__global__ static void marked_backward(plain j) {
    int fours = j.x[0].cols / 4, count = j.x[0].cols / IQE_GROUP;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, r = i / fours;
    int c = (int)(i % fours) * 4, k = c / IQE_GROUP;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    float m = sigmoid((const float *)j.x[2].p), g = ((const float *)j.dy.p)[r];
    unsigned marks = j.marks[r * count + k];
    int first = __float_as_int(j.row_stats[r].y);
    float weight = g * (m / (float)count + (k == first ? 1 - m : 0));
    unsigned open = marks >> (c % IQE_GROUP), close = open >> IQE_GROUP;
    float *to = (float *)j.y.p + r * j.y.ld + c;
    put_four(to, j.input ? close : open, j.input ? weight : -weight, j.add);
    if (j.y1.p) put_four((float *)j.y1.p + r * j.y1.ld + c, close, weight, j.add1);
}

__global__ static void __launch_bounds__(PLAIN_THREADS) marked_rho(plain j) {
    double sum = 0, all;
    upstream_wait();
    downstream_start();
    for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < j.dy.rows;
         r += (int64_t)gridDim.x * blockDim.x)
        sum += (double)((const float *)j.dy.p)[r] * (double)j.row_stats[r].x;
    if (!add_up(sum, j.sums, j.done, &all) || threadIdx.x) return;
    float m = sigmoid((const float *)j.x[2].p), v = (float)(all * m * (1 - m)),
          *to = (float *)j.y.p;
    *to = j.add ? *to + v : v;
}

// ---- launches ----

// A thread a group: may forward read both inputs four numbers at a time?
static bool in_registers(const plain *j) {
    bool fits = (int)j->a == IQE_GROUP;
    for (int i = 0; i < 2; i++)
        fits = fits && j->x[i].ld % 4 == 0 && by_four(j->x[i], j->x[i].cols);
    return fits;
}

static dc_status backward_by_marks(dc_cuda *cuda, const plain *j) {
    enum { ROWS = 4 * PLAIN_THREADS }; // of a block that adds up
    int64_t fours = (int64_t)j->dy.rows * (j->x[0].cols / 4);
    DC_CHECK(in_registers(j) && (j->input == 2 || by_four(j->y, j->y.ld)) &&
             by_four(j->y1, j->y1.ld));
    if (j->input < 2)
        return launch(cuda, marked_backward, dim3((unsigned)div_up(fours, PLAIN_THREADS)),
                      PLAIN_THREADS, 0, 1, false, "iqe(", *j);
    unsigned blocks = (unsigned)std::min<int>(div_up(j->dy.rows, ROWS), PLAIN_SUMS);
    return launch(cuda, marked_rho, dim3(blocks), PLAIN_THREADS, 0, 1, false, "iqe(", *j);
}

static dc_status forward(dc_cuda *cuda, const plain *j) {
    if (in_registers(j))
        return launch(cuda, marked_forward, dim3((unsigned)div_up(j->y.rows, PLAIN_WARPS)),
                      PLAIN_THREADS, 0, 1, false, "iqe(", *j);
    return launch(cuda, iqe_forward, dim3((unsigned)div_up(j->y.rows, PLAIN_WARPS)), PLAIN_THREADS,
                  0, 1, false, "iqe(", *j);
}

static dc_status backward(dc_cuda *cuda, const plain *j) {
    int blocks = div_up(j->dy.rows, PLAIN_WARPS);
    if (j->marks) return backward_by_marks(cuda, j);
    if (j->input < 2)
        return launch(cuda, iqe_backward, dim3((unsigned)blocks), PLAIN_THREADS, 0, 1, false,
                      "iqe(", *j);
    return launch(cuda, iqe_rho, dim3((unsigned)std::min<int>(blocks, PLAIN_SUMS)), PLAIN_THREADS,
                  0, 1, false, "iqe(", *j);
}

plain_fn *dc_plain_iqe(dc_op op, bool back) {
    if (op != DC_OP_iqe) return NULL;
    return back ? backward : forward;
}
