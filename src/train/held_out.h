// Held-out rows: what a run's losses and its value are worth on trajectories that it does not train on, so
// that a run without an environment has an honest curve, too. At every log row loop.c asks for
//
//   val_LOSS         each metric of the method, the mean over a few batches of held-out rows
//   val_value_error  |d(s, g) - k|, the mean over pairs of states of one trajectory, g lying k steps behind
//                    s: how far predicted steps are from those that were taken
//
// It has an agent of its own on the held-out data, built as the run's is (the same scales, number of actions
// and longest trajectory), whose weights are copied from the run's. The batches and the pairs are the same
// every time and for every seed, and nothing of the run itself is touched: training has the same bytes with
// and without. The CPU measures, also where a GPU trains.
#ifndef DC_HELD_OUT_H
#define DC_HELD_OUT_H

#include "train/run.h"

// Borrows: run's agent, pool and config, data (until free). Errors: data of other sizes than those of the
// run; trajectories that the method cannot sample.
dc_status dc_held_out_new(dc_held_out **out, const dc_run *run, const dc_dataset *data);
void dc_held_out_free(dc_held_out *h); // Nullable
// How many numbers it gives, and the name of one.
int dc_held_out_count(const dc_held_out *h);
const char *dc_held_out_name(const dc_held_out *h, int i);
// values (count) with the weights that an agent has now.
dc_status dc_held_out_measure(dc_held_out *h, const dc_agent *trained, double *values);

#endif
