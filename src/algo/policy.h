// Policy extraction: an actor trained beside the critic of the value form, or after it. What an actor
// computes, and how its weights are laid out, is said here once for training (policy.c) and acting
// (rollout/actor).
//
//   ddpgbc     mean(s, rep(g)): acts by its mean
//   rejection  v(s, rep(g), x, t): a flow from noise to the data's actions; acts by the best of
//              `samples` candidates, each `flow_steps` Euler steps long, in the eyes of the critic
#ifndef DC_POLICY_H
#define DC_POLICY_H

#include "algo/agent.h"

typedef enum dc_policy_kind {
    DC_POLICY_NONE,
    DC_POLICY_DDPGBC,
    DC_POLICY_REJECTION
} dc_policy_kind;
#define DC_POLICY_NAMES "none|ddpgbc|rejection"

typedef struct dc_policy {
    int kind;
    double alpha;        // weight of behaviour cloning
    double actor_random; // share of random goals
    int actor_law;       // of goals ahead
    int64_t after;       // updates of the critic alone, before the policy's; 0: together
    int64_t samples, flow_steps;
} dc_policy;

#define DC_POLICY_OPTION(config, name, kind, field, init, least, most, choices, help)              \
    { name, kind, offsetof(config, policy.field), init, least, most, choices, help }
// clang-format off
#define DC_POLICY_ACTING(config)                                                                   \
    DC_POLICY_OPTION(config, "policy", DC_CHOICE, kind, "ddpgbc", 0, 0, DC_POLICY_NAMES,           \
                     "policy extraction (value form)"),                                            \
    DC_POLICY_OPTION(config, "samples", DC_INT, samples, "32", 1, 4096, NULL,                      \
                     "rejection: candidates of which the best is taken, when acting"),             \
    DC_POLICY_OPTION(config, "flow_steps", DC_INT, flow_steps, "10", 1, 1000, NULL,                \
                     "rejection: Euler steps from noise to a candidate, when acting")
#define DC_POLICY_OPTIONS(config)                                                                  \
    DC_POLICY_ACTING(config),                                                                      \
    DC_POLICY_OPTION(config, "alpha", DC_REAL, alpha, "0.3", 0, 1e6, NULL,                         \
                     "ddpgbc: weight of behaviour cloning"),                                       \
    DC_POLICY_OPTION(config, "policy_after", DC_INT, after, "0", 0, 1e12, NULL,                    \
                     "policy: train the critic alone for so many steps, then the policy alone; "   \
                     "0: together"),                                                               \
    DC_POLICY_OPTION(config, "actor_random", DC_REAL, actor_random, "0", 0, 1, NULL,               \
                     "policy: share of random goals, the others lie ahead"),                       \
    DC_POLICY_OPTION(config, "actor_law", DC_CHOICE, actor_law, "uniform", 0, 0,                   \
                     "uniform|geometric", "policy: law of goals that lie ahead")
// clang-format on

// Columns of an actor's input after [state | rep(goal)].
static inline int dc_policy_extra(int kind, int act) {
    return kind == DC_POLICY_REJECTION ? act + 1 : 0; // x and t
}

// Columns of an observation that stand for the goal where the policy looks.
int dc_rep_width(const dc_agent *agent);
// An input [state | rep(goal) | `extra` columns]; the caller feeds those.
dc_ref dc_rep_input(dc_agent *agent, const char *name, dc_stream state, dc_stream goal, int extra);
// The same with the action of the state behind it, as critics see it.
dc_ref dc_rep_action_input(dc_agent *agent, const char *name, dc_stream state, dc_stream goal);

// Declare the actor, the last network of the slab, and when it is trained.
dc_status dc_policy_declare(dc_agent *agent, const dc_policy *policy);
// Add the policy's loss to what there is (total, or -1).
dc_ref dc_policy_loss(dc_agent *agent, const dc_policy *policy, dc_ref total);

#endif
