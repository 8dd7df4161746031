// fbc: behaviour cloning by a flow. A velocity field carries noise to the actions of the data, for a state
// and a later state of its trajectory as the goal:
//
//   L = mean over rows and columns of (v(s, g, x_t, t) - (a - x_0))^2,   x_t = x_0 + t (a - x_0)
//
// x_0 standard normal, t uniform in [0, 1), g geometric over the states after s. It acts by one sample, in
// flow_steps Euler steps from noise. Where the data does one thing or another, bc gives the average and fbc
// one of them; it prefers none, so it is policy=rejection without a critic. (Park et al. 2025.)
#include "algo/policy.h"

typedef struct config {
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_INT_AS("flow_steps", config, policy.flow_steps, "10", 1, 1000,
                     "Euler steps from noise to an action, when acting"),
    DC_ACTOR_GOAL_OPTIONS_BY(config, "geometric"),
    DC_OPTION_BOOL_AS("actor_layernorm", config, policy.layernorm, "on",
                      "LayerNorm in the policy's network"),
    DC_OPTION_REAL_AS("flow_gain", config, policy.flow_gain, "1", 0, 10,
                      "factor on the initial weights of the flow's last layer"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "goal"};

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_rows_add(r, DC_START("state", DC_STREAM_ACTOR, "a state with its action"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_policy flow = c->policy;
    flow.kind = DC_POLICY_REJECTION;
    dc_policy_network(nets, m, &flow);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    (void)m;
    return dc_policy_flow(a, &policy_rows, -1);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    return dc_policy_act_flow(q, &c->policy, 1);
}

const dc_algo dc_algo_fbc = {.name = "fbc",
                             .about = "behaviour cloning by a flow: one of the data's actions",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = dc_need_real_actions,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act};
