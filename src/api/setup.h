// Setting runs up: what the program and the public API both do between options and train/run.h, because
// it takes presets, data and environments together.
#ifndef DC_SETUP_H
#define DC_SETUP_H

#include "train/run.h"

// An environment's name says where the goal lies in an observation, if goals are given by that part
// alone.
dc_status dc_setup_goal(dc_run *run);
// The data set that a run's options name: a file, or what the environment makes. A run may be resumed
// from another folder, so the whole path of a file is recorded, if it can be said shortly.
dc_status dc_setup_data(dc_run *run, dc_dataset *data);
// Fill a run from RUN/config.json and check that the data is still the same. An empty `data` is loaded
// as the config says, any other is taken as it is. The caller owns both.
dc_status dc_setup_reopen(dc_run *run, dc_dataset *data, const char *folder, int64_t threads);

#endif
