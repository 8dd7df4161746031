// Replays a graph: every node forward in order, then every trained node backward in reverse. The
// order, the rows and the write-or-add decisions were made by grad.c; memory was placed by plan.c.
#include "tensor/run.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dc_tensor dc_value(const dc_exec *x, dc_ref r) {
    const dc_node *n = &x->graph->nodes[r], *owner = &x->graph->nodes[n->base];
    dc_real *p = x->temps;
    if (owner->op == DC_OP_PARAM) p = owner->use == DC_EMA ? x->slabs->ema : x->slabs->live;
    int64_t step = (int64_t)owner->rows * owner->cols;
    return (dc_tensor){p + owner->offset + (int64_t)n->row0 * n->cols, n->e, n->rows, n->cols,
                       owner->e == 1 ? 0 : step};
}

dc_tensor dc_gradient(const dc_exec *x, dc_ref r) {
    const dc_node *n = &x->graph->nodes[r], *owner = &x->graph->nodes[n->base];
    dc_real *p =
        owner->op == DC_OP_PARAM ? x->slabs->grad + owner->offset : x->temps + owner->grad_offset;
    int64_t step = (int64_t)(owner->hi - owner->lo) * owner->cols;
    int first = n->row0 + n->lo - owner->lo; // row n->lo of the view, within the owner's gradient
    return (dc_tensor){p + (int64_t)first * n->cols, n->e, n->hi - n->lo, n->cols,
                       owner->e == 1 ? 0 : step};
}

dc_tensor dc_tensor_rows(dc_tensor v, int lo, int hi) {
    v.p += (int64_t)lo * v.cols;
    v.rows = hi - lo;
    return v;
}

dc_tensor dc_output(const dc_exec *x, const dc_node *n) {
    dc_ref r = dc_self(x, n);
    return dc_tensor_rows(dc_value(x, r), 0, x->used[r]);
}

dc_tensor dc_input_value(const dc_exec *x, const dc_node *n, int i) {
    return dc_tensor_rows(dc_value(x, n->in[i]), n->lo, n->hi);
}

dc_tensor dc_input_gradient(const dc_exec *x, const dc_node *n, int i) {
    int lo = x->graph->nodes[n->in[i]].lo;
    return dc_tensor_rows(dc_gradient(x, n->in[i]), n->lo - lo, n->hi - lo);
}

bool dc_wants(const dc_exec *x, const dc_node *n, int i) {
    const dc_node *in = &x->graph->nodes[n->in[i]];
    return in->needs && in->lo < in->hi;
}

bool dc_adds(const dc_exec *x, const dc_node *n, int i) {
    return x->graph->nodes[x->graph->nodes[n->in[i]].base].grad_sum;
}

dc_status dc_exec_init(dc_exec *x, const dc_graph *graph, const dc_slabs *slabs, dc_pool *pool) {
    DC_CHECK(graph->finished);
    *x = (dc_exec){.graph = graph, .slabs = slabs, .pool = pool};
    size_t bytes = ((size_t)graph->temp_size * sizeof(dc_real) + 63) / 64 * 64 + 64;
    x->temps = aligned_alloc(64, bytes);
    if (!x->temps)
        return dc_fail(DC_NO_MEMORY, "lower batch or hidden", "no memory for a graph of %zu bytes",
                       bytes);
    memset(x->temps, 0, bytes);
    x->used = calloc((size_t)graph->count + 1, sizeof *x->used);
    if (!x->used) {
        dc_exec_fini(x);
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for a graph of %d nodes", graph->count);
    }
    for (dc_ref r = 0; r < graph->count; r++)
        x->used[r] = graph->nodes[r].rows;
    return DC_OK;
}

void dc_exec_fini(dc_exec *x) {
    free(x->temps);
    free(x->used);
    x->temps = NULL;
    x->used = NULL;
}

static void zero(dc_real *p, int64_t n) {
    memset(p, 0, (size_t)n * sizeof *p);
}

// Owners whose gradient is summed start from zero, just before their first contribution.
static void zero_sums(const dc_exec *x, dc_ref r) {
    const dc_node *n = &x->graph->nodes[r];
    for (int i = 0; i < n->in_count; i++) {
        dc_ref base = x->graph->nodes[n->in[i]].base;
        const dc_node *owner = &x->graph->nodes[base];
        if (!owner->grad_sum || owner->grad_first != r || owner->lo == owner->hi) continue;
        dc_tensor g = dc_gradient(x, base);
        zero(g.p, (int64_t)g.e * g.rows * g.cols);
    }
}

// Rows of node n that can be used, given how many leading rows of its inputs are: all, unless it goes
// row by row. A gather's row may stand for several rows of an input, or several rows for one.
static int used_rows(const dc_exec *x, const dc_node *n) {
    int used = n->rows;
    for (int i = 0; i < n->in_count; i++) {
        if (!(dc_rule(n->op)->rowwise >> i & 1)) continue;
        const dc_node *in = &x->graph->nodes[n->in[i]];
        int64_t rows = x->used[n->in[i]];
        if (n->op == DC_OP_ROWS)
            rows -= n->row0 - in->row0;
        else
            rows = rows * n->rows / in->rows;
        if (rows < used) used = rows < 0 ? 0 : (int)rows;
    }
    return used;
}

static void call(const dc_exec *x, const dc_backend *backend, const dc_node *n, bool back) {
    if (!back) x->used[dc_self(x, n)] = used_rows(x, n);
    if (n->op < DC_FIRST_COMPUTED) return;
    dc_op_fn *fn = back ? backend->bwd[n->op] : backend->fwd[n->op];
    if (!x->times) {
        fn(x, n);
        return;
    }
    double start = dc_now();
    fn(x, n);
    x->times[(back ? DC_OPS : 0) + n->op] += dc_now() - start;
}

static void backward(const dc_exec *x, const dc_backend *backend) {
    const dc_graph *g = x->graph;
    if (g->nodes[g->loss].lo == g->nodes[g->loss].hi) return; // nothing to train
    *dc_gradient(x, g->loss).p = 1;
    for (dc_ref r = g->loss; r >= 0; r--) {
        const dc_node *n = &g->nodes[r];
        if (n->op < DC_FIRST_COMPUTED || n->lo == n->hi) continue;
        DC_CHECK(n->hi <= x->used[r]); // trained rows have values
        zero_sums(x, r);
        call(x, backend, n, true);
    }
}

void dc_exec_run(const dc_exec *x, const dc_backend *backend) {
    const dc_graph *g = x->graph;
    for (dc_ref r = 0; r < g->count; r++)
        if (g->nodes[r].in_count) call(x, backend, &g->nodes[r], false);
    if (g->loss >= 0) backward(x, backend);
}

void dc_exec_run_watched(const dc_exec *x, const dc_backend *backend, const bool *watched,
                         bool given, dc_node_fn *fn, void *ctx) {
    const dc_graph *g = x->graph;
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (!n->in_count) continue;
        if (watched[r] && given)
            x->used[r] = used_rows(x, n);
        else
            call(x, backend, n, false);
        if (watched[r]) fn(ctx, r);
    }
}

static bool finite(dc_tensor v) {
    for (int e = 0; e < v.e; e++)
        for (int64_t i = 0; i < (int64_t)v.rows * v.cols; i++)
            if (!isfinite(v.p[e * v.step + i])) return false;
    return true;
}

const char *dc_exec_find_bad(const dc_exec *x, const dc_backend *backend) {
    const dc_graph *g = x->graph;
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (n->in_count) call(x, backend, n, false);
        if (!finite(dc_tensor_rows(dc_value(x, r), 0, x->used[r]))) return n->name;
    }
    return NULL;
}
