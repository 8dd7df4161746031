// The mazes in motion: reset, step, observe, judge, as OGBench does it and in the same order of
// draws. Tables with an arm come through the same functions and go on to arm.c.
//
// One mjModel is shared by all copies and never written, so that threads need no copies of their
// own. Two habits of the Python code do write to its model and are left out because nothing that is
// simulated depends on them: the position of the target's marker (it touches nothing), and the
// humanoid's reset with actuation switched off (its controls are zero then, which is the same).
//
// A point that is not near a wall needs no physics at all. It is moved by its action, its speed is
// set to zero, and five steps of MuJoCo then leave it exactly where it is: no force acts along the
// plane, and the solver's answer is exactly zero. That is most of the steps, and skipping the
// solver there makes the point many times as fast; near walls MuJoCo decides as ever. The parity
// test compares both kinds of steps with the Python package, to the bit.
#include "env/mujoco/model.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSTEPS = 5, ACT_MAX = 32, LIMBS = 4, TRIES = 10000 };
static const double reset_noise = 0.1, pad_reach = 1.5, point_speed = 0.2, point_radius = 0.7;

// ---- worlds ----

static void look_at_walls(void *ctx) {
    dc_point_prepare(ctx);
}

static dc_status prepare_point(dc_world *w) {
    DC_TRY(dc_mujoco_guard(look_at_walls, w, NULL));
    if (w->touch.dim) return DC_OK;
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", w->spec.name);
}

static dc_status build_world(dc_world *w) {
    if (w->spec.family->robot == DC_ARM) {
        DC_TRY(dc_arm_compose(&w->spec, true, &w->model));
        return dc_arm_prepare(w);
    }
    DC_TRY(dc_model_compose(&w->spec, &w->model));
    return w->spec.family->robot == DC_POINT ? prepare_point(w) : DC_OK;
}

dc_status dc_world_new(dc_world **world, const dc_env_spec *spec) {
    *world = NULL;
    dc_world *w = calloc(1, sizeof *w);
    if (!w) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", spec->name);
    w->spec = *spec;
    dc_status status = build_world(w);
    if (status == DC_OK)
        *world = w;
    else
        dc_world_free(w);
    return status;
}

void dc_world_free(dc_world *world) {
    if (!world) return;
    mj_deleteModel(world->model);
    mj_deleteModel(world->arm);
    for (int k = 0; k < DC_LOCKS; k++)
        mj_deleteModel(world->locks[k]);
    free(world);
}

const dc_env_spec *dc_world_spec(const dc_world *world) {
    return &world->spec;
}

static dc_status save_model(const mjModel *model, const char *path) {
    int size = mj_sizeModel(model);
    void *bytes = malloc((size_t)size);
    if (!bytes) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a model of %d bytes", size);
    mj_saveModel(model, NULL, bytes, size);
    dc_status status = dc_file_write(path, bytes, (size_t)size);
    free(bytes);
    return status;
}

dc_status dc_world_save(const dc_world *world, const char *path) {
    if (world->spec.family->robot != DC_ARM) return save_model(world->model, path);
    mjModel *whole;
    DC_TRY(dc_arm_compose(&world->spec, false, &whole));
    dc_status status = save_model(whole, path);
    mj_deleteModel(whole);
    return status;
}

// ---- copies ----

static const dc_env_spec *spec_of(const dc_env *env) {
    return &env->world->spec;
}

static bool has_arm(const dc_env *env) {
    return spec_of(env)->family->robot == DC_ARM;
}

static const mjModel *model_of(const dc_env *env) {
    return env->world->model;
}

static void make_data(void *ctx) {
    dc_env *env = ctx;
    if (has_arm(env)) {
        env->arm = mj_makeData(env->world->arm);
        if (!env->arm) return;
    }
    env->data = mj_makeData(model_of(env));
    if (env->data) mj_forward(model_of(env), env->data);
}

dc_status dc_env_new(dc_env *env, const dc_world *world, dc_draws draws) {
    *env = (dc_env){.world = world, .draws = draws};
    dc_status status = dc_mujoco_guard(make_data, env, NULL);
    if (status != DC_OK) dc_env_free(env);
    DC_TRY(status);
    if (!env->data)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for the state of %s", world->spec.name);
    return DC_OK;
}

void dc_env_free(dc_env *env) {
    mj_deleteData(env->data);
    mj_deleteData(env->arm);
    env->data = env->arm = NULL;
}

const double *dc_env_qpos(const dc_env *env) {
    return env->data->qpos;
}

const double *dc_env_qvel(const dc_env *env) {
    return env->data->qvel;
}

// ---- observing and judging ----

// Position of a limb in the torso's frame: R^T (x - x_torso). The reference's BLAS sums by fused
// steps in this order on processors that have them, and so the last bit agrees.
static void put_limb(const mjData *d, int body, double *out) {
    const double *r = d->xmat + 9, *torso = d->xpos + 3, *limb = d->xpos + 3 * (ptrdiff_t)body;
    double v[3] = {limb[0] - torso[0], limb[1] - torso[1], limb[2] - torso[2]};
    for (int c = 0; c < 3; c++)
        out[c] = fma(v[2], r[6 + c], fma(v[1], r[3 + c], v[0] * r[c]));
}

// xy | hinges | head's height | limbs | torso's vertical | velocity of the centre of mass | qvel
static void observe_humanoid(const mjModel *m, const mjData *d, double *obs) {
    static const int limbs[LIMBS] = {16, 10, 13, 7}; // left hand, left foot, right hand, right foot
    size_t hinges = (size_t)m->nq - 7;
    memcpy(obs, d->qpos, 2 * sizeof *obs);
    memcpy(obs + 2, d->qpos + 7, hinges * sizeof *obs);
    double *p = obs + 2 + hinges;
    *p++ = d->xpos[2 * 3 + 2];
    for (int k = 0; k < LIMBS; k++, p += 3)
        put_limb(d, limbs[k], p);
    memcpy(p, d->xmat + 9 + 6, 3 * sizeof *p);
    memcpy(p + 3, d->sensordata, 3 * sizeof *p);
    memcpy(p + 6, d->qvel, (size_t)m->nv * sizeof *p);
}

void dc_env_observe(const dc_env *env, double *obs) {
    const mjModel *m = model_of(env);
    dc_robot robot = spec_of(env)->family->robot;
    if (robot == DC_HUMANOID) {
        observe_humanoid(m, env->data, obs);
        return;
    }
    if (robot == DC_ARM) {
        dc_arm_observe(env, obs);
        return;
    }
    memcpy(obs, env->data->qpos, (size_t)m->nq * sizeof *obs);
    if (robot == DC_ANT) memcpy(obs + m->nq, env->data->qvel, (size_t)m->nv * sizeof *obs);
}

static bool within(const double *a, const double *b, double reach) {
    double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(fma(y, y, x * x)) <= reach;
}

dc_outcome dc_env_judge(const dc_env *env) {
    if (has_arm(env)) return dc_arm_judge(env);
    const dc_env_spec *spec = spec_of(env);
    bool there =
        within(env->data->qpos + spec->family->goal_at, env->goal, spec->family->tolerance);
    return (dc_outcome){there, (there ? 1.0 : 0.0) - (spec->task ? 1.0 : 0.0)};
}

// ---- stepping ----

static bool point_is_inside(const dc_maze *maze, const double *xy) {
    return xy[0] > -6 && xy[1] > -6 && xy[0] < 4.0 * maze->cols && xy[1] < 4.0 * maze->rows;
}

// Whether no wall is within the point's radius of a place inside the map.
static bool point_is_free(const dc_maze *maze, const double *xy) {
    dc_cell at = dc_maze_cell(xy);
    for (int k = 0; k < 9; k++) {
        dc_cell cell = {at.i + k / 3 - 1, at.j + k % 3 - 1};
        if (!dc_maze_wall(maze, cell)) continue;
        double centre[2];
        dc_maze_xy(cell, centre);
        double x = fmax(fabs(xy[0] - centre[0]) - 2, 0), y = fmax(fabs(xy[1] - centre[1]) - 2, 0);
        if (x * x + y * y < point_radius * point_radius + 1e-6) return false;
    }
    return true;
}

static void step_point(dc_env *env, const double *action) {
    mjData *d = env->data;
    for (int k = 0; k < 2; k++) {
        double move = env->float_actions ? (double)((float)point_speed * (float)action[k])
                                         : point_speed * action[k];
        d->qpos[k] += move;
        d->qvel[k] = 0;
    }
    const dc_maze *maze = spec_of(env)->maze;
    bool inside = point_is_inside(maze, d->qpos);
    if (inside && point_is_free(maze, d->qpos)) {
        d->qacc_warmstart[0] = d->qacc_warmstart[1] = 0;
        return;
    }
    for (int s = 0; s < SUBSTEPS; s++) {
        if (inside)
            dc_point_step(env->world, d);
        else
            mj_step(model_of(env), d);
    }
}

static void step_ant(dc_env *env, const double *action) {
    const mjModel *m = model_of(env);
    memcpy(env->data->ctrl, action, (size_t)m->nu * sizeof *action);
    for (int s = 0; s < SUBSTEPS; s++)
        mj_step(m, env->data);
}

// Second half of a step, whole steps, first half of the next: kinematics and sensors are fresh when
// observed.
static void step_humanoid(dc_env *env, const double *action) {
    const mjModel *m = model_of(env);
    memcpy(env->data->ctrl, action, (size_t)m->nu * sizeof *action);
    mj_step2(m, env->data);
    for (int s = 1; s < SUBSTEPS; s++)
        mj_step(m, env->data);
    mj_step1(m, env->data);
}

// One control step of the robot, without anything of the maze around it.
static void step_robot(dc_env *env, const double *action) {
    switch (spec_of(env)->family->robot) {
    case DC_POINT:
        step_point(env, action);
        break;
    case DC_ANT:
        step_ant(env, action);
        break;
    case DC_HUMANOID:
        step_humanoid(env, action);
        break;
    case DC_ARM:
        dc_arm_step(env, action);
        break;
    }
}

// Near an entrance, the first in the list, the robot comes out at an exit drawn by lot.
static void jump(dc_env *env) {
    const dc_maze *maze = spec_of(env)->maze;
    for (int k = 0; maze && k < maze->in_count; k++) {
        double xy[2];
        dc_maze_xy(maze->in[k], xy);
        if (!within(env->data->qpos, xy, pad_reach)) continue;
        dc_maze_xy(maze->out[env->draws.below(env->draws.ctx, maze->out_count)], env->data->qpos);
        mj_forward(model_of(env), env->data);
        return;
    }
}

typedef struct stepping {
    dc_env *env;
    const double *action; // (act)
    double *obs;          // (obs)
    dc_outcome *outcome;
    int repeat; // of the bare physics
} stepping;

static void step(void *ctx) {
    stepping *s = ctx;
    bool before = spec_of(s->env)->task > 0; // single-task form judges the state that was acted on
    if (before) *s->outcome = dc_env_judge(s->env);
    step_robot(s->env, s->action);
    dc_env_observe(s->env, s->obs);
    if (!before) *s->outcome = dc_env_judge(s->env);
    jump(s->env);
}

dc_status dc_env_step(dc_env *env, const double *action, double *obs, dc_outcome *outcome) {
    return dc_mujoco_guard(step, &(stepping){env, action, obs, outcome, 1}, env->data);
}

static void bare(void *ctx) {
    stepping *s = ctx;
    const mjModel *m = model_of(s->env);
    if (has_arm(s->env)) { // whose controls are no actions: they stay
        dc_arm_physics(s->env, s->repeat);
        return;
    }
    memcpy(s->env->data->ctrl, s->action, (size_t)m->nu * sizeof *s->action);
    for (int k = 0; k < s->repeat * SUBSTEPS; k++)
        mj_step(m, s->env->data);
}

dc_status dc_env_physics(dc_env *env, const double *action, int steps) {
    return dc_mujoco_guard(bare, &(stepping){env, action, NULL, NULL, steps}, env->data);
}

// ---- states and resets ----

typedef struct placing {
    dc_env *env;
    const double *qpos, *qvel, *buttons; // (nq), (nv), (buttons)
    const dc_maze_task *task;
    const dc_manip_task *manip;
    double *goal; // (spec.goal)
} placing;

static void set(void *ctx) {
    placing *p = ctx;
    const mjModel *m = model_of(p->env);
    if (has_arm(p->env)) {
        dc_arm_set(p->env, p->qpos, p->qvel, p->buttons);
        return;
    }
    mj_resetData(m, p->env->data);
    memcpy(p->env->data->qpos, p->qpos, (size_t)m->nq * sizeof *p->qpos);
    memcpy(p->env->data->qvel, p->qvel, (size_t)m->nv * sizeof *p->qvel);
    mj_forward(m, p->env->data);
}

dc_status dc_env_set(dc_env *env, const double *qpos, const double *qvel, const double *buttons) {
    placing p = {.env = env, .qpos = qpos, .qvel = qvel, .buttons = buttons};
    return dc_mujoco_guard(set, &p, env->data);
}

static double draw_uniform(dc_env *env, double low, double high) {
    return env->draws.uniform(env->draws.ctx, low, high);
}

void dc_env_near(dc_env *env, dc_cell cell, double xy[2]) {
    dc_maze_xy(cell, xy);
    xy[0] += draw_uniform(env, -1, 1);
    xy[1] += draw_uniform(env, -1, 1);
}

// A posture by lot; true if it touches nothing.
static bool try_humanoid(dc_env *env) {
    const mjModel *m = model_of(env);
    mjData *d = env->data;
    double sum = 0, *quat = d->qpos + 3;
    for (int k = 0; k < 4; k++)
        quat[k] = draw_uniform(env, 0, 1);
    for (int k = 0; k < 4; k++)
        sum = fma(quat[k], quat[k], sum);
    for (int k = 0; k < 4; k++)
        quat[k] /= sqrt(sum);
    for (int k = 0; k < m->nv; k++)
        d->qvel[k] = reset_noise * env->draws.normal(env->draws.ctx);
    for (int j = 1; j < m->njnt; j++) {
        const double *range = m->jnt_range + 2 * (ptrdiff_t)j;
        d->qpos[6 + j] = draw_uniform(env, range[0], range[1]);
    }
    mj_forward(m, d);
    return d->ncon == 0;
}

// The robot at rest, shaken a little.
static void pose_robot(dc_env *env) {
    const mjModel *m = model_of(env);
    mj_resetData(m, env->data);
    if (spec_of(env)->family->robot == DC_HUMANOID) {
        for (int t = 0; t < TRIES && !try_humanoid(env); t++) {
        }
        return;
    }
    for (int k = 0; k < m->nq; k++)
        env->data->qpos[k] = m->qpos0[k] + draw_uniform(env, -reset_noise, reset_noise);
    for (int k = 0; k < m->nv; k++)
        env->data->qvel[k] = reset_noise * env->draws.normal(env->draws.ctx);
    mj_forward(m, env->data);
}

static void move_to(dc_env *env, const double robot[2], const double ball[2]) {
    memcpy(env->data->qpos, robot, 2 * sizeof *robot);
    if (spec_of(env)->family->ball)
        memcpy(env->data->qpos + spec_of(env)->family->goal_at, ball, 2 * sizeof *ball);
    mj_forward(model_of(env), env->data);
}

// The goal's observation has the posture of a robot that has moved at random for a while.
static void show_goal(dc_env *env, double *goal) {
    double action[ACT_MAX] = {0};
    bool floats = env->float_actions;
    pose_robot(env);
    env->float_actions = true; // random actions are float32, whatever the policy's are
    for (int s = 0; s < spec_of(env)->family->settle; s++) {
        for (int k = 0; k < spec_of(env)->family->act; k++)
            action[k] = (double)(float)draw_uniform(env, -1, 1);
        step_robot(env, action);
    }
    env->float_actions = floats;
    move_to(env, env->goal, env->goal);
    if (!goal) return;
    if (spec_of(env)->oracle)
        memcpy(goal, env->goal, 2 * sizeof *env->goal);
    else
        dc_env_observe(env, goal);
}

static void reset(void *ctx) {
    placing *p = ctx;
    dc_env *env = p->env;
    double start[2], ball[2] = {0, 0};
    if (p->manip) {
        dc_arm_reset(env, p->manip, p->goal);
        return;
    }
    dc_env_near(env, p->task->start, start);
    if (spec_of(env)->family->ball) dc_env_near(env, p->task->ball, ball);
    if (spec_of(env)->task)
        dc_maze_xy(p->task->goal, env->goal);
    else
        dc_env_near(env, p->task->goal, env->goal);
    show_goal(env, p->goal);
    pose_robot(env);
    move_to(env, start, ball);
}

dc_status dc_env_reset(dc_env *env, int task, double *goal) {
    DC_CHECK(task >= 1 && task <= DC_TASKS);
    if (spec_of(env)->task)
        task = spec_of(env)->task; // as the reference does, whatever is asked for
    if (!has_arm(env)) return dc_env_begin(env, &spec_of(env)->tasks[task - 1], goal);
    placing p = {.env = env, .manip = &spec_of(env)->manip[task - 1], .goal = goal};
    return dc_mujoco_guard(reset, &p, env->data);
}

dc_status dc_env_begin(dc_env *env, const dc_maze_task *task, double *goal) {
    return dc_mujoco_guard(reset, &(placing){.env = env, .task = task, .goal = goal}, env->data);
}

// ---- data collection ----

static void collect(void *ctx) {
    dc_arm_collect(ctx);
}

dc_status dc_env_collect(dc_env *env) {
    DC_CHECK(has_arm(env));
    return dc_mujoco_guard(collect, env, env->data);
}

typedef struct aiming {
    dc_env *env;
    double stack;
} aiming;

static void aim(void *ctx) {
    aiming *a = ctx;
    dc_arm_aim(a->env, a->stack);
}

dc_status dc_env_aim(dc_env *env, double stack) {
    return dc_mujoco_guard(aim, &(aiming){env, stack}, env->data);
}

void dc_env_see(const dc_env *env, dc_sight *sight) {
    dc_arm_see(env, sight);
}
