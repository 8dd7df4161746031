// Policies of the public API: rollout/actor behind a handle that knows where its observations end and
// its goals begin. Any number of rows is asked in chunks of the actor's size.
#include "api/api.h"
#include "base/file.h"
#include "rollout/actor.h"
#include "train/folder.h"
#include "train/pick.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 };

struct dcrl_policy {
    dc_pool *pool;
    dc_actor actor;
    dcrl_sizes sizes;
    char env[DC_TEXT_MAX];
    char path[DC_PATH_MAX]; // of the checkpoint
    float *rows;            // (CHUNK, obs + goal)
    float *taken;           // (CHUNK, act) that distances are asked for; NULL before the first
    uint64_t asked;         // rows so far
};

// The checkpoint of a step, -1 for the newest.
static dc_status pick(const char *folder, int64_t step, char path[DC_PATH_MAX]) {
    char run[DC_PATH_MAX];
    DC_TRY(dc_folder_run(run, folder));
    DC_TRY(dc_pick_in(run, &step));
    if (step < 0) return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", run);
    return dc_folder_checkpoint(path, run, step);
}

static dc_status open_policy(dcrl_policy *p, const char *path, int64_t step, int threads) {
    char picked[DC_PATH_MAX];
    dc_actor_options options = {.rows = CHUNK, .quick_row = true};
    bool folder;
    DC_TRY(dc_folder_find(path, &folder));
    if (folder) {
        DC_TRY(pick(path, step, picked));
        path = picked;
    }
    if (threads != 1) DC_TRY(dc_pool_new(&p->pool, threads));
    DC_TRY(dc_actor_open(&p->actor, path, &options, p->pool));
    snprintf(p->path, sizeof p->path, "%s", path);
    snprintf(p->env, sizeof p->env, "%s", p->actor.from.env);
    p->sizes = (dcrl_sizes){p->actor.obs, p->actor.goal, p->actor.act};
    if (step >= 0 && p->actor.from.step != step)
        return dc_fail(DC_USAGE, "give -1, or the run's folder",
                       "%s is of step %" PRId64 ", not of %" PRId64, path, p->actor.from.step,
                       step);
    p->rows = calloc((size_t)CHUNK * (size_t)p->actor.in, sizeof *p->rows);
    return p->rows ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for a policy");
}

dcrl_status dcrl_policy_open_step(dcrl_policy **policy, const char *path, int64_t step,
                                  int threads) {
    DC_API_GIVEN(policy);
    *policy = NULL;
    DC_API_GIVEN(path);
    DC_API_THREADS(threads);
    DC_API_NEED(step >= -1, "give a checkpoint's step, or -1 for the newest",
                "there is no such step (%lld)", (long long)step);
    dcrl_policy *p = calloc(1, sizeof *p);
    if (!p) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for a policy"));
    dc_status status = open_policy(p, path, step, threads);
    if (status == DC_OK)
        *policy = p;
    else
        dcrl_policy_close(p);
    return dc_api_status(status);
}

dcrl_status dcrl_policy_open(dcrl_policy **policy, const char *path, int threads) {
    return dcrl_policy_open_step(policy, path, -1, threads);
}

int64_t dcrl_policy_step(const dcrl_policy *policy) {
    return policy ? policy->actor.from.step : -1;
}

dcrl_sizes dcrl_policy_sizes(const dcrl_policy *policy) {
    return policy ? policy->sizes : (dcrl_sizes){0, 0, 0};
}

const char *dcrl_policy_env(const dcrl_policy *policy) {
    return policy ? policy->env : "";
}

// Observations and goals side by side, at most CHUNK.
static void pack(dcrl_policy *p, int count, const float *observations, const float *goals) {
    size_t obs = (size_t)p->sizes.obs, goal = (size_t)p->sizes.goal;
    for (size_t r = 0; r < (size_t)count; r++) {
        float *row = p->rows + r * (obs + goal);
        memcpy(row, observations + r * obs, obs * sizeof *row);
        memcpy(row + obs, goals + r * goal, goal * sizeof *row);
    }
}

static dc_status act_packed(dcrl_policy *p, int count, float *actions) {
    uint64_t moments[CHUNK]; // no row is asked twice
    for (int r = 0; r < count; r++)
        moments[r] = p->asked++;
    return dc_actor_act(&p->actor, count, p->rows, moments, actions);
}

static dc_status check_finite(const char *what, const float *values, int count, int width) {
    uint64_t n = (uint64_t)count * (uint64_t)width, bad = dc_layout_first_bad(values, n);
    if (bad == n) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "ask with finite numbers", "NaN or Inf in %s %lld", what,
                   (long long)(bad / (uint64_t)width));
}

static dc_status act(dcrl_policy *p, int count, const float *observations, const float *goals,
                     float *actions) {
    DC_TRY(check_finite("observation", observations, count, p->sizes.obs));
    DC_TRY(check_finite("goal", goals, count, p->sizes.goal));
    for (int at = 0; at < count; at += CHUNK) {
        int n = count - at < CHUNK ? count - at : CHUNK;
        pack(p, n, observations + (ptrdiff_t)at * p->sizes.obs,
             goals + (ptrdiff_t)at * p->sizes.goal);
        DC_TRY(act_packed(p, n, actions + (ptrdiff_t)at * p->sizes.act));
    }
    return DC_OK;
}

dcrl_status dcrl_policy_act(dcrl_policy *policy, int count, const float *observations,
                            const float *goals, float *actions) {
    DC_API_GIVEN(policy);
    DC_API_NEED(count >= 0, "give the number of rows", "count is negative (%d)", count);
    if (count == 0) return dc_api_status(DC_OK);
    DC_API_GIVEN(observations);
    DC_API_GIVEN(goals);
    DC_API_GIVEN(actions);
    dc_status status = act(policy, count, observations, goals, actions);
    if (status != DC_OK) // nothing that a robot could take for an action
        memset(actions, 0, (size_t)count * (size_t)policy->sizes.act * sizeof *actions);
    return dc_api_status(status);
}

// The policy's own actions, as a value takes them: of discrete ones, 1 for the choice and 0 for the others.
static dc_status take_own(dcrl_policy *p, int count) {
    int act = p->sizes.act;
    DC_TRY(act_packed(p, count, p->taken));
    for (int r = 0; r < count && p->actor.from.method.actions; r++) {
        float *values = p->taken + (ptrdiff_t)r * act;
        int best = 0;
        for (int c = 1; c < act; c++)
            if (values[c] > values[best]) best = c;
        memset(values, 0, (size_t)act * sizeof *values);
        values[best] = 1;
    }
    return DC_OK;
}

static dc_status distance(dcrl_policy *p, int count, const float *observations, const float *goals,
                          const float *actions, float *steps) {
    int act = p->sizes.act;
    DC_TRY(dc_actor_add_value(&p->actor));
    DC_TRY(check_finite("observation", observations, count, p->sizes.obs));
    DC_TRY(check_finite("goal", goals, count, p->sizes.goal));
    if (actions) DC_TRY(check_finite("action", actions, count, act));
    if (!actions && !p->taken) p->taken = calloc(CHUNK * (size_t)act, sizeof *p->taken);
    if (!actions && !p->taken) return dc_fail(DC_NO_MEMORY, NULL, "no memory for actions");
    for (int at = 0; at < count; at += CHUNK) {
        int n = count - at < CHUNK ? count - at : CHUNK;
        pack(p, n, observations + (ptrdiff_t)at * p->sizes.obs,
             goals + (ptrdiff_t)at * p->sizes.goal);
        if (!actions) DC_TRY(take_own(p, n));
        const float *taken = actions ? actions + (ptrdiff_t)at * act : p->taken;
        DC_TRY(dc_actor_steps(&p->actor, n, p->rows, taken, steps + at));
    }
    return DC_OK;
}

dcrl_status dcrl_policy_distance(dcrl_policy *policy, int count, const float *observations,
                                 const float *goals, const float *actions, float *steps) {
    DC_API_GIVEN(policy);
    DC_API_NEED(count >= 0, "give the number of rows", "count is negative (%d)", count);
    if (count == 0) return dc_api_status(dc_actor_add_value(&policy->actor));
    DC_API_GIVEN(observations);
    DC_API_GIVEN(goals);
    DC_API_GIVEN(steps);
    dc_status status = distance(policy, count, observations, goals, actions, steps);
    for (int r = 0; status != DC_OK && r < count; r++)
        steps[r] = NAN;
    return dc_api_status(status);
}

int dcrl_policy_choices(const dcrl_policy *policy) {
    return policy ? policy->actor.from.method.actions : 0;
}

dcrl_status dcrl_policy_action_range(const dcrl_policy *policy, float *low, float *high) {
    DC_API_GIVEN(policy);
    DC_API_GIVEN(low);
    DC_API_GIVEN(high);
    const dc_method *method = &policy->actor.from.method;
    const dc_act_scale *scale = method->act_scale;
    float usual = method->actions ? INFINITY : 1;
    for (int k = 0; k < policy->sizes.act; k++) {
        low[k] = scale ? scale->low[k] : -usual;
        high[k] = scale ? scale->high[k] : usual;
    }
    return dc_api_status(DC_OK);
}

// ---- evaluation ----

typedef struct listener {
    dcrl_eval_fn *fn;
    void *ctx;
    atomic_int stop;
} listener;

static void tell(void *ctx, int64_t done, int64_t all) {
    listener *l = ctx;
    if (l->fn(l->ctx, done, all) != 0) atomic_store(&l->stop, 1);
}

static dc_status play(const dcrl_policy *p, const char *env, int episodes, uint64_t seed,
                      listener *l, dc_eval_score *score) {
    dc_env_spec spec;
    dc_world *world = NULL;
    dc_actor_options options = {.rows = episodes * DC_TASKS, .seed = seed};
    dc_eval_progress progress = {tell, l};
    DC_TRY(dc_env_find(&spec, env));
    dc_actor *actor = calloc(1, sizeof *actor); // too large for a small stack
    if (!actor) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a policy");
    dc_status status = dc_actor_open(actor, p->path, &options, p->pool);
    if (status == DC_OK) status = dc_world_new(&world, &spec);
    if (status == DC_OK)
        status = dc_evaluate(world, actor, episodes, seed, p->pool, &l->stop,
                             l->fn ? &progress : NULL, score);
    dc_world_free(world);
    dc_actor_fini(actor);
    free(actor);
    return status;
}

dcrl_status dcrl_policy_evaluate(dcrl_policy *policy, const char *env, int episodes, uint64_t seed,
                                 dcrl_eval_fn *progress, void *ctx, dcrl_score *score) {
    DC_API_GIVEN(policy);
    DC_API_GIVEN(score);
    DC_API_NEED(episodes >= 1 && episodes <= 10000, "give 1 to 10000",
                "impossible number of episodes (%d)", episodes);
    DC_API_NEED(env || *policy->env, "name one",
                "env is NULL, and the policy was trained for none (%s)", policy->path);
    listener l = {.fn = progress, .ctx = ctx};
    dc_eval_score got;
    dc_status status = play(policy, env ? env : policy->env, episodes, seed, &l, &got);
    if (status == DC_OK) *score = dc_api_score(&got);
    return dc_api_status(status);
}

void dcrl_policy_close(dcrl_policy *policy) {
    if (!policy) return;
    dc_actor_fini(&policy->actor);
    dc_pool_free(policy->pool);
    free(policy->rows);
    free(policy->taken);
    free(policy);
}
