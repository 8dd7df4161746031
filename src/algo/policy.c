// Policy losses, see policy.h. Rows are (s, rep(g), a) with goals of the sampler's actor streams; a policy
// never changes the critic.
//
//   ddpgbc     -mean q / (mean |q| + 1e-6) - alpha log pi(a | s, g), q = min Q'(s, clip(mean), g)
//     discrete  the same with pi = softmax(logits), q = sum over a of pi(a | s, g) min Q'(s, a, g)
//   rejection  |v(s, g, x_t, t) - (a - x_0)|^2, x_t = x_0 + t (a - x_0), x_0 normal, t uniform
#include "algo/policy.h"

static const dc_column *column(const dc_agent *a, const char *name) {
    return dc_dataset_column(a->data, name);
}

int dc_rep_width(const dc_agent *a) {
    return a->options.rep_size ? a->options.rep_size : column(a, "obs")->width;
}

// Rows [state | rep(goal) | `extra` columns], each `repeat` times.
static dc_ref rep_rows(dc_agent *a, const char *name, dc_stream state, dc_stream goal, int extra,
                       int repeat) {
    const dc_column *obs = column(a, "obs");
    int rep = dc_rep_width(a);
    dc_ref x = dc_input(&a->graph, name, a->options.batch * repeat, obs->width + rep + extra);
    dc_feed feed = {.input = x, .column = obs, .stream = state, .repeat = repeat};
    dc_agent_feed(a, feed);
    feed.col0 = obs->width;
    feed.stream = goal;
    feed.column = &a->goals;
    feed.skip = a->goals.values == obs->values ? a->options.rep[0] : 0; // or copied out already
    feed.take = rep;
    dc_agent_feed(a, feed);
    return x;
}

dc_ref dc_rep_input(dc_agent *a, const char *name, dc_stream state, dc_stream goal, int extra) {
    return rep_rows(a, name, state, goal, extra, 1);
}

dc_ref dc_rep_action_input(dc_agent *a, const char *name, dc_stream state, dc_stream goal) {
    dc_ref x = dc_rep_input(a, name, state, goal, dc_agent_act_width(a));
    dc_agent_feed_action(a, x, 0, column(a, "obs")->width + dc_rep_width(a), state, NULL);
    return x;
}

dc_status dc_policy_declare(dc_agent *a, const dc_policy *policy) {
    int act = dc_agent_act_width(a);
    if (policy->kind == DC_POLICY_NONE && policy->after)
        return dc_fail(DC_USAGE, "name a policy, or leave policy_after out",
                       "there is no policy to train after the critic (policy=none)");
    if (policy->kind == DC_POLICY_NONE) return DC_OK;
    if (policy->kind == DC_POLICY_REJECTION && a->actions)
        return dc_fail(DC_UNSUPPORTED, "use policy=ddpgbc",
                       "policy=rejection needs real-valued actions, the data has %d discrete ones",
                       a->actions);
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
    dc_ref x = dc_input(&a->graph, "actor_action", a->options.batch, dc_agent_act_width(a));
    dc_agent_feed_action(a, x, 0, 0, DC_S, NULL);
    return x;
}

// The critic's least opinion of rows [state | rep(goal) | action]; its weights are held.
static dc_ref judged(dc_agent *a, dc_ref rows) {
    const dc_mlp *judge = a->options.rep_size ? &a->oracle : &a->critic;
    return dc_ensemble_min(&a->graph, dc_mlp_apply(&a->graph, judge, rows, DC_STOPPED));
}

static dc_ref gain_and_clone(dc_agent *a, double alpha, dc_ref total, dc_ref q, dc_ref clone) {
    dc_graph *g = &a->graph;
    dc_ref gain = dc_affine(g, dc_relative_mean(g, "loss_q", q), -1, 0);
    total = add_metric(a, "loss_q", total, gain);
    dc_agent_metric(a, "loss_bc", clone);
    return dc_add(g, total, dc_affine(g, clone, alpha, 0));
}

static dc_ref ddpgbc_loss(dc_agent *a, double alpha, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_ref mean = dc_mlp_apply(g, &a->actor, dc_rep_input(a, "actor", DC_S, DC_AG, 0), DC_LIVE);
    dc_ref taken = taken_actions(a);
    dc_ref rows = dc_rep_action_input(a, "actor_critic", DC_S, DC_AG);
    dc_ref own = dc_splice(g, "actor_action", rows, dc_clip(g, mean, -1, 1),
                           column(a, "obs")->width + dc_rep_width(a));
    // -log pi of a Gaussian with unit variance, less its constant.
    dc_ref clone = dc_square(g, "loss_bc", mean, taken, 0.5 * dc_agent_act_width(a));
    return gain_and_clone(a, alpha, total, judged(a, own), clone);
}

// The same for discrete actions: the critic looks at every action of a row.
static dc_ref softmax_loss(dc_agent *a, double alpha, dc_ref total) {
    dc_graph *g = &a->graph;
    int n = a->actions, at = column(a, "obs")->width + dc_rep_width(a);
    dc_ref logits = dc_mlp_apply(g, &a->actor, dc_rep_input(a, "actor", DC_S, DC_AG, 0), DC_LIVE);
    dc_ref rows = rep_rows(a, "actor_critic", DC_S, DC_AG, n, n);
    dc_agent_feed(a,
                  (dc_feed){.input = rows, .col0 = at, .stream = DC_S, .one_hot = n, .repeat = n});
    dc_ref likely = dc_log_likelihood(g, "loss_bc", logits, taken_actions(a));
    dc_ref q = dc_expected(g, logits, judged(a, rows));
    return gain_and_clone(a, alpha, total, q, dc_affine(g, likely, -1, 0));
}

// An input of random numbers, `take` columns.
static dc_ref drawn(dc_agent *a, const char *name, dc_draw draw, int take) {
    dc_ref x = dc_input(&a->graph, name, a->options.batch, take);
    dc_agent_feed(a, (dc_feed){.input = x, .take = take, .draw = draw});
    return x;
}

static dc_ref flow_loss(dc_agent *a, dc_ref total) {
    dc_graph *g = &a->graph;
    int act = dc_agent_act_width(a), at = column(a, "obs")->width + dc_rep_width(a);
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
        return a->actions ? softmax_loss(a, policy->alpha, total)
                          : ddpgbc_loss(a, policy->alpha, total);
    case DC_POLICY_REJECTION:
        return flow_loss(a, total);
    case DC_POLICY_NONE:
        break;
    }
    return total;
}
