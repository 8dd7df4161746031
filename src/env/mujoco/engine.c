// MuJoCo as the engine of families, see env/family.h.
#include "env/mujoco/engine.h"

#include "base/file.h"

#include <stdlib.h>

static dc_status guard(dc_work *work, void *ctx, const dc_env *env) {
    return dc_mujoco_guard(work, ctx, env ? env->data : NULL);
}

static bool open_data(dc_env *env) {
    env->data = mj_makeData(env->world->model);
    if (!env->data) return false;
    env->qpos = env->data->qpos;
    env->qvel = env->data->qvel;
    mj_forward(env->world->model, env->data);
    return true;
}

static void close_data(dc_env *env) {
    mj_deleteData(env->data);
    env->data = NULL;
}

static int words(const dc_env *env) {
    return mj_stateSize(env->world->model, mjSTATE_INTEGRATION);
}

static void get_state(const dc_env *env, double *out) {
    mj_getState(env->world->model, env->data, out, mjSTATE_INTEGRATION);
}

// What follows from a state is computed anew, and must not change what the solver begins from.
static void put_state(dc_env *env, const double *in) {
    mj_resetData(env->world->model, env->data);
    mj_setState(env->world->model, env->data, in, mjSTATE_INTEGRATION);
    mj_forward(env->world->model, env->data);
    mj_setState(env->world->model, env->data, in, mjSTATE_INTEGRATION);
}

static dc_status save(const mjModel *model, const char *path) {
    int size = mj_sizeModel(model);
    void *bytes = malloc((size_t)size);
    if (!bytes) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a model of %d bytes", size);
    mj_saveModel(model, NULL, bytes, size);
    dc_status status = dc_file_write(path, bytes, (size_t)size);
    free(bytes);
    return status;
}

const dc_engine dc_mujoco = {
    .guard = guard,
    .open = open_data,
    .close = close_data,
    .words = words,
    .get = get_state,
    .put = put_state,
    .save = save,
    .drop = mj_deleteModel,
    .view = dc_mujoco_view,
    .shot_size = dc_mujoco_shot_size,
    .shoot = dc_mujoco_shoot,
};
