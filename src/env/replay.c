// Starts are independent, so they are dealt out in blocks; a block has one copy of the environment
// and resets it wholly between starts, which makes the result the same for any number of threads.
#include "env/replay.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 64, ERROR_TEXT = 400 };

typedef struct job {
    const dc_replay *r;
    const dc_world *world;
    int blocks;
    dc_status status[BLOCKS];
    char error[BLOCKS][ERROR_TEXT]; // of a block that failed: messages belong to threads
} job;

// Write row t of start s from the state; the step's own observation has been written already.
static void put_state(const dc_replay *r, const dc_env *env, int64_t row, dc_outcome outcome) {
    const dc_env_family *f = dc_world_spec(env->world)->family;
    memcpy(r->out_qpos + row * f->nq, dc_env_qpos(env), (size_t)f->nq * sizeof(double));
    memcpy(r->out_qvel + row * f->nv, dc_env_qvel(env), (size_t)f->nv * sizeof(double));
    double extra[DC_EXTRA_MAX];
    dc_env_extra(env, extra);
    for (int k = 0; k < f->extra; k++)
        r->out_extra[row * f->extra + k] = (uint8_t)extra[k];
    r->success[row] = outcome.success;
    r->reward[row] = outcome.reward;
}

static dc_status begin(const dc_replay *r, dc_env *env, int64_t s) {
    const dc_env_spec *spec = dc_world_spec(env->world);
    const dc_env_family *f = spec->family;
    if (!r->tasks) {
        DC_TRY(dc_env_set(env, r->qpos + s * f->nq, r->qvel + s * f->nv,
                          r->extra ? r->extra + s * f->extra : NULL));
        for (int k = 0; k < f->oracle; k++)
            env->goal[k] = r->target ? r->target[f->oracle * s + k] : 0;
        return DC_OK;
    }
    return dc_env_reset(env, (int)r->tasks[s], r->out_goal + s * spec->goal);
}

static dc_status play(const dc_replay *r, dc_env *env, int64_t s) {
    const dc_env_family *f = dc_world_spec(env->world)->family;
    int64_t row = s * (r->steps + 1), obs = dc_world_spec(env->world)->obs;
    DC_TRY(begin(r, env, s));
    memcpy(r->out_target + f->oracle * s, env->goal, (size_t)f->oracle * sizeof *env->goal);
    DC_TRY(dc_env_observe(env, r->out_obs + row * obs));
    put_state(r, env, row, dc_env_outcome(env));
    for (int64_t t = 0; t < r->steps; t++) {
        dc_outcome outcome;
        DC_TRY(dc_env_step(env, r->actions + (s * r->steps + t) * f->act,
                           r->out_obs + (++row) * obs, &outcome));
        put_state(r, env, row, outcome);
    }
    return DC_OK;
}

static dc_status play_drawing(const dc_replay *r, dc_env *env, int64_t s) {
    dc_philox_draws philox;
    dc_list_draws list = {0};
    env->draws = r->draws ? dc_draws_list(&list, r->draws + s * r->draw_count, r->draw_count)
                          : dc_draws_philox(&philox, r->seed, (uint64_t)s);
    DC_TRY(play(r, env, s));
    if (r->draws && list.used > list.count)
        return dc_fail(DC_BAD_INPUT, "record every draw of the reset and of teleports",
                       "start %lld needs %lld draws and has %lld", (long long)s,
                       (long long)list.used, (long long)list.count);
    return DC_OK;
}

static dc_status play_block(const job *j, int block) {
    dc_env env;
    DC_TRY(dc_env_new(&env, j->world, (dc_draws){0}));
    env.float_actions = j->r->float_actions;
    dc_status status = DC_OK;
    int64_t end = j->r->starts * (block + 1) / j->blocks;
    for (int64_t s = j->r->starts * block / j->blocks; s < end && status == DC_OK; s++)
        status = play_drawing(j->r, &env, s);
    dc_env_free(&env);
    return status;
}

static void run_block(void *ctx, int block) {
    job *j = ctx;
    j->status[block] = play_block(j, block);
    if (j->status[block] != DC_OK) snprintf(j->error[block], ERROR_TEXT, "%s", dc_error());
}

dc_status dc_replay_run(const dc_replay *replay, const dc_world *world, dc_pool *pool) {
    job j = {.r = replay, .world = world};
    j.blocks = replay->starts < BLOCKS ? (int)replay->starts : BLOCKS;
    dc_pool_run(pool, run_block, &j, j.blocks);
    for (int b = 0; b < j.blocks; b++)
        if (j.status[b] != DC_OK) return dc_fail(j.status[b], NULL, "%s", j.error[b]);
    return DC_OK;
}
