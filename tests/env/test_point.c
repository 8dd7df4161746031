// The point's own step against MuJoCo's: two copies of a maze get the same actions, one is stepped by
// dc_env_step, the other by hand with mj_step, and must stay equal to the bit. Actions keep a direction
// for a while, so that the point runs into walls and corners and slides along them.
#include "env/sim.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_point_at_walls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
