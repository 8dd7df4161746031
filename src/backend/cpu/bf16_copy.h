// Factors of matrix products copied as pairs of bf16 numbers, neighbours along k, for the kernels of gemm_bf16.c and
// gemm_amx.c. What lies beyond rows, columns and k is 0.
#ifndef DC_BF16_COPY_H
#define DC_BF16_COPY_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t pair; // k and k + 1; the lower half is k

enum {
    LANES = 16,
    TILE_COLS = 2 * LANES,
    DEPTH = 256, // of a chunk, along k
    PAIRS = DEPTH / 2,
};

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static inline int least(int a, int b) {
    return a < b ? a : b;
}

INLINE __mmask16 first(int count) {
    return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

INLINE __m512i rounded(__m512 low, __m512 high) {
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// LANES numbers of two rows, k and k + 1, as pairs.
INLINE __m512i mixed(const float *row, const float *next, __mmask16 mask) {
    static const uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m512 low = _mm512_maskz_loadu_ps(mask, row);
    __m512 high = next ? _mm512_maskz_loadu_ps(mask, next) : _mm512_setzero_ps();
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), rounded(low, high));
}

// One row whose neighbours are pairs already, for k numbers: LANES pairs, then the next `step` further on.
static inline void pair_up(const float *row, int k, pair *to, int step) {
    for (int p = 0; 2 * p < k; p += LANES, to += step) {
        __m512 low = _mm512_maskz_loadu_ps(first(k - 2 * p), row + 2 * p);
        __m512 high = _mm512_maskz_loadu_ps(first(k - 2 * p - LANES), row + 2 * p + LANES);
        _mm512_storeu_si512(to, rounded(low, high));
    }
}

// (k, width) of rows `ld` apart as (pairs, width), `width` being a multiple of LANES.
static inline void copy_by_rows(const float *from, int64_t ld, int k, int count, int width,
                                pair *to) {
    for (int p = 0; 2 * p < k; p++) {
        const float *row = from + (int64_t)2 * p * ld, *next = 2 * p + 1 < k ? row + ld : NULL;
        for (int c = 0; c < width; c += LANES)
            _mm512_storeu_si512(to + p * width + c,
                                mixed(row + c, next ? next + c : NULL, first(count - c)));
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
static inline void copy_transposed(const float *from, int64_t ld, int k, int cols, pair *panel) {
    for (int j = 0; j < TILE_COLS; j += LANES) {
        pair rows[LANES][PAIRS];
        for (int i = 0; i < LANES; i++)
            if (j + i < cols)
                pair_up(from + (j + i) * ld, k, rows[i], LANES);
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

#endif
