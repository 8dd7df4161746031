// gcivl: implicit V-learning with goals (OGBench's GCIVL; Kostrikov et al. 2022, Park et al. 2023). A value
// without actions, and a policy that imitates the data the more, the more a step gains:
//
//   L_V  = sum over members of mean c (y - V(s, g))^2,   y = -1 + gamma Vbar(s', g), or 0 at the goal
//          c = kappa if A >= 0, else 1 - kappa;  A = -1 + gamma min Vbar(s', g) - mean Vbar(s, g)   (algo/returns.h)
//   L_pi = awr on the action,  A = V(s', g) - V(s, g), means over members
//
// It is hiql with one level and goals as they are. V knows no actions, so a lucky outcome of chance counts
// like a good choice. No gradient of the policy's loss reaches V.
#include "algo/policy.h"
#include "algo/returns.h"

typedef struct config {
    double kappa;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_REAL(config, kappa, "0.9", 0.5, 0.999, "expectile of the value"),
    DC_GOAL_OPTIONS(config),
    DC_ALPHA_OPTION(config, "10", "awr: weight of the advantage"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "actor_goal"};

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_return_rows(r, m, &c->goals);
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "actor_goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_nets_add(nets, (dc_net){.name = "value",
                               .ensemble = 2,
                               .in = m->obs + m->goal,
                               .out = 1,
                               .observations = dc_observations(m, 1),
                               .target = true});
    dc_policy_network(nets, m, &c->policy);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &a->graph;
    const dc_field *pairs[] = {
        DC_FIELDS(OBS("state"), GOAL("goal")), DC_FIELDS(OBS("next"), GOAL("goal")),
        DC_FIELDS(OBS("state"), GOAL("actor_goal")), DC_FIELDS(OBS("next"), GOAL("actor_goal"))};
    dc_ref bar = dc_agent_net(a, "value", dc_batch_stack(a, "target_value", 2, pairs), DC_EMA);
    dc_ref now = dc_batch_part(a, bar, 0), later = dc_batch_part(a, bar, 1);
    // V(s, g), which is trained, and V at both states for the policy's goal, in one application.
    const dc_field *const asked[] = {pairs[0], pairs[2], pairs[3]};
    dc_ref v = dc_agent_net(a, "value", dc_batch_stack(a, "value", 3, asked), DC_LIVE);
    dc_ref total = dc_return_loss(a, c->kappa, dc_batch_part(a, v, 0), now, later);
    dc_ref held = dc_ensemble_mean(g, dc_stop(g, v));
    dc_ref adv =
        dc_add(g, dc_batch_part(a, held, 2), dc_affine(g, dc_batch_part(a, held, 1), -1, 0));
    return dc_policy_imitate(a, &c->policy, &policy_rows, adv, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    (void)m;
    return dc_policy_act_mean(q, "actor");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_RETURN;
    return dc_infer_net(q, "value", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
}

const dc_algo dc_algo_gcivl = {.name = "gcivl",
                               .about = "implicit V-learning: expectile value without actions, awr",
                               .options = options,
                               .config_size = sizeof(config),
                               .check = dc_need_real_actions,
                               .rows = rows,
                               .networks = networks,
                               .losses = losses,
                               .act = act,
                               .query = query};
