// Environments in motion, see sim.h: what is the same for every family. What is not is called through
// its table, inside the guard of its simulator.
#include "env/sim.h"

#include "env/family.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- worlds ----

static dc_status build_world(dc_world *w, const dc_sim *sim) {
    dc_view_options picture = {.width = DC_VISUAL_SIDE, .height = DC_VISUAL_SIDE};
    DC_TRY(sim->model(&w->spec, false, &w->model));
    if (sim->prepare) DC_TRY(sim->prepare(w));
    return w->spec.visual ? dc_view_new(&w->view, &w->spec, &picture) : DC_OK;
}

dc_status dc_sim_need(const dc_env_spec *spec, const dc_sim **sim) {
    *sim = spec->family->ops->sim;
    if (*sim) return DC_OK;
    return dc_fail(DC_UNSUPPORTED,
                   "run `make` again where pip can fetch the mujoco wheel (tools/setup.sh build)",
                   "this build has no MuJoCo, so it cannot simulate %s", spec->name);
}

dc_status dc_world_new(dc_world **world, const dc_env_spec *spec) {
    const dc_sim *sim;
    *world = NULL;
    DC_TRY(dc_sim_need(spec, &sim));
    dc_world *w = calloc(1, sizeof *w);
    if (!w) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", spec->name);
    w->spec = *spec;
    dc_status status = build_world(w, sim);
    if (status == DC_OK)
        *world = w;
    else
        dc_world_free(w);
    return status;
}

void dc_world_free(dc_world *world) {
    if (!world) return;
    const dc_sim *sim = world->spec.family->ops->sim;
    if (sim->release) sim->release(world);
    dc_view_free(world->view);
    sim->engine->drop(world->model);
    free(world);
}

const dc_env_spec *dc_world_spec(const dc_world *world) {
    return &world->spec;
}

dc_status dc_world_save(const dc_world *world, const char *path) {
    const dc_sim *sim = world->spec.family->ops->sim;
    struct mjModel_ *whole;
    DC_TRY(sim->model(&world->spec, true, &whole));
    dc_status status = sim->engine->save(whole, path);
    sim->engine->drop(whole);
    return status;
}

// ---- copies ----

typedef struct opening {
    dc_env *env;
    bool done;
} opening;

static void open_env(void *ctx) {
    opening *o = ctx;
    dc_env *env = o->env;
    const dc_sim *sim = dc_sim_of(env);
    env->own = sim->own ? calloc(1, sim->own) : NULL;
    if (sim->own && !env->own) return;
    bool visual = env->world->spec.visual;
    size_t size = visual ? DC_EXTRA_MAX + (size_t)sim->engine->shot_size(env->world) : 0;
    env->shot = visual ? calloc(size, sizeof *env->shot) : NULL;
    if (visual && !env->shot) return;
    o->done = (!sim->open || sim->open(env)) && sim->engine->open(env);
}

dc_status dc_env_new(dc_env *env, const dc_world *world, dc_draws draws) {
    *env = (dc_env){.world = world, .draws = draws};
    opening o = {.env = env};
    dc_status status = dc_sim_of(env)->engine->guard(open_env, &o, NULL);
    if (status == DC_OK && o.done) return DC_OK;
    dc_env_free(env);
    DC_TRY(status);
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", world->spec.name);
}

void dc_env_free(dc_env *env) {
    if (!env->world) return;
    const dc_sim *sim = dc_sim_of(env);
    sim->engine->close(env);
    if (env->own && sim->close) sim->close(env);
    free(env->own);
    free(env->shot);
    *env = (dc_env){0};
}

const double *dc_env_qpos(const dc_env *env) {
    return env->qpos;
}

const double *dc_env_qvel(const dc_env *env) {
    return env->qvel;
}

void dc_env_extra(const dc_env *env, double *extra) {
    if (env->world->spec.family->extra) dc_sim_of(env)->extra(env, extra);
}

// In the simulator's guard: what is observed, or what is seen of it.
static void look(dc_env *env, double *obs) {
    const dc_sim *sim = dc_sim_of(env);
    if (!env->world->spec.visual) {
        sim->observe(env, obs);
        return;
    }
    dc_env_extra(env, env->shot);
    sim->engine->shoot(env, env->shot + DC_EXTRA_MAX);
}

// Outside of it: draw what was seen. The numbers of a picture are whole.
static dc_status draw(const dc_env *env, double *obs) {
    dc_view *view = env->world->view;
    uint8_t rgb[DC_VISUAL_OBS];
    if (!env->world->spec.visual) return DC_OK;
    DC_TRY(view->ops->develop(view, env->shot + DC_EXTRA_MAX, env->shot, rgb));
    for (int k = 0; k < DC_VISUAL_OBS; k++)
        obs[k] = rgb[k];
    return DC_OK;
}

dc_status dc_env_observe(dc_env *env, double *obs) {
    look(env, obs);
    return draw(env, obs);
}

void dc_goal_is_now(dc_env *env, double *goal) {
    look(env, goal);
}

dc_outcome dc_env_outcome(const dc_env *env) {
    return dc_sim_of(env)->outcome(env);
}

dc_status dc_env_guard(dc_env *env, void (*work)(void *ctx), void *ctx) {
    return dc_sim_of(env)->engine->guard(work, ctx, env);
}

// ---- steps ----

typedef struct stepping {
    dc_env *env;
    const double *action; // (act)
    double *obs;          // (obs)
    dc_outcome *outcome;
    int repeat; // of the bare physics
} stepping;

static void step(void *ctx) {
    stepping *s = ctx;
    const dc_sim *sim = dc_sim_of(s->env);
    bool before = s->env->world->spec.task > 0; // single-task form judges the state acted on
    if (before) *s->outcome = sim->outcome(s->env);
    sim->step(s->env, s->action);
    look(s->env, s->obs);
    if (!before) *s->outcome = sim->outcome(s->env);
    if (sim->after) sim->after(s->env);
}

dc_status dc_env_step(dc_env *env, const double *action, double *obs, dc_outcome *outcome) {
    DC_TRY(dc_env_guard(env, step, &(stepping){env, action, obs, outcome, 1}));
    DC_TRY(draw(env, obs));
    return dc_env_check(env, obs);
}

dc_status dc_env_check(const dc_env *env, const double *obs) {
    const dc_env_spec *spec = &env->world->spec;
    for (int k = 0; k < spec->obs; k++)
        if (!(fabs(obs[k]) <= FLT_MAX))
            return dc_fail(DC_NOT_FINITE, "check the state and the actions that were given",
                           "value %d of an observation of %s is NaN or Inf", k, spec->name);
    return DC_OK;
}

static void bare(void *ctx) {
    stepping *s = ctx;
    dc_sim_of(s->env)->physics(s->env, s->action, s->repeat);
}

dc_status dc_env_physics(dc_env *env, const double *action, int steps) {
    return dc_env_guard(env, bare, &(stepping){env, action, NULL, NULL, steps});
}

// ---- states and resets ----

typedef struct placing {
    dc_env *env;
    const double *qpos, *qvel, *extra; // (nq), (nv), (extra)
    int task;                          // 0 ... 4
    double *goal;                      // (spec.goal)
} placing;

static void set(void *ctx) {
    placing *p = ctx;
    dc_sim_of(p->env)->set(p->env, p->qpos, p->qvel, p->extra);
}

dc_status dc_env_set(dc_env *env, const double *qpos, const double *qvel, const double *extra) {
    return dc_env_guard(env, set,
                        &(placing){.env = env, .qpos = qpos, .qvel = qvel, .extra = extra});
}

static void reset(void *ctx) {
    placing *p = ctx;
    dc_sim_of(p->env)->reset(p->env, p->task, p->goal);
}

dc_status dc_env_reset(dc_env *env, int task, double *goal) {
    int own = env->world->spec.task; // as the reference does, whatever is asked for
    DC_CHECK(task >= 1 && task <= DC_TASKS);
    DC_TRY(dc_env_guard(env, reset,
                        &(placing){.env = env, .task = (own ? own : task) - 1, .goal = goal}));
    return goal && !env->world->spec.oracle ? draw(env, goal) : DC_OK;
}
