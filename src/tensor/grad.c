// Reverse mode, decided once: which nodes need a gradient, for which rows, and whether
// contributions are written or added. Stacked batches make the rows matter: of [parent |
// propagation | first child] only the first two thirds are trained, and no work is spent on the
// rest.
#include "tensor/graph.h"

// Rows of input i (node x) that node n's gradient reaches.
static void reach(const dc_node *n, int i, const dc_node *x, int *lo, int *hi) {
    *lo = 0;
    *hi = x->rows;
    if (!(dc_rule(n->op)->rowwise >> i & 1)) return;
    int shift = n->op == DC_OP_ROWS ? n->row0 - x->row0 : 0; // both count from the owner's row 0
    *lo = n->lo + shift;
    *hi = n->hi + shift;
}

static void widen(dc_node *x, int lo, int hi) {
    if (x->op == DC_OP_PARAM) { // its gradient has all its rows, those untrained zero
        lo = 0;
        hi = x->rows;
    }
    if (x->lo == x->hi) {
        x->lo = lo;
        x->hi = hi;
        return;
    }
    if (lo < x->lo) x->lo = lo;
    if (hi > x->hi) x->hi = hi;
}

static void mark_needs(dc_graph *g) {
    for (dc_ref r = 0; r < g->count; r++) {
        dc_node *n = &g->nodes[r];
        n->needs = n->op == DC_OP_PARAM && n->use == DC_LIVE;
        for (int i = 0; i < n->in_count; i++)
            if (dc_flows(n, i) && g->nodes[n->in[i]].needs) n->needs = true;
    }
}

static void mark_rows(dc_graph *g) {
    for (dc_ref r = 0; r < g->count; r++)
        g->nodes[r].lo = g->nodes[r].hi = 0;
    dc_node *loss = &g->nodes[g->loss];
    if (loss->needs) widen(loss, 0, 1);
    for (dc_ref r = g->loss; r >= 0; r--) {
        dc_node *n = &g->nodes[r];
        if (n->lo == n->hi) continue;
        for (int i = 0; i < n->in_count; i++) {
            dc_node *x = &g->nodes[n->in[i]];
            if (!dc_flows(n, i) || !x->needs) continue;
            int lo, hi;
            reach(n, i, x, &lo, &hi);
            widen(x, lo, hi);
        }
    }
}

// Count contributions to each owner of memory. Exactly one, to all rows and not through a view: it is
// written, else the first consumer zeroes and all add.
static void mark_sums(dc_graph *g) {
    for (dc_ref r = 0; r < g->count; r++) {
        g->nodes[r].grad_sum = false;
        g->nodes[r].grad_first = -1;
    }
    for (dc_ref r = g->loss; r >= 0; r--) {
        const dc_node *n = &g->nodes[r];
        if (n->lo == n->hi || n->op == DC_OP_ROWS || n->op == DC_OP_STOP) continue;
        for (int i = 0; i < n->in_count; i++) {
            const dc_node *x = &g->nodes[n->in[i]];
            if (!dc_flows(n, i) || !x->needs) continue;
            dc_node *owner = &g->nodes[x->base];
            int lo, hi;
            reach(n, i, x, &lo, &hi);
            bool whole = x == owner && lo == x->lo && hi == x->hi;
            if (owner->grad_first >= 0 || !whole) owner->grad_sum = true;
            if (owner->grad_first < 0) owner->grad_first = r;
        }
    }
}

void dc_graph_grad(dc_graph *g) {
    if (g->loss < 0) return;
    mark_needs(g);
    mark_rows(g);
    mark_sums(g);
}
