// Tables of families. Each that is listed has what it must have; and a family that none of the library's
// files has heard of, without MuJoCo, goes through everything that is general: worlds, resets, steps,
// single tasks, states, replay, generation by threads, and errors of its simulator.
#include "env/family.h"

#include "base/json.h"
#include "env/replay.h"
#include "env/rewards.h"
#include "env/states.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- what is listed ----

static const dc_family_ops *const listed[] = {
#define DC_FAMILY(name) &dc_##name,
#include "env/families.def"
#undef DC_FAMILY
};
enum { LISTED = sizeof listed / sizeof listed[0] };

static bool has_word(const dc_family_ops *ops, const char *name) {
    for (const char *const *word = ops->words; *word; word++)
        if (strstr(name, *word)) return true;
    return false;
}

static void check_facts(const dc_family_ops *ops) {
    assert_true(ops->noun && ops->target && ops->reward && ops->task_json && ops->data.plan);
    assert_true(ops->entries->family != NULL);
    assert_true(DC_DATA_ANY < ops->data.first && ops->data.first <= ops->data.last);
    for (const dc_env_entry *e = ops->entries; e->family; e++) {
        const dc_env_family *f = e->family;
        assert_true(f->ops == ops && f->name && f->about && e->tasks && e->horizon > 0);
        assert_true(f->obs > 0 && f->act > 0 && f->nq > 0 && f->nv > 0 && f->tolerance > 0);
        assert_true(f->oracle > 0 && f->oracle <= DC_TARGET_MAX && f->extra <= DC_EXTRA_MAX);
        assert_true(f->task >= 1 && f->task <= DC_TASKS && has_word(ops, f->name));
        assert_true(!f->extra || (ops->extra.name && ops->extra.what));
    }
}

static void check_sim(const dc_family_ops *ops) {
    const dc_sim *s = ops->sim;
    const dc_engine *e = s->engine;
    assert_true(e->guard && e->open && e->close && e->save && e->drop && e->view);
    assert_true(s->model && s->reset && s->set && s->step && s->observe && s->outcome &&
                s->physics);
    assert_true(s->substeps > 0 && !s->camera == (s->aim != NULL));
    assert_true(!s->prepare == !s->release);
    assert_true(!e->shot_size == !e->shoot);
    for (const dc_env_entry *row = ops->entries; row->family; row++)
        assert_true(!row->family->visual || (s->visual_camera && e->shoot));
    assert_true(!ops->extra.name == !s->extra);
    for (int kind = DC_DATA_ANY; kind <= (int)DC_DATA_NOISY; kind++) {
        dc_env_spec spec = {.family = ops->entries->family,
                            .maze = ops->entries->maze,
                            .tasks = ops->entries->tasks};
        dc_gen gen;
        int64_t episodes = 0;
        if (dc_gen_init(&gen, &spec, (dc_data_kind)kind, &episodes) != DC_OK) continue;
        assert_true(s->play && episodes > 0 && gen.rows > 1); // what has sizes can be played
        assert_true(gen.kind >= ops->data.first && gen.kind <= ops->data.last);
    }
}

static void test_listed_tables_are_complete(void **state) {
    (void)state;
    for (int k = 0; k < LISTED; k++) {
        check_facts(listed[k]);
        if (listed[k]->sim) check_sim(listed[k]);
    }
}

static void test_tasks_are_json(void **state) {
    (void)state;
    dc_env_spec spec;
    for (int r = 0; dc_env_row(&spec, r); r++)
        for (int t = 0; t < DC_TASKS; t++) {
            dc_text text;
            dc_arena arena;
            const dc_json *root = NULL;
            dc_text_init(&text);
            dc_arena_init(&arena, 0);
            dc_env_task_json(&spec, t, &text);
            assert_int_equal(dc_json_parse(&arena, spec.name, text.bytes, text.used, &root), DC_OK);
            assert_true(dc_json_get(root, "start") && dc_json_get(root, "goal"));
            dc_arena_fini(&arena);
            dc_text_fini(&text);
        }
}

static void test_foreign_names(void **state) {
    (void)state;
    static const struct {
        const char *env, *target, *hint;
        bool extra;
    } want[] = {{"antmaze-medium", "target", "a maze's is 'goal_xy'", true},
                {"cube-single", "goal_xy", "an arm's is 'target'", true},
                {"puzzle-3x3", "goal_xy", "an arm's is 'target'", false}};
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        dc_env_spec spec;
        dc_foreign foreign;
        bool target = false, extra = false;
        assert_int_equal(dc_env_find(&spec, want[k].env), DC_OK);
        for (int n = 0; dc_env_foreign(spec.family, n, &foreign); n++) {
            target = target ||
                     (!strcmp(foreign.name, want[k].target) && !strcmp(foreign.hint, want[k].hint));
            extra = extra || !strcmp(foreign.name, "button_states");
            assert_string_not_equal(foreign.name, dc_env_target_name(spec.family));
        }
        assert_true(target && extra == want[k].extra);
    }
}

// ---- a family of its own: a cart on a line, with a lamp that each step turns on or off ----

typedef struct cart {
    double x, v;
    bool lamp, torn; // torn: its simulator broke down
} cart;

static dc_status cart_guard(dc_work *work, void *ctx, const dc_env *env) {
    work(ctx);
    if (env && env->own && ((const cart *)env->own)->torn)
        return dc_fail(DC_NOT_FINITE, NULL, "the cart broke");
    return DC_OK;
}

static bool cart_open(dc_env *env) {
    cart *c = env->own;
    env->qpos = &c->x;
    env->qvel = &c->v;
    return true;
}

static void cart_close(dc_env *env) {
    (void)env;
}

static void cart_drop(struct mjModel_ *model) {
    assert_null(model);
}

static const dc_engine cart_engine = {
    .guard = cart_guard, .open = cart_open, .close = cart_close, .drop = cart_drop};

static dc_status cart_model(const dc_env_spec *spec, bool whole, struct mjModel_ **model) {
    (void)spec, (void)whole;
    *model = NULL;
    return DC_OK;
}

static void cart_observe(const dc_env *env, double *obs) {
    const cart *c = env->own;
    obs[0] = c->x;
    obs[1] = c->v;
    obs[2] = c->lamp;
}

static void cart_reset(dc_env *env, int task, double *goal) {
    *(cart *)env->own = (cart){.x = env->draws.uniform(env->draws.ctx, -0.1, 0.1)};
    env->goal[0] = ((const double *)env->world->spec.tasks)[task];
    if (goal) memcpy(goal, (double[3]){env->goal[0], 0, 0}, 3 * sizeof *goal);
}

static void cart_set(dc_env *env, const double *qpos, const double *qvel, const double *extra) {
    *(cart *)env->own = (cart){*qpos, *qvel, extra && *extra != 0, false};
}

static void cart_step(dc_env *env, const double *action) {
    cart *c = env->own;
    c->v = *action;
    c->x += c->v;
    c->lamp = !c->lamp;
    c->torn = isnan(c->x);
}

static dc_outcome cart_outcome(const dc_env *env) {
    bool there = fabs(*env->qpos - env->goal[0]) <= 0.5;
    return (dc_outcome){there, there ? 1 : 0};
}

static void cart_extra(const dc_env *env, double *extra) {
    *extra = ((const cart *)env->own)->lamp;
}

static dc_status cart_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    double obs[3], extra;
    dc_outcome outcome;
    DC_TRY(dc_env_reset(env, 1, NULL));
    for (int64_t r = 0; r < gen->rows; r++) {
        double action = env->draws.uniform(env->draws.ctx, -1, 1);
        DC_TRY(dc_env_observe(env, obs));
        dc_env_extra(env, &extra);
        out->extra[r] = (int64_t)extra;
        out->qpos[r] = (float)*dc_env_qpos(env);
        out->act[r] = (float)action;
        DC_TRY(dc_env_step(env, &action, obs, &outcome));
    }
    return DC_OK;
}

static double cart_reward(const dc_env_spec *spec, const float *qpos, const float *extra) {
    double goal = ((const double *)spec->tasks)[spec->task - 1];
    (void)extra;
    return fabs((double)*qpos - goal) <= 0.5 ? 0 : -1;
}

static dc_status cart_plan(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    (void)spec;
    gen->rows = 20;
    *episodes = 7;
    return DC_OK;
}

static const dc_sim cart_sim = {.engine = &cart_engine,
                                .substeps = 1,
                                .model = cart_model,
                                .own = sizeof(cart),
                                .reset = cart_reset,
                                .set = cart_set,
                                .step = cart_step,
                                .observe = cart_observe,
                                .outcome = cart_outcome,
                                .extra = cart_extra,
                                .play = cart_play};
static const dc_family_ops cart_ops = {.noun = "a cart",
                                       .target = "place",
                                       .extra = {"lamp", "lamps", 0, 1},
                                       .data = {.plan = cart_plan},
                                       .reward = cart_reward,
                                       .sim = &cart_sim};
static const dc_env_family cart_family = {.name = "cart",
                                          .ops = &cart_ops,
                                          .obs = 3,
                                          .act = 1,
                                          .nq = 1,
                                          .nv = 1,
                                          .extra = 1,
                                          .oracle = 1};
static const double places[DC_TASKS] = {1, 2, 3, -4, 5};

static dc_env_spec cart_spec(int task) {
    return (dc_env_spec){.name = "cart-v0",
                         .family = &cart_family,
                         .tasks = places,
                         .task = task,
                         .obs = 3,
                         .goal = 3,
                         .horizon = 10};
}

static dc_world *cart_world(int task) {
    dc_world *world;
    dc_env_spec spec = cart_spec(task);
    assert_int_equal(dc_world_new(&world, &spec), DC_OK);
    return world;
}

static void test_a_cart_moves(void **state) {
    (void)state;
    dc_philox_draws draws;
    dc_env env;
    dc_outcome outcome;
    double obs[3], goal[3];
    dc_world *world = cart_world(0);
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&draws, 1, 2)), DC_OK);
    assert_int_equal(dc_env_reset(&env, 4, goal), DC_OK);
    assert_true(goal[0] == -4 && !dc_env_outcome(&env).success);
    double start = *dc_env_qpos(&env);
    assert_int_equal(dc_env_step(&env, (double[]){-4}, obs, &outcome), DC_OK);
    assert_true(obs[0] == start - 4 && obs[2] == 1 && outcome.success);
    // An observation that float32 cannot hold is an error even where the simulator is content.
    assert_int_equal(dc_env_step(&env, (double[]){1e300}, obs, &outcome), DC_NOT_FINITE);
    assert_non_null(strstr(dc_error(), "observation"));
    assert_int_equal(dc_env_step(&env, (double[]){NAN}, obs, &outcome), DC_NOT_FINITE);
    assert_int_equal(dc_env_set(&env, (double[]){2}, (double[]){0}, (double[]){1}), DC_OK);
    assert_int_equal(dc_env_observe(&env, obs), DC_OK);
    assert_true(obs[0] == 2 && obs[2] == 1);
    dc_env_free(&env);
    dc_env_free(&env);
    dc_world_free(world);
}

// In single-task form another task is not played, and the state that is acted on is judged.
static void test_a_single_task(void **state) {
    (void)state;
    dc_philox_draws draws;
    dc_env env;
    dc_outcome outcome;
    double obs[3], goal[3];
    dc_env_spec spec = cart_spec(3);
    dc_world *world = cart_world(3);
    assert_int_equal(dc_env_new(&env, world, dc_draws_philox(&draws, 1, 2)), DC_OK);
    assert_int_equal(dc_env_reset(&env, 1, goal), DC_OK);
    assert_true(goal[0] == 3);
    assert_int_equal(dc_env_step(&env, (double[]){3}, obs, &outcome), DC_OK);
    assert_false(outcome.success);
    assert_int_equal(dc_env_step(&env, (double[]){0}, obs, &outcome), DC_OK);
    assert_true(outcome.success);
    assert_true(dc_task_reward(&spec, (float[]){3.4F}, NULL) == 0);
    assert_true(dc_task_reward(&spec, (float[]){3.6F}, NULL) == -1);
    dc_env_free(&env);
    dc_world_free(world);
}

static void test_a_cart_is_replayed(void **state) {
    (void)state;
    enum { S = 3, T = 2 };
    double qpos[S] = {0, 1, 2}, qvel[S] = {0}, lamps[S] = {0, 1, 0}, target[S] = {2, 2, 9};
    double actions[S * T] = {1, 1, 1, 1, 1, 1}, out[6][S * (T + 1) * 3];
    uint8_t success[S * (T + 1)], lit[S * (T + 1)];
    dc_replay r = {.starts = S,
                   .steps = T,
                   .qpos = qpos,
                   .qvel = qvel,
                   .target = target,
                   .extra = lamps,
                   .actions = actions,
                   .out_qpos = out[0],
                   .out_qvel = out[1],
                   .out_obs = out[2],
                   .reward = out[3],
                   .out_goal = out[4],
                   .out_target = out[5],
                   .success = success,
                   .out_extra = lit};
    dc_world *world = cart_world(0);
    assert_int_equal(dc_replay_run(&r, world, NULL), DC_OK);
    assert_memory_equal(lit, ((uint8_t[]){0, 1, 0, 1, 0, 1, 0, 1, 0}), sizeof lit);
    assert_memory_equal(success, ((uint8_t[]){0, 0, 1, 0, 1, 0, 0, 0, 0}), sizeof success);
    assert_true(out[0][2] == 2 && out[0][8] == 4 && out[2][3 * 4 + 1] == 1);
    dc_world_free(world);
}

// The same rows for any number of threads; a script's episode as states has them, too.
static void test_a_cart_is_collected(void **state) {
    (void)state;
    enum { EPISODES = 7, ROWS = 20, N = EPISODES * ROWS };
    static float obs[N * 3], act[2][N], qpos[2][N], qvel[N];
    static int64_t lamps[2][N];
    static uint8_t ends[N];
    dc_env_spec spec = cart_spec(0);
    dc_world *world = cart_world(0);
    dc_gen gen;
    int64_t episodes;
    dc_pool *pool;
    dc_states states;
    assert_int_equal(dc_gen_init(&gen, &spec, DC_DATA_ANY, &episodes), DC_OK);
    assert_true(episodes == EPISODES && gen.rows == ROWS);
    gen.world = world;
    assert_int_equal(dc_pool_new(&pool, 3), DC_OK);
    for (int k = 0; k < 2; k++) {
        dc_gen_rows rows = {.obs = obs,
                            .act = act[k],
                            .qpos = qpos[k],
                            .qvel = qvel,
                            .extra = lamps[k],
                            .terminals = ends};
        assert_int_equal(dc_gen_play(&gen, 0, EPISODES, &rows, k ? pool : NULL), DC_OK);
    }
    assert_memory_equal(qpos[0], qpos[1], sizeof qpos[0]);
    assert_memory_equal(lamps[0], lamps[1], sizeof lamps[0]);
    assert_int_equal(dc_states_script(&states, &gen, 3), DC_OK);
    assert_int_equal(states.count, ROWS);
    for (int r = 0; r < ROWS; r++) {
        assert_true((float)states.qpos[r] == qpos[0][3 * ROWS + r]);
        assert_true(states.extra[r] == r % 2);
    }
    dc_states_free(&states);
    dc_pool_free(pool);
    dc_world_free(world);
}

// A family whose simulator is not in this build says so, and so do its pictures.
static void test_a_missing_simulator(void **state) {
    (void)state;
    dc_family_ops ops = cart_ops;
    dc_env_family family = cart_family;
    dc_env_spec spec = cart_spec(0);
    dc_world *world;
    dc_view *view;
    ops.sim = NULL;
    family.ops = &ops;
    spec.family = &family;
    assert_int_equal(dc_world_new(&world, &spec), DC_UNSUPPORTED);
    assert_non_null(strstr(dc_error(), "cart-v0"));
    assert_null(world);
    assert_int_equal(dc_view_new(&view, &spec, &(dc_view_options){.width = 8, .height = 8}),
                     DC_UNSUPPORTED);
    assert_null(view);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed_tables_are_complete),
        cmocka_unit_test(test_tasks_are_json),
        cmocka_unit_test(test_foreign_names),
        cmocka_unit_test(test_a_cart_moves),
        cmocka_unit_test(test_a_single_task),
        cmocka_unit_test(test_a_cart_is_replayed),
        cmocka_unit_test(test_a_cart_is_collected),
        cmocka_unit_test(test_a_missing_simulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
