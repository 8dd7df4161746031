// A policy from a checkpoint: its actions are those of a plain reference in double, whichever rows are asked
// with it, and weights that do not fit are refused in one line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rollout/actor.h"
#include "sample/noise.h"
#include "train/weights.h"

enum { IN = 5, ACT = 2, ROWS = 40, SAMPLES = 7, STEPS = 4, SEED = 9, WIDE = 24 };

static char path[64];
static const dc_int_list hidden = {2, {WIDE, 16}};

// Networks with weights that matter: policies begin near zero, which would hide mistakes.
typedef struct nets {
    dc_params params;
    dc_mlp actor, critic;
} nets;

static void make(nets *n, int kind, const char *critic, uint64_t seed) {
    *n = (nets){0};
    int extra = kind == DC_POLICY_REJECTION ? ACT + 1 : 0;
    dc_mlp_declare(&n->actor, &n->params, "actor", 1, IN + extra, &hidden, ACT, 1.5, false);
    if (critic) dc_mlp_declare(&n->critic, &n->params, critic, 2, IN + ACT, &hidden, 1, 1, false);
    assert_int_equal(dc_params_alloc(&n->params, seed), DC_OK);
    for (int i = 0; i < n->params.count; i++) { // biases that are not zero
        const dc_param_row *row = &n->params.rows[i];
        for (int k = 0; row->init != DC_INIT_XAVIER && k < row->e * row->cols; k++)
            n->params.slabs.live[row->offset + k] += (dc_real)(0.1 * sin(i + 3 * k));
    }
}

static void save(const nets *n) {
    dc_st_tensor tensors[DC_PARAMS_MAX];
    static char names[DC_PARAMS_MAX][DC_WEIGHT_NAME];
    for (int i = 0; i < n->params.count; i++)
        dc_weight_describe(&n->params.rows[i], n->params.slabs.live, "", names[i], &tensors[i]);
    assert_int_equal(dc_st_write(path, tensors, (size_t)n->params.count, NULL, 0), DC_OK);
}

// Member e of a network on one row.
static void apply(const nets *n, const dc_mlp *m, int e, const double *row, double *out) {
    double x[64], y[64];
    const dc_real *p = n->params.slabs.live;
    int in = m->in;
    memcpy(x, row, (size_t)in * sizeof *x);
    for (int l = 0; l < m->layers; l++) {
        int width = l < m->hidden.count ? (int)m->hidden.v[l] : m->out;
        double mean = 0, var = 0;
        for (int o = 0; o < width; o++) {
            y[o] = (double)p[m->layer[l].b + e * width + o];
            for (int i = 0; i < in; i++)
                y[o] += x[i] * (double)p[m->layer[l].w + ((int64_t)e * in + i) * width + o];
            if (l == m->layers - 1) continue;
            double z = y[o] + 0.044715 * y[o] * y[o] * y[o];
            y[o] *= 0.5 * (1 + tanh(sqrt(2 / acos(-1.0)) * z));
            mean += y[o] / width;
        }
        for (int o = 0; o < width; o++)
            var += (y[o] - mean) * (y[o] - mean) / width;
        for (int o = 0; o < width; o++)
            x[o] = l == m->layers - 1 ? y[o]
                                      : (y[o] - mean) / sqrt(var + 1e-6) *
                                                (double)p[m->layer[l].scale + e * width + o] +
                                            (double)p[m->layer[l].bias + e * width + o];
        in = width;
    }
    memcpy(out, x, (size_t)m->out * sizeof *out);
}

static double clip(double x) {
    return fmax(-1, fmin(1, x));
}

// One candidate by Euler's method, and its worth.
static double candidate(const nets *n, const float *row, uint64_t moment, int number, double *a) {
    double x[IN + ACT + 1], v[ACT], q[2];
    for (int c = 0; c < IN; c++)
        x[c] = (double)row[c];
    for (int c = 0; c < ACT; c++)
        a[c] =
            (double)dc_draw_normal(SEED, DC_STREAM_CANDIDATE, moment, (uint32_t)(number * ACT + c));
    for (int s = 0; s < STEPS; s++) {
        memcpy(x + IN, a, ACT * sizeof *a);
        x[IN + ACT] = (double)s / STEPS;
        apply(n, &n->actor, 0, x, v);
        for (int c = 0; c < ACT; c++)
            a[c] += v[c] / STEPS;
    }
    for (int c = 0; c < ACT; c++)
        x[IN + c] = a[c] = clip(a[c]);
    for (int e = 0; e < 2; e++)
        apply(n, &n->critic, e, x, &q[e]);
    return fmin(q[0], q[1]);
}

static void inputs(float rows[ROWS][IN], uint64_t moments[ROWS]) {
    for (int r = 0; r < ROWS; r++) {
        moments[r] = dc_actor_moment(r % 5, r / 5, 3 * r);
        for (int c = 0; c < IN; c++)
            rows[r][c] = dc_draw_normal(1, 99, (uint64_t)r, (uint32_t)c);
    }
}

static dc_actor_options options(int kind) {
    return (dc_actor_options){
        .kind = kind, .samples = SAMPLES, .flow_steps = STEPS, .rows = ROWS, .seed = SEED};
}

static void test_mean(void **state) {
    (void)state;
    nets n;
    make(&n, DC_POLICY_DDPGBC, "critic", 4);
    save(&n);
    float rows[ROWS][IN], is[ROWS][ACT];
    uint64_t moments[ROWS];
    inputs(rows, moments);
    dc_actor actor;
    dc_actor_options o = options(DC_POLICY_DDPGBC);
    assert_int_equal(dc_actor_open(&actor, path, &o, NULL), DC_OK);
    assert_true(actor.in == IN && actor.act == ACT);
    assert_int_equal(dc_actor_act(&actor, ROWS, rows[0], moments, is[0]), DC_OK);
    for (int r = 0; r < ROWS; r++) {
        double row[IN], want[ACT];
        for (int c = 0; c < IN; c++)
            row[c] = (double)rows[r][c];
        apply(&n, &n.actor, 0, row, want);
        for (int c = 0; c < ACT; c++)
            assert_true(fabs((double)is[r][c] - clip(want[c])) < 1e-5);
    }
    dc_actor_fini(&actor);
    dc_params_free(&n.params);
}

// The action is a candidate, and none is worth more. (Several may be the same corner of the square.)
static void check_best(const nets *n, const float *row, uint64_t moment, const float *is) {
    double best = -INFINITY, own = -INFINITY, a[ACT];
    for (int i = 0; i < SAMPLES; i++) {
        double q = candidate(n, row, moment, i, a), off = 0;
        for (int c = 0; c < ACT; c++)
            off = fmax(off, fabs((double)is[c] - a[c]));
        best = fmax(best, q);
        if (off < 1e-5) own = fmax(own, q);
    }
    assert_true(own > best - 1e-5);
}

static void test_rejection(void **state) {
    (void)state;
    const char *critics[] = {"critic", "oracle_critic"};
    for (int k = 0; k < 2; k++) {
        nets n;
        make(&n, DC_POLICY_REJECTION, critics[k], 8);
        save(&n);
        float rows[ROWS][IN], is[ROWS][ACT];
        uint64_t moments[ROWS];
        inputs(rows, moments);
        dc_actor actor;
        dc_actor_options o = options(DC_POLICY_REJECTION);
        assert_int_equal(dc_actor_open(&actor, path, &o, NULL), DC_OK);
        assert_true(actor.in == IN && actor.act == ACT);
        assert_int_equal(dc_actor_act(&actor, ROWS, rows[0], moments, is[0]), DC_OK);
        for (int r = 0; r < ROWS; r++)
            check_best(&n, rows[r], moments[r], is[r]);
        dc_actor_fini(&actor);
        dc_params_free(&n.params);
    }
}

// A row's action does not change with its place, with who else is asked, with threads, or when memory allows only
// a part of the rows at once. Sums may be taken in another order, so it is equal to rounding, not to the bit.
static void test_alone(void **state) {
    (void)state;
    nets n;
    make(&n, DC_POLICY_REJECTION, "critic", 8);
    save(&n);
    float rows[ROWS][IN], all[ROWS][ACT], is[ROWS][ACT];
    uint64_t moments[ROWS];
    inputs(rows, moments);
    dc_pool *pool;
    assert_int_equal(dc_pool_new(&pool, 2), DC_OK);
    dc_actor actor;
    dc_actor_options o = options(DC_POLICY_REJECTION);
    assert_int_equal(dc_actor_open(&actor, path, &o, pool), DC_OK);
    assert_int_equal(dc_actor_act(&actor, ROWS, rows[0], moments, all[0]), DC_OK);
    int moved = 0;
    actor.at_once = 9; // five parts
    assert_int_equal(dc_actor_act(&actor, ROWS, rows[0], moments, is[0]), DC_OK);
    for (int i = 0; i < ROWS * ACT; i++)
        assert_true(fabsf(is[i / ACT][i % ACT] - all[i / ACT][i % ACT]) < 1e-5f);
    for (int r = 0; r < ROWS; r++) {
        assert_int_equal(dc_actor_act(&actor, 1, rows[r], &moments[r], is[r]), DC_OK);
        for (int c = 0; c < ACT; c++)
            assert_true(fabsf(is[r][c] - all[r][c]) < 1e-5f);
        assert_int_equal(dc_actor_act(&actor, 1, rows[r], &(uint64_t){moments[r] + 1}, is[r]),
                         DC_OK);
        moved += memcmp(is[r], all[r], sizeof is[r]) != 0; // other noise, another action
    }
    assert_true(moved > ROWS / 2);
    dc_actor_fini(&actor);
    dc_pool_free(pool);
    dc_params_free(&n.params);
}

static void refuse(int kind, const char *text) {
    dc_actor actor;
    dc_actor_options o = options(kind);
    assert_int_equal(dc_actor_open(&actor, path, &o, NULL), DC_BAD_INPUT);
    assert_non_null(strstr(dc_error(), text));
}

static void test_refused(void **state) {
    (void)state;
    nets n;
    make(&n, DC_POLICY_REJECTION, "critic", 1);
    save(&n);
    refuse(DC_POLICY_DDPGBC, "policy of kind ddpgbc");
    refuse(DC_POLICY_NONE, "has no policy");
    n.params.slabs.live[n.critic.layer[1].w + 3] = NAN;
    save(&n);
    refuse(DC_POLICY_REJECTION, "critic/1/w is not finite");
    n.params.slabs.live[n.critic.layer[1].w + 3] = 0;
    n.params.rows[2].cols--; // a vector that is one short
    save(&n);
    refuse(DC_POLICY_REJECTION, "actor/0/scale has another type or shape");
    dc_params_free(&n.params);
    make(&n, DC_POLICY_DDPGBC, "oracle_critic", 1);
    save(&n);
    refuse(DC_POLICY_REJECTION, "policy of kind rejection");
    dc_params_free(&n.params);
    make(&n, DC_POLICY_REJECTION, NULL, 1);
    save(&n);
    refuse(DC_POLICY_REJECTION, "has no critic");
    dc_params_free(&n.params);
    dc_st_tensor tensor = {"actor/0/w", DC_ST_F32, 2, {1, 1}, &(float){0}, sizeof(float)};
    assert_int_equal(dc_st_write(path, &tensor, 1, NULL, 0), DC_OK);
    refuse(DC_POLICY_REJECTION, "impossible shape");
    tensor.name = "critic/0/w";
    assert_int_equal(dc_st_write(path, &tensor, 1, NULL, 0), DC_OK);
    refuse(DC_POLICY_REJECTION, "has no policy");
}

static int set_up(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/dcrl_actor_%ld.safetensors", (long)getpid());
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean), cmocka_unit_test(test_rejection), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
