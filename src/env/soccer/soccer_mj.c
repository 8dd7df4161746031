// The ant with a ball in motion: walker/'s ant, in a world with one thing more.
#include "env/mujoco/engine.h"
#include "env/soccer/soccer.h"
#include "env/walker/walker.h"

static const dc_maze_robot robot = {.pose = dc_maze_pose, .ball = DC_SOCCER_BALL};

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
    return dc_maze_model(spec, DC_ANT_FILE, add_ball, model);
}

static void reset(dc_env *env, int task, double *goal) {
    dc_maze_begin(env, &robot, dc_maze_task_of(&env->world->spec, task), goal);
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
};
