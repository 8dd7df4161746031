// Evaluation by the benchmark's protocol: every task, many episodes, all environments in step with one
// another, so that the policy is evaluated once per step for all of them while the cores simulate.
#ifndef DC_EVAL_H
#define DC_EVAL_H

#include "base/ranks.h"
#include "env/sim.h"
#include "rollout/actor.h"

#include <stdatomic.h>

typedef struct dc_eval_score {
    int episodes;          // of each task
    double task[DC_TASKS]; // fraction of episodes that reach the goal
    double overall, sd;    // mean over tasks, and its standard deviation over tasks
    double mean_steps;     // of successful episodes; 0 if there is none
} dc_eval_score;

// Progress of an evaluation, a callback: called before the first step (done 0) and after each, by the calling thread.
// `all` is how many it can become; it falls as episodes end early.
typedef struct dc_eval_progress {
    void (*fn)(void *ctx, int64_t done, int64_t all);
    void *ctx;
} dc_eval_progress;

// Play `episodes` of each task. The random numbers of an episode and of a policy that draws depend on (seed,
// task, episode, step) alone, the policy's seed being the one it was opened with, so the
// result is the same for any number of threads. Nullable: pool, stop (non-zero ends it: DC_INTERRUPTED), progress
dc_status dc_evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                      dc_pool *pool, const atomic_int *stop, const dc_eval_progress *progress,
                      dc_eval_score *score);

// The same, with the episodes shared out among ranks, each of which gets the whole score.
dc_status dc_evaluate_on_ranks(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                               dc_pool *pool, const atomic_int *stop,
                               const dc_eval_progress *progress, dc_ranks *ranks,
                               dc_eval_score *score);

// Where the episodes of an evaluation went.
typedef struct dc_path {
    bool success;
    int count;      // positions: the start, and one per step
    double goal[2]; // xy
    float *xy;      // (count, 2) the first two columns of observations
} dc_path;

typedef struct dc_paths {
    int episodes;  // of each task
    dc_path *path; // (DC_TASKS, episodes)
    float *xy;     // what the paths point into
} dc_paths;

dc_status dc_paths_new(dc_paths *paths, const dc_env_spec *spec, int episodes);
void dc_paths_free(dc_paths *paths); // safe on a zeroed struct
// The same evaluation, with paths->episodes, that keeps the paths.
dc_status dc_evaluate_paths(const dc_world *world, dc_actor *actor, uint64_t seed, dc_pool *pool,
                            const atomic_int *stop, const dc_eval_progress *progress,
                            dc_eval_score *score, dc_paths *paths);

#endif
