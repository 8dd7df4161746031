// env/sim.h and env/view.h in a build without MuJoCo: no world or view can be made, so nothing else is ever called.
#include "env/view.h"

#include <stddef.h>

dc_status dc_world_new(dc_world **world, const dc_env_spec *spec) {
    *world = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "run `make` again where pip can fetch the mujoco wheel (tools/setup.sh build)",
                   "this build has no MuJoCo, so it cannot simulate %s", spec->name);
}

void dc_world_free(dc_world *world) {
    DC_CHECK(!world);
}

const dc_env_spec *dc_world_spec(const dc_world *world) {
    DC_CHECK(!world);
    return NULL;
}

static dc_status absent(void) {
    return dc_fail(DC_UNSUPPORTED, NULL, "this build has no MuJoCo");
}

dc_status dc_world_save(const dc_world *world, const char *path) {
    (void)world, (void)path;
    return absent();
}

dc_status dc_env_new(dc_env *env, const dc_world *world, dc_draws draws) {
    (void)env, (void)world, (void)draws;
    return absent();
}

void dc_env_free(dc_env *env) {
    DC_CHECK(!env->data);
}

dc_status dc_env_reset(dc_env *env, int task, double *goal) {
    (void)env, (void)task, (void)goal;
    return absent();
}

dc_status dc_env_begin(dc_env *env, const dc_maze_task *task, double *goal) {
    (void)env, (void)task, (void)goal;
    return absent();
}

dc_status dc_env_set(dc_env *env, const double *qpos, const double *qvel, const double *buttons) {
    (void)env, (void)qpos, (void)qvel, (void)buttons;
    return absent();
}

dc_status dc_env_step(dc_env *env, const double *action, double *obs, dc_outcome *outcome) {
    (void)env, (void)action, (void)obs, (void)outcome;
    return absent();
}

dc_status dc_env_physics(dc_env *env, const double *action, int steps) {
    (void)env, (void)action, (void)steps;
    return absent();
}

dc_status dc_env_collect(dc_env *env) {
    (void)env;
    return absent();
}

dc_status dc_env_aim(dc_env *env, double stack) {
    (void)env, (void)stack;
    return absent();
}

void dc_env_see(const dc_env *env, dc_sight *sight) {
    (void)sight;
    DC_CHECK(!env);
}

void dc_env_observe(const dc_env *env, double *obs) {
    (void)obs;
    DC_CHECK(!env);
}

const double *dc_env_qpos(const dc_env *env) {
    DC_CHECK(!env);
    return NULL;
}

const double *dc_env_qvel(const dc_env *env) {
    DC_CHECK(!env);
    return NULL;
}

dc_outcome dc_env_judge(const dc_env *env) {
    DC_CHECK(!env);
    return (dc_outcome){0};
}

void dc_env_near(dc_env *env, dc_cell cell, double xy[2]) {
    (void)cell, (void)xy;
    DC_CHECK(!env);
}

dc_status dc_view_new(dc_view **view, const dc_env_spec *spec, const dc_view_options *options) {
    (void)options;
    *view = NULL;
    return dc_world_new(&(dc_world *){NULL}, spec);
}

void dc_view_free(dc_view *view) {
    DC_CHECK(!view);
}

dc_status dc_view_draw(dc_view *view, const dc_states *states, int64_t row, uint8_t *rgb) {
    (void)view, (void)states, (void)row, (void)rgb;
    return absent();
}

double dc_view_rate(const dc_view *view) {
    DC_CHECK(!view);
    return 1;
}
