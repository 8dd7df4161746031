// Environments: OGBench's, by its names (`dcrl list envs`). One handle is one copy, used by one thread
// at a time.
#ifndef DCRL_ENV_H
#define DCRL_ENV_H

#include <dcrl/policy.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_env dcrl_env;

// Open an environment; the same name, seed and calls give the same episodes.
DCRL_API dcrl_status dcrl_env_open(dcrl_env **env, const char *name, uint64_t seed);
// What the environment shows and takes.
DCRL_API dcrl_sizes dcrl_env_sizes(const dcrl_env *env);
// Number of tasks: 5, and 1 in single-task form.
DCRL_API int dcrl_env_tasks(const dcrl_env *env);
// Steps before an episode is cut off; the caller counts.
DCRL_API int dcrl_env_horizon(const dcrl_env *env);
// Start an episode of task 1 ... tasks; writes the first observation (obs) and the goal (goal).
DCRL_API dcrl_status dcrl_env_reset(dcrl_env *env, int task, float *observation, float *goal);
// Take an action (act), cut to [-1, 1]; writes the next observation (obs), and 1 or 0 for a reached goal.
DCRL_API dcrl_status dcrl_env_step(dcrl_env *env, const float *action, float *observation,
                                   int *success);
// Free an environment. Nullable: env
DCRL_API void dcrl_env_close(dcrl_env *env);

#ifdef __cplusplus
}
#endif
#endif
