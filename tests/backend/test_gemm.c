// Matrix products: every kernel that this processor runs against sums in double, for shapes, steps and transposed factors
// drawn at random; nothing beside C is written, and no bit depends on what is computed together.
#include "backend/backend.h"
#include "backend/cpu/gemm.h"
#include "base/philox.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 300, MOST = 310, MARK = 12345 };

typedef struct product {
    int m, n, k, ldc;
    dc_factor a, b;
    dc_real beta, *c, *start; // (m, ldc) the result, and C before
} product;

static uint64_t draws;

static int below(int n) {
    return (int)dc_below(dc_philox(7, 1, 0, (uint32_t)draws++).v[0], (uint32_t)n);
}

static dc_real number(void) {
    return (dc_real)(below(2001) - 1000) / 1000;
}

static dc_real *numbers(int64_t count) {
    dc_real *p = malloc((size_t)count * sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < count; i++)
        p[i] = number();
    return p;
}

static dc_factor factor(int rows, int cols) {
    dc_factor f = {.transposed = below(2)};
    f.ld = (f.transposed ? rows : cols) + below(3) * 5;
    f.p = numbers((int64_t)f.ld * (f.transposed ? cols : rows));
    return f;
}

// Sizes around the edges of tiles and panels, and some large ones.
static int size(void) {
    return 1 + below(below(2) ? 40 : MOST);
}

static product draw(void) {
    product p = {.m = size(), .n = size(), .k = size(), .beta = (dc_real)below(2)};
    if (below(8) == 0) p.k = 1000 + below(300);
    p.a = factor(p.m, p.k);
    p.b = factor(p.k, p.n);
    p.ldc = p.n + below(3);
    p.start = numbers((int64_t)p.m * p.ldc);
    for (int i = 0; i < p.m; i++)
        for (int j = p.n; j < p.ldc; j++)
            p.start[(int64_t)i * p.ldc + j] = MARK;
    p.c = numbers((int64_t)p.m * p.ldc);
    return p;
}

static void drop(product *p) {
    free((void *)p->a.p);
    free((void *)p->b.p);
    free(p->start);
    free(p->c);
}

static double at(const dc_factor *f, int row, int col) {
    return (double)(f->transposed ? f->p[(int64_t)col * f->ld + row]
                                  : f->p[(int64_t)row * f->ld + col]);
}

// The nearest number with 8 bits, to even in the middle.
static double rounded(double x) {
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(rint(mantissa * 256), exponent - 8);
}

static void run(dc_gemm_fn *kernel, const product *p) {
    memcpy(p->c, p->start, (size_t)p->m * (size_t)p->ldc * sizeof *p->c);
    kernel(p->m, p->n, p->k, &p->a, &p->b, p->beta, p->c, p->ldc);
}

static void check(const product *p, bool bf16) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->ldc; j++) {
            double got = (double)p->c[(int64_t)i * p->ldc + j], want = 0, most = 1;
            if (j >= p->n) {
                assert_true(got == MARK);
                continue;
            }
            for (int k = 0; k < p->k; k++) {
                double a = at(&p->a, i, k), b = at(&p->b, k, j);
                double term = bf16 ? rounded(a) * rounded(b) : a * b;
                want += term;
                most += fabs(term);
            }
            if (p->beta != 0) want += (double)p->start[(int64_t)i * p->ldc + j];
            if (!(fabs(got - want) <= 2e-6 * most))
                fail_msg("%d x %d x %d%s%s: (%d, %d) is %g, not %g", p->m, p->n, p->k,
                         p->a.transposed ? ", A transposed" : "",
                         p->b.transposed ? ", B transposed" : "", i, j, got, want);
        }
}

// Some rows and some columns by themselves have the bits that they have among all.
static void check_part(dc_gemm_fn *kernel, const product *p) {
    int i0 = below(p->m), rows = 1 + below(p->m - i0), j0 = below(p->n),
        cols = 1 + below(p->n - j0);
    dc_factor a = p->a, b = p->b;
    a.p += (int64_t)i0 * (a.transposed ? 1 : a.ld);
    b.p += (int64_t)j0 * (b.transposed ? b.ld : 1);
    dc_real *c = numbers((int64_t)rows * cols);
    for (int i = 0; i < rows; i++)
        memcpy(c + (int64_t)i * cols, p->start + (int64_t)(i0 + i) * p->ldc + j0,
               (size_t)cols * sizeof *c);
    kernel(rows, cols, p->k, &a, &b, p->beta, c, cols);
    for (int i = 0; i < rows; i++)
        assert_memory_equal(c + (int64_t)i * cols, p->c + (int64_t)(i0 + i) * p->ldc + j0,
                            (size_t)cols * sizeof *c);
    free(c);
}

static int kernels(dc_gemm_fn *out[3]) {
    int count = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) out[count++] = dc_gemm_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[count++] = dc_gemm_avx2;
#endif
    out[count++] = dc_gemm_base;
    return count;
}

static void test_products(void **state) {
    (void)state;
    dc_gemm_fn *all[3];
    int count = kernels(all);
    printf("%d kernels\n", count);
    for (int i = 0; i < CASES; i++) {
        product p = draw();
        for (int k = 0; k < count; k++) {
            run(all[k], &p);
            check(&p, false);
            check_part(all[k], &p);
        }
        drop(&p);
    }
}

static int bf16_kernels(dc_gemm_fn *out[2]) {
    int count = 0;
#ifndef DC_DOUBLE
    if (dc_gemm_has_avx512_bf16()) out[count++] = dc_gemm_bf16;
    if (dc_gemm_has_amx()) out[count++] = dc_gemm_amx;
#endif
    return count;
}

static void test_bf16(void **state) {
    (void)state;
    dc_gemm_fn *all[2];
    int count = bf16_kernels(all);
    printf("%d kernels\n", count);
    for (int i = 0; i < CASES; i++) {
        product p = draw();
        for (int k = 0; k < count; k++) {
            run(all[k], &p);
            check(&p, true);
            check_part(all[k], &p);
        }
        drop(&p);
    }
}

// Where both fuse products and sums, the length of vectors does not show.
static void test_same_bits(void **state) {
    (void)state;
    dc_gemm_fn *all[3];
    if (kernels(all) < 3) {
        printf("skipped: a processor without AVX-512\n");
        return;
    }
    for (int i = 0; i < CASES; i++) {
        product p = draw(), q = p;
        q.c = numbers((int64_t)p.m * p.ldc);
        run(all[0], &p);
        run(all[1], &q);
        assert_memory_equal(p.c, q.c, (size_t)p.m * (size_t)p.ldc * sizeof *p.c);
        free(q.c);
        drop(&p);
    }
}

// What C held does not matter where it is not added to; what is no number in A or B gets through.
static void test_not_numbers(void **state) {
    (void)state;
    dc_gemm_fn *all[5];
    int exact = kernels(all), count = exact + bf16_kernels(all + exact);
    for (int k = 0; k < count; k++) {
        product p = draw();
        p.beta = 0;
        for (int64_t i = 0; i < (int64_t)p.m * p.ldc; i++)
            if (p.start[i] != MARK) p.start[i] = (dc_real)NAN;
        run(all[k], &p);
        check(&p, k >= exact);
        int row = below(p.m), col = below(p.k);
        ((dc_real *)
             p.a.p)[p.a.transposed ? (int64_t)col * p.a.ld + row : (int64_t)row * p.a.ld + col] =
            (dc_real)NAN;
        run(all[k], &p);
        for (int i = 0; i < p.m; i++)
            for (int j = 0; j < p.n; j++)
                assert_true((isnan(p.c[(int64_t)i * p.ldc + j]) != 0) == (i == row));
        drop(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_not_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
