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

// C (m, n) = A (m, k) B (k, n) + beta C, all row-major; beta is 0 or 1.
typedef void dc_gemm_fn(int m, int n, int k, const dc_factor *a, const dc_factor *b, dc_real beta,
                        dc_real *c, int ldc);
dc_gemm_fn dc_gemm_avx512, dc_gemm_avx2, dc_gemm_base;
dc_gemm_fn dc_gemm_bf16, dc_gemm_amx; // round A and B to bf16, sum in fp32
bool dc_gemm_has_avx512_bf16(void), dc_gemm_has_amx(void);

#endif
