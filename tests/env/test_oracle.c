// Scripted hands without a simulator: angles, ways between poses, plans, and decisions; with one, that they reach what
// they aim at, and that generation stops when it is told to. Equality with the reference is test_manip_gen.py's.
#include "env/arm/oracle.h"
#include "env/arm/pose.h"
#include "env/gen.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double pi = 3.141592653589793;

static bool near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance;
}

static void test_nearest_yaw(void **state) {
    (void)state;
    assert_true(near(dc_nearest_yaw(0, 0.1, 4), 0.1, 1e-12));
    assert_true(near(dc_nearest_yaw(0, pi / 2 + 0.1, 4), 0.1, 1e-12));
    assert_true(near(dc_nearest_yaw(0, pi / 2 + 0.1, 2), pi / 2 + 0.1 - pi, 1e-12));
    assert_true(near(dc_nearest_yaw(6.2, 0.05, 4), 0.05 + 2 * pi, 1e-12));
}

static void test_ways(void **state) {
    (void)state;
    dc_pose a = {{1, 0, 0, 0}, {1, 2, 3}}, b = {{1, 0, 0, 0}, {3, 2, 5}};
    dc_pose middle = dc_pose_midway(&a, &b);
    assert_true(near(middle.p[0], 2, 1e-12) && near(middle.p[2], 4, 1e-12));
    for (double turn = -3; turn < 3.1; turn += 0.37) {
        double q[4];
        dc_quat_yaw(turn, b.q);
        dc_quat_between(a.q, b.q, 0.25, q);
        assert_true(near(dc_yaw_of(q), turn / 4, 1e-9));
        // The way is an arc; its middle is as far from one end as from the other.
        middle = dc_pose_midway(&a, &b);
        assert_true(near(dc_yaw_of(middle.q), turn / 2, 1e-9));
        assert_true(near(hypot(middle.p[0] - 1, middle.p[1] - 2),
                         hypot(middle.p[0] - 3, middle.p[1] - 2), 1e-9));
        assert_true(near(middle.p[2], 4, 1e-12));
    }
}

static dc_sight sight_of(dc_aim_kind aim) {
    dc_sight s = {.aim = aim, .time = 1, .hand = {0.4, 0.1, 0.3}, .yaw = 0.5};
    s.things[aim] =
        (dc_thing){.at = {0.5, -0.1, 0.02}, .yaw = 0.2, .to = {0.35, 0.2, 0.02}, .to_yaw = 1};
    return s;
}

static dc_oracle oracle_of(bool plans) {
    dc_env_spec spec;
    assert_int_equal(dc_env_find(&spec, "scene"), DC_OK);
    return dc_oracle_of(dc_arm_table_of(spec.family), plans ? DC_DATA_PLAY : DC_DATA_NOISY);
}

// Seconds of the segments, from which a plan's rows follow; times are shaken by 0.1 of a segment (cubes 0.2).
static void test_plans(void **state) {
    (void)state;
    static const double segments[DC_AIMS] = {0, 11, 0, 4.5, 4.5};
    dc_philox_draws source;
    dc_draws draws = dc_draws_philox(&source, 1, 2);
    for (int aim = DC_AIM_CUBE; aim < DC_AIMS; aim++)
        for (int t = 0; t < 50; t++) {
            dc_oracle o = oracle_of(true);
            dc_sight s = sight_of((dc_aim_kind)aim);
            double action[DC_HAND];
            dc_oracle_begin(&o, &s, &draws);
            if (segments[aim] > 0)
                assert_true(fabs(o.rows * 0.05 - segments[aim] * 0.4) <= 0.08 + 0.05);
            for (int k = 0; k < 3; k++) {
                assert_true(near(o.plan[0][k], s.hand[k], 0.04)); // begins at the hand
                assert_true(near(o.plan[o.rows - 1][k], o.leave[k], 0.12));
            }
            dc_oracle_act(&o, &s, action);
            assert_false(o.done);
            s.time += 0.05 * o.rows;
            dc_oracle_act(&o, &s, action);
            assert_true(o.done);
        }
}

// Draws come from files, too.
static void test_wild_draws(void **state) {
    (void)state;
    static const double wild[] = {1e300, -1e300, NAN, INFINITY, -1, 0, 40};
    for (int first = 0; first < 7; first++)
        for (int aim = DC_AIM_CUBE; aim < DC_AIMS; aim++) {
            double values[64], action[DC_HAND];
            for (int k = 0; k < 64; k++)
                values[k] = wild[(first + k * (first + 1)) % 7];
            dc_list_draws list;
            dc_draws draws = dc_draws_list(&list, values, 64);
            dc_oracle o = oracle_of(true);
            dc_sight s = sight_of((dc_aim_kind)aim);
            dc_oracle_begin(&o, &s, &draws);
            assert_in_range(o.rows, 0, DC_PLAN_MAX);
            for (int t = 0; t < 400; t++, s.time += first == 3 ? 1e300 : 0.05)
                dc_oracle_act(&o, &s, action);
            for (int k = 0; k < DC_HAND; k++)
                assert_true(action[k] >= -1 && action[k] <= 1);
        }
}

static void test_decisions(void **state) {
    (void)state;
    dc_oracle o = oracle_of(false);
    dc_philox_draws source;
    dc_draws draws = dc_draws_philox(&source, 1, 2);
    dc_sight s = sight_of(DC_AIM_CUBE);
    dc_thing *cube = &s.things[DC_AIM_CUBE];
    double a[DC_HAND];
    dc_oracle_begin(&o, &s, &draws);
    dc_oracle_act(&o, &s, a); // towards the cube's x and y, gripper open
    assert_true(a[0] > 0 && a[1] < 0 && a[4] == -1);
    memcpy(s.hand, cube->at, sizeof s.hand);
    dc_oracle_act(&o, &s, a);
    assert_true(a[4] == 1); // at the cube: grasp
    s.contact = 0.9;
    dc_oracle_act(&o, &s, a);
    assert_true(a[2] == 1 && a[4] == 1); // grasped: up
    memcpy(cube->at, cube->to, sizeof cube->at);
    memcpy(s.hand, cube->to, sizeof s.hand);
    dc_oracle_act(&o, &s, a);
    assert_true(a[4] == -1 && !o.done); // there: release
    s.contact = 0;
    memcpy(s.hand, o.leave, sizeof s.hand);
    dc_oracle_act(&o, &s, a);
    assert_true(o.done); // and gone
}

// ---- generation ----

typedef struct heard {
    int told, most;
} heard;

static bool progress(void *ctx) {
    heard *h = ctx;
    return ++h->told < h->most;
}

static void play(const char *name, int64_t episodes, int64_t rows, heard *h, dc_status want,
                 double *reached) {
    dc_env_spec spec;
    dc_world *world;
    dc_gen gen;
    int64_t published, n = episodes * rows;
    assert_int_equal(dc_env_find(&spec, name), DC_OK);
    assert_int_equal(dc_gen_init(&gen, &spec, spec.data, &published), DC_OK);
    dc_status status = dc_world_new(&world, &spec);
    if (status == DC_UNSUPPORTED) skip(); // a build without MuJoCo
    assert_int_equal(status, DC_OK);
    gen.world = world;
    gen.rows = rows;
    gen.progress = progress;
    gen.ctx = h;
    dc_gen_rows out = {.extra = calloc((size_t)(n * spec.family->extra + 1), 8)};
    out.obs = calloc((size_t)(n * spec.family->obs), sizeof(float));
    out.act = calloc((size_t)(n * spec.family->act), sizeof(float));
    out.qpos = calloc((size_t)(n * spec.family->nq), sizeof(float));
    out.qvel = calloc((size_t)(n * spec.family->nv), sizeof(float));
    out.terminals = calloc((size_t)n, 3);
    out.success = out.terminals + n;
    out.ended = out.success + n;
    assert_int_equal(dc_gen_play(&gen, 0, episodes, &out, NULL), want);
    int ended = 0, met = 0;
    for (int64_t r = 0; r < n; r++) {
        ended += out.ended[r];
        met += out.ended[r] && out.success[r];
    }
    *reached = ended ? (double)met / ended : 0;
    free(out.extra);
    free(out.obs);
    free(out.act);
    free(out.qpos);
    free(out.qvel);
    free(out.terminals);
    dc_world_free(world);
}

static void test_aims_are_reached(void **state) {
    (void)state;
    static const char *const names[] = {"cube-single-play", "cube-single-noisy", "puzzle-3x3-play",
                                        "puzzle-3x3-noisy"};
    for (int k = 0; k < 4; k++) {
        heard h = {.most = 100};
        double reached;
        play(names[k], 2, 300, &h, DC_OK, &reached);
        assert_int_equal(h.told, 2);
        assert_true(reached >= 0.7);
    }
}

static void test_stop(void **state) {
    (void)state;
    heard h = {.most = 3};
    double reached;
    play("cube-single-play", 10, 5, &h, DC_INTERRUPTED, &reached);
    assert_int_equal(h.told, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest_yaw), cmocka_unit_test(test_ways),
        cmocka_unit_test(test_plans),       cmocka_unit_test(test_wild_draws),
        cmocka_unit_test(test_decisions),   cmocka_unit_test(test_aims_are_reached),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
