// Describing a graph: its nodes, see graph.h; ops.c has the ops. Comes from nn/ and algo/; goes to
// grad.c, plan.c and run.c.
#include "tensor/graph.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 }; // nodes

dc_status dc_graph_init(dc_graph *g) {
    *g = (dc_graph){.loss = -1, .room = FIRST_ROOM};
    dc_arena_init(&g->arena, 0);
    g->nodes = calloc(FIRST_ROOM, sizeof *g->nodes);
    return g->nodes ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for a graph");
}

void dc_graph_fini(dc_graph *g) {
    free(g->nodes);
    dc_arena_fini(&g->arena);
    *g = (dc_graph){.loss = -1};
}

// On lack of memory the graph remembers, and dc_graph_finish returns it. Until then a description goes on as if
// nothing had happened: no node is added and no shape checked any more, and every new value is node 0.
static bool failed(const dc_graph *g) {
    return g->status != DC_OK;
}

static bool make_room(dc_graph *g) {
    if (g->count < g->room) return true;
    dc_node *nodes = realloc(g->nodes, (size_t)g->room * 2 * sizeof *nodes);
    if (!nodes) return false;
    g->nodes = nodes;
    g->room *= 2;
    return true;
}

static dc_ref push(dc_graph *g, dc_node node, const char *name) {
    if (failed(g)) return 0;
    DC_CHECK(!g->finished && node.e > 0 && node.rows > 0 && node.cols > 0);
    node.name = dc_arena_text(&g->arena, name, strlen(name));
    if (!node.name || !make_room(g)) {
        g->status = DC_NO_MEMORY;
        return 0;
    }
    if (node.op != DC_OP_ROWS && node.op != DC_OP_STOP) node.base = g->count;
    g->nodes[g->count] = node;
    return g->count++;
}

static const dc_node *at(const dc_graph *g, dc_ref x) {
    DC_CHECK(x >= 0 && x < g->count);
    return &g->nodes[x];
}

dc_ref dc_input(dc_graph *g, const char *name, int rows, int cols) {
    return push(g, (dc_node){.op = DC_OP_INPUT, .e = 1, .rows = rows, .cols = cols, .keep = true},
                name);
}

dc_ref dc_param(dc_graph *g, const char *name, int e, int rows, int cols, int64_t offset,
                dc_use use) {
    // The same matrix under the same use is one node, so that its gradient has one place.
    for (dc_ref i = 0; i < g->count; i++) {
        const dc_node *n = &g->nodes[i];
        if (n->op == DC_OP_PARAM && n->offset == offset && n->use == use) return i;
    }
    return push(
        g,
        (dc_node){
            .op = DC_OP_PARAM, .e = e, .rows = rows, .cols = cols, .offset = offset, .use = use},
        name);
}

dc_ref dc_rows(dc_graph *g, dc_ref x, int row0, int rows) {
    if (failed(g)) return 0;
    const dc_node *n = at(g, x);
    DC_CHECK(row0 >= 0 && rows > 0 && row0 + rows <= n->rows);
    dc_node view = {
        .op = DC_OP_ROWS, .in_count = 1, .in = {x}, .e = n->e, .rows = rows, .cols = n->cols};
    view.base = n->base;
    view.row0 = n->row0 + row0;
    return push(g, view, n->name);
}

dc_ref dc_stop(dc_graph *g, dc_ref x) {
    if (failed(g)) return 0;
    const dc_node *n = at(g, x);
    dc_node view = {
        .op = DC_OP_STOP, .in_count = 1, .in = {x}, .e = n->e, .rows = n->rows, .cols = n->cols};
    view.base = n->base;
    view.row0 = n->row0;
    return push(g, view, n->name);
}

// What the rows of a rowwise input stand for must be clear, see ops.def.
static void check_rowwise(const dc_graph *g, const dc_node *n) {
    const dc_op_rule *rule = dc_rule(n->op);
    for (int i = 0; i < n->in_count; i++) {
        if (!(rule->rowwise >> i & 1)) continue;
        int rows = at(g, n->in[i])->rows;
        bool share = rule->op_class == DC_CLASS_GATHER && !(rule->flows >> i & 1) &&
                     (rows % n->rows == 0 || n->rows % rows == 0);
        DC_CHECK(rows == n->rows || share);
    }
}

dc_ref dc_apply(dc_graph *g, dc_op op, const char *name, const dc_ref *in, int count, double a,
                double b) {
    if (failed(g)) return 0;
    const dc_op_rule *rule = dc_rule(op);
    DC_CHECK(op >= DC_FIRST_COMPUTED && op < DC_OPS);
    DC_CHECK(count >= rule->least && count <= rule->most);
    dc_node n = {.op = op, .in_count = count, .a = a, .b = b};
    const dc_node *inputs[DC_INPUTS];
    for (int i = 0; i < count; i++) {
        n.in[i] = in[i];
        inputs[i] = at(g, in[i]);
    }
    rule->shape(&n, inputs);
    check_rowwise(g, &n);
    return push(g, n, name);
}

void dc_keep(dc_graph *g, dc_ref x) {
    g->nodes[g->nodes[x].base].keep = true;
}

dc_status dc_graph_finish(dc_graph *g, dc_ref loss) {
    DC_CHECK(!g->finished);
    if (failed(g)) return dc_fail(g->status, "lower batch or hidden", "no memory for a graph");
    g->loss = loss;
    if (loss >= 0) {
        const dc_node *n = at(g, loss);
        DC_CHECK(n->e == 1 && n->rows == 1 && n->cols == 1 && n->base == loss);
        dc_keep(g, loss);
    }
    dc_graph_grad(g);
    g->finished = true;
    return dc_graph_plan(g);
}
