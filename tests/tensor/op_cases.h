// A case for every op of ops.def: what test_ops_double.c differentiates, and what test_gpu_graph.c compares between the
// two backends.
#ifndef OP_CASES_H
#define OP_CASES_H

#include "rig.h"

typedef struct op_case {
    dc_op op;
    int count;
    int shape[3][3]; // e, rows, cols of each input
    double a, b;
    unsigned trained; // inputs that gradient reaches
    double low, high; // range of the inputs' numbers
} op_case;

static const op_case op_cases[] = {
    {DC_OP_linear, 3, {{2, 5, 4}, {2, 4, 3}, {2, 1, 3}}, 0, 0, 7, -1, 1},
    {DC_OP_linear, 3, {{1, 300, 6}, {1, 6, 1}, {1, 1, 1}}, 0, 0, 7, -1, 1},     // one output, two
                                                                                // blocks
    {DC_OP_linear, 3, {{1, 300, 130}, {1, 130, 3}, {1, 1, 3}}, 0, 0, 7, -1, 1}, // two blocks each
                                                                                // way
    {DC_OP_gelu_layernorm, 3, {{2, 5, 7}, {2, 1, 7}, {2, 1, 7}}, 0, 0, 7, -2, 2},
    {DC_OP_gelu_layernorm, 3, {{1, 300, 16}, {1, 1, 16}, {1, 1, 16}}, 0, 0, 7, -3, 3},
    {DC_OP_add, 2, {{2, 5, 3}, {2, 5, 3}}, 0, 0, 3, -1, 1},
    {DC_OP_mul, 2, {{2, 5, 3}, {2, 5, 3}}, 0, 0, 3, -1, 1},
    {DC_OP_affine, 1, {{1, 5, 3}}, 1.7, -0.3, 1, -1, 1},
    {DC_OP_clip, 1, {{1, 64, 3}}, -0.5, 0.6, 1, -1, 1},
    {DC_OP_within, 3, {{1, 40, 1}, {1, 40, 1}, {2, 40, 1}}, 0.5, 0, 4, -1, 1},
    {DC_OP_unpack, 2, {{1, 6, 1}, {2, 9, 1}}, 0, 0, 0, -1, 8}, // no gradient: nothing to compare
    {DC_OP_decay, 1, {{1, 40, 1}}, 0.7, 0, 1, -1, 3},
    {DC_OP_expectile, 2, {{2, 40, 1}, {2, 40, 1}}, 0.3, 0, 3, -1, 1},
    {DC_OP_expectile, 3, {{2, 40, 1}, {2, 40, 1}, {2, 40, 1}}, 0.7, 0, 3, 0.1, 1},
    {DC_OP_sigmoid, 1, {{2, 9, 3}}, 0, 0, 1, -4, 4},
    {DC_OP_softplus, 1, {{2, 9, 3}}, 0, 0, 1, -4, 4},
    {DC_OP_power, 1, {{1, 9, 1}}, 0.99, 0, 0, 0, 9},
    {DC_OP_bce, 2, {{2, 40, 1}, {2, 40, 1}}, 0.7, 2, 1, 0.01, 0.99},
    {DC_OP_bce, 3, {{2, 40, 1}, {2, 40, 1}, {2, 40, 1}}, 0.3, 1, 1, 0.01, 0.99},
    {DC_OP_ensemble_min, 1, {{3, 9, 2}}, 0, 0, 1, -1, 1},
    {DC_OP_splice, 2, {{1, 9, 5}, {1, 9, 2}}, 2, 0, 2, -1, 1},
    {DC_OP_square, 2, {{1, 9, 4}, {1, 9, 4}}, 1.5, 0, 3, -1, 1},
    {DC_OP_linear, 3, {{1, 300, 6}, {2, 6, 3}, {2, 1, 3}}, 0, 0, 7, -1, 1}, // an input that members
                                                                            // share
    {DC_OP_expected, 2, {{1, 9, 4}, {1, 36, 1}}, 0, 0, 1, -2, 2},
    {DC_OP_log_likelihood, 2, {{1, 9, 4}, {1, 9, 4}}, 0, 0, 1, -2, 2},
    {DC_OP_relative_mean, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1},
    {DC_OP_mean, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1},
    {DC_OP_pair_dot, 2, {{2, 6, 5}, {2, 7, 5}}, 0, 0, 3, -1, 1},
    {DC_OP_pair_dot, 2, {{1, 300, 3}, {1, 290, 3}}, 0, 0, 3, -1, 1}, // two blocks each way
    {DC_OP_exp, 1, {{2, 9, 3}}, 0, 0, 1, -2, 1},
    {DC_OP_gelu, 1, {{2, 300, 3}}, 0, 0, 1, -3, 3},
    {DC_OP_relu, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1},
    {DC_OP_side, 1, {{2, 9, 3}}, 0.7, 0, 0, -1, 1},
    {DC_OP_ensemble_mean, 1, {{3, 9, 2}}, 0, 0, 1, -1, 1},
    {DC_OP_row_dot, 2, {{2, 300, 5}, {2, 300, 5}}, 0, 0, 3, -1, 1},
    {DC_OP_row_square, 2, {{2, 300, 5}, {2, 300, 5}}, 0, 0, 3, -1, 1},
    {DC_OP_normalise, 1, {{2, 300, 5}}, 0, 0, 1, -1, 1},
    {DC_OP_iqe, 3, {{1, 300, 12}, {1, 300, 12}, {1, 1, 1}}, 4, 0, 7, -1, 1},
    {DC_OP_repeat, 1, {{2, 5, 3}}, 3, 0, 0, -1, 1},
    {DC_OP_pick_best, 2, {{1, 15, 1}, {1, 15, 4}}, 3, 0, 0, -1, 1},
    {DC_OP_group_max, 1, {{2, 15, 1}}, 3, 0, 0, -1, 1},
    {DC_OP_group_max, 1, {{2, 600, 1}}, 2, 0, 0, -1, 1},    // two blocks
    {DC_OP_add, 2, {{1, 5, 3}, {2, 5, 3}}, 0, 0, 3, -1, 1}, // one member for all
    {DC_OP_mul, 2, {{2, 5, 3}, {1, 5, 3}}, 0, 0, 3, -1, 1},
    {DC_OP_expectile, 3, {{2, 40, 1}, {1, 40, 1}, {1, 40, 1}}, 0.7, 0, 3, 0.1, 1},
    {DC_OP_bce, 3, {{2, 40, 1}, {1, 40, 1}, {1, 40, 1}}, 0.3, 1, 1, 0.01, 0.99},
    {DC_OP_square, 2, {{2, 9, 4}, {1, 9, 4}}, 1.5, 0, 3, -1, 1},
    {DC_OP_mul, 2, {{1, 1, 1}, {1, 1, 1}}, 0, 0, 3, -1, 1}, // numbers
    {DC_OP_exp, 1, {{1, 1, 1}}, 0, 0, 1, -1, 1},
    {DC_OP_tanh, 1, {{2, 9, 3}}, 0, 0, 1, -3, 3},
    {DC_OP_abs, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1},
    {DC_OP_columns, 1, {{2, 9, 5}}, 1, 3, 1, -1, 1},
    {DC_OP_columns, 1, {{1, 300, 2}}, 1, 1, 1, -1, 1},
    {DC_OP_linex, 2, {{2, 40, 3}, {2, 40, 3}}, 0.5, 0.9, 1, -1, 1},
    {DC_OP_linex, 2, {{2, 9, 3}, {1, 9, 3}}, 0.5, 0.9, 1, -1, 1},
    {DC_OP_logsumexp, 1, {{2, 300, 5}}, 0, 0, 1, -2, 2},
    {DC_OP_mrn, 2, {{2, 300, 12}, {2, 300, 12}}, 3, DC_MRN_TMD, 3, -1, 1},
    {DC_OP_mrn, 2, {{1, 9, 10}, {1, 9, 10}}, 1, DC_MRN_QRL, 3, -1, 1},
    // Wide ranges, so that of all these pairs none is near where another difference becomes the largest.
    {DC_OP_mrn_pairs, 2, {{2, 6, 12}, {2, 7, 12}}, 2, DC_MRN_TMD, 3, -20, 20},
    {DC_OP_mrn_pairs, 2, {{1, 66, 6}, {1, 66, 6}}, 1, DC_MRN_QRL, 3, -20, 20}, // two panels
    {DC_OP_mrn_pairs, 2, {{1, 5, 4}, {1, 290, 4}}, 1, DC_MRN_TMD, 3, -20, 20}, // two blocks
    {DC_OP_mrn_pairs, 2, {{1, 300, 4}, {1, 5, 4}}, 1, DC_MRN_TMD, 3, -20, 20}, // the other way
    // Pictures: of one place, in three blocks; no wider than a window; two tiles.
    {DC_OP_conv3x3, 3, {{1, 3, 40}, {1, 18, 3}, {1, 1, 3}}, 4, 5, 7, -1, 1},
    {DC_OP_conv3x3, 3, {{1, 19, 1}, {1, 9, 2}, {1, 1, 2}}, 1, 1, 7, -1, 1},
    {DC_OP_conv3x3, 3, {{1, 9, 12}, {1, 18, 1}, {1, 1, 1}}, 3, 2, 7, -1, 1},
    {DC_OP_conv3x3, 3, {{1, 2, 2160}, {1, 540, 2}, {1, 1, 2}}, 6, 6, 7, -1, 1},
    {DC_OP_max_pool, 1, {{1, 5, 72}}, 6, 4, 1, -9, 9},
    {DC_OP_max_pool, 1, {{1, 4, 30}}, 5, 3, 1, -9, 9}, // odd sizes
    {DC_OP_max_pool, 1, {{1, 9, 4}}, 1, 2, 1, -9, 9},
    // More channels than are looked at together.
    {DC_OP_max_pool, 1, {{1, 2, 396}}, 3, 2, 1, -2, 2},
    {DC_OP_join, 2, {{2, 9, 3}, {2, 9, 2}}, 0, 0, 3, -1, 1},
    {DC_OP_join, 2, {{1, 300, 2}, {1, 300, 2}}, 0, 0, 3, -1, 1},
    {DC_OP_interleave, 1, {{1, 9, 24}}, 2, 3, 0, -1, 1},
    {DC_OP_interleave, 1, {{1, 300, 15}}, 3, 1, 0, -1, 1},
};
enum { OP_CASES = sizeof op_cases / sizeof op_cases[0] };

#define OP_WEIGHT 1.7 // of a reduction

static inline double op_unit(uint32_t i) {
    return (double)dc_philox(7, 99, 0, i).v[0] / 4294967296.0;
}

// Inputs of an op as parameters x0, x1, x2: live where the case says that they have gradients.
static inline void op_open(rig *t, const op_case *c, dc_ref *in) {
    *t = (rig){0};
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    for (int i = 0; i < c->count; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        const int *s = c->shape[i];
        int64_t offset =
            dc_params_add(&t->params, name, s[0], s[1], s[2], DC_INIT_ZERO, 0, true)->offset;
        in[i] = dc_param(&t->graph, name, s[0], s[1], s[2], offset,
                         c->trained >> i & 1 ? DC_LIVE : DC_STOPPED);
    }
}

static inline void op_fill(rig *t, const op_case *c) {
    for (int64_t i = 0; i < t->params.slabs.size; i++)
        t->params.slabs.live[i] = (dc_real)(c->low + (c->high - c->low) * op_unit((uint32_t)i));
}

// One op over parameters, its output weighed by fixed numbers and averaged; a reduction's by a number, since a GPU
// knows sums of reductions alone.
static inline void op_build(rig *t, const op_case *c) {
    dc_ref in[3];
    op_open(t, c, in);
    dc_ref y = dc_apply(&t->graph, c->op, "op", in, c->count, c->a, c->b);
    const dc_node *n = &t->graph.nodes[y];
    dc_ref loss;
    if (n->e * n->rows * n->cols == 1) {
        loss = dc_affine(&t->graph, y, OP_WEIGHT, 0);
    } else {
        const dc_param_row *row =
            dc_params_add(&t->params, "w", n->e, n->rows, n->cols, DC_INIT_ZERO, 0, true);
        dc_ref w = dc_param(&t->graph, "w", n->e, n->rows, n->cols, row->offset, DC_STOPPED);
        loss = dc_mean(&t->graph, "loss", dc_mul(&t->graph, y, w));
    }
    assert_int_equal(dc_graph_finish(&t->graph, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
    op_fill(t, c);
    assert_int_equal(dc_pool_new(&t->pool, 2), DC_OK);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, t->pool), DC_OK);
}

#endif
