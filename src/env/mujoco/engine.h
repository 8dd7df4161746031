// What the families on MuJoCo share: the engine of their tables (env/family.h), the guard around the
// library, and the folder of OGBench's descriptions. Files whose names end in _mj.c, and this folder,
// are left out of a build without MuJoCo.
#ifndef DC_MUJOCO_ENGINE_H
#define DC_MUJOCO_ENGINE_H

#include "env/family.h"

#include <mujoco/mujoco.h>

extern const dc_engine dc_mujoco;

// Call into MuJoCo. An error inside of it leaves the work where it is and becomes a status; so does
// a warning that `data` counts (numbers that are not finite, full buffers), while other warnings go
// to the log. Nullable: data
dc_status dc_mujoco_guard(dc_work *work, void *ctx, const mjData *data);

// files.c: the path of a folder of OGBench's descriptions; a file that must be there; sizes that must
// fit.
dc_status dc_model_folder(const char *name, char *path, size_t size);
dc_status dc_model_need(const char *path);
dc_status dc_model_check(const mjModel *model, const dc_env_family *family, int controls,
                         const char *path);

// view.c: an engine's view and shots.
dc_status dc_mujoco_view(dc_view **view, const dc_env_spec *spec, const dc_view_options *options);
int dc_mujoco_shot_size(const dc_world *world);
void dc_mujoco_shoot(const dc_env *env, double *shot);

static inline const mjModel *dc_model_of(const dc_env *env) {
    return env->world->model;
}

static inline double dc_env_uniform(dc_env *env, double low, double high) {
    return env->draws.uniform(env->draws.ctx, low, high);
}

#endif
