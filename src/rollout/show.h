// Show: one episode of a policy, state by state, for env/view to draw. Its start, goal and noise are
// those of the episode of that number in an evaluation (rollout/eval) with as many episodes.
#ifndef DC_SHOW_H
#define DC_SHOW_H

#include "env/states.h"
#include "rollout/eval.h"

typedef struct dc_show {
    int task;              // 1 ... DC_TASKS
    int episode, episodes; // number within the task, from 0; episodes of a task
    uint64_t seed;
    const dc_eval_progress *progress; // Nullable
} dc_show;

// Play it. The list ends with the goal or the time limit. Owns: states. Nullable: stop
dc_status dc_show_play(const dc_show *show, const dc_world *world, dc_actor *actor,
                       const atomic_int *stop, dc_states *states, bool *success);

#endif
