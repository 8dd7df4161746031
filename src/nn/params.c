// Parameter table and slabs, see params.h.
#include "nn/params.h"

#include "base/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const dc_param_row *dc_params_add(dc_params *params, const char *name, int e, int rows, int cols,
                                  dc_init init, double gain, bool has_target) {
    DC_CHECK(params->count < DC_PARAMS_MAX && !params->slabs.live);
    DC_CHECK(!has_target || params->slabs.ema_size == params->slabs.size);
    dc_param_row *row = &params->rows[params->count++];
    *row = (dc_param_row){.e = e, .rows = rows, .cols = cols, .init = init, .gain = gain};
    snprintf(row->name, sizeof row->name, "%s", name);
    row->offset = params->slabs.size;
    params->slabs.size += ((int64_t)e * rows * cols + 15) / 16 * 16; // each starts a cache line
    if (has_target) params->slabs.ema_size = params->slabs.size;
    return row;
}

// Xavier: uniform in +-gain sqrt(6 / (in + out)). Draws are addressed by (matrix, number), so
// adding a network does not change the others.
static void fill(dc_real *p, const dc_param_row *row, int number, uint64_t seed) {
    int64_t count = (int64_t)row->e * row->rows * row->cols;
    double limit = row->gain * sqrt(6.0 / (row->rows + row->cols));
    for (int64_t i = 0; i < count; i++) {
        if (row->init == DC_INIT_XAVIER) {
            dc_u32x4 word = dc_philox(seed, DC_STREAM_INIT, (uint64_t)number, (uint32_t)(i / 4));
            p[i] = (dc_real)((2 * (double)dc_unit(word.v[i % 4]) - 1) * limit);
        } else {
            p[i] = row->init == DC_INIT_ONE;
        }
    }
}

static dc_real *slab(int64_t size) {
    size_t bytes = ((size_t)size * sizeof(dc_real) + 63) / 64 * 64 + 64;
    dc_real *p = aligned_alloc(64, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

dc_status dc_params_alloc(dc_params *params, uint64_t seed) {
    dc_slabs *s = &params->slabs;
    dc_real **all[] = {&s->live, &s->ema, &s->grad, &s->m, &s->v};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i] = slab(s->size);
        if (!*all[i]) {
            long long size = s->size;
            dc_params_free(params); // which forgets it
            return dc_fail(DC_NO_MEMORY, "lower hidden", "no memory for %lld weights", size);
        }
    }
    for (int i = 0; i < params->count; i++)
        fill(s->live + params->rows[i].offset, &params->rows[i], i, seed);
    memcpy(s->ema, s->live, (size_t)s->ema_size * sizeof(dc_real));
    return DC_OK;
}

void dc_params_free(dc_params *params) {
    dc_slabs *s = &params->slabs;
    free(s->live);
    free(s->ema);
    free(s->grad);
    free(s->m);
    free(s->v);
    *params = (dc_params){0};
}

const dc_param_row *dc_params_find(const dc_params *params, const char *name) {
    for (int i = 0; i < params->count; i++)
        if (!strcmp(params->rows[i].name, name)) return &params->rows[i];
    return NULL;
}

const char *dc_params_find_bad(const dc_params *params, const dc_real *slab_) {
    for (int i = 0; i < params->count; i++) {
        const dc_param_row *row = &params->rows[i];
        int64_t count = (int64_t)row->e * row->rows * row->cols;
        for (int64_t k = 0; k < count; k++)
            if (!isfinite(slab_[row->offset + k])) return row->name;
    }
    return NULL;
}
