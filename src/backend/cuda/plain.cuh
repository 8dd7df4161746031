// Plain ops: one launch per op forward, and one per op and input backward, for any shape. Values and gradients are dense
// float32 in device memory. What is faster takes over where it can (paths.cu): whole networks, pointwise groups, reductions
// at the step's end; what nothing else takes comes here. plain.cu finds the operands of a node, the other files have
// kernels by subject. Sums are taken in a fixed order, so that the same inputs give the same bytes.
#ifndef DC_CUDA_PLAIN_CUH
#define DC_CUDA_PLAIN_CUH

#include "backend/cuda/internal.cuh"

#include <algorithm>

enum {
    PLAIN_THREADS = 256,
    PLAIN_BLOCKS = 1024,
    PLAIN_SUMS = 256
};                                         // PLAIN_SUMS: blocks of a sum, at most
enum { PLAIN_WARPS = PLAIN_THREADS / 32 }; // rows that a block takes where a warp takes one

// One launch of a plain op. Backward, operands stand at the rows that the node trains.
struct plain {
    dc_op op;
    int input;  // -1: forward; else: gradient to this input
    float a, b; // attributes
    int in_count;
    tensor x[DC_INPUTS]; // values of the inputs
    tensor y;            // forward: the value; backward: the gradient of the input
    tensor dy;           // backward: gradient of the value
    bool add;            // backward: y is added to
    int lo;              // backward: first row that the node trains
    // Of a sum over everything: partial sums (PLAIN_SUMS), blocks that are done, and what forward leaves for backward.
    double *sums;
    unsigned *done;
    float *kept;
    // Of iqe: marks of groups, from forward for backward (plain_iqe.cu), NULL: there are none. And where the launch for
    // input 0 makes the gradient to input 1 as well: that one; p NULL: it does not.
    uint32_t *marks;
    tensor y1;
    bool add1;
    int16_t *
        which; // of mrn_pairs: columns of largest differences, from forward for backward (plain_mrn.cu)
};

// Members lie `step` numbers apart; one that serves all has step 0.
static inline int64_t step_of_members(const tensor &t) {
    return t.e == 1 ? 0 : t.step;
}

// The numbers that a thread of a launch takes, where each takes every my_stride-th from my_first on.
__device__ static inline int64_t my_first() {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static inline int64_t my_stride() {
    return (int64_t)gridDim.x * blockDim.x;
}

__host__ __device__ static inline int64_t cells_of(const tensor &t) { // of one member
    return (int64_t)t.rows * t.cols;
}

// Can a row, or all numbers of a member, be read four at a time?
static inline bool by_four(const tensor &t, int64_t numbers) {
    return !t.p || (numbers % 4 == 0 && (t.e == 1 || t.step % 4 == 0) && (uintptr_t)t.p % 16 == 0);
}

static inline unsigned plain_blocks(int64_t count, int64_t each) {
    int64_t blocks = (count + each - 1) / each;
    return (unsigned)std::min<int64_t>(blocks, PLAIN_BLOCKS);
}

// Who is the last of all blocks adds up what they left, in order; the sum is valid there alone,
// the same for all its threads.
__device__ static inline bool add_up(double mine, double *sums, unsigned *done, double *sum) {
    __shared__ bool last;
    mine = block_sum(mine);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = mine;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return false;
    __threadfence();
    double all = 0;
    for (int i = threadIdx.x; i < (int)gridDim.x; i += blockDim.x)
        all += __ldcg(&sums[i]);
    *sum = block_sum(all);
    return true;
}

// An op forward or backward; NULL where there is none. Those of reductions: a sum, then numbers.
typedef dc_status plain_fn(dc_cuda *cuda, const plain *j);
plain_fn *dc_plain_pointwise(dc_op op, bool back); // plain_pointwise.cu
plain_fn *dc_plain_reduction(dc_op op, bool back); // likewise
plain_fn *dc_plain_rows(dc_op op, bool back);      // plain_rows.cu
plain_fn *dc_plain_gather(dc_op op, bool back);    // plain_gather.cu
plain_fn *dc_plain_picture(dc_op op, bool back);   // plain_picture.cu
plain_fn *dc_plain_iqe(dc_op op, bool back);       // plain_iqe.cu
plain_fn *dc_plain_mrn(dc_op op, bool back);       // plain_mrn.cu

// to (+)= from, dense and of the same shape; and a copy in bf16 whose rows may be padded.
dc_status dc_plain_copy(dc_cuda *cuda, tensor from, tensor to, bool add);
dc_status dc_plain_cast(dc_cuda *cuda, tensor from, tensor to);

// ---- GELU (gelu.cu): y = gelu(x + bias); rows may be bf16 ----
struct gelu_job {
    tensor x, y;       // forward; backward: y is the gradient of x
    const float *bias; // Nullable: (e, cols) of the linear layer that made x
    tensor dy;         // backward
    bool add;
    float *parts; // Nullable: (e, parts, cols): sums of dx over rows, for the bias
};
dc_status dc_gelu_fwd(dc_cuda *cuda, const gelu_job *j);
int dc_gelu_parts(int e, int rows);
dc_status dc_gelu_bwd(dc_cuda *cuda, const gelu_job *j);

#endif
