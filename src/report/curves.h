// Learning curves: success and every column of train.csv against steps, one panel for each
// environment and metric, one series a group, with a band of one standard deviation over seeds.
#ifndef DC_CURVES_H
#define DC_CURVES_H

#include "report/plot.h"
#include "report/runs.h"

typedef struct dc_curves {
    dc_panel *panels; // (count) success first, then training by environment
    const char **env; // (count) of each panel
    int count;
    int success; // panels that show success
} dc_curves;

// Borrows: runs. The panels live in the arena.
dc_status dc_curves_build(dc_curves *curves, const dc_runs *runs, dc_arena *arena);

#endif
