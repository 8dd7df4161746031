// Matrix products in bf16, by AMX: eight tiles of 1 KB are registers, and one instruction multiplies a tile of A
// (16 rows, 32 numbers along k) by one of B (16 pairs along k, 16 columns) into one of C (16, 16) in fp32. Four
// tiles of C are summed at a time, so that each tile of A and B that is loaded is used twice.
//
//   A chunk   (tile of 16 rows, tile of 16 pairs, 16, 16)
//   B panel   (pair, TILE_COLS)
//
// Tiles are always whole: what lies beyond rows, columns and k is 0, and edges of C pass through a buffer.
#include "backend/cpu/gemm.h"

#ifndef DC_DOUBLE
#include "backend/cpu/bf16_copy.h"

enum {
    TILE_ROWS = 2 * LANES,
    TILE = LANES * LANES, // pairs of a tile
    CHUNK = 256,          // rows of A
    ROW_TILE = PAIRS * LANES,
};

// What a tile register holds: palette 1, and for each its rows and the bytes of a row.
typedef struct shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shape;

static const shape shapes = {
    .palette = 1,
    .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

// Registers 0 to 3 are C, 4 and 5 A, 6 and 7 B. Steps in bytes.
INLINE void load_sums(const float *c, int64_t ldc) {
    _tile_loadd(0, c, ldc * 4);
    _tile_loadd(1, c + LANES, ldc * 4);
    _tile_loadd(2, c + LANES * ldc, ldc * 4);
    _tile_loadd(3, c + LANES * ldc + LANES, ldc * 4);
}

INLINE void store_sums(float *c, int64_t ldc) {
    _tile_stored(0, c, ldc * 4);
    _tile_stored(1, c + LANES, ldc * 4);
    _tile_stored(2, c + LANES * ldc, ldc * 4);
    _tile_stored(3, c + LANES * ldc + LANES, ldc * 4);
}

INLINE void zero_sums(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

INLINE void add_products(const pair *a, const pair *b, int pairs) {
    for (int p = 0; p < pairs; p += LANES, a += TILE, b += LANES * TILE_COLS) {
        _tile_loadd(6, b, TILE_COLS * 4);
        _tile_loadd(4, a, LANES * 4);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + LANES, TILE_COLS * 4);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + ROW_TILE, LANES * 4);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

// (rows, cols) numbers from one place to another, rows `step` apart.
static void copy_edge(const float *from, int64_t from_step, float *to, int64_t to_step, int rows,
                      int cols) {
    for (int i = 0; i < rows; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)cols * sizeof *to);
}

static void run(const pair *a, const pair *b, int pairs, bool adds, float *c, int64_t ldc, int rows,
                int cols) {
    float edge[TILE_ROWS * TILE_COLS], *sums = c;
    int64_t step = ldc;
    bool whole = rows >= TILE_ROWS && cols >= TILE_COLS;
    rows = least(rows, TILE_ROWS);
    cols = least(cols, TILE_COLS);
    if (!whole) {
        sums = edge;
        step = TILE_COLS;
        memset(edge, 0, sizeof edge);
        if (adds) copy_edge(c, ldc, edge, step, rows, cols);
    }
    if (adds)
        load_sums(sums, step);
    else
        zero_sums();
    add_products(a, b, pairs);
    store_sums(sums, step);
    if (!whole) copy_edge(edge, step, c, ldc, rows, cols);
}

// ---- copies ----

// Rows of A, which lie as they are or transposed, as tiles.
static void copy_rows(const float *from, int64_t ld, int depth, int rows, pair *to) {
    for (int i = 0; i < rows; i++)
        pair_up(from + i * ld, depth, to + i / LANES * ROW_TILE + i % LANES * LANES, TILE);
}

static void copy_columns(const float *from, int64_t ld, int depth, int rows, pair *to) {
    for (int i = 0; i < rows; i += LANES)
        for (int p = 0; 2 * p < depth; p += LANES) {
            __m512i v[LANES];
            UNROLL
            for (int q = 0; q < LANES; q++) {
                int k = 2 * (p + q);
                const float *row = from + k * ld + i;
                v[q] = k < depth ? mixed(row, k + 1 < depth ? row + ld : NULL, first(rows - i))
                                 : _mm512_setzero_si512();
            }
            transpose(v);
            pair *tile = to + i / LANES * ROW_TILE + p / LANES * TILE;
            UNROLL
            for (int q = 0; q < LANES; q++)
                _mm512_storeu_si512(tile + q * LANES, v[q]);
        }
}

static void copy_a(const dc_factor *a, int i0, int rows, int k0, int depth, pair *to) {
    int tiles = (rows + TILE_ROWS - 1) / TILE_ROWS * 2;
    if (rows < tiles * LANES) // the last rows of a pair of tiles may not be there
        memset(to + (tiles - 2) * ROW_TILE, 0, (size_t)2 * ROW_TILE * sizeof *to);
    if (a->transposed)
        copy_columns(a->p + (int64_t)k0 * a->ld + i0, a->ld, depth, rows, to);
    else
        copy_rows(a->p + (int64_t)i0 * a->ld + k0, a->ld, depth, rows, to);
}

static void copy_b(const dc_factor *b, int k0, int depth, int j, int cols, pair *panel) {
    if (b->transposed) {
        copy_transposed(b->p + (int64_t)j * b->ld + k0, b->ld, depth, cols, panel);
        return;
    }
    int pairs = (depth + 1) / 2, padded = (pairs + LANES - 1) / LANES * LANES;
    copy_by_rows(b->p + (int64_t)k0 * b->ld + j, b->ld, depth, cols, TILE_COLS, panel);
    memset(panel + pairs * TILE_COLS, 0, (size_t)(padded - pairs) * TILE_COLS * sizeof *panel);
}

void dc_gemm_amx(int m, int n, int k, const dc_factor *a, const dc_factor *b, float beta, float *c,
                 int ldc) {
    pair chunk[CHUNK * PAIRS], panel[PAIRS * TILE_COLS];
    _tile_loadconfig(&shapes);
    for (int k0 = 0; k0 < k; k0 += DEPTH)
        for (int i0 = 0; i0 < m; i0 += CHUNK) {
            int rows = least(CHUNK, m - i0), depth = least(DEPTH, k - k0);
            copy_a(a, i0, rows, k0, depth, chunk);
            for (int j = 0; j < n; j += TILE_COLS) {
                copy_b(b, k0, depth, j, least(TILE_COLS, n - j), panel);
                for (int i = 0; i < rows; i += TILE_ROWS)
                    run(chunk + i / LANES * ROW_TILE, panel, (depth + 1) / 2, k0 || beta != 0,
                        c + (int64_t)(i0 + i) * ldc + j, ldc, rows - i, n - j);
            }
        }
    _tile_release();
}
#endif
