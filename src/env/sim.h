// Simulation of mazes and of tables with a robot arm on MuJoCo. A dc_world is what every copy of an environment shares (names
// and the compiled model, both read-only); a dc_env is one copy, to be used by one thread at a
// time.
//
//     name -> dc_env_find -> dc_world_new -> dc_env_new -> dc_env_reset -> dc_env_step -> ...
//
// Physics, order of draws, and what is observed when are OGBench's, to the bit where the libraries
// allow (tests/env/test_maze_parity.py, test_manip_parity.py). MuJoCo's errors and warnings come back as statuses; an
// environment whose step failed can be reset and used again. A build without MuJoCo has the same
// functions, and dc_world_new says what is missing.
#ifndef DC_ENV_SIM_H
#define DC_ENV_SIM_H

#include "env/draws.h"
#include "env/spec.h"

typedef struct dc_world dc_world;

// Compose and compile the model. Errors: DC_UNSUPPORTED without MuJoCo, DC_IO without OGBench's
// files.
dc_status dc_world_new(dc_world **world, const dc_env_spec *spec);
void dc_world_free(dc_world *world); // Nullable: world
const dc_env_spec *dc_world_spec(const dc_world *world);
// Write the compiled model as MuJoCo's own binary file (.mjb).
dc_status dc_world_save(const dc_world *world, const char *path);

// What is wanted of a table: its task, or, when data is collected, one thing at a time.
typedef enum dc_aim_kind {
    DC_AIM_TASK,
    DC_AIM_CUBE,
    DC_AIM_BUTTON,
    DC_AIM_DRAWER,
    DC_AIM_WINDOW
} dc_aim_kind;
enum { DC_AIMS = 5 };

typedef struct dc_aim {
    dc_aim_kind at;
    int cube, button; // the ones that were wanted last
    double turn[4];   // of the cube
} dc_aim;

// What an oracle is told of a table (env/oracle.h).
typedef struct dc_thing {
    double at[3], yaw;    // a cube, the top of a button, the handle of drawer or window
    double to[3], to_yaw; // where it should be
    bool right;           // a button that has the state it should have
} dc_thing;

typedef struct dc_sight {
    dc_aim_kind aim;
    double time;
    double hand[3], yaw, opening, contact; // of the gripper
    dc_thing things[DC_AIMS];              // by kind of aim
} dc_sight;

typedef struct dc_env {
    const dc_world *world;
    struct mjData_ *data;
    dc_draws draws; // where random numbers come from; may be exchanged at any time
    // What counts as success, family->oracle numbers: xy, or on a table xyz of each cube, state of
    // each button, position of drawer and window.
    double goal[DC_TARGET_MAX];
    bool float_actions; // actions are float32 numbers: rounded as numpy does where it matters
    // Of tables only:
    struct mjData_ *arm;             // of inverse kinematics
    uint8_t buttons[DC_BUTTONS_MAX]; // states: 0 or 1
    bool success;                    // of the last step
    dc_aim aim;
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
// The same in a maze from any cell to any other.
dc_status dc_env_begin(dc_env *env, const dc_maze_task *task, double *goal);
// Put the environment into a state, qpos (nq), qvel (nv) and buttons (buttons), as if it had just
// been made. Nullable: buttons (all 0)
dc_status dc_env_set(dc_env *env, const double *qpos, const double *qvel, const double *buttons);
// Take an action (act); writes the observation (obs) that belongs to it. After a teleport the
// observation is still the one before the jump.
dc_status dc_env_step(dc_env *env, const double *action, double *obs, dc_outcome *outcome);

// The state now: obs (obs), qpos (nq), qvel (nv); success of the state itself.
void dc_env_observe(const dc_env *env, double *obs);
const double *dc_env_qpos(const dc_env *env);
const double *dc_env_qvel(const dc_env *env);
dc_outcome dc_env_judge(const dc_env *env);
// A cell's centre with the reference's noise of up to 1 per axis (two draws).
void dc_env_near(dc_env *env, dc_cell cell, double xy[2]);

// Data collection on a table: put everything somewhere and aim at something; aim at something else
// (`stack`: chance that a cube goes onto another); tell what an oracle is told.
dc_status dc_env_collect(dc_env *env);
dc_status dc_env_aim(dc_env *env, double stack);
void dc_env_see(const dc_env *env, dc_sight *sight);

// The control step's physics alone, without anything of the environment around it: what a bare loop
// costs.
dc_status dc_env_physics(dc_env *env, const double *action, int steps);

#endif
