// A network's first weights and the table that holds them: the range and the variance of Xavier's
// law, what is zero and what is one, names and places, and that draws depend on the seed and on the
// matrix alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "nn/mlp.h"

static const dc_int_list hidden = {2, {300, 200}};
enum { IN = 40, OUT = 30, MEMBERS = 2 };

static void declare(dc_mlp *net, dc_params *params, const char *name, int e, double out_gain,
                    bool target) {
    dc_mlp_declare(net, params,
                   &(dc_mlp_spec){.name = name,
                                  .e = e,
                                  .in = IN,
                                  .out = OUT,
                                  .hidden = &hidden,
                                  .out_gain = out_gain,
                                  .layernorm = true,
                                  .has_target = target});
}

static void open_net(dc_params *params, dc_mlp *net, double out_gain, uint64_t seed) {
    *params = (dc_params){0};
    declare(net, params, "critic", MEMBERS, out_gain, true);
    assert_int_equal(dc_params_alloc(params, seed), DC_OK);
}

static const dc_param_row *find(const dc_params *params, const char *name) {
    const dc_param_row *row = dc_params_find(params, name);
    assert_non_null(row);
    return row;
}

static int64_t cells(const dc_param_row *row) {
    return (int64_t)row->e * row->rows * row->cols;
}

// Uniform in +-limit: nothing outside, the edge nearly reached, mean 0 and variance limit^2 / 3
// within five standard errors.
static void check_uniform(const dc_real *w, int64_t count, double limit) {
    double sum = 0, square = 0, most = 0, n = (double)count;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)w[i];
        sum += x;
        square += x * x;
        most = fmax(most, fabs(x));
    }
    double variance = limit * limit / 3;
    assert_true(most <= limit * (1 + 1e-6) && most > limit * (1 - 20 / n));
    assert_true(fabs(sum / n) < 5 * sqrt(variance / n));
    assert_true(fabs(square / n - variance) < 5 * limit * limit * sqrt(4.0 / 45 / n));
}

static void test_xavier(void **state) {
    (void)state;
    dc_params params;
    dc_mlp net;
    open_net(&params, &net, 0.01, 3);
    const struct {
        const char *name;
        int rows, cols;
        double gain;
    } want[] = {
        {"critic/0/w", IN, 300, 1}, {"critic/1/w", 300, 200, 1}, {"critic/2/w", 200, OUT, 0.01}};
    for (int i = 0; i < 3; i++) {
        const dc_param_row *row = find(&params, want[i].name);
        assert_true(row->e == MEMBERS && row->rows == want[i].rows && row->cols == want[i].cols);
        double limit = want[i].gain * sqrt(6.0 / (want[i].rows + want[i].cols));
        const dc_real *w = params.slabs.live + row->offset;
        int64_t half = cells(row) / 2;
        check_uniform(w, half, limit);
        check_uniform(w + half, half, limit);
        assert_memory_not_equal(w, w + half, (size_t)half * sizeof *w); // members differ
    }
    dc_params_free(&params);
}

static void test_vectors(void **state) {
    (void)state;
    dc_params params;
    dc_mlp net;
    open_net(&params, &net, 1, 3);
    const char *names[] = {"critic/0/b",    "critic/1/b",     "critic/2/b",    "critic/0/bias",
                           "critic/1/bias", "critic/0/scale", "critic/1/scale"};
    for (int i = 0; i < 7; i++) {
        const dc_param_row *row = find(&params, names[i]);
        assert_int_equal(row->rows, 1);
        for (int64_t k = 0; k < cells(row); k++)
            assert_true(params.slabs.live[row->offset + k] == (i >= 5));
    }
    assert_int_equal(params.count, 3 + 7); // and no others: the last layer has no norm
    assert_null(dc_params_find(&params, "critic/2/scale"));
    dc_params_free(&params);
}

// Matrices lie one after the other on cache lines; targets start as copies.
static void test_places(void **state) {
    (void)state;
    dc_params params;
    dc_mlp net;
    open_net(&params, &net, 1, 3);
    int64_t end = 0;
    for (int i = 0; i < params.count; i++) {
        const dc_param_row *row = &params.rows[i];
        assert_true(row->offset >= end && row->offset % 16 == 0);
        end = row->offset + cells(row);
    }
    assert_true(end <= params.slabs.size);
    assert_int_equal(params.slabs.ema_size, params.slabs.size);
    assert_memory_equal(params.slabs.ema, params.slabs.live, (size_t)end * sizeof(dc_real));
    dc_params_free(&params);
}

static void test_seeds(void **state) {
    (void)state;
    dc_params a, b, c;
    dc_mlp net;
    open_net(&a, &net, 1, 3);
    open_net(&b, &net, 1, 3);
    open_net(&c, &net, 1, 4);
    size_t bytes = (size_t)a.slabs.size * sizeof(dc_real);
    assert_memory_equal(a.slabs.live, b.slabs.live, bytes);
    for (int i = 0; i < 3; i++) {
        const char *names[] = {"critic/0/w", "critic/1/w", "critic/2/w"};
        const dc_param_row *row = find(&a, names[i]);
        int64_t same = 0;
        for (int64_t k = 0; k < cells(row); k++)
            same += a.slabs.live[row->offset + k] == c.slabs.live[row->offset + k];
        assert_true(same < cells(row) / 1000 + 3); // 24 bits a draw: equal ones are chance
    }
    dc_params_free(&a);
    dc_params_free(&b);
    dc_params_free(&c);
}

// A second network, without a target, changes nothing of the first and stays out of the EMA.
static void test_second_network(void **state) {
    (void)state;
    dc_params one, two = {0};
    dc_mlp net, policy;
    open_net(&one, &net, 1, 3);
    declare(&net, &two, "critic", MEMBERS, 1, true);
    declare(&policy, &two, "policy", 1, 0.01, false);
    assert_int_equal(dc_params_alloc(&two, 3), DC_OK);
    assert_memory_equal(one.slabs.live, two.slabs.live, (size_t)one.slabs.size * sizeof(dc_real));
    assert_int_equal(two.slabs.ema_size, one.slabs.size);
    assert_true(find(&two, "policy/0/w")->offset >= two.slabs.ema_size);
    two.slabs.live[find(&two, "policy/1/bias")->offset + 5] = NAN;
    assert_string_equal(dc_params_find_bad(&two, two.slabs.live), "policy/1/bias");
    assert_null(dc_params_find_bad(&one, one.slabs.live));
    dc_params_free(&one);
    dc_params_free(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xavier),         cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_places),         cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_second_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
