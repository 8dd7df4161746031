// Matrix products: one function, compiled for several kinds of processor (gemm_kernel.h), of which gemm.c takes the best that
// this processor has.
#ifndef DC_GEMM_H
#define DC_GEMM_H

#include "tensor/real.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_factor {
    const dc_real *p;
    int ld;          // from one row in memory to the next
    bool transposed; // in memory
} dc_factor;

// C (m, n) = A (m, k) B (k, n) + beta C, all row-major.
typedef void dc_gemm_fn(int m, int n, int k, const dc_factor *a, const dc_factor *b, dc_real beta,
                        dc_real *c, int ldc);
dc_gemm_fn dc_gemm_avx512, dc_gemm_avx2, dc_gemm_base;
dc_gemm_fn dc_gemm_bf16; // rounds A and B to bf16, sums in fp32; only where dc_gemm_has_bf16

#endif
