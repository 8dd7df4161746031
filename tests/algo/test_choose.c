// split=max asks the critic: what it takes is compared with every state between, valued by a plain
// forward pass in double that knows nothing of the engine; and blocks of questions change nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "algo/backup.h"
#include "base/philox.h"
#include "train/run.h"

enum { STATES = 60, TRAJECTORIES = 3, ROWS = STATES * TRAJECTORIES, OBS = 3, ACT = 2, MANY = 700 };

static double unit(uint32_t i) {
    return (double)dc_philox(3, 77, 0, i).v[0] / 4294967296.0;
}

static void make_data(dc_dataset *data) {
    int64_t *starts;
    float *obs, *act;
    *data = (dc_dataset){0};
    assert_int_equal(dc_dataset_make(data, ROWS, TRAJECTORIES, &starts), DC_OK);
    for (int t = 0; t <= TRAJECTORIES; t++)
        starts[t] = t * STATES;
    assert_int_equal(dc_dataset_add(data, "obs", OBS, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(data, "act", ACT, &act), DC_OK);
    for (uint32_t i = 0; i < ROWS * OBS; i++)
        obs[i] = (float)(4 * unit(i) - 2);
    for (uint32_t i = 0; i < ROWS * ACT; i++)
        act[i] = (float)(2 * unit(10000 + i) - 1);
    assert_int_equal(dc_dataset_seal(data), DC_OK);
}

static void start(dc_run *run, const dc_dataset *data, const char *form, const char *candidates) {
    const char *const set[][2] = {{"form", form},      {"split", "max"},
                                  {"hidden", "16,16"}, {"candidates", candidates},
                                  {"batch", "8"},      {"threads", "2"}};
    assert_int_equal(dc_run_configure(run, "dcrl"), DC_OK);
    for (size_t s = 0; s < sizeof set / sizeof set[0]; s++)
        assert_int_equal(dc_run_set(run, set[s][0], set[s][1]), DC_OK);
    assert_int_equal(dc_run_start(run, data, NULL), DC_OK);
}

static void normalise(double *x, int width, const dc_real *scale, const dc_real *bias) {
    double mean = 0, var = 0;
    for (int c = 0; c < width; c++) {
        double u = 0.7978845608028654 * (x[c] + 0.044715 * x[c] * x[c] * x[c]);
        x[c] = 0.5 * x[c] * (1 + tanh(u));
        mean += x[c] / width;
    }
    for (int c = 0; c < width; c++)
        var += (x[c] - mean) * (x[c] - mean) / width;
    for (int c = 0; c < width; c++)
        x[c] = (x[c] - mean) / sqrt(var + 1e-6) * (double)scale[c] + (double)bias[c];
}

// One member's output for a row [s | g | a], layer by layer.
static double member(const dc_agent *a, int e, const double *row) {
    const dc_mlp *m = &dc_nets_find(&a->nets, "critic")->mlp;
    const dc_real *live = a->params.slabs.live;
    double x[64], y[64];
    int in = m->in;
    for (int c = 0; c < in; c++)
        x[c] = row[c];
    for (int layer = 0; layer < m->layers; layer++) {
        bool last = layer == m->layers - 1;
        int out = last ? m->out : (int)m->hidden.v[layer];
        const dc_real *w = live + m->layer[layer].w + (int64_t)e * in * out;
        for (int c = 0; c < out; c++) {
            y[c] = (double)live[m->layer[layer].b + e * out + c];
            for (int r = 0; r < in; r++)
                y[c] += x[r] * (double)w[r * out + c];
        }
        if (!last)
            normalise(y, out, live + m->layer[layer].scale + e * out,
                      live + m->layer[layer].bias + e * out);
        for (int c = 0; c < out; c++)
            x[c] = y[c];
        in = out;
    }
    return x[0];
}

// Steps from s to g as the critic sees them.
static double distance(const dc_agent *a, int64_t s, int64_t g) {
    double row[2 * OBS + ACT];
    if (g - s <= a->known) return (double)(g - s);
    for (int c = 0; c < OBS; c++) {
        row[c] = (double)a->data->columns[0].values[s * OBS + c];
        row[OBS + c] = (double)a->data->columns[0].values[g * OBS + c];
    }
    for (int c = 0; c < ACT; c++)
        row[2 * OBS + c] = (double)a->data->columns[1].values[s * ACT + c];
    if (a->options.form == &dc_form_distance) return member(a, 0, row);
    double sum = 0;
    for (int e = 0; e < 2; e++)
        sum += log(1 / (1 + exp(-member(a, e, row)))) / log(a->options.gamma) / 2;
    return sum;
}

// Segments of all lengths from 2 on.
static void segments(int64_t *i, int64_t *j) {
    for (uint32_t x = 0; x < MANY; x++) {
        int64_t length = 2 + x % (STATES - 2), room = STATES - length;
        i[x] = x % TRAJECTORIES * STATES + (int64_t)(unit(20000 + x) * (double)room);
        j[x] = i[x] + length;
    }
}

static void check_best(const char *form) {
    dc_dataset data;
    dc_run run;
    int64_t i[MANY], j[MANY], k[MANY];
    make_data(&data);
    start(&run, &data, form, "64");
    segments(i, j);
    assert_int_equal(dc_choose_split(&run.agent, MANY, i, j, k), DC_OK);
    int ends = 0;
    for (int x = 0; x < MANY; x++) {
        const dc_agent *a = &run.agent;
        double least = INFINITY;
        for (int64_t m = i[x] + 1; m < j[x]; m++)
            least = fmin(least, distance(a, i[x], m) + distance(a, m, j[x]));
        assert_true(i[x] < k[x] && k[x] < j[x]);
        double taken = distance(a, i[x], k[x]) + distance(a, k[x], j[x]);
        assert_true(fabs(taken - least) < 1e-3 * (1 + fabs(least)));
        ends += k[x] != (i[x] + j[x]) / 2;
    }
    assert_true(ends > MANY / 2); // it does choose
    dc_run_fini(&run);
    dc_dataset_fini(&data);
}

static void test_best_of_all(void **state) {
    (void)state;
    check_best("value");
    check_best("distance");
}

// Segment by segment, all at once, and the reverse: the same splits, all of them between.
static void test_blocks_change_nothing(void **state) {
    (void)state;
    dc_dataset data;
    dc_run run;
    int64_t i[MANY], j[MANY], k[MANY], alone;
    make_data(&data);
    start(&run, &data, "value", "7");
    segments(i, j);
    assert_int_equal(dc_choose_split(&run.agent, MANY, i, j, k), DC_OK);
    for (int x = MANY - 1; x >= 0; x--) {
        assert_int_equal(dc_choose_split(&run.agent, 1, &i[x], &j[x], &alone), DC_OK);
        assert_true(i[x] < alone && alone < j[x]);
        assert_int_equal(alone, k[x]);
    }
    dc_run_fini(&run);
    dc_dataset_fini(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_of_all),
        cmocka_unit_test(test_blocks_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
