// Parameters: the table of a run's weight matrices and the slabs that hold them. All weights of all
// networks lie in one slab, networks with a target first, so that Adam and EMA are one pass each
// and a checkpoint is one write.
#ifndef DC_PARAMS_H
#define DC_PARAMS_H

#include "backend/backend.h"
#include "base/options.h"
#include "base/status.h"

#include <stdint.h>

typedef enum dc_init { DC_INIT_ZERO, DC_INIT_ONE, DC_INIT_XAVIER } dc_init;

typedef struct dc_param_row {
    char name[64];     // net/layer/{w,b,scale,bias}
    int e, rows, cols; // w (e, in, out); the others (e, 1, out)
    int64_t offset;    // in reals
    dc_init init;
    double gain; // of XAVIER
} dc_param_row;

// Of the most networks with the most layers, and 3 encoders of 20 matrices each.
enum { DC_PARAMS_MAX = 12 * (4 * DC_LIST_MAX + 2 + 60) };

typedef struct dc_params {
    int count;
    dc_param_row rows[DC_PARAMS_MAX];
    dc_slabs slabs;
} dc_params;

// Add a matrix; returns its row. Rows with a target must come before any without (checked).
const dc_param_row *dc_params_add(dc_params *params, const char *name, int e, int rows, int cols,
                                  dc_init init, double gain, bool has_target);
// Take memory once all rows are known, draw the initial weights, copy them to the targets.
dc_status dc_params_alloc(dc_params *params, uint64_t seed);
void dc_params_free(dc_params *params);
const dc_param_row *dc_params_find(const dc_params *params, const char *name);
// Name of the first matrix with a NaN or Inf in the given slab; NULL if all are finite.
const char *dc_params_find_bad(const dc_params *params, const dc_real *slab);

#endif
