// Reading ahead: while a step is computed, the disk already fetches the rows of the next one. Only
// for data sets that are mapped (data/store) and do not lie in memory; it changes no number.
#ifndef DC_AHEAD_H
#define DC_AHEAD_H

#include "sample/gather.h"
#include "sample/sampler.h"

typedef struct dc_ahead {
    dc_sampler *scout; // Nullable: there is nothing to read ahead
    long faults;       // of the disk, when last counted
    int left;          // steps to read ahead before it is tried without
} dc_ahead;

// Borrows: data, rows (until fini).
dc_status dc_ahead_init(dc_ahead *ahead, const dc_dataset *data, const dc_row_table *rows);
void dc_ahead_fini(dc_ahead *ahead);
// Ask for the rows of the step that `sampler` will be asked for next. Does not wait. Nullable:
// pool.
dc_status dc_ahead_next(dc_ahead *ahead, const dc_feeds *feeds, const dc_sampler *sampler,
                        dc_pool *pool);

#endif
