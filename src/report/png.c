// PNG, see png.h: signature, IHDR, PLTE, tRNS, IDAT, IEND; every row without a filter.
#include "report/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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
    uLong sum = crc32(crc32(0, (const Bytef *)type, 4), n ? bytes : (const Bytef *)"", (uInt)n);
    put_word(word, (uint32_t)sum);
    dc_text_bytes(out, (const char *)word, 4);
}

// Rows with their filter byte, which is 0, through zlib.
static dc_status pack(dc_text *out, int width, int height, const uint8_t *pixels) {
    size_t w = (size_t)width, h = (size_t)height, n = h * (w + 1);
    uLongf packed = compressBound((uLong)n);
    uint8_t *plain = calloc(n + packed, 1), *bytes = plain + n;
    if (!plain) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a picture");
    for (size_t r = 0; r < h; r++)
        memcpy(plain + r * (w + 1) + 1, pixels + r * w, w);
    int failed = compress2(bytes, &packed, plain, (uLong)n, 9);
    if (!failed) chunk(out, "IDAT", bytes, packed);
    free(plain);
    return failed ? dc_fail(DC_NO_MEMORY, NULL, "no memory to pack a picture") : DC_OK;
}

dc_status dc_png_write(dc_text *out, int width, int height, const uint8_t *pixels,
                       const dc_colour *palette) {
    enum { BITS = 8, PALETTE = 3 };
    uint8_t head[13] = {[8] = BITS, [9] = PALETTE}, colours[256 * 3];
    put_word(head, (uint32_t)width);
    put_word(head + 4, (uint32_t)height);
    for (int i = 0; i < 256; i++)
        memcpy(colours + 3 * (ptrdiff_t)i, (uint8_t[]){palette[i].r, palette[i].g, palette[i].b},
               3);
    dc_text_bytes(out, "\x89PNG\r\n\x1a\n", 8);
    chunk(out, "IHDR", head, sizeof head);
    chunk(out, "PLTE", colours, sizeof colours);
    chunk(out, "tRNS", (const uint8_t[]){0}, 1);
    DC_TRY(pack(out, width, height, pixels));
    chunk(out, "IEND", NULL, 0);
    return dc_text_status(out);
}
