// States of an environment in a row: what can be shown of an episode. They come from a policy
// (rollout/show), from a data set, from a file of anybody's, from the script that makes a data set
// or from a reset; they go to env/view, which draws them. A program with another source makes a list
// with dc_states_new, fills it in and gets pictures.
//
// A state here has no speeds: nothing that is seen depends on them.
#ifndef DC_ENV_STATES_H
#define DC_ENV_STATES_H

#include "data/dataset.h"
#include "env/gen.h"
#include "env/sim.h"

typedef struct dc_states {
    const dc_env_family *family;
    int64_t count;
    double *qpos;                 // (count, nq)
    double *extra;                // (count, extra)
    bool aimed;                   // there is a target, and it is shown
    double target[DC_TARGET_MAX]; // (oracle) what counts as success, as dc_env.goal
} dc_states;

// Zeros. Errors: DC_NO_MEMORY
dc_status dc_states_new(dc_states *states, const dc_env_spec *spec, int64_t count);
void dc_states_free(dc_states *states); // safe on a zeroed struct, and twice
// Put an environment's state into a row, and its goal into the target.
void dc_states_put(dc_states *states, int64_t row, const dc_env *env);

// The start of a task, 1 ... DC_TASKS.
dc_status dc_states_start(dc_states *states, const dc_world *world, int task, uint64_t seed);
// An episode of a data set: its columns qpos, and those of extra numbers. Errors: no such
// episode, no such column, or one that does not fit.
dc_status dc_states_data(dc_states *states, const dc_env_spec *spec, const dc_dataset *data,
                         int64_t episode);
// An episode as the script behind `dcrl gen` plays it.
dc_status dc_states_script(dc_states *states, const dc_gen *gen, int64_t episode);
// All rows of a file of data: qpos, and extra numbers where the family has some, which must be there.
dc_status dc_states_rows(dc_states *states, const dc_env_spec *spec, const dc_npz *npz);
// Arrays of a file: qpos (nq) or (T, nq), extra numbers (button_states) likewise, and
// the target (goal_xy, target), under the family's names.
dc_status dc_states_file(dc_states *states, const dc_env_spec *spec, const char *path);

#endif
