// The open plane: where robots learn to walk before they are led through mazes. The same bodies as those of the
// mazes, without walls, with commands and rewards in place of tasks, as OGBench's online environments have them
// (tests/env/test_plane_parity.py). A robot's plane is a part of its family's table (env/family.h).
//
//     name -> dc_plane_find -> dc_plane_world -> dc_walk_init -> dc_walk_start -> dc_walk_step -> ...
//
// What a policy sees is a state and a command: a direction (unit vector, in the world's frame) in which to walk,
// or where the ball is to go, seen from the ball. The reward of a step is linear in a direction,
//
//     reward = base + pull . command
//
// so that a stored step says what it would have been worth under any other direction.
#ifndef DC_ENV_PLANE_H
#define DC_ENV_PLANE_H

#include "env/sim.h"

enum { DC_PLANE_STATE_MAX = 80, DC_PLANE_ACT_MAX = 24, DC_COMMAND = 2 };

typedef struct dc_walk dc_walk;
typedef struct dc_walk_step dc_walk_step;

// A robot's part in motion; all are called in the simulator's guard.
typedef struct dc_plane_sim {
    void (*pose)(dc_env *env);                     // begin an episode, but for the command
    void (*see)(const dc_env *env, double *state); // (plane.state)
    // What a step was worth, from the positions before it: xy of the robot, and of the ball where there is one.
    void (*judge)(const dc_walk *walk, const double before[4], dc_walk_step *step);
} dc_plane_sim;

typedef struct dc_plane {
    const char *name, *about;    // "ant"
    const dc_env_family *family; // of its mazes
    int state;                   // numbers of a state, without the command
    int redraw;                  // a new direction after so many steps
    int horizon;                 // steps of an episode
    double seconds;              // of a step
    bool
        final; // the horizon is an end, after which nothing counts; else an episode is only cut there
    int ball; // where a ball's xy begin in qpos: the command is where it is to go; 0: there is none
    int head; // column of a state that has the head's height; 0: it has no head
    double low, high; // the torso's height outside of which an episode ends; both 0: it never does
    double reach;     // a goal is drawn from +-reach on each axis
    const dc_plane_sim *sim; // NULL: this build cannot simulate it
} dc_plane;

// By the robot's name; an unknown one is a usage error with the nearest name. Row by row: NULL after the last.
dc_status dc_plane_find(const dc_plane **plane, const char *name);
const dc_plane *dc_plane_row(int index);
// Compile its model. Errors: as dc_world_new. Owns: *world.
dc_status dc_plane_world(const dc_plane *plane, dc_world **world);
// Numbers that a policy sees: state and command.
static inline int dc_plane_input(const dc_plane *plane) {
    return plane->state + DC_COMMAND;
}

// A robot on its plane, used by one thread at a time.
struct dc_walk {
    const dc_plane *plane;
    dc_env env;
    double command[DC_COMMAND]; // direction, or the ball's goal
    int64_t step;               // of the episode
};

struct dc_walk_step {
    double base, pull[DC_COMMAND]; // reward = base + pull . command
    double reward;
    double moved[2]; // of the robot, in x and y
    bool ended;      // by the rules: what comes after counts nothing
    bool cut;        // by the horizon, if that is no end
};

// Borrows: plane, world. Owns: its copy of the simulation. draws: of resets and commands; may be exchanged.
dc_status dc_walk_init(dc_walk *walk, const dc_plane *plane, const dc_world *world, dc_draws draws);
void dc_walk_fini(dc_walk *walk); // safe on a zeroed struct, and twice
dc_status dc_walk_start(dc_walk *walk);
// Take an action (act). A simulation that breaks down ends the episode, without reward; what is seen then is the
// simulator's state of rest. The command may be another one afterwards; the reward is of the one before.
dc_status dc_walk_step_by(dc_walk *walk, const double *action, dc_walk_step *step);
// What a policy sees now: state (plane.state), command (DC_COMMAND).
void dc_walk_see(const dc_walk *walk, double *state, double *command);
// Its complete state but for its draws, as numbers (words); it goes on from them to the bit.
int dc_walk_words(const dc_walk *walk);
void dc_walk_save(const dc_walk *walk, double *words);
dc_status dc_walk_load(dc_walk *walk, const double *words);

#endif
