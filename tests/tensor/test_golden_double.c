// Losses of published methods, written with the ops of ops.def, against numbers that were computed by
// hand from their formulas, in double precision. sin and cos are of radians, indices count from 0.
#include "rig.h"

// To the nine digits that are given.
static void near(double x, double y) {
    if (fabs(x - y) > 2e-9 * (1 + fabs(y))) fail_msg("%.10g, and should be %.10g", x, y);
}

// Graph, parameters and numbers of one test.
static dc_ref number(rig *t, const char *name) {
    int64_t offset = dc_params_add(&t->params, name, 1, 1, 1, DC_INIT_ZERO, 0, false)->offset;
    return dc_param(&t->graph, name, 1, 1, 1, offset, DC_LIVE);
}

static dc_ref tensor(rig *t, const char *name, int e, int rows, int cols) {
    int64_t offset = dc_params_add(&t->params, name, e, rows, cols, DC_INIT_ZERO, 0, false)->offset;
    return dc_param(&t->graph, name, e, rows, cols, offset, DC_LIVE);
}

static void open(rig *t) {
    *t = (rig){0};
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
}

static void finish(rig *t, dc_ref loss) {
    assert_int_equal(dc_graph_finish(&t->graph, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
    assert_int_equal(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, NULL), DC_OK);
}

static dc_real *values(const rig *t, const char *name) {
    return t->params.slabs.live + dc_params_find(&t->params, name)->offset;
}

// ---- QRL ----

enum { COLUMNS = 16, GROUP = 8 };

static void open_iqe(rig *t, dc_ref *d) {
    open(t);
    dc_ref x = tensor(t, "x", 1, 1, COLUMNS), y = tensor(t, "y", 1, 1, COLUMNS),
           rho = number(t, "rho");
    *d = dc_iqe(&t->graph, x, y, rho, GROUP);
    finish(t, dc_affine(&t->graph, *d, 1, 0));
    for (int i = 0; i < COLUMNS; i++) {
        values(t, "x")[i] = sin(i + 1);
        values(t, "y")[i] = cos(2 * i + 1);
    }
    *values(t, "rho") = 0.3;
}

static void test_iqe(void **state) {
    (void)state;
    rig t;
    dc_ref d;
    open_iqe(&t, &d);
    near(run(&t), 1.908372192);
    near(*grad_of(&t, "rho"), -0.033666992);
    const dc_real *dx = grad_of(&t, "x"), *dy = grad_of(&t, "y");
    for (int i = 0; i < COLUMNS; i++) {
        double x = i == 3 || i == 4 ? -0.287221 : i == 9 || i == 10 ? -0.712779 : 0;
        double y = i == 4 || i == 6 ? 0.287221 : i == 10 || i == 12 ? 0.712779 : 0;
        assert_true(fabs(dx[i] - x) < 1e-6 && fabs(dy[i] - y) < 1e-6);
    }
    // Shares of mean and max show the components.
    *values(&t, "rho") = 1000;
    near(run(&t), (1.712043290 + 1.987484869) / 2);
    *values(&t, "rho") = -1000;
    near(run(&t), 1.987484869);
    *values(&t, "rho") = 0.3;
    for (int i = 0; i < COLUMNS; i++) {
        values(&t, "y")[i] = sin(i + 1);
        values(&t, "x")[i] = cos(2 * i + 1);
    }
    near(run(&t), 1.910220648);
    rig_close(&t);
}

// The union of intervals counted on a fine grid says the same as the sorted ones.
static double union_by_grid(const dc_real *x, const dc_real *y) {
    enum { CELLS = 20000 };
    int covered = 0;
    for (int k = 0; k < CELLS; k++) {
        double at = -1 + 2 * (k + 0.5) / CELLS;
        bool inside = false;
        for (int i = 0; i < GROUP; i++)
            inside = inside || (x[i] <= at && at < y[i]);
        covered += inside;
    }
    return 2.0 * covered / CELLS;
}

static void test_iqe_random(void **state) {
    (void)state;
    rig t;
    dc_ref d;
    open_iqe(&t, &d);
    *values(&t, "rho") = 1000; // the mean of the two components alone
    for (uint64_t seed = 0; seed < 200; seed++) {
        dc_real *x = values(&t, "x"), *y = values(&t, "y");
        for (int i = 0; i < COLUMNS; i++) {
            x[i] = uniform(seed, (uint64_t)i);
            y[i] = seed % 5 == 4 ? -1 : x[i] + 0.6 * uniform(seed + 1000, (uint64_t)i);
            y[i] = fmin(1, fmax(-1, y[i]));
            if (seed % 3 == 0 && i % 4 == 1) x[i] = x[i - 1]; // equal beginnings
        }
        double want = (union_by_grid(x, y) + union_by_grid(x + GROUP, y + GROUP)) / 2;
        assert_true(fabs(run(&t) - want) < 2e-3);
    }
    rig_close(&t);
}

// L_neg = mean(100 softplus(5 - d(s, g) / 100)).
static void test_qrl_far(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref d = dc_input(g, "d", 3, 1);
    dc_ref far = dc_softplus(g, dc_affine(g, d, -0.01, 5));
    finish(&t, dc_affine(g, dc_mean(g, "far", far), 100, 0));
    memcpy(dc_value(&t.exec, d).p, (dc_real[]){120, 900, 3}, 3 * sizeof(dc_real));
    near(run(&t), 293.906443);
    rig_close(&t);
}

// sg(lam) P + lam (eps - sg(P)) with P = mean(relu(d(s, s') - 1)^2) and lam = e^l: l learns by its
// last term only, d by the first.
static void test_qrl_constraint(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref d = tensor(&t, "d", 1, 3, 1), lam = dc_exp(g, number(&t, "l"));
    dc_ref over = dc_relu(g, "over", dc_affine(g, d, 1, -1));
    dc_ref p = dc_mean(g, "p", dc_mul(g, over, over));
    dc_ref slack = dc_affine(g, dc_stop(g, p), -1, 0.05);
    dc_keep(g, p);
    finish(&t, dc_add(g, dc_mul(g, dc_stop(g, lam), p), dc_mul(g, lam, slack)));
    memcpy(values(&t, "d"), (dc_real[]){0.4, 1.5, 2}, 3 * sizeof(dc_real));
    near(run(&t), 0.05);
    near(*dc_value(&t.exec, p).p, 1.25 / 3);
    near(*grad_of(&t, "l"), 0.05 - 1.25 / 3);
    for (int i = 0; i < 3; i++)
        near(grad_of(&t, "d")[i], (double[]){0, 1.0 / 3, 2.0 / 3}[i]);
    *values(&t, "l") = 1;
    run(&t);
    near(*grad_of(&t, "l"), exp(1) * (0.05 - 1.25 / 3));
    near(grad_of(&t, "d")[2], exp(1) * 2 / 3);
    rig_close(&t);
}

// ---- CRL: every row of phi against every row of psi ----

static void test_crl(void **state) {
    (void)state;
    enum { B = 3, L = 4 };
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref phi = tensor(&t, "phi", 1, B, L), psi = tensor(&t, "psi", 1, B, L);
    double scale = 1 / sqrt(L);
    dc_ref all = dc_affine(g, dc_pair_dot(g, "f", phi, psi), scale, 0);
    dc_ref own = dc_affine(g, dc_row_dot(g, phi, psi), scale / B, 0);
    dc_keep(g, all);
    finish(&t, dc_add(g, dc_mean(g, "all", dc_softplus(g, all)),
                      dc_affine(g, dc_mean(g, "own", own), -1, 0)));
    for (int i = 0; i < B; i++)
        for (int k = 0; k < L; k++) {
            values(&t, "phi")[i * L + k] = sin(3 * i + k);
            values(&t, "psi")[i * L + k] = cos(2 * i + k);
        }
    near(run(&t), 0.570969977);
    const dc_real *f = dc_value(&t.exec, all).p;
    assert_true(fabs(f[0] - -0.031730) < 1e-6 && fabs(f[1] - -0.693688) < 1e-6 &&
                fabs(f[B] - 0.203945) < 1e-6);
    rig_close(&t);
}

// ---- TMD ----

enum { CHUNKS = 2 };

static void open_mrn(rig *t, int chunks, dc_mrn_form form) {
    open(t);
    dc_ref x = tensor(t, "x", 1, 1, COLUMNS), y = tensor(t, "y", 1, 1, COLUMNS);
    finish(t, dc_affine(&t->graph, dc_mrn(&t->graph, x, y, chunks, form), 1, 0));
    for (int i = 0; i < COLUMNS; i++) {
        values(t, "x")[i] = sin(i + 1);
        values(t, "y")[i] = cos(2 * i + 1);
    }
}

static void test_mrn(void **state) {
    (void)state;
    rig t;
    open_mrn(&t, 1, DC_MRN_QRL);
    near(run(&t), 4.432368238);
    rig_close(&t);
    open_mrn(&t, CHUNKS, DC_MRN_TMD);
    near(run(&t), 3.347389056);
    double sum =
        0; // of slopes: of each chunk 1 / CHUNKS at one column, and a unit vector in the other half
    for (int i = 0; i < COLUMNS; i++) {
        double dx = grad_of(&t, "x")[i];
        near(grad_of(&t, "y")[i], -dx);
        sum += i % (COLUMNS / CHUNKS) < COLUMNS / CHUNKS / 2 ? dx : dx * dx;
    }
    assert_true(fabs(sum - (1 + 1.0 / CHUNKS)) < 1e-6);
    for (int i = 0; i < COLUMNS; i++) {
        values(&t, "y")[i] = sin(i + 1);
        values(&t, "x")[i] = cos(2 * i + 1);
    }
    near(run(&t), 3.575818422);
    rig_close(&t);
}

// Where x = y: no largest difference, and a length without slope (QRL) or of slope 0 (TMD).
static void test_mrn_of_equals(void **state) {
    (void)state;
    for (dc_mrn_form form = DC_MRN_TMD; form <= DC_MRN_QRL; form++) {
        rig t;
        open_mrn(&t, CHUNKS, form);
        memcpy(values(&t, "y"), values(&t, "x"), COLUMNS * sizeof(dc_real));
        near(run(&t), form == DC_MRN_TMD ? 1e-3 : 1e-6);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(grad_of(&t, "x")[i] == 0 && grad_of(&t, "y")[i] == 0);
        rig_close(&t);
    }
}

static void test_linex(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref d = tensor(&t, "d", 1, 3, 1), n = dc_input(g, "n", 3, 1);
    dc_ref b = dc_linex(g, d, n, 3, 0.99);
    dc_keep(g, b);
    finish(&t, dc_affine(g, dc_mean(g, "b", b), 3, 0));
    memcpy(values(&t, "d"), (dc_real[]){5, 2, 1 - log(0.99)}, 3 * sizeof(dc_real));
    memcpy(dc_value(&t.exec, n).p, (dc_real[]){1, 1.5, 1}, 3 * sizeof(dc_real));
    run(&t);
    near(dc_value(&t.exec, b).p[0], 4);
    near(dc_value(&t.exec, b).p[1], -0.367765942);
    near(grad_of(&t, "d")[0], 1);
    near(grad_of(&t, "d")[1], 0.99 * exp(0.5) - 1);
    near(grad_of(&t, "d")[2], 0); // the least
    rig_close(&t);
}

// The losses of one member, with one chunk.
static void test_tmd(void **state) {
    (void)state;
    enum { B = 3, L = 4 };
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref phi = tensor(&t, "phi", 1, B, L), psi = tensor(&t, "psi", 1, B, L),
           next = tensor(&t, "next", 1, B, L);
    double scale = 1 / sqrt(L);
    dc_ref all = dc_mrn_pairs(g, "pairs", phi, psi, 1, DC_MRN_TMD),
           own = dc_mrn(g, phi, psi, 1, DC_MRN_TMD);
    dc_ref nce = dc_add(g, dc_mean(g, "others", dc_logsumexp(g, dc_affine(g, all, -scale, 0))),
                        dc_affine(g, dc_mean(g, "own", own), scale, 0));
    dc_ref led = dc_stop(g, dc_mrn_pairs(g, "led", next, psi, 1, DC_MRN_TMD)),
           own_led = dc_stop(g, dc_mrn(g, next, psi, 1, DC_MRN_TMD));
    dc_ref backup = dc_add(g, dc_mean(g, "all", dc_linex(g, all, led, 3, 0.99)),
                           dc_mean(g, "diagonal", dc_linex(g, own, own_led, 3, 0.99)));
    backup = dc_affine(g, backup, 0.5, 0);
    dc_keep(g, nce);
    dc_keep(g, backup);
    dc_keep(g, all);
    dc_keep(g, own);
    finish(&t, dc_add(g, nce, dc_affine(g, backup, 0.05, 0)));
    for (int i = 0; i < B; i++)
        for (int k = 0; k < L; k++) {
            values(&t, "phi")[i * L + k] = sin(3 * i + k);
            values(&t, "psi")[i * L + k] = cos(2 * i + k);
            values(&t, "next")[i * L + k] = sin(3 * i + k + 0.5);
        }
    run(&t);
    near(*dc_value(&t.exec, nce).p, 0.858419998);
    near(*dc_value(&t.exec, backup).p, -0.255386373);
    for (int i = 0; i < B; i++) // the same distances one by one
        near(dc_value(&t.exec, all).p[i * B + i], dc_value(&t.exec, own).p[i]);
    rig_close(&t);
}

// ---- SAC+BC: an action a = tanh(mean + std eps), and its log-likelihood ----

static void test_tanh_gaussian(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref out = tensor(&t, "out", 1, 1, 4), eps = dc_input(g, "eps", 1, 2);
    dc_ref mean = dc_columns(g, out, 0, 2), log_std = dc_columns(g, out, 2, 2);
    dc_ref u = dc_add(g, mean, dc_mul(g, dc_exp(g, log_std), eps)), a = dc_tanh(g, u);
    dc_keep(g, a);
    // -eps^2 / 2 - log std + 2 u + 2 softplus(-2u), less a constant
    dc_ref terms =
        dc_add(g, dc_affine(g, dc_mul(g, eps, eps), -0.5, 0), dc_affine(g, log_std, -1, 0));
    dc_ref squash = dc_add(g, u, dc_softplus(g, dc_affine(g, u, -2, 0)));
    terms = dc_add(g, terms, dc_affine(g, squash, 2, 0));
    double constant = 2 * (log(2 * acos(-1)) / 2 + 2 * log(2));
    finish(&t, dc_affine(g, dc_mean(g, "log pi", terms), 2, -constant));
    memcpy(values(&t, "out"), (dc_real[]){0.3, -1.2, -0.5, 0.4}, 4 * sizeof(dc_real));
    memcpy(dc_value(&t.exec, eps).p, (dc_real[]){0.7, -1.1}, 2 * sizeof(dc_real));
    near(run(&t), 2.199265003);
    const dc_real *action = dc_value(&t.exec, a).p;
    near(action[0], 0.619732988);
    near(action[1], -0.993209754);
    for (int d = 0; d < 2; d++) { // d log pi / du = 2 a
        double std = exp(values(&t, "out")[2 + d]), noise = d ? -1.1 : 0.7;
        near(grad_of(&t, "out")[d], 2 * action[d]);
        near(grad_of(&t, "out")[2 + d], 2 * action[d] * std * noise - 1);
    }
    rig_close(&t);
}

// ---- HIQL: the side of the advantage weighs each member's error ----

static void test_hiql(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref next = tensor(&t, "next", 2, 1, 1), now = tensor(&t, "now", 2, 1, 1),
           v = tensor(&t, "v", 2, 1, 1);
    dc_ref target = dc_stop(g, dc_affine(g, next, 0.99, -1));
    dc_ref mean = dc_ensemble_mean(g, now), best = dc_ensemble_min(g, target);
    dc_ref adv = dc_add(g, best, dc_affine(g, mean, -1, 0)), side = dc_side(g, adv, 0.7);
    dc_keep(g, adv);
    dc_ref loss = dc_expectile(g, "value", v, target, side, 0.5);
    finish(&t, dc_affine(g, loss, 2, 0)); // the sum over members of their means
    memcpy(values(&t, "next"), (dc_real[]){-3, -2.5}, 2 * sizeof(dc_real));
    memcpy(values(&t, "now"), (dc_real[]){-3.6, -3.4}, 2 * sizeof(dc_real));
    memcpy(values(&t, "v"), (dc_real[]){-3.7, -3.2}, 2 * sizeof(dc_real));
    near(run(&t), 0.0445575);
    near(*dc_value(&t.exec, adv).p, -0.47);
    near(grad_of(&t, "v")[0], 2 * 0.3 * (-3.7 + 3.97));
    near(grad_of(&t, "v")[1], 2 * 0.3 * (-3.2 + 3.475));
    rig_close(&t);
}

static void test_normalise(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_ref x = dc_input(&t.graph, "x", 2, 4), y = dc_normalise(&t.graph, x);
    dc_keep(&t.graph, y);
    finish(&t, -1);
    memcpy(dc_value(&t.exec, x).p, (dc_real[]){3, 4, 0, 0, 0, 0, 0, 0}, 8 * sizeof(dc_real));
    dc_exec_run(&t.exec, &dc_backend_cpu);
    for (int c = 0; c < 8; c++) // a row of zeros stays one
        near(dc_value(&t.exec, y).p[c], (double[]){1.2, 1.6, 0, 0, 0, 0, 0, 0}[c]);
    rig_close(&t);
}

// ---- candidates: each state a few times, the best action of each ----

static void test_candidates(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref s = dc_input(g, "s", 2, 1), worth = dc_input(g, "worth", 6, 1),
           a = dc_input(g, "a", 6, 2);
    dc_ref repeated = dc_repeat(g, s, 3), best = dc_pick_best(g, worth, a, 3);
    dc_keep(g, repeated);
    dc_keep(g, best);
    finish(&t, -1);
    memcpy(dc_value(&t.exec, s).p, (dc_real[]){5, 7}, 2 * sizeof(dc_real));
    memcpy(dc_value(&t.exec, worth).p, (dc_real[]){1, 3, 3, -2, -2, -9}, 6 * sizeof(dc_real));
    for (int i = 0; i < 12; i++)
        dc_value(&t.exec, a).p[i] = i;
    dc_exec_run(&t.exec, &dc_backend_cpu);
    for (int i = 0; i < 6; i++)
        near(dc_value(&t.exec, repeated).p[i], i < 3 ? 5 : 7);
    for (int i = 0; i < 4; i++) // the first of equals
        near(dc_value(&t.exec, best).p[i], (double[]){2, 3, 6, 7}[i]);
    rig_close(&t);
}

// The largest of every three, for each member by itself.
static void test_largest(void **state) {
    (void)state;
    rig t;
    open(&t);
    dc_graph *g = &t.graph;
    dc_ref y = dc_group_max(g, tensor(&t, "x", 2, 6, 1), 3);
    dc_keep(g, y);
    finish(&t, -1);
    const dc_real numbers[] = {1, 3, 3, -2, -2, -9, 5, 4, 0, -7, -6, -5};
    memcpy(values(&t, "x"), numbers, sizeof numbers);
    const double want[] = {3, -2, 5, -5};
    dc_exec_run(&t.exec, &dc_backend_cpu);
    for (int i = 0; i < 4; i++)
        near(dc_value(&t.exec, y).p[i], want[i]);
    for (int k = 0; k < 3; k++) { // NaN at any place of a group is its maximum
        values(&t, "x")[3 + k] = NAN;
        dc_exec_run(&t.exec, &dc_backend_cpu);
        for (int i = 0; i < 4; i++)
            if (i == 1)
                assert_true(isnan(dc_value(&t.exec, y).p[i]));
            else
                near(dc_value(&t.exec, y).p[i], want[i]);
        values(&t, "x")[3 + k] = -9;
    }
    rig_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iqe),           cmocka_unit_test(test_iqe_random),
        cmocka_unit_test(test_qrl_far),       cmocka_unit_test(test_qrl_constraint),
        cmocka_unit_test(test_crl),           cmocka_unit_test(test_hiql),
        cmocka_unit_test(test_normalise),     cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_tanh_gaussian), cmocka_unit_test(test_mrn),
        cmocka_unit_test(test_mrn_of_equals), cmocka_unit_test(test_linex),
        cmocka_unit_test(test_tmd),           cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
