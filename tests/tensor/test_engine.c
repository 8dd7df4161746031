// The engine as a whole, in the float build that trains: what graph.c, grad.c and run.c decide
// together. Single ops are checked in test_ops_double.c, the memory plan in test_plan.c, NaN in
// test_guard.c; here are threads, row ranges, sums, views, the update and the ensemble.
#include "op_cases.h"

// ---- threads ----

static void train(const rig *t, int steps) {
    for (int s = 1; s <= steps; s++) {
        run(t);
        dc_adam adam = {3e-3, 0.9, 0.999, 1e-8, 0.005, s, 0, 0};
        dc_backend_cpu.update(&t->params.slabs, &adam, t->pool);
    }
}

// Loss and gradients of one op, with two threads and with none.
static void check_op_threads(const op_case *c) {
    rig t;
    op_build(&t, c);
    size_t bytes = (size_t)t.params.slabs.size * sizeof(dc_real);
    dc_real *grad = malloc(bytes), loss = run(&t);
    assert_non_null(grad);
    memcpy(grad, t.params.slabs.grad, bytes);
    t.exec.pool = NULL;
    assert_true(run(&t) == loss);
    assert_memory_equal(t.params.slabs.grad, grad, bytes);
    free(grad);
    rig_close(&t);
}

static void test_threads_do_not_show_in_ops(void **state) {
    (void)state;
    for (int i = 0; i < OP_CASES; i++)
        check_op_threads(&op_cases[i]);
    // Large enough for threads; one input for both members.
    op_case mul = {DC_OP_mul, 2, {{2, 3000, 5}, {1, 3000, 5}}, 0, 0, 3, -1, 1};
    check_op_threads(&mul);
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
    dc_tensor x = dc_value(&t->exec, s->x);
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
    dc_tensor x = dc_value(&stacked.rig.exec, stacked.x);
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
    dc_tensor v1 = dc_value(&t.exec, x1), v2 = dc_value(&t.exec, x2);
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
    dc_tensor y = dc_value(&both.exec, y2);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_threads_do_not_show_in_ops),
        cmocka_unit_test(test_stopped_rows_do_not_train),
        cmocka_unit_test(test_stop_is_a_constant),
        cmocka_unit_test(test_stop_halves_a_square),
        cmocka_unit_test(test_weights_used_twice),
        cmocka_unit_test(test_network_used_twice),
        cmocka_unit_test(test_views_of_views),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_ensemble_is_separate_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
