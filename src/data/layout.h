// Layout: which arrays of an npz file make a data set, and what their values must be. Both ways in
// ask here, so they agree: data/dataset, which loads a file into memory, and data/convert, which
// converts one into a store.
//
//     npz -> dc_layout_read -> columns to read -> dc_layout_check on every chunk of their values
#ifndef DC_LAYOUT_H
#define DC_LAYOUT_H

#include "base/status.h"
#include "data/column.h"
#include "data/npz.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { DC_COLUMNS_MAX = 16 };
enum { DC_WIDTH_MAX = 1 << 24 }; // values of a row: sums of a few widths stay within int

typedef struct dc_layout_column {
    const char *name; // "obs", "act", or the array's own
    const dc_npz_entry *entry;
    dc_npy npy;
    dc_type type; // that the column has
    int width;    // values per row
    bool finite;  // NaN and Inf, which bytes cannot be, are errors
    bool real;    // actions that are real numbers
} dc_layout_column;

// Least and greatest of some values; none of them yet where low is above high.
typedef struct dc_bounds {
    float low, high;
} dc_bounds;
#define DC_BOUNDS_NONE ((dc_bounds){INFINITY, -INFINITY})

typedef struct dc_layout {
    const dc_npz *npz;
    int64_t rows;
    int count;
    dc_layout_column columns[DC_COLUMNS_MAX]; // obs, act, then the others in the file's order
    const dc_npz_entry *terminals;
    dc_npy terminals_npy;
    // Nullable: D4RL's flags of where an episode was cut off, which end a trajectory like terminals do
    const dc_npz_entry *timeouts;
    dc_npy timeouts_npy;
} dc_layout;

// Find and check the arrays of a data set. Borrows: npz.
dc_status dc_layout_read(dc_layout *layout, const dc_npz *npz);
// Whether the array's bytes are the column's values, so that nothing needs to be converted.
bool dc_layout_same_bytes(const dc_layout_column *column);
// Check n values of a column of float32, which start at its value number `first`. (Any byte is a
// value of a column of bytes.)
dc_status dc_layout_check(const dc_layout *layout, int column, uint64_t first, const float *values,
                          uint64_t n);
// The first value that is NaN or Inf; n if there is none.
uint64_t dc_layout_first_bad(const float *values, uint64_t n);
// Widen bounds by n values.
void dc_layout_bound(dc_bounds *bounds, const float *values, uint64_t n);
// Whether actions lie within [-1, 1], but for the noise of float arithmetic (a thousandth). Such a data
// set's actions are all clipped to +-(1 - 1e-5); those of any other stay as they are, and training asks
// for act_scale.
bool dc_layout_in_range(dc_bounds bounds);
void dc_layout_clip(float *values, uint64_t n);
// Check `count` flags of an array ('terminals', 'timeouts'), those of rows `row` on: each is 0 or 1.
dc_status dc_layout_check_flags(const dc_layout *layout, const char *name, int64_t row,
                                const float *flags, int64_t count);
// What the rows behind the last flag are, from row `open` on, when `ended` trajectories ended before:
// with timeouts one more trajectory, which the end of the file ends, else an error.
dc_status dc_layout_check_end(const dc_layout *layout, int64_t ended, int64_t open);
// Refuse a trajectory (number, first row) of fewer than two rows.
dc_status dc_layout_check_length(int64_t traj, int64_t first, int64_t rows);

#endif
