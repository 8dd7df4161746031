// Matrix products in bf16, by AVX512-BF16: factors are rounded to bf16 as they are copied, and an instruction adds
// two products, of neighbours along k, to a sum in fp32. Tiles, panels and chunks are those of gemm_kernel.h.
//
//   A chunk   (row, pair) or, if it lies transposed, (pair, row): its pairs are broadcast one by one
//   B panel   (pair, TILE_COLS)
#include "backend/cpu/gemm.h"

#ifndef DC_DOUBLE
#include "backend/cpu/bf16_copy.h"

enum {
    VECS = TILE_COLS / LANES,
    TILE_ROWS = 8,
    CHUNK = 128, // rows of A
};

typedef struct tile {
    const pair *a, *b;
    int64_t a_row, a_pair;
    int pairs;
    float beta, *c;
    int64_t ldc;
} tile;

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
                pair_up(a->p + (int64_t)(i0 + i) * a->ld + k0, depth, copy + i * PAIRS, LANES);
            t.c = c + (int64_t)i0 * ldc;
            run_chunk(t, rows, n, k0, depth, b);
        }
}
#endif
