// The ant in motion: its action is MuJoCo's control, and its observation the whole state.
#include "env/mujoco/engine.h"
#include "env/walker/walker.h"

#include <string.h>

static const dc_maze_robot robot = {.pose = dc_maze_pose};

// One leg is white, so that it can be seen which way the ant is turned.
static void colour_leg(mjSpec *spec, mjsBody *world) {
    static const char *const parts[] = {"aux_1_geom", "left_leg_geom", "left_ankle_geom"};
    (void)world;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        mjsElement *part = mjs_findElement(spec, mjOBJ_GEOM, parts[k]);
        if (part) mjs_setString(mjs_asGeom(part)->material, "self_white");
    }
}

static dc_status model(const dc_env_spec *spec, bool whole, mjModel **model) {
    bool visual = spec->visual && whole;
    return dc_maze_model(spec, visual, DC_ANT_FILE, visual ? colour_leg : NULL, model);
}

void dc_ant_step(dc_env *env, const double *action) {
    dc_maze_physics(env, action, 1);
}

void dc_ant_observe(const dc_env *env, double *obs) {
    const mjModel *m = dc_model_of(env);
    memcpy(obs, env->qpos, (size_t)m->nq * sizeof *obs);
    memcpy(obs + m->nq, env->qvel, (size_t)m->nv * sizeof *obs);
}

static void reset(dc_env *env, int task, double *goal) {
    dc_maze_begin(env, &robot, dc_maze_task_of(&env->world->spec, task), goal);
}

static dc_status play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    return dc_maze_play(gen, env, out, &robot, dc_walker_act);
}

const dc_sim dc_ant_sim = {
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
    .visual_camera = "back",
    .aim = dc_maze_aim,
    .paint = dc_maze_paint,
    .play = play,
    .time_script = dc_walker_time,
};

// ---- on the plane ----

static void see(const dc_env *env, double *state) {
    const dc_env_family *f = env->world->spec.family;
    size_t nq = (size_t)f->nq - 2;
    memcpy(state, env->qpos + 2, nq * sizeof *state);
    memcpy(state + nq, env->qvel, (size_t)f->nv * sizeof *state);
}

static void judge(const dc_walk *walk, const double before[4], dc_walk_step *step) {
    (void)walk;
    (void)before;
    memcpy(step->pull, step->moved, sizeof step->pull);
}

const dc_plane_sim dc_ant_plane = {.pose = dc_maze_pose, .see = see, .judge = judge};
