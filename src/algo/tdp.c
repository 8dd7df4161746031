// tdp: dynamic programming over pairs of states, as Floyd and Warshall do it (Kaelbling 1993; sub-goal trees, Jurgenson
// et al. 2020). The way to a goal is the best of those through M states w_1 ... w_M, drawn from the whole data set anew
// for every row, whatever their trajectory:
//
//   Q(s, a, g) -> max over m of Qbar(s, a, w_m) Qbar(w_m, a_m, g),   a_m the action taken at w_m
//   1 where g is the state itself, gamma where it is the next one
//
// Without pairs that are known, products of values all sink to 0: goals of both kinds are in every batch. And random pairs
// are taken to be no further apart than P steps, in one of two ways (far):
//   floor   no target is less than gamma^P
//   pairs   Q(s, a, g) -> gamma^P for random g, by a loss of its own, as sub-goal trees begin
//
// Targets are per member, by cross-entropy. Oracle critic and policy are those of the value form (value.h).
#include "algo/value.h"

#include <math.h>

enum { FAR_FLOOR, FAR_PAIRS, FAR_OFF };

typedef struct config {
    int64_t candidates;
    int far;
    bool own;
    double far_steps, kappa;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_INT(config, candidates, "8", 1, DC_TIMES_MAX,
                  "states between, of which the best is taken (M)"),
    DC_OPTION_CHOICE(config, far, "floor", "floor|pairs|off",
                     "far_steps bounds every target (floor), or is the target of random pairs in "
                     "a loss of its own (pairs)"),
    DC_OPTION_BOOL(
        config, own, "off",
        "the target critic's own estimate is among the ways, as if g were a state between"),
    DC_OPTION_REAL(config, far_steps, "500", 1, 1e9, "steps between random states, at most (P)"),
    DC_OPTION_REAL(config, kappa, "0.5", 0.01, 0.99,
                   "expectile of the loss; above 0.5 prefers shorter routes"),
    DC_GOAL_SHARE_OPTIONS(config, "0.1", "0.5", "0.3", "geometric"),
    DC_GOAL_NEXT_OPTION(config, "0.1"),
    DC_POLICY_OPTIONS(config),
    {0},
};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    DC_TRY(dc_need_actions(m));
    return dc_policy_check(&c->policy, m);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    const dc_goal_mix anywhere = {.random = 1};
    dc_value_goal_rows(r, m, &c->goals);
    dc_rows_add(
        r, DC_STARTS("via", (int)c->candidates, DC_STREAM_VIA, "states between, from anywhere"));
    if (c->far == FAR_PAIRS)
        dc_rows_add(r,
                    DC_GOAL("far_goal", "state", DC_STREAM_FAR, anywhere, m->gamma, "any state"));
    dc_value_policy_rows(r, m, &c->policy);
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_value_networks(nets, m);
    if (c->policy.kind != DC_POLICY_NONE) dc_policy_network(nets, m, &c->policy);
}

// The value of the best way, (2, batch, 1): both parts of all ways in one application of the target critic.
static dc_ref best_way(dc_agent *a, int ways) {
    dc_graph *g = &a->graph;
    const dc_field *there = DC_FIELDS(OBS("state"), OBS("via"), ACT("state")),
                   *on = DC_FIELDS(OBS("via"), OBS("goal"), ACT("via"));
    int count = a->method.batch * ways;
    dc_ref x = dc_input(g, "ways", 2 * count, dc_fields_width(&a->method, there));
    dc_batch_feed(a, x, 0, there, ways, NULL);
    dc_batch_feed(a, x, count, on, ways, NULL);
    dc_ref q = dc_sigmoid(g, dc_agent_net(a, "critic", x, DC_EMA));
    return dc_group_max(g, dc_mul(g, dc_rows(g, q, 0, count), dc_rows(g, q, count, count)), ways);
}

// The larger of the two: a route that was found stays, also when no candidate of today lies on it.
static dc_ref with_own(dc_agent *a, const dc_field *pair, dc_ref way) {
    dc_graph *g = &a->graph;
    dc_ref own = dc_sigmoid(g, dc_agent_net(a, "critic", dc_batch_input(a, "own", pair), DC_EMA));
    dc_ref more = dc_add(g, way, dc_affine(g, own, -1, 0));
    return dc_add(g, own, dc_relu(g, "more", more));
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &a->graph;
    double far = pow(m->gamma, c->far_steps);
    const dc_field *pair = DC_FIELDS(OBS("state"), OBS("goal"), ACT("state")),
                   *random = DC_FIELDS(OBS("state"), OBS("far_goal"), ACT("state"));
    dc_ref x = dc_batch_stack(a, "critic", c->far == FAR_PAIRS ? 2 : 1,
                              (const dc_field *const[]){pair, random});
    dc_ref logits = dc_agent_net(a, "critic", x, DC_LIVE), q = dc_batch_part(a, logits, 0);

    dc_ref way = best_way(a, (int)c->candidates);
    if (c->own) way = with_own(a, pair, way);
    if (c->far == FAR_FLOOR) way = dc_clip(g, way, far, 1);
    dc_ref total = dc_batch_loss(a, "loss_way", -1,
                                 dc_bce(g, "loss_way", q, dc_value_target(a, way), c->kappa, 2));
    if (c->far == FAR_PAIRS) {
        dc_ref p = dc_batch_part(a, logits, 1), target = dc_affine(g, dc_stop(g, p), 0, far);
        total = dc_batch_loss(a, "loss_far", total, dc_bce(g, "loss_far", p, target, 0.5, 2));
    }
    total = dc_value_distil(a, "state", "goal", q, total);
    total = dc_value_policy(a, &c->policy, total);
    dc_value_log(a, q);
    return total;
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    return dc_value_act(q, m, &((const config *)m->config)->policy);
}

static int64_t policy_after(const dc_method *m) {
    return ((const config *)m->config)->policy.after;
}

const dc_algo dc_algo_tdp = {.name = "tdp",
                             .about = "the best way through random states, as Floyd and Warshall",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = dc_value_query,
                             .policy_after = policy_after,
                             .whole_goals = true};
