// A network, a graph over it, and something to run them with, for tests of the engine.
#ifndef RIG_H
#define RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "nn/mlp.h"
#include "tensor/run.h"

typedef struct rig {
    dc_params params;
    dc_mlp net;
    dc_graph graph;
    dc_exec exec;
    dc_pool *pool; // Nullable
} rig;

static inline double uniform(uint64_t seed, uint64_t index) { // in [-1, 1)
    return (double)dc_philox(seed, 90, index >> 32, (uint32_t)index).v[0] / 2147483648.0 - 1;
}

static inline void rig_open(rig *t, int e, int in, const dc_int_list *hidden) {
    *t = (rig){0};
    dc_mlp_declare(&t->net, &t->params,
                   &(dc_mlp_spec){"net", e, in, 1, hidden, 1, true, true, false});
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
}

// Finish toward the loss. Weights are the same for rigs of the same seed; none is trivial.
static inline void rig_finish(rig *t, dc_ref loss, uint64_t seed, int threads) {
    assert_int_equal(dc_graph_finish(&t->graph, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, seed), DC_OK);
    for (int64_t i = 0; i < t->params.slabs.size; i++) {
        t->params.slabs.live[i] += (dc_real)(0.2 * uniform(seed + 1, (uint64_t)i));
        t->params.slabs.ema[i] += (dc_real)(0.2 * uniform(seed + 2, (uint64_t)i));
    }
    if (threads) assert_int_equal(dc_pool_new(&t->pool, threads), DC_OK);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, t->pool), DC_OK);
}

static inline void rig_close(rig *t) {
    dc_exec_fini(&t->exec);
    dc_graph_fini(&t->graph);
    dc_params_free(&t->params);
    dc_pool_free(t->pool);
}

static inline void fill(const rig *t, dc_ref input, uint64_t seed) {
    dc_tensor v = dc_value(&t->exec, input);
    for (int64_t i = 0; i < (int64_t)v.rows * v.cols; i++)
        v.p[i] = (dc_real)uniform(seed, (uint64_t)i);
}

static inline bool is_finite(dc_real x) {
    return isfinite(x) != 0;
}

static inline dc_real run(const rig *t) {
    dc_exec_run(&t->exec, &dc_backend_cpu);
    return *dc_value(&t->exec, t->graph.loss).p;
}

static inline const dc_real *grad_of(const rig *t, const char *name) {
    const dc_param_row *row = dc_params_find(&t->params, name);
    assert_non_null(row);
    return t->params.slabs.grad + row->offset;
}

// ||x - y|| <= tolerance ||y||, with ||y|| > 0.
static inline void assert_near(const dc_real *x, const dc_real *y, int64_t count,
                               double tolerance) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    assert_true(size > 0 && sqrt(error) <= tolerance * sqrt(size));
}

static inline void assert_near_all(const rig *a, const rig *b, double tolerance) {
    for (int i = 0; i < a->params.count; i++) {
        const dc_param_row *row = &a->params.rows[i];
        assert_near(grad_of(a, row->name), grad_of(b, row->name),
                    (int64_t)row->e * row->rows * row->cols, tolerance);
    }
}

static inline void assert_same_bits(const dc_real *x, const dc_real *y, int64_t count) {
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
}

enum { BATCH = 300 };
static const dc_int_list wide = {3,
                                 {150, 200, 140}}; // several blocks of rows, of W and of the slab

// A step like dcrl's: parents and first children stacked under live weights, second children under
// EMA.
static inline void build_training(rig *t, int threads) {
    rig_open(t, 1, 9, &wide);
    dc_graph *g = &t->graph;
    dc_ref online = dc_input(g, "online", 2 * BATCH, 9), ema = dc_input(g, "ema", BATCH, 9);
    dc_ref y = dc_mlp_apply(g, &t->net, online, DC_LIVE);
    dc_ref parent = dc_rows(g, y, 0, BATCH), first = dc_stop(g, dc_rows(g, y, BATCH, BATCH));
    dc_ref target = dc_add(g, first, dc_mlp_apply(g, &t->net, ema, DC_EMA));
    dc_ref weight = dc_decay(g, dc_stop(g, parent), 0.5);
    rig_finish(t, dc_expectile(g, "loss", parent, target, weight, 0.3), 3, threads);
    fill(t, online, 11);
    fill(t, ema, 12);
}

// Sizes that no vector register divides.
static const dc_int_list narrow = {3, {33, 20, 24}};

#endif
