// RUN/eval.csv: one row an evaluation, steps rising. Written by `dcrl eval` and by evaluation during
// training, read by report/. The file is replaced as a whole, so no reader ever sees half a row.
#ifndef DC_EVAL_LOG_H
#define DC_EVAL_LOG_H

#include "rollout/eval.h"

// Put the row of a step in its place; an older row of that step goes. Processes take turns; `stop` (Nullable)
// ends the waiting, DC_INTERRUPTED.
// Errors: DC_BAD_INPUT if the file has other columns than ours, or a line that is no row.
dc_status dc_eval_log_put(const char *folder, int64_t step, uint64_t seed,
                          const dc_eval_score *score, const atomic_int *stop);
// Whether a row can be put: a file that is there is ours, and the folder takes files. So an evaluation that could not
// be kept is not begun.
dc_status dc_eval_log_check(const char *folder);
// Drop the rows of steps after `step`, and say whether that one has a row.
dc_status dc_eval_log_cut(const char *folder, int64_t step, bool *has, const atomic_int *stop);

#endif
