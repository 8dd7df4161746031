// Policy losses and acting, see policy.h. A policy never changes the value: its weights are held.
//
//   ddpgbc     -mean q / (mean |q| + 1e-6) - alpha log pi(a | s, g), q = Q(s, clip(mean), g)
//     discrete  the same with pi = softmax(logits), q = sum over a of pi(a | s, g) Q(s, a, g)
//   awr        -min(exp(alpha adv), 100) log pi(a | s, g)
//   rejection  |v(s, g, x_t, t) - (a - x_0)|^2, x_t = x_0 + t (a - x_0), x_0 normal, t uniform
//
// pi is a Gaussian with unit variance: -log pi is half the squared distance, less a constant. Where a method lets its
// deviations be free, they are trained numbers, which no state changes (actor_std).
#include "algo/policy.h"

#include <math.h>

dc_status dc_policy_check(const dc_policy *p, const dc_method *m) {
    if (p->kind == DC_POLICY_NONE && p->after)
        return dc_fail(DC_USAGE, "name a policy, or leave policy_after out",
                       "there is no policy to train after the critic (policy=none)");
    if (p->kind == DC_POLICY_REJECTION && m->actions)
        return dc_fail(DC_UNSUPPORTED, "use policy=ddpgbc",
                       "policy=rejection needs real-valued actions, the data has %d discrete ones",
                       m->actions);
    return DC_OK;
}

dc_row_rule dc_policy_goal(const dc_policy *p, const dc_method *m, const char *name,
                           const char *of) {
    dc_goal_mix mix = {
        .future = 1 - p->actor_random, .random = p->actor_random, .law = p->actor_law};
    return DC_GOAL(name, of, DC_STREAM_ACTOR_GOAL, mix, m->gamma, "goal of the policy");
}

void dc_policy_flow_network(dc_nets *nets, const dc_method *m, const dc_policy *p, const char *name,
                            int out) {
    dc_nets_add(nets, (dc_net){.name = name,
                               .kind = p->layernorm ? DC_NET_MLP : DC_NET_PLAIN,
                               .in = m->obs + m->goal + out + 1, // x and t
                               .out = out,
                               .observations = dc_observations(m, 1),
                               .scaled = true,
                               .gain = p->flow_gain,
                               .policy = true});
}

dc_status dc_policy_check_form(const dc_method *m, const dc_policy *p) {
    if (p->activation == DC_RELU && p->layernorm)
        return dc_fail(DC_USAGE, "set actor_layernorm=off, or actor_activation=gelu",
                       "actors of ReLU have no LayerNorm here");
    if (p->deviation == DC_DEVIATION_FREE && m->actions)
        return dc_fail(DC_USAGE, "set actor_std=one",
                       "a softmax over %d discrete actions has no deviation", m->actions);
    return DC_OK;
}

bool dc_policy_difference(const dc_method *m, int high_target) {
    return high_target == DC_HIGH_DIFFERENCE || (high_target == DC_HIGH_AUTO && !m->rep);
}

dc_status dc_policy_check_high(const dc_method *m, int high_target) {
    if (high_target != DC_HIGH_DIFFERENCE || !m->rep) return DC_OK;
    return dc_fail(DC_USAGE, "set high_target=state or auto, or leave rep out",
                   "a difference to the state needs goals that are whole observations");
}

// Logs of deviations are a network without hidden layers whose input is always 0: its bias, the same in every row.
void dc_policy_gauss_network(dc_nets *nets, const dc_policy *p, const char *name,
                             const char *log_std, int in, int out, int observations) {
    static const dc_int_list none;
    dc_nets_add(nets, (dc_net){.name = name,
                               .kind = p->activation == DC_RELU ? DC_NET_RELU
                                       : p->layernorm           ? DC_NET_MLP
                                                                : DC_NET_PLAIN,
                               .in = in,
                               .out = out,
                               .observations = observations,
                               .hidden = p->hidden.count ? &p->hidden : NULL,
                               .scaled = true,
                               .gain = p->head_gain,
                               .policy = true});
    if (p->deviation == DC_DEVIATION_FREE)
        dc_nets_add(nets, (dc_net){.name = log_std,
                                   .kind = DC_NET_PLAIN,
                                   .in = 1,
                                   .out = out,
                                   .hidden = &none,
                                   .scaled = true,
                                   .gain = 0,
                                   .policy = true});
}

void dc_policy_network(dc_nets *nets, const dc_method *m, const dc_policy *p) {
    if (p->kind == DC_POLICY_REJECTION)
        dc_policy_flow_network(nets, m, p, "actor", m->act);
    else
        dc_policy_gauss_network(nets, p, "actor", "actor_log_std", m->obs + m->goal, m->act,
                                dc_observations(m, 1));
}

// ---- losses ----

// The mean of the policy, or its logits.
static dc_ref actor_output(dc_agent *a, const dc_policy_rows *rows) {
    return dc_agent_net(a, "actor", DC_BATCH(a, "actor", OBS(rows->state), GOAL(rows->goal)),
                        DC_LIVE);
}

// Twice -log pi(target) of every row (1, n, 1), less its constant: sum over columns of ((x - mean) / std)^2 + 2 log std.
static dc_ref distance(dc_graph *g, dc_ref mean, dc_ref log_std, dc_ref target) {
    if (log_std < 0) return dc_row_square(g, mean, target);
    dc_ref rate = dc_exp(g, dc_affine(g, log_std, -1, 0)),
           ones = dc_affine(g, dc_stop(g, log_std), 0, 1);
    dc_ref square = dc_row_square(g, dc_mul(g, mean, rate), dc_mul(g, target, rate));
    return dc_add(g, square, dc_affine(g, dc_row_dot(g, log_std, ones), 2, 0));
}

dc_ref dc_policy_log_std(dc_agent *a, const dc_policy *p, const char *net) {
    if (p->deviation == DC_DEVIATION_ONE) return -1;
    return dc_clip(&a->graph, dc_agent_net(a, net, DC_BATCH(a, net, BLANK(1)), DC_LIVE), -5, 2);
}

dc_ref dc_policy_likelihood(dc_agent *a, const char *name, dc_ref mean, dc_ref log_std,
                            dc_ref target) {
    dc_graph *g = &a->graph;
    return dc_affine(g, dc_mean(g, name, distance(g, mean, log_std, target)), 0.5, 0);
}

// -log pi of the data's actions, less its constant.
static dc_ref clone_loss(dc_agent *a, const dc_policy_rows *rows, dc_ref out) {
    dc_graph *g = &a->graph;
    dc_ref taken = DC_BATCH(a, "actor_action", ACT(rows->state));
    if (a->method.actions) return dc_affine(g, dc_log_likelihood(g, "loss_bc", out, taken), -1, 0);
    return dc_square(g, "loss_bc", out, taken, 0.5 * a->method.act);
}

dc_ref dc_policy_clone(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref total) {
    dc_ref out = actor_output(a, rows), log_std = dc_policy_log_std(a, p, "actor_log_std");
    dc_ref loss = log_std < 0 ? clone_loss(a, rows, out)
                              : dc_policy_likelihood(a, "loss_bc", out, log_std,
                                                     DC_BATCH(a, "actor_action", ACT(rows->state)));
    return dc_batch_loss(a, "loss_bc", total, loss);
}

dc_ref dc_policy_gain(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref out,
                      dc_ref q, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_ref clone = clone_loss(a, rows, out);
    dc_ref gain = dc_affine(g, dc_relative_mean(g, "loss_q", q), -1, 0);
    total = dc_batch_loss(a, "loss_q", total, gain);
    dc_agent_metric(a, "loss_bc", clone);
    return dc_add(g, total, dc_affine(g, clone, p->alpha, 0));
}

dc_ref dc_policy_ddpgbc(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_q_fn *q,
                        dc_q_all_fn *q_all, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_ref out = actor_output(a, rows);
    dc_ref opinion = a->method.actions ? dc_expected(g, out, q_all(a, rows))
                                       : q(a, rows, dc_clip(g, out, -1, 1));
    return dc_policy_gain(a, p, rows, out, opinion, total);
}

dc_ref dc_policy_subgoal(dc_agent *a, bool difference, const char *from, const char *to) {
    dc_ref goal = DC_BATCH(a, to, GOAL(to));
    if (!difference) return goal;
    return dc_add(&a->graph, goal, dc_affine(&a->graph, DC_BATCH(a, from, GOAL(from)), -1, 0));
}

dc_ref dc_policy_awr(dc_agent *a, double alpha, dc_ref mean, dc_ref log_std, dc_ref target,
                     dc_ref adv) {
    dc_graph *g = &a->graph;
    dc_ref weight = dc_exp(g, dc_clip(g, dc_affine(g, dc_stop(g, adv), alpha, 0), -1e6, log(100)));
    dc_ref off = distance(g, mean, log_std, dc_stop(g, target));
    return dc_affine(g, dc_mean(g, "awr", dc_mul(g, off, dc_stop(g, weight))), 0.5, 0);
}

dc_ref dc_policy_imitate(dc_agent *a, const dc_policy *p, const dc_policy_rows *rows, dc_ref adv,
                         dc_ref total) {
    dc_ref taken = DC_BATCH(a, "actor_action", ACT(rows->state));
    dc_ref loss = dc_policy_awr(a, p->alpha, actor_output(a, rows), -1, taken, adv);
    return dc_batch_loss(a, "loss_awr", total, loss);
}

// A flow network from noise to `to` (an action, a subgoal), knowing [state | goal].
typedef struct flow {
    const char *net, *noise, *time, *loss; // names of the network, its draws and its loss
    dc_field state, goal, to;
} flow;

static dc_ref flow_loss(dc_agent *a, const flow *f, dc_ref total) {
    dc_graph *g = &a->graph;
    int width = dc_fields_width(&a->method, DC_FIELDS(f->to));
    dc_ref noise = DC_BATCH(a, f->noise, NOISE(f->noise, width)),
           time = DC_BATCH(a, f->time, TIME(f->time, width));
    dc_ref velocity = dc_add(g, DC_BATCH(a, f->net, f->to), dc_affine(g, noise, -1, 0));
    dc_ref x = dc_add(g, noise, dc_mul(g, time, velocity));
    dc_ref seen = DC_BATCH(a, f->net, f->state, f->goal, BLANK(width), TIME(f->time, 1));
    int at = dc_fields_width(&a->method, DC_FIELDS(f->state, f->goal));
    dc_ref v = dc_agent_net(a, f->net, dc_splice(g, f->net, seen, x, at), DC_LIVE);
    return dc_batch_loss(a, f->loss, total, dc_square(g, f->loss, v, velocity, 1));
}

dc_ref dc_policy_flow(dc_agent *a, const dc_policy_rows *rows, dc_ref total) {
    flow actor = {"actor",          "noise",          "time",          "loss_flow",
                  OBS(rows->state), GOAL(rows->goal), ACT(rows->state)};
    return flow_loss(a, &actor, total);
}

dc_ref dc_policy_flow_levels(dc_agent *a, dc_ref total) {
    flow high = {"high_actor", "high_noise",      "high_time",     "loss_high",
                 OBS("state"), GOAL("high_goal"), GOAL("waypoint")};
    flow low = {"low_actor",  "low_noise",      "low_time",  "loss_low",
                OBS("state"), GOAL("low_goal"), ACT("state")};
    return flow_loss(a, &low, flow_loss(a, &high, total));
}

// ---- acting ----

dc_ref dc_policy_act_mean(dc_infer *q, const char *net) {
    return dc_infer_net(q, net, DC_INFER_INPUT(q, "actor", OBS(NULL), GOAL(NULL)));
}

// Samples (n * count, width) of a flow network, `count` for each row of its input (1, n, in), whose last columns are
// left for x and t.
static dc_ref sample(dc_infer *q, const char *net, const char *noise, dc_ref rows, int width,
                     int count, int64_t steps) {
    int at = q->graph.nodes[rows].cols - width - 1;
    dc_ref x = dc_infer_noise(q, noise, count, width);
    if (count > 1) rows = dc_repeat(&q->graph, rows, count);
    return dc_infer_flow(q, net, rows, at, x, (int)steps);
}

// Of every n candidates x (1, rows * n, width) the one that the least member of a critic values most.
static dc_ref best_of(dc_infer *q, const char *critic, dc_ref x, int n) {
    dc_graph *g = &q->graph;
    dc_ref judged = DC_INFER_INPUT(q, "critic", OBS(NULL), GOAL(NULL), BLANK(g->nodes[x].cols));
    dc_ref seen =
        dc_splice(g, "seen", dc_repeat(g, judged, n), x, q->method->obs + q->method->goal);
    return dc_pick_best(g, dc_ensemble_min(g, dc_infer_net(q, critic, seen)), x, n);
}

dc_ref dc_policy_act_flow(dc_infer *q, const dc_policy *p, int count) {
    int act = q->method->act;
    dc_ref rows = DC_INFER_INPUT(q, "actor", OBS(NULL), GOAL(NULL), BLANK(act + 1));
    dc_ref x = sample(q, "actor", "noise", rows, act, count, p->flow_steps);
    return dc_clip(&q->graph, x, -1, 1);
}

dc_ref dc_policy_act_best(dc_infer *q, const dc_policy *p, const char *critic) {
    int n = (int)p->samples;
    return best_of(q, critic, dc_policy_act_flow(q, p, n), n);
}

dc_ref dc_policy_act_subgoal(dc_infer *q, bool difference) {
    dc_ref w = dc_policy_act_mean(q, "high_actor");
    return difference ? dc_add(&q->graph, DC_INFER_INPUT(q, "state", OBS(NULL)), w) : w;
}

dc_ref dc_policy_act_toward(dc_infer *q, dc_ref w) {
    dc_graph *g = &q->graph;
    dc_ref low = DC_INFER_INPUT(q, "low_actor", OBS(NULL), BLANK(g->nodes[w].cols));
    return dc_infer_net(q, "low_actor", dc_splice(g, "low_actor", low, w, q->method->obs));
}

dc_ref dc_policy_act_levels(dc_infer *q, const dc_policy *p, const char *critic) {
    dc_graph *g = &q->graph;
    const dc_method *m = q->method;
    int n = critic ? (int)p->samples : 1;
    dc_ref high = DC_INFER_INPUT(q, "high_actor", OBS(NULL), GOAL(NULL), BLANK(m->goal + 1));
    dc_ref w = sample(q, "high_actor", "high_noise", high, m->goal, n, p->flow_steps);
    if (critic) w = best_of(q, critic, w, n);
    dc_ref low = DC_INFER_INPUT(q, "low_actor", OBS(NULL), BLANK(m->goal + m->act + 1));
    low = dc_splice(g, "low_actor", low, w, m->obs);
    dc_ref x = sample(q, "low_actor", "low_noise", low, m->act, 1, p->flow_steps);
    return dc_clip(g, x, -1, 1);
}
