// What is left out of the search for contacts (env/arm/touch.h) could not have been one: an environment's steps
// leave the bits that bare physics steps of the whole model leave, from the same state with the same controls; and buttons between the
// positions where they may be left out are away from everything that does not move by itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "env/arm/motion.h"
#include "env/sim.h"

enum { EPISODES = 4, STEPS = 30, FLAILS = 240, SUBSTEPS = 25, ACT = 5, OBS_MAX = 128, DRAWS = 64 };

static dc_world *open_world(const char *name) {
    dc_env_spec spec;
    dc_world *world;
    assert_int_equal(dc_env_find(&spec, name), DC_OK);
    dc_status status = dc_world_new(&world, &spec);
    if (status == DC_UNSUPPORTED) skip(); // without OGBench's files
    assert_int_equal(status, DC_OK);
    return world;
}

// ---- steps ----

typedef struct tally { // over all steps
    int contacts, left_out, pressed;
} tally;

static void count(const dc_env *env, tally *t) {
    const dc_touch_plan *p = &dc_arm_world_of(env)->touch;
    const dc_touch *now = dc_arm_state_of(env)->touch;
    t->contacts += env->data->ncon;
    t->left_out += now->model.nexclude - env->world->model->nexclude;
    for (int k = 0; k < p->buttons; k++) {
        t->left_out += !now->contype[p->button[k][1]];
        t->pressed += env->data->qpos[DC_ARM_THINGS + k] < dc_touch_low;
    }
}

// One step of the environment, and as many of the whole model. Some go down, onto what lies there.
static void compare_step(dc_env *env, mjData *bare, int t, tally *all) {
    const mjModel *m = env->world->model, *now = dc_arm_now(env);
    double action[ACT], obs[OBS_MAX];
    dc_outcome outcome;
    for (int k = 0; k < ACT; k++)
        action[k] = env->draws.uniform(env->draws.ctx, -1, 1);
    if (t % 10 > 2) action[2] = -1;
    assert_non_null(mj_copyData(bare, m, env->data));
    assert_int_equal(dc_env_step(env, action, obs, &outcome), DC_OK);
    memcpy(bare->ctrl, env->data->ctrl, (size_t)m->nu * sizeof *bare->ctrl);
    for (int s = 0; s < SUBSTEPS; s++)
        mj_step(now, bare);
    count(env, all);
    assert_memory_equal(bare->qpos, env->data->qpos, (size_t)m->nq * sizeof *bare->qpos);
    assert_memory_equal(bare->qvel, env->data->qvel, (size_t)m->nv * sizeof *bare->qvel);
    assert_memory_equal(bare->qacc_warmstart, env->data->qacc_warmstart,
                        (size_t)m->nv * sizeof *bare->qvel);
}

// In the middle of an episode the robot is put where it was before.
static void compare_episode(dc_env *env, mjData *bare, int episode, tally *all) {
    double qpos[DC_ARM_OBS_MAX], qvel[DC_ARM_OBS_MAX] = {0};
    assert_int_equal(dc_env_reset(env, episode % DC_TASKS + 1, NULL), DC_OK);
    memcpy(qpos, env->qpos, (size_t)env->world->model->nq * sizeof *qpos);
    for (int t = 0; t < STEPS; t++) {
        if (t == STEPS / 2) assert_int_equal(dc_env_set(env, qpos, qvel, NULL), DC_OK);
        compare_step(env, bare, t, all);
    }
}

static tally compare(const char *name) {
    tally all = {0};
    dc_world *world = open_world(name);
    dc_env env;
    dc_philox_draws draws;
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&draws, 11, 0)), DC_OK);
    mjData *bare = mj_makeData(world->model);
    assert_non_null(bare);
    for (int e = 0; e < EPISODES; e++)
        compare_episode(&env, bare, e, &all);
    mj_deleteData(bare);
    dc_env_free(&env);
    dc_world_free(world);
    return all;
}

static void test_bits(void **state) {
    (void)state;
    static const char *const names[] = {"cube-single", "cube-quadruple", "scene", "puzzle-3x3",
                                        "puzzle-4x5"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        tally all = compare(names[n]);
        assert_true(all.contacts > 0 && all.left_out > 10 * EPISODES * STEPS);
        if (!strncmp(names[n], "puzzle", 6)) assert_true(all.pressed > 0);
    }
}

// ---- an arm that flails ----

typedef struct hits {
    int itself, floor, button;
} hits;

static bool is_robot(const mjModel *m, int geom) {
    return m->body_rootid[m->geom_bodyid[geom]] == 1;
}

static void count_hits(const mjModel *m, const mjData *d, hits *h) {
    for (int c = 0; c < d->ncon; c++) {
        int a = d->contact[c].geom[0], b = d->contact[c].geom[1];
        bool pads = m->geom_type[a] == mjGEOM_BOX && m->geom_type[b] == mjGEOM_BOX;
        h->itself += is_robot(m, a) && is_robot(m, b) && !pads;
        h->floor += m->geom_bodyid[a] == 0 && is_robot(m, b);
        h->button += m->geom_bodyid[a] != 0 && is_robot(m, a) != is_robot(m, b);
    }
}

// Now and then somebody else moves the joints, into the robot itself too, and buttons into their housing. Controls are of
// half the range.
static void flail(const mjModel *m, mjData *d, int buttons, dc_draws *draws, int t) {
    for (int k = 0; k < m->nu; k++) {
        const double *range = m->actuator_ctrlrange + (ptrdiff_t)2 * k;
        d->ctrl[k] = draws->uniform(draws->ctx, range[0] / 2, range[1] / 2);
    }
    if (t % 8) return;
    mj_resetData(m, d);
    for (int j = 0; j < m->nu - 1; j++)
        d->qpos[j] = draws->uniform(draws->ctx, -3, 3);
    for (int k = 0; k < buttons; k++)
        d->qpos[DC_ARM_THINGS + k] = draws->uniform(draws->ctx, -0.04, 0);
}

static hits compare_flailing(const char *name) {
    dc_world *world = open_world(name);
    const mjModel *m = world->model;
    const dc_touch_plan *plan = &((const dc_arm_world *)world->own)->touch;
    static dc_touch touch;
    touch = (dc_touch){0};
    hits all = {0};
    dc_philox_draws state;
    dc_draws draws = dc_draws_philox(&state, 12, 0);
    mjData *d = mj_makeData(m), *bare = mj_makeData(m);
    assert_true(d && bare);
    for (int t = 0; t < FLAILS; t++) {
        flail(m, d, plan->buttons, &draws, t);
        mj_copyData(bare, m, d);
        dc_touch_steps(&touch, plan, m, d, SUBSTEPS);
        for (int s = 0; s < SUBSTEPS; s++) {
            mj_step(m, bare);
            count_hits(m, bare, &all);
        }
        assert_memory_equal(bare->qpos, d->qpos, (size_t)m->nq * sizeof *d->qpos);
        assert_memory_equal(bare->qvel, d->qvel, (size_t)m->nv * sizeof *d->qvel);
    }
    mj_deleteData(d);
    mj_deleteData(bare);
    dc_world_free(world);
    return all;
}

static void test_flailing(void **state) {
    (void)state;
    static const char *const names[] = {"cube-double", "scene", "puzzle-4x5"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        hits all = compare_flailing(names[n]);
        printf("%s: %d of itself, %d of the floor, %d of things\n", names[n], all.itself, all.floor,
               all.button);
        assert_true(all.itself > 20 && all.floor > 20);
        if (n == 2) assert_true(all.button > 20);
    }
}

// ---- buttons ----

static bool may_touch(const mjModel *m, int g, int h) {
    int a = m->body_weldid[m->geom_bodyid[g]], b = m->body_weldid[m->geom_bodyid[h]];
    return a != b && (m->geom_contype[g] & m->geom_conaffinity[h] ||
                      m->geom_contype[h] & m->geom_conaffinity[g]);
}

// The least distance of a button's geoms from what else lies on the table. Of planes MuJoCo asks for less.
static double clearance(const mjModel *m, const mjData *d, int body) {
    double least = 0.01;
    for (int g = m->body_geomadr[body]; g < m->body_geomadr[body] + m->body_geomnum[body]; g++)
        for (int h = 0; h < m->ngeom; h++) {
            if (m->body_rootid[m->geom_bodyid[h]] == 1 || !may_touch(m, g, h)) continue;
            double apart = mj_geomDistance(m, d, g, h, 0.01, NULL);
            least = apart < least ? apart : least;
        }
    return least;
}

// All buttons at once, in steps of which none moves a button by more than it is away.
static void test_buttons_in_between(void **state) {
    (void)state;
    static const char *const names[] = {"puzzle-3x3", "puzzle-4x6"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        dc_world *world = open_world(names[n]);
        const mjModel *m = world->model;
        const dc_touch_plan *p = &((const dc_arm_world *)world->own)->touch;
        mjData *d = mj_makeData(m);
        assert_non_null(d);
        assert_true(p->buttons > 0);
        double step = (dc_touch_high - dc_touch_low) / DRAWS;
        for (int s = 0; s <= DRAWS; s++) {
            for (int k = 0; k < p->buttons; k++)
                d->qpos[DC_ARM_THINGS + k] = dc_touch_low + s * step;
            mj_kinematics(m, d);
            for (int k = 0; k < p->buttons; k += s % 16 ? p->buttons - 1 : 1)
                assert_true(clearance(m, d, p->button[k][1]) > step);
        }
        mj_deleteData(d);
        dc_world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_flailing),
        cmocka_unit_test(test_buttons_in_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
