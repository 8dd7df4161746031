// Evaluation by the benchmark's protocol: every task, many episodes, all environments in step with one
// another, so that the policy is asked once a step for all of them while the cores simulate.
#ifndef DC_EVAL_H
#define DC_EVAL_H

#include "env/sim.h"
#include "rollout/actor.h"

#include <stdatomic.h>

typedef struct dc_eval_score {
    int episodes;          // of each task
    double task[DC_TASKS]; // fraction of episodes that reach the goal
    double overall, sd;    // mean over tasks, and its standard deviation over tasks
    double mean_steps;     // of successful episodes; 0 if there is none
} dc_eval_score;

// Play `episodes` of each task. The random numbers of an episode and of a policy that draws depend on (seed,
// task, episode, step) alone, the policy's seed being the one it was opened with, so the
// result is the same for any number of threads. Nullable: pool, stop (non-zero ends it: DC_INTERRUPTED)
dc_status dc_evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                      dc_pool *pool, const atomic_int *stop, dc_eval_score *score);

#endif
