// hbc: hierarchical behaviour cloning. Two policies imitate the data at two scales: the high one leads from a state to
// the state k = subgoal_steps later, the low one to the action, knowing that state. Nothing is valued. Two forms (`actors`):
//
//   gaussian  L_low = -log pi_low(a | s, w),  L_high = -log pi_high(w' - s | s, g)
//             (the hierarchical GCBC of HIQL's code, with its actors; see high_target for the difference)
//   flow      flows from noise to a, knowing (s, w), and to w', knowing (s, g)
//             (the hierarchical flow BC of Park et al. 2025, which has LayerNorm and geometric goals)
//
// w is the state k steps later, w' the same but not past g, which lies ahead. It acts by asking both at every
// step: by the means, or by one sample of each flow, of which the subgoal is not clipped.
#include "algo/policy.h"

enum { GAUSSIAN, FLOW };

typedef struct config {
    int actors, high_target;
    int64_t subgoal_steps;
    dc_policy policy; // goals of the high policy; networks of both
} config;

static const dc_option options[] = {
    DC_OPTION_CHOICE(config, actors, "gaussian", "gaussian|flow", "what both policies are"),
    DC_OPTION_INT(config, subgoal_steps, "25", 1, 1e6, "steps from a state to its subgoal"),
    DC_HIGH_TARGET_OPTION(config, "auto"),
    DC_OPTION_INT_AS("flow_steps", config, policy.flow_steps, "10", 1, 1000,
                     "flow: Euler steps from noise to a subgoal or an action, when acting"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    DC_ACTOR_FORM_OPTIONS(config, "256,256", "relu", "free"),
    DC_OPTION_REAL_AS("flow_gain", config, policy.flow_gain, "1", 0, 10,
                      "flow: factor on the initial weights of its last layer"),
    {0},
};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    DC_TRY(dc_need_real_actions(m));
    if (c->actors == FLOW) return DC_OK;
    DC_TRY(dc_policy_check_form(m, &c->policy));
    return dc_policy_check_high(m, c->high_target);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_rows_add(r, DC_START("state", DC_STREAM_ACTOR, "a state with its action"));
    dc_rows_add(r, DC_AFTER("low_goal", "state", c->subgoal_steps,
                            "goal of the low policy: k steps later"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "high_goal", "state"));
    dc_rows_add(r, DC_TOWARD("waypoint", "state", "high_goal", c->subgoal_steps,
                             "what the high policy leads to: k steps later, not past its goal"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    const dc_policy *p = &c->policy;
    if (c->actors == FLOW) {
        dc_policy_flow_network(nets, m, p, "high_actor", m->goal);
        dc_policy_flow_network(nets, m, p, "low_actor", m->act);
        return;
    }
    int in = m->obs + m->goal;
    dc_policy_gauss_network(nets, p, "high_actor", "high_log_std", in, m->goal,
                            dc_observations(m, 1));
    dc_policy_gauss_network(nets, p, "low_actor", "low_log_std", in, m->act, dc_observations(m, 1));
}

// L of one level: its network at (s, goal) and its deviations, toward a target (1, batch, c).
static dc_ref imitate(dc_agent *a, const char *net, const char *log_std, const char *goal,
                      const char *name, dc_ref target, dc_ref total) {
    const config *c = a->method.config;
    dc_ref mean = dc_agent_net(a, net, DC_BATCH(a, net, OBS("state"), GOAL(goal)), DC_LIVE);
    dc_ref loss =
        dc_policy_likelihood(a, name, mean, dc_policy_log_std(a, &c->policy, log_std), target);
    return dc_batch_loss(a, name, total, loss);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    if (c->actors == FLOW) return dc_policy_flow_levels(a, -1);
    bool difference = dc_policy_difference(m, c->high_target);
    dc_ref to = dc_policy_subgoal(a, difference, "state", "waypoint"),
           taken = DC_BATCH(a, "action", ACT("state"));
    dc_ref total = imitate(a, "high_actor", "high_log_std", "high_goal", "loss_high", to, -1);
    return imitate(a, "low_actor", "low_log_std", "low_goal", "loss_low", taken, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    if (c->actors == FLOW) return dc_policy_act_levels(q, &c->policy, NULL);
    return dc_policy_act_toward(q,
                                dc_policy_act_subgoal(q, dc_policy_difference(m, c->high_target)));
}

const dc_algo dc_algo_hbc = {.name = "hbc",
                             .about = "hierarchical behaviour cloning: subgoals, then actions",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act};
