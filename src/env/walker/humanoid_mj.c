// The humanoid in motion. The Python code switches actuation off during its reset, by writing to the
// model; controls are zero then, so leaving that out changes nothing.
#include "env/mujoco/engine.h"
#include "env/walker/walker.h"

#include <math.h>
#include <string.h>

enum { LIMBS = 4, TRIES = 10000 };
static const double reset_noise = 0.1;

static dc_status model(const dc_env_spec *spec, bool whole, mjModel **model) {
    return dc_maze_model(spec, spec->visual && whole, "locomaze/assets/humanoid.xml", NULL, model);
}

// ---- observing ----

// Position of a limb in the torso's frame: R^T (x - x_torso). The reference's BLAS sums by fused
// steps in this order on processors that have them, and so the last bit agrees.
static void put_limb(const mjData *d, int body, double *out) {
    const double *r = d->xmat + 9, *torso = d->xpos + 3, *limb = d->xpos + 3 * (ptrdiff_t)body;
    double v[3] = {limb[0] - torso[0], limb[1] - torso[1], limb[2] - torso[2]};
    for (int c = 0; c < 3; c++)
        out[c] = fma(v[2], r[6 + c], fma(v[1], r[3 + c], v[0] * r[c]));
}

// xy | hinges | head's height | limbs | torso's vertical | velocity of the centre of mass | qvel
static void observe(const dc_env *env, double *obs) {
    static const int limbs[LIMBS] = {16, 10, 13, 7}; // left hand, left foot, right hand, right foot
    const mjModel *m = dc_model_of(env);
    const mjData *d = env->data;
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

// ---- stepping ----

// Second half of a step, whole steps, first half of the next: kinematics and sensors are fresh when
// observed.
static void step(dc_env *env, const double *action) {
    const mjModel *m = dc_model_of(env);
    memcpy(env->data->ctrl, action, (size_t)m->nu * sizeof *action);
    mj_step2(m, env->data);
    for (int s = 1; s < DC_MAZE_SUBSTEPS; s++)
        mj_step(m, env->data);
    mj_step1(m, env->data);
}

// ---- resets ----

// A posture by lot, with speeds of that deviation; true if it touches nothing.
static bool try_pose(dc_env *env, double speed) {
    const mjModel *m = dc_model_of(env);
    mjData *d = env->data;
    double sum = 0, *quat = d->qpos + 3;
    for (int k = 0; k < 4; k++)
        quat[k] = dc_env_uniform(env, 0, 1);
    for (int k = 0; k < 4; k++)
        sum = fma(quat[k], quat[k], sum);
    for (int k = 0; k < 4; k++)
        quat[k] /= sqrt(sum);
    for (int k = 0; speed > 0 && k < m->nv; k++)
        d->qvel[k] = speed * env->draws.normal(env->draws.ctx);
    for (int j = 1; j < m->njnt; j++) {
        const double *range = m->jnt_range + 2 * (ptrdiff_t)j;
        d->qpos[6 + j] = dc_env_uniform(env, range[0], range[1]);
    }
    mj_forward(m, d);
    return d->ncon == 0;
}

static void pose_at(dc_env *env, double speed) {
    mj_resetData(dc_model_of(env), env->data);
    for (int t = 0; t < TRIES && !try_pose(env, speed); t++) {
    }
}

static void pose(dc_env *env) {
    pose_at(env, reset_noise);
}

static const dc_maze_robot robot = {.pose = pose};

static void reset(dc_env *env, int task, double *goal) {
    dc_maze_begin(env, &robot, dc_maze_task_of(&env->world->spec, task), goal);
}

static dc_status play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    return dc_maze_play(gen, env, out, &robot, dc_walker_act);
}

const dc_sim dc_humanoid_sim = {
    .engine = &dc_mujoco,
    .substeps = DC_MAZE_SUBSTEPS,
    .model = model,
    .reset = reset,
    .set = dc_maze_set,
    .step = step,
    .after = dc_maze_jump,
    .observe = observe,
    .outcome = dc_maze_outcome,
    .physics = dc_maze_physics,
    .visual_camera = "back",
    .aim = dc_maze_aim,
    .paint = dc_maze_paint,
    .play = play,
    .time_script = dc_walker_time,
};

// ---- on the plane ----

enum { OBS_MAX = 96, HEAD = 23, UPRIGHT = 38 }; // columns of an observation
static const double head_height = 1.4, head_margin = 0.35, upright = 0.9, upright_margin = 1.9;

static void pose_still(dc_env *env) {
    pose_at(env, 0);
}

static void see(const dc_env *env, double *state) {
    double obs[OBS_MAX];
    int width = env->world->spec.family->obs;
    DC_CHECK(width <= OBS_MAX);
    observe(env, obs);
    memcpy(state, obs + 2, (size_t)(width - 2) * sizeof *state);
}

// How well it stands: 1 with the head up and the torso upright, falling to 0 with either.
static double standing(const double *obs) {
    double low = (head_height - obs[HEAD]) / head_margin,
           lean = (upright - obs[UPRIGHT]) / upright_margin;
    double head = low > 0 ? pow(0.1, low * low) : 1, torso = lean > 0 ? 1 - lean : 1;
    return head * (torso > 0 ? torso : 0);
}

static void judge(const dc_walk *walk, const double before[4], dc_walk_step *step) {
    double obs[OBS_MAX];
    (void)before;
    observe(&walk->env, obs);
    step->base = standing(obs);
    for (int k = 0; k < DC_COMMAND; k++)
        step->pull[k] = 100 * step->base * step->moved[k];
}

const dc_plane_sim dc_humanoid_plane = {.pose = pose_still, .see = see, .judge = judge};
