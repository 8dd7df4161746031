// Plain ops that move numbers, or bring the members of an ensemble together: a thread takes a number of the output.
#include "backend/cuda/plain.cuh"

// Number i of member e, dense within a member.
__device__ static inline float *number(const tensor &t, int e, int64_t i) {
    return (float *)t.p + (t.e == 1 ? 0 : e * t.step) + i;
}

__global__ static void columns_forward(plain j) {
    int first = (int)j.a, cols = j.y.cols;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride())
        *number(j.y, blockIdx.y, i) =
            *number(j.x[0], blockIdx.y, i / cols * j.x[0].cols + first + i % cols);
}

// A thread per number of the gradient of x: those of other columns are 0.
__global__ static void columns_backward(plain j) {
    int first = (int)j.a, cols = j.dy.cols;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        int c = (int)(i % j.y.cols) - first;
        bool inside = c >= 0 && c < cols;
        float v = inside ? *number(j.dy, blockIdx.y, i / j.y.cols * cols + c) : 0;
        float *to = number(j.y, blockIdx.y, i);
        *to = j.add ? *to + v : v;
    }
}

__global__ static void join_forward(plain j) {
    int first = j.x[0].cols;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        int64_t r = i / j.y.cols;
        int c = (int)(i % j.y.cols), side = c >= first;
        *number(j.y, blockIdx.y, i) =
            *number(j.x[side], blockIdx.y, r * j.x[side].cols + c - (side ? first : 0));
    }
}

__global__ static void join_backward(plain j) {
    int first = j.input ? j.dy.cols - j.y.cols : 0;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        float v = *number(j.dy, blockIdx.y, i / j.y.cols * j.dy.cols + first + i % j.y.cols);
        float *to = number(j.y, blockIdx.y, i);
        *to = j.add ? *to + v : v;
    }
}

// y = x[index], 0 where the index is negative.
__global__ static void unpack_forward(plain j) {
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < j.y.rows; i += my_stride()) {
        float index = *number(j.x[0], 0, i);
        *number(j.y, blockIdx.y, i) = index >= 0 ? *number(j.x[1], blockIdx.y, (int64_t)index) : 0;
    }
}

__global__ static void repeat_forward(plain j) {
    int times = (int)j.a, cols = j.y.cols;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride())
        *number(j.y, blockIdx.y, i) =
            *number(j.x[0], blockIdx.y, i / cols / times * cols + i % cols);
}

// From pictures (a, places, b) to one of (places, a, b), row by row.
__global__ static void interleave_forward(plain j) {
    int pictures = (int)j.a, channels = (int)j.b, cols = j.y.cols;
    int places = cols / (pictures * channels);
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        int c = (int)(i % cols), place = c / (pictures * channels);
        int picture = c / channels % pictures, from = picture * places + place;
        *number(j.y, 0, i) = *number(j.x[0], 0, i - c + from * channels + c % channels);
    }
}

// Of `group` rows the one whose worth is largest, the first of equals.
__global__ static void pick_best_forward(plain j) {
    int group = (int)j.a, cols = j.y.cols;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        const float *worth = number(j.x[0], 0, i / cols * group);
        int best = 0;
        for (int k = 1; k < group; k++)
            if (worth[k] > worth[best]) best = k;
        *number(j.y, 0, i) = *number(j.x[1], 0, (i / cols * group + best) * cols + i % cols);
    }
}

// The largest of `group` rows of one number; NaN if one is.
__global__ static void group_max_forward(plain j) {
    int group = (int)j.a;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < j.y.rows; i += my_stride()) {
        const float *of = number(j.x[0], blockIdx.y, i * group);
        float most = of[0];
        for (int k = 1; k < group; k++)
            if (!(of[k] <= most) && most == most) most = of[k];
        *number(j.y, blockIdx.y, i) = most;
    }
}

// ---- over the ensemble ----

// The member that is least at number i; the first of equals.
__device__ static inline int least_at(const tensor &x, int64_t i) {
    int least = 0;
    for (int e = 1; e < x.e; e++)
        if (*number(x, e, i) < *number(x, least, i)) least = e;
    return least;
}

template <bool MEAN> __global__ static void ensemble_forward(plain j) {
    const tensor &x = j.x[0];
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        float sum = 0;
        for (int e = 0; MEAN && e < x.e; e++)
            sum += *number(x, e, i);
        *number(j.y, 0, i) = MEAN ? sum / (float)x.e : *number(x, least_at(x, i), i);
    }
}

template <bool MEAN> __global__ static void ensemble_backward(plain j) {
    const tensor &x = j.x[0];
    int e = blockIdx.y;
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(j.y); i += my_stride()) {
        float g = *number(j.dy, 0, i), *to = number(j.y, e, i);
        float v = MEAN ? g / (float)x.e : least_at(x, i) == e ? g : 0;
        *to = j.add ? *to + v : v;
    }
}

// ---- copies ----

__global__ static void copy(tensor from, tensor to, bool add) {
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(to); i += my_stride()) {
        float v = *number(from, blockIdx.y, i), *out = number(to, blockIdx.y, i);
        *out = add ? *out + v : v;
    }
}

// Four numbers per thread, where rows follow each other in both.
__global__ static void cast_four(tensor from, tensor to) {
    upstream_wait();
    downstream_start();
    for (int64_t i = 4 * my_first(); i < cells_of(to); i += 4 * my_stride()) {
        float4 v = *(const float4 *)number(from, blockIdx.y, i);
        __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
        *(uint2 *)((bf16 *)to.p + blockIdx.y * to.step + i) =
            make_uint2(*(unsigned *)&a, *(unsigned *)&b);
    }
}

__global__ static void cast(tensor from, tensor to) {
    upstream_wait();
    downstream_start();
    for (int64_t i = my_first(); i < cells_of(to); i += my_stride())
        ((bf16 *)to.p)[blockIdx.y * to.step + i / to.cols * to.ld + i % to.cols] =
            __float2bfloat16(*number(from, blockIdx.y, i));
}

// ---- launches ----

// A thread per number of y.
template <void (*KERNEL)(plain)> static dc_status by_numbers(dc_cuda *cuda, const plain *j) {
    return launch(cuda, KERNEL, dim3(plain_blocks(cells_of(j->y), PLAIN_THREADS), (unsigned)j->y.e),
                  PLAIN_THREADS, 0, 1, false, "gather(", *j);
}

// No gradient flows through it, so nobody calls its backward.
static dc_status no_gradient(dc_cuda *, const plain *) {
    return DC_OK;
}

plain_fn *dc_plain_gather(dc_op op, bool back) {
    switch (op) {
    case DC_OP_columns:
        return back ? by_numbers<columns_backward> : by_numbers<columns_forward>;
    case DC_OP_join:
        return back ? by_numbers<join_backward> : by_numbers<join_forward>;
    case DC_OP_unpack:
        return back ? no_gradient : by_numbers<unpack_forward>;
    case DC_OP_repeat:
        return back ? no_gradient : by_numbers<repeat_forward>;
    case DC_OP_interleave:
        return back ? no_gradient : by_numbers<interleave_forward>;
    case DC_OP_pick_best:
        return back ? no_gradient : by_numbers<pick_best_forward>;
    case DC_OP_group_max:
        return back ? no_gradient : by_numbers<group_max_forward>;
    case DC_OP_ensemble_min:
        return back ? by_numbers<ensemble_backward<false>> : by_numbers<ensemble_forward<false>>;
    case DC_OP_ensemble_mean:
        return back ? by_numbers<ensemble_backward<true>> : by_numbers<ensemble_forward<true>>;
    default:
        return NULL;
    }
}

dc_status dc_plain_copy(dc_cuda *cuda, tensor from, tensor to, bool add) {
    return launch(cuda, copy, dim3(plain_blocks(cells_of(to), PLAIN_THREADS), (unsigned)to.e),
                  PLAIN_THREADS, 0, 1, false, "copy(", from, to, add);
}

dc_status dc_plain_cast(dc_cuda *cuda, tensor from, tensor to) {
    if (to.ld == to.cols && by_four(from, cells_of(from)) && by_four(to, cells_of(to)))
        return launch(cuda, cast_four,
                      dim3(plain_blocks(cells_of(to), 4 * PLAIN_THREADS), (unsigned)to.e),
                      PLAIN_THREADS, 0, 1, false, "cast(", from, to);
    return launch(cuda, cast, dim3(plain_blocks(cells_of(to), PLAIN_THREADS), (unsigned)to.e),
                  PLAIN_THREADS, 0, 1, false, "cast(", from, to);
}
