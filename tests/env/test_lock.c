// combination-lock: the rules of the environment, the codes, the data set, the names; and the
// evaluation of an agent on it against the network written out by hand, pair by pair, in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algo/backup.h"
#include "env/lock.h"
#include "rollout/lock_eval.h"

static const int horizons[] = {4, 5, 8, 100, 512, 1000, 4096};
enum { HORIZONS = sizeof horizons / sizeof horizons[0] };

static void open_lock(dc_lock *lock, int horizon, uint64_t seed) {
    assert_int_equal(dc_lock_init(lock, horizon, seed), DC_OK);
}

// ---- rules ----

static void test_answers_lead_to_the_end(void **state) {
    (void)state;
    for (int k = 0; k < HORIZONS; k++) {
        dc_lock lock;
        open_lock(&lock, horizons[k], 3);
        dc_lock_reset(&lock);
        for (int s = 0; s < horizons[k] - 1; s++) {
            assert_int_equal(lock.state, s);
            assert_int_equal(dc_lock_step(&lock, lock.answer[s]), s + 1);
        }
        assert_int_equal(dc_lock_step(&lock, lock.answer[lock.state]),
                         horizons[k] - 1); // and stays
        dc_lock_fini(&lock);
    }
}

static void test_wrong_action_returns(void **state) {
    (void)state;
    dc_lock lock;
    open_lock(&lock, 100, 4);
    for (int s = 0; s < 100; s++) { // from every state, the last one too
        dc_lock_reset(&lock);
        for (int t = 0; t < s; t++)
            dc_lock_step(&lock, lock.answer[t]);
        assert_int_equal(lock.state, s);
        assert_int_equal(dc_lock_step(&lock, !lock.answer[s]), 0);
        assert_int_equal(lock.state, 0);
    }
    dc_lock_fini(&lock);
}

// ---- codes and answers ----

static int bits_of(int horizon) {
    int bits = 0;
    for (int n = horizon - 1; n > 0; n /= 2)
        bits++;
    return bits;
}

static int read_code(const dc_lock *lock, int state) {
    float obs[32];
    int code = 0;
    dc_lock_observe(lock, state, obs);
    for (int b = 0; b < lock->bits; b++) {
        assert_true(obs[b] == 0 || obs[b] == 1);
        code |= (int)obs[b] << b;
    }
    return code;
}

static void test_codes_are_a_permutation(void **state) {
    (void)state;
    for (int k = 0; k < HORIZONS; k++) {
        dc_lock lock;
        open_lock(&lock, horizons[k], 5);
        assert_int_equal(lock.bits, bits_of(horizons[k]));
        bool *seen = calloc((size_t)horizons[k], sizeof *seen);
        assert_non_null(seen);
        int in_place = 0;
        for (int s = 0; s < horizons[k]; s++) {
            int code = read_code(&lock, s);
            assert_true(code < horizons[k] && !seen[code]);
            seen[code] = true;
            in_place += code == s;
        }
        assert_true(horizons[k] < 50 || in_place < 10); // one is expected by chance
        free(seen);
        dc_lock_fini(&lock);
    }
}

// The first code and the answers are fair over seeds: 8 codes, 2 answers, five standard deviations.
static void test_draws_are_fair(void **state) {
    (void)state;
    enum { SEEDS = 4000 };
    int first[8] = {0}, ones = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        dc_lock lock;
        open_lock(&lock, 8, seed);
        first[lock.code[0]]++;
        for (int s = 0; s < 8; s++)
            ones += lock.answer[s];
        dc_lock_fini(&lock);
    }
    for (int c = 0; c < 8; c++)
        assert_true(fabs(first[c] - SEEDS / 8.0) < 5 * sqrt(SEEDS / 8.0 * 7 / 8));
    assert_true(fabs(ones - SEEDS * 4.0) < 5 * sqrt(SEEDS * 8 / 4.0));
}

static void test_seeds(void **state) {
    (void)state;
    dc_lock a, b, c;
    open_lock(&a, 512, 6);
    open_lock(&b, 512, 6);
    open_lock(&c, 512, 7);
    size_t bytes = 512 * sizeof *a.code;
    assert_memory_equal(a.code, b.code, bytes);
    assert_memory_equal(a.answer, b.answer, bytes);
    assert_memory_not_equal(a.code, c.code, bytes);
    assert_memory_not_equal(a.answer, c.answer, bytes);
    dc_lock_fini(&a);
    dc_lock_fini(&b);
    dc_lock_fini(&c);
}

static void test_data(void **state) {
    (void)state;
    dc_lock lock;
    dc_dataset data;
    open_lock(&lock, 100, 8);
    assert_int_equal(dc_lock_data(&lock, &data), DC_OK);
    const dc_column *obs = dc_dataset_column(&data, "obs"), *act = dc_dataset_column(&data, "act");
    assert_true(data.rows == 100 && data.traj_count == 1 && obs->width == 7 && act->width == 1);
    assert_true(data.traj_start[0] == 0 && data.traj_start[1] == 100);
    dc_lock_reset(&lock);
    for (int s = 0; s < 100; s++) { // taking the recorded actions visits the recorded states
        float seen[7];
        dc_lock_observe(&lock, lock.state, seen);
        assert_memory_equal(seen, obs->values + (ptrdiff_t)s * 7, sizeof seen);
        dc_lock_step(&lock, (int)act->values[s]);
    }
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
}

static void test_names(void **state) {
    (void)state;
    int h = 0;
    assert_int_equal(dc_lock_horizon("lock-512", &h), DC_OK);
    assert_int_equal(h, 512);
    assert_int_equal(dc_lock_horizon("lock-4", &h), DC_OK);
    assert_int_equal(dc_lock_horizon("lock-1048576", &h), DC_OK);
    assert_int_equal(h, 1048576);
    const char *bad[] = {"",
                         "lock",
                         "lock-",
                         "lock-3",
                         "lock-0",
                         "lock--5",
                         "lock-512x",
                         "lock-5.0",
                         "lock- 512",
                         "lock-+512",
                         "lock-0512",
                         "lock-1048577",
                         "Lock-512",
                         "maze-512",
                         "lock-99999999999999999999",
                         "lock-4294967300",
                         "lock-512 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        h = -1;
        assert_int_equal(dc_lock_horizon(bad[i], &h), DC_USAGE);
        assert_int_equal(h, -1);
        assert_non_null(strstr(dc_error(), "lock-")); // says how to write it
    }
    dc_lock lock;
    assert_int_equal(dc_lock_init(&lock, 3, 0), DC_USAGE);
    assert_int_equal(dc_lock_init(&lock, (1 << 20) + 1, 0), DC_USAGE);
}

// ---- evaluation ----

// One pair through the network in double, straight from the table of weights: (1, in, out) each.
static const dc_real *part(const dc_params *params, int layer, const char *what, int *cols) {
    char name[32] = "critic/0/";
    name[7] = (char)('0' + layer);
    const dc_param_row *row = dc_params_find(params, strcat(name, what));
    if (row) *cols = row->cols;
    return row ? params->slabs.live + row->offset : NULL;
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void normalize(double *h, int cols, const dc_real *scale, const dc_real *bias) {
    double mean = 0, var = 0;
    for (int c = 0; c < cols; c++)
        mean += (h[c] = gelu(h[c])) / cols;
    for (int c = 0; c < cols; c++)
        var += (h[c] - mean) * (h[c] - mean) / cols;
    for (int c = 0; c < cols; c++)
        h[c] = (h[c] - mean) / sqrt(var + 1e-6) * (double)scale[c] + (double)bias[c];
}

enum { WIDEST = 64 };

static double by_hand(const dc_params *params, const float *s, const float *g, int width) {
    double x[WIDEST], y[WIDEST];
    int in = 2 * width, out = 0;
    for (int c = 0; c < width; c++) {
        x[c] = (double)s[c];
        x[width + c] = (double)g[c];
    }
    for (int layer = 0;; layer++) {
        const dc_real *w = part(params, layer, "w", &out), *b = part(params, layer, "b", &out);
        for (int o = 0; o < out; o++) {
            y[o] = (double)b[o];
            for (int i = 0; i < in; i++)
                y[o] += x[i] * (double)w[i * out + o];
        }
        const dc_real *scale = part(params, layer, "scale", &out),
                      *bias = part(params, layer, "bias", &out);
        if (!scale) return y[0];
        normalize(y, out, scale, bias);
        memcpy(x, y, sizeof x);
        in = out;
    }
}

typedef struct brute { // the scores, from their definition
    double far;
    int bins;
    double distance[DC_LOCK_BINS], error[DC_LOCK_BINS];
} brute;

static double error_of(const dc_agent *agent, int s, int g) {
    const dc_column *obs = dc_dataset_column(agent->data, "obs");
    const float *from = obs->values + (ptrdiff_t)s * obs->width;
    const float *to = obs->values + (ptrdiff_t)g * obs->width;
    return fabs(by_hand(&agent->params, from, to, obs->width) - (g - s));
}

static void measure(const dc_agent *agent, brute *b) {
    int horizon = (int)agent->data->rows, longest = horizon - 1;
    double far = 0, sum[DC_LOCK_BINS] = {0}, least[DC_LOCK_BINS], most[DC_LOCK_BINS];
    int far_count = 0, count[DC_LOCK_BINS] = {0};
    *b = (brute){.bins = longest < DC_LOCK_BINS ? longest : DC_LOCK_BINS};
    for (int h = 1; h < horizon; h++) {
        int bin = (int)floor((double)(h - 1) / longest * b->bins + 1e-9);
        if (!count[bin]) least[bin] = h;
        most[bin] = h;
        for (int s = 0; s + h < horizon; s++) {
            double error = error_of(agent, s, s + h);
            sum[bin] += error;
            count[bin]++;
            if (h < horizon / 2.0) continue;
            far += error;
            far_count++;
        }
    }
    b->far = far / far_count;
    for (int i = 0; i < b->bins; i++) {
        assert_true(count[i] > 0);
        b->error[i] = sum[i] / count[i];
        b->distance[i] = (least[i] + most[i]) / 2;
    }
}

typedef struct world {
    dc_lock lock;
    dc_dataset data;
    dc_agent agent;
} world;

// A dcrl agent on a lock, with weights of which none is trivial.
static void world_open(world *w, int horizon, dc_pool *pool) {
    const dc_algo *algo;
    int64_t config[64]; // room for any method's options
    open_lock(&w->lock, horizon, 9);
    assert_int_equal(dc_lock_data(&w->lock, &w->data), DC_OK);
    assert_int_equal(dc_algo_find("dcrl", &algo), DC_OK);
    assert_true(algo->config_size <= sizeof config);
    dc_options_init(algo->options, config);
    dc_agent_options options = {
        .seed = 2, .batch = 16, .hidden = {2, {24, 40}}, .form = &dc_form_distance, .gamma = 0.99};
    assert_int_equal(dc_agent_init(&w->agent, algo, config, &options, &w->data, pool), DC_OK);
    for (int64_t i = 0; i < w->agent.params.slabs.size; i++)
        w->agent.params.slabs.live[i] += (dc_real)(0.3 * sin((double)i));
}

static void world_close(world *w) {
    dc_agent_fini(&w->agent);
    dc_dataset_fini(&w->data);
    dc_lock_fini(&w->lock);
}

static void check_evaluation(int horizon, dc_pool *pool) {
    world w;
    dc_lock_score score;
    brute want;
    world_open(&w, horizon, pool);
    measure(&w.agent, &want);
    assert_int_equal(dc_lock_evaluate(&w.agent, NULL, &score), DC_OK);
    assert_true(fabs(score.accumulated_error - want.far) <= 1e-6 * want.far);
    assert_int_equal(score.bins, want.bins);
    for (int i = 0; i < score.bins; i++) {
        assert_true(fabs(score.error[i] - want.error[i]) <= 1e-5 * want.error[i] + 1e-5);
        assert_true(score.distance[i] == want.distance[i]);
    }
    world_close(&w);
}

// Numbers of pairs below, at and above what the critic is asked at once.
static void test_distances(void **state) {
    (void)state;
    const int counts[] = {1, DC_QUERY_ROWS, DC_QUERY_ROWS + 1, 2500};
    int64_t s[2500], g[2500];
    float d[2501];
    world w;
    world_open(&w, 300, NULL);
    for (int i = 0; i < 2500; i++) {
        s[i] = i * 7919 % 300;
        g[i] = i * 104729 % 299;
    }
    const dc_column *obs = dc_dataset_column(&w.data, "obs");
    for (int k = 0; k < 4; k++) {
        d[counts[k]] = 1234; // and not one too many
        assert_int_equal(dc_agent_distances(&w.agent, counts[k], s, g, d), DC_OK);
        for (int i = 0; i < counts[k]; i++) {
            double want = by_hand(&w.agent.params, obs->values + s[i] * obs->width,
                                  obs->values + g[i] * obs->width, obs->width);
            assert_true(fabs((double)d[i] - want) <= 1e-5 * (1 + fabs(want)));
        }
        assert_true(d[counts[k]] == 1234);
    }
    world_close(&w);
}

static void test_evaluation(void **state) {
    (void)state;
    dc_pool *pool;
    assert_int_equal(dc_pool_new(&pool, 2), DC_OK);
    const int sizes[] = {4, 7, 33, 64, 150}; // fewer distances than bins, odd, as many, more
    for (int i = 0; i < 5; i++)
        check_evaluation(sizes[i], i % 2 ? pool : NULL);
    dc_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_lead_to_the_end),
        cmocka_unit_test(test_wrong_action_returns),
        cmocka_unit_test(test_codes_are_a_permutation),
        cmocka_unit_test(test_draws_are_fair),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
