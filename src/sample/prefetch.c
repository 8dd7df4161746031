// Prefetching, see prefetch.h. A batch touches thousands of rows that lie anywhere, and a row that
// is not in memory costs a wait for the disk, one after the other. Asked for together and early,
// they come in parallel, behind the arithmetic of the step before.
//
// Which rows will be needed is no guess: the sampler is a function of its state, so a second
// sampler runs one step ahead of it. It costs some 50 KB and microseconds, and keeps the true
// sampler's state, which checkpoints hold, out of this.
//
// Asking costs about a microsecond per row even if the row is in memory, so it is done only while it
// helps: after STEPS steps it is left out, and begins again with the first step that waited for the
// disk (FAULTS times or more).
//
// A chooser of splits asks the network, and its trees differ from what it says a step later: there
// is no second sampler then.
#include "sample/prefetch.h"

#include "base/pages.h"

#include <stdlib.h>

enum { STEPS = 64, FAULTS = 16 };

static bool any_mapped(const dc_dataset *data) {
    for (int c = 0; c < data->column_count; c++)
        if (data->columns[c].mapped) return true;
    return false;
}

dc_status dc_prefetch_init(dc_prefetch *prefetch, const dc_dataset *data,
                           const dc_row_table *rows) {
    *prefetch = (dc_prefetch){.left = STEPS, .faults = dc_disk_faults()};
    const dc_row_rule *tree = dc_rows_tree(rows);
    if (!any_mapped(data) || (tree && tree->split == DC_SPLIT_MAX)) return DC_OK;
    return dc_sampler_new(&prefetch->sampler, data, rows);
}

void dc_prefetch_fini(dc_prefetch *prefetch) {
    dc_sampler_free(prefetch->sampler);
    *prefetch = (dc_prefetch){0};
}

// Bring the second sampler to where the first one is: at the start of a run, and after a resume.
dc_status dc_prefetch_next(dc_prefetch *prefetch, const dc_feeds *feeds, const dc_sampler *sampler,
                           dc_pool *pool) {
    if (!prefetch->sampler) return DC_OK;
    uint64_t step = dc_sampler_step(sampler);
    if (dc_sampler_step(prefetch->sampler) != step)
        DC_TRY(dc_sampler_copy(prefetch->sampler, sampler));
    DC_TRY(dc_sampler_next(prefetch->sampler, step));
    long faults = dc_disk_faults();
    if (faults - prefetch->faults >= FAULTS) prefetch->left = STEPS;
    prefetch->faults = faults;
    if (prefetch->left == 0) return DC_OK;
    prefetch->left--;
    dc_gather_want(feeds, prefetch->sampler, pool);
    return DC_OK;
}
