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
// and metrics. What does not depend on a backup is there for other methods too (value.h).
#include "algo/value.h"

#include "algo/backup.h"

#include <math.h>

static dc_ref discounted(dc_agent *a, dc_ref steps) {
    return dc_power(&a->graph, steps, a->method.gamma);
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
    return dc_decay(g, dc_affine(g, nats, -1 / log(a->method.gamma), 0), b->lambda);
}

static dc_ref segment(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_ref target =
        dc_mul(&a->graph, child(a, b, n->left, n->first), child(a, b, n->right, n->second));
    return dc_bce_weighted(&a->graph, "loss_dc", n->parent, target, nearness(a, b, n->parent),
                           b->kappa_dc, 2); // 0.5 is plain cross-entropy
}

static dc_ref propagation(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref far = dc_mul(g, dc_sigmoid(g, n->boot), discounted(a, n->nsteps));
    dc_ref target = dc_within(g, n->off, discounted(a, n->off), far, b->n);
    return dc_bce(g, "loss_prop", n->prop, target, b->kappa_prop > 0 ? b->kappa_prop : 0.7, 1);
}

static dc_ref grounding(dc_agent *a, const dc_backup_nodes *n) {
    dc_ref gamma = dc_affine(&a->graph, dc_stop(&a->graph, n->ground), 0, a->method.gamma);
    return dc_bce(&a->graph, "loss_ground", n->ground, gamma, 0.5, 2);
}

// ---- policy: its rows, and the critic's least opinion of [state | goal | action], by held weights ----

static const dc_policy_rows policy_rows = {"actor_state", "actor_goal"};

// The critic that looks at goals as the task gives them.
static const char *task_critic(const dc_method *m) {
    return m->rep ? "oracle_critic" : "critic";
}

static dc_ref critic_min(dc_agent *a, dc_ref rows) {
    return dc_ensemble_min(&a->graph, dc_agent_net(a, task_critic(&a->method), rows, DC_STOPPED));
}

static dc_ref q_of(dc_agent *a, const dc_policy_rows *r, dc_ref action) {
    dc_ref rows = DC_BATCH(a, "actor_critic", OBS(r->state), GOAL(r->goal), ACT(r->state));
    return critic_min(
        a, dc_splice(&a->graph, "actor_action", rows, action, a->method.obs + a->method.goal));
}

static dc_ref q_of_all(dc_agent *a, const dc_policy_rows *r) {
    return critic_min(a, dc_batch_repeated(a, "actor_critic", a->method.actions,
                                           DC_FIELDS(OBS(r->state), GOAL(r->goal), CHOICE)));
}

dc_ref dc_value_policy(dc_agent *a, const dc_policy *p, dc_ref total) {
    if (p->kind == DC_POLICY_DDPGBC)
        return dc_policy_ddpgbc(a, p, &policy_rows, q_of, q_of_all, total);
    if (p->kind == DC_POLICY_REJECTION) return dc_policy_flow(a, &policy_rows, total);
    return total;
}

// ---- parts that other methods share ----

void dc_value_goal_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals) {
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, *goals, m->gamma, "goal of the value"));
    dc_rows_add(r, DC_STEPS("goal_steps", "state", "goal",
                            "steps to it if it lies ahead in the trajectory, else -1"));
}

void dc_value_policy_rows(dc_row_table *r, const dc_method *m, const dc_policy *p) {
    if (p->kind == DC_POLICY_NONE) return;
    dc_rows_add(r, DC_START(policy_rows.state, DC_STREAM_ACTOR, "state of a policy row"));
    dc_rows_add(r, dc_policy_goal(p, m, policy_rows.goal, policy_rows.state));
}

dc_ref dc_value_target(dc_agent *a, dc_ref far) {
    dc_ref steps = DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    return dc_within(&a->graph, steps, discounted(a, steps), dc_stop(&a->graph, far), 1);
}

dc_ref dc_value_distil(dc_agent *a, const char *state, const char *goal, dc_ref taught,
                       dc_ref total) {
    if (!a->method.rep) return total;
    dc_ref x = DC_BATCH(a, "oracle", OBS(state), GOAL(goal), ACT(state));
    dc_ref logit = dc_agent_net(a, "oracle_critic", x, DC_LIVE);
    dc_ref target = dc_sigmoid(&a->graph, dc_stop(&a->graph, taught));
    return dc_batch_loss(a, "loss_oracle", total,
                         dc_bce(&a->graph, "loss_oracle", logit, target, 0.5, 2));
}

void dc_value_log(dc_agent *a, dc_ref logits) {
    dc_ref q = dc_sigmoid(&a->graph, logits);
    dc_agent_metric(a, "value_mean", dc_mean(&a->graph, "value_mean", q));
}

void dc_value_networks(dc_nets *nets, const dc_method *m) {
    int obs = m->obs, act = m->act;
    dc_nets_add(nets, (dc_net){.name = "critic",
                               .ensemble = 2,
                               .in = 2 * obs + act,
                               .out = 1,
                               .observations = 2,
                               .target = true});
    if (m->rep)
        dc_nets_add(nets, (dc_net){.name = "oracle_critic",
                                   .ensemble = 2,
                                   .in = obs + m->goal + act,
                                   .out = 1,
                                   .observations = 1});
}

dc_ref dc_value_act(dc_infer *q, const dc_method *m, const dc_policy *p) {
    if (p->kind == DC_POLICY_NONE) return -1;
    if (p->kind == DC_POLICY_REJECTION) return dc_policy_act_best(q, p, task_critic(m));
    return dc_policy_act_mean(q, "actor");
}

dc_ref dc_value_query(dc_infer *q, const dc_method *m) {
    const char *critic = q->data_goals ? "critic" : task_critic(m);
    q->reading = DC_READ_LOGIT;
    return dc_infer_net(q, critic, DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL), ACT(NULL)));
}

// ---- the form ----

// Distil on the rows of the propagation loss; without one on rows of the same law, or on segments.
static dc_ref distil(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n, dc_ref total) {
    bool own = n->prop < 0 && b->distil == DC_DISTIL_GOALS, goals = n->prop >= 0 || own;
    const char *state = goals ? "state" : "segment_start", *goal = goals ? "goal" : "segment_end";
    dc_ref taught = n->prop >= 0 ? n->prop : n->parent;
    if (own)
        taught = dc_agent_net(a, "critic", DC_BATCH(a, "taught", OBS(state), OBS(goal), ACT(state)),
                              DC_STOPPED);
    return dc_value_distil(a, state, goal, taught, total);
}

static dc_ref rest(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n, dc_ref total) {
    if (a->method.rep) total = distil(a, b, n, total);
    total = dc_value_policy(a, b->policy, total);
    dc_value_log(a, n->prop >= 0 ? n->prop : n->parent);
    return total;
}

const dc_form dc_form_value = {.name = "value",
                               .acts = true,
                               .pair_law = DC_LAW_GEOMETRIC,
                               .n = 25,
                               .check = dc_need_actions,
                               .networks = dc_value_networks,
                               .segment = segment,
                               .propagation = propagation,
                               .grounding = grounding,
                               .rest = rest,
                               .query = dc_value_query};
