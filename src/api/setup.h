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
// The held-out rows that a run's options name, for run->val, which stays NULL if there are none: what `val`
// says becomes a whole path, or "off". Nullable: folder (of a run that goes on, whose config.json must say
// the same). The caller owns val.
dc_status dc_setup_val(dc_run *run, dc_dataset *val, const char *folder);
// Options given anew to a run that goes on; only some may be (dc_option.role).
enum { DC_CHANGES_MAX = 32 };
typedef struct dc_change {
    const char *name; // of dc_run_table
    char value[DC_TEXT_MAX];
} dc_change;
typedef struct dc_changes {
    int count;
    dc_change change[DC_CHANGES_MAX];
} dc_changes;
// Add one, as `options` have it. Errors: DC_USAGE if a run that goes on cannot take it.
dc_status dc_changes_add(dc_changes *changes, const dc_option *option,
                         const dc_run_options *options);

// Fill a run from RUN/config.json, with changes, and check that the data is still the same. An empty `data`
// is loaded as the config says (where it was, or where it lies as seen from the run), any other is taken as
// it is. The caller owns both. Nullable: changes
dc_status dc_setup_reopen(dc_run *run, dc_dataset *data, const char *folder,
                          const dc_changes *changes);
// Fill a run that has not begun as another one of its population is configured, but for its seed.
dc_status dc_setup_member(dc_run *run, dc_dataset *data, const char *pattern, int64_t seed,
                          const dc_changes *changes);
// Whether `run`, as options say, is the run that a folder holds. Errors: DC_USAGE with what differs first.
dc_status dc_setup_same(const dc_run *run, const char *folder);

#endif
