// The distance form (combination-lock): a network d(s, g) learns undiscounted distances by squared
// error.
//
//   segment       d(i, j) -> d(i, k) + d(k, j), a child of at most `known` steps being exact
//   propagation   d(s, g) -> g - s where that is at most n, else n' + dbar(s + n', g)
//   grounding     d(i, i + 1) -> 1
//
// An upper expectile of value is one of *shorter* distance: kappa weighs rows whose prediction lies
// above the target. Comes from a method's dc_backup; goes to train/ as loss and metrics.
#include "algo/backup.h"

static dc_status check(const dc_method *m) {
    (void)m;
    return DC_OK;
}

static void networks(dc_nets *nets, const dc_method *m) {
    dc_nets_add(
        nets,
        (dc_net){.name = "critic", .in = 2 * m->obs, .out = 1, .observations = 2, .target = true});
}

static dc_ref segment(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref first = dc_within(g, n->left, n->left, n->first, b->known);
    dc_ref second = dc_within(g, n->right, n->right, n->second, b->known);
    dc_ref target = dc_add(g, first, second);
    if (b->clip) target = dc_clip(g, target, 0, a->method.longest);
    // Spans that are known as a whole need no clipping and no children.
    dc_ref span = dc_add(g, n->left, n->right);
    target = dc_within(g, span, span, target, b->known);
    dc_ref weight = b->lambda > 0 ? dc_decay(g, dc_stop(g, n->parent), b->lambda) : -1;
    return dc_expectile(g, "loss_dc", n->parent, target, weight, 1 - b->kappa_dc);
}

static dc_ref propagation(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref far = dc_add(g, n->nsteps, n->boot);
    dc_ref target = dc_within(g, n->off, n->off, far, b->n);
    return dc_expectile(g, "loss_prop", n->prop, target, -1,
                        1 - (b->kappa_prop > 0 ? b->kappa_prop : 0.5));
}

static dc_ref grounding(dc_agent *a, const dc_backup_nodes *n) {
    dc_ref one = dc_affine(&a->graph, dc_stop(&a->graph, n->ground), 0, 1);
    return dc_expectile(&a->graph, "loss_ground", n->ground, one, -1, 0.5);
}

static dc_ref rest(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n, dc_ref total) {
    (void)b;
    dc_ref d = n->prop >= 0 ? n->prop : n->parent;
    dc_agent_metric(a, "distance_mean", dc_mean(&a->graph, "distance_mean", d));
    return total;
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    (void)m;
    q->reading = DC_READ_STEPS;
    return dc_infer_net(q, "critic", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
}

const dc_form dc_form_distance = {.name = "distance",
                                  .goal_pairs = true,
                                  .pair_law = DC_LAW_UNIFORM,
                                  .n = 64,
                                  .check = check,
                                  .networks = networks,
                                  .segment = segment,
                                  .propagation = propagation,
                                  .grounding = grounding,
                                  .rest = rest,
                                  .query = query};
