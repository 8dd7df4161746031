// PNG, see png.h: signature, IHDR, with a palette PLTE and tRNS, IDAT, IEND. Rows of a palette have no
// filter; a row of colours has the one of five whose differences are smallest in sum, which is what
// encoders usually do.
#include "report/png.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL = 9, BITS = 8, COLOURS = 2, PALETTE = 3, FILTERS = 5, RGB = 3 };

static void put_word(uint8_t bytes[4], uint32_t word) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(word >> (24 - 8 * i));
}

// Length, type, bytes, and the checksum of the last two.
static void chunk(dc_text *out, const char *type, const uint8_t *bytes, size_t n) {
    uint8_t word[4];
    put_word(word, (uint32_t)n);
    dc_text_bytes(out, (const char *)word, 4);
    dc_text_bytes(out, type, 4);
    if (n) dc_text_bytes(out, (const char *)bytes, n);
    uint32_t sum = libdeflate_crc32(0, type, 4);
    put_word(word, n ? libdeflate_crc32(sum, bytes, n) : sum);
    dc_text_bytes(out, (const char *)word, 4);
}

static void begin(dc_text *out, int width, int height, uint8_t kind) {
    uint8_t head[13] = {[8] = BITS, [9] = kind};
    put_word(head, (uint32_t)width);
    put_word(head + 4, (uint32_t)height);
    dc_text_bytes(out, "\x89PNG\r\n\x1a\n", 8);
    chunk(out, "IHDR", head, sizeof head);
}

// Filtered rows as the chunk of pixels, and the end.
static dc_status finish(dc_text *out, const uint8_t *rows, size_t n) {
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
    size_t room = c ? libdeflate_zlib_compress_bound(c, n) : 0;
    uint8_t *packed = c ? malloc(room) : NULL;
    size_t size = packed ? libdeflate_zlib_compress(c, rows, n, packed, room) : 0;
    if (size) {
        chunk(out, "IDAT", packed, size);
        chunk(out, "IEND", NULL, 0);
    }
    free(packed);
    libdeflate_free_compressor(c);
    return size ? dc_text_status(out) : dc_fail(DC_NO_MEMORY, NULL, "no memory to pack a picture");
}

dc_status dc_png_write(dc_text *out, int width, int height, const uint8_t *pixels,
                       const dc_colour *palette) {
    size_t w = (size_t)width, h = (size_t)height, n = h * (w + 1);
    uint8_t colours[256 * RGB], *plain = calloc(n, 1);
    if (!plain) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a picture");
    for (int i = 0; i < 256; i++)
        memcpy(colours + RGB * (ptrdiff_t)i, (uint8_t[]){palette[i].r, palette[i].g, palette[i].b},
               RGB);
    for (size_t r = 0; r < h; r++)
        memcpy(plain + r * (w + 1) + 1, pixels + r * w, w);
    begin(out, width, height, PALETTE);
    chunk(out, "PLTE", colours, sizeof colours);
    chunk(out, "tRNS", (const uint8_t[]){0}, 1);
    dc_status status = finish(out, plain, n);
    free(plain);
    return status;
}

// ---- colours ----

// What a filter expects of a byte, from those to its left, above, and above to the left.
static int expect(int filter, int left, int up, int corner) {
    int p = left + up - corner, a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    switch (filter) {
    case 1:
        return left;
    case 2:
        return up;
    case 3:
        return (left + up) / 2;
    case 4:
        return a <= b && a <= c ? left : b <= c ? up : corner;
    default:
        return 0;
    }
}

// A row under a filter; returns the sum of its differences. Nullable: up (the first row)
static size_t filter_row(int filter, const uint8_t *row, const uint8_t *up, size_t n,
                         uint8_t *out) {
    size_t sum = 0;
    out[0] = (uint8_t)filter;
    for (size_t k = 0; k < n; k++) {
        int left = k < RGB ? 0 : row[k - RGB], above = up ? up[k] : 0,
            corner = up && k >= RGB ? up[k - RGB] : 0;
        uint8_t rest = (uint8_t)(row[k] - expect(filter, left, above, corner));
        out[k + 1] = rest;
        sum += rest < 128 ? rest : 256U - rest;
    }
    return sum;
}

dc_status dc_png_rgb(dc_text *out, int width, int height, const uint8_t *rgb) {
    size_t row = RGB * (size_t)width, h = (size_t)height, n = h * (row + 1);
    uint8_t *rows = malloc(n + row + 1), *tried = rows ? rows + n : NULL;
    if (!rows) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a picture");
    for (size_t r = 0; r < h; r++) {
        const uint8_t *from = rgb + r * row, *up = r ? from - row : NULL;
        uint8_t *to = rows + r * (row + 1);
        size_t best = filter_row(0, from, up, row, to);
        for (int f = 1; f < FILTERS; f++) {
            size_t sum = filter_row(f, from, up, row, tried);
            if (sum < best) memcpy(to, tried, row + 1);
            best = sum < best ? sum : best;
        }
    }
    begin(out, width, height, COLOURS);
    dc_status status = finish(out, rows, n);
    free(rows);
    return status;
}
