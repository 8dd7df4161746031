// Checkpoint: the complete state of a run as one safetensors file, so that any framework can read the
// weights and this program can go on to the bit. Weights are named net/layer/part, their targets
// target_net/..., Adam's moments adam_m/... and adam_v/...; `sampler` holds the slots' words, `log` the sums
// of the log row in the making.
//
// The metadata describes the method: its name and options, its networks by name, kind and shape, and the
// sizes of observations, goals and actions. So a checkpoint can be opened for acting without the run's
// folder, and without guessing. `hash` covers all tensors and all other metadata: a flipped bit or an edited
// word is found when the file is opened, not hours later in a result.
#ifndef DC_CHECKPOINT_H
#define DC_CHECKPOINT_H

#include "algo/method.h"
#include "train/weights.h"

typedef struct dc_run dc_run;

dc_status dc_checkpoint_write(const dc_run *run, const char *path);
// Bring a run that was built with the same options to where the checkpoint stands.
dc_status dc_checkpoint_read(dc_run *run, const char *path);
// Name of the first tensor of the state that holds NaN or Inf, "" if all are finite.
void dc_checkpoint_find_bad(const dc_run *run, char name[DC_WEIGHT_NAME]);

// What acting and asking need of a checkpoint: the method as it was trained, and its live weights.
typedef struct dc_checkpoint_policy {
    dc_method method;
    void *config;          // its options; owned
    char env[DC_TEXT_MAX]; // it was trained for; "": none is named
    dc_nets nets;
    dc_params params;
    float *scales; // Nullable: owned
    dc_scale obs_scale, goal_scale;
} dc_checkpoint_policy;

// Errors: DC_BAD_INPUT for a file that is damaged, of another format, or of an unknown agent.
dc_status dc_checkpoint_open(dc_checkpoint_policy *policy, const char *path);
void dc_checkpoint_close(dc_checkpoint_policy *policy); // safe on a zeroed struct, and twice

#endif
