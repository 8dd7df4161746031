// Environments: OGBench's, by its names (`dcrl list envs`). One handle is one copy, used by one thread
// at a time. vec.h has many copies that step together.
#ifndef DCRL_ENV_H
#define DCRL_ENV_H

#include <dcrl/policy.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_env dcrl_env;

// What a name means, which is known without a simulator.
typedef struct dcrl_env_facts {
    char name[64];    // written out, without the data's word: "antmaze-medium-oraclerep-v0"
    dcrl_sizes sizes; // as dcrl_env_sizes
    int tasks, horizon;
} dcrl_env_facts;

// Read a name, "antmaze-medium-navigate-v0" or shorter.
DCRL_API dcrl_status dcrl_env_find(const char *name, dcrl_env_facts *facts);
// The environments one by one, in their plain form, then the visual ones; DCRL_USAGE after the last.
DCRL_API dcrl_status dcrl_env_list(int index, dcrl_env_facts *facts);

// Open an environment; the same name, seed and calls give the same episodes.
DCRL_API dcrl_status dcrl_env_open(dcrl_env **env, const char *name, uint64_t seed);
// What the environment shows and takes. A picture that is an observation or a goal is 64 x 64 x 3 numbers, 0 ... 255.
DCRL_API dcrl_sizes dcrl_env_sizes(const dcrl_env *env);
// Number of discrete actions; 0: actions are real numbers.
DCRL_API int dcrl_env_choices(const dcrl_env *env);
// Least and largest value of each number of an action: (act) each.
DCRL_API dcrl_status dcrl_env_action_range(const dcrl_env *env, float *low, float *high);
// Number of tasks: 5, and 1 in single-task form.
DCRL_API int dcrl_env_tasks(const dcrl_env *env);
// Task of the running episode; 0 before the first.
DCRL_API int dcrl_env_task(const dcrl_env *env);
// Steps before an episode is cut off; the caller counts.
DCRL_API int dcrl_env_horizon(const dcrl_env *env);
// Which values of an observation are the goal of its -oraclerep form, in order; returns how many. Of
// a picture there are none. Nullable: columns
DCRL_API int dcrl_env_goal_columns(const dcrl_env *env, int *columns);
// Begin anew with the episodes of a seed, from the next reset on.
DCRL_API dcrl_status dcrl_env_seed(dcrl_env *env, uint64_t seed);
// Let the next reset take these numbers in place of random ones, as another implementation drew them. It must take all
// of them, or the reset fails.
DCRL_API dcrl_status dcrl_env_give_draws(dcrl_env *env, int64_t count, const double *draws);
// Start an episode of task 1 ... tasks, or 0 for one at random; writes the first observation (obs) and the goal (goal).
DCRL_API dcrl_status dcrl_env_reset(dcrl_env *env, int task, float *observation, float *goal);
// Take an action (act), cut to [-1, 1]; writes the next observation (obs), and 1 or 0 for a reached goal.
DCRL_API dcrl_status dcrl_env_step(dcrl_env *env, const float *action, float *observation,
                                   int *success);

// The simulator's state: positions and velocities as MuJoCo has them, and whole numbers beside them (states of buttons).
typedef struct dcrl_state_sizes {
    int qpos, qvel, extra;
} dcrl_state_sizes;

DCRL_API dcrl_state_sizes dcrl_env_state_sizes(const dcrl_env *env);
// Write the state as it is now. Nullable: qpos, qvel, extra
DCRL_API dcrl_status dcrl_env_state(const dcrl_env *env, double *qpos, double *qvel, double *extra);
// Draw the state as OGBench does, without a screen or OpenGL: rgb (height, width, 3), from the top. The first
// picture of a size takes long. Errors: DCRL_UNSUPPORTED where the build has no MuJoCo.
DCRL_API dcrl_status dcrl_env_render(dcrl_env *env, int width, int height, unsigned char *rgb);
// Free an environment; nothing to a copy of a dcrl_vec, which is not the caller's. Nullable: env
DCRL_API void dcrl_env_close(dcrl_env *env);

#ifdef __cplusplus
}
#endif
#endif
