// Every op of ops.def against finite differences, in double: each input in turn is a live
// parameter, and the loss is the mean of the op's output times fixed random weights. The test walks
// the list and fails on an op without a case. DCRL_TOL=0 prints the true residuals.
#include "op_cases.h"

static void check_case(const op_case *c, double tolerance) {
    rig t;
    op_build(&t, c);
    run(&t);
    double worst = 0;
    for (int i = 0; i < c->count; i++) {
        if (!(c->trained >> i & 1)) continue;
        const dc_param_row *row = &t.params.rows[i];
        for (int64_t k = 0; k < (int64_t)row->e * row->rows * row->cols; k++) {
            double *x = &t.params.slabs.live[row->offset + k], keep = *x, h = 1e-5;
            run(&t);
            double grad = t.params.slabs.grad[row->offset + k];
            *x = keep + h;
            double up = run(&t);
            *x = keep - h;
            double down = run(&t);
            *x = keep;
            double error = fabs(grad - (up - down) / (2 * h));
            if (error > worst) worst = error;
        }
    }
    if (tolerance == 0 || worst > tolerance)
        printf("%-16s worst |gradient - difference| %.2e\n", dc_op_name(c->op), worst);
    if (tolerance > 0) assert_true(worst <= tolerance);
    rig_close(&t);
}

static void test_gradients(void **state) {
    (void)state;
    const char *env = getenv("DCRL_TOL");
    double tolerance = env && atof(env) == 0 ? 0 : 1e-8;
    for (int i = 0; i < OP_CASES; i++)
        if (op_cases[i].op != DC_OP_relative_mean) check_case(&op_cases[i], tolerance);
}

// relative_mean divides by a number that its gradient takes as constant: compare with that by hand.
static void test_relative_mean(void **state) {
    (void)state;
    op_case c = {DC_OP_relative_mean, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1};
    rig t;
    op_build(&t, &c);
    run(&t);
    int count = 2 * 9 * 3;
    double size = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        size += fabs(t.params.slabs.live[i]) / count;
        sum += t.params.slabs.live[i] / count;
    }
    double w = OP_WEIGHT;
    assert_true(fabs(run(&t) - w * sum / (size + 1e-6)) < 1e-12);
    for (int i = 0; i < count; i++)
        assert_true(fabs(t.params.slabs.grad[i] - w / (size + 1e-6) / count) < 1e-12);
    rig_close(&t);
}

static int attribute_count(dc_op op) {
    const char *names = dc_rule(op)->attributes;
    return !*names ? 0 : strchr(names, ',') ? 2 : 1;
}

static void test_list_is_covered(void **state) {
    (void)state;
    for (dc_op op = DC_FIRST_COMPUTED; op < DC_OPS; op++) {
        bool found = false;
        for (int i = 0; i < OP_CASES; i++) {
            if (op_cases[i].op != op) continue;
            found = true;
            assert_int_equal(op_cases[i].a != 0, attribute_count(op) >= 1);
            assert_int_equal(op_cases[i].b != 0, attribute_count(op) == 2);
            assert_int_equal(op_cases[i].trained & ~dc_rule(op)->flows, 0);
        }
        if (!found) print_error("no gradient case for %s\n", dc_op_name(op));
        assert_true(found);
        assert_non_null(dc_backend_cpu.fwd[op]);
        assert_non_null(dc_backend_cpu.bwd[op]);
        assert_true(*dc_rule(op)->text);
    }
}

static void test_describe(void **state) {
    (void)state;
    dc_graph g;
    assert_int_equal(dc_graph_init(&g), DC_OK);
    dc_ref x = dc_input(&g, "x", 4, 2), clip = dc_clip(&g, x, -0.5, 2);
    dc_ref all = dc_expectile(&g, "loss", clip, x, -1, 0.7);
    char text[160], small[20];
    dc_op_describe(&g, clip, text, sizeof text);
    assert_string_equal(text, "clip \"clip\" of (1, 4, 2), least -0.5, most 2, to (1, 4, 2)");
    dc_op_describe(&g, all, text, sizeof text);
    assert_string_equal(text,
                        "expectile \"loss\" of (1, 4, 2), (1, 4, 2), below 0.7, to (1, 1, 1)");
    dc_op_describe(&g, all, small, sizeof small);
    assert_string_equal(small, "expectile \"loss\" of");
    dc_graph_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_relative_mean),
        cmocka_unit_test(test_list_is_covered),
        cmocka_unit_test(test_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
