// Mazes in motion: resets, goals, success and teleports, as OGBench does it and in the same order of
// draws. What moves in them is in point/, walker/ and soccer/.
//
// One mjModel is shared by all copies and never written, so that threads need no copies of their
// own. One habit of the Python code does write to its model and is left out because nothing that is
// simulated depends on it: the position of the target's marker (it touches nothing).
#include "env/maze/robots.h"
#include "env/mujoco/engine.h"

#include <math.h>
#include <string.h>

enum { ACT_MAX = 32, HIDDEN = 5 };
static const double reset_noise = 0.1, pad_reach = 1.5;

static const dc_env_spec *spec_of(const dc_env *env) {
    return &env->world->spec;
}

// ---- judging ----

static bool within(const double *a, const double *b, double reach) {
    double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(fma(y, y, x * x)) <= reach;
}

dc_outcome dc_maze_outcome(const dc_env *env) {
    const dc_env_spec *spec = spec_of(env);
    const dc_env_family *f = spec->family;
    bool there = within(env->qpos + f->goal_at, env->goal, f->tolerance);
    return (dc_outcome){there, (there ? 1.0 : 0.0) - (spec->task ? 1.0 : 0.0)};
}

// ---- stepping ----

// Near an entrance, the first in the list, the robot comes out at an exit drawn by lot.
void dc_maze_jump(dc_env *env) {
    const dc_maze *maze = spec_of(env)->maze;
    for (int k = 0; k < maze->in_count; k++) {
        double xy[2];
        dc_maze_xy(maze->in[k], xy);
        if (!within(env->qpos, xy, pad_reach)) continue;
        dc_maze_xy(maze->out[env->draws.below(env->draws.ctx, maze->out_count)], env->qpos);
        mj_forward(dc_model_of(env), env->data);
        return;
    }
}

void dc_maze_physics(dc_env *env, const double *action, int steps) {
    const mjModel *m = dc_model_of(env);
    memcpy(env->data->ctrl, action, (size_t)m->nu * sizeof *action);
    for (int k = 0; k < steps * DC_MAZE_SUBSTEPS; k++)
        mj_step(m, env->data);
}

// ---- states and resets ----

void dc_maze_set(dc_env *env, const double *qpos, const double *qvel, const double *extra) {
    const mjModel *m = dc_model_of(env);
    (void)extra;
    mj_resetData(m, env->data);
    memcpy(env->qpos, qpos, (size_t)m->nq * sizeof *qpos);
    memcpy(env->qvel, qvel, (size_t)m->nv * sizeof *qvel);
    mj_forward(m, env->data);
}

void dc_maze_near(dc_env *env, dc_cell cell, double xy[2]) {
    dc_maze_xy(cell, xy);
    xy[0] += dc_env_uniform(env, -1, 1);
    xy[1] += dc_env_uniform(env, -1, 1);
}

void dc_maze_pose(dc_env *env) {
    const mjModel *m = dc_model_of(env);
    mj_resetData(m, env->data);
    for (int k = 0; k < m->nq; k++)
        env->qpos[k] = m->qpos0[k] + dc_env_uniform(env, -reset_noise, reset_noise);
    for (int k = 0; k < m->nv; k++)
        env->qvel[k] = reset_noise * env->draws.normal(env->draws.ctx);
    mj_forward(m, env->data);
}

static void move_to(dc_env *env, const dc_maze_robot *r, const double xy[2], const double ball[2]) {
    memcpy(env->qpos, xy, 2 * sizeof *xy);
    if (r->ball) memcpy(env->qpos + r->ball, ball, 2 * sizeof *ball);
    mj_forward(dc_model_of(env), env->data);
}

// The goal's observation has the posture of a robot that has moved at random for a while.
static void show_goal(dc_env *env, const dc_maze_robot *robot, double *goal) {
    const dc_sim *sim = dc_sim_of(env);
    const dc_env_family *f = spec_of(env)->family;
    double action[ACT_MAX] = {0};
    bool floats = env->float_actions;
    robot->pose(env);
    env->float_actions = true; // random actions are float32, whatever the policy's are
    for (int s = 0; s < f->settle; s++) {
        for (int k = 0; k < f->act; k++)
            action[k] = (double)(float)dc_env_uniform(env, -1, 1);
        sim->step(env, action);
    }
    env->float_actions = floats;
    move_to(env, robot, env->goal, env->goal);
    if (!goal) return;
    if (spec_of(env)->oracle)
        memcpy(goal, env->goal, 2 * sizeof *env->goal);
    else
        dc_goal_is_now(env, goal);
}

void dc_maze_begin(dc_env *env, const dc_maze_robot *robot, const dc_maze_task *task,
                   double *goal) {
    double start[2], ball[2] = {0, 0};
    dc_maze_near(env, task->start, start);
    if (robot->ball) dc_maze_near(env, task->ball, ball);
    if (spec_of(env)->task)
        dc_maze_xy(task->goal, env->goal);
    else
        dc_maze_near(env, task->goal, env->goal);
    show_goal(env, robot, goal);
    robot->pose(env);
    move_to(env, robot, start, ball);
}

// ---- pictures ----

// From above.
void dc_maze_aim(const dc_env_spec *spec, mjvCamera *camera) {
    const dc_maze *maze = spec->maze;
    camera->lookat[0] = 2 * (maze->cols - 3);
    camera->lookat[1] = 2 * (maze->rows - 3);
    camera->distance = 5 * (maze->cols - 2);
    camera->elevation = -90;
}

void dc_maze_paint(const dc_scene *scene) {
    const dc_states *s = scene->states;
    int target = mj_name2id(scene->model, mjOBJ_GEOM, "target");
    if (target < 0) return;
    scene->model->geom_group[target] = s->aimed ? 0 : HIDDEN;
    memcpy(scene->model->geom_pos + (ptrdiff_t)3 * target, s->target, 2 * sizeof *s->target);
}
