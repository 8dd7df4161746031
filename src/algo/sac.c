// sac: soft actor-critic (Haarnoja et al. 2018) for what learns from its own steps (online/online.h). Q(s, c, a)
// estimates the discounted sum of rewards under a command c; the policy is a Gaussian squashed by tanh:
//
//   pi      a = tanh(u), u = mean + std eps, eps normal, log std clipped to [-5, std_high]
//   r       = reward (base + pull . c), columns of the data (env/plane.h)
//   y       r + gamma mask (agg over members of Qbar(s', c', a') - alpha log pi(a')), a' a sample at (s', c')
//   L_Q     = mean over members and rows of (Q(s, c, a) - y)^2
//   L_pi    = mean(alpha log pi(a~) - agg over members of Q(s, c, a~)), a~ a sample at (s, c)
//   L_alpha = alpha (-mean log pi(a~) - H),  alpha = alpha_start e^l, H = -entropy actions
//
// agg is min or mean. mask is 0 where the rules ended the episode. A share `relabel` of the rows has the command of
// another row, at s and s' alike: since rewards are linear in commands, what it would have been worth is known
// exactly. Without relabelling c and c' are the commands that stood there. Held fixed: y; alpha and Q's weights in
// L_pi; log pi in L_alpha. Acts by tanh(mean + std eps), which is tanh(mean) as long as nobody draws eps.
#include "algo/batch.h"
#include "algo/squashed.h"

#include <math.h>

enum { AGG_MIN, AGG_MEAN };

typedef struct config {
    int agg;
    bool critic_layernorm, actor_layernorm;
    dc_int_list actor_hidden;
    double actor_gain, std_high, alpha_start, entropy, reward, relabel;
} config;

static const dc_option options[] = {
    DC_OPTION_CHOICE(config, agg, "min", "min|mean", "how members of the critic are combined"),
    DC_OPTION_BOOL(config, critic_layernorm, "off", "LayerNorm in the critics"),
    DC_OPTION_BOOL(config, actor_layernorm, "off", "LayerNorm in the policy's network"),
    DC_OPTION_LIST(config, actor_hidden, "256,256", 1, 8192,
                   "widths of the policy's hidden layers"),
    DC_OPTION_REAL(config, actor_gain, "0.1", 0, 10,
                   "factor on the initial weights of the policy's last layer"),
    DC_OPTION_REAL(config, std_high, "2", -5, 2, "most log standard deviation of the policy"),
    DC_OPTION_REAL(config, alpha_start, "1", 1e-6, 1e3, "temperature at the start"),
    DC_OPTION_REAL(config, entropy, "0.5", -10, 10,
                   "the temperature keeps the policy's entropy near minus this for each action"),
    DC_OPTION_REAL(config, reward, "1", 0, 1e6, "factor on rewards"),
    DC_OPTION_REAL(config, relabel, "0", 0, 1, "share of rows under another row's command"),
    {0},
};

static const dc_need needs[] = {
    {"command", DC_NEED_GOAL}, {"next_obs", DC_NEED_OBS}, {"next_command", DC_NEED_GOAL},
    {"base", DC_NEED_ONE},     {"pull", DC_NEED_GOAL},    {"mask", DC_NEED_ONE},
    {NULL, DC_NEED_ONE},
};

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a step that was taken"));
    if (c->relabel <= 0) return;
    dc_goal_mix mix = {.current = 1 - c->relabel, .random = c->relabel};
    dc_rows_add(r, DC_GOAL("command", "state", DC_STREAM_GOAL, mix, 0, "whose command counts"));
}

static dc_net_kind kind(bool layernorm) {
    return layernorm ? DC_NET_MLP : DC_NET_PLAIN;
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    dc_nets_add(nets, (dc_net){.name = "critic",
                               .kind = kind(c->critic_layernorm),
                               .ensemble = 2,
                               .in = m->obs + m->goal + m->act,
                               .out = 1,
                               .target = true});
    dc_nets_add(nets, (dc_net){.name = "alpha", .kind = DC_NET_SCALAR}); // l
    dc_nets_add(nets, (dc_net){.name = "actor",
                               .kind = kind(c->actor_layernorm),
                               .in = m->obs + m->goal,
                               .out = 2 * m->act,
                               .hidden = &c->actor_hidden,
                               .scaled = true,
                               .gain = dc_squashed_gain(&c->actor_hidden, m->act, c->actor_gain),
                               .policy = true});
}

// log pi of each row (1, batch, 1).
static dc_ref log_likelihood(dc_agent *a, const dc_squashed *s) {
    dc_graph *g = &a->graph;
    dc_ref sum = dc_row_dot(g, dc_squashed_log_pi(a, s), dc_affine(g, s->eps, 0, 1));
    return dc_affine(g, sum, 1, -dc_squashed_constant(&a->method));
}

// alpha, from its trained logarithm.
static dc_ref temperature(dc_agent *a, const config *c) {
    dc_graph *g = &a->graph;
    return dc_exp(g, dc_affine(g, dc_agent_scalar(a, "alpha", DC_LIVE), 1, log(c->alpha_start)));
}

static dc_ref combine(dc_graph *g, const config *c, dc_ref q) {
    return c->agg == AGG_MIN ? dc_ensemble_min(g, q) : dc_ensemble_mean(g, q);
}

// Fields of what the policy sees before a step, and after it.
typedef struct sight {
    dc_field state, command;
} sight;

static sight before(const config *c) {
    return (sight){OBS("state"), GOAL(c->relabel > 0 ? "command" : "state")};
}

static sight after(const dc_method *m, const config *c) {
    sight s = {COLUMN("state", "next_obs", m->obs), GOAL("command")};
    if (c->relabel <= 0) s.command = COLUMN("state", "next_command", m->goal);
    return s;
}

// Members' estimates (2, batch, 1) of actions that the policy proposes.
static dc_ref critic(dc_agent *a, sight s, dc_ref action, dc_use use) {
    dc_ref x = DC_BATCH(a, "critic", s.state, s.command, BLANK(a->method.act));
    x = dc_splice(&a->graph, "critic", x, action, a->method.obs + a->method.goal);
    return dc_agent_net(a, "critic", x, use);
}

static dc_ref reward(dc_agent *a, const config *c) {
    dc_graph *g = &a->graph;
    dc_ref base = DC_BATCH(a, "base", COLUMN("state", "base", 1)),
           pull = DC_BATCH(a, "pull", COLUMN("state", "pull", a->method.goal)),
           command = DC_BATCH(a, "command", before(c).command);
    return dc_affine(g, dc_add(g, base, dc_row_dot(g, pull, command)), c->reward, 0);
}

static dc_ref critic_loss(dc_agent *a, const config *c, dc_ref out, dc_ref alpha) {
    dc_graph *g = &a->graph;
    dc_squashed next = dc_squashed_draw(a, out, c->std_high, "next_noise");
    dc_ref later = combine(g, c, critic(a, after(&a->method, c), next.action, DC_EMA));
    // A product with one row for all: alpha times each row's log pi.
    dc_ref cost = dc_pair_dot(g, "cost", log_likelihood(a, &next), alpha);
    dc_ref soft = dc_add(g, later, dc_affine(g, cost, -1, 0));
    dc_ref mask = DC_BATCH(a, "mask", COLUMN("state", "mask", 1)), r = reward(a, c);
    dc_ref y = dc_add(g, r, dc_affine(g, dc_mul(g, mask, soft), a->method.gamma, 0));
    dc_ref x = DC_BATCH(a, "critic", before(c).state, before(c).command, ACT("state"));
    dc_ref q = dc_agent_net(a, "critic", x, DC_LIVE);
    dc_agent_metric(a, "reward", dc_mean(g, "reward", r));
    dc_agent_metric(a, "value_mean", dc_mean(g, "value_mean", q));
    return dc_batch_loss(a, "loss_critic", -1, dc_square(g, "loss_critic", q, dc_stop(g, y), 1));
}

static dc_ref policy_loss(dc_agent *a, const config *c, dc_ref out, dc_ref alpha, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_squashed own = dc_squashed_draw(a, out, c->std_high, "actor_noise");
    dc_ref q = combine(g, c, critic(a, before(c), own.action, DC_STOPPED));
    dc_ref log_pi = dc_mean(g, "log_pi", log_likelihood(a, &own));
    dc_ref gain = dc_affine(g, dc_mean(g, "q", q), -1, 0);
    total = dc_batch_loss(a, "loss_actor", total,
                          dc_add(g, dc_mul(g, dc_stop(g, alpha), log_pi), gain));
    dc_agent_metric(a, "log_pi", log_pi);
    dc_agent_metric(a, "alpha", alpha);
    dc_ref excess = dc_affine(g, dc_stop(g, log_pi), -1, c->entropy * a->method.act);
    return dc_batch_loss(a, "loss_alpha", total, dc_mul(g, alpha, excess));
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    sight own = before(c), next = after(m, c);
    const dc_field *here = DC_FIELDS(own.state, own.command),
                   *there = DC_FIELDS(next.state, next.command);
    // The policy at both in one application; only the first is trained.
    dc_ref out = dc_agent_net(
        a, "actor", dc_batch_stack(a, "actor", 2, (const dc_field *const[]){here, there}), DC_LIVE);
    dc_ref alpha = temperature(a, c);
    dc_ref total =
        critic_loss(a, c, dc_stop(&a->graph, dc_batch_part(a, out, 1)), dc_stop(&a->graph, alpha));
    return policy_loss(a, c, dc_batch_part(a, out, 0), alpha, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &q->graph;
    dc_ref out = dc_infer_net(q, "actor", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
    dc_ref eps = dc_infer_noise(q, "noise", 1, m->act); // zeros until somebody draws
    dc_ref away = dc_mul(g, dc_exp(g, dc_squashed_log_std(g, out, m->act, c->std_high)), eps);
    return dc_tanh(g, dc_add(g, dc_columns(g, out, 0, m->act), away));
}

const dc_algo dc_algo_sac = {.name = "sac",
                             .about = "soft actor-critic, from its own steps (dcrl expert train)",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = dc_need_real_actions,
                             .needs = needs,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act};
