// Environments of the public API: one world and one copy of it behind a handle, in float32, which is
// what policies speak.
#include "api/api.h"
#include "env/sim.h"

#include <math.h>
#include <stdlib.h>

struct dcrl_env {
    dc_world *world;
    dc_env env;
    dc_philox_draws draws;
    uint64_t seed, episode;
    double *action, *obs, *goal; // one block of memory, which `action` owns
};

static const dc_env_spec *spec_of(const dcrl_env *env) {
    return dc_world_spec(env->world);
}

static dc_status open_env(dcrl_env *e, const char *name, uint64_t seed) {
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, name));
    DC_TRY(dc_world_new(&e->world, &spec));
    e->seed = seed;
    DC_TRY(dc_env_new(&e->env, e->world, dc_draws_philox(&e->draws, seed, 0)));
    e->env.float_actions = true;
    size_t act = (size_t)spec.family->act, obs = (size_t)spec.family->obs;
    e->action = calloc(act + obs + (size_t)spec.goal, sizeof *e->action);
    if (!e->action) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", name);
    e->obs = e->action + act;
    e->goal = e->obs + obs;
    return DC_OK;
}

dcrl_status dcrl_env_open(dcrl_env **env, const char *name, uint64_t seed) {
    DC_API_NEED(env);
    *env = NULL;
    DC_API_NEED(name);
    dcrl_env *e = calloc(1, sizeof *e);
    if (!e) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", name));
    dc_status status = open_env(e, name, seed);
    if (status == DC_OK)
        *env = e;
    else
        dcrl_env_close(e);
    return dc_api_status(status);
}

dcrl_sizes dcrl_env_sizes(const dcrl_env *env) {
    if (!env) return (dcrl_sizes){0, 0, 0};
    const dc_env_spec *s = spec_of(env);
    return (dcrl_sizes){s->family->obs, s->goal, s->family->act};
}

int dcrl_env_tasks(const dcrl_env *env) {
    if (!env) return 0;
    return spec_of(env)->task ? 1 : DC_TASKS;
}

int dcrl_env_horizon(const dcrl_env *env) {
    return env ? spec_of(env)->horizon : 0;
}

static void narrow(const double *from, int n, float *to) {
    for (int i = 0; i < n; i++)
        to[i] = (float)from[i];
}

dcrl_status dcrl_env_reset(dcrl_env *env, int task, float *observation, float *goal) {
    DC_API_NEED(env && observation && goal);
    int tasks = dcrl_env_tasks(env);
    if (task < 1 || task > tasks)
        return dc_api_status(dc_fail(DC_USAGE, "dcrl_env_tasks gives their number",
                                     "there is no such task (%d of %d)", task, tasks));
    const dc_env_spec *s = spec_of(env);
    env->env.draws = dc_draws_philox(&env->draws, env->seed, env->episode++);
    dc_status status = dc_env_reset(&env->env, task, env->goal);
    if (status != DC_OK) return dc_api_status(status);
    dc_env_observe(&env->env, env->obs);
    narrow(env->obs, s->family->obs, observation);
    narrow(env->goal, s->goal, goal);
    return DCRL_OK;
}

dcrl_status dcrl_env_step(dcrl_env *env, const float *action, float *observation, int *success) {
    DC_API_NEED(env && action && observation && success);
    const dc_env_spec *s = spec_of(env);
    for (int k = 0; k < s->family->act; k++) {
        if (!isfinite(action[k]))
            return dc_api_status(dc_fail(DC_BAD_INPUT, "act with numbers within [-1, 1]",
                                         "value %d of the action is NaN or Inf", k));
        env->action[k] = fmin(fmax((double)action[k], -1), 1);
    }
    dc_outcome outcome = {0};
    dc_status status = dc_env_step(&env->env, env->action, env->obs, &outcome);
    if (status != DC_OK) return dc_api_status(status);
    narrow(env->obs, s->family->obs, observation);
    *success = outcome.success;
    return DCRL_OK;
}

void dcrl_env_close(dcrl_env *env) {
    if (!env) return;
    dc_env_free(&env->env);
    dc_world_free(env->world);
    free(env->action);
    free(env);
}
