// Fuzz target: any bytes as a safetensors file. Of what is taken every byte is read and every name
// looked up.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "data/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

static void read_tensor(const dc_st_file *file, const dc_st_tensor *t) {
    DC_CHECK(dc_st_find(file, t->name) == t);
    size_t size = dc_st_dtype_size(t->dtype);
    DC_CHECK(t->ndim >= 0 && t->ndim <= DC_ST_DIMS);
    for (int i = 0; i < t->ndim; i++)
        size *= (size_t)t->shape[i];
    DC_CHECK(size == t->size);
    const uint8_t *bytes = t->bytes;
    for (size_t i = 0; i < size; i++)
        sink += bytes[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dc_st_file file;
    if (dc_st_parse(&file, "fuzz", data, size) != DC_OK) return 0;
    size_t total = 0;
    for (size_t i = 0; i < file.count; i++) {
        read_tensor(&file, &file.tensors[i]);
        total += file.tensors[i].size;
    }
    DC_CHECK(total < size);
    for (size_t i = 0; i < file.meta_count; i++)
        DC_CHECK(!strcmp(dc_st_meta_get(&file, file.metas[i].key), file.metas[i].value));
    dc_st_close(&file);
    return 0;
}
