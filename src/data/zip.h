// ZIP: the few records of the format that an npz file needs, and numbers in its byte order
// (little-endian, unaligned). Shared by the reader (npz.c) and the writer (npz_write.c); sizes are
// those of the fixed parts.
#ifndef DC_ZIP_H
#define DC_ZIP_H

#include <stdint.h>

enum {
    ZIP_LOCAL = 0x04034b50,     // before each entry's bytes
    ZIP_CENTRAL = 0x02014b50,   // one per entry, at the end of the file
    ZIP_END = 0x06054b50,       // the last record
    ZIP_END64 = 0x06064b50,     // the same with 64-bit numbers
    ZIP_LOCATOR64 = 0x07064b50, // says where END64 is; just before END

    ZIP_LOCAL_SIZE = 30,
    ZIP_CENTRAL_SIZE = 46,
    ZIP_END_SIZE = 22,
    ZIP_END64_SIZE = 56,
    ZIP_LOCATOR64_SIZE = 20,

    ZIP_STORED = 0,
    ZIP_DEFLATE = 8,

    ZIP_EXTRA64 = 1,       // extra field that holds the 64-bit sizes
    ZIP_EXTRA_PAD = 0xd935 // extra field that aligns what follows
};

static inline uint16_t zip_get16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t zip_get32(const uint8_t *p) {
    return zip_get16(p) | (uint32_t)zip_get16(p + 2) << 16;
}

static inline uint64_t zip_get64(const uint8_t *p) {
    return zip_get32(p) | (uint64_t)zip_get32(p + 4) << 32;
}

// Write the lowest n bytes of v and return the place after them.
static inline uint8_t *zip_put(uint8_t *p, int n, uint64_t v) {
    for (int i = 0; i < n; i++, v >>= 8)
        p[i] = (uint8_t)v;
    return p + n;
}

#endif
