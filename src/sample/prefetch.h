// Prefetch: while a step is computed, the disk already fetches the rows of the next one. Only
// for data sets that are mapped (data/store) and do not lie in memory; it changes no number.
#ifndef DC_PREFETCH_H
#define DC_PREFETCH_H

#include "sample/gather.h"
#include "sample/sampler.h"

typedef struct dc_prefetch {
    dc_sampler *sampler; // one step ahead of the run's own; Nullable: nothing is prefetched
    long faults;         // of the disk, when last counted
    int left;            // steps to prefetch before it is tried without
} dc_prefetch;

// Borrows: data, rows (until fini).
dc_status dc_prefetch_init(dc_prefetch *prefetch, const dc_dataset *data, const dc_row_table *rows);
void dc_prefetch_fini(dc_prefetch *prefetch);
// Ask for the rows of the step that `sampler` will be asked for next. Does not wait. Nullable:
// pool.
dc_status dc_prefetch_next(dc_prefetch *prefetch, const dc_feeds *feeds, const dc_sampler *sampler,
                           dc_pool *pool);

#endif
