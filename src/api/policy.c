// Policies of the public API: rollout/actor behind a handle that knows where its observations end and
// its goals begin. Any number of rows is asked in chunks of the actor's size.
#include "api/api.h"
#include "base/file.h"
#include "rollout/actor.h"
#include "train/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 };

struct dcrl_policy {
    dc_pool *pool;
    dc_actor actor;
    dcrl_sizes sizes;
    char env[DC_TEXT_MAX];
    float *rows;    // (CHUNK, obs + goal)
    uint64_t asked; // rows so far
};

static dc_status newest(const char *folder, char path[DC_PATH_MAX]) {
    int64_t *steps;
    int count;
    DC_TRY(dc_folder_checkpoints(folder, &steps, &count));
    int64_t step = count ? steps[0] : -1;
    free(steps);
    if (step < 0) return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", folder);
    return dc_folder_checkpoint(path, folder, step);
}

static dc_status open_policy(dcrl_policy *p, const char *path, int threads) {
    char newest_path[DC_PATH_MAX];
    dc_actor_options options = {.rows = CHUNK};
    if (dc_folder_exists(path)) {
        DC_TRY(newest(path, newest_path));
        path = newest_path;
    }
    if (threads != 1) DC_TRY(dc_pool_new(&p->pool, threads));
    DC_TRY(dc_actor_open(&p->actor, path, &options, p->pool));
    snprintf(p->env, sizeof p->env, "%s", p->actor.from.env);
    p->sizes = (dcrl_sizes){p->actor.obs, p->actor.goal, p->actor.act};
    p->rows = calloc((size_t)CHUNK * (size_t)p->actor.in, sizeof *p->rows);
    return p->rows ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for a policy");
}

dcrl_status dcrl_policy_open(dcrl_policy **policy, const char *path, int threads) {
    DC_API_NEED(policy);
    *policy = NULL;
    DC_API_NEED(path && threads >= 0 && threads <= 1024);
    dcrl_policy *p = calloc(1, sizeof *p);
    if (!p) return dc_api_status(dc_fail(DC_NO_MEMORY, NULL, "no memory for a policy"));
    dc_status status = open_policy(p, path, threads);
    if (status == DC_OK)
        *policy = p;
    else
        dcrl_policy_close(p);
    return dc_api_status(status);
}

dcrl_sizes dcrl_policy_sizes(const dcrl_policy *policy) {
    return policy ? policy->sizes : (dcrl_sizes){0, 0, 0};
}

const char *dcrl_policy_env(const dcrl_policy *policy) {
    return policy ? policy->env : "";
}

static dc_status act_piece(dcrl_policy *p, int count, const float *observations, const float *goals,
                           float *actions) {
    size_t obs = (size_t)p->sizes.obs, goal = (size_t)p->sizes.goal;
    uint64_t moments[CHUNK]; // no row is asked twice
    for (size_t r = 0; r < (size_t)count; r++) {
        moments[r] = p->asked++;
        float *row = p->rows + r * (obs + goal);
        memcpy(row, observations + r * obs, obs * sizeof *row);
        memcpy(row + obs, goals + r * goal, goal * sizeof *row);
    }
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
        DC_TRY(act_piece(p, n, observations + (ptrdiff_t)at * p->sizes.obs,
                         goals + (ptrdiff_t)at * p->sizes.goal,
                         actions + (ptrdiff_t)at * p->sizes.act));
    }
    return DC_OK;
}

dcrl_status dcrl_policy_act(dcrl_policy *policy, int count, const float *observations,
                            const float *goals, float *actions) {
    DC_API_NEED(policy && count >= 0);
    if (count == 0) return DCRL_OK;
    DC_API_NEED(observations && goals && actions);
    return dc_api_status(act(policy, count, observations, goals, actions));
}

void dcrl_policy_close(dcrl_policy *policy) {
    if (!policy) return;
    dc_actor_fini(&policy->actor);
    dc_pool_free(policy->pool);
    free(policy->rows);
    free(policy);
}
