// Policy extraction: how an actor is trained beside a value, or after it, and how it acts.
//
//   ddpgbc     mean(s, g): goes up the value, held near the data; acts by its mean
//   awr        mean(s, g): imitates the data, weighted by exp(alpha * advantage); acts by its mean
//   rejection  v(s, g, x, t): a flow from noise to the data's actions; acts by the best of `samples`
//              candidates, each `flow_steps` Euler steps long, by the value
#ifndef DC_POLICY_H
#define DC_POLICY_H

#include "algo/agent.h"
#include "algo/batch.h"

typedef enum dc_policy_kind {
    DC_POLICY_NONE,
    DC_POLICY_DDPGBC,
    DC_POLICY_REJECTION,
    DC_POLICY_AWR
} dc_policy_kind;

// Fields that options of a method fill; a method without an option leaves its field 0.
typedef struct dc_policy {
    int kind;            // dc_policy_kind
    double alpha;        // weight of behaviour cloning, or of the advantage
    double actor_random; // share of random goals
    int actor_law;       // of goals ahead (dc_law)
    int64_t after;       // updates of the value alone, before the policy's; 0: together
    int64_t samples, flow_steps;
    bool layernorm;   // in the actor
    double head_gain; // factor on the initial weights of a Gaussian actor's last layer
    double flow_gain; // and of a flow's
} dc_policy;

// Which goals the policy is trained for.
#define DC_ACTOR_GOAL_OPTIONS(config)                                                              \
    DC_OPTION_REAL_AS("actor_random", config, policy.actor_random, "0", 0, 1,                      \
                      "policy: share of random goals, the others lie ahead"),                      \
        DC_OPTION_CHOICE_AS("actor_law", config, policy.actor_law, "uniform", "uniform|geometric", \
                            "policy: law of goals that lie ahead")
#define DC_ACTOR_NETWORK_OPTIONS(config, layernorm_default)                                        \
    DC_OPTION_BOOL_AS("actor_layernorm", config, policy.layernorm, layernorm_default,              \
                      "LayerNorm in the policy's network"),                                        \
        DC_OPTION_REAL_AS("actor_gain", config, policy.head_gain, "0.1", 0, 10,                    \
                          "policy: factor on the initial weights of its last layer")
#define DC_ALPHA_OPTION(config, init, help)                                                        \
    DC_OPTION_REAL_AS("alpha", config, policy.alpha, init, 0, 1e6, help)
// All of a policy that is extracted from Q(s, a, g) by ddpgbc or rejection.
#define DC_POLICY_OPTIONS(config)                                                                  \
    DC_OPTION_CHOICE_AS("policy", config, policy.kind, "ddpgbc", "none|ddpgbc|rejection",          \
                        "policy extraction (value form)"),                                         \
        DC_OPTION_INT_AS("samples", config, policy.samples, "32", 1, 4096,                         \
                         "rejection: candidates of which the best is taken, when acting"),         \
        DC_OPTION_INT_AS("flow_steps", config, policy.flow_steps, "10", 1, 1000,                   \
                         "rejection: Euler steps from noise to a candidate, when acting"),         \
        DC_ALPHA_OPTION(config, "0.3", "ddpgbc: weight of behaviour cloning"),                     \
        DC_OPTION_INT_AS("policy_after", config, policy.after, "0", 0, 1e12,                       \
                         "policy: train the critic alone for so many steps, then the policy "      \
                         "alone; 0: together"),                                                    \
        DC_ACTOR_GOAL_OPTIONS(config),                                                             \
        DC_OPTION_BOOL_AS("actor_layernorm", config, policy.layernorm, "on",                       \
                          "LayerNorm in the policy's network"),                                    \
        DC_OPTION_REAL_AS("actor_gain", config, policy.head_gain, "0.1", 0, 10,                    \
                          "ddpgbc: factor on the initial weights of the policy's last layer"),     \
        DC_OPTION_REAL_AS("flow_gain", config, policy.flow_gain, "1", 0, 10,                       \
                          "rejection: factor on the initial weights of the flow's last layer")

// The rows that a policy is trained on: the state (with its action) and its goal.
typedef struct dc_policy_rows {
    const char *state, *goal;
} dc_policy_rows;

// The rule of a policy's goals, for the state `of`.
dc_row_rule dc_policy_goal(const dc_policy *policy, const dc_method *m, const char *name,
                           const char *of);
// Declare a network that maps [state | goal (| x | t)] to an action.
void dc_policy_network(dc_nets *nets, const dc_method *m, const dc_policy *policy);

// A value's estimate q (1, n, 1) of the actions (1, n, act) of a policy at the policy's rows, by held
// weights.
typedef dc_ref dc_q_fn(dc_agent *a, const dc_policy_rows *rows, dc_ref action);
// For discrete actions: of every action of every row, (1, n * actions, 1). Nullable in methods that
// refuse those.
typedef dc_ref dc_q_all_fn(dc_agent *a, const dc_policy_rows *rows);

// Add the loss of the policy's kind to the total.
dc_ref dc_policy_ddpgbc(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_q_fn *q,
                        dc_q_all_fn *q_all, dc_ref total);
// The same for a policy whose output (mean or logits) and q (1, n, 1) are there already.
dc_ref dc_policy_gain(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref out,
                      dc_ref q, dc_ref total);
dc_ref dc_policy_flow(dc_agent *a, const dc_policy_rows *rows, dc_ref total);
// Behaviour cloning alone: mean over rows of -log pi(a | s, g), less its constant.
dc_ref dc_policy_clone(dc_agent *a, const dc_policy_rows *rows, dc_ref total);
// Imitate `target` (1, n, c) from mean (1, n, c), each row weighted by min(exp(alpha adv), 100): the
// loss, not yet added to a total. adv (1, n, 1) passes no gradient.
dc_ref dc_policy_awr(dc_agent *a, double alpha, dc_ref mean, dc_ref target, dc_ref adv);

// The mean's action, or the best of many candidates by `worth`: (e, n, 1) of [s | g | a].
dc_ref dc_policy_act_mean(dc_infer *q, const char *net);
dc_ref dc_policy_act_best(dc_infer *q, const dc_policy *p, const char *critic);

#endif
