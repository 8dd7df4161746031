// Layout: which arrays of an npz file make a data set, and what their values must be. Both ways in
// ask here, so they agree: data/dataset, which loads a file into memory, and data/convert, which
// streams one into a store.
//
//     npz -> dc_layout_read -> columns to read -> dc_layout_check on every chunk of their values
#ifndef DC_LAYOUT_H
#define DC_LAYOUT_H

#include "base/status.h"
#include "data/column.h"
#include "data/npz.h"

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
    bool clip;    // to +-(1 - 1e-5)
} dc_layout_column;

typedef struct dc_layout {
    const dc_npz *npz;
    int64_t rows;
    int count;
    dc_layout_column columns[DC_COLUMNS_MAX]; // obs, act, then the others in the file's order
    const dc_npz_entry *terminals;
    dc_npy terminals_npy;
} dc_layout;

// Find and check the arrays of a data set. Borrows: npz.
dc_status dc_layout_read(dc_layout *layout, const dc_npz *npz);
// Whether the array's bytes are the column's values, so that nothing needs to be converted.
bool dc_layout_same_bytes(const dc_layout_column *column);
// Check and clip n values of a column of float32, which start at its value number `first`. (Any
// byte is a value of a column of bytes.)
dc_status dc_layout_check(const dc_layout *layout, int column, uint64_t first, float *values,
                          uint64_t n);
// The two halves of it: the first value that is NaN or Inf (n if there is none), and actions cut to
// +-(1 - 1e-5).
uint64_t dc_layout_first_bad(const float *values, uint64_t n);
void dc_layout_clip(float *values, uint64_t n);
// Check `count` (above 0) flags of terminals, those of rows `row` on: each is 0 or 1, the file's
// last is 1.
dc_status dc_layout_check_flags(const dc_layout *layout, int64_t row, const float *flags,
                                int64_t count);
// Refuse a trajectory (number, first row) of fewer than two rows.
dc_status dc_layout_check_length(int64_t traj, int64_t first, int64_t rows);

#endif
