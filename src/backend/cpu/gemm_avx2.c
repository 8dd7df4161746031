// AVX2 and FMA: 16 registers of 32 bytes.
#include <immintrin.h>

#define VECTOR    32
#define TILE_ROWS 6
#define PRODUCT   dc_gemm_avx2
#ifdef DC_DOUBLE
#define FUSED _mm256_fmadd_pd
#else
#define FUSED _mm256_fmadd_ps
#endif
#include "backend/cpu/gemm_kernel.h"
