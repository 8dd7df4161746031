// tmd: temporal metric distillation (Myers et al. 2025). A quasimetric is learned from contrasts and kept
// consistent by a backup, so that distances compose as they do for the best of what the data did:
//
//   d(x, y)   MRN: mean over 8 chunks of columns of max(0, largest x - y) in one half + |x - y| in the other
//   D_ij      d(phi(s_i, a_i), psi(g_j)),   N_ij = sg d(psi(s'_i), psi(g_j)),   g_i a geometric draw after s_i
//   L_nce     mean over j of logsumexp_i(l_ij) - l_jj,   l = -D / sqrt(latent)      which state-action led to g_j?
//   L_act     mean over i of d(psi(s_i), phi(s_i, a_i))                              actions are free
//   L_bk      (mean over i, j of b(D_ij, N_ij) + mean over i of b(D_ii, N_ii)) / 2   a step multiplies by gamma
//   b(D, N)   D - N where that exceeds 3, else gamma e^(D - N) - D, least at D = N + log(1 / gamma)
//   L         L_nce + L_act + zeta L_bk,   each the mean of two members
//
// psi stands for states and for goals. If backups alone decided, a step would cost log(1 / gamma); the
// contrast pulls at the scale, too. The policy (ddpgbc) goes up q = -d(phi(s, a), psi(g)), the lesser of
// two members. With a goal representation psi still sees whole observations, and a second net
// V'(s, a, rep(g)) learns their distances for the policy.
#include "algo/policy.h"

#include <math.h>

typedef struct config {
    int64_t latent;
    double zeta;
    dc_policy policy;
} config;

enum { CHUNKS = 8 };         // of the columns of phi and psi
static const double far = 3; // excess of D over N from which on its loss is linear

static const dc_option options[] = {
    DC_OPTION_INT(config, latent, "512", 2 * CHUNKS, 4096,
                  "columns of phi and psi; a multiple of 16"),
    DC_OPTION_REAL(config, zeta, "0.05", 0, 1e6, "weight of the backup's loss"),
    DC_ALPHA_OPTION(config, "0.1", "weight of behaviour cloning"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "actor_goal"};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    if (c->latent % (2 * CHUNKS))
        return dc_fail(DC_USAGE, "give a multiple of 16",
                       "latent=%d cannot be divided into 8 chunks of two halves", (int)c->latent);
    return dc_need_real_actions(m);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    const dc_goal_mix ahead = {.future = 1, .law = DC_LAW_GEOMETRIC};
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_AFTER("next", "state", 1, "the state after it"));
    dc_rows_add(r,
                DC_GOAL("goal", "state", DC_STREAM_GOAL, ahead, m->gamma,
                        "a state that follows; the other rows' state-actions are its negatives"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "actor_goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    int latent = (int)c->latent, taken = m->obs + m->act;
    dc_nets_add(
        nets,
        (dc_net){.name = "phi", .ensemble = 2, .in = taken, .out = latent, .observations = 1});
    dc_nets_add(
        nets,
        (dc_net){.name = "psi", .ensemble = 2, .in = m->obs, .out = latent, .observations = 1});
    if (m->rep)
        dc_nets_add(nets, (dc_net){.name = "goal_value",
                                   .ensemble = 2,
                                   .in = taken + m->goal,
                                   .out = 1,
                                   .observations = 1});
    dc_policy_network(nets, m, &c->policy);
}

// ---- the distance ----

// What the losses share: latent state-actions and states of a batch, (2, batch, latent).
typedef struct latents {
    dc_ref taken;                         // phi(s, a)
    dc_ref state, goal, next, actor_goal; // psi; the last two held
} latents;

static latents embed(dc_agent *a) {
    dc_graph *g = &a->graph;
    const dc_field *parts[] = {DC_FIELDS(OBS("state")), DC_FIELDS(OBS("goal")),
                               DC_FIELDS(OBS("next")), DC_FIELDS(OBS("actor_goal"))};
    dc_ref phi = dc_agent_net(a, "phi", DC_BATCH(a, "phi", OBS("state"), ACT("state")), DC_LIVE);
    dc_ref psi = dc_agent_net(a, "psi", dc_batch_stack(a, "psi", 4, parts), DC_LIVE);
    return (latents){phi, dc_batch_part(a, psi, 0), dc_batch_part(a, psi, 1),
                     dc_stop(g, dc_batch_part(a, psi, 2)), dc_stop(g, dc_batch_part(a, psi, 3))};
}

static dc_ref distance(dc_graph *g, dc_ref x, dc_ref y) {
    return dc_mrn(g, x, y, CHUNKS, DC_MRN_TMD);
}

// From every row of x to every row of y; a row of it is one of y.
static dc_ref distances(dc_graph *g, const char *name, dc_ref x, dc_ref y) {
    return dc_mrn_pairs(g, name, x, y, CHUNKS, DC_MRN_TMD);
}

// Mean of b over all pairs of a kind.
static dc_ref backup(dc_agent *a, const char *name, dc_ref d, dc_ref later) {
    dc_graph *g = &a->graph;
    return dc_mean(g, name, dc_linex(g, d, dc_stop(g, later), far, a->method.gamma));
}

static dc_ref distance_losses(dc_agent *a, const config *c, const latents *z) {
    dc_graph *g = &a->graph;
    dc_ref own = distance(g, z->taken, z->goal), all = distances(g, "pairs", z->taken, z->goal);
    double scale = 1 / sqrt((double)c->latent);
    dc_ref others = dc_logsumexp(g, dc_affine(g, all, -scale, 0));
    dc_ref own_mean = dc_mean(g, "own_pairs", own);
    dc_ref contrast = dc_add(g, dc_mean(g, "contrast", others), dc_affine(g, own_mean, scale, 0));
    dc_ref total = dc_batch_loss(a, "loss_contrast", -1, contrast);
    dc_ref free = dc_mean(g, "loss_action", distance(g, z->state, z->taken));
    total = dc_batch_loss(a, "loss_action", total, free);
    dc_ref goal = dc_stop(g, z->goal), led = distances(g, "next_pairs", z->next, goal);
    dc_ref both = dc_add(g, backup(a, "backup", all, led),
                         backup(a, "own_backup", own, distance(g, z->next, goal)));
    both = dc_affine(g, both, 0.5, 0);
    dc_agent_metric(a, "loss_backup", both);
    dc_agent_metric(a, "distance_mean", own_mean);
    return dc_add(g, total, dc_affine(g, both, c->zeta, 0));
}

// ---- policy ----

// V'(s, a, rep(g)) -> d(phi(s, a), psi(g)), each member its own, at the goals that the policy is trained for.
static dc_ref goal_value_loss(dc_agent *a, const latents *z, dc_ref total) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    dc_ref rows = DC_BATCH(a, "goal_value", OBS(r->state), ACT(r->state), GOAL(r->goal));
    dc_ref v = dc_agent_net(a, "goal_value", rows, DC_LIVE);
    dc_ref d = distance(g, dc_stop(g, z->taken), z->actor_goal);
    return dc_batch_loss(a, "loss_goal_value", total, dc_square(g, "loss_goal_value", v, d, 1));
}

// Distances of an action (1, batch, act) to the policy's goals, by each member's held weights.
static dc_ref judge(dc_agent *a, const latents *z, dc_ref action) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    int obs = a->method.obs, act = a->method.act;
    if (a->method.rep) {
        dc_ref rows = DC_BATCH(a, "actor_value", OBS(r->state), BLANK(act), GOAL(r->goal));
        return dc_agent_net(a, "goal_value", dc_splice(g, "actor_action", rows, action, obs),
                            DC_STOPPED);
    }
    dc_ref rows = dc_splice(g, "actor_action", DC_BATCH(a, "actor_phi", OBS(r->state), BLANK(act)),
                            action, obs);
    return distance(g, dc_agent_net(a, "phi", rows, DC_STOPPED), z->actor_goal);
}

static dc_ref policy_loss(dc_agent *a, const config *c, const latents *z, dc_ref total) {
    dc_graph *g = &a->graph;
    const dc_policy_rows *r = &policy_rows;
    dc_ref mean =
        dc_agent_net(a, "actor", DC_BATCH(a, "actor", OBS(r->state), GOAL(r->goal)), DC_LIVE);
    dc_ref d = judge(a, z, dc_clip(g, mean, -1, 1));
    dc_ref q = dc_ensemble_min(g, dc_affine(g, d, -1, 0));
    return dc_policy_gain(a, &c->policy, r, mean, q, total);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    latents z = embed(a);
    dc_ref total = distance_losses(a, c, &z);
    if (m->rep) total = goal_value_loss(a, &z, total);
    return policy_loss(a, c, &z, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    (void)m;
    return dc_policy_act_mean(q, "actor");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    dc_graph *g = &q->graph;
    dc_ref d;
    if (m->rep && !q->data_goals) {
        d = dc_infer_net(q, "goal_value",
                         DC_INFER_INPUT(q, "rows", OBS(NULL), ACT(NULL), GOAL(NULL)));
    } else {
        dc_ref phi = dc_infer_net(q, "phi", DC_INFER_INPUT(q, "phi", OBS(NULL), ACT(NULL)));
        d = distance(g, phi, dc_infer_net(q, "psi", DC_INFER_INPUT(q, "psi", GOAL(NULL))));
    }
    q->reading = DC_READ_STEPS;
    return dc_affine(g, d, 1 / log(1 / m->gamma), 0);
}

const dc_algo dc_algo_tmd = {.name = "tmd",
                             .about = "temporal metric distillation: a quasimetric from contrasts",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = query,
                             .whole_goals = true};
