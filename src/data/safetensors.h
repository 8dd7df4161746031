// Safetensors: named tensors in one file, readable by every framework of this field. Checkpoints,
// weights for `dcrl grad` and its gradients go through here. The reader maps the file and hands out
// views into it, nothing is copied; the writer is atomic (base/file.h). What is read may be
// hostile.
//
//     8 bytes: length of the header | header: JSON, padded with spaces to a multiple of 8 | tensors
#ifndef DC_SAFETENSORS_H
#define DC_SAFETENSORS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { DC_ST_DIMS = 8, DC_ST_HASH = 17 };

// Types of elements, under the names that the format gives them; more can be read than dcrl
// computes with.
typedef enum dc_st_dtype {
    DC_ST_F32,
    DC_ST_F64,
    DC_ST_I32,
    DC_ST_I64,
    DC_ST_U8,
    DC_ST_BOOL,
    DC_ST_F16,
    DC_ST_BF16,
    DC_ST_I8,
    DC_ST_I16,
    DC_ST_U16,
    DC_ST_U32,
    DC_ST_U64,
    DC_ST_DTYPES,
} dc_st_dtype;

typedef struct dc_st_tensor {
    const char *name;
    dc_st_dtype dtype;
    int ndim; // 0: a scalar
    int64_t shape[DC_ST_DIMS];
    const void
        *bytes;  // row-major, little-endian; a foreign file may leave it unaligned: memcpy then
    size_t size; // bytes
} dc_st_tensor;

typedef struct dc_st_meta {
    const char *key, *value;
} dc_st_meta;

// An open file. Tensors lie in the order of the file.
typedef struct dc_st_file {
    const dc_st_tensor *tensors;        // (count)
    const dc_st_tensor *const *by_name; // (count), sorted
    size_t count;
    const dc_st_meta *metas; // (meta_count)
    size_t meta_count;
    dc_map map;     // empty after dc_st_parse
    dc_arena arena; // owns names, metas and the tables above
} dc_st_file;

// Name of a type ("F32") and the bytes of one element.
const char *dc_st_dtype_name(dc_st_dtype dtype);
size_t dc_st_dtype_size(dc_st_dtype dtype);

// Map and check a file. On failure nothing needs closing.
dc_status dc_st_open(dc_st_file *file, const char *path);
dc_status dc_st_open_inside(dc_st_file *file, const char *path); // in a run folder, see base/file.h
// The same for bytes in memory; `what` names them in errors. Borrows: bytes, until dc_st_close.
dc_status dc_st_parse(dc_st_file *file, const char *what, const void *bytes, size_t size);
void dc_st_close(dc_st_file *file);
// Tensor by name; NULL when there is none.
const dc_st_tensor *dc_st_find(const dc_st_file *file, const char *name);
// Metadata by key; NULL when there is none.
const char *dc_st_meta_get(const dc_st_file *file, const char *key);

// Hash of tensors, in the order in which they lie in the file, and of all metadata but "hash", under
// which files keep it: 16 hexadecimal digits.
void dc_st_hash(const dc_st_tensor *tensors, size_t count, const dc_st_meta *metas,
                size_t meta_count, char out[DC_ST_HASH]);

// Write tensors and metadata, in the order given; the same content gives the same bytes. Sizes must
// agree with shapes (else a bug); put wide types first and every tensor stays aligned. Nullable:
// metas, if 0. Errors: DC_BAD_INPUT for a name that stands twice.
dc_status dc_st_write(const char *path, const dc_st_tensor *tensors, size_t count,
                      const dc_st_meta *metas, size_t meta_count);
dc_status dc_st_write_inside(const char *path, const dc_st_tensor *tensors, size_t count,
                             const dc_st_meta *metas, size_t meta_count);

#endif
