// Matrix products in bf16, by AVX512-BF16: factors are rounded to bf16 as they are copied, and an instruction adds
// two products, of neighbours along k, to a sum in fp32. Tiles, panels and chunks are those of gemm_kernel.h.
//
//   A chunk   (row, pair) or, if it lies transposed, (pair, row): its pairs are broadcast one by one
//   B panel   (pair, TILE_COLS)
#include "backend/cpu/gemm.h"

#ifndef DC_DOUBLE
#include <immintrin.h>
#include <string.h>

typedef uint32_t pair; // k and k + 1; the lower half is k

enum {
    LANES = 16,
    VECS = 2,
    TILE_ROWS = 8,
    TILE_COLS = VECS * LANES,
    DEPTH = 256,
    PAIRS = DEPTH / 2,
    CHUNK = 128, // rows of A
};

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef struct tile {
    const pair *a, *b;
    int64_t a_row, a_pair;
    int pairs;
    float beta, *c;
    int64_t ldc;
} tile;

static int least(int a, int b) {
    return a < b ? a : b;
}

// ---- copies in bf16; what lies beyond rows, columns and k is 0 ----

INLINE __mmask16 first(int count) {
    return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

INLINE __m512i rounded(__m512 low, __m512 high) {
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Two rows (k and k + 1) as pairs, `to` having a multiple of LANES.
static void pair_rows(const float *row, const float *next, int count, int width, pair *to) {
    static const uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512i mix = _mm512_loadu_si512(order);
    for (int c = 0; c < width; c += LANES) {
        __mmask16 mask = first(count - c);
        __m512 low = _mm512_maskz_loadu_ps(mask, row + c);
        __m512 high = next ? _mm512_maskz_loadu_ps(mask, next + c) : _mm512_setzero_ps();
        _mm512_storeu_si512(to + c, _mm512_permutexvar_epi16(mix, rounded(low, high)));
    }
}

// One row whose neighbours are pairs already, for k numbers.
static void pair_up(const float *row, int k, pair *to) {
    for (int p = 0; 2 * p < k; p += LANES) {
        __m512 low = _mm512_maskz_loadu_ps(first(k - 2 * p), row + 2 * p);
        __m512 high = _mm512_maskz_loadu_ps(first(k - 2 * p - LANES), row + 2 * p + LANES);
        _mm512_storeu_si512(to + p, rounded(low, high));
    }
}

// (k, width) of rows `ld` apart as (pairs, width).
static void copy_by_rows(const float *from, int64_t ld, int k, int count, int width, pair *to) {
    for (int p = 0; 2 * p < k; p++) {
        const float *row = from + (int64_t)2 * p * ld;
        pair_rows(row, 2 * p + 1 < k ? row + ld : NULL, count, width, to + p * width);
    }
}

// 16 x 16 pairs transposed: at step w, lanes that differ in bit w change places between rows that do.
INLINE void transpose(__m512i v[LANES]) {
    UNROLL
    for (int w = 1; w < LANES; w *= 2) {
        int low[LANES], high[LANES];
        for (int l = 0; l < LANES; l++) {
            low[l] = l & w ? LANES + l - w : l;
            high[l] = l & w ? LANES + l : l + w;
        }
        __m512i take_low = _mm512_loadu_si512(low), take_high = _mm512_loadu_si512(high);
        UNROLL
        for (int i = 0; i < LANES; i++) {
            if (i & w) continue;
            __m512i a = v[i], b = v[i + w];
            v[i] = _mm512_permutex2var_epi32(a, take_low, b);
            v[i + w] = _mm512_permutex2var_epi32(a, take_high, b);
        }
    }
}

// A panel of a transposed B, whose columns are rows in memory.
static void copy_transposed(const float *from, int64_t ld, int k, int cols, pair *panel) {
    for (int j = 0; j < TILE_COLS; j += LANES) {
        pair rows[LANES][PAIRS];
        for (int i = 0; i < LANES; i++)
            if (j + i < cols)
                pair_up(from + (j + i) * ld, k, rows[i]);
            else
                memset(rows[i], 0, sizeof rows[i]);
        for (int p = 0; 2 * p < k; p += LANES) {
            __m512i v[LANES];
            UNROLL
            for (int i = 0; i < LANES; i++)
                v[i] = _mm512_loadu_si512(rows[i] + p);
            transpose(v);
            UNROLL
            for (int i = 0; i < LANES; i++)
                _mm512_storeu_si512(panel + (p + i) * TILE_COLS + j, v[i]);
        }
    }
}

// ---- tiles ----

INLINE void run(int rows, int cols, const tile *t) {
    __m512 sum[TILE_ROWS][VECS];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < VECS; v++)
        sum[i][v] = _mm512_setzero_ps();
    const pair *a = t->a, *b = t->b;
    for (int p = 0; p < t->pairs; p++, a += t->a_pair, b += TILE_COLS) {
        __m512bh w[VECS];
        UNROLL
        for (int v = 0; v < VECS; v++)
            w[v] = (__m512bh)_mm512_loadu_si512(b + v * LANES);
        UNROLL
        for (int i = 0; i < rows; i++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i * t->a_row]);
            UNROLL
            for (int v = 0; v < VECS; v++)
                sum[i][v] = _mm512_dpbf16_ps(sum[i][v], x, w[v]);
        }
    }
    __m512 beta = _mm512_set1_ps(t->beta);
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < VECS; v++) {
        __mmask16 mask = first(cols - v * LANES);
        float *c = t->c + i * t->ldc + v * LANES;
        if (t->beta != 0)
            sum[i][v] = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(mask, c), sum[i][v]);
        _mm512_mask_storeu_ps(c, mask, sum[i][v]);
    }
}

static void run_rows(int rows, int cols, tile t) {
    while (rows > 0) {
        int step = rows >= TILE_ROWS ? TILE_ROWS : rows >= 4 ? 4 : 1;
        if (step == TILE_ROWS)
            run(TILE_ROWS, cols, &t);
        else if (step == 4)
            run(4, cols, &t);
        else
            run(1, cols, &t);
        rows -= step;
        t.a += step * t.a_row;
        t.c += step * t.ldc;
    }
}

static void run_chunk(tile t, int rows, int n, int k0, int k, const dc_factor *b) {
    pair panel[PAIRS * TILE_COLS];
    float *c = t.c;
    for (int j = 0; j < n; j += TILE_COLS) {
        int cols = least(TILE_COLS, n - j);
        if (b->transposed)
            copy_transposed(b->p + (int64_t)j * b->ld + k0, b->ld, k, cols, panel);
        else
            copy_by_rows(b->p + (int64_t)k0 * b->ld + j, b->ld, k, cols, TILE_COLS, panel);
        t.b = panel;
        t.c = c + j;
        run_rows(rows, cols, t);
    }
}

void dc_gemm_bf16(int m, int n, int k, const dc_factor *a, const dc_factor *b, float beta, float *c,
                  int ldc) {
    pair copy[CHUNK * PAIRS];
    for (int k0 = 0; k0 < k; k0 += DEPTH)
        for (int i0 = 0; i0 < m; i0 += CHUNK) {
            int rows = least(CHUNK, m - i0), depth = least(DEPTH, k - k0);
            tile t = {.a = copy, .pairs = (depth + 1) / 2, .beta = k0 ? 1 : beta, .ldc = ldc};
            t.a_row = a->transposed ? 1 : PAIRS;
            t.a_pair = a->transposed ? CHUNK : 1;
            if (a->transposed)
                copy_by_rows(a->p + (int64_t)k0 * a->ld + i0, a->ld, depth, rows, CHUNK, copy);
            for (int i = 0; !a->transposed && i < rows; i++)
                pair_up(a->p + (int64_t)(i0 + i) * a->ld + k0, depth, copy + i * PAIRS);
            t.c = c + (int64_t)i0 * ldc;
            run_chunk(t, rows, n, k0, depth, b);
        }
}
#endif
