// Policy losses and acting, see policy.h. A policy never changes the value: its weights are held.
//
//   ddpgbc     -mean q / (mean |q| + 1e-6) - alpha log pi(a | s, g), q = Q(s, clip(mean), g)
//     discrete  the same with pi = softmax(logits), q = sum over a of pi(a | s, g) Q(s, a, g)
//   awr        -min(exp(alpha adv), 100) log pi(a | s, g)
//   rejection  |v(s, g, x_t, t) - (a - x_0)|^2, x_t = x_0 + t (a - x_0), x_0 normal, t uniform
//
// pi is a Gaussian with unit variance: -log pi is half the squared distance, less a constant.
#include "algo/policy.h"

#include <math.h>

dc_row_rule dc_policy_goal(const dc_policy *p, const dc_method *m, const char *name,
                           const char *of) {
    dc_goal_mix mix = {
        .future = 1 - p->actor_random, .random = p->actor_random, .law = p->actor_law};
    return DC_GOAL(name, of, DC_STREAM_ACTOR_GOAL, mix, m->gamma, "goal of the policy");
}

void dc_policy_network(dc_nets *nets, const dc_method *m, const dc_policy *p) {
    bool flow = p->kind == DC_POLICY_REJECTION;
    dc_nets_add(nets, (dc_net){.name = "actor",
                               .kind = p->layernorm ? DC_NET_MLP : DC_NET_PLAIN,
                               .in = m->obs + m->goal + (flow ? m->act + 1 : 0), // x and t
                               .out = m->act,
                               .scaled = true,
                               .gain = flow ? p->flow_gain : p->head_gain,
                               .policy = true});
}

// ---- losses ----

// The mean of the policy, or its logits.
static dc_ref actor_output(dc_agent *a, const dc_policy_rows *rows) {
    return dc_agent_net(a, "actor", DC_BATCH(a, "actor", OBS(rows->state), GOAL(rows->goal)),
                        DC_LIVE);
}

// -log pi of the data's actions, less its constant.
static dc_ref clone_loss(dc_agent *a, const dc_policy_rows *rows, dc_ref out) {
    dc_graph *g = &a->graph;
    dc_ref taken = DC_BATCH(a, "actor_action", ACT(rows->state));
    if (a->method.actions) return dc_affine(g, dc_log_likelihood(g, "loss_bc", out, taken), -1, 0);
    return dc_square(g, "loss_bc", out, taken, 0.5 * a->method.act);
}

dc_ref dc_policy_clone(dc_agent *a, const dc_policy_rows *rows, dc_ref total) {
    return dc_batch_loss(a, "loss_bc", total, clone_loss(a, rows, actor_output(a, rows)));
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

dc_ref dc_policy_awr(dc_agent *a, double alpha, dc_ref mean, dc_ref target, dc_ref adv) {
    dc_graph *g = &a->graph;
    dc_ref weight = dc_exp(g, dc_clip(g, dc_affine(g, dc_stop(g, adv), alpha, 0), -1e6, log(100)));
    dc_ref distance = dc_row_square(g, mean, dc_stop(g, target));
    return dc_affine(g, dc_mean(g, "awr", dc_mul(g, distance, dc_stop(g, weight))), 0.5, 0);
}

dc_ref dc_policy_flow(dc_agent *a, const dc_policy_rows *rows, dc_ref total) {
    dc_graph *g = &a->graph;
    int act = a->method.act;
    dc_ref noise = DC_BATCH(a, "noise", NOISE(act)), time = DC_BATCH(a, "time", TIME(act));
    dc_ref velocity =
        dc_add(g, DC_BATCH(a, "actor_action", ACT(rows->state)), dc_affine(g, noise, -1, 0));
    dc_ref x = dc_add(g, noise, dc_mul(g, time, velocity));
    dc_ref seen = DC_BATCH(a, "actor", OBS(rows->state), GOAL(rows->goal), BLANK(act), TIME(1));
    seen = dc_splice(g, "actor_path", seen, x, a->method.obs + a->method.goal);
    dc_ref v = dc_agent_net(a, "actor", seen, DC_LIVE);
    return dc_batch_loss(a, "loss_flow", total, dc_square(g, "loss_flow", v, velocity, 1));
}

// ---- acting ----

dc_ref dc_policy_act_mean(dc_infer *q, const char *net) {
    return dc_infer_net(q, net, DC_INFER_INPUT(q, "actor", OBS(NULL), GOAL(NULL)));
}

dc_ref dc_policy_act_best(dc_infer *q, const dc_policy *p, const char *critic) {
    dc_graph *g = &q->graph;
    int act = q->method->act, at = q->method->obs + q->method->goal, n = (int)p->samples;
    dc_ref rows = DC_INFER_INPUT(q, "actor", OBS(NULL), GOAL(NULL), BLANK(act + 1));
    dc_ref judged = DC_INFER_INPUT(q, "critic", OBS(NULL), GOAL(NULL), BLANK(act));
    dc_ref x = dc_infer_noise(q, "noise", n, act);
    x = dc_infer_flow(q, "actor", dc_repeat(g, rows, n), at, x, (int)p->flow_steps);
    x = dc_clip(g, x, -1, 1);
    dc_ref seen = dc_splice(g, "seen", dc_repeat(g, judged, n), x, at);
    dc_ref worth = dc_ensemble_min(g, dc_infer_net(q, critic, seen));
    return dc_pick_best(g, worth, x, n);
}
