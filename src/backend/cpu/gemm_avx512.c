// AVX-512: 32 registers of 64 bytes.
#include <immintrin.h>

#define VECTOR    64
#define TILE_ROWS 8
#define PRODUCT   dc_gemm_avx512
#ifdef DC_DOUBLE
#define FUSED _mm512_fmadd_pd
#else
#define FUSED _mm512_fmadd_ps
#endif
#include "backend/cpu/gemm_kernel.h"
