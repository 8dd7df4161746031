// sacbc: soft actor-critic with behaviour cloning and goals (SAC+BC; Park et al. 2025). Q(s, a, g) = gamma^steps
// bootstraps from the action that the policy itself would take next; the policy is a Gaussian squashed by tanh:
//
//   pi      a = tanh(u), u = mean + std eps, eps normal, log std clipped to [-5, 2]
//   y       1 at the goal, else gamma agg over members of sigmoid Qbar(s', a', g), a' a sample at (s', g)
//   L_Q     = mean over members and rows of the cross-entropy of Q(s, a, g), a logit, and y
//   L_pi    = mean(lambda log pi(a~) - q) + alpha mean |q| mean over rows of |a~ - a|^2,
//             q = mean over members of Q(s, a~, g), the logit; a~ a sample at (s, g), g from the policy's goals
//   L_lam   = lambda (-mean log pi(a~) - H),  lambda = e^l, H = -actions / 2: keeps the entropy near H
//
// agg is min or mean. The target has no entropy in it. Held fixed: y; lambda, mean |q| and Q's weights in L_pi;
// log pi in L_lam. So gradient reaches the policy through a~ and log pi. Acts by tanh(mean).
#include "algo/policy.h"
#include "algo/returns.h"
#include "algo/squashed.h"

enum { AGG_MIN, AGG_MEAN };

typedef struct config {
    int agg;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_CHOICE(config, agg, "min", "min|mean",
                     "how members of the target critic are combined"),
    DC_GOAL_OPTIONS_BY(config, "uniform"),
    DC_ALPHA_OPTION(config, "1", "weight of behaviour cloning"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "on"),
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
    dc_nets_add(nets, (dc_net){.name = "critic",
                               .ensemble = 2,
                               .in = m->obs + m->goal + m->act,
                               .out = 1,
                               .observations = dc_observations(m, 1),
                               .target = true});
    dc_nets_add(nets, (dc_net){.name = "lambda", .kind = DC_NET_SCALAR}); // l
    dc_nets_add(nets, (dc_net){.name = "actor",
                               .kind = c->policy.layernorm ? DC_NET_MLP : DC_NET_PLAIN,
                               .in = m->obs + m->goal,
                               .out = 2 * m->act,
                               .observations = dc_observations(m, 1),
                               .scaled = true,
                               .gain = dc_squashed_gain(&m->hidden, m->act, c->policy.head_gain),
                               .policy = true});
}

enum { LOG_STD_MOST = 2 };

// Mean over rows of log pi of a sample.
static dc_ref log_likelihood(dc_agent *a, const dc_squashed *s) {
    dc_graph *g = &a->graph;
    return dc_affine(g, dc_mean(g, "log_pi", dc_squashed_log_pi(a, s)), a->method.act,
                     -dc_squashed_constant(&a->method));
}

// Q's logits (2, batch, 1) of an action that the policy proposes.
static dc_ref critic(dc_agent *a, const char *state, const char *goal, dc_ref action, dc_use use) {
    dc_ref rows = DC_BATCH(a, "critic", OBS(state), GOAL(goal), BLANK(a->method.act));
    rows = dc_splice(&a->graph, "critic", rows, action, a->method.obs + a->method.goal);
    return dc_agent_net(a, "critic", rows, use);
}

static dc_ref critic_loss(dc_agent *a, const config *c, dc_ref out) {
    dc_graph *g = &a->graph;
    dc_squashed next = dc_squashed_draw(a, out, LOG_STD_MOST, "next_noise");
    dc_ref bar = dc_sigmoid(g, critic(a, "next", "goal", next.action, DC_EMA));
    dc_ref later = c->agg == AGG_MIN ? dc_ensemble_min(g, bar) : dc_ensemble_mean(g, bar);
    dc_ref steps = DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    dc_ref y =
        dc_within(g, steps, dc_affine(g, steps, 0, 1), dc_affine(g, later, a->method.gamma, 0), 0);
    dc_ref x = DC_BATCH(a, "critic", OBS("state"), GOAL("goal"), ACT("state"));
    dc_ref q = dc_agent_net(a, "critic", x, DC_LIVE);
    dc_agent_metric(a, "value_mean", dc_mean(g, "value_mean", dc_sigmoid(g, q)));
    return dc_batch_loss(a, "loss_critic", -1, dc_bce(g, "loss_critic", q, y, 0.5, 2));
}

static dc_ref policy_loss(dc_agent *a, const config *c, dc_ref out, dc_ref total) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    dc_squashed own = dc_squashed_draw(a, out, LOG_STD_MOST, "actor_noise");
    dc_ref q = dc_ensemble_mean(g, critic(a, r->state, r->goal, own.action, DC_STOPPED));
    dc_ref log_pi = log_likelihood(a, &own),
           lambda = dc_exp(g, dc_agent_scalar(a, "lambda", DC_LIVE));
    dc_ref taken = DC_BATCH(a, "actor_action", ACT(r->state));
    dc_ref clone = dc_square(g, "loss_bc", own.action, taken, a->method.act);
    dc_ref size = dc_stop(g, dc_mean(g, "q_size", dc_abs(g, q)));

    dc_ref gain = dc_affine(g, dc_mean(g, "q", q), -1, 0);
    dc_ref loss = dc_add(g, dc_mul(g, dc_stop(g, lambda), log_pi), gain);
    loss = dc_add(g, loss, dc_affine(g, dc_mul(g, size, clone), c->policy.alpha, 0));
    total = dc_batch_loss(a, "loss_actor", total, loss);
    dc_agent_metric(a, "loss_bc", clone);
    dc_agent_metric(a, "log_pi", log_pi);

    dc_ref excess = dc_affine(g, dc_stop(g, log_pi), -1, 0.5 * a->method.act);
    return dc_batch_loss(a, "loss_lambda", total, dc_mul(g, lambda, excess));
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    const dc_field *own = DC_FIELDS(OBS(policy_rows.state), GOAL(policy_rows.goal)),
                   *next = DC_FIELDS(OBS("next"), GOAL("goal"));
    // The policy at both in one application; only the first is trained.
    dc_ref out = dc_agent_net(
        a, "actor", dc_batch_stack(a, "actor", 2, (const dc_field *const[]){own, next}), DC_LIVE);
    dc_ref total = critic_loss(a, c, dc_stop(&a->graph, dc_batch_part(a, out, 1)));
    return policy_loss(a, c, dc_batch_part(a, out, 0), total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    dc_graph *g = &q->graph;
    return dc_tanh(g, dc_columns(g, dc_policy_act_mean(q, "actor"), 0, m->act));
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_LOGIT;
    return dc_infer_net(q, "critic", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL), ACT(NULL)));
}

const dc_algo dc_algo_sacbc = {.name = "sacbc",
                               .about = "soft actor-critic, held near the data's actions",
                               .options = options,
                               .config_size = sizeof(config),
                               .check = dc_need_real_actions,
                               .rows = rows,
                               .networks = networks,
                               .losses = losses,
                               .act = act,
                               .query = query};
