// sharsa: SARSA over stretches of many steps, with a hierarchy of flows (Park et al. 2025). A step of the
// values is up to k = subgoal_steps of the data: from s to the subgoal w that the data reaches n steps later, not
// past the goal g and not past the trajectory's end. Values are logits of gamma^steps:
//
//   L_V    = cross-entropy of V(s, g) and agg over members of sigmoid Qbar(s, w, g)
//   L_Q    = sum over members of the cross-entropy of Q(s, w, g) and
//            y = gamma^n where n < k, else gamma^k sigmoid V(s_w, g), V held
//   L_high = flow to w_h = k steps later, not past the goal of the policy; knows (s, g)
//   L_low  = flow to the action; knows (s, w_l), w_l = k steps later
//
// It learns the value of the data's own subgoals, hence SARSA: no expectile, no maximum. It improves on the data when it
// acts: of `samples` subgoals by the high flow it takes the one that the least member of Q values most, then one
// action by the low flow.
//
// n < k also where the trajectory ends, so that a goal elsewhere counts as reached there (end_success). That is
// what the public code does; about k / (steps of a trajectory) of the rows are such. end_success=off
// bootstraps there: y = gamma^n sigmoid V(s_w, g) unless the goal lies less than k steps ahead.
#include "algo/policy.h"
#include "algo/returns.h"

enum { AGG_MIN, AGG_MEAN };

typedef struct config {
    int agg;
    int64_t subgoal_steps;
    bool end_success;
    dc_goal_mix goals;
    dc_policy policy; // goals of the high flow; networks of both
} config;

static const dc_option options[] = {
    DC_OPTION_INT(config, subgoal_steps, "25", 1, 1e6, "steps from a state to its subgoal"),
    DC_OPTION_CHOICE(config, agg, "min", "min|mean",
                     "how members of the target critic are combined in training"),
    DC_OPTION_BOOL(config, end_success, "on",
                   "a trajectory's end within subgoal_steps counts as the goal, as in the public "
                   "code; off: goals alone do"),
    DC_GOAL_OPTIONS_BY(config, "uniform"),
    DC_OPTION_INT_AS("samples", config, policy.samples, "32", 1, 4096,
                     "subgoals of which the best is taken, when acting"),
    DC_OPTION_INT_AS("flow_steps", config, policy.flow_steps, "10", 1, 1000,
                     "Euler steps from noise to a subgoal or an action, when acting"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_OPTION_BOOL_AS("actor_layernorm", config, policy.layernorm, "on",
                      "LayerNorm in the flows' networks"),
    DC_OPTION_REAL_AS("flow_gain", config, policy.flow_gain, "1", 0, 10,
                      "factor on the initial weights of a flow's last layer"),
    {0},
};

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, c->goals, m->gamma, "goal of values"));
    dc_rows_add(r, DC_TOWARD("subgoal", "state", "goal", c->subgoal_steps,
                             "where the data is n steps later: not past its goal"));
    dc_rows_add(r, DC_STEPS("subgoal_steps", "state", "subgoal", "n, steps to that"));
    if (!c->end_success)
        dc_rows_add(r, DC_STEPS("goal_steps", "state", "goal",
                                "steps to the goal if it lies ahead in the trajectory, else -1"));
    dc_rows_add(
        r, DC_AFTER("low_goal", "state", c->subgoal_steps, "goal of the low flow: k steps later"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "high_goal", "state"));
    dc_rows_add(r, DC_TOWARD("waypoint", "state", "high_goal", c->subgoal_steps,
                             "what the high flow leads to: k steps later, not past its goal"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_nets_add(nets, (dc_net){.name = "critic",
                               .ensemble = 2,
                               .in = m->obs + 2 * m->goal,
                               .out = 1,
                               .observations = dc_observations(m, 2),
                               .target = true});
    dc_nets_add(nets, (dc_net){.name = "value",
                               .in = m->obs + m->goal,
                               .out = 1,
                               .observations = dc_observations(m, 1)});
    dc_policy_flow_network(nets, m, &c->policy, "high_actor", m->goal);
    dc_policy_flow_network(nets, m, &c->policy, "low_actor", m->act);
}

// y (1, batch, 1) from the logits of V at the subgoals, which pass no gradient.
static dc_ref target(dc_agent *a, const config *c, dc_ref later) {
    dc_graph *g = &a->graph;
    dc_ref n = DC_BATCH(a, "subgoal_steps", STEPS("subgoal_steps"));
    dc_ref reached = dc_power(g, n, a->method.gamma);
    dc_ref rest = dc_mul(g, reached, dc_sigmoid(g, later));
    dc_ref ahead = c->end_success ? n : DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    return dc_within(g, ahead, reached, rest, (double)c->subgoal_steps - 1);
}

static dc_ref value_losses(dc_agent *a, const config *c) {
    dc_graph *g = &a->graph;
    const dc_field *now = DC_FIELDS(OBS("state"), GOAL("goal")),
                   *then = DC_FIELDS(OBS("subgoal"), GOAL("goal"));
    // V of (s, g) and (s_w, g) in one application; only the first is trained.
    dc_ref v = dc_agent_net(
        a, "value", dc_batch_stack(a, "value", 2, (const dc_field *const[]){now, then}), DC_LIVE);
    dc_ref x = DC_BATCH(a, "critic", OBS("state"), GOAL("goal"), GOAL("subgoal"));
    dc_ref bar = dc_sigmoid(g, dc_agent_net(a, "critic", x, DC_EMA));
    bar = c->agg == AGG_MIN ? dc_ensemble_min(g, bar) : dc_ensemble_mean(g, bar);
    dc_ref own = dc_batch_part(a, v, 0);
    // dc_bce at 0.5 halves every row, and is a mean over members: 2 makes it a mean, 4 the sum over two.
    dc_ref total = dc_batch_loss(a, "loss_value", -1, dc_bce(g, "loss_value", own, bar, 0.5, 2));
    dc_agent_metric(a, "value_mean", dc_mean(g, "value_mean", dc_sigmoid(g, own)));
    dc_ref y = target(a, c, dc_stop(g, dc_batch_part(a, v, 1)));
    dc_ref q = dc_agent_net(a, "critic", x, DC_LIVE);
    return dc_batch_loss(a, "loss_critic", total, dc_bce(g, "loss_critic", q, y, 0.5, 4));
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    return dc_policy_flow_levels(a, value_losses(a, m->config));
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    return dc_policy_act_levels(q, &c->policy, "critic");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_LOGIT;
    return dc_infer_net(q, "value", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
}

const dc_algo dc_algo_sharsa = {.name = "sharsa",
                                .about = "SARSA over stretches of steps; flows of subgoals, then "
                                         "actions",
                                .options = options,
                                .config_size = sizeof(config),
                                .check = dc_need_real_actions,
                                .rows = rows,
                                .networks = networks,
                                .losses = losses,
                                .act = act,
                                .query = query};
