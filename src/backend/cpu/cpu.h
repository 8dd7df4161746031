// What the CPU ops share: the list of their functions and the one door to BLAS.
#ifndef DC_CPU_H
#define DC_CPU_H

#include "backend/backend.h"

#define OP(name, least, most, reads, text) dc_op_fn dc_cpu_##name##_fwd, dc_cpu_##name##_bwd;
#include "tensor/ops.def"
#undef OP

double dc_cpu_grad_norm2(const dc_slabs *slabs, dc_pool *pool);
void dc_cpu_update(const dc_slabs *slabs, const dc_adam *adam, dc_pool *pool);

// C (m, n) = A B + beta C, row-major, with A (m, k) or, transposed, stored as (k, m); likewise B.
void dc_gemm(bool a_t, bool b_t, int m, int n, int k, const dc_real *a, int lda, const dc_real *b,
             int ldb, dc_real beta, dc_real *c, int ldc);

#endif
