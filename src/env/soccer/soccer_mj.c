// The ant with a ball in motion: walker/'s ant, in a world with one thing more.
#include "env/mujoco/engine.h"
#include "env/soccer/soccer.h"
#include "env/walker/walker.h"

#include <math.h>
#include <string.h>

const dc_maze_robot dc_soccer_robot = {.pose = dc_maze_pose, .ball = DC_SOCCER_BALL};

static void add_ball(mjSpec *spec, mjsBody *world) {
    mjsBody *ball = mjs_addBody(world, NULL);
    mjs_setName(ball->element, "ball");
    ball->pos[2] = 0.5;
    mjs_setName(mjs_addFreeJoint(ball)->element, "ball_root");
    mjsGeom *g = mjs_addGeom(ball, mjs_getSpecDefault(spec)); // with the file's own defaults
    mjs_setName(g->element, "ball");
    mjs_setString(g->material, "ball");
    g->size[0] = 0.25;
    g->priority = g->conaffinity = 1;
    g->condim = 6;
    mjsLight *light = mjs_addLight(ball, mjs_getSpecDefault(spec));
    mjs_setName(light->element, "ball_light");
    light->pos[2] = 4;
    light->mode = mjCAMLIGHT_TRACKCOM;
}

static dc_status model(const dc_env_spec *spec, bool whole, mjModel **model) {
    (void)whole; // the same
    return dc_maze_model(spec, false, DC_ANT_FILE, add_ball, model);
}

static void reset(dc_env *env, int task, double *goal) {
    dc_maze_begin(env, &dc_soccer_robot, dc_maze_task_of(&env->world->spec, task), goal);
}

const dc_sim dc_soccer_sim = {
    .engine = &dc_mujoco,
    .substeps = DC_MAZE_SUBSTEPS,
    .model = model,
    .reset = reset,
    .set = dc_maze_set,
    .step = dc_ant_step,
    .after = dc_maze_jump,
    .observe = dc_ant_observe,
    .outcome = dc_maze_outcome,
    .physics = dc_maze_physics,
    .aim = dc_maze_aim,
    .paint = dc_maze_paint,
    .play = dc_soccer_play,
};

// ---- on the plane: ball and goal lie anywhere around ----

static const double drop = 3, shake = 0.1; // the ball falls from there

static void pose(dc_env *env) {
    const mjModel *m = dc_model_of(env);
    mj_resetData(m, env->data);
    for (int k = 0; k < m->nq; k++)
        env->qpos[k] =
            (k == DC_SOCCER_BALL + 2 ? drop : m->qpos0[k]) + dc_env_uniform(env, -shake, shake);
    for (int k = 0; k < m->nv; k++)
        env->qvel[k] = shake * env->draws.normal(env->draws.ctx);
    mj_forward(m, env->data);
    for (int k = 0; k < 2; k++)
        env->qpos[k] = dc_env_uniform(env, -1, 1);
    for (int k = 0; k < 2; k++)
        env->qpos[DC_SOCCER_BALL + k] = dc_env_uniform(env, -2, 2);
    mj_forward(m, env->data);
}

// The ant without its place, the ball's height, posture and speed, and where it lies from the ant.
static void see(const dc_env *env, double *state) {
    const dc_env_family *f = env->world->spec.family;
    size_t ant = DC_SOCCER_BALL - 2, ball = (size_t)f->nq - DC_SOCCER_BALL - 2;
    memcpy(state, env->qpos + 2, ant * sizeof *state);
    memcpy(state + ant, env->qpos + DC_SOCCER_BALL + 2, ball * sizeof *state);
    memcpy(state + ant + ball, env->qvel, (size_t)f->nv * sizeof *state);
    for (int k = 0; k < 2; k++)
        state[ant + ball + (size_t)f->nv + (size_t)k] =
            env->qpos[DC_SOCCER_BALL + k] - env->qpos[k];
}

static double distance(const double *a, const double *b) {
    double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(x * x + y * y);
}

// What the ball came nearer to its goal, and the ant to the ball.
static void judge(const dc_walk *walk, const double before[4], dc_walk_step *step) {
    const double *ant = walk->env.qpos, *ball = ant + DC_SOCCER_BALL, *was = before + 2;
    double goal = distance(was, walk->command) - distance(ball, walk->command);
    double near = distance(before, was) - distance(ant, ball);
    step->base = (goal * 2.5 + near) * 10;
}

const dc_plane_sim dc_soccer_plane = {.pose = pose, .see = see, .judge = judge};
