// The engine as a whole, in the float build that trains: what graph.c, grad.c, plan.c and run.c
// decide together. Single ops are checked in test_ops_double.c; here are threads, row ranges, sums,
// views, the memory plan, not-a-number, the ensemble and packed rows.
//
// The oracle for most of it is the same graph run the plain way (`plain`): every number in memory
// of its own, every gradient zeroed beforehand and added to, all rows trained. Whatever grad.c and
// plan.c save must not show in the results.
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
#include "env/lock.h"
#include "nn/mlp.h"
#include "sample/gather.h"
#include "tensor/run.h"

// ---- a network, a graph over it, and something to run them with ----

typedef struct rig {
    dc_params params;
    dc_mlp net;
    dc_graph graph;
    dc_exec exec;
    dc_pool *pool; // Nullable
} rig;

static double uniform(uint64_t seed, uint64_t index) { // in [-1, 1)
    return (double)dc_philox(seed, 90, index >> 32, (uint32_t)index).v[0] / 2147483648.0 - 1;
}

static void rig_open(rig *t, int e, int in, const dc_int_list *hidden) {
    *t = (rig){0};
    dc_mlp_declare(&t->net, &t->params, "net", e, in, hidden, 1, 1, true);
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
}

// Finish toward the loss. Weights are the same for rigs of the same seed; none is trivial.
static void rig_finish(rig *t, dc_ref loss, uint64_t seed, int threads) {
    assert_int_equal(dc_graph_finish(&t->graph, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, seed), DC_OK);
    for (int64_t i = 0; i < t->params.slabs.size; i++) {
        t->params.slabs.live[i] += (dc_real)(0.2 * uniform(seed + 1, (uint64_t)i));
        t->params.slabs.ema[i] += (dc_real)(0.2 * uniform(seed + 2, (uint64_t)i));
    }
    if (threads) assert_int_equal(dc_pool_new(&t->pool, threads), DC_OK);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, t->pool), DC_OK);
}

static void rig_close(rig *t) {
    dc_exec_fini(&t->exec);
    dc_graph_fini(&t->graph);
    dc_params_free(&t->params);
    dc_pool_free(t->pool);
}

static void fill(const rig *t, dc_ref input, uint64_t seed) {
    dc_view v = dc_value(&t->exec, input);
    for (int64_t i = 0; i < (int64_t)v.rows * v.cols; i++)
        v.p[i] = (dc_real)uniform(seed, (uint64_t)i);
}

static bool is_finite(dc_real x) {
    return isfinite(x) != 0;
}

static dc_real run(const rig *t) {
    dc_exec_run(&t->exec, &dc_backend_cpu);
    return *dc_value(&t->exec, t->graph.loss).p;
}

static const dc_real *grad_of(const rig *t, const char *name) {
    const dc_param_row *row = dc_params_find(&t->params, name);
    assert_non_null(row);
    return t->params.slabs.grad + row->offset;
}

// ||x - y|| <= tolerance ||y||, with ||y|| > 0.
static void assert_near(const dc_real *x, const dc_real *y, int64_t count, double tolerance) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    assert_true(size > 0 && sqrt(error) <= tolerance * sqrt(size));
}

static void assert_near_all(const rig *a, const rig *b, double tolerance) {
    for (int i = 0; i < a->params.count; i++) {
        const dc_param_row *row = &a->params.rows[i];
        assert_near(grad_of(a, row->name), grad_of(b, row->name),
                    (int64_t)row->e * row->rows * row->cols, tolerance);
    }
}

static void assert_same_bits(const dc_real *x, const dc_real *y, int64_t count) {
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
}

// ---- threads ----

enum { BATCH = 300 };
static const dc_int_list wide = {3,
                                 {150, 200, 140}}; // several blocks of rows, of W and of the slab

// A step like dcrl's: parents and first children stacked under live weights, second children under
// EMA.
static void build_training(rig *t, int threads) {
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

static void train(const rig *t, int steps) {
    for (int s = 1; s <= steps; s++) {
        run(t);
        dc_adam adam = {3e-3, 0.9, 0.999, 1e-8, 0.005, s, 0, 0};
        dc_backend_cpu.update(&t->params.slabs, &adam, t->pool);
    }
}

static void test_threads_do_not_show(void **state) {
    (void)state;
    rig one;
    build_training(&one, 0);
    dc_real before = run(&one);
    train(&one, 4);
    assert_true(run(&one) < before); // it does learn
    double norm2 = dc_backend_cpu.grad_norm2(&one.params.slabs, one.pool);
    const int threads[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        rig t;
        build_training(&t, threads[i]);
        train(&t, 4);
        dc_real loss = run(&t), want = *dc_value(&one.exec, one.graph.loss).p;
        const dc_slabs *a = &t.params.slabs, *b = &one.params.slabs;
        assert_same_bits(&loss, &want, 1);
        assert_same_bits(a->live, b->live, b->size);
        assert_same_bits(a->ema, b->ema, b->ema_size);
        assert_same_bits(a->grad, b->grad, b->size);
        assert_same_bits(a->m, b->m, b->size);
        assert_same_bits(a->v, b->v, b->size);
        assert_true(dc_backend_cpu.grad_norm2(a, t.pool) == norm2);
        rig_close(&t);
    }
    rig_close(&one);
}

// ---- row ranges ----

static const dc_int_list narrow = {3, {33, 20, 24}};
enum { TRAINED = 290, REST = 270, WIDTH = 5 };

typedef struct stack {
    rig rig;
    dc_ref x, y; // input and output of the network: rest, trained, rest
    int rest;
} stack;

// Trained rows in the middle of others that pass no gradient; `rest` may be 0.
static void stack_open(stack *s, int rest) {
    rig *t = &s->rig;
    rig_open(t, 1, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    s->rest = rest;
    s->x = dc_input(g, "x", TRAINED + 2 * rest, WIDTH);
    dc_ref goal = dc_input(g, "goal", TRAINED, 1);
    s->y = dc_mlp_apply(g, &t->net, s->x, DC_LIVE);
    dc_ref target = goal;
    for (int side = 0; rest && side < 2; side++) { // stopped rows are used, but weigh nothing
        dc_ref other = dc_stop(g, dc_rows(g, s->y, side * (TRAINED + rest), rest));
        dc_keep(g, dc_mean(g, "other", other));
    }
    rig_finish(t, dc_expectile(g, "loss", dc_rows(g, s->y, rest, TRAINED), target, -1, 0.7), 5, 0);
    fill(t, goal, 21);
    fill(t, s->x, 22);
    dc_view x = dc_value(&t->exec, s->x);
    for (int i = 0; i < TRAINED * WIDTH; i++)
        x.p[rest * WIDTH + i] = (dc_real)uniform(23, (uint64_t)i);
}

static void test_stopped_rows_do_not_train(void **state) {
    (void)state;
    stack alone, stacked;
    stack_open(&alone, 0);
    stack_open(&stacked, REST);
    const dc_node *y = &stacked.rig.graph.nodes[stacked.y];
    assert_int_equal(y->lo, REST); // no work is spent on the rest
    assert_int_equal(y->hi, REST + TRAINED);
    dc_real a = run(&alone.rig), b = run(&stacked.rig);
    assert_near(&b, &a, 1, 1e-6);
    assert_near_all(&stacked.rig, &alone.rig, 2e-6);
    // Whatever stands in the other rows, not a bit changes.
    const dc_slabs *slabs = &stacked.rig.params.slabs;
    dc_real *before = malloc((size_t)slabs->size * sizeof *before);
    assert_non_null(before);
    memcpy(before, slabs->grad, (size_t)slabs->size * sizeof *before);
    dc_view x = dc_value(&stacked.rig.exec, stacked.x);
    for (int i = 0; i < REST * WIDTH; i++)
        x.p[i] = x.p[(REST + TRAINED) * WIDTH + i] = (dc_real)(50 * uniform(24, (uint64_t)i));
    run(&stacked.rig);
    assert_same_bits(slabs->grad, before, slabs->size);
    free(before);
    rig_close(&alone.rig);
    rig_close(&stacked.rig);
}

// A stopped value in a target is a constant: the same numbers as an input give the same gradients.
// Stopping one factor of y y halves the gradient of its mean.
static dc_ref build_bootstrap(rig *t, bool stop, dc_ref *goal) {
    rig_open(t, 1, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    dc_ref x = dc_input(g, "x", 2 * TRAINED, WIDTH), y = dc_mlp_apply(g, &t->net, x, DC_LIVE);
    dc_ref child = dc_rows(g, y, TRAINED, TRAINED);
    *goal = stop ? dc_stop(g, child) : dc_input(g, "goal", TRAINED, 1);
    dc_keep(g, y);
    rig_finish(t, dc_expectile(g, "loss", dc_rows(g, y, 0, TRAINED), *goal, -1, 0.7), 5, 0);
    fill(t, x, 25);
    return child;
}

static void test_stop_is_a_constant(void **state) {
    (void)state;
    rig stopped, given;
    dc_ref child, goal;
    child = build_bootstrap(&stopped, true, &goal);
    dc_real a = run(&stopped);
    build_bootstrap(&given, false, &goal);
    memcpy(dc_value(&given.exec, goal).p, dc_value(&stopped.exec, child).p,
           TRAINED * sizeof(dc_real));
    dc_real b = run(&given);
    assert_same_bits(&a, &b, 1);
    assert_same_bits(stopped.params.slabs.grad, given.params.slabs.grad, given.params.slabs.size);
    rig_close(&stopped);
    rig_close(&given);
}

static void build_square(rig *t, bool stop) {
    rig_open(t, 1, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    dc_ref x = dc_input(g, "x", TRAINED, WIDTH), y = dc_mlp_apply(g, &t->net, x, DC_LIVE);
    dc_ref square = dc_mul(g, y, stop ? dc_stop(g, y) : y);
    rig_finish(t, dc_mean(g, "loss", dc_affine(g, square, stop ? 2 : 1, 0)), 5, 0);
    fill(t, x, 26);
}

static void test_stop_halves_a_square(void **state) {
    (void)state;
    rig stopped, whole;
    build_square(&stopped, true);
    build_square(&whole, false);
    run(&stopped);
    run(&whole);
    assert_near_all(&stopped, &whole, 1e-6);
    rig_close(&stopped);
    rig_close(&whole);
}

// ---- sums and views ----

// mean of (x1 W + b) + 2 mean of (x2 W + b), by hand: dW = mean of x1 + twice that of x2, db = 3.
static void test_weights_used_twice(void **state) {
    (void)state;
    rig t;
    rig_open(&t, 1, WIDTH, &(dc_int_list){0});
    dc_graph *g = &t.graph;
    dc_ref x1 = dc_input(g, "x1", 7, WIDTH), x2 = dc_input(g, "x2", 300, WIDTH);
    dc_ref first = dc_mean(g, "first", dc_mlp_apply(g, &t.net, x1, DC_LIVE));
    dc_ref second = dc_mean(g, "second", dc_mlp_apply(g, &t.net, x2, DC_LIVE));
    rig_finish(&t, dc_add(g, first, dc_affine(g, second, 2, 0)), 6, 0);
    fill(&t, x1, 31);
    fill(&t, x2, 32);
    run(&t);
    run(&t); // a second run starts from zero again
    dc_real want[WIDTH] = {0}, three = 3;
    dc_view v1 = dc_value(&t.exec, x1), v2 = dc_value(&t.exec, x2);
    for (int c = 0; c < WIDTH; c++) {
        double sum1 = 0, sum2 = 0;
        for (int r = 0; r < 7; r++)
            sum1 += (double)v1.p[r * WIDTH + c];
        for (int r = 0; r < 300; r++)
            sum2 += (double)v2.p[r * WIDTH + c];
        want[c] = (dc_real)(sum1 / 7 + 2 * sum2 / 300);
    }
    assert_near(grad_of(&t, "net/0/w"), want, WIDTH, 1e-6);
    assert_near(grad_of(&t, "net/0/b"), &three, 1, 1e-6);
    rig_close(&t);
}

// The same through all layers: a network on two inputs, against the sum of one graph each.
static void build_uses(rig *t, int which) { // bit 0: x1, bit 1: x2
    rig_open(t, 1, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    dc_ref loss = -1, x[2] = {-1, -1};
    for (int k = 0; k < 2; k++) {
        if (!(which >> k & 1)) continue;
        x[k] = dc_input(g, "x", k ? TRAINED : 7, WIDTH);
        dc_ref y = dc_mlp_apply(g, &t->net, x[k], DC_LIVE),
               part = dc_mean(g, "part", dc_mul(g, y, y));
        loss = loss < 0 ? part : dc_add(g, loss, part);
    }
    rig_finish(t, loss, 6, 0);
    for (int k = 0; k < 2; k++)
        if (x[k] >= 0) fill(t, x[k], 33 + (uint64_t)k);
}

static void test_network_used_twice(void **state) {
    (void)state;
    rig one, two, both;
    build_uses(&one, 1);
    build_uses(&two, 2);
    build_uses(&both, 3);
    dc_real a = run(&one), b = run(&two), c = run(&both), sum = a + b;
    assert_near(&c, &sum, 1, 1e-6);
    for (int64_t i = 0; i < one.params.slabs.size; i++)
        one.params.slabs.grad[i] += two.params.slabs.grad[i];
    assert_near_all(&both, &one, 1e-6);
    rig_close(&one);
    rig_close(&two);
    rig_close(&both);
}

// Rows 3 ... 6 of 12 directly, or as rows of rows of rows; rows 4 and 5 count once more.
static void build_views(rig *t, bool nested) {
    rig_open(t, 1, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    dc_ref x = dc_input(g, "x", 12, WIDTH), y = dc_mlp_apply(g, &t->net, x, DC_LIVE);
    dc_ref a =
        nested ? dc_rows(g, dc_rows(g, dc_rows(g, y, 1, 10), 1, 8), 1, 4) : dc_rows(g, y, 3, 4);
    dc_ref b = nested ? dc_rows(g, a, 1, 2) : dc_rows(g, y, 4, 2);
    rig_finish(t, dc_add(g, dc_mean(g, "a", dc_mul(g, a, a)), dc_mean(g, "b", b)), 7, 0);
    fill(t, x, 41);
}

static void test_views_of_views(void **state) {
    (void)state;
    rig direct, nested;
    build_views(&direct, false);
    build_views(&nested, true);
    dc_real a = run(&direct), b = run(&nested);
    assert_same_bits(&a, &b, 1);
    assert_same_bits(nested.params.slabs.grad, direct.params.slabs.grad, direct.params.slabs.size);
    rig_close(&direct);
    rig_close(&nested);
}

// ---- memory plan, sums and rows together: random graphs against the plain way ----

enum { NODES = 40, ROWS = 6, COLS = 8, WEIGHTS = 3 };

typedef struct garden { // a graph in the making: nodes to choose from, by their number of rows
    rig rig;
    dc_ref x, whole[NODES], half[NODES];
    int whole_count, half_count;
    uint64_t seed, draws;
} garden;

static int pick(garden *s, int n) {
    return (int)dc_below(dc_philox(s->seed, 91, 0, (uint32_t)s->draws++).v[0], (uint32_t)n);
}

static dc_ref weight(garden *s, const char *part, int number) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", part, number);
    const dc_param_row *row = dc_params_find(&s->rig.params, name);
    dc_use use = pick(s, 4) ? DC_LIVE : DC_EMA;
    return dc_param(&s->rig.graph, name, 1, row->rows, row->cols, row->offset, use);
}

static dc_ref layer(garden *s, dc_ref x) {
    dc_graph *g = &s->rig.graph;
    if (pick(s, 2))
        return dc_gelu_layernorm(g, "norm", x, weight(s, "s", pick(s, WEIGHTS)), weight(s, "b", 0));
    int use = pick(s, WEIGHTS); // weights and bias of a linear are used alike
    dc_use kind = pick(s, 4) ? DC_LIVE : DC_STOPPED;
    char w[8], b[8];
    snprintf(w, sizeof w, "w%d", use);
    snprintf(b, sizeof b, "b%d", use);
    return dc_linear(g, "linear", x,
                     dc_param(g, w, 1, COLS, COLS, dc_params_find(&s->rig.params, w)->offset, kind),
                     dc_param(g, b, 1, 1, COLS, dc_params_find(&s->rig.params, b)->offset, kind));
}

// One more node over others of the same number of rows.
static dc_ref grow(garden *s, const dc_ref *from, int count) {
    dc_graph *g = &s->rig.graph;
    dc_ref x = from[pick(s, count)], y = from[pick(s, count)];
    switch (pick(s, 8)) {
    case 0:
        return dc_add(g, x, y);
    case 1:
        return dc_mul(g, x, y);
    case 2:
        return dc_affine(g, x, 0.7, 0.1);
    case 3:
        return dc_clip(g, x, -0.8, 0.9);
    case 4:
        return dc_decay(g, x, 0.6);
    case 5:
        return pick(s, 3) ? dc_affine(g, x, -1.1, 0) : dc_stop(g, x);
    default:
        return layer(s, x);
    }
}

static void add_node(garden *s) {
    if (pick(s, 4) == 0) {
        dc_ref x = s->whole[pick(s, s->whole_count)];
        s->half[s->half_count++] = dc_rows(&s->rig.graph, x, pick(s, ROWS / 2 + 1), ROWS / 2);
    } else if (s->half_count && pick(s, 2)) {
        dc_ref x = grow(s, s->half, s->half_count);
        s->half[s->half_count++] = x;
    } else {
        dc_ref x = grow(s, s->whole, s->whole_count);
        s->whole[s->whole_count++] = x;
    }
}

// The same graph for the same seed.
static void plant(garden *s, uint64_t seed) {
    *s = (garden){.seed = seed};
    dc_graph *g = &s->rig.graph;
    assert_int_equal(dc_graph_init(g), DC_OK);
    for (int i = 0; i < WEIGHTS; i++)
        for (int part = 0; part < 3; part++) {
            char name[8];
            snprintf(name, sizeof name, "%c%d", "wbs"[part], i);
            dc_params_add(&s->rig.params, name, 1, part ? 1 : COLS, COLS,
                          part == 0 ? DC_INIT_XAVIER : DC_INIT_ZERO, 1, true);
        }
    s->x = s->whole[s->whole_count++] = dc_input(g, "x", ROWS, COLS);
    s->whole[s->whole_count++] = layer(s, s->x);
    for (int i = 0; i < NODES - 3; i++)
        add_node(s);
    dc_ref loss = dc_mean(g, "loss", s->whole[s->whole_count - 1]);
    if (s->half_count) loss = dc_add(g, loss, dc_mean(g, "half", s->half[s->half_count - 1]));
    for (int i = 0; i < 2; i++)
        loss = dc_add(g, loss, dc_mean(g, "more", s->whole[pick(s, s->whole_count)]));
    dc_mean(g, "metric", s->whole[pick(s, s->whole_count)]); // after the loss, as metrics are
    rig_finish(&s->rig, loss, seed, 0);
    fill(&s->rig, s->x, seed);
}

// Give every number memory of its own, let every gradient be added to, and train all rows.
static void make_plain(dc_graph *g) {
    int64_t next = g->input_size;
    for (dc_ref r = 0; r < g->count; r++) {
        dc_node *n = &g->nodes[r];
        if (n->lo < n->hi) {
            n->lo = 0;
            n->hi = n->rows;
        }
        n->grad_sum = true;
        n->grad_first = -1; // nothing is zeroed on the way
        if (n->op < DC_FIRST_COMPUTED) continue;
        int64_t *places[] = {&n->offset, &n->grad_offset, &n->aux_offset, &n->scratch_offset};
        int64_t cells = (int64_t)n->e * n->rows * n->cols;
        int64_t sizes[] = {cells, cells, dc_op_aux(g, n), dc_op_scratch(g, n)};
        for (int k = 0; k < 4; k++) {
            *places[k] = next;
            next += (sizes[k] + 15) / 16 * 16;
        }
    }
    g->temp_size = next;
}

static void make_rig_plain(garden *s) {
    dc_exec_fini(&s->rig.exec);
    make_plain(&s->rig.graph);
    assert_int_equal(dc_exec_init(&s->rig.exec, &s->rig.graph, &s->rig.params.slabs, NULL), DC_OK);
    fill(&s->rig, s->x, s->seed);
}

// Fill what is not input with a number that would show.
static void poison(const rig *t, dc_real with) {
    for (int64_t i = t->graph.input_size; i < t->graph.temp_size; i++)
        t->exec.temps[i] = with;
}

static void test_plan_does_not_show(void **state) {
    (void)state;
    int trained = 0, smaller = 0;
    enum { GRAPHS = 400 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        garden planned, plain;
        plant(&planned, seed);
        plant(&plain, seed);
        make_rig_plain(&plain);
        poison(&planned.rig, NAN); // nothing may be read before it is written
        dc_real a = run(&planned.rig), b = run(&plain.rig);
        assert_same_bits(&a, &b, 1);
        assert_true(is_finite(a));
        const dc_slabs *p = &planned.rig.params.slabs, *q = &plain.rig.params.slabs;
        for (int64_t i = 0; i < p->size; i++) {
            double size = fabs((double)q->grad[i]);
            assert_true(fabs((double)p->grad[i] - (double)q->grad[i]) <= 1e-5 * (1 + size));
            trained += q->grad[i] != 0;
        }
        assert_true(planned.rig.graph.temp_size <= plain.rig.graph.temp_size);
        smaller += 10 * planned.rig.graph.temp_size < 7 * plain.rig.graph.temp_size;
        rig_close(&planned.rig);
        rig_close(&plain.rig);
    }
    assert_true(trained > 50 * GRAPHS); // of 240 weights a graph
    assert_true(smaller > GRAPHS * 9 / 10);
}

// The same for the step that trains, where the plan is made of large pieces; bit for bit.
static void test_plan_of_training(void **state) {
    (void)state;
    rig shared, kept;
    build_training(&shared, 0);
    poison(&shared, NAN);
    build_training(&kept, 0);
    dc_exec_fini(&kept.exec);
    kept.graph.temp_size = 0; // plan again, every value kept
    for (dc_ref r = 0; r < kept.graph.count; r++)
        kept.graph.nodes[r].keep = true;
    assert_int_equal(dc_graph_plan(&kept.graph), DC_OK);
    assert_int_equal(dc_exec_init(&kept.exec, &kept.graph, &kept.params.slabs, NULL), DC_OK);
    fill(&kept, 0, 11);
    fill(&kept, 1, 12);
    dc_real a = run(&shared), b = run(&kept);
    assert_same_bits(&a, &b, 1);
    assert_same_bits(shared.params.slabs.grad, kept.params.slabs.grad, kept.params.slabs.size);
    assert_true(4 * shared.graph.temp_size < 3 * kept.graph.temp_size);
    rig_close(&shared);
    rig_close(&kept);
}

// ---- NaN and Inf ----

static bool all_finite(const dc_real *p, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!is_finite(p[i])) return false;
    return true;
}

// A value that is not finite, anywhere, must reach the loss and be found under its name.
static void check_found(const rig *t, dc_real *place, dc_real value, const char *name) {
    dc_real keep = *place;
    *place = value;
    assert_false(is_finite(run(t)));
    assert_string_equal(dc_exec_find_bad(&t->exec, &dc_backend_cpu), name);
    *place = keep;
    assert_true(is_finite(run(t)));
    assert_null(dc_exec_find_bad(&t->exec, &dc_backend_cpu));
}

static void test_bad_numbers_are_found(void **state) {
    (void)state;
    rig t;
    build_training(&t, 0);
    const dc_real bad[] = {NAN, INFINITY, -INFINITY};
    const char *inputs[] = {"online", "ema"};
    for (int v = 0; v < 3; v++) {
        for (int i = 0; i < 2; i++) {
            dc_view in = dc_value(&t.exec, i);
            check_found(&t, in.p, bad[v], inputs[i]);
            check_found(&t, in.p + (int64_t)in.rows * in.cols - 1, bad[v], inputs[i]);
        }
        for (int i = 0; i < t.params.count; i++) {
            const dc_param_row *row = &t.params.rows[i];
            int64_t last = (int64_t)row->rows * row->cols - 1;
            char target[96];
            snprintf(target, sizeof target, "target_%s", row->name);
            check_found(&t, t.params.slabs.live + row->offset + last, bad[v], row->name);
            check_found(&t, t.params.slabs.ema + row->offset + last / 2, bad[v], target);
        }
    }
    // Finite inputs whose product overflows: the layer that made it is named.
    dc_real *x = dc_value(&t.exec, 0).p, *w = t.params.slabs.live;
    for (int c = 0; c < 9; c++)
        x[c] = 1e30f;
    w[0] = 1e30f;
    assert_false(is_finite(run(&t)));
    assert_string_equal(dc_exec_find_bad(&t.exec, &dc_backend_cpu), "net/0");
    assert_non_null(dc_params_find_bad(&t.params, t.params.slabs.grad));
    rig_close(&t);
}

// Every op on its own: none may swallow a NaN in what it computes with.
static void test_ops_pass_nan_on(void **state) {
    (void)state;
    static const struct {
        dc_op op;
        int count;
        double a, b;
    } ops[] = {{DC_OP_add, 2, 0, 0},   {DC_OP_mul, 2, 0, 0},     {DC_OP_affine, 1, 2, 1},
               {DC_OP_clip, 1, -1, 1}, {DC_OP_decay, 1, 0.5, 0}, {DC_OP_expectile, 3, 0.3, 0},
               {DC_OP_mean, 1, 0, 0},  {DC_OP_within, 3, 0.5, 0}};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
        for (int i = 0; i < ops[k].count; i++) {
            if (ops[k].op == DC_OP_within && i == 0) continue; // it chooses, it does not compute
            rig t = {0};
            assert_int_equal(dc_graph_init(&t.graph), DC_OK);
            dc_ref in[3];
            for (int n = 0; n < ops[k].count; n++)
                in[n] = dc_input(&t.graph, "x", 4, 1);
            dc_ref y = dc_apply(&t.graph, ops[k].op, "y", in, ops[k].count, ops[k].a, ops[k].b);
            rig_finish(&t, dc_mean(&t.graph, "loss", y), 1, 0);
            for (int n = 0; n < ops[k].count; n++)
                fill(&t, in[n], 50 + (uint64_t)n);
            if (ops[k].op == DC_OP_within) dc_value(&t.exec, in[0]).p[2] = i == 1 ? 0 : -1;
            assert_true(is_finite(run(&t)));
            dc_value(&t.exec, in[i]).p[2] = NAN;
            assert_true(!is_finite(run(&t)));
            rig_close(&t);
        }
}

// gelu_layernorm is compiled as if all numbers were finite. Here they are not: x, scale, bias and
// dy in turn.
typedef struct norm_rig {
    rig rig;
    int cols;
    dc_ref out, factor;
} norm_rig;

enum { NORM_ROWS = 3 };

static void norm_open(norm_rig *t, int cols) {
    *t = (norm_rig){.cols = cols};
    dc_graph *g = &t->rig.graph;
    assert_int_equal(dc_graph_init(g), DC_OK);
    const char *names[] = {"x", "scale", "bias"};
    dc_ref in[3];
    for (int i = 0; i < 3; i++) {
        int rows = i ? 1 : NORM_ROWS;
        const dc_param_row *row =
            dc_params_add(&t->rig.params, names[i], 1, rows, cols, DC_INIT_XAVIER, 1, true);
        in[i] = dc_param(g, names[i], 1, rows, cols, row->offset, DC_LIVE);
    }
    t->out = dc_gelu_layernorm(g, "norm", in[0], in[1], in[2]);
    t->factor = dc_input(g, "factor", NORM_ROWS, cols); // becomes dy
    dc_keep(g, t->out);
    rig_finish(&t->rig, dc_mean(g, "loss", dc_mul(g, t->out, t->factor)), 8, 0);
    fill(&t->rig, t->factor, 61);
}

static void check_norm(const norm_rig *t, int column, dc_real bad) {
    const rig *r = &t->rig;
    dc_real *x = r->params.slabs.live + t->cols + column, keep = *x; // row 1
    *x = bad;
    assert_false(is_finite(run(r)));
    const dc_real *y = dc_value(&r->exec, t->out).p;
    for (int c = 0; c < t->cols; c++) // its row is gone, the others are not
        assert_false(is_finite(y[t->cols + c]));
    assert_true(all_finite(y, t->cols) && all_finite(y + 2 * t->cols, t->cols));
    const dc_real *dx = grad_of(r, "x");
    for (int c = 0; c < t->cols; c++) {
        assert_false(is_finite(dx[t->cols + c]));
        assert_false(is_finite(grad_of(r, "scale")[c]));
    }
    assert_true(all_finite(dx, t->cols) && all_finite(dx + 2 * t->cols, t->cols));
    *x = keep;
    assert_true(is_finite(run(r)) && !dc_params_find_bad(&r->params, r->params.slabs.grad));
}

static void check_norm_weights(const norm_rig *t, int column, dc_real bad) {
    const rig *r = &t->rig;
    const char *names[] = {"scale", "bias"};
    for (int i = 0; i < 2; i++) {
        dc_real *w = r->params.slabs.live + dc_params_find(&r->params, names[i])->offset + column,
                keep = *w;
        *w = bad;
        assert_false(is_finite(run(r)));
        for (int row = 0; row < NORM_ROWS; row++)
            assert_false(is_finite(dc_value(&r->exec, t->out).p[row * t->cols + column]));
        if (i == 0) assert_false(all_finite(grad_of(r, "x"), t->cols));
        *w = keep;
    }
    dc_real *dy = dc_value(&r->exec, t->factor).p + t->cols + column, keep = *dy;
    *dy = bad;
    run(r);
    assert_false(is_finite(grad_of(r, "scale")[column]) || is_finite(grad_of(r, "bias")[column]));
    for (int c = 0; c < t->cols; c++)
        assert_false(is_finite(grad_of(r, "x")[t->cols + c]));
    *dy = keep;
}

static void test_layernorm_passes_bad_numbers_on(void **state) {
    (void)state;
    const int widths[] = {2, 7, 16, 33, 512};
    const dc_real bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int w = 0; w < 5; w++) {
        norm_rig t;
        norm_open(&t, widths[w]);
        run(&t.rig);
        for (int v = 0; v < 4; v++)
            for (int c = 0; c<widths[w]; c += widths[w]> 40 ? 37 : 1) {
                check_norm(&t, c, bad[v]);
                check_norm_weights(&t, c, bad[v]);
            }
        rig_close(&t.rig);
    }
}

// ---- update ----

// Adam and EMA number by number in double, for gradients from far below eps to large ones, over
// seven steps.
static void test_update(void **state) {
    (void)state;
    enum { SIZE = 70000, EMA = 40000 }; // three blocks; the EMA ends inside the second
    static dc_real live[SIZE], ema[SIZE], grad[SIZE], m[SIZE], v[SIZE];
    static double w[SIZE], target[SIZE], first[SIZE], second[SIZE];
    dc_slabs slabs = {live, ema, grad, m, v, SIZE, EMA};
    for (uint64_t i = 0; i < SIZE; i++) {
        live[i] = ema[i] = 0; // starting from zero, float32 keeps the change itself
        w[i] = target[i] = 0;
    }
    for (int step = 1; step <= 7; step++) {
        dc_adam adam = {3e-4, 0.9, 0.999, 1e-8, 0.005, step, 0, 0};
        for (uint64_t i = 0; i < SIZE; i++)
            grad[i] =
                (dc_real)((1.5 + uniform((uint64_t)step, i)) * pow(10, 7 * uniform(80, i) - 5));
        dc_backend_cpu.update(&slabs, &adam, NULL);
        for (int i = 0; i < SIZE; i++) {
            double g = (double)grad[i];
            if (i < EMA) target[i] += 0.005 * (w[i] - target[i]); // of the weights before the step
            first[i] = 0.9 * first[i] + 0.1 * g;
            second[i] = 0.999 * second[i] + 0.001 * g * g;
            double mean = first[i] / (1 - pow(0.9, step)),
                   square = second[i] / (1 - pow(0.999, step));
            w[i] -= 3e-4 * mean / (sqrt(square) + 1e-8);
            assert_true(fabs((double)live[i] - w[i]) <= 2e-6 * fabs(w[i]));
            assert_true(fabs((double)ema[i] - target[i]) <= 2e-6 * fabs(target[i]));
        }
    }
}

// ---- ensemble ----

// Loss of e networks on the same rows: the mean of the members' losses.
static dc_ref build_members(rig *t, int e) {
    rig_open(t, e, WIDTH, &narrow);
    dc_graph *g = &t->graph;
    dc_ref x = dc_input(g, "x", TRAINED, WIDTH), zero = dc_input(g, "zero", TRAINED, 1);
    dc_ref goal = dc_input(g, "goal", TRAINED, 1), y = dc_mlp_apply(g, &t->net, x, DC_LIVE);
    dc_ref target = dc_within(g, zero, goal, dc_stop(g, y), 0); // the goal, for every member
    dc_keep(g, y);
    rig_finish(t, dc_expectile(g, "loss", y, target, -1, 0.3), 9, 0);
    fill(t, x, 71);
    fill(t, goal, 72);
    return y;
}

static void copy_member(const rig *from, const rig *to, int e) {
    for (int i = 0; i < from->params.count; i++) {
        const dc_param_row *a = &from->params.rows[i], *b = &to->params.rows[i];
        int64_t count = (int64_t)a->rows * a->cols;
        memcpy(to->params.slabs.live + b->offset, from->params.slabs.live + a->offset + e * count,
               (size_t)count * sizeof(dc_real));
    }
}

static void test_ensemble_is_separate_networks(void **state) {
    (void)state;
    rig both, one;
    dc_ref y2 = build_members(&both, 2), y1 = build_members(&one, 1);
    double loss = (double)run(&both), sum = 0;
    dc_view y = dc_value(&both.exec, y2);
    for (int e = 0; e < 2; e++) {
        copy_member(&both, &one, e);
        sum += (double)run(&one) / 2;
        assert_same_bits(dc_value(&one.exec, y1).p, y.p + e * y.step, TRAINED);
        for (int i = 0; i < one.params.count; i++) {
            const dc_param_row *row = &one.params.rows[i];
            int64_t count = (int64_t)row->rows * row->cols;
            dc_real half[1000];
            assert_true(count <= 1000);
            for (int64_t k = 0; k < count; k++)
                half[k] = grad_of(&one, row->name)[k] / 2;
            assert_near(grad_of(&both, row->name) + e * count, half, count, 1e-6);
        }
    }
    assert_true(memcmp(y.p, y.p + y.step, TRAINED * sizeof *y.p) != 0);
    assert_true(fabs(loss - sum) <= 1e-6 * sum);
    rig_close(&both);
    rig_close(&one);
}

// ---- packed children ----

enum { HORIZON = 200, PAIRS = 280 };

typedef struct children {
    rig rig;
    dc_feeds feeds;
    int rows[2][PAIRS];
} children;

static void feed(children *c, dc_ref input, int row0, dc_stream from, dc_stream to, dc_pack *pack,
                 const dc_column *obs) {
    c->feeds.feeds[c->feeds.feed_count++] =
        (dc_feed){input, row0, 0, obs, from, pack, 0, 0, DC_DRAW_NONE, 0, 0};
    c->feeds.feeds[c->feeds.feed_count++] =
        (dc_feed){input, row0, obs->width, obs, to, pack, 0, 0, DC_DRAW_NONE, 0, 0};
}

static dc_ref steps_input(children *c, dc_stream stream) {
    dc_ref x = dc_input(&c->rig.graph, "steps", PAIRS, 1);
    c->feeds.feeds[c->feeds.feed_count++] = (dc_feed){.input = x, .stream = stream};
    return x;
}

// Values of both children: packed behind the parents of one stacked input, or each in an input of
// its own.
static void apply_children(children *c, bool packed, int known, const dc_column *obs,
                           dc_ref out[3]) {
    dc_graph *g = &c->rig.graph;
    const dc_stream from[] = {DC_I, DC_K}, to[] = {DC_K, DC_J}, span[] = {DC_LEFT, DC_RIGHT};
    dc_ref x = dc_input(g, "x", packed ? 3 * PAIRS : PAIRS, 2 * obs->width), index[2] = {-1, -1};
    feed(c, x, 0, DC_I, DC_J, NULL, obs);
    for (int k = 0; packed && k < 2; k++) {
        index[k] = dc_input(g, "index", PAIRS, 1);
        dc_pack *p = &c->feeds.packs[c->feeds.pack_count];
        *p = (dc_pack){
            .input = x, .index = index[k], .steps = span[k], .known = known, .rows = c->rows[k]};
        c->feeds.fixed_rows[c->feeds.pack_count++] = PAIRS;
        feed(c, x, 0, from[k], to[k], p, obs);
    }
    dc_ref y = dc_mlp_apply(g, &c->rig.net, x, DC_LIVE);
    out[2] = dc_rows(g, y, 0, PAIRS);
    for (int k = 0; k < 2; k++) {
        if (packed) {
            out[k] = dc_unpack(g, index[k], y);
            continue;
        }
        dc_ref own = dc_input(g, "child", PAIRS, 2 * obs->width);
        feed(c, own, 0, from[k], to[k], NULL, obs);
        out[k] = dc_mlp_apply(g, &c->rig.net, own, DC_STOPPED);
    }
}

static void children_open(children *c, bool packed, int known, const dc_dataset *data) {
    *c = (children){.feeds = {.batch = PAIRS}};
    const dc_column *obs = dc_dataset_column(data, "obs");
    rig_open(&c->rig, 1, 2 * obs->width, &narrow);
    dc_graph *g = &c->rig.graph;
    dc_ref value[3];
    apply_children(c, packed, known, obs, value);
    dc_ref left = steps_input(c, DC_LEFT), right = steps_input(c, DC_RIGHT);
    dc_ref target = dc_add(g, dc_within(g, left, left, value[0], known),
                           dc_within(g, right, right, value[1], known));
    rig_finish(&c->rig, dc_expectile(g, "loss", value[2], target, -1, 0.4), 10, 2);
}

static dc_real children_run(children *c, const dc_sampler *sampler) {
    dc_gather(&c->feeds, sampler, &c->rig.exec);
    return run(&c->rig);
}

static void check_packs(const dc_dataset *data, int known) {
    children packed, full;
    children_open(&packed, true, known, data);
    children_open(&full, false, known, data);
    dc_sampler *sampler;
    dc_sampler_spec spec = {
        .seed = 4, .batch = PAIRS, .segments = DC_SEG_PAIRS, .split = DC_SPLIT_RANDOM};
    assert_int_equal(dc_sampler_new(&sampler, data, &spec), DC_OK);
    for (uint64_t step = 0; step < 3; step++) { // the number of packed rows goes up and down
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        dc_real a = children_run(&packed, sampler), b = children_run(&full, sampler);
        assert_near(&a, &b, 1, 1e-6);
        assert_near_all(&packed.rig, &full.rig, 2e-6);
        int needed = 0;
        for (int r = 0; r < PAIRS; r++)
            needed += (dc_sampler_stream(sampler, DC_LEFT)[r] > known) +
                      (dc_sampler_stream(sampler, DC_RIGHT)[r] > known);
        assert_int_equal(packed.feeds.packs[0].count + packed.feeds.packs[1].count, needed);
        assert_int_equal(packed.rig.exec.used[packed.feeds.packs[0].input], PAIRS + needed);
    }
    dc_sampler_free(sampler);
    rig_close(&packed.rig);
    rig_close(&full.rig);
}

static void test_packed_children(void **state) {
    (void)state;
    dc_lock lock;
    dc_dataset data;
    assert_int_equal(dc_lock_init(&lock, HORIZON, 1), DC_OK);
    assert_int_equal(dc_lock_data(&lock, &data), DC_OK);
    const int known[] = {0, 1, 30, HORIZON}; // nearly all rows, most, some, none
    for (int k = 0; k < 4; k++)
        check_packs(&data, known[k]);
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_stopped_rows_do_not_train),
        cmocka_unit_test(test_stop_is_a_constant),
        cmocka_unit_test(test_stop_halves_a_square),
        cmocka_unit_test(test_weights_used_twice),
        cmocka_unit_test(test_network_used_twice),
        cmocka_unit_test(test_views_of_views),
        cmocka_unit_test(test_plan_does_not_show),
        cmocka_unit_test(test_plan_of_training),
        cmocka_unit_test(test_bad_numbers_are_found),
        cmocka_unit_test(test_ops_pass_nan_on),
        cmocka_unit_test(test_layernorm_passes_bad_numbers_on),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_ensemble_is_separate_networks),
        cmocka_unit_test(test_packed_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
