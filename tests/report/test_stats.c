// Statistics of reports on small cases that can be done by hand; test_report.py compares larger
// ones with numpy.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/csv.h"
#include "report/stats.h"

#include <stdio.h>
#include <string.h>

static void near(double x, double y) {
    if (!(fabs(x - y) <= 1e-12)) fail_msg("%.17g is not %.17g", x, y);
}

static void test_spread(void **state) {
    (void)state;
    double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    dc_spread s = dc_stats_spread(x, 8);
    near(s.mean, 5);
    near(s.sd, sqrt(32.0 / 7));
    near(dc_stats_spread(x, 1).sd, 0);
    assert_true(isnan(dc_stats_spread(x, 0).mean));
    near(dc_stats_median(x, 8), 4.5);
    near(dc_stats_median(x, 3), 4);
    assert_true(isnan(dc_stats_median(x, 0)));
}

static void test_iqm(void **state) {
    (void)state;
    double x[] = {100, 3, 1, -50, 2}, one[] = {7}, eight[] = {8, 7, 6, 5, 4, 3, 2, 1};
    near(dc_stats_iqm(x, 5), 2); // one of five goes at each end
    near(dc_stats_iqm(one, 1), 7);
    near(dc_stats_iqm(eight, 8), 4.5); // two of eight
    assert_true(isnan(dc_stats_iqm(one, 0)));
}

static void nearly(double x, double y) {
    if (!(fabs(x - y) <= 1e-5 * fabs(y))) fail_msg("%.17g is not %.17g", x, y);
}

// Quantiles of Student's t and Wilson's intervals as tables have them.
static void test_intervals(void **state) {
    (void)state;
    const struct {
        int degrees;
        double t;
    } table[] = {{1, 12.706205}, {4, 2.776445},  {10, 2.228139}, {11, 2.200985},
                 {15, 2.131450}, {29, 2.045230}, {99, 1.984217}};
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
        double x[100], n = table[k].degrees + 1;
        for (int i = 0; i < (int)n; i++)
            x[i] = i % 3;
        dc_spread s = dc_stats_spread(x, (int)n);
        dc_interval got = dc_stats_student(x, (int)n);
        nearly((got.high - got.low) / 2, table[k].t * s.sd / sqrt(n));
        nearly((got.high + got.low) / 2, s.mean);
    }
    assert_true(isnan(dc_stats_student((double[]){1}, 1).low));
    dc_interval w = dc_stats_wilson(0, 10);
    near(w.low, 0);
    nearly(w.high, 0.277533);
    w = dc_stats_wilson(0.3, 50);
    nearly(w.low, 0.1910355);
    nearly(w.high, 0.4375035);
    w = dc_stats_wilson(1, 225);
    nearly(w.low, 0.983213);
    near(w.high, 1);
    assert_true(isnan(dc_stats_wilson(0.5, 0).low));
}

static void test_bootstrap(void **state) {
    (void)state;
    const double same[] = {3, 3, 3, 3, 3, 3}, x[] = {0, 10, 1, 11, 2, 12, 3, 13}; // (4, 2)
    dc_interval a, b;
    assert_int_equal(dc_stats_bootstrap(same, 3, 2, 200, 1, &a), DC_OK);
    near(a.low, 3);
    near(a.high, 3);
    // Strata stay apart: however seeds are drawn, half of the values lie below 4, half above 9.
    assert_int_equal(dc_stats_bootstrap(x, 4, 2, 2000, 1, &a), DC_OK);
    assert_true(a.low >= 5 && a.low < 6.5 && a.high > 6.5 && a.high <= 8);
    assert_int_equal(dc_stats_bootstrap(x, 4, 2, 2000, 1, &b), DC_OK);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(dc_stats_bootstrap(x, 0, 2, 2000, 1, &a), DC_OK);
    assert_true(isnan(a.low));
}

// Every prefix of a log either reads or fails with its line; nothing else happens.
static void test_csv_prefixes(void **state) {
    (void)state;
    const char text[] = "step,a,b\r\n10,1.5,nan\n20,,-2e3\n";
    for (size_t n = 0; n < sizeof text; n++) {
        dc_arena arena;
        dc_csv csv;
        dc_arena_init(&arena, 0);
        dc_status status = dc_csv_parse(&csv, &arena, "log.csv", text, n);
        if (status == DC_OK)
            assert_true(n == 0 || text[n - 1] == '\n' || n <= 9);
        else
            assert_non_null(strstr(dc_error(), "log.csv:"));
        if (n == sizeof text - 1) {
            assert_int_equal(status, DC_OK);
            assert_int_equal(csv.rows, 2);
            near(dc_csv_at(&csv, 1, 2), -2000);
            assert_true(isnan(dc_csv_at(&csv, 0, 2)) && isnan(dc_csv_at(&csv, 1, 1)));
            assert_int_equal(dc_csv_column(&csv, "b"), 2);
            assert_int_equal(dc_csv_column(&csv, "c"), -1);
        }
        dc_arena_fini(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),       cmocka_unit_test(test_iqm),
        cmocka_unit_test(test_intervals),    cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_csv_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
