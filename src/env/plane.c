// The open plane, see plane.h: what is the same for every robot.
#include "env/plane.h"

#include "base/options.h"
#include "env/family.h"
#include "env/maze/maze.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PLANES_MAX = 8 };

static const dc_family_ops *const families[] = {
#define DC_FAMILY(name) &dc_##name,
#include "env/families.def"
#undef DC_FAMILY
};
enum { FAMILIES = sizeof families / sizeof families[0] };

// ---- names ----

const dc_plane *dc_plane_row(int index) {
    for (int k = 0; k < FAMILIES; k++)
        if (families[k]->plane && index-- == 0) return families[k]->plane;
    return NULL;
}

dc_status dc_plane_find(const dc_plane **plane, const char *name) {
    const char *names[PLANES_MAX], *near;
    size_t count = 0;
    for (const dc_plane *p; count < PLANES_MAX && (p = dc_plane_row((int)count)); count++) {
        names[count] = p->name;
        *plane = p;
        if (!strcmp(name, p->name)) return DC_OK;
    }
    near = dc_nearest(name, names, count);
    if (near) return dc_fail(DC_USAGE, NULL, "unknown robot '%s': did you mean '%s'?", name, near);
    return dc_fail(DC_USAGE, "ant, antball or humanoid", "unknown robot '%s'", name);
}

dc_status dc_plane_world(const dc_plane *plane, dc_world **world) {
    dc_env_spec spec = {.family = plane->family,
                        .maze = &dc_maze_plane,
                        .obs = plane->family->obs,
                        .goal = plane->family->oracle,
                        .oracle = true,
                        .horizon = plane->horizon};
    const dc_sim *sim;
    *world = NULL;
    snprintf(spec.name, sizeof spec.name, "the plane of %s", plane->name);
    DC_TRY(dc_sim_need(&spec, &sim));
    return dc_world_new(world, &spec);
}

// ---- an episode ----

static double uniform(dc_walk *w, double reach) {
    return w->env.draws.uniform(w->env.draws.ctx, -reach, reach);
}

static void draw_command(dc_walk *w) {
    double *c = w->command;
    if (w->plane->ball) {
        for (int k = 0; k < DC_COMMAND; k++)
            c[k] = uniform(w, w->plane->reach);
        return;
    }
    for (int k = 0; k < DC_COMMAND; k++)
        c[k] = w->env.draws.normal(w->env.draws.ctx);
    double length = sqrt(c[0] * c[0] + c[1] * c[1]);
    for (int k = 0; k < DC_COMMAND; k++)
        c[k] = length > 0 ? c[k] / length : k == 0;
}

dc_status dc_walk_init(dc_walk *w, const dc_plane *plane, const dc_world *world, dc_draws draws) {
    *w = (dc_walk){.plane = plane};
    return dc_env_new(&w->env, world, draws);
}

void dc_walk_fini(dc_walk *w) {
    dc_env_free(&w->env);
}

static void start(void *ctx) {
    dc_walk *w = ctx;
    w->plane->sim->pose(&w->env);
}

dc_status dc_walk_start(dc_walk *w) {
    w->step = 0;
    DC_TRY(dc_env_guard(&w->env, start, w));
    draw_command(w);
    return DC_OK;
}

typedef struct stepping {
    dc_walk *walk;
    const double *action;
} stepping;

static void step(void *ctx) {
    stepping *s = ctx;
    dc_sim_of(&s->walk->env)->step(&s->walk->env, s->action);
}

static bool finite(const dc_walk *w) {
    const dc_env_family *f = w->plane->family;
    double sum = 0;
    for (int k = 0; k < f->nq; k++)
        sum += fabs(w->env.qpos[k]);
    for (int k = 0; k < f->nv; k++)
        sum += fabs(w->env.qvel[k]);
    return isfinite(sum);
}

static bool healthy(const dc_walk *w) {
    const dc_plane *p = w->plane;
    return finite(w) &&
           (p->high <= p->low || (w->env.qpos[2] >= p->low && w->env.qpos[2] <= p->high));
}

dc_status dc_walk_step_by(dc_walk *w, const double *action, dc_walk_step *out) {
    const dc_plane *p = w->plane;
    const double *at = w->env.qpos;
    double before[4] = {at[0], at[1], at[p->ball], at[p->ball + 1]};
    *out = (dc_walk_step){0};
    dc_status status = dc_env_guard(&w->env, step, &(stepping){w, action});
    w->step++;
    if (status == DC_NOT_FINITE) return out->ended = true, DC_OK;
    DC_TRY(status);
    out->moved[0] = at[0] - before[0];
    out->moved[1] = at[1] - before[1];
    p->sim->judge(w, before, out);
    out->reward = out->base + (out->pull[0] * w->command[0] + out->pull[1] * w->command[1]);
    bool late = w->step >= p->horizon;
    out->ended = !healthy(w) || (late && p->final);
    out->cut = late && !out->ended;
    if (p->redraw && w->step % p->redraw == 0) draw_command(w);
    return DC_OK;
}

void dc_walk_see(const dc_walk *w, double *state, double *command) {
    const double *ball = w->env.qpos + w->plane->ball;
    w->plane->sim->see(&w->env, state);
    for (int k = 0; k < DC_COMMAND; k++)
        command[k] = w->command[k] - (w->plane->ball ? ball[k] : 0);
}

// ---- states: the simulation's, command, step ----

int dc_walk_words(const dc_walk *w) {
    return dc_sim_of(&w->env)->engine->words(&w->env) + DC_COMMAND + 1;
}

void dc_walk_save(const dc_walk *w, double *words) {
    const dc_engine *engine = dc_sim_of(&w->env)->engine;
    double *rest = words + engine->words(&w->env);
    engine->get(&w->env, words);
    memcpy(rest, w->command, sizeof w->command);
    rest[DC_COMMAND] = (double)w->step;
}

typedef struct loading {
    dc_walk *walk;
    const double *words;
} loading;

static void load(void *ctx) {
    loading *l = ctx;
    dc_sim_of(&l->walk->env)->engine->put(&l->walk->env, l->words);
}

dc_status dc_walk_load(dc_walk *w, const double *words) {
    const double *rest = words + dc_sim_of(&w->env)->engine->words(&w->env);
    if (!(rest[DC_COMMAND] >= 0 && rest[DC_COMMAND] < 0x1p53) || !isfinite(rest[0] + rest[1]))
        return dc_fail(DC_BAD_INPUT, NULL, "impossible command or step in a robot's state");
    DC_TRY(dc_env_guard(&w->env, load, &(loading){w, words}));
    memcpy(w->command, rest, sizeof w->command);
    w->step = (int64_t)rest[DC_COMMAND];
    return DC_OK;
}
