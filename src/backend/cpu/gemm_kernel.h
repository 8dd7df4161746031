// The matrix product of gemm.h, written once and compiled for several kinds of processor: gemm_avx512.c and its neighbours
// include this with VECTOR (bytes of a register), TILE_ROWS, FUSED (x y + z) and PRODUCT (the function's name). FUSED is
// an instruction, since a compiler that may fuse products and sums does so in some loops and not in others.
//
// C is made in tiles of TILE_ROWS x TILE_COLS sums, which stay in registers while k runs over DEPTH products:
//
//   for DEPTH rows of B                            (k0)
//     for CHUNK rows of A^T, or all rows of A      (i0), copied if A is transposed, so that k runs over short steps
//       for TILE_COLS columns of B                 (j), copied into a panel, so that it lies together
//         for TILE_ROWS rows                       (i)
//
// Every sum is a chain along k of its own. So its bits depend neither on the rows and columns around it nor, where FUSED
// rounds once, on the length of vectors.
#include "backend/cpu/gemm.h"

#include <string.h>

typedef dc_real vec __attribute__((vector_size(VECTOR)));
typedef dc_real loose
    __attribute__((vector_size(VECTOR), aligned(sizeof(dc_real)), may_alias)); // anywhere in memory

enum {
    LANES = VECTOR / sizeof(dc_real),
    VECS = 2, // of a row of a tile
    TILE_COLS = VECS * LANES,
    DEPTH = 1024 / sizeof(dc_real),
    CHUNK = 64,
    FEW = 2 * TILE_ROWS, // rows that are not worth a panel
};

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))

typedef struct tile {
    const dc_real *a, *b;    // at row 0, column 0 and the first k
    int64_t a_row, a_k, b_k; // steps
    int k;
    dc_real beta, *c;
    int64_t ldc;
} tile;

// rows and vecs are constants wherever this is inlined, so the sums are registers.
INLINE void run(int rows, int vecs, const tile *t) {
    vec sum[TILE_ROWS][VECS] = {0};
    const dc_real *a = t->a, *b = t->b;
    for (int k = 0; k < t->k; k++, a += t->a_k, b += t->b_k) {
        vec w[VECS];
        UNROLL
        for (int v = 0; v < vecs; v++)
            w[v] = *(const loose *)(b + v * LANES);
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int v = 0; v < vecs; v++)
            sum[i][v] = FUSED(a[i * t->a_row] - (vec){0}, w[v], sum[i][v]);
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vecs; v++) {
        loose *c = (loose *)(t->c + i * t->ldc + v * LANES);
        *c = t->beta != 0 ? sum[i][v] + t->beta * *c : sum[i][v];
    }
}

INLINE void run_rows(int rows, int vecs, tile t) {
    while (rows > 0) {
        int step = rows >= TILE_ROWS ? TILE_ROWS : rows >= 4 ? 4 : 1;
        if (step == TILE_ROWS)
            run(TILE_ROWS, vecs, &t);
        else if (step == 4)
            run(4, vecs, &t);
        else
            run(1, vecs, &t);
        rows -= step;
        t.a += step * t.a_row;
        t.c += step * t.ldc;
    }
}

// The last columns, which fill no tile: made beside C.
static void run_rest(int rows, int cols, const tile *t) {
    dc_real sums[TILE_ROWS * TILE_COLS] = {0};
    for (int i0 = 0; i0 < rows; i0 += TILE_ROWS) {
        int count = rows - i0 < TILE_ROWS ? rows - i0 : TILE_ROWS;
        tile part = *t;
        part.a += i0 * t->a_row;
        part.beta = 0;
        part.c = sums;
        part.ldc = TILE_COLS;
        if (cols <= LANES)
            run_rows(count, 1, part);
        else
            run_rows(count, VECS, part);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < cols; j++) {
                dc_real *c = t->c + (i0 + i) * t->ldc + j, sum = sums[i * TILE_COLS + j];
                *c = t->beta != 0 ? sum + t->beta * *c : sum;
            }
    }
}

// `rows` of `cols` numbers side by side, `width` apart, with zeros behind them.
INLINE void copy_rows(const dc_real *from, int64_t ld, int rows, int cols, int width, dc_real *to) {
    for (int p = 0; cols == width && p < rows; p++)
        for (int c = 0; c < width; c += LANES)
            *(vec *)(to + p * width + c) = *(const loose *)(from + p * ld + c);
    for (int p = 0; cols < width && p < rows; p++)
        for (int c = 0; c < width; c++)
            to[p * width + c] = c < cols ? from[p * ld + c] : 0;
}

// Columns [j, j + cols) of B for k in [k0, k0 + k) as (k, TILE_COLS).
static void make_panel(const dc_factor *b, int k0, int k, int j, int cols, dc_real *panel) {
    if (!b->transposed) {
        copy_rows(b->p + (int64_t)k0 * b->ld + j, b->ld, k, cols, TILE_COLS, panel);
        return;
    }
    const dc_real *from = b->p + (int64_t)j * b->ld + k0;
    if (cols < TILE_COLS) memset(panel, 0, (size_t)k * TILE_COLS * sizeof *panel);
    for (int c = 0; c < cols; c++)
        for (int p = 0; p < k; p++)
            panel[p * TILE_COLS + c] = from[(int64_t)c * b->ld + p];
}

static int least(int a, int b) {
    return a < b ? a : b;
}

// Rows [i0, i0 + rows) for k in [k0, k0 + t->k); t->a and t->c are at row i0, column 0.
static void run_chunk(tile t, int rows, int n, const dc_factor *b, int k0) {
    vec copy[DEPTH * VECS];
    dc_real *panel = (dc_real *)copy, *c = t.c;
    for (int j = 0; j < n; j += TILE_COLS) {
        int cols = least(TILE_COLS, n - j);
        bool direct = !b->transposed && rows <= FEW && cols == TILE_COLS;
        if (!direct) make_panel(b, k0, t.k, j, cols, panel);
        t.b = direct ? b->p + (int64_t)k0 * b->ld + j : panel;
        t.b_k = direct ? b->ld : TILE_COLS;
        t.c = c + j;
        if (cols == TILE_COLS)
            run_rows(rows, VECS, t);
        else
            run_rest(rows, cols, &t);
    }
}

void PRODUCT(int m, int n, int k, const dc_factor *a, const dc_factor *b, dc_real beta, dc_real *c,
             int ldc) {
    vec copy[CHUNK / LANES * DEPTH];
    int most = a->transposed ? CHUNK : m;
    for (int k0 = 0; k0 < k; k0 += DEPTH)
        for (int i0 = 0; i0 < m; i0 += most) {
            int rows = least(most, m - i0);
            tile t = {.a = a->p + k0, .a_row = a->ld, .a_k = 1, .k = least(DEPTH, k - k0)};
            if (a->transposed) {
                copy_rows(a->p + (int64_t)k0 * a->ld + i0, a->ld, t.k, rows, CHUNK,
                          (dc_real *)copy);
                t = (tile){.a = (dc_real *)copy, .a_row = 1, .a_k = CHUNK, .k = t.k};
            }
            t.beta = k0 ? 1 : beta;
            t.c = c + (int64_t)i0 * ldc;
            t.ldc = ldc;
            run_chunk(t, rows, n, b, k0);
        }
}
