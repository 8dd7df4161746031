// What ops.def says of each op, found out again by experiment. In a stacked batch an op sees some rows
// of a larger tensor, other rows of it are trained by something else, and only part of the op's rows
// get gradient; a wrong rule shows there and nowhere else.
//   rowwise: a row of an input is replaced; which rows of the output change?
//   flows, rowwise, reads: gradients against finite differences, with all that no rule promises set to NaN
//   rows in use: the same numbers as with all rows
#include "op_cases.h"

enum { BEFORE = 2, AFTER = 3 }; // rows of a larger parameter before and after those that an op sees

typedef enum form {
    DIRECT, // the op's inputs are views of parameters
    TEMPS,  // of computed values, in memory that starts as NaN
    UNREAD, // the same; what the gradient does not read is NaN by the time it runs
    FORMS
} form;

static const char *const form_names[FORMS] = {"views of parameters", "views of values",
                                              "with unread values lost"};

typedef struct stack {
    rig rig;
    const op_case *c;
    dc_ref in[3], y; // of the op
} stack;

static void lose(const dc_exec *x, dc_ref r) {
    if (x->graph->nodes[x->graph->nodes[r].base].op < DC_FIRST_COMPUTED) return;
    dc_tensor v = dc_value(x, r);
    for (int e = 0; e < v.e; e++)
        for (int64_t k = 0; k < (int64_t)v.rows * v.cols; k++)
            v.p[e * v.step + k] = NAN;
}

static dc_ref lossy; // the node whose backward loses what it does not read

static void lossy_bwd(const dc_exec *x, const dc_node *n) {
    for (int i = 0; i < n->in_count && dc_self(x, n) == lossy; i++)
        if (!(dc_rule(n->op)->reads >> i & 1)) lose(x, n->in[i]);
    if (dc_self(x, n) == lossy) lose(x, lossy);
    dc_backend_cpu.bwd[n->op](x, n);
}

static void fill_with_nan(dc_real *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = NAN;
}

// Loss, and gradients in the slab, whatever memory held before.
static double stack_run(const stack *s, form f) {
    const rig *t = &s->rig;
    fill_with_nan(t->exec.temps, t->graph.temp_size);
    fill_with_nan(t->params.slabs.grad, t->params.slabs.size);
    dc_backend backend = dc_backend_cpu;
    if (f == UNREAD) backend.bwd[s->c->op] = lossy_bwd;
    lossy = s->y;
    dc_exec_run(&t->exec, &backend);
    return *dc_value(&t->exec, t->graph.loss).p;
}

// Some rows of parameter number i; the mean square of its last rows is added to *loss.
static dc_ref stacked_input(stack *s, int i, form f, dc_ref *loss) {
    dc_graph *g = &s->rig.graph;
    const int *shape = s->c->shape[i];
    int rows = BEFORE + shape[1] + AFTER;
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    int64_t offset =
        dc_params_add(&s->rig.params, name, shape[0], rows, shape[2], DC_INIT_ZERO, 0, true)
            ->offset;
    dc_ref p = dc_param(g, name, shape[0], rows, shape[2], offset, DC_LIVE);
    dc_ref other = dc_rows(g, p, rows - AFTER - 1, AFTER + 1); // one row is the op's too
    dc_ref square = dc_mean(g, "square", dc_mul(g, other, other));
    *loss = *loss < 0 ? square : dc_add(g, *loss, square);
    dc_ref part = dc_rows(g, p, BEFORE, shape[1]);
    if (f == DIRECT) return part;
    dc_ref value = dc_affine(g, part, 1, 0);
    if (f == UNREAD) dc_keep(g, value); // so that no other number lies there
    return value;
}

// Of an op's output all rows but the first and the last, weighed and averaged; of a reduction its number.
static dc_ref part_of_output(stack *s) {
    dc_graph *g = &s->rig.graph;
    int e = g->nodes[s->y].e, rows = g->nodes[s->y].rows, cols = g->nodes[s->y].cols;
    if (e * rows * cols == 1) return dc_affine(g, s->y, OP_WEIGHT, 0);
    dc_ref part = rows > 2 ? dc_rows(g, s->y, 1, rows - 2) : s->y;
    rows = g->nodes[part].rows;
    int64_t offset =
        dc_params_add(&s->rig.params, "w", e, rows, cols, DC_INIT_ZERO, 0, true)->offset;
    dc_ref w = dc_param(g, "w", e, rows, cols, offset, DC_STOPPED);
    return dc_mean(g, "part", dc_mul(g, part, w));
}

static void stack_build(stack *s, const op_case *c, form f) {
    *s = (stack){.c = c};
    rig *t = &s->rig;
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_ref loss = -1;
    for (int i = 0; i < c->count; i++)
        s->in[i] = stacked_input(s, i, f, &loss);
    s->y = dc_apply(&t->graph, c->op, "op", s->in, c->count, c->a, c->b);
    if (f == UNREAD) dc_keep(&t->graph, s->y);
    loss = dc_add(&t->graph, loss, part_of_output(s));
    assert_int_equal(dc_graph_finish(&t->graph, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
    op_fill(t, c);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, NULL), DC_OK);
}

static double difference(const stack *s, form f, double *x) {
    double keep = *x, h = 1e-5;
    *x = keep + h;
    double up = stack_run(s, f);
    *x = keep - h;
    double down = stack_run(s, f);
    *x = keep;
    return (up - down) / (2 * h);
}

// Gradient of the mean square alone, for an input that the op gives none.
static double square_slope(const dc_param_row *row, int64_t k, double x) {
    int64_t r = k / row->cols % row->rows;
    return r < row->rows - AFTER - 1 ? 0 : 2 * x / (row->e * (AFTER + 1) * row->cols);
}

// Gradient of relative_mean, whose denominator is held fixed, so that differences say something else.
static double held_slope(const dc_param_row *row, int64_t k, const double *x) {
    int rows = row->rows - BEFORE - AFTER, r = (int)(k / row->cols % row->rows);
    double size = 0, cells = row->e * rows * row->cols;
    for (int64_t i = 0; i < (int64_t)row->e * row->rows * row->cols; i++) {
        int at = (int)(i / row->cols % row->rows);
        if (at >= BEFORE && at < BEFORE + rows) size += fabs(x[i]) / cells;
    }
    bool inside = r >= BEFORE && r < BEFORE + rows;
    return square_slope(row, k, x[k]) + (inside ? OP_WEIGHT / (size + 1e-6) / cells : 0);
}

enum { SAMPLES = 150 }; // numbers of an input that are tried, spread over rows and columns

static void check_input(const stack *s, form f, int i) {
    const dc_slabs *slabs = &s->rig.params.slabs;
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    const dc_param_row *row = dc_params_find(&s->rig.params, name);
    int64_t count = (int64_t)row->e * row->rows * row->cols;
    int64_t step = count > SAMPLES ? 211 : 1, tries = count > SAMPLES ? SAMPLES : count;
    for (int64_t j = 0; j < tries; j++) {
        int64_t k = j * step % count, at = row->offset + k;
        stack_run(s, f);
        double grad = slabs->grad[at];
        double want = difference(s, f, &slabs->live[at]);
        if (s->c->op == DC_OP_relative_mean) want = held_slope(row, k, slabs->live + row->offset);
        if (!(s->c->trained >> i & 1)) want = square_slope(row, k, slabs->live[at]);
        if (fabs(grad - want) <= 1e-8) continue;
        fail_msg("%s, %s: gradient to number %d of input %d is %g, and should be %g",
                 dc_op_name(s->c->op), form_names[f], (int)k, i, grad, want);
    }
}

static bool reached(const stack *s, int i) {
    const dc_node *in = &s->rig.graph.nodes[s->in[i]];
    return in->lo < in->hi;
}

static void test_parts_of_stacked_rows(void **state) {
    (void)state;
    for (int k = 0; k < OP_CASES; k++)
        for (form f = 0; f < FORMS; f++) {
            const op_case *c = &op_cases[k];
            stack s;
            stack_build(&s, c, f);
            for (int i = 0; i < c->count; i++) {
                if (reached(&s, i) != (c->trained >> i & 1))
                    fail_msg("flows of %s, input %d", dc_op_name(c->op), i);
                check_input(&s, f, i);
            }
            rig_close(&s.rig);
        }
}

// ---- both inputs from the same rows ----

// Inputs 0 and 1 are rows [0, n) and [1, n + 1) of one parameter, so that most rows have gradient from
// both. With threads, none of which may write what another does.
static void test_overlapping_inputs(void **state) {
    (void)state;
    for (int k = 0; k < OP_CASES; k++) {
        const op_case *c = &op_cases[k];
        if ((c->trained & 3) != 3 || memcmp(c->shape[0], c->shape[1], sizeof c->shape[0]) != 0)
            continue;
        stack s = {.c = c};
        rig *t = &s.rig;
        op_open(t, c, s.in);
        const int *shape = c->shape[0];
        int64_t offset = dc_params_add(&t->params, "both", shape[0], shape[1] + 1, shape[2],
                                       DC_INIT_ZERO, 0, true)
                             ->offset;
        dc_ref p = dc_param(&t->graph, "both", shape[0], shape[1] + 1, shape[2], offset, DC_LIVE);
        s.in[0] = dc_rows(&t->graph, p, 0, shape[1]);
        s.in[1] = dc_rows(&t->graph, p, 1, shape[1]);
        s.y = dc_apply(&t->graph, c->op, "op", s.in, c->count, c->a, c->b);
        assert_int_equal(dc_graph_finish(&t->graph, part_of_output(&s)), DC_OK);
        assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
        op_fill(t, c);
        assert_int_equal(dc_pool_new(&t->pool, 2), DC_OK);
        assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, t->pool), DC_OK);
        const dc_param_row *row = dc_params_find(&t->params, "both");
        for (int64_t i = 0; i < (int64_t)row->e * row->rows * row->cols; i += i < 20 ? 1 : 37) {
            stack_run(&s, DIRECT);
            double grad = t->params.slabs.grad[offset + i];
            double want = difference(&s, DIRECT, &t->params.slabs.live[offset + i]);
            if (!(fabs(grad - want) <= 1e-8))
                fail_msg("%s: gradient %g, and should be %g", dc_op_name(c->op), grad, want);
        }
        rig_close(t);
    }
}

// ---- on which rows of its inputs a row depends ----

// Row r of input i becomes like the one after it, or larger where it is the only one.
static void change_row(const rig *t, int i, int r) {
    const dc_param_row *row = &t->params.rows[i];
    for (int e = 0; e < row->e; e++)
        for (int c = 0; c < row->cols; c++) {
            dc_real *x = t->params.slabs.live + row->offset + (int64_t)e * row->rows * row->cols;
            dc_real next = x[(r + 1) % row->rows * row->cols + c];
            x[r * row->cols + c] = row->rows > 1 ? next : x[c] * 1.5 + 0.1;
        }
}

static bool row_differs(dc_tensor v, const dc_real *other, int r) {
    for (int e = 0; e < v.e; e++) {
        int64_t at = ((int64_t)e * v.rows + r) * v.cols;
        if (memcmp(v.p + e * v.step + (int64_t)r * v.cols, other + at,
                   (size_t)v.cols * sizeof *other))
            return true;
    }
    return false;
}

// (e, rows, cols)
static dc_real *copy_of(dc_tensor v) {
    size_t each = (size_t)v.rows * (size_t)v.cols;
    dc_real *copy = malloc((size_t)v.e * each * sizeof *copy);
    assert_non_null(copy);
    for (int e = 0; e < v.e; e++)
        memcpy(copy + (size_t)e * each, v.p + e * v.step, each * sizeof *copy);
    return copy;
}

// Is row q of an input of `rows` rows a share of row r of the output?
static bool is_share(int q, int rows, int r, int out_rows) {
    return (int64_t)q * out_rows / rows == r || (int64_t)r * rows / out_rows == q;
}

static bool rows_may_match(const op_case *c, int rows, int out_rows) {
    bool multiple = rows % out_rows == 0 || out_rows % rows == 0;
    return rows == out_rows || (dc_rule(c->op)->op_class == DC_CLASS_GATHER && multiple);
}

// An op over parameters, its output kept.
static dc_ref open_forward(rig *t, const op_case *c, dc_ref *in) {
    op_open(t, c, in);
    dc_ref y = dc_apply(&t->graph, c->op, "op", in, c->count, c->a, c->b);
    dc_keep(&t->graph, y);
    assert_int_equal(dc_graph_finish(&t->graph, -1), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
    op_fill(t, c);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, NULL), DC_OK);
    return y;
}

// Does output row r change with row r of input i, or with its share, alone? *any: does it ever change?
static bool own_rows_only(const rig *t, dc_ref y, int i, const dc_real *before, bool *any) {
    const dc_param_row *row = &t->params.rows[i];
    size_t bytes = (size_t)t->params.slabs.size * sizeof(dc_real);
    dc_real *keep = malloc(bytes);
    assert_non_null(keep);
    memcpy(keep, t->params.slabs.live, bytes);
    bool own = true;
    for (int q = 0; q < row->rows; q++) {
        change_row(t, i, q);
        dc_exec_run(&t->exec, &dc_backend_cpu);
        dc_tensor v = dc_value(&t->exec, y);
        for (int r = 0; r < v.rows; r++) {
            if (!row_differs(v, before, r)) continue;
            *any = true;
            own = own && is_share(q, row->rows, r, v.rows);
        }
        memcpy(t->params.slabs.live, keep, bytes);
    }
    free(keep);
    return own;
}

static void test_rowwise(void **state) {
    (void)state;
    bool any[DC_OPS][3] = {0};
    for (int k = 0; k < OP_CASES; k++) {
        const op_case *c = &op_cases[k];
        rig t;
        dc_ref in[3], y = open_forward(&t, c, in);
        dc_exec_run(&t.exec, &dc_backend_cpu);
        dc_tensor v = dc_value(&t.exec, y);
        dc_real *before = copy_of(v);
        for (int i = 0; i < c->count && v.e * v.rows * v.cols * c->shape[0][1] > 1; i++) {
            bool own = own_rows_only(&t, y, i, before, &any[c->op][i]);
            bool rowwise = own && rows_may_match(c, c->shape[i][1], v.rows);
            if (rowwise != (dc_rule(c->op)->rowwise >> i & 1))
                fail_msg("%s, input %d: by experiment %s", dc_op_name(c->op), i,
                         rowwise ? "a row depends on its own row alone" : "rows depend on others");
        }
        free(before);
        rig_close(&t);
    }
    for (dc_op op = DC_FIRST_COMPUTED; op < DC_OPS; op++)
        for (int i = 0; i < dc_rule(op)->most; i++)
            if (!any[op][i]) fail_msg("%s never changes with input %d", dc_op_name(op), i);
}

// ---- rows in use ----

// With the first rows of rowwise inputs in use, the same numbers in as many rows of the output.
static void test_rows_in_use(void **state) {
    (void)state;
    for (int k = 0; k < OP_CASES; k++) {
        const op_case *c = &op_cases[k];
        rig t;
        dc_ref in[3], y = open_forward(&t, c, in);
        dc_exec_run(&t.exec, &dc_backend_cpu);
        dc_tensor v = dc_value(&t.exec, y);
        dc_real *whole = copy_of(v);
        int want = v.rows;
        for (int i = 0; i < c->count; i++) {
            int rows = c->shape[i][1];
            if (!(dc_rule(c->op)->rowwise >> i & 1)) continue;
            t.exec.used[in[i]] = rows * 2 / 3;
            if (rows * 2 / 3 * v.rows / rows < want) want = rows * 2 / 3 * v.rows / rows;
        }
        fill_with_nan(t.exec.temps, t.graph.temp_size);
        dc_exec_run(&t.exec, &dc_backend_cpu);
        assert_int_equal(t.exec.used[y], want);
        for (int r = 0; r < want; r++)
            assert_false(row_differs(v, whole, r));
        for (int r = want; r < v.rows; r++) // and no work is spent on others
            assert_true(isnan(v.p[(int64_t)r * v.cols]));
        free(whole);
        rig_close(&t);
    }
}

// Through views, repetition and choice.
static void test_rows_in_use_pass_on(void **state) {
    (void)state;
    rig t = {0};
    assert_int_equal(dc_graph_init(&t.graph), DC_OK);
    dc_graph *g = &t.graph;
    dc_ref x = dc_input(g, "x", 12, 1);
    dc_ref part = dc_rows(g, dc_affine(g, x, 2, 0), 2, 8), twice = dc_repeat(g, part, 2);
    dc_ref best = dc_pick_best(g, twice, dc_stop(g, twice), 4), sum = dc_mean(g, "mean", best);
    rig_finish(&t, sum, 1, 0);
    t.exec.used[x] = 6;
    run(&t);
    assert_int_equal(t.exec.used[part], 4);
    assert_int_equal(t.exec.used[twice], 8);
    assert_int_equal(t.exec.used[best], 2);
    assert_int_equal(t.exec.used[sum], 1);
    t.exec.used[x] = 1;
    run(&t);
    assert_int_equal(t.exec.used[part], 0);
    rig_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rowwise),
        cmocka_unit_test(test_parts_of_stacked_rows),
        cmocka_unit_test(test_overlapping_inputs),
        cmocka_unit_test(test_rows_in_use),
        cmocka_unit_test(test_rows_in_use_pass_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
