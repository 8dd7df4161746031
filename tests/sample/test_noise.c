// Random numbers of flow policies: near exact arithmetic, of the right law, and where a step uses them, those
// that the counter names.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "row_spec.h"
#include "sample/gather.h"
#include "sample/noise.h"
#include "tensor/run.h"

enum { COUNT = 1 << 20 };

static void test_log(void **state) {
    (void)state;
    const uint32_t edges[] = {
        1, 2, 3, 1u << 23, (1u << 23) - 1, 11863283, 11863284, (1u << 24) - 1};
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t n = i < 8 ? edges[i] : (dc_philox(1, 99, 0, i).v[0] >> 8) | 1;
        double want = -log((double)n / 16777216.0);
        assert_true(fabs((double)dc_minus_log(n) - want) <= 3e-7 * want);
    }
}

// Box and Muller in double, from the same words.
static void test_accuracy(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        dc_u32x4 w = dc_philox(2, 99, 0, i);
        if (i < 8) w.v[1] = i << 29; // where the quarters of the circle meet
        float is[2];
        dc_normals(w.v[0], w.v[1], is);
        double r = sqrt(-2 * log((double)(w.v[0] >> 8 | 1) / 16777216.0));
        double turn = ((double)(w.v[1] >> 30) + (double)(w.v[1] << 2 >> 8) / 16777216.0 - 0.5) / 4;
        double pi = acos(-1.0);
        worst = fmax(worst, fabs((double)is[0] - r * cos(2 * pi * turn)));
        worst = fmax(worst, fabs((double)is[1] - r * sin(2 * pi * turn)));
    }
    assert_true(worst < 2e-6);
}

static int rising(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

// Largest distance between the law of the numbers and its cumulative function, in units of 1 / sqrt(n): above
// 2.2 in one of eight thousand cases.
static double kolmogorov(double *x, double (*law)(double)) {
    double worst = 0;
    qsort(x, COUNT, sizeof *x, rising);
    for (int i = 0; i < COUNT; i++)
        worst = fmax(worst, fabs(law(x[i]) - (i + 0.5) / COUNT));
    return worst * sqrt((double)COUNT);
}

static double normal_law(double x) {
    return 0.5 * erfc(-x / sqrt(2.0));
}

static double uniform_law(double x) {
    return x;
}

static void test_laws(void **state) {
    (void)state;
    double *x = malloc(COUNT * sizeof *x), sum[5] = {0}, lag = 0;
    assert_non_null(x);
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (double)dc_draw_normal(3, DC_STREAM_NOISE, 7, i);
        for (int p = 1; p < 5; p++)
            sum[p] += pow(x[i], p) / COUNT;
        if (i & 1) lag += x[i] * x[i - 1] / (COUNT / 2); // the two of a pair
    }
    double error = 1 / sqrt((double)COUNT); // moments 1 to 4 have variances 1, 2, 15, 96
    assert_true(fabs(sum[1]) < 5 * error && fabs(sum[2] - 1) < 5 * error * sqrt(2.0));
    assert_true(fabs(sum[3]) < 5 * error * sqrt(15.0) && fabs(sum[4] - 3) < 5 * error * sqrt(96.0));
    assert_true(fabs(lag) < 5 * error * sqrt(2.0));
    assert_true(kolmogorov(x, normal_law) < 2.2);
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = (double)dc_draw_time(3, DC_STREAM_TIME, 7, i);
    assert_true(kolmogorov(x, uniform_law) < 2.2);
    assert_true(x[0] >= 0 && x[COUNT - 1] < 1);
    free(x);
}

static void test_address(void **state) {
    (void)state;
    float x = dc_draw_normal(1, DC_STREAM_NOISE, 2, 3);
    assert_true(x == dc_draw_normal(1, DC_STREAM_NOISE, 2, 3));
    assert_true(x != dc_draw_normal(2, DC_STREAM_NOISE, 2, 3));
    assert_true(x != dc_draw_normal(1, DC_STREAM_CANDIDATE, 2, 3));
    assert_true(x != dc_draw_normal(1, DC_STREAM_NOISE, 3, 3));
    assert_true(x != dc_draw_normal(1, DC_STREAM_NOISE, 2, 2));
}

// Gather writes the numbers of the step that the sampler stands at, time the same in all its columns; a second draw of a
// kind has numbers of its own.
static void test_gather(void **state) {
    (void)state;
    enum { BATCH = 5, WIDE = 3, SEED = 11 };
    dc_dataset data;
    int64_t *starts;
    assert_int_equal(dc_dataset_make(&data, 4, 1, &starts), DC_OK);
    starts[1] = 4;
    assert_int_equal(dc_dataset_seal(&data), DC_OK);
    dc_sampler *sampler;
    row_spec spec = {.seed = SEED, .batch = BATCH, .actor = true};
    assert_int_equal(new_sampler(&sampler, &data, &spec), DC_OK);
    dc_graph g;
    assert_int_equal(dc_graph_init(&g), DC_OK);
    dc_ref noise = dc_input(&g, "noise", BATCH, WIDE), time = dc_input(&g, "time", BATCH, WIDE + 1),
           again = dc_input(&g, "again", BATCH, 2);
    assert_int_equal(dc_graph_finish(&g, -1), DC_OK);
    dc_slabs slabs = {0};
    dc_exec exec;
    assert_int_equal(dc_exec_init(&exec, &g, &slabs, NULL), DC_OK);
    dc_feeds feeds = {.batch = BATCH, .seed = SEED, .feed_count = 3};
    int first = dc_feeds_draw(&feeds, "noise", DC_DRAW_NOISE, WIDE),
        second = dc_feeds_draw(&feeds, "time", DC_DRAW_TIME, 1),
        third = dc_feeds_draw(&feeds, "again", DC_DRAW_NOISE, 2);
    assert_int_equal(dc_feeds_draw(&feeds, "noise", DC_DRAW_NOISE, WIDE), first);
    feeds.feeds[0] = (dc_feed){.input = noise, .take = WIDE, .draw = first};
    feeds.feeds[1] = (dc_feed){.input = time, .col0 = 1, .take = WIDE, .draw = second};
    feeds.feeds[2] = (dc_feed){.input = again, .take = 2, .draw = third};
    for (uint64_t step = 0; step < 3; step++) {
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        dc_gather(&feeds, sampler, &exec);
        for (int i = 0; i < BATCH * WIDE; i++) {
            assert_true((float)dc_value(&exec, noise).p[i] ==
                        dc_draw_normal(SEED, DC_STREAM_NOISE, step, (uint32_t)i));
            assert_true((float)dc_value(&exec, time).p[i / WIDE * (WIDE + 1) + 1 + i % WIDE] ==
                        dc_draw_time(SEED, DC_STREAM_TIME, step, (uint32_t)(i / WIDE)));
        }
        for (uint32_t i = 0; i < BATCH * 2; i++) {
            float x = dc_draw_normal(SEED, DC_STREAM_NOISE + DC_STREAM_AGAIN, step, i);
            assert_true((float)dc_value(&exec, again).p[i] == x);
            assert_true(x != dc_draw_normal(SEED, DC_STREAM_NOISE, step, i));
        }
    }
    dc_exec_fini(&exec);
    dc_graph_fini(&g);
    dc_sampler_free(sampler);
    dc_dataset_fini(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_accuracy),
                                       cmocka_unit_test(test_laws), cmocka_unit_test(test_address),
                                       cmocka_unit_test(test_gather)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
