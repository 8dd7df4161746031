// Ops: the table of ops.def with its shape functions, and a constructor for each op. To graph.c an op
// is a node with inputs; what it computes is known to the backends alone.
#include "tensor/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- shapes: what an op accepts, what it gives, what memory it borrows ----

static void give(dc_node *n, int e, int rows, int cols) {
    n->e = e;
    n->rows = rows;
    n->cols = cols;
}

static bool same_rows_and_cols(const dc_node *x, const dc_node *y) {
    return x->rows == y->rows && x->cols == y->cols;
}

static bool same(const dc_node *x, const dc_node *y) {
    return x->e == y->e && same_rows_and_cols(x, y);
}

static void shape_linear(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *w = in[1], *b = in[2];
    DC_CHECK((x->e == 1 || x->e == w->e) && x->cols == w->rows);
    DC_CHECK(b->e == w->e && b->rows == 1 && b->cols == w->cols);
    give(n, w->e, x->rows, w->cols);
    n->scratch = (int64_t)n->e * dc_blocks(n->rows) * n->cols; // sums over each block of rows
}

static void shape_gelu_layernorm(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *scale = in[1], *bias = in[2];
    DC_CHECK(scale->e == x->e && scale->rows == 1 && scale->cols == x->cols && same(scale, bias));
    give(n, x->e, x->rows, x->cols);
    n->aux = (int64_t)2 * n->e * n->rows;                          // mean and 1/std of every row
    n->scratch = (int64_t)2 * n->e * dc_blocks(n->rows) * n->cols; // sums over each block of rows
}

static void shape_conv3x3(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *w = in[1], *b = in[2];
    int places = (int)n->a * (int)n->b, channels = w->rows / 9;
    DC_CHECK(n->a >= 1 && n->b >= 1 && x->e == 1 && w->e == 1 && w->rows % 9 == 0);
    DC_CHECK(9 * channels <= DC_CONV_TILE && 9 * w->cols <= DC_CONV_TILE);
    DC_CHECK(x->cols == places * channels);
    DC_CHECK(b->e == 1 && b->rows == 1 && b->cols == w->cols);
    give(n, 1, x->rows, places * w->cols);
    int64_t weights = (int64_t)w->rows * w->cols;
    n->scratch =
        weights + dc_conv_blocks(n->rows) * (weights + w->cols); // see backend/cpu/picture.c
}

static void shape_max_pool(dc_node *n, const dc_node **in) {
    int places = (int)n->a * (int)n->b;
    DC_CHECK(n->a >= 1 && n->b >= 1 && in[0]->e == 1 && in[0]->cols % places == 0);
    int channels = in[0]->cols / places;
    give(n, 1, in[0]->rows, dc_pooled((int)n->a) * dc_pooled((int)n->b) * channels);
}

static void shape_interleave(dc_node *n, const dc_node **in) {
    DC_CHECK(n->a >= 1 && n->b >= 1 && in[0]->e == 1);
    DC_CHECK(in[0]->cols % ((int)n->a * (int)n->b) == 0);
    give(n, 1, in[0]->rows, in[0]->cols);
}

static void shape_pair_dot(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *y = in[1];
    DC_CHECK(x->e == y->e && x->cols == y->cols);
    give(n, x->e, x->rows, y->rows);
}

// Inputs of one member serve all.
static void shape_pointwise(dc_node *n, const dc_node **in) {
    int e = 1;
    for (int i = 0; i < n->in_count; i++) {
        DC_CHECK(same_rows_and_cols(in[i], in[0]));
        if (in[i]->e > e) e = in[i]->e;
    }
    for (int i = 0; i < n->in_count; i++)
        DC_CHECK(in[i]->e == e || in[i]->e == 1);
    give(n, e, in[0]->rows, in[0]->cols);
}

static void shape_ensemble(dc_node *n, const dc_node **in) {
    give(n, 1, in[0]->rows, in[0]->cols);
}

static void shape_row_pair(dc_node *n, const dc_node **in) {
    DC_CHECK(same(in[0], in[1]));
    give(n, in[0]->e, in[0]->rows, 1);
}

static void shape_iqe(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *y = in[1], *rho = in[2];
    int group = (int)n->a;
    DC_CHECK(same(x, y) && x->e == 1 && rho->e == 1 && rho->rows == 1 && rho->cols == 1);
    DC_CHECK(group > 0 && group <= DC_IQE_GROUP_MAX && x->cols % group == 0);
    give(n, 1, x->rows, 1);
    n->aux = (int64_t)x->rows * (x->cols + DC_IQE_STATS); // see backend/cpu/iqe.c
}

static void check_mrn(const dc_node *n, const dc_node **in) {
    int chunks = (int)n->a;
    DC_CHECK(in[0]->e == in[1]->e && in[0]->cols == in[1]->cols);
    DC_CHECK(chunks > 0 && in[0]->cols % (2 * chunks) == 0);
    DC_CHECK(n->b == DC_MRN_TMD || n->b == DC_MRN_QRL);
}

static void shape_mrn(dc_node *n, const dc_node **in) {
    check_mrn(n, in);
    shape_row_pair(n, in);
}

static void shape_mrn_pairs(dc_node *n, const dc_node **in) {
    check_mrn(n, in);
    give(n, in[1]->e, in[1]->rows, in[0]->rows);
    // x for both passes, y for backward; see backend/cpu/mrn_pairs.c
    n->aux = (int64_t)n->e * dc_mrn_panels(in[0]->rows) * DC_MRN_LANES * in[0]->cols;
    n->scratch = (int64_t)n->e * dc_mrn_panels(in[1]->rows) * DC_MRN_LANES * in[1]->cols;
}

static void shape_row(dc_node *n, const dc_node **in) {
    give(n, in[0]->e, in[0]->rows, 1);
}

static void shape_expected(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *q = in[1];
    DC_CHECK(x->e == 1 && q->e == 1 && q->cols == 1 && q->rows == x->rows * x->cols);
    give(n, 1, x->rows, 1);
}

static void shape_columns(dc_node *n, const dc_node **in) {
    DC_CHECK(n->a >= 0 && n->b >= 1 && n->a + n->b <= in[0]->cols);
    give(n, in[0]->e, in[0]->rows, (int)n->b);
}

static void shape_unpack(dc_node *n, const dc_node **in) {
    const dc_node *index = in[0], *y = in[1];
    DC_CHECK(index->e == 1 && index->cols == 1 && y->cols == 1);
    give(n, y->e, index->rows, 1);
}

static void shape_splice(dc_node *n, const dc_node **in) {
    const dc_node *x = in[0], *y = in[1];
    DC_CHECK(x->e == 1 && y->e == 1 && y->rows == x->rows);
    DC_CHECK(n->a >= 0 && n->a + y->cols <= x->cols);
    give(n, 1, x->rows, x->cols);
}

static void shape_join(dc_node *n, const dc_node **in) {
    DC_CHECK(in[0]->e == in[1]->e && in[0]->rows == in[1]->rows);
    give(n, in[0]->e, in[0]->rows, in[0]->cols + in[1]->cols);
}

static void shape_repeat(dc_node *n, const dc_node **in) {
    DC_CHECK(n->a >= 1);
    give(n, in[0]->e, in[0]->rows * (int)n->a, in[0]->cols);
}

static void shape_pick_best(dc_node *n, const dc_node **in) {
    const dc_node *worth = in[0], *x = in[1];
    DC_CHECK(worth->e == 1 && worth->cols == 1 && x->e == 1 && worth->rows == x->rows);
    DC_CHECK(n->a >= 1 && x->rows % (int)n->a == 0);
    give(n, 1, x->rows / (int)n->a, x->cols);
}

static void shape_group_max(dc_node *n, const dc_node **in) {
    DC_CHECK(n->a >= 1 && in[0]->cols == 1 && in[0]->rows % (int)n->a == 0);
    give(n, in[0]->e, in[0]->rows / (int)n->a, 1);
}

static void shape_reduction(dc_node *n, const dc_node **in) {
    for (int i = 1; i < n->in_count; i++)
        DC_CHECK(same_rows_and_cols(in[i], in[0]) && (in[i]->e == in[0]->e || in[i]->e == 1));
    give(n, 1, 1, 1);
}

static void shape_one_member(dc_node *n, const dc_node **in) {
    DC_CHECK(in[0]->e == 1);
    shape_reduction(n, in);
}

// ---- the table ----

enum { NONE = 0, X = 1, Y = 2, Z = 4 };

static const dc_op_rule table[DC_OPS] = {
    // clang-format off
    [DC_OP_INPUT] = {.name = "input", .attributes = "", .text = "data"},
    [DC_OP_PARAM] = {.name = "param", .attributes = "", .text = "weights"},
    [DC_OP_ROWS] = {.name = "rows", .least = 1, .most = 1, .flows = X, .rowwise = X,
                    .attributes = "", .text = "some rows of x, at no cost"},
    [DC_OP_STOP] = {.name = "stop", .least = 1, .most = 1, .flows = NONE, .rowwise = X,
                    .attributes = "", .text = "x without gradient, at no cost"},
#define OP(name, least, most, op_class, shape, reads, flows, rowwise, attributes, text)            \
    [DC_OP_##name] = {#name, shape_##shape, attributes, text,                                      \
                      least, most, DC_CLASS_##op_class, reads, flows, rowwise},
#include "tensor/ops.def"
#undef OP
    // clang-format on
};

const dc_op_rule *dc_rule(dc_op op) {
    return &table[op];
}

static void append(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void dc_op_describe(const dc_graph *g, dc_ref r, char *text, size_t size) {
    const dc_node *n = &g->nodes[r];
    const dc_op_rule *rule = dc_rule(n->op);
    *text = 0;
    append(text, size, "%s \"%s\" of ", rule->name, n->name);
    for (int i = 0; i < n->in_count; i++) {
        const dc_node *x = &g->nodes[n->in[i]];
        append(text, size, "(%d, %d, %d), ", x->e, x->rows, x->cols);
    }
    double values[2] = {n->a, n->b};
    const char *name = rule->attributes;
    for (int i = 0; i < 2 && *name; i++) {
        int length = (int)strcspn(name, ",");
        append(text, size, "%.*s %g, ", length, name, values[i]);
        name += length + (int)strspn(name + length, ", ");
    }
    append(text, size, "to (%d, %d, %d)", n->e, n->rows, n->cols);
}

// ---- constructors ----

#define APPLY(op, name, a, b, ...)                                                                 \
    dc_apply(g, DC_OP_##op, name, (dc_ref[]){__VA_ARGS__},                                         \
             sizeof(dc_ref[]){__VA_ARGS__} / sizeof(dc_ref), a, b)

dc_ref dc_linear(dc_graph *g, const char *name, dc_ref x, dc_ref w, dc_ref b) {
    return APPLY(linear, name, 0, 0, x, w, b);
}

dc_ref dc_gelu_layernorm(dc_graph *g, const char *name, dc_ref x, dc_ref scale, dc_ref bias) {
    return APPLY(gelu_layernorm, name, 0, 0, x, scale, bias);
}

dc_ref dc_conv3x3(dc_graph *g, const char *name, dc_ref x, dc_ref w, dc_ref b, int height,
                  int width) {
    return APPLY(conv3x3, name, height, width, x, w, b);
}

dc_ref dc_pair_dot(dc_graph *g, const char *name, dc_ref x, dc_ref y) {
    return APPLY(pair_dot, name, 0, 0, x, y);
}

dc_ref dc_add(dc_graph *g, dc_ref x, dc_ref y) {
    return APPLY(add, "add", 0, 0, x, y);
}

dc_ref dc_mul(dc_graph *g, dc_ref x, dc_ref y) {
    return APPLY(mul, "mul", 0, 0, x, y);
}

dc_ref dc_affine(dc_graph *g, dc_ref x, double scale, double shift) {
    return APPLY(affine, "affine", scale, shift, x);
}

dc_ref dc_clip(dc_graph *g, dc_ref x, double least, double most) {
    return APPLY(clip, "clip", least, most, x);
}

dc_ref dc_within(dc_graph *g, dc_ref steps, dc_ref exact, dc_ref x, double most) {
    return APPLY(within, "within", most, 0, steps, exact, x);
}

dc_ref dc_decay(dc_graph *g, dc_ref x, double rate) {
    return APPLY(decay, "decay", rate, 0, x);
}

dc_ref dc_power(dc_graph *g, dc_ref x, double base) {
    return APPLY(power, "power", base, 0, x);
}

dc_ref dc_exp(dc_graph *g, dc_ref x) {
    return APPLY(exp, "exp", 0, 0, x);
}

dc_ref dc_tanh(dc_graph *g, dc_ref x) {
    return APPLY(tanh, "tanh", 0, 0, x);
}

dc_ref dc_abs(dc_graph *g, dc_ref x) {
    return APPLY(abs, "abs", 0, 0, x);
}

dc_ref dc_sigmoid(dc_graph *g, dc_ref x) {
    return APPLY(sigmoid, "sigmoid", 0, 0, x);
}

dc_ref dc_softplus(dc_graph *g, dc_ref x) {
    return APPLY(softplus, "softplus", 0, 0, x);
}

dc_ref dc_gelu(dc_graph *g, const char *name, dc_ref x) {
    return APPLY(gelu, name, 0, 0, x);
}

dc_ref dc_linex(dc_graph *g, dc_ref d, dc_ref n, double most, double rate) {
    return APPLY(linex, "linex", most, rate, d, n);
}

dc_ref dc_relu(dc_graph *g, const char *name, dc_ref x) {
    return APPLY(relu, name, 0, 0, x);
}

dc_ref dc_side(dc_graph *g, dc_ref x, double above) {
    return APPLY(side, "side", above, 0, x);
}

dc_ref dc_ensemble_min(dc_graph *g, dc_ref x) {
    return APPLY(ensemble_min, "ensemble_min", 0, 0, x);
}

dc_ref dc_ensemble_mean(dc_graph *g, dc_ref x) {
    return APPLY(ensemble_mean, "ensemble_mean", 0, 0, x);
}

dc_ref dc_row_dot(dc_graph *g, dc_ref x, dc_ref y) {
    return APPLY(row_dot, "row_dot", 0, 0, x, y);
}

dc_ref dc_row_square(dc_graph *g, dc_ref x, dc_ref y) {
    return APPLY(row_square, "row_square", 0, 0, x, y);
}

dc_ref dc_normalise(dc_graph *g, dc_ref x) {
    return APPLY(normalise, "normalise", 0, 0, x);
}

dc_ref dc_iqe(dc_graph *g, dc_ref x, dc_ref y, dc_ref rho, int group) {
    return APPLY(iqe, "iqe", group, 0, x, y, rho);
}

dc_ref dc_mrn(dc_graph *g, dc_ref x, dc_ref y, int chunks, dc_mrn_form form) {
    return APPLY(mrn, "mrn", chunks, form, x, y);
}

dc_ref dc_max_pool(dc_graph *g, const char *name, dc_ref x, int height, int width) {
    return APPLY(max_pool, name, height, width, x);
}

dc_ref dc_logsumexp(dc_graph *g, dc_ref x) {
    return APPLY(logsumexp, "logsumexp", 0, 0, x);
}

dc_ref dc_expected(dc_graph *g, dc_ref logits, dc_ref q) {
    return APPLY(expected, "expected", 0, 0, logits, q);
}

dc_ref dc_mrn_pairs(dc_graph *g, const char *name, dc_ref x, dc_ref y, int chunks,
                    dc_mrn_form form) {
    return APPLY(mrn_pairs, name, chunks, form, x, y);
}

dc_ref dc_columns(dc_graph *g, dc_ref x, int first, int count) {
    return APPLY(columns, "columns", first, count, x);
}

dc_ref dc_unpack(dc_graph *g, dc_ref index, dc_ref y) {
    return APPLY(unpack, "unpack", 0, 0, index, y);
}

dc_ref dc_splice(dc_graph *g, const char *name, dc_ref x, dc_ref y, int column) {
    return APPLY(splice, name, column, 0, x, y);
}

dc_ref dc_join(dc_graph *g, dc_ref x, dc_ref y) {
    return APPLY(join, "join", 0, 0, x, y);
}

dc_ref dc_interleave(dc_graph *g, const char *name, dc_ref x, int pictures, int channels) {
    return APPLY(interleave, name, pictures, channels, x);
}

dc_ref dc_repeat(dc_graph *g, dc_ref x, int times) {
    return APPLY(repeat, "repeat", times, 0, x);
}

dc_ref dc_pick_best(dc_graph *g, dc_ref worth, dc_ref x, int group) {
    return APPLY(pick_best, "pick_best", group, 0, worth, x);
}

dc_ref dc_group_max(dc_graph *g, dc_ref x, int group) {
    return APPLY(group_max, "group_max", group, 0, x);
}

dc_ref dc_mean(dc_graph *g, const char *name, dc_ref x) {
    return APPLY(mean, name, 0, 0, x);
}

dc_ref dc_expectile(dc_graph *g, const char *name, dc_ref p, dc_ref t, dc_ref weight,
                    double below) {
    if (weight < 0) return APPLY(expectile, name, below, 0, p, t);
    return APPLY(expectile, name, below, 0, p, t, weight);
}

dc_ref dc_bce(dc_graph *g, const char *name, dc_ref logit, dc_ref t, double above, double scale) {
    return APPLY(bce, name, above, scale, logit, t);
}

dc_ref dc_bce_weighted(dc_graph *g, const char *name, dc_ref logit, dc_ref t, dc_ref weight,
                       double above, double scale) {
    if (weight < 0) return dc_bce(g, name, logit, t, above, scale);
    return APPLY(bce, name, above, scale, logit, t, weight);
}

dc_ref dc_square(dc_graph *g, const char *name, dc_ref x, dc_ref y, double scale) {
    return APPLY(square, name, scale, 0, x, y);
}

dc_ref dc_log_likelihood(dc_graph *g, const char *name, dc_ref logits, dc_ref t) {
    return APPLY(log_likelihood, name, 0, 0, logits, t);
}

dc_ref dc_relative_mean(dc_graph *g, const char *name, dc_ref x) {
    return APPLY(relative_mean, name, 0, 0, x);
}
