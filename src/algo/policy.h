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

typedef enum dc_activation { DC_GELU, DC_RELU } dc_activation;
// A Gaussian's standard deviation: 1, or a trained number for each column, the same for all states.
typedef enum dc_deviation { DC_DEVIATION_ONE, DC_DEVIATION_FREE } dc_deviation;

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
    // Of a Gaussian actor, where a method lets one choose:
    dc_int_list hidden; // widths of its hidden layers; none: those of all networks
    int activation;     // dc_activation
    int deviation;      // dc_deviation
    double flow_gain;   // factor on the initial weights of a flow's last layer
} dc_policy;

// Which goals the policy is trained for.
#define DC_ACTOR_GOAL_OPTIONS(config) DC_ACTOR_GOAL_OPTIONS_BY(config, "uniform")
#define DC_ACTOR_GOAL_OPTIONS_BY(config, law_default)                                              \
    DC_OPTION_REAL_AS("actor_random", config, policy.actor_random, "0", 0, 1,                      \
                      "policy: share of random goals, the others lie ahead"),                      \
        DC_OPTION_CHOICE_AS("actor_law", config, policy.actor_law, law_default,                    \
                            "uniform|geometric", "policy: law of goals that lie ahead")
#define DC_ACTOR_NETWORK_OPTIONS(config, layernorm_default)                                        \
    DC_OPTION_BOOL_AS("actor_layernorm", config, policy.layernorm, layernorm_default,              \
                      "LayerNorm in the policy's network"),                                        \
        DC_OPTION_REAL_AS("actor_gain", config, policy.head_gain, "0.1", 0, 10,                    \
                          "policy: factor on the initial weights of its last layer")
// A Gaussian actor of another form than the other networks; HIQL's code has 256,256, relu and free on CALVIN.
#define DC_ACTOR_FORM_OPTIONS(config, hidden_default, activation_default, deviation_default)       \
    DC_OPTION_LIST_AS("actor_hidden", config, policy.hidden, hidden_default, 1, 8192,              \
                      "Gaussian policy: widths of its hidden layers; none: those of all"),         \
        DC_OPTION_CHOICE_AS("actor_activation", config, policy.activation, activation_default,     \
                            "gelu|relu", "Gaussian policy: of its hidden layers"),                 \
        DC_OPTION_CHOICE_AS("actor_std", config, policy.deviation, deviation_default, "one|free",  \
                            "Gaussian policy: deviation 1, or a trained one for each column, the " \
                            "same for all states, e^-5 to e^2")
// What the high one of two policies predicts: a subgoal, or its difference to the state.
typedef enum dc_high_target { DC_HIGH_AUTO, DC_HIGH_STATE, DC_HIGH_DIFFERENCE } dc_high_target;
#define DC_HIGH_TARGET_OPTION(config, init)                                                        \
    DC_OPTION_CHOICE(config, high_target, init, "auto|state|difference",                           \
                     "the high policy predicts a subgoal or its difference to the state; auto: "   \
                     "the difference where goals are whole observations")
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

// Do the options go together, and with the data's actions?
dc_status dc_policy_check(const dc_policy *policy, const dc_method *m);
// The rule of a policy's goals, for the state `of`.
dc_row_rule dc_policy_goal(const dc_policy *policy, const dc_method *m, const char *name,
                           const char *of);
// Declare a network that maps [state | goal (| x | t)] to an action.
void dc_policy_network(dc_nets *nets, const dc_method *m, const dc_policy *policy);
// Declare a Gaussian's network from `in` columns, whole observations among them, to a mean (out), and, if its deviation is free, a network `log_std` that
// dc_policy_log_std reads.
void dc_policy_gauss_network(dc_nets *nets, const dc_policy *policy, const char *name,
                             const char *log_std, int in, int out, int observations);
// Do the options of a Gaussian's form go together? Errors: DC_USAGE.
dc_status dc_policy_check_form(const dc_method *m, const dc_policy *policy);
// Declare a flow network of that form from noise to `out` columns.
void dc_policy_flow_network(dc_nets *nets, const dc_method *m, const dc_policy *policy,
                            const char *name, int out);

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
// The same of two flows: "high_actor" from state and high_goal to the waypoint, "low_actor" from state and low_goal to the
// action.
dc_ref dc_policy_flow_levels(dc_agent *a, dc_ref total);
// Behaviour cloning alone: mean over rows of -log pi(a | s, g), less its constant.
dc_ref dc_policy_clone(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref total);
// Logs of a Gaussian's standard deviations (1, batch, c), from network `net`; -1 if they are 0.
dc_ref dc_policy_log_std(dc_agent *a, const dc_policy *p, const char *net);
// Mean over rows of -log pi(target) of a Gaussian with that mean (1, n, c), less its constant; not yet added to a total.
dc_ref dc_policy_likelihood(dc_agent *a, const char *name, dc_ref mean, dc_ref log_std,
                            dc_ref target);
// The same, each row weighted by min(exp(alpha adv), 100). adv (1, n, 1) passes no gradient.
dc_ref dc_policy_awr(dc_agent *a, double alpha, dc_ref mean, dc_ref log_std, dc_ref target,
                     dc_ref adv);
// The same of the policy's rows and the actions taken there, added to the total.
dc_ref dc_policy_imitate(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref adv,
                         dc_ref total);

// The mean's action; actions of a flow, `count` for each situation; or the best of those by a critic's least opinion.
// critic: a network of [s | g | x]
dc_ref dc_policy_act_mean(dc_infer *q, const char *net);
dc_ref dc_policy_act_flow(dc_infer *q, const dc_policy *p, int count);
dc_ref dc_policy_act_best(dc_infer *q, const dc_policy *p, const char *critic);
// Does the high policy predict a difference? Errors: DC_USAGE if it should and goals are representations.
bool dc_policy_difference(const dc_method *m, int high_target);
dc_status dc_policy_check_high(const dc_method *m, int high_target);
// The row `to` as a goal, or its difference to the row `from`: (1, batch, goal).
dc_ref dc_policy_subgoal(dc_agent *a, bool difference, const char *from, const char *to);
// The subgoal that the mean of "high_actor" at (s, g) stands for.
dc_ref dc_policy_act_subgoal(dc_infer *q, bool difference);
// The mean of "low_actor" at (s, w), for subgoals w (1, rows, c).
dc_ref dc_policy_act_toward(dc_infer *q, dc_ref w);
// Two levels, asked at every step: a subgoal w of flow "high_actor" at (s, g), which is not clipped: the best of
// p->samples by a critic, or one sample (critic NULL); then an action of flow "low_actor" at (s, w).
dc_ref dc_policy_act_levels(dc_infer *q, const dc_policy *p, const char *critic);

#endif
