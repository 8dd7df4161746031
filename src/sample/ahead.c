// Reading ahead, see ahead.h. A batch touches thousands of rows that lie anywhere, and a row that
// is not in memory costs a wait for the disk, one after the other. Asked for together and early,
// they come in parallel, behind the arithmetic of the step before.
//
// Which rows will be needed is no guess: the sampler is a function of its state, so a second one,
// the scout, runs one step in front of it. It costs some 50 KB and microseconds, and keeps the true
// sampler's state, which checkpoints hold, out of this.
//
// Asking costs about a microsecond per row even if the row is in memory, so it is done only while it
// helps: after STEPS steps it is left out, and begins again with the first step that waited for the
// disk (FAULTS times or more).
//
// A chooser of splits asks the network, and its trees differ from what it says a step later: there
// is no scout then.
#include "sample/ahead.h"

#include "base/pages.h"

#include <stdlib.h>

enum { STEPS = 64, FAULTS = 16 };

static bool any_mapped(const dc_dataset *data) {
    for (int c = 0; c < data->column_count; c++)
        if (data->columns[c].mapped) return true;
    return false;
}

dc_status dc_ahead_init(dc_ahead *ahead, const dc_dataset *data, const dc_row_table *rows) {
    *ahead = (dc_ahead){.left = STEPS, .faults = dc_disk_faults()};
    const dc_row_rule *tree = dc_rows_tree(rows);
    if (!any_mapped(data) || (tree && tree->split == DC_SPLIT_MAX)) return DC_OK;
    return dc_sampler_new(&ahead->scout, data, rows);
}

void dc_ahead_fini(dc_ahead *ahead) {
    dc_sampler_free(ahead->scout);
    *ahead = (dc_ahead){0};
}

// Bring the scout to where the sampler is: at the start of a run, and after a resume.
dc_status dc_ahead_next(dc_ahead *ahead, const dc_feeds *feeds, const dc_sampler *sampler,
                        dc_pool *pool) {
    if (!ahead->scout) return DC_OK;
    uint64_t step = dc_sampler_step(sampler);
    if (dc_sampler_step(ahead->scout) != step) DC_TRY(dc_sampler_copy(ahead->scout, sampler));
    DC_TRY(dc_sampler_next(ahead->scout, step));
    long faults = dc_disk_faults();
    if (faults - ahead->faults >= FAULTS) ahead->left = STEPS;
    ahead->faults = faults;
    if (ahead->left == 0) return DC_OK;
    ahead->left--;
    dc_gather_want(feeds, ahead->scout, pool);
    return DC_OK;
}
