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
