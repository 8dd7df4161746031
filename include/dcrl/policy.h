// Policies of real-valued actions: what a run learned, ready to act. A policy is used by one thread at a
// time; open it twice for two.
#ifndef DCRL_POLICY_H
#define DCRL_POLICY_H

#include <dcrl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_sizes {
    int obs, goal, act; // values of an observation, a goal and an action
} dcrl_sizes;

typedef struct dcrl_policy dcrl_policy;

// Load a policy from a run folder (its newest checkpoint) or from one checkpoint file, which the run's
// config.json should lie beside; threads 1 is best for few rows, 0 takes all cores.
DCRL_API dcrl_status dcrl_policy_open(dcrl_policy **policy, const char *path, int threads);
// What the policy reads and writes.
DCRL_API dcrl_sizes dcrl_policy_sizes(const dcrl_policy *policy);
// Name of the environment that the run was trained for; empty if it had none or no config.json is there.
DCRL_API const char *dcrl_policy_env(const dcrl_policy *policy);
// Actions (count, act) within [-1, 1] for observations (count, obs) and goals (count, goal).
DCRL_API dcrl_status dcrl_policy_act(dcrl_policy *policy, int count, const float *observations,
                                     const float *goals, float *actions);
// Free a policy. Nullable: policy
DCRL_API void dcrl_policy_close(dcrl_policy *policy);

#ifdef __cplusplus
}
#endif
#endif
