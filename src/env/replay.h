// Replay: many start states, each played forward by its own actions. It is how tests and other
// programs look at the simulation from outside (`dcrl env replay`): injected states, resets with
// recorded draws, free runs.
#ifndef DC_ENV_REPLAY_H
#define DC_ENV_REPLAY_H

#include "base/pool.h"
#include "env/sim.h"

#include <stdint.h>

typedef struct dc_replay {
    int64_t starts, steps;
    // In. Either qpos and qvel, or tasks: each start is then a reset to that task (1 ... 5).
    const double *qpos;    // (starts, nq)
    const double *qvel;    // (starts, nv)
    const double *tasks;   // (starts) whole numbers
    const double *target;  // (starts, oracle) with qpos: what counts as success; NULL: zeros
    const double *extra;   // (starts, extra) with qpos: whole numbers; NULL: zeros
    const double *actions; // (starts, steps, act)
    bool float_actions;    // actions are float32 numbers
    const double
        *draws; // (starts, draw_count) in place of random numbers; NULL: Philox by seed and start
    int64_t draw_count;
    uint64_t seed;
    // Out. Row 0 is the start, row t + 1 what step t led to.
    double *out_qpos;   // (starts, steps + 1, nq)
    double *out_qvel;   // (starts, steps + 1, nv)
    double *out_obs;    // (starts, steps + 1, obs)
    uint8_t *success;   // (starts, steps + 1) of row 0: of the start itself
    double *reward;     // (starts, steps + 1)
    double *out_goal;   // (starts, goal) with tasks: what a policy would see
    double *out_target; // (starts, oracle) what counts as success
    uint8_t *out_extra; // (starts, steps + 1, extra)
} dc_replay;

// Play everything. Errors: DC_BAD_INPUT for too few draws; what MuJoCo complains of.
dc_status dc_replay_run(const dc_replay *replay, const dc_world *world, dc_pool *pool);

#endif
