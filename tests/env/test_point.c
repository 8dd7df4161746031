// The point's own step against MuJoCo's: two copies of a maze get the same actions, one is stepped by
// dc_env_step, the other by hand with mj_step, and must stay equal to the bit. Actions keep a direction
// for a while, so that the point runs into walls and corners and slides along them.
#include "env/sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 2000, KEEP = 25 };

// As OGBench steps its point: move by the action, stop, five steps of physics.
static void step_by_hand(dc_env *env, const double *action) {
    double *qpos = (double *)dc_env_qpos(env), *qvel = (double *)dc_env_qvel(env);
    for (int k = 0; k < 2; k++) {
        qpos[k] += 0.2 * action[k];
        qvel[k] = 0;
    }
    assert_int_equal(dc_env_physics(env, (double[2]){0, 0}, 1), DC_OK);
}

// Steps of the episode that physics had a say in.
static int compare(const dc_world *world, uint64_t episode) {
    dc_philox_draws one, two, own;
    dc_env a, b;
    assert_int_equal(dc_env_new(&a, world, dc_draws_philox(&one, 1, episode)), DC_OK);
    assert_int_equal(dc_env_new(&b, world, dc_draws_philox(&two, 1, episode)), DC_OK);
    dc_draws draws = dc_draws_philox(&own, 2, episode);
    int task = (int)(episode % DC_TASKS) + 1;
    assert_int_equal(dc_env_reset(&a, task, NULL), DC_OK);
    assert_int_equal(dc_env_reset(&b, task, NULL), DC_OK);
    double action[2] = {0}, obs[2];
    dc_outcome outcome;
    int pushed = 0;
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < 2 && t % KEEP == 0; k++)
            action[k] = draws.uniform(draws.ctx, -1, 1);
        double x[2] = {dc_env_qpos(&b)[0] + 0.2 * action[0], dc_env_qpos(&b)[1] + 0.2 * action[1]};
        assert_int_equal(dc_env_step(&a, action, obs, &outcome), DC_OK);
        step_by_hand(&b, action);
        pushed += memcmp(x, dc_env_qpos(&b), sizeof x) != 0;
        assert_memory_equal(obs, dc_env_qpos(&b), sizeof obs);
        assert_memory_equal(dc_env_qvel(&a), dc_env_qvel(&b), sizeof obs);
    }
    dc_env_free(&a);
    dc_env_free(&b);
    return pushed;
}

static void test_point_at_walls(void **state) {
    (void)state;
    static const char *const names[] = {"pointmaze-medium-v0", "pointmaze-large-v0",
                                        "pointmaze-giant-v0"};
    int pushed = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        dc_env_spec spec;
        dc_world *world;
        assert_int_equal(dc_env_find(&spec, names[n]), DC_OK);
        dc_status status = dc_world_new(&world, &spec);
        if (status == DC_UNSUPPORTED || status == DC_IO) skip(); // a build without MuJoCo
        assert_int_equal(status, DC_OK);
        for (uint64_t episode = 0; episode < 5; episode++)
            pushed += compare(world, episode);
        dc_world_free(world);
    }
    assert_true(pushed > 5 * STEPS); // of fifteen episodes
}

// Start of an episode of a task: xy of the point and of its goal.
static bool start(const char *name, int task, double place[4]) {
    dc_env_spec spec;
    dc_world *world;
    dc_philox_draws own;
    dc_env env;
    assert_int_equal(dc_env_find(&spec, name), DC_OK);
    dc_status status = dc_world_new(&world, &spec);
    if (status == DC_UNSUPPORTED || status == DC_IO) return false; // a build without MuJoCo
    assert_int_equal(status, DC_OK);
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&own, 1, 0)), DC_OK);
    assert_int_equal(dc_env_reset(&env, task, NULL), DC_OK);
    memcpy(place, dc_env_qpos(&env), 2 * sizeof *place);
    memcpy(place + 2, env.goal, 2 * sizeof *place);
    dc_env_free(&env);
    dc_world_free(world);
    return true;
}

static void test_a_single_task_is_its_own(void **state) {
    (void)state;
    double one[4], three[4], own[4], far = 0;
    if (!start("pointmaze-medium-v0", 1, one)) skip();
    assert_true(start("pointmaze-medium-v0", 3, three));
    assert_true(start("pointmaze-medium-singletask-task3-v0", 1, own));
    for (int k = 0; k < 4; k++) {
        assert_true(fabs(own[k] - three[k]) < 2); // the same cells, which are 4 wide
        far = fmax(far, fabs(own[k] - one[k]));
    }
    assert_true(far > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_point_at_walls),
                                       cmocka_unit_test(test_a_single_task_is_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
