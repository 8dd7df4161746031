// bc: goal-conditioned behaviour cloning. A Gaussian policy imitates the action that was taken, with a
// later state of the same trajectory as the goal:
//
//   L = mean over rows of 0.5 |mu(s, g) - a|^2,   g uniform over the states after s
//
// With actor_std=free the Gaussian's deviations are trained, too: L = mean of -log pi(a | s, g), less its constant.
// (GCBC; Lynch et al. 2019, Ghosh et al. 2021.) Discrete actions: cross-entropy of a softmax. There is
// no value, so it cannot prefer a short route: it gives the average of what the data did.
#include "algo/policy.h"

typedef struct config {
    dc_policy policy;
} config;

static const dc_option options[] = {DC_ACTOR_GOAL_OPTIONS(config),
                                    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
                                    DC_ACTOR_FORM_OPTIONS(config, "", "gelu", "one"),
                                    {0}};

static const dc_policy_rows policy_rows = {"state", "goal"};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    DC_TRY(dc_need_actions(m));
    return dc_policy_check_form(m, &c->policy);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_rows_add(r, DC_START("state", DC_STREAM_ACTOR, "a state with its action"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_policy_network(nets, m, &c->policy);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    return dc_policy_clone(a, &c->policy, &policy_rows, -1);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    (void)m;
    return dc_policy_act_mean(q, "actor");
}

const dc_algo dc_algo_bc = {.name = "bc",
                            .about = "behaviour cloning of states and later goals",
                            .options = options,
                            .config_size = sizeof(config),
                            .check = check,
                            .rows = rows,
                            .networks = networks,
                            .losses = losses,
                            .act = act};
