// iql: implicit Q-learning with goals (GCIQL; Kostrikov et al. 2022, Park et al. 2025). A value V(s, g)
// takes the upper expectile of Q over the actions in the data, so that no action outside of it is asked:
//
//   r = -1 per step, 0 where the goal is the state itself (which ends the episode)
//   L_V = mean of w (q - V(s, g))^2,  q = min over members of Qbar(s, a, g),  w = kappa if q >= V, else 1 - kappa
//   L_Q = mean of sum over members of (Q(s, a, g) - y)^2,  y = r + gamma V(s', g), or 0 at the goal
//
// Qbar is the EMA of Q; V has no EMA. The policy is extracted on its own rows ("actor_goal") by ddpgbc on
// min Q, by awr with the advantage min Q - V, or when acting by rejection: the best of samples from a flow
// policy. No gradient of the policy's loss reaches Q or V.
#include "algo/policy.h"
#include "algo/returns.h"

typedef struct config {
    double kappa;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_REAL(config, kappa, "0.9", 0.5, 0.999, "expectile of Q that V learns"),
    DC_GOAL_OPTIONS(config),
    DC_OPTION_CHOICE_AS("policy", config, policy.kind, "ddpgbc", "none|ddpgbc|rejection|awr",
                        "policy extraction"),
    DC_OPTION_INT_AS("samples", config, policy.samples, "32", 1, 4096,
                     "rejection: candidates of which the best is taken, when acting"),
    DC_OPTION_INT_AS("flow_steps", config, policy.flow_steps, "10", 1, 1000,
                     "rejection: Euler steps from noise to a candidate, when acting"),
    DC_ALPHA_OPTION(config, "0.3", "ddpgbc: weight of behaviour cloning; awr: of the advantage"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    DC_OPTION_REAL_AS("flow_gain", config, policy.flow_gain, "1", 0, 10,
                      "rejection: factor on the initial weights of the flow's last layer"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "actor_goal"};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    bool discrete = c->policy.kind == DC_POLICY_NONE || c->policy.kind == DC_POLICY_DDPGBC;
    return discrete ? dc_need_actions(m) : dc_need_real_actions(m);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_return_rows(r, m, &c->goals);
    if (c->policy.kind != DC_POLICY_NONE)
        dc_rows_add(r, dc_policy_goal(&c->policy, m, "actor_goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_nets_add(nets, (dc_net){.name = "critic",
                               .ensemble = 2,
                               .in = m->obs + m->goal + m->act,
                               .out = 1,
                               .observations = dc_observations(m, 1),
                               .target = true});
    dc_nets_add(nets, (dc_net){.name = "value",
                               .in = m->obs + m->goal,
                               .out = 1,
                               .observations = dc_observations(m, 1)});
    if (c->policy.kind != DC_POLICY_NONE) dc_policy_network(nets, m, &c->policy);
}

// min over members of Q, (1, n, 1), of rows [s | g | a]: gradient flows to the action, not to Q's weights.
static dc_ref critic_min(dc_agent *a, dc_ref rows) {
    return dc_ensemble_min(&a->graph, dc_agent_net(a, "critic", rows, DC_STOPPED));
}

// The same at the policy's rows, of an action that the policy proposes (dc_q_fn).
static dc_ref q_of(dc_agent *a, const dc_policy_rows *r, dc_ref action) {
    dc_ref rows = DC_BATCH(a, "actor_critic", OBS(r->state), GOAL(r->goal), BLANK(a->method.act));
    return critic_min(
        a, dc_splice(&a->graph, "actor_action", rows, action, a->method.obs + a->method.goal));
}

// Of every discrete action of every row (dc_q_all_fn).
static dc_ref q_of_all(dc_agent *a, const dc_policy_rows *r) {
    return critic_min(a, dc_batch_repeated(a, "actor_critic", a->method.actions,
                                           DC_FIELDS(OBS(r->state), GOAL(r->goal), CHOICE)));
}

// Weighted imitation of the data's actions.
static dc_ref awr(dc_agent *a, const config *c, dc_ref total) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    dc_ref sg = DC_BATCH(a, "actor_value", OBS(r->state), GOAL(r->goal));
    dc_ref q =
        critic_min(a, DC_BATCH(a, "actor_critic", OBS(r->state), GOAL(r->goal), ACT(r->state)));
    dc_ref v = dc_agent_net(a, "value", sg, DC_STOPPED);
    dc_ref adv = dc_add(g, q, dc_affine(g, v, -1, 0));
    return dc_policy_imitate(a, &c->policy, r, adv, total);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &a->graph;
    const dc_field *sg = DC_FIELDS(OBS("state"), GOAL("goal")),
                   *ng = DC_FIELDS(OBS("next"), GOAL("goal"));
    // V of (s, g) and (s', g) in one application; only the first is trained.
    dc_ref values = dc_agent_net(
        a, "value", dc_batch_stack(a, "value", 2, (const dc_field *const[]){sg, ng}), DC_LIVE);
    dc_ref v = dc_batch_part(a, values, 0), later = dc_stop(g, dc_batch_part(a, values, 1));

    // L_V. dc_expectile weighs rows with V < q by kappa and has a factor of 2, which 0.5 takes back.
    dc_ref sga = DC_BATCH(a, "critic", OBS("state"), GOAL("goal"), ACT("state"));
    dc_ref least = dc_ensemble_min(g, dc_agent_net(a, "critic", sga, DC_EMA));
    dc_ref loss_v = dc_affine(g, dc_expectile(g, "loss_value", v, least, -1, c->kappa), 0.5, 0);
    dc_ref total = dc_batch_loss(a, "loss_value", -1, loss_v);

    // L_Q. dc_square is a mean over both members, too: times 2 it is the sum over them.
    dc_ref q = dc_agent_net(a, "critic", sga, DC_LIVE);
    dc_ref y = dc_return_target(a, later);
    dc_ref loss_q = dc_square(g, "loss_critic", q, y, 2);
    total = dc_batch_loss(a, "loss_critic", total, loss_q);
    dc_agent_metric(a, "value_mean", dc_mean(g, "value_mean", v));

    if (c->policy.kind == DC_POLICY_DDPGBC)
        return dc_policy_ddpgbc(a, &c->policy, &policy_rows, q_of, q_of_all, total);
    if (c->policy.kind == DC_POLICY_REJECTION) return dc_policy_flow(a, &policy_rows, total);
    return c->policy.kind == DC_POLICY_AWR ? awr(a, c, total) : total;
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    if (c->policy.kind == DC_POLICY_NONE) return -1;
    if (c->policy.kind == DC_POLICY_REJECTION) return dc_policy_act_best(q, &c->policy, "critic");
    return dc_policy_act_mean(q, "actor");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_RETURN;
    return dc_infer_net(q, "value", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
}

const dc_algo dc_algo_iql = {.name = "iql",
                             .about = "implicit Q-learning: expectile value, one-step backups",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = query};
