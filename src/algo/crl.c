// crl: contrastive RL (Eysenbach et al. 2022). Which states follow (s, a)? f(s, a, g) = phi(s, a) . psi(g) /
// sqrt(latent) learns to distinguish the goal of its own row from those of the other rows of the batch:
//
//   L = mean over members and pairs (i, j) of BCE(f(s_i, a_i, g_j), [i == j]),   g_i a geometric draw after s_i
//     = mean softplus(f) - (1 / batch) mean f(s_i, a_i, g_i)
//
// f is then the logarithm of how much more likely g is after (s, a) than by chance, so the policy (ddpgbc)
// goes up f itself, the least of two members; with q_floor, max(f, q_floor).
#include "algo/policy.h"

#include <math.h>

typedef struct config {
    int64_t latent;
    double q_floor;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_OPTION_INT(config, latent, "512", 1, 4096, "columns of phi and psi"),
    DC_OPTION_REAL(
        config, q_floor, "-1e9", -1e9, 0,
        "f that the policy sees is at least this, and passes no gradient below; OGBench's "
        "table was made with log 1e-6, -13.8155"),
    DC_ALPHA_OPTION(config, "0.1", "weight of behaviour cloning"),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    {0},
};

static const dc_policy_rows policy_rows = {"state", "actor_goal"};

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    const dc_goal_mix ahead = {.future = 1, .law = DC_LAW_GEOMETRIC};
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, ahead, m->gamma,
                           "a state that follows; the others' are its negatives"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "actor_goal", "state"));
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    int latent = (int)c->latent;
    dc_nets_add(
        nets,
        (dc_net){
            .name = "phi", .ensemble = 2, .in = m->obs + m->act, .out = latent, .observations = 1});
    dc_nets_add(
        nets,
        (dc_net){
            .name = "psi", .ensemble = 2, .in = m->goal, .out = latent, .observations = !m->rep});
    dc_policy_network(nets, m, &c->policy);
}

// phi(s, a) / sqrt(latent), so that a product with psi(g) is f.
static dc_ref scaled_phi(dc_graph *g, dc_ref phi) {
    return dc_affine(g, phi, 1 / sqrt(g->nodes[phi].cols), 0);
}

static dc_ref q_of(dc_agent *a, const dc_policy_rows *r, dc_ref action) {
    dc_graph *g = &a->graph;
    dc_ref rows = DC_BATCH(a, "actor_phi", OBS(r->state), BLANK(a->method.act));
    rows = dc_splice(g, "actor_action", rows, action, a->method.obs);
    dc_ref phi = dc_agent_net(a, "phi", rows, DC_STOPPED);
    dc_ref psi = dc_agent_net(a, "psi", DC_BATCH(a, "actor_psi", GOAL(r->goal)), DC_STOPPED);
    const config *c = a->method.config;
    dc_ref least = dc_ensemble_min(g, dc_row_dot(g, scaled_phi(g, phi), psi));
    return c->q_floor > -1e9 ? dc_clip(g, least, c->q_floor, 1e9) : least;
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &a->graph;
    dc_ref phi = dc_agent_net(a, "phi", DC_BATCH(a, "phi", OBS("state"), ACT("state")), DC_LIVE);
    dc_ref psi = dc_agent_net(a, "psi", DC_BATCH(a, "psi", GOAL("goal")), DC_LIVE);
    phi = scaled_phi(g, phi);
    dc_ref all = dc_mean(g, "pairs", dc_softplus(g, dc_pair_dot(g, "pairs", phi, psi)));
    dc_ref own = dc_mean(g, "own_pairs", dc_row_dot(g, phi, psi));
    dc_ref loss = dc_add(g, all, dc_affine(g, own, -1.0 / m->batch, 0));
    dc_ref total = dc_batch_loss(a, "loss_contrast", -1, loss);
    return dc_policy_ddpgbc(a, &c->policy, &policy_rows, q_of, NULL, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    (void)m;
    return dc_policy_act_mean(q, "actor");
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_LOG_RATIO;
    dc_ref phi = dc_infer_net(q, "phi", DC_INFER_INPUT(q, "phi", OBS(NULL), ACT(NULL)));
    dc_ref psi = dc_infer_net(q, "psi", DC_INFER_INPUT(q, "psi", GOAL(NULL)));
    return dc_row_dot(&q->graph, scaled_phi(&q->graph, phi), psi);
}

const dc_algo dc_algo_crl = {.name = "crl",
                             .about = "contrastive RL: which states follow an action",
                             .options = options,
                             .config_size = sizeof(config),
                             .check = dc_need_real_actions,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = query};
