// linear on the GPU: matrix products by cuBLASLt, and small kernels for layers of few outputs, where
// a product would be mostly padding. The one file that knows cuBLASLt's calls.
#include "backend/cuda/internal.cuh"

#include <dlfcn.h>

// ---- the library, loaded when a device is opened: it is large, and most commands need none ----

#define FUNCTIONS(F)                                                                               \
    F(cublasLtCreate)                                                                              \
    F(cublasLtDestroy)                                                                             \
    F(cublasLtGetStatusString)                                                                     \
    F(cublasLtMatrixLayoutCreate)                                                                  \
    F(cublasLtMatrixLayoutDestroy)                                                                 \
    F(cublasLtMatrixLayoutSetAttribute)                                                            \
    F(cublasLtMatmulDescCreate)                                                                    \
    F(cublasLtMatmulDescDestroy)                                                                   \
    F(cublasLtMatmulDescSetAttribute)                                                              \
    F(cublasLtMatmulPreferenceCreate)                                                              \
    F(cublasLtMatmulPreferenceDestroy)                                                             \
    F(cublasLtMatmulPreferenceSetAttribute)                                                        \
    F(cublasLtMatmulAlgoGetHeuristic)                                                              \
    F(cublasLtMatmul)

static struct {
#define F(name) decltype(&::name) name;
    FUNCTIONS(F)
#undef F
} lt;

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define MAJOR      TEXT(CUBLAS_VER_MAJOR) // what this was compiled with
#define CUBLASLT   "libcublasLt.so." MAJOR

static dc_status load(void) {
    static void *library;
    if (library) return DC_OK;
    const char *names[] = {CUBLASLT, "/usr/local/cuda/lib64/" CUBLASLT, "libcublasLt.so"};
    for (const char *name : names)
        if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? NULL : CUBLASLT;
#define F(name)                                                                                    \
    if (!missing && !(lt.name = (decltype(&::name))dlsym(library, #name))) missing = #name;
    FUNCTIONS(F)
#undef F
    if (!missing) return DC_OK;
    library = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "install cuBLAS of CUDA " MAJOR
                   ", or add its folder to LD_LIBRARY_PATH, or use --device "
                   "cpu",
                   "%s cannot be loaded", missing);
}

static dc_status check(cublasStatus_t status, const char *call) {
    if (status == CUBLAS_STATUS_SUCCESS) return DC_OK;
    int n = 0;
    while (call[n] && call[n] != '(')
        n++;
    return dc_fail(DC_IO, "check that libcublasLt fits the driver", "cuBLASLt failed (%.*s: %s)", n,
                   call, lt.cublasLtGetStatusString(status));
}
#define LT(call) DC_TRY(check(lt.call, #call))

dc_status dc_blas_open(dc_cuda *cuda) {
    DC_TRY(load());
    LT(cublasLtCreate(&cuda->lt));
    return DC_OK;
}

void dc_blas_close(dc_cuda *cuda) {
    if (cuda->lt) lt.cublasLtDestroy(cuda->lt);
}

// ---- products ----

struct layout { // of one operand, column-major as cuBLASLt sees it
    cublasLtMatrixLayout_t l;
    layout() : l(NULL) {}
    ~layout() {
        if (l) lt.cublasLtMatrixLayoutDestroy(l);
    }
};

static dc_status describe(layout *out, const tensor *t, int batch) {
    LT(cublasLtMatrixLayoutCreate(&out->l, t->half ? CUDA_R_16BF : CUDA_R_32F, (uint64_t)t->cols,
                                  (uint64_t)t->rows, t->ld));
    LT(cublasLtMatrixLayoutSetAttribute(out->l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                        sizeof batch));
    int64_t step = t->e == 1 ? 0 : t->step;
    LT(cublasLtMatrixLayoutSetAttribute(out->l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                        sizeof step));
    return DC_OK;
}

// Bytes to which an operand's rows are aligned, 256 at most.
static uint32_t alignment(const tensor *t) {
    uint64_t size = t->half ? 2 : 4,
             bits = (uint64_t)t->p | (uint64_t)t->ld * size | (uint64_t)t->step * size | 256;
    return (uint32_t)(bits & (~bits + 1));
}

struct product {
    cublasLtMatmulDesc_t desc;
    cublasLtMatmulPreference_t wish;
    product() : desc(NULL), wish(NULL) {}
    ~product() {
        if (wish) lt.cublasLtMatmulPreferenceDestroy(wish);
        if (desc) lt.cublasLtMatmulDescDestroy(desc);
    }
};

static dc_status prepare(product *p, dc_cuda *cuda, dc_precision precision, bool first_t,
                         bool second_t, const tensor *a, const tensor *b, const tensor *c) {
    cublasComputeType_t type = precision == DC_FP32 ? CUBLAS_COMPUTE_32F
                               : a->half            ? CUBLAS_COMPUTE_32F
                                                    : CUBLAS_COMPUTE_32F_FAST_TF32;
    LT(cublasLtMatmulDescCreate(&p->desc, type, CUDA_R_32F));
    cublasOperation_t ta = first_t ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb = second_t ? CUBLAS_OP_T : CUBLAS_OP_N;
    LT(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
    LT(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
    LT(cublasLtMatmulPreferenceCreate(&p->wish));
    LT(cublasLtMatmulPreferenceSetAttribute(p->wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &cuda->workspace_bytes, sizeof cuda->workspace_bytes));
    // Partial sums are added in a fixed order: no atomics, so that the same seed gives the same bytes.
    uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    LT(cublasLtMatmulPreferenceSetAttribute(p->wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                            &schemes, sizeof schemes));
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        uint32_t bytes;
    } aligned[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(b)},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(a)},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(c)},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(c)}};
    for (const auto &row : aligned)
        LT(cublasLtMatmulPreferenceSetAttribute(p->wish, row.which, &row.bytes, sizeof row.bytes));
    return DC_OK;
}

// Row-major C = op(A) op(B) is column-major C' = op(B)' op(A)': the operands change places.
dc_status dc_gemm_cuda(dc_cuda *cuda, dc_precision precision, tensor a, bool a_t, tensor b,
                       bool b_t, tensor c, bool add) {
    product p;
    layout la, lb, lc;
    DC_CHECK(a.half == b.half);
    DC_CHECK((a_t ? a.cols : a.rows) == c.rows && (b_t ? b.rows : b.cols) == c.cols);
    DC_CHECK((a_t ? a.rows : a.cols) == (b_t ? b.cols : b.rows));
    DC_TRY(prepare(&p, cuda, precision, b_t, a_t, &a, &b, &c));
    DC_TRY(describe(&la, &a, c.e));
    DC_TRY(describe(&lb, &b, c.e));
    DC_TRY(describe(&lc, &c, c.e));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    LT(cublasLtMatmulAlgoGetHeuristic(cuda->lt, p.desc, lb.l, la.l, lc.l, lc.l, p.wish, 1, &found,
                                      &count));
    if (count == 0)
        return dc_fail(DC_UNSUPPORTED, "use another --precision",
                       "cuBLASLt knows no way to multiply %d x %d by %d x %d", a.rows, a.cols,
                       b.rows, b.cols);
    float one = 1, beta = add ? 1.0f : 0.0f;
    LT(cublasLtMatmul(cuda->lt, p.desc, &one, b.p, lb.l, a.p, la.l, &beta, c.p, lc.l, c.p, lc.l,
                      &found.algo, cuda->workspace, cuda->workspace_bytes, cuda->stream));
    return DC_OK;
}

// ---- layers of few outputs ----

// A warp a row.
__global__ static void head_fwd(tensor x, tensor w, tensor bias, tensor y) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31,
        e = blockIdx.y;
    upstream_wait();
    downstream_start();
    if (row >= y.rows) return;
    const float *weights = (const float *)w.p + e * w.step,
                *b = (const float *)bias.p + e * bias.step;
    int64_t at = e * x.step + (int64_t)row * x.ld;
    for (int o = 0; o < y.cols; o++) {
        float sum = 0;
        for (int c = lane; c < x.cols; c += 32)
            sum += cell(x, at + c) * weights[(int64_t)c * y.cols + o];
        sum = warp_sum(sum);
        if (lane == 0) ((float *)y.p)[e * y.step + (int64_t)row * y.ld + o] = sum + b[o];
    }
}

dc_status dc_head_fwd(dc_cuda *cuda, tensor x, tensor w, tensor bias, tensor y) {
    if (x.e == 1) x.step = 0;
    return launch(cuda, head_fwd, dim3(div_up(y.rows, 8), y.e), 256, 0, 1, false, "head_fwd(", x, w,
                  bias, y);
}

__global__ static void head_dx(tensor dy, tensor w, tensor dx, bool add) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, e = blockIdx.z;
    upstream_wait();
    downstream_start();
    if (c >= dx.cols) return;
    const float *weights = (const float *)w.p + e * w.step + (int64_t)c * dy.cols;
    for (int row = blockIdx.y; row < dx.rows; row += gridDim.y) {
        const float *g = (const float *)dy.p + e * dy.step + (int64_t)row * dy.ld;
        float sum = 0;
        for (int o = 0; o < dy.cols; o++)
            sum += g[o] * weights[o];
        int64_t at = e * dx.step + (int64_t)row * dx.ld + c;
        set_cell(dx, at, sum + (add ? cell(dx, at) : 0));
    }
}

dc_status dc_head_dx(dc_cuda *cuda, tensor dy, tensor w, tensor dx, bool add) {
    int rows = dx.rows < 512 ? dx.rows : 512;
    return launch(cuda, head_dx, dim3(div_up(dx.cols, 256), rows, dx.e), 256, 0, 1, false,
                  "head_dx(", dy, w, dx, add);
}

// A thread has a column (V: float) or four (float4), and every so many rows.
template <typename V> __global__ static void bias_fwd(tensor y, tensor bias) {
    enum { N = sizeof(V) / sizeof(float) };
    int c = (blockIdx.x * blockDim.x + threadIdx.x) * N, e = blockIdx.z;
    upstream_wait();
    downstream_start();
    if (c >= y.cols) return;
    const float *b = (const float *)bias.p + e * bias.step + c;
    float *at = (float *)y.p + e * y.step + c;
    for (int row = blockIdx.y; row < y.rows; row += gridDim.y) {
        V v = *(V *)(at + (int64_t)row * y.ld);
        float *numbers = (float *)&v;
#pragma unroll
        for (int i = 0; i < N; i++)
            numbers[i] += b[i];
        *(V *)(at + (int64_t)row * y.ld) = v;
    }
}

dc_status dc_bias_fwd(dc_cuda *cuda, tensor y, tensor bias) {
    enum { THREADS = 128, MOST = 2048 }; // rows side by side
    bool fours = y.cols % 4 == 0 && y.ld % 4 == 0 && (y.e == 1 || y.step % 4 == 0) &&
                 (uintptr_t)y.p % 16 == 0;
    int each = fours ? 4 : 1;
    dim3 grid(div_up(y.cols, THREADS * each), y.rows < MOST ? y.rows : MOST, y.e);
    return launch(cuda, fours ? bias_fwd<float4> : bias_fwd<float>, grid, THREADS, 0, 1, true,
                  "bias(", y, bias);
}

int dc_head_parts(int rows) {
    return div_up(rows, HEAD_ROWS);
}

// Threads own columns of the wide matrix, a block walks its rows, N columns of the thin one at a time:
// part[c * cs + k * ks] = sum over rows of wide[row][c] thin[row][k].
template <int N>
__device__ static void outer_sums(tensor wide, tensor thin, int e, int c, int from, int to,
                                  float *part, int64_t cs, int64_t ks) {
    for (int k0 = 0; k0 < thin.cols; k0 += N) {
        float sum[N] = {0};
#pragma unroll 4
        for (int row = from; row < to; row++) {
            float v = cell(wide, e * wide.step + (int64_t)row * wide.ld + c);
#pragma unroll
            for (int k = 0; k < N; k++)
                if (k0 + k < thin.cols)
                    sum[k] += v * cell(thin, e * thin.step + (int64_t)row * thin.ld + k0 + k);
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k0 + k < thin.cols) part[c * cs + (k0 + k) * ks] = sum[k];
    }
}

__global__ static void head_dw(tensor x, tensor dy, float *parts) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, e = blockIdx.z, out = dy.cols;
    int from = blockIdx.y * HEAD_ROWS, to = min(from + HEAD_ROWS, dy.rows);
    float *part = parts + ((int64_t)e * gridDim.y + blockIdx.y) * ((int64_t)x.cols * out + out);
    if (c < x.cols && out == 1) outer_sums<1>(x, dy, e, c, from, to, part, 1, 1);
    if (c < x.cols && out > 1) outer_sums<8>(x, dy, e, c, from, to, part, out, 1);
    if (c < out) { // the bias
        const float *g = (const float *)dy.p + e * dy.step;
        float sum = 0;
#pragma unroll 16
        for (int row = from; row < to; row++)
            sum += g[(int64_t)row * dy.ld + c];
        part[(int64_t)x.cols * out + c] = sum;
    }
}

__global__ static void thin_dw(tensor x, tensor dy, float *parts) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, e = blockIdx.z, out = dy.cols;
    int from = blockIdx.y * HEAD_ROWS, to = min(from + HEAD_ROWS, dy.rows);
    if (c < out)
        outer_sums<8>(dy, x, e, c, from, to,
                      parts + ((int64_t)e * gridDim.y + blockIdx.y) * ((int64_t)x.cols * out), 1,
                      out);
}

dc_status dc_thin_dw(dc_cuda *cuda, tensor x, tensor dy, float *parts) {
    if (x.e == 1) x.step = 0;
    thin_dw<<<dim3(div_up(dy.cols, 128), dc_head_parts(dy.rows), dy.e), 128, 0, cuda->stream>>>(
        x, dy, parts);
    return dc_cuda_check(cudaGetLastError(), "thin_dw(");
}

dc_status dc_head_dw(dc_cuda *cuda, tensor x, tensor dy, float *parts) {
    if (x.e == 1) x.step = 0;
    int wide = x.cols > dy.cols ? x.cols : dy.cols;
    head_dw<<<dim3(div_up(wide, 128), dc_head_parts(dy.rows), dy.e), 128, 0, cuda->stream>>>(x, dy,
                                                                                             parts);
    return dc_cuda_check(cudaGetLastError(), "head_dw(");
}
