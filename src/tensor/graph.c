// Describing a graph: nodes and their shape rules, see graph.h. Comes from nn/ and algo/; goes to
// grad.c, plan.c and run.c.
#include "tensor/graph.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = 0, R0 = 1, R1 = 2, R2 = 4 };

static const struct {
    const char *name;
    int least, most;
    unsigned reads;
} table[DC_OPS] = {
    [DC_OP_INPUT] = {"input", 0, 0, 0},
    [DC_OP_PARAM] = {"param", 0, 0, 0},
    [DC_OP_ROWS] = {"rows", 1, 1, 0},
    [DC_OP_STOP] = {"stop", 1, 1, 0},
#define OP(name, least, most, reads, text) [DC_OP_##name] = {#name, least, most, reads},
#include "tensor/ops.def"
#undef OP
};

const char *dc_op_name(dc_op op) {
    return table[op].name;
}

unsigned dc_op_reads(dc_op op) {
    return table[op].reads;
}

dc_status dc_graph_init(dc_graph *g) {
    *g = (dc_graph){.loss = -1};
    dc_arena_init(&g->arena, 0);
    return DC_OK;
}

void dc_graph_fini(dc_graph *g) {
    free(g->nodes);
    dc_arena_fini(&g->arena);
    *g = (dc_graph){.loss = -1};
}

// A new node; on lack of memory the graph remembers and dc_graph_finish tells.
static dc_ref push(dc_graph *g, dc_node node, const char *name) {
    DC_CHECK(!g->finished && node.e > 0 && node.rows > 0 && node.cols > 0);
    if (g->count == g->room) {
        int room = g->room ? g->room * 2 : 64;
        dc_node *nodes = realloc(g->nodes, (size_t)room * sizeof *nodes);
        DC_CHECK(nodes); // a few kilobytes while an agent is described: nothing sensible can follow
        g->nodes = nodes;
        g->room = room;
    }
    node.name = dc_arena_text(&g->arena, name, strlen(name));
    if (!node.name) {
        node.name = "?";
        g->status = DC_NO_MEMORY;
    }
    if (node.op != DC_OP_ROWS && node.op != DC_OP_STOP) node.base = g->count;
    g->nodes[g->count] = node;
    return g->count++;
}

static const dc_node *at(const dc_graph *g, dc_ref x) {
    DC_CHECK(x >= 0 && x < g->count);
    return &g->nodes[x];
}

static bool same(const dc_node *x, const dc_node *y) {
    return x->e == y->e && x->rows == y->rows && x->cols == y->cols;
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
    const dc_node *n = at(g, x);
    DC_CHECK(row0 >= 0 && rows > 0 && row0 + rows <= n->rows);
    dc_node view = {
        .op = DC_OP_ROWS, .in_count = 1, .in = {x}, .e = n->e, .rows = rows, .cols = n->cols};
    view.base = n->base;
    view.row0 = n->row0 + row0;
    return push(g, view, n->name);
}

dc_ref dc_stop(dc_graph *g, dc_ref x) {
    const dc_node *n = at(g, x);
    dc_node view = {
        .op = DC_OP_STOP, .in_count = 1, .in = {x}, .e = n->e, .rows = n->rows, .cols = n->cols};
    view.base = n->base;
    view.row0 = n->row0;
    return push(g, view, n->name);
}

// Shape rules: what an op accepts, and what it gives.
static void shape(const dc_graph *g, dc_node *n) {
    const dc_node *x = at(g, n->in[0]), *y = n->in_count > 1 ? at(g, n->in[1]) : NULL;
    const dc_node *z = n->in_count > 2 ? at(g, n->in[2]) : NULL;
    n->e = x->e;
    n->rows = x->rows;
    n->cols = x->cols;
    switch (n->op) {
    case DC_OP_linear:
        DC_CHECK((x->e == 1 || x->e == y->e) && x->cols == y->rows);
        DC_CHECK(z->e == y->e && z->rows == 1 && z->cols == y->cols);
        n->e = y->e;
        n->cols = y->cols;
        break;
    case DC_OP_gelu_layernorm:
        DC_CHECK(y->e == x->e && y->rows == 1 && y->cols == x->cols && same(y, z));
        break;
    case DC_OP_within:
        DC_CHECK(same(x, y) && x->e == 1 && x->cols == 1 && z->rows == x->rows && z->cols == 1);
        n->e = z->e;
        break;
    case DC_OP_unpack:
        DC_CHECK(x->e == 1 && x->cols == 1 && y->cols == 1);
        n->e = y->e;
        break;
    case DC_OP_expectile:
    case DC_OP_bce:
        DC_CHECK(same(x, y) && (!z || same(x, z)));
        n->e = n->rows = n->cols = 1;
        break;
    case DC_OP_splice:
        DC_CHECK(x->e == 1 && y->e == 1 && y->rows == x->rows && n->a >= 0 &&
                 n->a + y->cols <= x->cols);
        break;
    case DC_OP_ensemble_min:
        n->e = 1;
        break;
    case DC_OP_expected:
        DC_CHECK(x->e == 1 && y->e == 1 && y->cols == 1 && y->rows == x->rows * x->cols);
        n->cols = 1;
        break;
    case DC_OP_log_likelihood:
        DC_CHECK(x->e == 1);
        // fall through
    case DC_OP_square:
        DC_CHECK(same(x, y));
        n->e = n->rows = n->cols = 1;
        break;
    case DC_OP_relative_mean:
    case DC_OP_mean:
        n->e = n->rows = n->cols = 1;
        break;
    default: // one matrix may serve all members of x, as data
        DC_CHECK(!y || same(x, y) || (y->e == 1 && y->rows == x->rows && y->cols == x->cols));
    }
}

dc_ref dc_apply(dc_graph *g, dc_op op, const char *name, const dc_ref *in, int count, double a,
                double b) {
    DC_CHECK(op >= DC_FIRST_COMPUTED && op < DC_OPS);
    DC_CHECK(count >= table[op].least && count <= table[op].most);
    dc_node n = {.op = op, .in_count = count, .a = a, .b = b};
    for (int i = 0; i < count; i++)
        n.in[i] = in[i];
    shape(g, &n);
    return push(g, n, name);
}

dc_ref dc_linear(dc_graph *g, const char *name, dc_ref x, dc_ref w, dc_ref b) {
    return dc_apply(g, DC_OP_linear, name, (dc_ref[]){x, w, b}, 3, 0, 0);
}

dc_ref dc_gelu_layernorm(dc_graph *g, const char *name, dc_ref x, dc_ref scale, dc_ref bias) {
    return dc_apply(g, DC_OP_gelu_layernorm, name, (dc_ref[]){x, scale, bias}, 3, 0, 0);
}

dc_ref dc_add(dc_graph *g, dc_ref x, dc_ref y) {
    return dc_apply(g, DC_OP_add, "add", (dc_ref[]){x, y}, 2, 0, 0);
}

dc_ref dc_mul(dc_graph *g, dc_ref x, dc_ref y) {
    return dc_apply(g, DC_OP_mul, "mul", (dc_ref[]){x, y}, 2, 0, 0);
}

dc_ref dc_affine(dc_graph *g, dc_ref x, double a, double b) {
    return dc_apply(g, DC_OP_affine, "affine", &x, 1, a, b);
}

dc_ref dc_clip(dc_graph *g, dc_ref x, double least, double most) {
    return dc_apply(g, DC_OP_clip, "clip", &x, 1, least, most);
}

dc_ref dc_within(dc_graph *g, dc_ref steps, dc_ref exact, dc_ref x, double n) {
    return dc_apply(g, DC_OP_within, "within", (dc_ref[]){steps, exact, x}, 3, n, 0);
}

dc_ref dc_unpack(dc_graph *g, dc_ref index, dc_ref y) {
    return dc_apply(g, DC_OP_unpack, "unpack", (dc_ref[]){index, y}, 2, 0, 0);
}

dc_ref dc_decay(dc_graph *g, dc_ref x, double lambda) {
    return dc_apply(g, DC_OP_decay, "decay", &x, 1, lambda, 0);
}

dc_ref dc_expectile(dc_graph *g, const char *name, dc_ref p, dc_ref t, dc_ref weight,
                    double below) {
    dc_ref in[3] = {p, t, weight};
    return dc_apply(g, DC_OP_expectile, name, in, weight < 0 ? 2 : 3, below, 0);
}

dc_ref dc_mean(dc_graph *g, const char *name, dc_ref x) {
    return dc_apply(g, DC_OP_mean, name, &x, 1, 0, 0);
}

dc_ref dc_sigmoid(dc_graph *g, dc_ref x) {
    return dc_apply(g, DC_OP_sigmoid, "sigmoid", &x, 1, 0, 0);
}

dc_ref dc_softplus(dc_graph *g, dc_ref x) {
    return dc_apply(g, DC_OP_softplus, "softplus", &x, 1, 0, 0);
}

dc_ref dc_power(dc_graph *g, dc_ref x, double base) {
    return dc_apply(g, DC_OP_power, "power", &x, 1, base, 0);
}

dc_ref dc_bce(dc_graph *g, const char *name, dc_ref logit, dc_ref t, double above, double scale) {
    return dc_bce_weighted(g, name, logit, t, -1, above, scale);
}

dc_ref dc_bce_weighted(dc_graph *g, const char *name, dc_ref logit, dc_ref t, dc_ref weight,
                       double above, double scale) {
    dc_ref in[3] = {logit, t, weight};
    return dc_apply(g, DC_OP_bce, name, in, weight < 0 ? 2 : 3, above, scale);
}

dc_ref dc_ensemble_min(dc_graph *g, dc_ref x) {
    return dc_apply(g, DC_OP_ensemble_min, "ensemble_min", &x, 1, 0, 0);
}

dc_ref dc_splice(dc_graph *g, const char *name, dc_ref x, dc_ref y, int column) {
    return dc_apply(g, DC_OP_splice, name, (dc_ref[]){x, y}, 2, column, 0);
}

dc_ref dc_square(dc_graph *g, const char *name, dc_ref x, dc_ref y, double scale) {
    return dc_apply(g, DC_OP_square, name, (dc_ref[]){x, y}, 2, scale, 0);
}

dc_ref dc_expected(dc_graph *g, dc_ref logits, dc_ref q) {
    return dc_apply(g, DC_OP_expected, "expected", (dc_ref[]){logits, q}, 2, 0, 0);
}

dc_ref dc_log_likelihood(dc_graph *g, const char *name, dc_ref logits, dc_ref t) {
    return dc_apply(g, DC_OP_log_likelihood, name, (dc_ref[]){logits, t}, 2, 0, 0);
}

dc_ref dc_relative_mean(dc_graph *g, const char *name, dc_ref x) {
    return dc_apply(g, DC_OP_relative_mean, name, &x, 1, 0, 0);
}

void dc_keep(dc_graph *g, dc_ref x) {
    g->nodes[g->nodes[x].base].keep = true;
}

int64_t dc_op_aux(const dc_graph *g, const dc_node *n) {
    (void)g;
    // LayerNorm leaves mean and 1/std of every row.
    return n->op == DC_OP_gelu_layernorm ? (int64_t)2 * n->e * n->rows : 0;
}

int64_t dc_op_scratch(const dc_graph *g, const dc_node *n) {
    // Sums over rows are taken a block at a time, each block into numbers of its own.
    (void)g;
    if (n->op == DC_OP_linear) return (int64_t)n->e * dc_blocks(n->rows) * n->cols;
    if (n->op == DC_OP_gelu_layernorm) return (int64_t)n->e * dc_blocks(n->rows) * n->cols * 2;
    return 0;
}

dc_status dc_graph_finish(dc_graph *g, dc_ref loss) {
    DC_CHECK(!g->finished);
    if (g->status != DC_OK) return dc_fail(g->status, NULL, "no memory for the graph");
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
