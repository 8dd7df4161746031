// Checkpoint: the complete state of a run as one safetensors file. Any framework can read the weights, and
// this program can resume from it with the same bytes as a run that was never stopped. It has two readers:
// dc_checkpoint_read resumes training, dc_checkpoint_open opens a policy for acting.
//
//   NET/LAYER/PART          weights: "critic/0/w"
//   target_NET/...          their EMA copies
//   adam_m/..., adam_v/...  Adam's moments
//   sampler                 the sampler's state (dc_sampler_save): which tree nodes come next
//   log                     sums of metrics since the last row of train.csv
//
// The metadata says the options of the run, by which a file of another run or an edited config.json is
// found (`config`), and describes the method: its name and options, its networks by name, kind and shape, and the
// sizes of observations, goals and actions. So a checkpoint can be opened for acting without the run's
// folder and without its data. `hash` covers all tensors and all other metadata: a flipped bit or an edited
// option is found when the file is opened. docs/formats.md has the format.
#ifndef DC_CHECKPOINT_H
#define DC_CHECKPOINT_H

#include "algo/method.h"
#include "train/weights.h"

typedef struct dc_run dc_run;

// Write the run's state, by way of a temporary file. Errors: of the file.
dc_status dc_checkpoint_write(const dc_run *run, const char *path);
// Load the state into a run that was built with the same options and data. Errors: DC_BAD_INPUT for a file that
// is damaged or of another run; the run's state is then undefined.
dc_status dc_checkpoint_read(dc_run *run, const char *path);
// Whether a file is of the right format, with unchanged content.
dc_status dc_checkpoint_check(const dc_st_file *file, const char *path);
// Name of the first tensor of a run's state that holds NaN or Inf, "" if all are finite.
void dc_checkpoint_find_bad(const dc_run *run, char name[DC_WEIGHT_NAME]);

// What acting and queries need of a checkpoint: the method as it was trained, and its live weights.
typedef struct dc_checkpoint_policy {
    dc_method method;
    void *config; // method.config; owned
    int64_t step;
    char env[DC_TEXT_MAX]; // environment that it was trained for; "": none is named
    dc_nets nets;
    dc_params params;               // of which only the live slab is read from the file
    float *scales;                  // Nullable: numbers of the two below; owned
    dc_scale obs_scale, goal_scale; // what method.obs_scale and goal_scale point to
    dc_act_scale act_scale;         // what method.act_scale points to, if actions are scaled
} dc_checkpoint_policy;

// With a run (configured, no more), the file must be one that this run wrote, on data of that hash.
// Nullable: run. Errors: DC_BAD_INPUT for a file that is damaged, of another format, of an unknown agent,
// or of another run.
dc_status dc_checkpoint_open(dc_checkpoint_policy *policy, const char *path, const dc_run *run,
                             uint64_t data_hash);
void dc_checkpoint_close(dc_checkpoint_policy *policy); // safe on a zeroed struct, and twice

#endif
