// NPY: the header in front of one numpy array, and the numbers after it. data/npz finds the bytes
// inside a file, this part says what they are and turns them into float or double. Headers of
// versions 1, 2 and 3 are read, version 1 is written. Everything here is a pure function of bytes
// that may be hostile: nothing in a header is believed before it is checked.
#ifndef DC_NPY_H
#define DC_NPY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Number types, as numpy names them: kind and bytes. All are little-endian.
typedef enum dc_dtype {
    DC_B1,
    DC_I1,
    DC_I2,
    DC_I4,
    DC_I8,
    DC_U1,
    DC_U2,
    DC_U4,
    DC_U8,
    DC_F2,
    DC_F4,
    DC_F8,
    DC_DTYPES
} dc_dtype;

enum {
    DC_NPY_DIMS = 32,         // most dimensions of an array
    DC_NPY_PREFIX = 12,       // most bytes before the header's text
    DC_NPY_HEADER_MAX = 65600 // longest header that is read, prefix included
};

typedef struct dc_npy {
    dc_dtype type;
    int ndim;
    int64_t shape[DC_NPY_DIMS]; // (ndim), none negative
    size_t header;              // bytes before the first value
    uint64_t count;             // values: the product of shape
    uint64_t bytes;             // bytes of values
} dc_npy;

// Bytes of one value, and the name that users know ("float32").
size_t dc_dtype_size(dc_dtype type);
const char *dc_dtype_name(dc_dtype type);
bool dc_dtype_is_float(dc_dtype type);
// Type by that name; false when there is none.
bool dc_dtype_find(const char *name, dc_dtype *type);

// An array of that type and shape, with count and bytes computed. Errors: DC_BAD_INPUT when a
// dimension is negative, there are too many, or the size overflows.
dc_status dc_npy_make(dc_npy *npy, dc_dtype type, int ndim, const int64_t *shape);

// Bytes of the whole header, told by its first bytes (n of them, DC_NPY_PREFIX are always enough).
dc_status dc_npy_header_size(const uint8_t *bytes, size_t n, size_t *size);
// Parse a header that lies whole within n bytes. Errors: DC_UNSUPPORTED for well-formed headers of
// arrays that are not little-endian C-order numbers, DC_BAD_INPUT for anything else.
dc_status dc_npy_parse(dc_npy *npy, const uint8_t *bytes, size_t n);
// Write the header of npy (sets npy->header, a multiple of 64) into at most DC_NPY_WRITE_MAX bytes.
enum { DC_NPY_WRITE_MAX = 1024 };
void dc_npy_write(dc_npy *npy, uint8_t *bytes);

// Convert n values of any alignment. Values out of range become infinite.
void dc_npy_floats(dc_dtype type, const uint8_t *bytes, size_t n, float *out);
void dc_npy_doubles(dc_dtype type, const uint8_t *bytes, size_t n, double *out);

#endif
