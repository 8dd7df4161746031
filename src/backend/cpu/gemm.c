// Matrix products: which of the compiled kernels this processor runs, and what decides their last bits.
#include "backend/cpu/gemm.h"
#include "backend/cpu/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

typedef struct kernel {
    const char *name, *words;
    dc_gemm_fn *product;
    bool there; // on this processor
} kernel;

static struct {
    pthread_once_t once;
    kernel kernel;
} chosen = {.once = PTHREAD_ONCE_INIT};

// The best; DCRL_VECTORS names a lesser one, to see what another processor would compute.
static void choose(void) {
    const kernel kernels[] = {
#ifdef __x86_64__
        {"avx512", "AVX-512", dc_gemm_avx512, __builtin_cpu_supports("avx512f")},
        {"avx2", "AVX2", dc_gemm_avx2,
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
        {"base", "common vectors", dc_gemm_base, true},
    };
    const char *wish = getenv("DCRL_VECTORS");
    int count = (int)(sizeof kernels / sizeof kernels[0]), at = 0;
    while (at < count - 1 && wish && strcmp(wish, kernels[at].name) != 0)
        at++;
    while (!kernels[at].there)
        at++;
    chosen.kernel = kernels[at];
}

static const kernel *best(void) {
    pthread_once(&chosen.once, choose);
    return &chosen.kernel;
}

#if defined(__x86_64__) && !defined(DC_DOUBLE)
#define BF16 dc_gemm_bf16

bool dc_gemm_has_bf16(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
}
#else
#define BF16 dc_gemm_base // never asked for

bool dc_gemm_has_bf16(void) {
    return false;
}
#endif

void dc_gemm(bool bf16, bool a_t, bool b_t, int m, int n, int k, const dc_real *a, int lda,
             const dc_real *b, int ldb, dc_real beta, dc_real *c, int ldc) {
    dc_factor left = {a, lda, a_t}, right = {b, ldb, b_t};
    dc_gemm_fn *product = bf16 ? BF16 : best()->product;
    product(m, n, k, &left, &right, beta, c, ldc);
}

// The vector instructions that this program was compiled for.
#if defined(__AVX512F__)
#define VECTORS "AVX-512"
#elif defined(__AVX2__) && defined(__FMA__)
#define VECTORS "AVX2 and FMA"
#elif defined(__AVX__)
#define VECTORS "AVX"
#elif defined(__x86_64__)
#define VECTORS "SSE2"
#elif defined(__ARM_FEATURE_SVE)
#define VECTORS "SVE"
#elif defined(__ARM_NEON)
#define VECTORS "NEON"
#else
#define VECTORS "no vectors"
#endif

// The C library chooses kernels of exp and its like by the processor, too.
void dc_cpu_arithmetic(bool bf16, char out[DC_ARITHMETIC_MAX]) {
    const char *libc = "", *words = bf16 && dc_gemm_has_bf16() ? "AVX512-BF16" : best()->words;
#ifdef __GLIBC__
    libc = gnu_get_libc_version();
#endif
    snprintf(out, DC_ARITHMETIC_MAX, "products with %s, C library %s, program for %s", words, libc,
             VECTORS);
}
