// Weights as tensors, see weights.h.
#include "train/weights.h"

#include <stdio.h>
#include <string.h>

#ifdef DC_DOUBLE
static const dc_st_dtype real_type = DC_ST_F64;
#else
static const dc_st_dtype real_type = DC_ST_F32;
#endif

void dc_weight_describe(const dc_param_row *row, const dc_real *slab, const char *prefix,
                        char name[DC_WEIGHT_NAME], dc_st_tensor *t) {
    snprintf(name, DC_WEIGHT_NAME, "%s%s", prefix, row->name);
    size_t count = (size_t)row->e * (size_t)row->rows * (size_t)row->cols;
    *t = (dc_st_tensor){name,
                        real_type,
                        3,
                        {row->e, row->rows, row->cols},
                        slab + row->offset,
                        count * sizeof(dc_real)};
    if (!strstr(row->name, "/w")) { // vectors are (e, out)
        t->ndim = 2;
        t->shape[1] = row->cols;
    }
}

dc_status dc_weight_check(const dc_st_file *file, const char *path, const dc_st_tensor *want) {
    const dc_st_tensor *have = dc_st_find(file, want->name);
    const char *hint = "the file belongs to another configuration";
    if (!have) return dc_fail(DC_BAD_INPUT, hint, "%s has no tensor %s", path, want->name);
    bool same = have->dtype == want->dtype && have->ndim == want->ndim && have->size == want->size;
    for (int d = 0; same && d < want->ndim; d++)
        same = have->shape[d] == want->shape[d];
    if (!same)
        return dc_fail(DC_BAD_INPUT, hint, "%s: tensor %s has another type or shape", path,
                       want->name);
    return DC_OK;
}

dc_status dc_weight_copy(const dc_st_file *file, const char *path, const dc_st_tensor *want) {
    DC_TRY(dc_weight_check(file, path, want));
    const dc_st_tensor *have = dc_st_find(file, want->name);
    memcpy((void *)(uintptr_t)want->bytes, have->bytes, have->size);
    return DC_OK;
}
