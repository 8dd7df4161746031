// Policy losses, see policy.h. Rows are (s, rep(g), a) with goals of the sampler's actor streams; a policy
// never changes the critic.
//
//   ddpgbc     -mean q / (mean |q| + 1e-6) - alpha log pi(a | s, g), q = min Q'(s, clip(mean), g)
//   rejection  |v(s, g, x_t, t) - (a - x_0)|^2, x_t = x_0 + t (a - x_0), x_0 normal, t uniform
#include "algo/policy.h"

static const dc_column *column(const dc_agent *a, const char *name) {
    return dc_dataset_column(a->data, name);
}

int dc_rep_width(const dc_agent *a) {
    return a->options.rep_size ? a->options.rep_size : column(a, "obs")->width;
}

dc_ref dc_rep_input(dc_agent *a, const char *name, dc_stream state, dc_stream goal, int extra) {
    const dc_column *obs = column(a, "obs");
    int rep = dc_rep_width(a);
    dc_ref x = dc_input(&a->graph, name, a->options.batch, obs->width + rep + extra);
    dc_agent_feed(a, (dc_feed){x, 0, 0, obs, state, NULL, 0, 0, DC_DRAW_NONE});
    dc_agent_feed(
        a, (dc_feed){x, 0, obs->width, obs, goal, NULL, a->options.rep_first, rep, DC_DRAW_NONE});
    return x;
}

dc_ref dc_rep_action_input(dc_agent *a, const char *name, dc_stream state, dc_stream goal) {
    const dc_column *act = column(a, "act");
    dc_ref x = dc_rep_input(a, name, state, goal, act->width);
    int at = column(a, "obs")->width + dc_rep_width(a);
    dc_agent_feed(a, (dc_feed){x, 0, at, act, state, NULL, 0, 0, DC_DRAW_NONE});
    return x;
}

dc_status dc_policy_declare(dc_agent *a, const dc_policy *policy) {
    int act = column(a, "act")->width;
    if (policy->kind == DC_POLICY_NONE && policy->after)
        return dc_fail(DC_USAGE, "name a policy, or leave policy_after out",
                       "there is no policy to train after the critic (policy=none)");
    if (policy->kind == DC_POLICY_NONE) return DC_OK;
    int in = column(a, "obs")->width + dc_rep_width(a) + dc_policy_extra(policy->kind, act);
    a->policy_first = a->params.slabs.size;
    a->policy_after = policy->after;
    dc_mlp_declare(&a->actor, &a->params, "actor", 1, in, &a->options.hidden, act, 0.01, false);
    return DC_OK;
}

static dc_ref add_metric(dc_agent *a, const char *name, dc_ref total, dc_ref part) {
    dc_agent_metric(a, name, part);
    return total < 0 ? part : dc_add(&a->graph, total, part);
}

// The data's actions on policy rows.
static dc_ref taken_actions(dc_agent *a) {
    const dc_column *act = column(a, "act");
    dc_ref x = dc_input(&a->graph, "actor_action", a->options.batch, act->width);
    dc_agent_feed(a, (dc_feed){x, 0, 0, act, DC_S, NULL, 0, 0, DC_DRAW_NONE});
    return x;
}

static dc_ref ddpgbc_loss(dc_agent *a, double alpha, dc_ref total) {
    dc_graph *g = &a->graph;
    int act = column(a, "act")->width;
    dc_ref mean = dc_mlp_apply(g, &a->actor, dc_rep_input(a, "actor", DC_S, DC_AG, 0), DC_LIVE);
    dc_ref taken = taken_actions(a);
    // The critic's view of the policy's own action; its weights are held.
    dc_ref rows = dc_rep_action_input(a, "actor_critic", DC_S, DC_AG);
    dc_ref own = dc_splice(g, "actor_action", rows, dc_clip(g, mean, -1, 1),
                           column(a, "obs")->width + dc_rep_width(a));
    const dc_mlp *judge = a->options.rep_size ? &a->oracle : &a->critic;
    dc_ref q = dc_ensemble_min(g, dc_mlp_apply(g, judge, own, DC_STOPPED));
    dc_ref gain = dc_affine(g, dc_relative_mean(g, "loss_q", q), -1, 0);
    // -log pi of a Gaussian with unit variance, less its constant.
    dc_ref clone = dc_square(g, "loss_bc", mean, taken, 0.5 * act);
    total = add_metric(a, "loss_q", total, gain);
    dc_agent_metric(a, "loss_bc", clone);
    return dc_add(g, total, dc_affine(g, clone, alpha, 0));
}

// An input of random numbers, `take` columns.
static dc_ref drawn(dc_agent *a, const char *name, dc_draw draw, int take) {
    dc_ref x = dc_input(&a->graph, name, a->options.batch, take);
    dc_agent_feed(a, (dc_feed){.input = x, .take = take, .draw = draw});
    return x;
}

static dc_ref flow_loss(dc_agent *a, dc_ref total) {
    dc_graph *g = &a->graph;
    int act = column(a, "act")->width, at = column(a, "obs")->width + dc_rep_width(a);
    dc_ref noise = drawn(a, "noise", DC_DRAW_NOISE, act),
           time = drawn(a, "time", DC_DRAW_TIME, act);
    dc_ref velocity = dc_add(g, taken_actions(a), dc_affine(g, noise, -1, 0));
    dc_ref x = dc_add(g, noise, dc_mul(g, time, velocity));
    dc_ref rows = dc_rep_input(a, "actor", DC_S, DC_AG, act + 1);
    dc_agent_feed(a, (dc_feed){.input = rows, .col0 = at + act, .take = 1, .draw = DC_DRAW_TIME});
    rows = dc_splice(g, "actor_path", rows, x, at);
    dc_ref v = dc_mlp_apply(g, &a->actor, rows, DC_LIVE);
    return add_metric(a, "loss_flow", total, dc_square(g, "loss_flow", v, velocity, 1));
}

dc_ref dc_policy_loss(dc_agent *a, const dc_policy *policy, dc_ref total) {
    switch ((dc_policy_kind)policy->kind) {
    case DC_POLICY_DDPGBC:
        return ddpgbc_loss(a, policy->alpha, total);
    case DC_POLICY_REJECTION:
        return flow_loss(a, total);
    case DC_POLICY_NONE:
        break;
    }
    return total;
}
