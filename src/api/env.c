// Environments of the public API, see env_handle.h. dcrl_env speaks float32, which is what policies speak.
#include "api/env_handle.h"
#include "base/philox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dc_env_spec *spec_of(const dcrl_env *env) {
    return dc_world_spec(env->env.world);
}

// ---- a copy ----

dc_status dc_handle_init(dcrl_env *e, const dc_world *world, uint64_t seed) {
    const dc_env_spec *spec = dc_world_spec(world);
    size_t act = (size_t)spec->family->act, obs = (size_t)spec->obs;
    e->seed = seed;
    DC_TRY(dc_env_new(&e->env, world, dc_draws_philox(&e->draws, seed, 0)));
    e->action = calloc(act + obs + (size_t)spec->goal, sizeof *e->action);
    if (!e->action) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", spec->name);
    e->obs = e->action + act;
    e->goal = e->obs + obs;
    return DC_OK;
}

void dc_handle_fini(dcrl_env *e) {
    dc_view_free(e->view);
    dc_states_free(&e->shown);
    dc_env_free(&e->env);
    free(e->given);
    free(e->action);
}

// Of the numbers of an episode the last, which no reset gets to.
static int draw_task(const dcrl_env *e) {
    dc_u32x4 block = dc_philox(e->seed, DC_STREAM_ENV, e->episode, UINT32_MAX);
    return 1 + (int)dc_below(block.v[0], (uint32_t)dcrl_env_tasks(e));
}

// By the numbers that were given for it, all of which it must take.
static dc_status reset_given(dcrl_env *e, int task) {
    dc_list_draws list;
    dc_draws usual = e->env.draws;
    e->env.draws = dc_draws_list(&list, e->given, e->given_count);
    dc_status status = dc_env_reset(&e->env, task, e->goal);
    e->env.draws = usual;
    free(e->given);
    e->given = NULL;
    if (status == DC_OK && list.used != list.count)
        return dc_fail(DC_BAD_INPUT, "give as many as a reset draws",
                       "a reset of %s drew %lld numbers and was given %lld", spec_of(e)->name,
                       (long long)list.used, (long long)list.count);
    return status;
}

dc_status dc_handle_reset(dcrl_env *e, int task) {
    int tasks = dcrl_env_tasks(e);
    if (task < 0 || task > tasks)
        return dc_fail(DC_USAGE, "dcrl_env_tasks gives their number",
                       "there is no such task (%d of %d)", task, tasks);
    if (task == 0) task = draw_task(e);
    e->task = 0;
    e->steps = 0;
    e->env.draws = dc_draws_philox(&e->draws, e->seed, e->episode++);
    DC_TRY(e->given ? reset_given(e, task) : dc_env_reset(&e->env, task, e->goal));
    DC_TRY(dc_env_observe(&e->env, e->obs));
    DC_TRY(dc_env_check(&e->env, e->obs));
    e->task = task;
    return DC_OK;
}

dc_status dc_handle_step(dcrl_env *e, bool floats, dc_outcome *outcome) {
    const dc_env_family *f = spec_of(e)->family;
    for (int k = 0; k < f->act; k++) {
        if (!isfinite(e->action[k]))
            return dc_fail(DC_BAD_INPUT, "act with numbers within [-1, 1]",
                           "value %d of the action is NaN or Inf", k);
        e->action[k] = fmin(fmax(e->action[k], -1), 1);
    }
    e->env.float_actions = floats;
    e->steps++;
    return dc_env_step(&e->env, e->action, e->obs, outcome);
}

// ---- one environment ----

static dc_status open_env(dcrl_env *e, const char *name, uint64_t seed) {
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, name));
    DC_TRY(dc_world_new(&e->own, &spec));
    return dc_handle_init(e, e->own, seed);
}

dcrl_status dcrl_env_open(dcrl_env **env, const char *name, uint64_t seed) {
    DC_API_GIVEN(env);
    *env = NULL;
    DC_API_GIVEN(name);
    dcrl_env *e = calloc(1, sizeof *e);
    if (!e) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", name));
    dc_status status = open_env(e, name, seed);
    if (status == DC_OK)
        *env = e;
    else
        dcrl_env_close(e);
    return dc_api_status(status);
}

void dcrl_env_close(dcrl_env *env) {
    if (!env || env->lent) return;
    dc_handle_fini(env);
    dc_world_free(env->own);
    free(env);
}

// ---- facts ----

static dcrl_status give_facts(const dc_env_spec *s, dcrl_env_facts *facts) {
    *facts = (dcrl_env_facts){.sizes = {s->obs, s->goal, s->family->act},
                              .tasks = s->task ? 1 : DC_TASKS,
                              .horizon = s->horizon};
    snprintf(facts->name, sizeof facts->name, "%s", s->name);
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_env_find(const char *name, dcrl_env_facts *facts) {
    dc_env_spec spec;
    DC_API_GIVEN(name);
    DC_API_GIVEN(facts);
    dc_status status = dc_env_find(&spec, name);
    return status == DC_OK ? give_facts(&spec, facts) : dc_api_status(status);
}

dcrl_status dcrl_env_list(int index, dcrl_env_facts *facts) {
    dc_env_spec spec;
    DC_API_GIVEN(facts);
    DC_API_NEED(index >= 0 && dc_env_listed(&spec, index), "count from 0",
                "there is no such environment (%d)", index);
    return give_facts(&spec, facts);
}

dcrl_sizes dcrl_env_sizes(const dcrl_env *env) {
    if (!env) return (dcrl_sizes){0, 0, 0};
    const dc_env_spec *s = spec_of(env);
    return (dcrl_sizes){s->obs, s->goal, s->family->act};
}

int dcrl_env_tasks(const dcrl_env *env) {
    if (!env) return 0;
    return spec_of(env)->task ? 1 : DC_TASKS;
}

int dcrl_env_task(const dcrl_env *env) {
    return env ? env->task : 0;
}

int dcrl_env_horizon(const dcrl_env *env) {
    return env ? spec_of(env)->horizon : 0;
}

int dcrl_env_choices(const dcrl_env *env) {
    (void)env; // all of OGBench's take real numbers
    return 0;
}

dcrl_status dcrl_env_action_range(const dcrl_env *env, float *low, float *high) {
    DC_API_GIVEN(env);
    DC_API_GIVEN(low);
    DC_API_GIVEN(high);
    for (int k = 0; k < spec_of(env)->family->act; k++) {
        low[k] = -1;
        high[k] = 1;
    }
    return dc_api_status(DC_OK);
}

int dcrl_env_goal_columns(const dcrl_env *env, int *columns) {
    if (!env) return 0;
    const dc_env_family *f = spec_of(env)->family;
    int n = 0;
    if (spec_of(env)->visual) return 0;
    for (const dc_pick *p = f->picks; p < f->picks + DC_PICKS_MAX; p++)
        for (int t = 0; t < p->times; t++)
            for (int c = 0; c < p->count; c++, n++)
                if (columns) columns[n] = p->first + t * p->step + c;
    return n;
}

dcrl_state_sizes dcrl_env_state_sizes(const dcrl_env *env) {
    if (!env) return (dcrl_state_sizes){0, 0, 0};
    const dc_env_family *f = spec_of(env)->family;
    return (dcrl_state_sizes){f->nq, f->nv, f->extra};
}

dcrl_status dcrl_env_state(const dcrl_env *env, double *qpos, double *qvel, double *extra) {
    DC_API_GIVEN(env);
    const dc_env_family *f = spec_of(env)->family;
    if (qpos) memcpy(qpos, dc_env_qpos(&env->env), (size_t)f->nq * sizeof *qpos);
    if (qvel) memcpy(qvel, dc_env_qvel(&env->env), (size_t)f->nv * sizeof *qvel);
    if (extra) dc_env_extra(&env->env, extra);
    return dc_api_status(DC_OK);
}

// ---- episodes ----

static void narrow(const double *from, int n, float *to) {
    for (int i = 0; i < n; i++)
        to[i] = (float)from[i];
}

dcrl_status dcrl_env_seed(dcrl_env *env, uint64_t seed) {
    DC_API_GIVEN(env);
    env->seed = seed;
    env->episode = 0;
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_env_give_draws(dcrl_env *env, int64_t count, const double *draws) {
    DC_API_GIVEN(env);
    DC_API_GIVEN(draws);
    DC_API_NEED(count >= 1 && count <= 1 << 20, "give what a reset draws",
                "impossible number of draws (%lld)", (long long)count);
    double *copy = malloc((size_t)count * sizeof *copy);
    if (!copy) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for draws"));
    memcpy(copy, draws, (size_t)count * sizeof *copy);
    free(env->given);
    env->given = copy;
    env->given_count = count;
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_env_reset(dcrl_env *env, int task, float *observation, float *goal) {
    DC_API_GIVEN(env);
    DC_API_GIVEN(observation);
    DC_API_GIVEN(goal);
    const dc_env_spec *s = spec_of(env);
    dc_status status = dc_handle_reset(env, task);
    if (status != DC_OK) return dc_api_status(status);
    narrow(env->obs, s->obs, observation);
    narrow(env->goal, s->goal, goal);
    return dc_api_status(DC_OK);
}

dcrl_status dcrl_env_step(dcrl_env *env, const float *action, float *observation, int *success) {
    DC_API_GIVEN(env);
    DC_API_GIVEN(action);
    DC_API_GIVEN(observation);
    DC_API_GIVEN(success);
    const dc_env_spec *s = spec_of(env);
    dc_outcome outcome = {0};
    for (int k = 0; k < s->family->act; k++)
        env->action[k] = (double)action[k];
    dc_status status = dc_handle_step(env, true, &outcome);
    if (status != DC_OK) return dc_api_status(status);
    narrow(env->obs, s->obs, observation);
    *success = outcome.success;
    return dc_api_status(DC_OK);
}

// ---- pictures ----

static dc_status need_view(dcrl_env *env, int width, int height) {
    if (env->view && env->width == width && env->height == height) return DC_OK;
    dc_view_free(env->view);
    env->view = NULL;
    dc_view_options options = {.width = width, .height = height};
    DC_TRY(dc_view_new(&env->view, spec_of(env), &options));
    env->width = width;
    env->height = height;
    return DC_OK;
}

static dc_status draw(dcrl_env *env, int width, int height, unsigned char *rgb) {
    if (!env->shown.qpos) DC_TRY(dc_states_new(&env->shown, spec_of(env), 1));
    DC_TRY(need_view(env, width, height));
    dc_states_put(&env->shown, 0, &env->env);
    return dc_view_draw(env->view, &env->shown, &(int64_t){0}, 1, rgb);
}

dcrl_status dcrl_env_render(dcrl_env *env, int width, int height, unsigned char *rgb) {
    DC_API_GIVEN(env);
    DC_API_GIVEN(rgb);
    DC_API_NEED(width >= 1 && height >= 1 && width <= DC_VIEW_MOST && height <= DC_VIEW_MOST,
                "give 1 to 4096 each", "impossible size of a picture (%d x %d)", width, height);
    return dc_api_status(draw(env, width, height, rgb));
}
