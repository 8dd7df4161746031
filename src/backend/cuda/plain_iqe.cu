// iqe: columns are cut into groups; the intervals [x_i, y_i] of a group (those with x_i < y_i) have a union, whose length is
// the group's component. d = m mean + (1 - m) max over components, m = sigmoid(rho). A warp takes a row, a lane a group.
//
// The union's length is the sum of the right ends that close a piece of it, less that of the left ends that open one: which
// ends those are, each interval finds by looking at the others (k^2 comparisons, no sorting), and they are the gradient too.
// Of equal ends the first counts. Forward keeps each row's mean and largest component.
//
// Groups of 8 and of 16 columns are kept in registers: forward leaves a mark for every end that opens or closes a piece, so
// that backward reads no value, and makes the gradients to x and y in one launch. Of other sizes backward finds the ends
// again.
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
        length += 0 * (y[i] - x[i]); // NaN and Inf stay, so that the guard sees them
        if (closes(x, y, group, i)) length += y[i];
        if (opens(x, y, group, i)) length -= x[i];
    }
    return length;
}

struct summary { // of a row's components, as forward keeps it for backward
    float mean, most;
    int first; // the first that is largest
};
static_assert(sizeof(summary) == DC_IQE_STATS * sizeof(float), "what plain.cu has memory for");

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

__device__ static inline void count_in(summary *s, float length, int g, int count) {
    s->mean += length;
    if (length > s->most || s->first == count) {
        s->most = length;
        s->first = g;
    }
}

__device__ static inline summary summarise(const float *x, const float *y, int cols, int group) {
    int count = cols / group;
    summary s = {0, -INFINITY, count};
    for (int g = threadIdx.x & 31; g < count; g += 32)
        count_in(&s, component(x + g * group, y + g * group, group), g, count);
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

__device__ static inline void finish_row(const plain &j, int64_t r, const summary &s) {
    float m = sigmoid((const float *)j.x[2].p);
    if (threadIdx.x & 31) return;
    ((float *)j.y.p)[r] = m * s.mean + (1 - m) * s.most;
    ((summary *)j.kept)[r] = s;
}

__global__ static void iqe_forward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    finish_row(j, r, summarise(row_at(j.x[0], r), row_at(j.x[1], r), j.x[0].cols, (int)j.a));
}

// To x (input 0) or y (1): a component counts m / groups, the largest 1 - m more.
__global__ static void iqe_backward(plain j) {
    int64_t r = warp_row();
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    const float *x = row_at(j.x[0], r), *y = row_at(j.x[1], r);
    int cols = j.x[0].cols, group = (int)j.a, count = cols / group;
    int first = ((const summary *)j.kept)[j.lo + r].first;
    float m = sigmoid((const float *)j.x[2].p), g = ((const float *)j.dy.p)[r];
    float *to = (float *)j.y.p + r * j.y.ld;
    for (int c = threadIdx.x & 31; c < cols; c += 32) {
        int k = c / group;
        const float *xs = x + k * group, *ys = y + k * group;
        float weight = g * (m / (float)count + (k == first ? 1 - m : 0)), v = 0;
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
    for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < j.dy.rows;
         r += (int64_t)gridDim.x * blockDim.x) {
        summary s = ((const summary *)j.kept)[j.lo + r];
        sum += (double)((const float *)j.dy.p)[r] * (double)(s.mean - s.most);
    }
    if (!add_up(sum, j.sums, j.done, &all) || threadIdx.x) return;
    float m = sigmoid((const float *)j.x[2].p), v = (float)(all * m * (1 - m)),
          *to = (float *)j.y.p;
    *to = j.add ? *to + v : v;
}

// ---- groups in registers ----

template <int G> struct ends {
    uint32_t marks; // bit i: x[i] opens a piece of the union, bit G + i: y[i] closes one
    float length;
};

// As opens, closes and component have it. An empty interval is put where it covers nothing.
template <int G> __device__ static inline ends<G> union_of(float x[G], float y[G]) {
    ends<G> all = {0, 0};
#pragma unroll
    for (int i = 0; i < G; i++) {
        all.length += 0 * (y[i] - x[i]);
        bool there = x[i] < y[i];
        x[i] = there ? x[i] : INFINITY;
        y[i] = there ? y[i] : -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < G; i++) {
        bool open = x[i] < y[i], close = open;
#pragma unroll
        for (int k = 0; k < G; k++) {
            if (k == i) continue;
            bool before = k < i ? x[k] <= x[i] : x[k] < x[i],
                 after = k < i ? y[k] >= y[i] : y[k] > y[i];
            open &= !(before & (x[i] <= y[k]));
            close &= !(after & (x[k] <= y[i]));
        }
        if (close) all.length += y[i];
        if (open) all.length -= x[i];
        all.marks |= (uint32_t)open << i | (uint32_t)close << (G + i);
    }
    return all;
}

template <int G> __device__ static inline void load_group(const float *p, float v[G]) {
#pragma unroll
    for (int i = 0; i < G; i += 4) {
        float4 four = *(const float4 *)(p + i);
        v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
    }
}

template <int G> __global__ static void marked_forward(plain j) {
    int64_t r = warp_row();
    int count = j.x[0].cols / G;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    const float *x = row_at(j.x[0], r), *y = row_at(j.x[1], r);
    summary s = {0, -INFINITY, count};
#pragma unroll 16 / G
    for (int g = threadIdx.x & 31; g < count; g += 32) {
        float xs[G], ys[G];
        load_group<G>(x + g * G, xs);
        load_group<G>(y + g * G, ys);
        ends<G> e = union_of<G>(xs, ys);
        if (j.marks) j.marks[r * count + g] = e.marks;
        count_in(&s, e.length, g, count);
    }
    finish_row(j, r, over_lanes(s, count));
}

// `weight` for each of four columns whose bit is set.
__device__ static inline void put_four(float *to, uint32_t bits, float weight, bool add) {
    float4 v = add ? *(float4 *)to : make_float4(0, 0, 0, 0);
    v.x += bits & 1 ? weight : 0;
    v.y += bits & 2 ? weight : 0;
    v.z += bits & 4 ? weight : 0;
    v.w += bits & 8 ? weight : 0;
    *(float4 *)to = v;
}

// As iqe_backward; a thread has four columns. To both at once if j.y1 is there.
template <int G> __global__ static void marked_backward(plain j) {
    int fours = j.x[0].cols / 4, count = j.x[0].cols / G;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, r = i / fours;
    int c = (int)(i % fours) * 4, k = c / G;
    upstream_wait();
    downstream_start();
    if (r >= j.y.rows) return;
    float m = sigmoid((const float *)j.x[2].p), g = ((const float *)j.dy.p)[r];
    int first = ((const summary *)j.kept)[j.lo + r].first;
    float weight = g * (m / (float)count + (k == first ? 1 - m : 0));
    uint32_t open = j.marks[(j.lo + r) * count + k] >> c % G, close = open >> G;
    put_four((float *)j.y.p + r * j.y.ld + c, j.input ? close : open, j.input ? weight : -weight,
             j.add);
    if (j.y1.p) put_four((float *)j.y1.p + r * j.y1.ld + c, close, weight, j.add1);
}

// ---- launches ----

static dc_status by_rows(dc_cuda *cuda, const plain *j, int rows, void (*kernel)(plain)) {
    return launch(cuda, kernel, dim3((unsigned)div_up(rows, PLAIN_WARPS)), PLAIN_THREADS, 0, 1,
                  false, "iqe(", *j);
}

static dc_status forward(dc_cuda *cuda, const plain *j) {
    bool fours = true;
    for (int i = 0; i < 2; i++)
        fours = fours && j->x[i].ld % 4 == 0 && by_four(j->x[i], j->x[i].cols);
    DC_CHECK(fours || !j->marks);
    return by_rows(cuda, j, j->y.rows,
                   fours && j->a == 8    ? marked_forward<8>
                   : fours && j->a == 16 ? marked_forward<16>
                                         : iqe_forward);
}

static dc_status backward(dc_cuda *cuda, const plain *j) {
    if (j->input == 2) {
        int blocks = std::min<int>(div_up(j->dy.rows, 4 * PLAIN_THREADS), PLAIN_SUMS);
        return launch(cuda, iqe_rho, dim3((unsigned)blocks), PLAIN_THREADS, 0, 1, false, "iqe(",
                      *j);
    }
    if (!j->marks) return by_rows(cuda, j, j->dy.rows, iqe_backward);
    DC_CHECK(by_four(j->y, j->y.ld) && by_four(j->y1, j->y1.ld));
    int64_t fours = (int64_t)j->dy.rows * (j->x[0].cols / 4);
    return launch(cuda, j->a == 8 ? marked_backward<8> : marked_backward<16>,
                  dim3((unsigned)div_up(fours, PLAIN_THREADS)), PLAIN_THREADS, 0, 1, false, "iqe(",
                  *j);
}

plain_fn *dc_plain_iqe(dc_op op, bool back) {
    if (op != DC_OP_iqe) return NULL;
    return back ? backward : forward;
}
