// The value form: an ensemble Q(s, a, g), one logit a member, sigmoid(logit) = gamma^steps, by
// cross-entropy.
//
//   segment       Q(i, j) -> sg Q(i, k) Qbar(k, j), a child of one step being gamma; lambda weighs
//                 a pair by (1 + log_gamma Q(i, j))^-lambda
//   propagation   Q(s, g) -> gamma^(g - s) where that is at most n, else gamma^n' Qbar(s_n', g)
//   grounding     Q(i, i + 1) -> gamma
//   oracle        Q'(s, a, rep(g)) -> sg Q(s, a, g): a second ensemble that sees the goal as the
//                 task gives it
//
// The policy's loss is added (policy.h).
//
// Targets are per member: no min, no mean. Comes from a method's dc_backup; goes to train/ as loss
// and metrics.
#include "algo/backup.h"

#include <math.h>

static dc_ref discounted(dc_agent *a, dc_ref steps) {
    return dc_power(&a->graph, steps, a->options.gamma);
}

// The learned value of a child, or gamma^steps where its span is known.
static dc_ref child(dc_agent *a, const dc_backup *b, dc_ref steps, dc_ref logit) {
    return dc_within(&a->graph, steps, discounted(a, steps), dc_sigmoid(&a->graph, logit),
                     b->known);
}

// (1 + log_gamma Q)^-lambda, or -1 where all pairs weigh alike.
static dc_ref nearness(dc_agent *a, const dc_backup *b, dc_ref logit) {
    dc_graph *g = &a->graph;
    if (b->lambda <= 0) return -1;
    dc_ref nats = dc_softplus(g, dc_affine(g, dc_stop(g, logit), -1, 0)); // -log Q
    return dc_decay(g, dc_affine(g, nats, -1 / log(a->options.gamma), 0), b->lambda);
}

static dc_ref segment_loss(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_ref target =
        dc_mul(&a->graph, child(a, b, n->left, n->first), child(a, b, n->right, n->second));
    return dc_bce_weighted(&a->graph, "loss_dc", n->parent, target, nearness(a, b, n->parent),
                           b->kappa_dc, 2); // 0.5 is plain cross-entropy
}

static dc_ref propagation_loss(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref far = dc_mul(g, dc_sigmoid(g, n->boot), discounted(a, n->nsteps));
    dc_ref target = dc_within(g, n->off, discounted(a, n->off), far, b->rows.n);
    return dc_bce(g, "loss_prop", n->prop, target, b->kappa_prop > 0 ? b->kappa_prop : 0.7, 1);
}

static dc_ref grounding_loss(dc_agent *a, const dc_backup_nodes *n) {
    dc_ref gamma = dc_affine(&a->graph, dc_stop(&a->graph, n->ground), 0, a->options.gamma);
    return dc_bce(&a->graph, "loss_ground", n->ground, gamma, 0.5, 2);
}

// Distil on the rows of the propagation loss, which cover goals everywhere, else on segments.
static dc_ref oracle_loss(dc_agent *a, const dc_backup_nodes *n) {
    bool prop = n->prop >= 0;
    dc_ref x = dc_rep_action_input(a, "oracle", prop ? DC_P : DC_I, prop ? DC_G : DC_J);
    dc_ref logit = dc_mlp_apply(&a->graph, &a->oracle, x, DC_LIVE);
    dc_ref target = dc_sigmoid(&a->graph, dc_stop(&a->graph, prop ? n->prop : n->parent));
    return dc_bce(&a->graph, "loss_oracle", logit, target, 0.5, 2);
}

static dc_ref sum(dc_agent *a, dc_ref total, const char *name, dc_ref part) {
    dc_agent_metric(a, name, part);
    return total < 0 ? part : dc_add(&a->graph, total, part);
}

static dc_ref losses(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n,
                     const dc_policy *policy) {
    dc_ref total = -1;
    if (b->rows.segments != DC_SEG_NONE) total = sum(a, total, "loss_dc", segment_loss(a, b, n));
    if (b->rows.propagation) total = sum(a, total, "loss_prop", propagation_loss(a, b, n));
    if (b->rows.grounding) total = sum(a, total, "loss_ground", grounding_loss(a, n));
    if (a->options.rep_size) total = sum(a, total, "loss_oracle", oracle_loss(a, n));
    return dc_policy_loss(a, policy, total);
}

// Networks: the critic has a target, so it comes first in the slab.
static dc_status declare(dc_agent *a, const dc_policy *policy) {
    int obs = dc_dataset_column(a->data, "obs")->width, act = dc_agent_act_width(a);
    int rep = dc_rep_width(a);
    const dc_int_list *hidden = &a->options.hidden;
    dc_mlp_declare(&a->critic, &a->params, "critic", 2, 2 * obs + act, hidden, 1, 1, true);
    if (a->options.rep_size)
        dc_mlp_declare(&a->oracle, &a->params, "oracle_critic", 2, obs + rep + act, hidden, 1, 1,
                       false);
    return dc_policy_declare(a, policy);
}

dc_status dc_value_build(dc_agent *a, const dc_backup *b, const dc_policy *policy) {
    DC_TRY(dc_agent_count_actions(a));
    DC_TRY(declare(a, policy));
    a->known = b->known;
    a->candidates = b->candidates;
    dc_backup_nodes nodes;
    dc_backup_rows(a, b, &nodes);
    dc_ref loss = losses(a, b, &nodes, policy);
    dc_ref q = dc_sigmoid(&a->graph, nodes.prop >= 0 ? nodes.prop : nodes.parent);
    dc_agent_metric(a, "value_mean", dc_mean(&a->graph, "value_mean", q));
    dc_sampler_spec spec = b->rows;
    spec.seed = a->options.seed;
    spec.batch = a->options.batch;
    spec.gamma = a->options.gamma;
    spec.pair_law = DC_LAW_GEOMETRIC;
    spec.goal_law = (dc_law)b->goals.law;
    spec.goal_current = b->goals.current;
    spec.goal_future = b->goals.future;
    spec.goal_random = b->goals.random;
    spec.choose = dc_choose_split;
    spec.choose_ctx = a;
    spec.actor = policy->kind != DC_POLICY_NONE;
    spec.actor_random = policy->actor_random;
    spec.actor_law = (dc_law)policy->actor_law;
    return dc_agent_finish(a, loss, &spec);
}

dc_status dc_backup_build(dc_agent *agent, const dc_backup *backup, const dc_policy *policy) {
    if (agent->options.form == DC_FORM_DISTANCE) return dc_distance_build(agent, backup);
    return dc_value_build(agent, backup, policy);
}
