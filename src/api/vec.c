// Many copies of an environment, see dcrl/vec.h. They share one world, which nobody writes to; a block of the thread
// pool is a copy, so threads never meet.
#include "api/env_handle.h"
#include "base/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_MAX = 1 << 16, ERROR_MAX = 512 };

typedef struct copy {
    dcrl_env env;
    int task;  // of episodes that begin; 0: any
    bool runs; // an episode is under way
    bool over; // it has ended, and the next step resets it
    dc_status status;
    char error[ERROR_MAX];
} copy;

struct dcrl_vec {
    dc_world *world;
    dc_pool *pool; // Nullable
    dcrl_autoreset autoreset;
    int count, obs, goal, act;
    copy *copies; // (count)
};

// What is under way, for all copies.
typedef struct job {
    dcrl_vec *vec;
    const unsigned char *marked; // Nullable
    const double *actions;       // (count, act)
    bool floats;
    double *observations, *goals; // (count, obs), (count, goal)
    const dcrl_vec_step_out *out;
} job;

// ---- opening ----

static void open_block(void *ctx, int i) {
    const job *j = ctx;
    copy *c = &j->vec->copies[i];
    c->env.lent = true;
    c->status = dc_handle_init(&c->env, j->vec->world, c->env.seed);
    if (c->status != DC_OK) snprintf(c->error, sizeof c->error, "%s", dc_error());
}

static dc_status first_error(const dcrl_vec *v) {
    for (int i = 0; i < v->count; i++) {
        const copy *c = &v->copies[i];
        if (c->status == DC_OK) continue;
        return v->count > 1 ? dc_fail(c->status, NULL, "copy %d: %s", i, c->error)
                            : dc_fail(c->status, NULL, "%s", c->error);
    }
    return DC_OK;
}

static dc_status open_vec(dcrl_vec *v, const char *name, uint64_t seed, int threads) {
    dc_env_spec spec;
    DC_TRY(dc_env_find(&spec, name));
    DC_TRY(dc_world_new(&v->world, &spec));
    if (threads != 1 && v->count > 1) DC_TRY(dc_pool_new(&v->pool, threads));
    v->obs = spec.obs;
    v->goal = spec.goal;
    v->act = spec.family->act;
    v->copies = calloc((size_t)v->count, sizeof *v->copies);
    if (!v->copies) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %d environments", v->count);
    for (int i = 0; i < v->count; i++)
        v->copies[i].env.seed = seed + (uint64_t)i;
    dc_pool_run(v->pool, open_block, &(job){.vec = v}, v->count);
    return first_error(v);
}

dcrl_status dcrl_vec_open(dcrl_vec **vec, const char *name, int count, uint64_t seed,
                          dcrl_autoreset autoreset, int threads) {
    DC_API_GIVEN(vec);
    *vec = NULL;
    DC_API_GIVEN(name);
    DC_API_NEED(count >= 1 && count <= COPIES_MAX, "give 1 to 65536",
                "impossible number of environments (%d)", count);
    DC_API_NEED((int)autoreset >= DCRL_RESET_NEVER && (int)autoreset <= DCRL_RESET_SAME_STEP,
                "give one of dcrl_autoreset", "there is no such autoreset (%d)", (int)autoreset);
    DC_API_THREADS(threads);
    dcrl_vec *v = calloc(1, sizeof *v);
    if (!v) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", name));
    v->count = count;
    v->autoreset = autoreset;
    dc_status status = open_vec(v, name, seed, threads);
    if (status == DC_OK)
        *vec = v;
    else
        dcrl_vec_close(v);
    return dc_api_status(status);
}

void dcrl_vec_close(dcrl_vec *vec) {
    if (!vec) return;
    for (int i = 0; vec->copies && i < vec->count; i++)
        dc_handle_fini(&vec->copies[i].env);
    dc_pool_free(vec->pool);
    dc_world_free(vec->world);
    free(vec->copies);
    free(vec);
}

int dcrl_vec_count(const dcrl_vec *vec) {
    return vec ? vec->count : 0;
}

dcrl_env *dcrl_vec_env(dcrl_vec *vec, int index) {
    return vec && index >= 0 && index < vec->count ? &vec->copies[index].env : NULL;
}

// ---- episodes ----

dcrl_status dcrl_vec_set_tasks(dcrl_vec *vec, const int *tasks) {
    DC_API_GIVEN(vec);
    DC_API_GIVEN(tasks);
    int most = dcrl_env_tasks(&vec->copies[0].env);
    for (int i = 0; i < vec->count; i++)
        DC_API_NEED(tasks[i] >= 0 && tasks[i] <= most, "dcrl_env_tasks gives their number",
                    "there is no such task (%d of %d, copy %d)", tasks[i], most, i);
    for (int i = 0; i < vec->count; i++)
        vec->copies[i].task = tasks[i];
    return dc_api_status(DC_OK);
}

static dc_status begin(copy *c) {
    c->runs = c->over = false;
    DC_TRY(dc_handle_reset(&c->env, c->task));
    c->runs = true;
    return DC_OK;
}

static double *row_of(double *rows, int i, int width) {
    return rows + (ptrdiff_t)i * width;
}

static void put(const double *from, double *rows, int i, int width) {
    if (rows) memcpy(row_of(rows, i, width), from, (size_t)width * sizeof *from);
}

static void keep_error(copy *c) {
    if (c->status == DC_OK) return;
    c->runs = c->over = false;
    snprintf(c->error, sizeof c->error, "%s", dc_error());
}

static void reset_block(void *ctx, int i) {
    const job *j = ctx;
    copy *c = &j->vec->copies[i];
    c->status = DC_OK;
    if (j->marked && !j->marked[i]) return;
    c->status = begin(c);
    keep_error(c);
    if (c->status != DC_OK) return;
    put(c->env.obs, j->observations, i, j->vec->obs);
    put(c->env.goal, j->goals, i, j->vec->goal);
}

dcrl_status dcrl_vec_reset(dcrl_vec *vec, const unsigned char *marked, double *observations,
                           double *goals) {
    DC_API_GIVEN(vec);
    DC_API_GIVEN(observations);
    DC_API_GIVEN(goals);
    job j = {.vec = vec, .marked = marked, .observations = observations, .goals = goals};
    dc_pool_run(vec->pool, reset_block, &j, vec->count);
    return dc_api_status(first_error(vec));
}

typedef struct result {
    dc_outcome outcome;
    bool truncated, began;
} result;

static dc_status step_copy(const job *j, int i, result *r) {
    copy *c = &j->vec->copies[i];
    if (c->over) { // DCRL_RESET_NEXT_STEP
        r->began = true;
        return begin(c);
    }
    memcpy(c->env.action, j->actions + (ptrdiff_t)i * j->vec->act,
           (size_t)j->vec->act * sizeof *c->env.action);
    DC_TRY(dc_handle_step(&c->env, j->floats, &r->outcome));
    r->truncated = c->env.steps >= dcrl_env_horizon(&c->env);
    bool ends = r->outcome.success || r->truncated;
    c->over = ends && j->vec->autoreset == DCRL_RESET_NEXT_STEP;
    if (!ends || j->vec->autoreset != DCRL_RESET_SAME_STEP) return DC_OK;
    put(c->env.obs, j->out->last_observations, i, j->vec->obs);
    r->began = true;
    return begin(c);
}

static void step_block(void *ctx, int i) {
    const job *j = ctx;
    const dcrl_vec_step_out *out = j->out;
    copy *c = &j->vec->copies[i];
    result r = {0};
    c->status = step_copy(j, i, &r);
    keep_error(c);
    if (c->status != DC_OK) return;
    put(c->env.obs, out->observations, i, j->vec->obs);
    if (out->rewards) out->rewards[i] = r.outcome.reward;
    if (out->successes) out->successes[i] = r.outcome.success;
    if (out->truncated) out->truncated[i] = r.truncated;
    if (out->began) out->began[i] = r.began;
}

// Before a copy moves: what is wrong with one must not leave the others a step ahead.
static dc_status check_step(const dcrl_vec *v, const double *actions) {
    for (int i = 0; i < v->count; i++) {
        if (!v->copies[i].runs)
            return dc_fail(DC_USAGE, "call dcrl_vec_reset", "copy %d has no episode to step in", i);
        for (int k = 0; k < v->act; k++)
            if (!isfinite(actions[(ptrdiff_t)i * v->act + k]))
                return dc_fail(DC_BAD_INPUT, "act with numbers within [-1, 1]",
                               "value %d of action %d is NaN or Inf", k, i);
    }
    return DC_OK;
}

dcrl_status dcrl_vec_step(dcrl_vec *vec, const double *actions, int floats,
                          const dcrl_vec_step_out *out) {
    DC_API_GIVEN(vec);
    DC_API_GIVEN(actions);
    DC_API_GIVEN(out);
    DC_API_GIVEN(out->observations);
    dc_status status = check_step(vec, actions);
    if (status != DC_OK) return dc_api_status(status);
    job j = {.vec = vec, .actions = actions, .floats = floats != 0, .out = out};
    dc_pool_run(vec->pool, step_block, &j, vec->count);
    return dc_api_status(first_error(vec));
}

dcrl_status dcrl_vec_goals(const dcrl_vec *vec, double *goals) {
    DC_API_GIVEN(vec);
    DC_API_GIVEN(goals);
    for (int i = 0; i < vec->count; i++)
        put(vec->copies[i].env.goal, goals, i, vec->goal);
    return dc_api_status(DC_OK);
}
