// Simulation by many threads on one shared model: the same episodes to the bit, whichever thread plays them; and an environment
// that broke down says so and works again after a reset. tests/env/test_maze_parity.py has the physics itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "env/sim.h"

enum { EPISODES = 6, STEPS = 30, ACT_MAX = 21, OBS_MAX = 128 };

static dc_world *open_world(const char *name) {
    dc_env_spec spec;
    dc_world *world;
    assert_int_equal(dc_env_find(&spec, name), DC_OK);
    dc_status status = dc_world_new(&world, &spec);
    if (status == DC_UNSUPPORTED) skip(); // a build without MuJoCo
    assert_int_equal(status, DC_OK);
    return world;
}

typedef struct work {
    const dc_world *world;
    double last[EPISODES][OBS_MAX]; // observation at the end of each episode
    dc_status status[EPISODES];
} work;

static dc_status play(work *w, int episode) {
    const dc_env_spec *spec = dc_world_spec(w->world);
    dc_philox_draws state;
    dc_env env;
    dc_outcome outcome;
    double action[ACT_MAX];
    DC_TRY(dc_env_new(&env, w->world, dc_draws_philox(&state, 7, (uint64_t)episode)));
    dc_status status = dc_env_reset(&env, episode % DC_TASKS + 1, NULL);
    for (int t = 0; t < STEPS && status == DC_OK; t++) {
        for (int k = 0; k < spec->family->act; k++)
            action[k] = env.draws.uniform(env.draws.ctx, -1, 1);
        status = dc_env_step(&env, action, w->last[episode], &outcome);
    }
    dc_env_free(&env);
    return status;
}

static void play_block(void *ctx, int block) {
    work *w = ctx;
    w->status[block] = play(w, block);
}

static void run(work *w, const dc_world *world, int threads) {
    dc_pool *pool;
    *w = (work){.world = world};
    assert_int_equal(dc_pool_new(&pool, threads), DC_OK);
    dc_pool_run(pool, play_block, w, EPISODES);
    dc_pool_free(pool);
    for (int e = 0; e < EPISODES; e++)
        assert_int_equal(w->status[e], DC_OK);
}

static void test_threads_agree(void **state) {
    (void)state;
    static const char *const names[] = {
        "pointmaze-teleport", "antmaze-medium", "humanoidmaze-large", "antsoccer-arena",
        "cube-double",        "scene",          "puzzle-3x3"};
    static work alone, together;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        dc_world *world = open_world(names[n]);
        run(&alone, world, 1);
        run(&together, world, 4);
        assert_memory_equal(alone.last, together.last, sizeof alone.last);
        assert_memory_not_equal(alone.last[0], alone.last[1], sizeof alone.last[0]);
        dc_world_free(world);
    }
}

static void test_breakdown(void **state) {
    (void)state;
    dc_world *world = open_world("antmaze-medium");
    dc_philox_draws draws;
    dc_env env;
    dc_outcome outcome;
    double action[ACT_MAX] = {0}, obs[OBS_MAX];
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&draws, 1, 1)), DC_OK);
    assert_int_equal(dc_env_reset(&env, 1, NULL), DC_OK);
    action[0] = NAN;
    assert_int_equal(dc_env_step(&env, action, obs, &outcome), DC_NOT_FINITE);
    assert_non_null(strstr(dc_error(), "simulation"));
    assert_int_equal(dc_env_reset(&env, 1, NULL), DC_OK);
    action[0] = 0.5;
    assert_int_equal(dc_env_step(&env, action, obs, &outcome), DC_OK);
    assert_true(isfinite(obs[0]));
    dc_env_free(&env);
    dc_env_free(&env);
    dc_world_free(world);
}

// Philox draws: uniform over the range, normals of mean 0 and variance 1, five standard deviations.
static void test_draws(void **state) {
    (void)state;
    enum { N = 20000 };
    dc_philox_draws philox;
    dc_draws d = dc_draws_philox(&philox, 3, 4);
    double uniform = 0, normal = 0, square = 0;
    int count[3] = {0};
    for (int k = 0; k < N; k++) {
        double u = d.uniform(d.ctx, -2, 4), z = d.normal(d.ctx);
        assert_true(u >= -2 && u < 4);
        uniform += u / N;
        normal += z / N;
        square += z * z / N;
        count[d.below(d.ctx, 3)]++;
    }
    assert_true(fabs(uniform - 1) < 5 * sqrt(3.0 / N));
    assert_true(fabs(normal) < 5 / sqrt(N) && fabs(square - 1) < 5 * sqrt(2.0 / N));
    for (int k = 0; k < 3; k++)
        assert_true(fabs(count[k] - N / 3.0) < 5 * sqrt(N * 2.0 / 9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_agree),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
