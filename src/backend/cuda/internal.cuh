// What the .cu files of the backend share: the device, tensors in its memory, errors as statuses.
#ifndef DC_CUDA_INTERNAL_CUH
#define DC_CUDA_INTERNAL_CUH

extern "C" {
#include "backend/cuda/cuda.h"
}

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <vector>

typedef __nv_bfloat16 bf16;

// Streams that independent parts of a step take; three for an early update; and one on which rows are drawn.
enum { STREAMS = 4, EARLY_STREAM = STREAMS, DRAW_STREAM = STREAMS + 3, ALL_STREAMS };

// Streams of a recording's part that waits for no other part (dc_cuda_branch), and workspaces of its matrix products.
struct branch {
    cudaStream_t streams[ALL_STREAMS];
    void *workspaces[STREAMS];
    cudaEvent_t done;
};

struct dc_cuda {
    cudaStream_t stream; // that launches go to now: stream 0 unless a program says otherwise
    cublasLtHandle_t lt;
    std::vector<branch *> branches;
    cudaStream_t *streams; // of the branch under way
    void *workspace, **workspaces;
    cudaEvent_t fork;
    size_t workspace_bytes;
    std::vector<void *> memory, host_memory; // taken: of the device, page-locked
    char name[256];
    bool clusters;   // blocks can form clusters, and kernels start early (compute capability 9)
    bool early;      // the next launch may start before what it follows is done
    bool hopper;     // compute capability 9.0, and code for it: mlp.cu
    int shared_most; // bytes of shared memory that a block can have
};

// A CUDA call's result as a status that names the call.
dc_status dc_cuda_check(cudaError_t error, const char *call);
#define CU(call) DC_TRY(dc_cuda_check((call), #call))

template <typename K> static inline dc_status want_shared(const dc_cuda *cuda, K kernel) {
    return dc_cuda_want_shared(cuda, (const void *)kernel);
}

// A kernel may start before the one that it follows is done; what that one wrote is there after the wait, and what came
// before that one is there anyway. The other side: from here on, who follows may start.
__device__ static inline void upstream_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ static inline void downstream_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// `cluster` blocks along z form a cluster; early: it may start before the kernel that it follows is done, as the first of a
// task may if the program says so.
template <typename K, typename... A>
static dc_status launch(dc_cuda *cuda, K kernel, dim3 grid, int threads, size_t bytes, int cluster,
                        bool early, const char *name, const A &...args) {
    DC_TRY(want_shared(cuda, kernel));
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = dim3((unsigned)threads);
    launch.dynamicSmemBytes = bytes;
    launch.stream = cuda->stream;
    cudaLaunchAttribute attributes[2] = {};
    if (cluster > 1) {
        attributes[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[launch.numAttrs++].val.clusterDim = {1, 1, (unsigned)cluster};
    }
    if ((early || cuda->early) && cuda->clusters) {
        attributes[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    launch.attrs = attributes;
    cuda->early = false;
    return dc_cuda_check(cudaLaunchKernelEx(&launch, kernel, args...), name);
}

// (e, rows, cols) in device memory, rows ld numbers apart, members `step` numbers apart (0: shared).
struct tensor {
    void *p;
    int e, rows, cols, ld;
    int64_t step;
    bool half; // bf16, else float
};

static inline tensor rows_of(tensor t, int lo, int hi) {
    t.p = (char *)t.p + (int64_t)lo * t.ld * (t.half ? 2 : 4);
    t.rows = hi - lo;
    return t;
}

__host__ __device__ static inline int div_up(int64_t a, int64_t b) {
    return (int)((a + b - 1) / b);
}

// ---- what kernels share ----

__device__ static inline float cell(const tensor &t, int64_t i) { // number i of its memory
    return t.half ? __bfloat162float(((const bf16 *)t.p)[i]) : ((const float *)t.p)[i];
}

__device__ static inline void set_cell(const tensor &t, int64_t i, float v) {
    if (t.half)
        ((bf16 *)t.p)[i] = __float2bfloat16(v);
    else
        ((float *)t.p)[i] = v;
}

// To the nearest number of TF32.
__device__ static inline float to_tf32(float v) {
#if __CUDA_ARCH__ >= 800
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return __uint_as_float(r);
#else
    return v;
#endif
}

template <typename T> __device__ static inline T warp_sum(T v) {
#pragma unroll
    for (int d = 16; d; d >>= 1)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

// Sum over a block, in a fixed order, the same for all its threads.
__device__ static inline double block_sum(double v) {
    __shared__ double warps[32];
    v = warp_sum(v);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < (int)blockDim.x / 32; w++)
        sum += warps[w];
    return sum;
}

// A column of sums over blocks of rows that still have to be added up: out[k] (+)= sum over parts of part[k].
struct column_sum {
    const float *parts; // (count), `stride` apart
    float *out;
    int count, length;
    int64_t stride;
    bool add;
    int next;   // another sum for the same numbers: a further use of the weights; -1: none
    bool later; // is such a one itself
};

dc_status dc_blas_open(dc_cuda *cuda); // loads the library of matrix products
void dc_blas_close(dc_cuda *cuda);

// ---- matrix products (linear.cu), row-major: C = op(A) op(B), one for each member ----
dc_status dc_gemm_cuda(dc_cuda *cuda, dc_precision precision, tensor a, bool a_t, tensor b,
                       bool b_t, tensor c, bool add);
// Layers of few outputs: y = x W + bias, with the weights in float.
enum { HEAD_MAX = 32, HEAD_ROWS = 32 }; // HEAD_ROWS: rows that one block adds up for dW
dc_status dc_head_fwd(dc_cuda *cuda, tensor x, tensor w, tensor bias, tensor y);
dc_status dc_head_dx(dc_cuda *cuda, tensor dy, tensor w, tensor dx, bool add);
// Sums for dW (in, out) and db (out) go to parts (e, count, in * out + out).
int dc_head_parts(int rows);
dc_status dc_bias_fwd(dc_cuda *cuda, tensor y, tensor bias); // y += bias, float
dc_status dc_head_dw(dc_cuda *cuda, tensor x, tensor dy, float *parts);
// dW of a layer with few inputs, likewise in parts: (e, count, in * out).
dc_status dc_thin_dw(dc_cuda *cuda, tensor x, tensor dy, float *parts);

// ---- bias + GELU + LayerNorm (gelu_layernorm.cu) ----
struct layernorm {
    tensor x;                  // before the bias
    const float *add;          // Nullable: the linear layer's bias (e, cols)
    const float *scale, *bias; // (e, cols)
    tensor y;
    float2 *stats;  // (e, rows) mean, 1/std
    int stats_rows; // rows of the whole node
};
dc_status dc_layernorm_fwd(dc_cuda *cuda, const layernorm *n);
int dc_layernorm_parts(int e, int rows);
// x, dy, dx and stats stand at the trained rows; parts (e, count, 3, cols): d scale, d bias, d add.
dc_status dc_layernorm_bwd(dc_cuda *cuda, const layernorm *n, tensor dy, tensor dx, float *parts);
// Both, of more columns than a warp's registers hold (gelu_layernorm_wide.cu); dy NULL: forward.
dc_status dc_layernorm_wide(dc_cuda *cuda, const layernorm *n, const tensor *dy, tensor dx,
                            float *parts);

// ---- whole networks in bf16 or TF32 (mlp.cu) ----

// Packed weights, a second copy in the order in which tensor cores read their second factor from shared memory: W (in, out),
// `in` padded with zeros, is cut into packs of 128 bytes of inputs (64 of bf16, 32 of float) and 256 outputs (32 in a thin
// matrix, which has one column of packs), in the order of out, then in. A pack is a line of 128 bytes for each output,
// and in line r the 16 bytes number i lie at place i ^ (r & 7). wt is the same of the transposed matrix.
enum { LINE = 128, PACK_OUT = 256, THIN = 32 };

// Numbers in a line.
static inline int line_of(bool tf32) {
    return LINE / (tf32 ? 4 : 2);
}

// Rows between layers lie as the tensor cores read them too: pieces of 64 rows and a line of columns, in the order of
// rows, then columns; in a piece as in a pack.
//
// LayerNorm is moved behind the next product: with h what GELU gave, the next layer's z = W^T (scale (h - mean) / std
// + shift) + b = (W^T (scale h) - mean u) / std + v, where u = W^T scale and v = W^T shift + b. So a block can have any
// columns of a layer: sums over a row go to memory, and who reads the row next adds them up. Backward likewise: the two
// means of a row that LayerNorm's gradient needs are those of dz u and of dz (z - v) of the layer above.
//
// Without LayerNorm (mlp.norm false) h is GELU's result itself, z = W^T h + b, and nothing of the above is there: no fold,
// stats, sums and norm, and of the sums over rows D_B and D_HEAD alone.
struct mlp_layer {
    void *w, *wt;                   // (e) packed; wt of the first layer is not there
    int in, in_pad;                 // in_pad: whole lines
    const float *b, *scale, *shift; // (e, width) of the linear layer, of LayerNorm
    float *fold;                    // (e, 2, width): u and v; not there for the first layer
    float *norm;                    // (e, 2, width): scale and shift as they were, for dW; Nullable
    void *h;                        // (e) pieces: scale h
    float2 *stats;                  // (e, rows, across): sums of h and h^2 over a tile's columns
    void *z; // (e) what GELU got, in the order of the products' registers; if backward is wanted
    void *d; // (e) pieces: gradient of z, divided by the spread of the row that the layer read
    void *transposed; // the same, transposed (mlp.cuh), for dW in TF32
    void *ema;        // Nullable: (e) packed, of the target weights
    float2 *sums;     // (e, rows, across): sums of dz u and dz (z - v)
    float *parts;     // (e, parts, MLP_SUMS, width) sums over rows; if dW is wanted
    float *dw;        // (e, in, width)
};

// Sums over rows: gradients of scale, shift, bias; d times the mean of the row that the layer read; of the head's
// weights, where it has one output.
enum { D_SCALE, D_SHIFT, D_B, D_MEAN, D_HEAD, MLP_SUMS };
enum { MLP_ROWS = 64, MLP_LAYERS = 8, MLP_WIDEST = 1024 };
// Rows of a tile, that a block takes; and rows that are read of x at a time.
enum { MLP_TILE = 128, X_ROWS = 32 };
enum {
    MULTIPROCESSORS = 132
}; // of the largest Hopper GPUs, by which tiles and clusters are chosen
struct mlp {
    int e, layers, width, in, out;
    bool tf32;  // else bf16
    bool norm;  // LayerNorm follows every GELU
    int across; // tiles side by side in a layer (dc_mlp_across)
    tensor x;   // (1, rows, in), rows padded
    mlp_layer layer[MLP_LAYERS];
    const float *head_w, *head_b; // (e, width, out), (e, out)
    void *head_packed;            // (e) thin
    float *head_fold;             // (e, 2, THIN)
    float *y;                     // (e, rows, out)
    const int *used;              // Nullable: rows that are wanted this time
    // Backward, of rows [lo, hi).
    int lo, hi;
    const float *dy;  // (e, hi - lo, out)
    float *head_bias; // Nullable: (e, parts): sums for the head's db, if it has one output
    float *dx;        // Nullable: (e, hi - lo, dx_count), gradient of columns from dx_first on
    void *dx_packed;  // those rows of the first matrix, transposed, as a thin one
    int dx_first, dx_count;
    double *norms;     // (dc_mlp_weight_blocks) of dW, squared
    bool early;        // other things go beside its dW
    int rows;          // that memory is there for, a multiple of MLP_TILE
    int parts;         // of the sums over rows
    CUtensorMap x_map; // of x: X_ROWS rows and a line of columns
};
bool dc_mlp_fits(const dc_cuda *cuda, int width, int in);
int dc_mlp_tiles(int e, int rows, int width); // of 128 columns, of a layer
int dc_mlp_across(int width, bool few);       // half as wide if there are few
int dc_mlp_parts(const mlp *j);               // of the sums over rows
dc_status dc_mlp_forward(dc_cuda *cuda, const mlp *j);
dc_status dc_mlp_backward(dc_cuda *cuda, const mlp *j);
// dW of the first layer, or of all the others. With `update`, which may then start before the column sums that it follows
// are done: not dW but what the step makes of it, weights and packed weights (not for the first layer).
struct update_job;
dc_status dc_mlp_weights(dc_cuda *cuda, const mlp *j, bool first, const update_job *update);
int dc_mlp_weight_blocks(const mlp *j);
// Sums for a head's dW and db, where it has several outputs: parts (e, count, width * out + out).
dc_status dc_mlp_head_weights(dc_cuda *cuda, const mlp *j, float *parts);
dc_status dc_mlp_map(mlp *j); // x_map of x

// ---- small_op ops: many small ones in one launch ----
struct alignas(16) small_op { // as groups.cu has it
    int op;                   // dc_op, SMALL_ZERO or SMALL_SEED
    int input;                // -1: forward; else: gradient to this input
    int e;                    // members
    int64_t count;            // numbers a member, or rows of `cols` columns
    int cols;
    bool add;
    double a, b;
    const float *x[DC_INPUTS];
    int64_t step[DC_INPUTS];
    int members[DC_INPUTS];
    float *y; // value, or gradient of the input
    int64_t ystep;
    const float *dy;
    int64_t dystep;
    // Slots that hold member 0 of these numbers, the others follow; -1: none does.
    int x_slot[DC_INPUTS], dy_slot, y_slot;
    int sum;     // forward of a reduction: number of its sum
    float scale; // gradient of a reduction: what all its numbers have in common
};
enum { SMALL_ZERO = DC_OPS, SMALL_SEED }; // 0, or a gradient that is known

// As fused.cu runs it. Every thread has slots, a number each; an instruction makes slot d of slots a, b and c and of the
// constants f and g, and leaves it in memory too if it has a place there.
enum fused_code {
    N_COPY,
    N_CONST,
    N_ADD,
    N_MUL,
    N_AFFINE,
    N_CLIP,
    N_WITHIN,
    N_GATHER, // from p: place a
    N_DECAY,
    N_POWER,
    N_EXP,
    N_TANH,
    N_ABS,
    N_SIGMOID,
    N_SOFTPLUS,
    N_LEAST, // of c slots from b on
    N_SQUARE,
    N_BCE,
    N_EXPECTILE,
    N_CLIP_BACK, // from here on to N_LEAST_BACK: a is the gradient, b what the op read
    N_WITHIN_BACK,
    N_DECAY_BACK,
    N_EXP_BACK,
    N_TANH_BACK,
    N_ABS_BACK,
    N_SIGMOID_BACK,
    N_SOFTPLUS_BACK,
    N_LEAST_BACK, // of number f among c slots from b on
    N_SQUARE_BACK,
    N_BCE_BACK,
    N_EXPECTILE_BACK,
    N_SUM, // a goes to sum d
    N_SUM_SIZE,
    N_EXPECTED, // softmaxes: a row of the list's op c
    N_LIKELIHOOD,
    N_SOFTMAX_BACK,
};
struct alignas(16) fused_step {
    short code, d, a, b, c;
    float f, g;
    int count; // numbers that there are
    float *p;  // Nullable
};
struct alignas(16) fused_load { // of a number into a slot
    const float *p;
    int count, slot;
};
struct alignas(16) fused_measure { // of scale / mean |x| into a slot
    const float *x;
    int64_t step;
    int count, members;
    float scale;
    int slot;
};
// What lies between two barriers: its share of the lists. Instructions that do not depend on each other are on different
// chains, which blocks of their own take.
enum { FUSED_CHAINS = 4 };
struct fused_chain {
    int load, load_end, step, step_end, most; // most: numbers
};
struct alignas(16) fused_phase {
    fused_chain chain[FUSED_CHAINS];
    int measure, measure_end;
};
struct fused_list {
    const uint4 *words; // device: phases, loads, measures, steps, softmaxes follow each other
    int word_count, phases, loads, measures, steps, rows;
    int slots, sums, chains, blocks; // blocks: of all chains
    double *partials;                // (sums, blocks)
};
bool dc_is_softmax(int op);                    // takes a row of columns at a time
static inline bool dc_is_reduction(dc_op op) { // ends in one number
    return dc_rule(op)->op_class == DC_CLASS_REDUCTION;
}
int dc_small_sums(dc_op op);                             // that a reduction takes
enum { FUSED_THREADS = 256 };                            // of a block
int dc_fused_blocks(const dc_cuda *cuda, bool barriers); // at most
size_t dc_fused_bytes(int words, int sums, int slots);   // of shared memory
dc_status dc_fused_run(dc_cuda *cuda, const fused_list *list);

// What is left of reductions when all groups are done: their sums, then ops on single numbers, in order.
struct final_op {
    int op; // a reduction, add or affine
    double a, b, cells;
    const double *partials;
    int blocks;
    const float *x, *y;
    float *out;
};

dc_status dc_splice_fwd(dc_cuda *cuda, tensor x, tensor y, tensor out, int column);
dc_status dc_splice_bwd(dc_cuda *cuda, tensor dout, tensor dy, int column, bool add);

// The same where a whole network's gradient of y's columns is there member by member: adds them up in order.
dc_status dc_splice_sum(dc_cuda *cuda, const mlp *j, tensor dy, bool add);

// ---- update (update.cu) ----
struct packed_matrix { // of a matrix, see mlp_layer
    int64_t offset;
    int e, rows, cols;
    void *live, *ema,
        *transposed; // of the weights, of the target weights, of the transposed weights; or NULL
    void *some;      // of the transposed rows from some_first on, thin; or NULL
    int some_first, some_count;
};
struct update_span { // that a block of the update takes
    int64_t offset;
    int matrix, e, row; // a strip of rows of a member of a matrix; matrix -1: flat, `count` numbers
    int count;
    int bf16_copy; // of a flat one, all of whose numbers have bf16 copies: which; -1: they have none
};
enum { SPAN_MOST = 4096, SECTOR = 32 };

// Rows of a strip: they fill a sector of memory in packed weights.
static inline int strip_rows(bool tf32) {
    return SECTOR / (tf32 ? 4 : 2);
}

struct bf16_copy { // bf16 copies of a matrix, rows padded
    int64_t offset;
    int e, rows, cols, ld;
    bf16 *live, *ema; // either may be NULL
};
struct rates {
    float tau, rest_tau, rate, beta1, beta2, rest1, rest2, eps, inv_c2;
};
struct update_plan { // which numbers are updated this step, and how
    bool go;         // nothing that is known by now is NaN or Inf
    int64_t from, to;
    rates r;
    double norm2;     // of the gradient, but for dw_norms
    unsigned arrived; // blocks, on the way to norm2
};
// The update of all weights, or of a part of them: those that the policy's gradient does not touch are updated while it
// is still on its way.
struct update_job {
    float *live, *ema, *grad, *m, *v;
    int64_t size, ema_size;
    double lr, beta1, beta2, eps, tau;
    int64_t policy_first, policy_after; // see dc_program_spec
    dc_cuda_state *state;
    double *norms; // (norm_count) shares of the norm, of column sums or of whole_norm
    int norm_count;
    const double *dw_norms; // (dw_norm_count) further shares, that come with the update itself
    int dw_norm_count;
    update_plan *plan;
    const update_plan
        *before; // Nullable: of the part before this one, without which it does not go
    bool last;   // part of the step: the loss is known, and metrics are
    const float *const *metrics; // (metric_count) scalars; the first is the loss
    int metric_count;
    const float *loss;
    const column_sum *sums;
    const int2 *sum_blocks; // (sum_count) that a block takes: which sum, which numbers of it
    int sum_count;
    bool whole_norm;        // the norm is taken of all gradients, not of parts that blocks left
    const final_op *finals; // (final_count)
    int final_count;
    const bf16_copy *
        copies; // (copy_count); the first loose_count are copied after the update, the others with it
    int copy_count, loose_count;
    const update_span
        *spans; // (span_count); the first train_count are updated here, the others with their dW
    int span_count, train_count;
    const packed_matrix *matrices;
    int widest; // of their columns
    bool tf32;  // what packed weights hold, else bf16
};
enum { NORM_BLOCKS = 256, SUM_BLOCK = 128 };
dc_status dc_column_sums(dc_cuda *cuda, const update_job *job);
dc_status dc_update_run(dc_cuda *cuda, const update_job *job); // after the sums; not the networks'
dc_status dc_tick_run(dc_cuda *cuda, const update_job *job);
dc_status dc_copies_loose(dc_cuda *cuda, const update_job *job); // loose ones, after all updates
dc_status dc_copies_refresh(dc_cuda *cuda,
                            const update_job *job); // and packed weights, without an update

#endif
