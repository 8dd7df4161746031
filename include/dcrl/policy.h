// Policies: what a run learned, ready to act. A policy is used by one thread at a
// time; open it twice for two.
#ifndef DCRL_POLICY_H
#define DCRL_POLICY_H

#include <dcrl/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_sizes {
    int obs, goal, act; // values of an observation, a goal and an action
} dcrl_sizes;

typedef struct dcrl_policy dcrl_policy;

// What an evaluation came to. In single-task form all five numbers are of that task.
typedef struct dcrl_score {
    int episodes;      // of each task
    double task[5];    // fraction of episodes that reach the goal
    double overall;    // mean of the tasks
    double deviation;  // over the tasks
    double mean_steps; // of episodes that reach the goal; 0 if none does
} dcrl_score;

// Called after every step of all episodes; anything but 0 ends the evaluation.
typedef int dcrl_eval_fn(void *ctx, int64_t done, int64_t all);

// Load a policy from a run folder (its newest checkpoint that is whole and of that run), a folder of seeds (its least one),
// or one checkpoint file; threads 1 is best for few rows, 0 takes all cores.
DCRL_API dcrl_status dcrl_policy_open(dcrl_policy **policy, const char *path, int threads);
// The same from the checkpoint of a step, -1 for the newest.
DCRL_API dcrl_status dcrl_policy_open_step(dcrl_policy **policy, const char *path, int64_t step,
                                           int threads);
// Updates after which the policy was saved.
DCRL_API int64_t dcrl_policy_step(const dcrl_policy *policy);
// What the policy reads and writes.
DCRL_API dcrl_sizes dcrl_policy_sizes(const dcrl_policy *policy);
// Name of the environment that the run was trained for; empty if it had none or no config.json is there.
DCRL_API const char *dcrl_policy_env(const dcrl_policy *policy);
// Actions (count, act) within dcrl_policy_action_range for observations (count, obs) and goals (count, goal). Where one
// cannot be had (an input is NaN or Inf, or so large that an action would be), that is an error and all are 0. A row
// that is asked for alone is computed in another order, several times as fast: its last bits may differ.
DCRL_API dcrl_status dcrl_policy_act(dcrl_policy *policy, int count, const float *observations,
                                     const float *goals, float *actions);
// Steps (count) that the run's value predicts from observations (count, obs) to goals (count, goal) after actions
// (count, act), by default the policy's own; of an ensemble the largest. Where one cannot be had, that
// is an error and all are NaN. Nullable: actions. Errors: DCRL_UNSUPPORTED for an agent that learns no value.
DCRL_API dcrl_status dcrl_policy_distance(dcrl_policy *policy, int count, const float *observations,
                                          const float *goals, const float *actions, float *steps);
// Number of discrete actions that the policy chooses from: an action then has a value for each, the largest is the one to
// take, and distances are asked with 1 for the one that is taken and 0 for the others. 0: actions are real numbers.
DCRL_API int dcrl_policy_choices(const dcrl_policy *policy);
// Least and largest value of each number of an action, (act) each: -1 and 1, or what the run's act_scale says. Values of
// discrete actions have no bounds: -INFINITY and INFINITY.
DCRL_API dcrl_status dcrl_policy_action_range(const dcrl_policy *policy, float *low, float *high);
// Play every task of an environment, by default the one that the policy was trained for, as `dcrl eval` does; nothing
// is written. Nullable: env, progress. Errors: DCRL_INTERRUPTED after progress said so.
DCRL_API dcrl_status dcrl_policy_evaluate(dcrl_policy *policy, const char *env, int episodes,
                                          uint64_t seed, dcrl_eval_fn *progress, void *ctx,
                                          dcrl_score *score);
// Free a policy. Nullable: policy
DCRL_API void dcrl_policy_close(dcrl_policy *policy);

#ifdef __cplusplus
}
#endif
#endif
