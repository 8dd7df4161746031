// The open plane: its rules on states that are put there, rewards for other directions, and states that are kept.
// tests/env/test_plane_parity.py compares whole episodes with the Python package.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "env/plane.h"

#include <math.h>
#include <string.h>

enum { STEPS = 60 };

typedef struct scene {
    dc_world *world;
    dc_walk walk;
    dc_philox_draws draws;
} scene;

static void begin(scene *s, const char *robot, uint64_t seed) {
    const dc_plane *plane;
    assert_int_equal(dc_plane_find(&plane, robot), DC_OK);
    assert_int_equal(dc_plane_world(plane, &s->world), DC_OK);
    assert_int_equal(dc_walk_init(&s->walk, plane, s->world, dc_draws_philox(&s->draws, seed, 0)),
                     DC_OK);
    assert_int_equal(dc_walk_start(&s->walk), DC_OK);
}

static void end(scene *s) {
    dc_walk_fini(&s->walk);
    dc_world_free(s->world);
}

static dc_walk_step step_by(scene *s, double action) {
    double actions[DC_PLANE_ACT_MAX];
    dc_walk_step step;
    for (int k = 0; k < DC_PLANE_ACT_MAX; k++)
        actions[k] = k % 2 ? action : -action;
    assert_int_equal(dc_walk_step_by(&s->walk, actions, &step), DC_OK);
    return step;
}

static void lift(scene *s, double height) {
    s->walk.env.qpos[2] = height;
}

static void test_heights(void **state) {
    static const char *const robots[] = {"ant", "antball"};
    (void)state;
    for (int r = 0; r < 2; r++) {
        scene s;
        begin(&s, robots[r], 1);
        lift(&s, 0.75);
        assert_false(step_by(&s, 0).ended);
        lift(&s, 1.4);
        assert_true(step_by(&s, 0).ended);
        lift(&s, 0.75);
        assert_false(step_by(&s, 0).ended);
        end(&s);
    }
}

// The humanoid never ends; its episodes are cut.
static void test_horizons(void **state) {
    static const struct {
        const char *robot;
        int steps;
        bool ends;
    } cases[] = {{"ant", 1000, false}, {"antball", 200, true}, {"humanoid", 1000, false}};
    (void)state;
    for (int c = 0; c < 3; c++) {
        scene s;
        begin(&s, cases[c].robot, 2);
        s.walk.step = cases[c].steps - 2;
        dc_walk_step step = step_by(&s, 0);
        assert_false(step.ended || step.cut);
        step = step_by(&s, 0);
        assert_int_equal(step.ended, cases[c].ends);
        assert_int_equal(step.cut, !cases[c].ends);
        end(&s);
    }
}

static void test_commands(void **state) {
    static const struct {
        const char *robot;
        int every;
    } cases[] = {{"ant", 100}, {"humanoid", 200}};
    (void)state;
    for (int c = 0; c < 2; c++) {
        scene s;
        begin(&s, cases[c].robot, 3);
        double was[DC_COMMAND], *now = s.walk.command;
        memcpy(was, now, sizeof was);
        assert_true(fabs(now[0] * now[0] + now[1] * now[1] - 1) < 1e-12);
        s.walk.step = cases[c].every - 2;
        (void)step_by(&s, 0);
        assert_memory_equal(was, now, sizeof was);
        (void)step_by(&s, 0);
        assert_true(memcmp(was, now, sizeof was) != 0);
        end(&s);
    }
}

// What a step would have been worth under another direction is what it is worth there.
static void test_linear(void **state) {
    static const char *const robots[] = {"ant", "humanoid"};
    (void)state;
    for (int r = 0; r < 2; r++) {
        scene s, other;
        begin(&s, robots[r], 4);
        begin(&other, robots[r], 4);
        other.walk.command[0] = -0.6;
        other.walk.command[1] = 0.8;
        for (int t = 0; t < STEPS; t++) {
            dc_walk_step a = step_by(&s, sin(t)), b = step_by(&other, sin(t));
            assert_true(fabs(a.base + a.pull[0] * -0.6 + a.pull[1] * 0.8 - b.reward) < 1e-12);
        }
        end(&s);
        end(&other);
    }
}

static void test_standing(void **state) {
    scene s;
    (void)state;
    begin(&s, "humanoid", 5);
    for (int t = 0; t < STEPS; t++) { // it falls from 1.5 m and lies
        dc_walk_step step = step_by(&s, 0);
        assert_true(step.base >= 0 && step.base <= 1);
    }
    assert_true(step_by(&s, 0).base < 0.05);
    end(&s);
}

static void test_saved(void **state) {
    static const char *const robots[] = {"ant", "antball", "humanoid"};
    (void)state;
    for (int r = 0; r < 3; r++) {
        scene s, other;
        double words[1024], first[STEPS];
        begin(&s, robots[r], 6);
        begin(&other, robots[r], 7);
        for (int t = 0; t < STEPS; t++)
            (void)step_by(&s, sin(t));
        assert_in_range(dc_walk_words(&s.walk), 1, 1024);
        dc_walk_save(&s.walk, words);
        for (int t = 0; t < STEPS; t++)
            first[t] = step_by(&s, cos(t)).moved[0];
        assert_int_equal(dc_walk_load(&other.walk, words), DC_OK);
        for (int t = 0; t < STEPS; t++) {
            double again = step_by(&other, cos(t)).moved[0];
            assert_memory_equal(&again, &first[t], sizeof again);
        }
        end(&s);
        end(&other);
    }
}

static void test_names(void **state) {
    const dc_plane *plane;
    (void)state;
    assert_int_equal(dc_plane_find(&plane, "antbal"), DC_USAGE);
    assert_non_null(strstr(dc_error(), "antball"));
    assert_int_equal(dc_plane_find(&plane, "ant"), DC_OK);
    assert_int_equal(dc_plane_input(plane), 29);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heights),  cmocka_unit_test(test_horizons),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_linear),
        cmocka_unit_test(test_standing), cmocka_unit_test(test_saved),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
