// Fuzz target: npy headers. What parses must survive being written and parsed again.
#include "data/npy.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void convert(const dc_npy *npy, const uint8_t *bytes, size_t n) {
    float f[64];
    double d[64];
    size_t count = n / dc_dtype_size(npy->type);
    if (count > 64) count = 64;
    dc_npy_floats(npy->type, bytes, count, f);
    dc_npy_doubles(npy->type, bytes, count, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    dc_npy npy, again;
    if (dc_npy_parse(&npy, bytes, n) != DC_OK) return 0;
    DC_CHECK(npy.header <= n);
    convert(&npy, bytes + npy.header, n - npy.header);
    uint8_t text[DC_NPY_WRITE_MAX];
    dc_npy_write(&npy, text);
    DC_CHECK(dc_npy_parse(&again, text, npy.header) == DC_OK);
    DC_CHECK(again.type == npy.type && again.ndim == npy.ndim && again.bytes == npy.bytes);
    DC_CHECK(memcmp(again.shape, npy.shape, sizeof npy.shape) == 0);
    return 0;
}
