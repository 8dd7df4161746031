// NaN and Inf: no op may swallow one, and the guard names the place where it arose.
#include "op_cases.h"

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
            dc_tensor in = dc_value(&t.exec, i);
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

// Does input i of an op only choose between others? Then its NaN chooses one, and is gone.
static bool chooses(dc_op op, int i) {
    return i == 0 &&
           (op == DC_OP_within || op == DC_OP_unpack || op == DC_OP_side || op == DC_OP_pick_best);
}

// Inputs [first, last] of the case's numbers become NaN.
static bool nan_gets_through(const op_case *c, int i, int64_t first, int64_t last) {
    rig t;
    op_build(&t, c);
    const dc_param_row *row = &t.params.rows[i];
    assert_true(is_finite(run(&t)));
    for (int64_t k = first; k <= last; k++)
        t.params.slabs.live[row->offset + k] = NAN;
    bool through = !is_finite(run(&t));
    rig_close(&t);
    return through;
}

// Every op on its own: none may swallow a NaN in what it computes with, be it the first number, the
// last or one between. Those that move numbers leave some out, so there all are NaN.
static void test_ops_pass_nan_on(void **state) {
    (void)state;
    for (int k = 0; k < OP_CASES; k++)
        for (int i = 0; i < op_cases[k].count; i++) {
            const op_case *c = &op_cases[k];
            const int *s = c->shape[i];
            int64_t last = (int64_t)s[0] * s[1] * s[2] - 1, places[] = {0, last / 2, last};
            if (chooses(c->op, i)) continue;
            bool moves = dc_rule(c->op)->op_class == DC_CLASS_GATHER || c->op == DC_OP_within;
            for (int p = 0; p < 3; p++) {
                int64_t at = moves ? 0 : places[p];
                if (!nan_gets_through(c, i, at, moves ? last : at))
                    fail_msg("%s swallows NaN number %d of input %d", dc_op_name(c->op), (int)at,
                             i);
            }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_numbers_are_found),
        cmocka_unit_test(test_ops_pass_nan_on),
        cmocka_unit_test(test_layernorm_passes_bad_numbers_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
