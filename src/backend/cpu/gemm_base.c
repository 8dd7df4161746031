// What every processor of the build's kind has. On x86-64 it rounds products before they are added.
#define VECTOR    16
#define TILE_ROWS 6
#define PRODUCT   dc_gemm_base
#ifdef __aarch64__
#include <arm_neon.h>
#ifdef DC_DOUBLE
#define FUSED(x, y, z) vfmaq_f64(z, x, y)
#else
#define FUSED(x, y, z) vfmaq_f32(z, x, y)
#endif
#else
#define FUSED(x, y, z) ((x) * (y) + (z))
#endif
#include "backend/cpu/gemm_kernel.h"
