// Matrix products: which of the compiled kernels this processor runs, and what decides their last bits.
#define _DEFAULT_SOURCE // syscall
#include "backend/cpu/gemm.h"
#include "backend/cpu/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__x86_64__) && !defined(DC_DOUBLE)
bool dc_gemm_has_avx512_bf16(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
}

// The kernel gives tile registers to a process that asks for them, once, for all its threads. It refuses where a
// thread's alternate signal stack is too small to save them.
bool dc_gemm_has_amx(void) {
    enum { BF16 = 1 << 22, TILES = 1 << 24, ASK = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & BF16) || !(d & TILES)) return false;
    return dc_gemm_has_avx512_bf16() && syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}
#else
#define dc_gemm_bf16 NULL
#define dc_gemm_amx  NULL

bool dc_gemm_has_avx512_bf16(void) {
    return false;
}

bool dc_gemm_has_amx(void) {
    return false;
}
#endif

typedef struct kernel {
    const char *name, *words;
    dc_gemm_fn *product;
    const char *bf16_words;
    dc_gemm_fn *bf16; // Nullable: none
} kernel;

static struct {
    pthread_once_t once;
    kernel kernel;
} chosen = {.once = PTHREAD_ONCE_INIT};

#ifdef __x86_64__
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static bool always(void) {
    return true;
}

static const struct {
    kernel kernel;
    bool (*there)(void); // on this processor
} kernels[] = {
#ifdef __x86_64__
    {{"amx", "AVX-512", dc_gemm_avx512, "AMX-BF16", dc_gemm_amx}, dc_gemm_has_amx},
    {{"avx512bf16", "AVX-512", dc_gemm_avx512, "AVX512-BF16", dc_gemm_bf16},
     dc_gemm_has_avx512_bf16},
    {{"avx512", "AVX-512", dc_gemm_avx512, NULL, NULL}, has_avx512},
    {{"avx2", "AVX2", dc_gemm_avx2, NULL, NULL}, has_avx2},
#endif
    {{"base", "common vectors", dc_gemm_base, NULL, NULL}, always},
};

// The best; DCRL_VECTORS names a lesser one, to see what another processor would compute.
static void choose(void) {
    const char *wish = getenv("DCRL_VECTORS");
    int last = (int)(sizeof kernels / sizeof kernels[0]) - 1, at = 0;
    while (at < last && wish && strcmp(wish, kernels[at].kernel.name) != 0)
        at++;
    while (!kernels[at].there())
        at++;
    chosen.kernel = kernels[at].kernel;
}

static const kernel *best(void) {
    pthread_once(&chosen.once, choose);
    return &chosen.kernel;
}

bool dc_gemm_has_bf16(void) {
    return best()->bf16 != NULL;
}

void dc_gemm(bool bf16, bool a_t, bool b_t, int m, int n, int k, const dc_real *a, int lda,
             const dc_real *b, int ldb, dc_real beta, dc_real *c, int ldc) {
    dc_factor left = {a, lda, a_t}, right = {b, ldb, b_t};
    dc_gemm_fn *product = bf16 ? best()->bf16 : best()->product;
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
    const char *libc = "", *words = bf16 && dc_gemm_has_bf16() ? best()->bf16_words : best()->words;
#ifdef __GLIBC__
    libc = gnu_get_libc_version();
#endif
    snprintf(out, DC_ARITHMETIC_MAX, "products with %s, C library %s, program for %s", words, libc,
             VECTORS);
}
