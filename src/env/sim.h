// Simulation of environments. A dc_world is what every copy of an environment shares (its name's
// meaning and the compiled model, both read-only); a dc_env is one copy, to be used by one thread at a
// time. What happens in it is the family's (env/family.h); here is what all of them have in common.
//
//     name -> dc_env_find -> dc_world_new -> dc_env_new -> dc_env_reset -> dc_env_step -> ...
//
// Physics, order of draws, and what is observed when are OGBench's, to the bit where the libraries
// allow (tests/env/test_maze_parity.py, test_manip_parity.py). The simulator's errors and warnings
// come back as statuses; an environment whose step failed can be reset and used again. In a build
// without MuJoCo dc_world_new says what is missing.
#ifndef DC_ENV_SIM_H
#define DC_ENV_SIM_H

#include "env/draws.h"
#include "env/spec.h"

typedef struct dc_world dc_world;

// Compose and compile the model. Errors: DC_UNSUPPORTED without the simulator, DC_IO without OGBench's
// files.
dc_status dc_world_new(dc_world **world, const dc_env_spec *spec);
void dc_world_free(dc_world *world); // Nullable: world
const dc_env_spec *dc_world_spec(const dc_world *world);
// Write the compiled model, with all that can be seen, as the simulator's own binary file (.mjb).
dc_status dc_world_save(const dc_world *world, const char *path);

typedef struct dc_env {
    const dc_world *world;
    dc_draws draws; // where random numbers come from; may be exchanged at any time
    // What counts as success, family->oracle numbers: xy, or on a table xyz of each cube, state of
    // each button, position of drawer and window.
    double goal[DC_TARGET_MAX];
    bool float_actions; // actions are float32 numbers: rounded as numpy does where it matters
    // The state: of MuJoCo, of it (nq) and (nv), and what only the family knows. Nullable: own
    struct mjData_ *data;
    double *qpos, *qvel;
    void *own;
    double *
        shot; // Nullable: in visual form, extra numbers (DC_EXTRA_MAX) and what is seen, until it is drawn
} dc_env;

typedef struct dc_outcome {
    bool success;  // and with it the end of the episode
    double reward; // 1 and 0; in single-task form minus the number of conditions that do not hold
} dc_outcome;

// A fresh copy at the model's rest state, with a goal of zeros. Borrows: world. Owns: its state.
dc_status dc_env_new(dc_env *env, const dc_world *world, dc_draws draws);
void dc_env_free(dc_env *env); // safe on a zeroed struct, and twice

// Start an episode of a task, 1 ... DC_TASKS (in single-task form always of its own), and write the
// goal that a policy sees: (spec.goal).
// Nullable: goal
dc_status dc_env_reset(dc_env *env, int task, double *goal);
// Put the environment into a state, qpos (nq), qvel (nv) and extra (extra), as if it had just been
// made. Nullable: extra (all 0)
dc_status dc_env_set(dc_env *env, const double *qpos, const double *qvel, const double *extra);
// Take an action (act); writes the observation (spec.obs) that belongs to it. After a teleport the
// observation is still the one before the jump.
dc_status dc_env_step(dc_env *env, const double *action, double *obs, dc_outcome *outcome);
// Errors: DC_NOT_FINITE for an observation (spec.obs) that is NaN or infinite as float32.
dc_status dc_env_check(const dc_env *env, const double *obs);

// What is observed now: obs (spec.obs). Errors: of drawing it, in visual form.
dc_status dc_env_observe(dc_env *env, double *obs);
// The state now: qpos (nq), qvel (nv), extra (extra); success of the state itself.
const double *dc_env_qpos(const dc_env *env);
const double *dc_env_qvel(const dc_env *env);
void dc_env_extra(const dc_env *env, double *extra);
dc_outcome dc_env_outcome(const dc_env *env);

// Call work(ctx), which calls into the simulator on this copy, with its errors as a status.
dc_status dc_env_guard(dc_env *env, void (*work)(void *ctx), void *ctx);
// The control step's physics alone, without anything of the environment around it: what a bare loop
// costs. Where controls are no actions they stay.
dc_status dc_env_physics(dc_env *env, const double *action, int steps);

#endif
