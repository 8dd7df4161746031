// The point in motion, as OGBench moves it.
//
// A point that is not near a wall needs no physics at all. It is moved by its action, its speed is
// set to zero, and five steps of MuJoCo then leave it exactly where it is: no force acts along the
// plane, and the solver's answer is exactly zero. That is most of the steps, and skipping the
// solver there makes the point many times as fast; near walls MuJoCo decides as ever. The parity
// test compares both kinds of steps with the Python package, to the bit.
#include "env/mujoco/engine.h"
#include "env/point/point.h"
#include "env/point/walls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double speed = 0.2, radius = 0.7;
static const dc_maze_robot robot = {.pose = dc_maze_pose};

// ---- worlds ----

static dc_status model(const dc_env_spec *spec, bool whole, mjModel **model) {
    (void)whole; // the same
    return dc_maze_model(spec, false, "locomaze/assets/point.xml", NULL, model);
}

static void look(void *ctx) {
    dc_world *w = ctx;
    dc_point_look(w, w->own);
}

static dc_status prepare(dc_world *w) {
    dc_point_walls *walls = w->own = calloc(1, sizeof *walls);
    if (walls) DC_TRY(dc_mujoco_guard(look, w, NULL));
    if (walls && walls->touch.dim) return DC_OK;
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", w->spec.name);
}

static void release(dc_world *w) {
    free(w->own);
}

// ---- steps ----

static bool is_inside(const dc_maze *maze, const double *xy) {
    return xy[0] > -6 && xy[1] > -6 && xy[0] < 4.0 * maze->cols && xy[1] < 4.0 * maze->rows;
}

// Whether no wall is within the point's radius of a position inside the map.
static bool is_free(const dc_maze *maze, const double *xy) {
    dc_cell at = dc_maze_cell(xy);
    for (int k = 0; k < 9; k++) {
        dc_cell cell = {at.i + k / 3 - 1, at.j + k % 3 - 1};
        if (!dc_maze_wall(maze, cell)) continue;
        double centre[2];
        dc_maze_xy(cell, centre);
        double x = fmax(fabs(xy[0] - centre[0]) - 2, 0), y = fmax(fabs(xy[1] - centre[1]) - 2, 0);
        if (x * x + y * y < radius * radius + 1e-6) return false;
    }
    return true;
}

static void step(dc_env *env, const double *action) {
    mjData *d = env->data;
    for (int k = 0; k < 2; k++) {
        double move =
            env->float_actions ? (double)((float)speed * (float)action[k]) : speed * action[k];
        d->qpos[k] += move;
        d->qvel[k] = 0;
    }
    const dc_maze *maze = env->world->spec.maze;
    bool inside = is_inside(maze, d->qpos);
    if (inside && is_free(maze, d->qpos)) {
        d->qacc_warmstart[0] = d->qacc_warmstart[1] = 0;
        return;
    }
    for (int s = 0; s < DC_MAZE_SUBSTEPS; s++) {
        if (inside)
            dc_point_push(env->world, env->world->own, d);
        else
            mj_step(dc_model_of(env), d);
    }
}

static void observe(const dc_env *env, double *obs) {
    memcpy(obs, env->qpos, 2 * sizeof *obs);
}

static void reset(dc_env *env, int task, double *goal) {
    dc_maze_begin(env, &robot, dc_maze_task_of(&env->world->spec, task), goal);
}

// ---- data ----

// At full speed.
static void act(const dc_gen *gen, dc_env *env, const double way[2], double *action) {
    (void)gen, (void)env;
    memcpy(action, way, 2 * sizeof *way);
}

static dc_status play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    return dc_maze_play(gen, env, out, &robot, act);
}

const dc_sim dc_point_sim = {
    .engine = &dc_mujoco,
    .substeps = DC_MAZE_SUBSTEPS,
    .model = model,
    .prepare = prepare,
    .release = release,
    .reset = reset,
    .set = dc_maze_set,
    .step = step,
    .after = dc_maze_jump,
    .observe = observe,
    .outcome = dc_maze_outcome,
    .physics = dc_maze_physics,
    .aim = dc_maze_aim,
    .paint = dc_maze_paint,
    .play = play,
};
