// Data set: columns of rows and the table of trajectories over them. Comes from an OGBench file
// (data/npz), a folder of mapped files (data/store) or from an environment that makes its own
// (env/lock); goes to sample/ and gather.
#ifndef DC_DATASET_H
#define DC_DATASET_H

#include "base/arena.h"
#include "base/pool.h"
#include "base/status.h"
#include "data/column.h"
#include "data/layout.h"
#include "data/npz.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_store dc_store;

typedef struct dc_dataset {
    int64_t rows;
    int column_count;
    dc_column columns[DC_COLUMNS_MAX];
    int64_t traj_count;
    // First row of each trajectory, and the end: (traj_count + 1). Trajectory t has rows
    // traj_start[t] ... traj_start[t + 1] - 1, at least 2 of them; its last row has no action of
    // its own.
    const int64_t *traj_start;
    uint64_t hash;   // of the content; recorded in a run's config
    dc_arena arena;  // owns everything above
    dc_store *store; // Nullable: what is mapped, and then it owns values and table
} dc_dataset;

// Load an OGBench file: observations (N, ...), actions (N, ...), terminals (N), all of numbers.
// They become the columns "obs" and "act" and the table of trajectories; every other array of N
// rows becomes a column of its own name. Float actions are clipped to +-(1 - 1e-5); whole numbers
// are discrete actions and stay. Arrays of uint8 stay bytes (actions do not), all others become
// float32. A folder is a store of such data, see data/store.h.
dc_status dc_dataset_load(dc_dataset *data, const char *path);
// The same from an open archive. Borrows: npz (only during the call).
dc_status dc_dataset_read(dc_dataset *data, const dc_npz *npz);

// Make a data set in memory: _make, then _add for each column and fill traj_start (traj_count + 1)
// and the values, then _seal, which checks the table and sets the hash. _fini also after a failure.
dc_status dc_dataset_make(dc_dataset *data, int64_t rows, int64_t traj_count, int64_t **traj_start);
// A new column of zeros, (rows, width); the name is copied.
dc_status dc_dataset_add(dc_dataset *data, const char *name, int64_t width, float **values);
// The same of bytes, with the shape of a row (ndim), which is copied.
dc_status dc_dataset_add_bytes(dc_dataset *data, const char *name, int ndim, const int64_t *shape,
                               uint8_t **bytes);
dc_status dc_dataset_seal(dc_dataset *data);

// Free a loaded or made data set; safe after a failed load or make, and twice.
void dc_dataset_fini(dc_dataset *data);
// Column by internal name; NULL when there is none.
const dc_column *dc_dataset_column(const dc_dataset *data, const char *name);
// Content hash over columns and trajectory table (also for data sets that an environment made). The
// order of columns, how a file packs them and which type it stores float32 columns in do not
// matter; whether a column is float32 or bytes does.
uint64_t dc_dataset_hash(const dc_dataset *data);

// Mean and deviation of each of a column's values over all rows, (width) each: what observations
// are scaled by, (x - mean) / deviation. A value that does not vary gets the deviation 1. Bytes are
// not measured: they have mean 0 and deviation 255, so that pictures become 0 to 1. The same bits
// for any number of threads. Nullable: pool (computes here). Errors: DC_BAD_INPUT when there is no
// such column, or a value is NaN or infinite.
dc_status dc_dataset_moments(const dc_dataset *data, const char *column, dc_pool *pool,
                             double *mean, double *deviation);

#endif
