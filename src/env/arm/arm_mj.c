// Tables with a robot arm in motion: control, observation, buttons and locks, success and reset, as
// OGBench does it and in the same order of draws.
//
// Kinematics are refreshed where the reference refreshes them and nowhere else. With cubes alone
// nothing does so after the physics of a step, hence the gripper's position, in the observation and in
// the next control, is the one at the start of the last physics step; with buttons it is fresh. Where
// the reference then computes forces as well, which nobody reads before the next step computes them
// anew, kinematics alone are refreshed.
//
// Marks of targets touch nothing and are not moved.
#include "env/arm/motion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JOINTS = 6, DRIVER = 6, FINGERS = 6, SUBSTEPS = 25, ACTIONS = 5 };
static const double pi = 3.141592653589793, press = -0.02, cube_height = 0.02;
static const double home[JOINTS] = {-1.5707963267948966, -1.5707963267948966, 1.5707963267948966,
                                    -1.5707963267948966, -1.5707963267948966, 0};
static const double down[4] = {0, 1, 0, 0};
static const double workspace[2][3] = {{0.25, -0.35, 0.02}, {0.6, 0.35, 0.35}};

// ---- facts ----

const mjModel *dc_arm_now(const dc_env *env) {
    const uint8_t *on = dc_arm_state_of(env)->buttons;
    if (!dc_arm_of(env)->slides) return env->world->model;
    return dc_arm_world_of(env)->locks[on[0] | on[1] << 1];
}

// Where things begin in qpos and qvel.
double *dc_arm_cube(const dc_env *env, int k) {
    return env->qpos + DC_ARM_THINGS + (ptrdiff_t)DC_ARM_CUBE * k;
}

static double *slider_at(const dc_env *env, int k) { // buttons, then drawer and window
    return dc_arm_cube(env, dc_arm_of(env)->cubes) + k;
}

static double slider_speed(const dc_env *env, int k) {
    return env->qvel[DC_ARM_THINGS + 6 * dc_arm_of(env)->cubes + k];
}

double *dc_arm_slides(const dc_env *env) {
    return slider_at(env, dc_arm_of(env)->buttons);
}

static double clip(double x, double low, double high) { // NaN stays
    return x < low ? low : x > high ? high : x;
}

// ---- copies ----

static bool open_state(dc_env *env) {
    dc_arm_state *state = dc_arm_state_of(env);
    state->ik = mj_makeData(dc_arm_world_of(env)->alone);
    state->touch = calloc(1, sizeof *state->touch);
    return state->ik && state->touch;
}

static void close_state(dc_env *env) {
    mj_deleteData(dc_arm_state_of(env)->ik);
    free(dc_arm_state_of(env)->touch);
}

// ---- observing and judging ----

double dc_arm_opening(const dc_env *env) {
    return clip(env->data->qpos[DRIVER] / 0.8, 0, 1);
}

double dc_arm_contact(const dc_env *env) {
    const double *force = env->data->cfrc_ext + (ptrdiff_t)6 * dc_arm_world_of(env)->pad;
    double sum = 0;
    for (int k = 0; k < FINGERS; k++)
        sum += force[k] * force[k];
    return clip(sqrt(sum) / 50, 0, 1);
}

static double *put_place(double *out, const double xyz[3]) {
    static const double centre[3] = {0.425, 0, 0};
    for (int k = 0; k < 3; k++)
        *out++ = (xyz[k] - centre[k]) * 10;
    return out;
}

static double *put_yaw(double *out, const double q[4]) {
    double yaw = dc_yaw_of(q);
    *out++ = cos(yaw);
    *out++ = sin(yaw);
    return out;
}

// joints | their speeds | position and yaw of the gripper | its opening | force on a finger
static double *put_arm(const dc_env *env, double *out) {
    const mjData *d = env->data;
    memcpy(out, d->qpos, JOINTS * sizeof *out);
    memcpy(out + JOINTS, d->qvel, JOINTS * sizeof *out);
    dc_pose pinch = dc_arm_site(d, dc_arm_world_of(env)->pinch);
    out = put_yaw(put_place(out + (ptrdiff_t)2 * JOINTS, pinch.p), pinch.q);
    *out++ = dc_arm_opening(env) * 3;
    *out++ = dc_arm_contact(env);
    return out;
}

static void observe(const dc_env *env, double *obs) {
    const dc_arm_table *t = dc_arm_of(env);
    obs = put_arm(env, obs);
    for (int k = 0; k < t->cubes; k++) {
        const double *cube = dc_arm_cube(env, k);
        obs = put_place(obs, cube);
        memcpy(obs, cube + 3, 4 * sizeof *obs);
        obs = put_yaw(obs + 4, cube + 3);
    }
    for (int k = 0; k < t->buttons; k++) {
        *obs++ = !dc_arm_state_of(env)->buttons[k];
        *obs++ = dc_arm_state_of(env)->buttons[k];
        *obs++ = *slider_at(env, k) * 120;
        *obs++ = slider_speed(env, k);
    }
    for (int k = 0; k < t->slides; k++) {
        *obs++ = dc_arm_slides(env)[k] * (k == 0 ? 18 : 15);
        *obs++ = slider_speed(env, t->buttons + k);
    }
}

// The goal as a policy sees it: the observation, or the columns of it that count.
static void put_goal(dc_env *env, double *goal) {
    double obs[DC_ARM_OBS_MAX];
    const dc_env_family *f = env->world->spec.family;
    if (!env->world->spec.oracle) {
        dc_goal_is_now(env, goal);
        return;
    }
    observe(env, obs);
    for (int p = 0; p < DC_PICKS_MAX; p++)
        for (int t = 0; t < f->picks[p].times; t++)
            for (int k = 0; k < f->picks[p].count; k++)
                *goal++ = obs[f->picks[p].first + t * f->picks[p].step + k];
}

// Whether things are as the goal wants them, one by one.
static bool cube_holds(const dc_env *env, int k) {
    const double *is = dc_arm_cube(env, k), *want = env->goal + (ptrdiff_t)3 * k;
    double x = is[0] - want[0], y = is[1] - want[1], z = is[2] - want[2];
    return sqrt(x * x + y * y + z * z) <= env->world->spec.family->tolerance;
}

static bool button_holds(const dc_env *env, int k) {
    return dc_arm_state_of(env)->buttons[k] == env->goal[3 * dc_arm_of(env)->cubes + k];
}

static bool slide_holds(const dc_env *env, int k) {
    const dc_arm_table *t = dc_arm_of(env);
    return fabs(dc_arm_slides(env)[k] - env->goal[3 * t->cubes + t->buttons + k]) <=
           env->world->spec.family->tolerance;
}

// How many of the task's conditions hold, of family->cubes + buttons + slides.
static int count_holding(const dc_env *env) {
    const dc_arm_table *t = dc_arm_of(env);
    int holding = 0;
    for (int k = 0; k < t->cubes; k++)
        holding += cube_holds(env, k);
    for (int k = 0; k < t->buttons; k++)
        holding += button_holds(env, k);
    for (int k = 0; k < t->slides; k++)
        holding += slide_holds(env, k);
    return holding;
}

static int conditions(const dc_arm_table *t) {
    return t->cubes + t->buttons + t->slides;
}

static bool succeeds(const dc_env *env) {
    switch (dc_arm_state_of(env)->aim.at) {
    case DC_AIM_CUBE:
        return cube_holds(env, dc_arm_state_of(env)->aim.cube);
    case DC_AIM_BUTTON:
        return button_holds(env, dc_arm_state_of(env)->aim.button);
    case DC_AIM_DRAWER:
        return slide_holds(env, 0);
    case DC_AIM_WINDOW:
        return slide_holds(env, 1);
    case DC_AIM_TASK:
        break;
    }
    return count_holding(env) == conditions(dc_arm_of(env));
}

static dc_outcome outcome(const dc_env *env) {
    double reward = dc_arm_state_of(env)->success ? 1 : 0;
    if (env->world->spec.task) reward = count_holding(env) - conditions(dc_arm_of(env));
    return (dc_outcome){dc_arm_state_of(env)->success, reward};
}

// ---- control ----

// An action in [-1, 1] as metres, radians and opening.
static void scale_action(const dc_env *env, const double *action, double out[ACTIONS]) {
    static const double range[ACTIONS] = {0.05, 0.05, 0.05, 0.3, 1.0};
    for (int k = 0; k < ACTIONS; k++) {
        double half =
            env->float_actions ? (double)(0.5F * ((float)action[k] + 1.0F)) : 0.5 * (action[k] + 1);
        out[k] = half * (range[k] - -range[k]) + -range[k];
    }
}

// The orientation that looks down, turned about z.
static void look_down(double yaw, double out[4]) {
    double turn[4];
    dc_quat_yaw(yaw, turn);
    dc_quat_mul(turn, down, out);
}

// Joint angles that bring the gripper to a pose.
static void reach(const dc_env *env, const dc_pose *pinch, const double *from, double *joints) {
    dc_pose flange = dc_pose_mul(pinch, &dc_arm_world_of(env)->pinch_to_flange);
    dc_arm_solve(dc_arm_world_of(env), dc_arm_state_of(env)->ik, &flange, from, joints);
}

static void control(dc_env *env, const double *action) {
    static const double up[4] = {0, -1, -0.0, -0.0};
    double a[ACTIONS], q[4], turn[4];
    mjData *d = env->data;
    scale_action(env, action, a);
    dc_pose pinch = dc_arm_site(d, dc_arm_world_of(env)->pinch), to;
    for (int k = 0; k < 3; k++)
        to.p[k] = clip(pinch.p[k] + a[k], workspace[0][k], workspace[1][k]);
    dc_quat_yaw(a[3], q);
    dc_quat_yaw(dc_yaw_of(pinch.q), turn);
    dc_quat_mul(q, turn, q);
    dc_quat_mul(q, up, q);
    look_down(clip(dc_yaw_of(q), -pi, pi), to.q);
    double opening = clip(dc_arm_opening(env) + a[4], 0, 1);
    reach(env, &to, d->qpos, d->ctrl);
    d->ctrl[JOINTS] = 255 * opening;
}

// ---- what happens around the physics ----

static void set_cube(dc_env *env, int k, const double xyz[3], const double q[4]) {
    memcpy(dc_arm_cube(env, k), xyz, 3 * sizeof *xyz);
    memcpy(dc_arm_cube(env, k) + 3, q, 4 * sizeof *q);
}

// A cube somewhere on the table.
void dc_arm_throw(dc_env *env, int k) {
    const dc_reach *r = dc_arm_reach(dc_arm_of(env));
    double xyz[3] = {0, 0, cube_height}, q[4];
    for (int c = 0; c < 2; c++)
        xyz[c] = dc_env_uniform(env, r->things[0][c], r->things[1][c]);
    dc_quat_yaw(dc_env_uniform(env, 0, 2 * pi), q);
    set_cube(env, k, xyz, q);
}

// A cube that was squeezed out of a scene comes back.
static void rescue(dc_env *env) {
    bool lost = false;
    for (int k = 0; k < 3; k++) {
        double x = dc_arm_cube(env, 0)[k];
        lost = lost || x <= workspace[0][k] - 0.2 || x >= workspace[1][k] + 0.2;
    }
    if (!lost) return;
    dc_arm_throw(env, 0);
    memset(env->data->qvel + DC_ARM_THINGS, 0, 6 * sizeof *env->data->qvel);
    mj_forward(dc_arm_now(env), env->data);
}

static void toggle(dc_env *env, int button) {
    const dc_arm_table *t = dc_arm_of(env);
    static const int around[5][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    if (!t->cols) {
        dc_arm_state_of(env)->buttons[button] ^= 1;
        return;
    }
    for (int k = 0; k < 5; k++) {
        int row = button / t->cols + around[k][0], col = button % t->cols + around[k][1];
        if (row >= 0 && col >= 0 && row < t->buttons / t->cols && col < t->cols)
            dc_arm_state_of(env)->buttons[row * t->cols + col] ^= 1;
    }
}

static void remember(const dc_env *env, double before[DC_BUTTONS_MAX]) {
    for (int k = 0; k < dc_arm_of(env)->buttons; k++)
        before[k] = *slider_at(env, k);
}

// Buttons that went down toggle, locks follow, and success is told.
static void settle(dc_env *env, const double before[DC_BUTTONS_MAX]) {
    const dc_arm_table *t = dc_arm_of(env);
    if (t->slides && dc_arm_state_of(env)->aim.at == DC_AIM_TASK) rescue(env);
    for (int k = 0; k < t->buttons; k++)
        if (before[k] > press && *slider_at(env, k) <= press) toggle(env, k);
    if (t->buttons) mj_kinematics(dc_arm_now(env), env->data);
    dc_arm_state_of(env)->success = succeeds(env);
}

// Controls are no actions: in the bare physics they stay.
static void physics(dc_env *env, const double *action, int steps) {
    (void)action;
    for (int s = 0; s < steps * SUBSTEPS; s++)
        mj_step(dc_arm_now(env), env->data);
}

static void step(dc_env *env, const double *action) {
    double before[DC_BUTTONS_MAX];
    control(env, action);
    remember(env, before);
    dc_touch_steps(dc_arm_state_of(env)->touch, &dc_arm_world_of(env)->touch, dc_arm_now(env),
                   env->data, SUBSTEPS);
    mj_rnePostConstraint(dc_arm_now(env), env->data); // forces on the fingers
    settle(env, before);
}

// ---- resets ----

static void set_buttons(dc_env *env, const char *states) {
    if (!states) return;
    for (int k = 0; k < dc_arm_of(env)->buttons; k++)
        dc_arm_state_of(env)->buttons[k] = states[k] == '1';
    mj_forward(dc_arm_now(env), env->data);
}

// The gripper somewhere above the table.
void dc_arm_place(dc_env *env) {
    const dc_reach *r = dc_arm_reach(dc_arm_of(env));
    dc_pose pinch;
    for (int k = 0; k < 3; k++)
        pinch.p[k] = dc_env_uniform(env, r->arm[0][k], r->arm[1][k]);
    look_down(dc_env_uniform(env, -pi, pi), pinch.q);
    reach(env, &pinch, home, env->data->qpos);
    mj_forward(dc_arm_now(env), env->data);
}

// Which of the task's cubes each cube stands for.
static void draw_order(dc_env *env, int order[DC_CUBES_MAX]) {
    int n = dc_arm_of(env)->cubes, left[DC_CUBES_MAX];
    for (int k = 0; k < n; k++)
        left[k] = k;
    for (int k = 0; k < n; k++) {
        int pick =
            n - k > 1 && !env->world->spec.task ? env->draws.below(env->draws.ctx, n - k) : 0;
        order[k] = left[pick];
        memmove(left + pick, left + pick + 1, (size_t)(n - k - pick - 1) * sizeof *left);
    }
}

static void set_target(dc_env *env, const dc_things *want, const int order[DC_CUBES_MAX]) {
    const dc_arm_table *t = dc_arm_of(env);
    double *target = env->goal;
    for (int k = 0; k < t->cubes; k++, target += 3)
        memcpy(target, want->cubes[order[k]], 3 * sizeof *target);
    for (int k = 0; k < t->buttons; k++)
        *target++ = want->buttons[k] == '1';
    if (!t->slides) return;
    target[0] = want->drawer;
    target[1] = want->window;
}

// The goal's observation has the posture of an arm that has moved at random for a while.
static void show_goal(dc_env *env, const dc_things *want, const int order[DC_CUBES_MAX],
                      double *goal) {
    static const double level[4] = {1, 0, 0, 0};
    const dc_arm_table *t = dc_arm_of(env);
    bool floats = env->float_actions;
    double action[ACTIONS];
    dc_arm_place(env);
    for (int k = 0; k < t->cubes; k++)
        set_cube(env, k, want->cubes[order[k]], level);
    set_buttons(env, want->buttons);
    if (t->slides) {
        dc_arm_slides(env)[0] = want->drawer;
        dc_arm_slides(env)[1] = want->window;
    }
    mj_forward(dc_arm_now(env), env->data);
    env->float_actions = true; // random actions are float32, whatever the policy's are
    for (int s = 0; s < env->world->spec.family->settle; s++) {
        for (int k = 0; k < ACTIONS; k++)
            action[k] = (double)(float)dc_env_uniform(env, -1, 1);
        if (!t->cubes) action[ACTIONS - 1] = 1; // closed, as it presses buttons
        step(env, action);
    }
    env->float_actions = floats;
    if (goal) put_goal(env, goal);
}

static void place_things(dc_env *env, const dc_things *start, const int order[DC_CUBES_MAX]) {
    const dc_arm_table *t = dc_arm_of(env);
    for (int k = 0; k < t->cubes; k++) {
        double xyz[3], q[4];
        memcpy(xyz, start->cubes[order[k]], sizeof xyz);
        for (int c = 0; c < 2; c++)
            xyz[c] += dc_env_uniform(env, -0.01, 0.01);
        dc_quat_yaw(dc_env_uniform(env, 0, 2 * pi), q);
        set_cube(env, k, xyz, q);
    }
    set_buttons(env, start->buttons);
    if (!t->slides) return;
    dc_arm_slides(env)[0] = clip(start->drawer + dc_env_uniform(env, -0.01, 0.01), -0.16, 0);
    dc_arm_slides(env)[1] = clip(start->window + dc_env_uniform(env, -0.01, 0.01), 0, 0.2);
}

void dc_arm_rest(dc_env *env) {
    memset(dc_arm_state_of(env)->buttons, 0, sizeof dc_arm_state_of(env)->buttons);
    dc_arm_state_of(env)->aim = (dc_aim){.at = DC_AIM_TASK};
    const mjModel *m = dc_arm_now(env);
    mj_resetData(m, env->data);
    mj_forward(m, env->data);
    memcpy(env->data->qpos, home, sizeof home);
    mj_kinematics(m, env->data);
}

void dc_arm_ready(dc_env *env) {
    double before[DC_BUTTONS_MAX];
    remember(env, before);
    mj_forward(dc_arm_now(env), env->data);
    settle(env, before);
    dc_arm_state_of(env)->success = false;
    mj_forward(dc_arm_now(env), env->data);
}

// Of the first phase only joints are taken back: time, controls, the solver's start and the force on
// the fingers are those of its last step, as in the reference.
static void reset(dc_env *env, int number, double *goal) {
    const dc_arm_task *task = dc_arm_task_of(&env->world->spec, number);
    int order[DC_CUBES_MAX] = {0};
    mjData *d = env->data;
    const mjModel *m = env->world->model;
    dc_arm_rest(env);
    draw_order(env, order);
    double rest[DC_ARM_OBS_MAX];
    memcpy(rest, d->qpos, (size_t)m->nq * sizeof *rest);
    set_target(env, &task->goal, order);
    show_goal(env, &task->goal, order, goal);
    memcpy(d->qpos, rest, (size_t)m->nq * sizeof *rest);
    memset(d->qvel, 0, (size_t)m->nv * sizeof *d->qvel);
    dc_arm_place(env);
    place_things(env, &task->start, order);
    dc_arm_ready(env);
}

static void set(dc_env *env, const double *qpos, const double *qvel, const double *buttons) {
    const mjModel *m = env->world->model;
    dc_arm_state *state = dc_arm_state_of(env);
    for (int k = 0; k < DC_BUTTONS_MAX; k++)
        state->buttons[k] = buttons && k < dc_arm_of(env)->buttons && buttons[k] != 0;
    mj_resetData(m, env->data);
    memcpy(env->data->qpos, qpos, (size_t)m->nq * sizeof *qpos);
    memcpy(env->data->qvel, qvel, (size_t)m->nv * sizeof *qvel);
    mj_forward(dc_arm_now(env), env->data);
    state->aim = (dc_aim){.at = DC_AIM_TASK};
    state->success = false;
}

static void extra(const dc_env *env, double *buttons) {
    for (int k = 0; k < dc_arm_of(env)->buttons; k++)
        buttons[k] = dc_arm_state_of(env)->buttons[k];
}

const dc_sim dc_arm_sim = {
    .engine = &dc_mujoco,
    .substeps = SUBSTEPS,
    .model = dc_arm_model,
    .prepare = dc_arm_prepare,
    .release = dc_arm_release,
    .own = sizeof(dc_arm_state),
    .open = open_state,
    .close = close_state,
    .reset = reset,
    .set = set,
    .step = step,
    .observe = observe,
    .outcome = outcome,
    .extra = extra,
    .physics = physics,
    .camera = "front",
    .visual_camera = "front_pixels",
    .paint = dc_arm_paint,
    .play = dc_arm_play,
    .time_script = dc_arm_time_script,
};
