// Learning curves: success, overall and by task, and every column of train.csv against steps, one panel for each
// environment and metric, one series a group, with a band of one standard deviation over seeds.
#ifndef DC_CURVES_H
#define DC_CURVES_H

#include "report/plot.h"
#include "report/runs.h"

// More groups than these in one panel could not be told apart; the first ones are drawn.
enum { DC_CURVES_MAX = 48 };

typedef struct dc_curves {
    dc_panel
        *panels; // (count) success first, then that of each task, then training, by environment
    const char **env; // (count) of each panel
    int count;
    int success; // panels that show overall success
    int tasks;   // panels after these that show success of a task
    bool cut;    // some panel would have more curves than DC_CURVES_MAX
} dc_curves;

// Borrows: runs. The panels live in the arena.
dc_status dc_curves_build(dc_curves *curves, const dc_runs *runs, dc_arena *arena);

#endif
