// The paper's tables and figures as one page: beside what is published what our runs found, with interval, seeds,
// steps and rows of data, a word on what is not as in the paper, and a link from each number to its runs. The same
// numbers as CSV, a file for each experiment.
#ifndef DC_EXPERIMENT_PAGE_H
#define DC_EXPERIMENT_PAGE_H

#include "base/text.h"
#include "report/experiment.h"

// The page, which lies beside the folder runs/. `reached` of all cells is filled (dc_plan_read).
dc_status dc_experiment_page(const dc_plan *plan, dc_text *out);
void dc_experiment_csv(const dc_experiment *e, dc_text *out);

// The figures of an experiment that has some: curves along its option, success over time, value maps.
dc_status dc_experiment_figures(const dc_experiment *e, dc_arena *arena, dc_text *out);

#endif
