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

static int64_t longest(const dc_dataset *data) {
    int64_t most = 0;
    for (int64_t t = 0; t < data->traj_count; t++) {
        int64_t rows = data->traj_start[t + 1] - data->traj_start[t];
        if (rows > most) most = rows;
    }
    return most;
}

static dc_ref segment_loss(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref first = dc_within(g, n->left, n->left, n->first, b->known);
    dc_ref second = dc_within(g, n->right, n->right, n->second, b->known);
    dc_ref target = dc_add(g, first, second);
    if (b->clip)
        target = dc_clip(g, target, 0,
                         a->options.longest > 0 ? a->options.longest : (double)longest(a->data));
    // Spans that are known as a whole need no clipping and no children.
    dc_ref span = dc_add(g, n->left, n->right);
    target = dc_within(g, span, span, target, b->known);
    dc_ref weight = b->lambda > 0 ? dc_decay(g, dc_stop(g, n->parent), b->lambda) : -1;
    return dc_expectile(g, "loss_dc", n->parent, target, weight, 1 - b->kappa_dc);
}

static dc_ref propagation_loss(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_graph *g = &a->graph;
    dc_ref far = dc_add(g, n->nsteps, n->boot);
    dc_ref target = dc_within(g, n->off, n->off, far, b->rows.n);
    return dc_expectile(g, "loss_prop", n->prop, target, -1,
                        1 - (b->kappa_prop > 0 ? b->kappa_prop : 0.5));
}

static dc_ref grounding_loss(dc_agent *a, const dc_backup_nodes *n) {
    dc_ref one = dc_affine(&a->graph, dc_stop(&a->graph, n->ground), 0, 1);
    return dc_expectile(&a->graph, "loss_ground", n->ground, one, -1, 0.5);
}

static dc_ref sum(dc_agent *a, dc_ref total, const char *name, dc_ref part) {
    dc_agent_metric(a, name, part);
    return total < 0 ? part : dc_add(&a->graph, total, part);
}

static dc_ref losses(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n) {
    dc_ref total = -1;
    if (b->rows.segments != DC_SEG_NONE) total = sum(a, total, "loss_dc", segment_loss(a, b, n));
    if (b->rows.propagation) total = sum(a, total, "loss_prop", propagation_loss(a, b, n));
    if (b->rows.grounding) total = sum(a, total, "loss_ground", grounding_loss(a, n));
    return total;
}

dc_status dc_distance_build(dc_agent *a, const dc_backup *b) {
    int width = dc_dataset_column(a->data, "obs")->width;
    dc_mlp_declare(&a->critic, &a->params, "critic", 1, 2 * width, &a->options.hidden, 1, 1, true);
    a->known = b->known;
    a->candidates = b->candidates;
    dc_backup_nodes nodes;
    dc_backup_rows(a, b, &nodes);
    dc_ref loss = losses(a, b, &nodes);
    dc_agent_metric(
        a, "distance_mean",
        dc_mean(&a->graph, "distance_mean", nodes.prop >= 0 ? nodes.prop : nodes.parent));
    dc_sampler_spec spec = b->rows;
    spec.seed = a->options.seed;
    spec.batch = a->options.batch;
    spec.goal_pairs = true;
    spec.choose = dc_choose_split;
    spec.choose_ctx = a;
    return dc_agent_finish(a, loss, &spec);
}
