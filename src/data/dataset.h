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
    // traj_start[t] ... traj_start[t + 1] - 1, at least 2 of them. The action of its last row led
    // nowhere; n-step targets that reach the end bootstrap from it (last_action=off: they do not).
    const int64_t *traj_start;
    // Nullable: of a table that is filled while it is learned from (online/replay.h): how many of its rows are there.
    // It has one trajectory then, whose last row is none of them. Rows are drawn among these alone.
    const int64_t *grown;
    uint64_t hash; // of the content; recorded in a run's config
    // Least and greatest action where they are real numbers and known: as they were before they were
    // clipped. (0, 0): not known, and within [-1, 1].
    dc_bounds actions;
    dc_arena arena;  // owns everything above
    dc_store *store; // Nullable: what is mapped, and then it owns values and table
} dc_dataset;

// Load an OGBench file: observations (N, ...), actions (N, ...), terminals (N), all of numbers, and
// D4RL's timeouts (N) where they are there. They become the columns "obs" and "act" and the table of
// trajectories; every other array of N rows becomes a column of its own name. Float actions within
// [-1, 1] are clipped to +-(1 - 1e-5), all others stay (dc_layout_in_range); whole numbers are
// discrete actions and stay. Arrays of uint8 stay bytes (actions do not), all others become float32.
// A folder is a store of such data, see data/store.h.
dc_status dc_dataset_load(dc_dataset *data, const char *path);
// The same from an open archive. Borrows: npz (only during the call).
dc_status dc_dataset_read(dc_dataset *data, const dc_npz *npz);

// Make a data set in memory: _make, then _add for each column and fill traj_start (traj_count + 1)
// and the values, then _seal, which checks the table and sets the hash. _fini also after a failure.
dc_status dc_dataset_make(dc_dataset *data, int64_t rows, int64_t traj_count, int64_t **traj_start);
// A new column of zeros, (rows, width); the name is copied.
dc_status dc_dataset_add(dc_dataset *data, const char *name, int64_t width, float **values);
// A column of values (rows, width) that are the caller's and outlive the data set.
dc_status dc_dataset_lend(dc_dataset *data, const char *name, int64_t width, const float *values);
// The same as _add of bytes, with the shape of a row (ndim), which is copied.
dc_status dc_dataset_add_bytes(dc_dataset *data, const char *name, int ndim, const int64_t *shape,
                               uint8_t **bytes);
dc_status dc_dataset_seal(dc_dataset *data);
// Before _seal: find the bounds of real actions (rows, width), and clip them if they are in range.
void dc_dataset_settle_actions(dc_dataset *data, float *actions, int width);

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

// How differently the values of an observation vary: the widest deviation and the one that a quarter of
// the values do not reach, of those that vary at all, over at most 2^12 rows.
typedef struct dc_variation {
    int wide, narrow; // which values of an observation
    double most, least;
} dc_variation;
dc_status dc_dataset_variation(const dc_dataset *data, dc_variation *out);
// Whether that is so uneven that networks see little but the wide values. (OGBench's tables have 6.)
static inline bool dc_variation_uneven(const dc_variation *s) {
    return s->least > 0 && s->most >= 100 * s->least;
}

#endif
