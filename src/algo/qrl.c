// qrl: quasimetric RL (Wang et al. 2023). A distance that obeys the triangle inequality by construction,
// d(s, g) = IQE(phi(s), phi(g)), is made as large as it can be between random states while single steps
// cost no more than 1:
//
//   L_neg = mean of 100 softplus(5 - d(s, g) / 100)              g any row: push apart, up to about 500 steps
//   P     = mean of max(d(s, s') - 1, 0)^2
//   L_V   = L_neg + sg(lambda) P + lambda (eps - sg(P))           lambda = exp(l) rises while P > eps = 0.05
//   L_dyn = mean of (d(s', z) + d(z, s')) / 2,  z = phi(s) + D(phi(s), a): where an action leads
//
// The policy (ddpgbc) goes up q = -d(phi(s) + D(phi(s), a), g). With a goal representation phi still sees
// whole observations, and a second net V'(phi(s), rep(g)) learns their distances for the policy.
//
// IQE (Wang and Isola 2022): columns in groups of 8; of each group the length of the union of the
// intervals [x_i, y_i]; the distance is a trained mix, sigmoid(rho), of their mean and their maximum.
// quasimetric=mrn (Liu et al. 2023) takes in its place the Euclidean distance of one half of the columns
// plus the largest excess of x over y in the other.
#include "algo/policy.h"

typedef enum quasimetric { IQE, MRN } quasimetric;

typedef struct config {
    int64_t latent;
    int quasimetric;
    double eps;
    dc_policy policy;
} config;

enum { GROUP = 8 }; // columns of an IQE component

static const dc_option options[] = {
    DC_OPTION_INT(config, latent, "512", GROUP, 4096, "columns of phi; a multiple of 8"),
    DC_OPTION_CHOICE(config, quasimetric, "iqe", "iqe|mrn", "form of the distance of two phi"),
    DC_OPTION_REAL(config, eps, "0.05", 0, 100, "squared excess of a single step that is allowed"),
    DC_ALPHA_OPTION(config, "0.003", "weight of behaviour cloning"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "actor_goal"};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    if (c->latent % GROUP)
        return dc_fail(DC_USAGE, "give a multiple of 8",
                       "latent=%d cannot be divided into groups of 8", (int)c->latent);
    return dc_need_real_actions(m);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    const dc_goal_mix anywhere = {.random = 1};
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_AFTER("next", "state", 1, "the state after it"));
    dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, anywhere, m->gamma, "any state"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "actor_goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    int latent = (int)c->latent;
    dc_nets_add(nets, (dc_net){.name = "phi", .in = m->obs, .out = latent, .observations = 1});
    dc_nets_add(nets, (dc_net){.name = "dynamics", .in = latent + m->act, .out = latent});
    if (c->quasimetric == IQE) dc_nets_add(nets, (dc_net){.name = "rho", .kind = DC_NET_SCALAR});
    dc_nets_add(nets, (dc_net){.name = "lambda", .kind = DC_NET_SCALAR});
    if (m->rep)
        dc_nets_add(
            nets, (dc_net){.name = "goal_value", .ensemble = 2, .in = latent + m->goal, .out = 1});
    dc_policy_network(nets, m, &c->policy);
}

// What the losses share: the latent states of a batch.
typedef struct latents {
    dc_ref state, next, goal, actor_goal; // (1, batch, latent)
} latents;

static latents embed(dc_agent *a) {
    const dc_field *parts[] = {DC_FIELDS(OBS("state")), DC_FIELDS(OBS("next")),
                               DC_FIELDS(OBS("goal")), DC_FIELDS(OBS("actor_goal"))};
    dc_ref z =
        dc_agent_net(a, "phi", dc_batch_stack(a, "phi", a->method.rep ? 3 : 4, parts), DC_LIVE);
    return (latents){dc_batch_part(a, z, 0), dc_batch_part(a, z, 1), dc_batch_part(a, z, 2),
                     a->method.rep ? -1 : dc_stop(&a->graph, dc_batch_part(a, z, 3))};
}

static dc_ref distance(dc_agent *a, dc_ref x, dc_ref y, dc_use use) {
    const config *c = a->method.config;
    if (c->quasimetric == MRN) return dc_mrn(&a->graph, x, y, 1, DC_MRN_QRL);
    return dc_iqe(&a->graph, x, y, dc_agent_scalar(a, "rho", use), GROUP);
}

// Where an action leads: z + D([z | action]). Nullable: action -1, which is the data's
static dc_ref predict(dc_agent *a, const char *name, dc_ref z, dc_ref action, dc_use use) {
    dc_graph *g = &a->graph;
    int latent = g->nodes[z].cols;
    dc_ref rows = action < 0 ? DC_BATCH(a, name, BLANK(latent), ACT("state"))
                             : DC_BATCH(a, name, BLANK(latent), BLANK(a->method.act));
    rows = dc_splice(g, name, rows, z, 0);
    if (action >= 0) rows = dc_splice(g, name, rows, action, latent);
    return dc_add(g, z, dc_agent_net(a, "dynamics", rows, use));
}

static dc_ref value_losses(dc_agent *a, const config *c, const latents *z) {
    dc_graph *g = &a->graph;
    dc_ref far = distance(a, z->state, z->goal, DC_LIVE);
    dc_ref near = dc_softplus(g, dc_affine(g, far, -0.01, 5));
    dc_ref total = dc_batch_loss(a, "loss_negative", -1,
                                 dc_affine(g, dc_mean(g, "loss_negative", near), 100, 0));
    dc_ref step = distance(a, z->state, z->next, DC_LIVE);
    dc_ref one =
        dc_affine(g, dc_stop(g, step), 0, 1); // squared hinge: an expectile of one side alone
    dc_ref excess = dc_affine(g, dc_expectile(g, "loss_local", step, one, -1, 0), 0.5, 0);
    dc_ref lambda = dc_exp(g, dc_agent_scalar(a, "lambda", DC_LIVE));
    dc_agent_metric(a, "loss_local", excess);
    total = dc_add(g, total, dc_mul(g, excess, dc_stop(g, lambda)));
    dc_ref slack = dc_affine(g, dc_stop(g, excess), -1, c->eps);
    dc_agent_metric(a, "distance_mean", dc_mean(g, "distance_mean", far));
    return dc_batch_loss(a, "loss_lambda", total, dc_mul(g, lambda, slack));
}

static dc_ref dynamics_loss(dc_agent *a, const latents *z, dc_ref total) {
    dc_graph *g = &a->graph;
    dc_ref led = predict(a, "dynamics", z->state, -1, DC_LIVE);
    dc_ref both = dc_add(g, distance(a, z->next, led, DC_LIVE), distance(a, led, z->next, DC_LIVE));
    return dc_batch_loss(a, "loss_dynamics", total,
                         dc_affine(g, dc_mean(g, "loss_dynamics", both), 0.5, 0));
}

// V'(phi(s), rep(g)) -> d(s, g), phi held.
static dc_ref goal_value_loss(dc_agent *a, const latents *z, dc_ref total) {
    dc_graph *g = &a->graph;
    int latent = g->nodes[z->state].cols;
    dc_ref rows = DC_BATCH(a, "goal_value", BLANK(latent), GOAL("goal"));
    rows = dc_splice(g, "goal_value", rows, dc_stop(g, z->state), 0);
    dc_ref v = dc_agent_net(a, "goal_value", rows, DC_LIVE);
    dc_ref d = distance(a, dc_stop(g, z->state), dc_stop(g, z->goal), DC_STOPPED);
    return dc_batch_loss(a, "loss_goal_value", total, dc_square(g, "loss_goal_value", v, d, 1));
}

// ---- policy ----

static dc_ref policy_loss(dc_agent *a, const config *c, const latents *z, dc_ref total) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    dc_ref mean =
        dc_agent_net(a, "actor", DC_BATCH(a, "actor", OBS(r->state), GOAL(r->goal)), DC_LIVE);
    dc_ref led =
        predict(a, "actor_dynamics", dc_stop(g, z->state), dc_clip(g, mean, -1, 1), DC_STOPPED);
    dc_ref d;
    if (a->method.rep) {
        dc_ref rows = DC_BATCH(a, "actor_value", BLANK(g->nodes[led].cols), GOAL(r->goal));
        rows = dc_splice(g, "actor_value", rows, led, 0);
        d = dc_ensemble_mean(g, dc_agent_net(a, "goal_value", rows, DC_STOPPED));
    } else {
        d = distance(a, led, z->actor_goal, DC_STOPPED);
    }
    return dc_policy_gain(a, &c->policy, r, mean, dc_affine(g, d, -1, 0), total);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    latents z = embed(a);
    dc_ref total = value_losses(a, c, &z);
    total = dynamics_loss(a, &z, total);
    if (m->rep) total = goal_value_loss(a, &z, total);
    return policy_loss(a, c, &z, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    (void)m;
    return dc_policy_act_mean(q, "actor");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    dc_graph *g = &q->graph;
    q->reading = DC_READ_STEPS;
    dc_ref z = dc_infer_net(q, "phi", DC_INFER_INPUT(q, "state", OBS(NULL)));
    if (m->rep && !q->data_goals) {
        dc_ref rows = DC_INFER_INPUT(q, "goal", BLANK(g->nodes[z].cols), GOAL(NULL));
        return dc_infer_net(q, "goal_value", dc_splice(g, "rows", rows, z, 0));
    }
    dc_ref goal = dc_infer_net(q, "phi", DC_INFER_INPUT(q, "goal", GOAL(NULL)));
    const config *c = m->config;
    if (c->quasimetric == MRN) return dc_mrn(g, z, goal, 1, DC_MRN_QRL);
    return dc_iqe(g, z, goal, dc_net_scalar(g, q->nets, "rho", DC_STOPPED), GROUP);
}

const dc_algo dc_algo_qrl = {.name = "qrl",
                             .about = "quasimetric RL: distances that obey the triangle inequality",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = query,
                             .whole_goals = true};
