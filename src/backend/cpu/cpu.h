// What the CPU ops share: the list of their functions, blocks of rows, and matrix products.
#ifndef DC_CPU_H
#define DC_CPU_H

#include "backend/backend.h"

#define OP(name, ...) dc_op_fn dc_cpu_##name##_fwd, dc_cpu_##name##_bwd;
#include "tensor/ops.def"
#undef OP

// Calls fn(ctx, e, r0, r1) for rows [r0, r1) of each member e < members: blocks of DC_ROW_BLOCK rows,
// shared out among the pool's threads.
typedef void dc_rows_fn(const void *ctx, int e, int r0, int r1);
void dc_cpu_each_block(dc_pool *pool, dc_rows_fn *fn, const void *ctx, int members, int rows);

// ---- ranks, see share.c; one process alone has all rows and nothing to exchange ----

typedef struct dc_span {
    int first, end; // of rows
} dc_span;

// Which rows of node n this rank computes, up to three spans; the number of them. A layer's only.
int dc_cpu_share(const dc_exec *x, const dc_node *n, dc_span spans[3]);
// Which of its trained rows this rank takes gradients of: whole blocks, counted from n->lo.
dc_span dc_cpu_trained_share(const dc_exec *x, const dc_node *n);
// After forward and backward of a layer: what is read by others than the next layer becomes known to all ranks.
void dc_cpu_share_output(const dc_exec *x, const dc_node *n);
void dc_cpu_share_input_gradient(const dc_exec *x, const dc_node *n);
// Gradients of weights (inputs 1 and on) are sums over blocks of rows, in order, and go from rank to rank as they grow.
void dc_cpu_begin_sums(const dc_exec *x, const dc_node *n); // before any of a layer's is taken
// Before this rank adds its blocks to that of input i: fetch what the blocks before came to; whether there is anything
// to add to.
bool dc_cpu_take_sum(const dc_exec *x, const dc_node *n, int i);
void dc_cpu_pass_sum(const dc_exec *x, const dc_node *n, int i); // afterwards
// At the end of a step: all ranks get all gradients.
void dc_cpu_share_gradients(const dc_exec *x);

// The backward function of an op that gives no gradient; calling it is a bug.
#define DC_CPU_NO_GRADIENT(name)                                                                   \
    void dc_cpu_##name##_bwd(const dc_exec *x, const dc_node *n) {                                 \
        (void)x;                                                                                   \
        DC_CHECK(dc_rule(n->op)->flows != 0);                                                      \
    }

double dc_cpu_grad_norm2(const dc_slabs *slabs, dc_pool *pool);
void dc_cpu_update(const dc_slabs *slabs, const dc_adam *adam, dc_pool *pool);

// C (m, n) = A B + beta C, row-major, with A (m, k) or, transposed, stored as (k, m); likewise B.
// In bf16 (where the processor has it, see dc_exec.bf16) A and B are rounded, and sums are kept in fp32.
void dc_gemm(bool bf16, bool a_t, bool b_t, int m, int n, int k, const dc_real *a, int lda,
             const dc_real *b, int ldb, dc_real beta, dc_real *c, int ldc);

// Row r of member e.
static inline dc_real *dc_row(dc_tensor v, int e, int64_t r) {
    return v.p + e * v.step + r * v.cols;
}

#endif
