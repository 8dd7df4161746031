// Steps of an ant in a maze that look for contacts with the floor alone where no wall is near (env/maze/open_mj.c)
// leave the bits that the whole model leaves, at walls and away from them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "env/maze/robots.h"
#include "env/mujoco/engine.h"
#include "env/sim.h"

enum { PLACES = 40, STEPS = 6, ACT_MAX = 32, STATE_MAX = 128 };

typedef struct tally { // after each step
    int open, walls, floor;
} tally;

static void count(const dc_env *env, const mjData *d, tally *t) {
    const mjModel *m = dc_model_of(env);
    t->open += dc_maze_now(env) != m;
    for (int c = 0; c < d->ncon; c++)
        for (int k = 0; k < 2; k++) {
            int g = d->contact[c].geom[k];
            t->floor += g == 0;
            t->walls += g > 0 && m->geom_bodyid[g] == 0;
        }
}

static void step_whole(const dc_env *env, mjData *d, const double *action, tally *t) {
    const mjModel *m = dc_model_of(env);
    memcpy(d->ctrl, action, (size_t)m->nu * sizeof *action);
    for (int s = 0; s < DC_MAZE_SUBSTEPS; s++)
        mj_step(m, d);
    count(env, d, t);
}

static void compare_step(dc_env *env, mjData *whole, tally *t) {
    const mjModel *m = dc_model_of(env);
    double action[ACT_MAX], obs[STATE_MAX];
    dc_outcome outcome;
    for (int k = 0; k < m->nu; k++)
        action[k] = env->draws.uniform(env->draws.ctx, -1, 1);
    assert_non_null(mj_copyData(whole, m, env->data));
    step_whole(env, whole, action, t);
    assert_int_equal(dc_env_step(env, action, obs, &outcome), DC_OK);
    assert_memory_equal(whole->qpos, env->qpos, (size_t)m->nq * sizeof *whole->qpos);
    assert_memory_equal(whole->qvel, env->qvel, (size_t)m->nv * sizeof *whole->qvel);
    assert_int_equal(whole->ncon, env->data->ncon);
}

// Anywhere in a free cell, limbs in walls included, out of which they are pressed; some fast.
static void put_somewhere(dc_env *env, const double *rest, int place) {
    dc_maze_cells free;
    double qpos[STATE_MAX], qvel[STATE_MAX] = {0};
    dc_maze_list_free(env->world->spec.maze, true, &free);
    memcpy(qpos, rest, (size_t)dc_model_of(env)->nq * sizeof *qpos);
    dc_maze_xy(dc_maze_pick(env, &free), qpos);
    for (int k = 0; k < 2; k++)
        qpos[k] += env->draws.uniform(env->draws.ctx, -1.8, 1.8);
    for (int k = 0; k < 2; k++)
        qvel[k] = place % 2 ? env->draws.uniform(env->draws.ctx, -8, 8) : 0;
    assert_int_equal(dc_env_set(env, qpos, qvel, NULL), DC_OK);
}

static void compare(const char *name) {
    dc_env_spec spec;
    dc_world *world;
    dc_env env;
    dc_philox_draws draws;
    double rest[STATE_MAX];
    tally all = {0};
    assert_int_equal(dc_env_find(&spec, name), DC_OK);
    dc_status status = dc_world_new(&world, &spec);
    if (status == DC_UNSUPPORTED) skip(); // without OGBench's files
    assert_int_equal(status, DC_OK);
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&draws, 5, 0)), DC_OK);
    const mjModel *m = world->model;
    mjData *whole = mj_makeData(m);
    assert_non_null(whole);
    memcpy(rest, m->qpos0, (size_t)m->nq * sizeof *rest);
    for (int place = 0; place < PLACES; place++) {
        put_somewhere(&env, rest, place);
        for (int s = 0; s < STEPS; s++)
            compare_step(&env, whole, &all);
    }
    printf("%s: %d of %d steps in the open, contacts: %d with walls, %d with the floor\n", name,
           all.open, PLACES * STEPS, all.walls, all.floor);
    assert_true(all.open > STEPS * 4 && all.open < STEPS * (PLACES - 4));
    assert_true(all.walls > 40 && all.floor > 40);
    mj_deleteData(whole);
    dc_env_free(&env);
    dc_world_free(world);
}

static void test_ants(void **state) {
    (void)state;
    compare("antmaze-medium");
    compare("antmaze-giant");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
