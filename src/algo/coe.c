// coe: the compositional optimality equation (Pikekos et al. 2023). The way to a goal leads over the best state w between,
// which a generator proposes:
//
//   Q(s, a, g) = max over w of Q(s, a, w) Q(w, a_w, g),   a_w = clip(mu(w, g)) what the policy does at w
//
//   w    = G(s, g, a), as an observation
//   L_Q    Q(s, a, g) -> Qbar(s, a, w) Qbar(w, a_w, g);  1 where g is the state itself, gamma where it is the next one
//   L_G  = -mean z / (mean |z| + 1e-6) + beta mean of |w - k|^2 / 2,  z = min over members of sigmoid Q(s, a, w) sigmoid Q(w, a_w, g)
//
// k is a state between s and g in the data (subgoal), where there is one: without it w leaves the data for places of which
// the critic knows nothing. Q = 0 everywhere solves the equation, so goals of both known kinds are in every batch.
//
// Held fixed: targets; in L_G the critic's weights and a_w, since at the best action a small change of it changes nothing.
// Targets are per member, by cross-entropy. Oracle critic and policy (ddpgbc) are those of the value form (value.h); the
// critic sees w as a goal, the policy as a state.
#include "algo/value.h"

enum { SUBGOAL_RANDOM, SUBGOAL_MIDPOINT };

typedef struct config {
    double beta, kappa;
    int subgoal;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_REAL(config, beta, "1", 0, 1e6,
                   "how strongly the generator is held near states between"),
    DC_OPTION_CHOICE(config, subgoal, "random", "random|midpoint",
                     "which state between start and goal the generator is held near"),
    DC_OPTION_REAL(config, kappa, "0.5", 0.01, 0.99,
                   "expectile of the critic's loss; above 0.5 prefers shorter routes"),
    DC_GOAL_SHARE_OPTIONS(config, "0.1", "0.8", "0", "geometric"),
    DC_GOAL_NEXT_OPTION(config, "0.1"),
    DC_ALPHA_OPTION(config, "0.3", "weight of behaviour cloning"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "on"),
    {0},
};

static dc_policy policy_of(const dc_method *m) {
    dc_policy p = ((const config *)m->config)->policy;
    p.kind = DC_POLICY_DDPGBC;
    return p;
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_policy p = policy_of(m);
    dc_split split = c->subgoal == SUBGOAL_RANDOM ? DC_SPLIT_RANDOM : DC_SPLIT_MIDPOINT;
    dc_value_goal_rows(r, m, &c->goals);
    dc_rows_add(r, DC_BETWEEN("between", "state", "goal", split, "a state between the two"));
    dc_value_policy_rows(r, m, &p);
}

static void networks(dc_nets *nets, const dc_method *m) {
    dc_policy p = policy_of(m);
    dc_value_networks(nets, m);
    dc_nets_add(nets, (dc_net){.name = "generator", .in = 2 * m->obs + m->act, .out = m->obs});
    dc_policy_network(nets, m, &p);
}

// The two parts of a way, as rows of the critic, and the state between.
typedef struct way {
    dc_ref w, there, on; // (1, batch, ...)
} way;

static way propose(dc_agent *a) {
    dc_graph *g = &a->graph;
    int obs = a->method.obs, act = a->method.act;
    way y;
    dc_ref sga = DC_BATCH(a, "generator", OBS("state"), OBS("goal"), ACT("state"));
    y.w = dc_agent_net(a, "generator", sga, DC_LIVE);
    dc_ref seen = dc_splice(g, "waypoint", DC_BATCH(a, "waypoint", BLANK(obs), GOAL("goal")),
                            dc_stop(g, y.w), 0);
    dc_ref action = dc_clip(g, dc_agent_net(a, "actor", seen, DC_STOPPED), -1, 1);
    dc_ref there = DC_BATCH(a, "there", OBS("state"), BLANK(obs), ACT("state")),
           on = DC_BATCH(a, "on", BLANK(obs), OBS("goal"), BLANK(act));
    y.there = dc_splice(g, "there", there, y.w, obs);
    on = dc_splice(g, "on_action", on, action, 2 * obs); // w last: gradient reaches the last alone
    y.on = dc_splice(g, "on", on, y.w, 0);
    return y;
}

// Its value, (2, batch, 1).
static dc_ref value_of(dc_agent *a, const way *y, dc_use use) {
    dc_graph *g = &a->graph;
    return dc_mul(g, dc_sigmoid(g, dc_agent_net(a, "critic", y->there, use)),
                  dc_sigmoid(g, dc_agent_net(a, "critic", y->on, use)));
}

static dc_ref generator_loss(dc_agent *a, const config *c, const way *y, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_ref z = dc_ensemble_min(g, value_of(a, y, DC_STOPPED));
    total = dc_batch_loss(a, "loss_way", total,
                          dc_affine(g, dc_relative_mean(g, "loss_way", z), -1, 0));
    // Only where the goal lies ahead there is a state between; the mean is over all rows.
    dc_ref steps = DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    dc_ref ahead = dc_within(g, steps, dc_affine(g, steps, 0, 1), dc_affine(g, steps, 0, 0), 1e15);
    dc_ref apart = dc_row_square(g, y->w, DC_BATCH(a, "between", OBS("between")));
    dc_ref near = dc_affine(g, dc_mean(g, "loss_subgoal", dc_mul(g, apart, ahead)), 0.5, 0);
    dc_agent_metric(a, "loss_subgoal", near);
    return dc_add(g, total, dc_affine(g, near, c->beta, 0));
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_policy p = policy_of(m);
    way y = propose(a);
    dc_ref target = dc_value_target(a, value_of(a, &y, DC_EMA));
    dc_ref sga = DC_BATCH(a, "critic", OBS("state"), OBS("goal"), ACT("state"));
    dc_ref q = dc_agent_net(a, "critic", sga, DC_LIVE);
    dc_ref total = dc_batch_loss(a, "loss_critic", -1,
                                 dc_bce(&a->graph, "loss_critic", q, target, c->kappa, 2));
    total = generator_loss(a, c, &y, total);
    total = dc_value_distil(a, "state", "goal", q, total);
    total = dc_value_policy(a, &p, total);
    dc_value_log(a, q);
    return total;
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    dc_policy p = policy_of(m);
    return dc_value_act(q, m, &p);
}

const dc_algo dc_algo_coe = {.name = "coe",
                             .about = "the best way through a state that a generator proposes",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = dc_need_real_actions,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = dc_value_query,
                             .whole_goals = true};
