// Evaluation, see eval.h.
#include "rollout/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES_MAX = 10000 };

// One episode in the making.
typedef struct episode {
    dc_env env;
    dc_philox_draws draws;
    bool done, success;
    int steps;
    dc_status status;
    char error[256];
} episode;

typedef struct party { // all episodes together
    const dc_world *world;
    const dc_env_spec *spec;
    episode *episodes; // (count)
    int count, per_task;
    uint64_t seed;
    double *obs, *goal;    // (count, obs), (count, goal)
    float *rows, *actions; // packed for the policy: (active, obs + goal), (active, act)
    uint64_t *moments;     // (active) what the policy's noise is drawn by
    int *active;           // (count) numbers of the episodes that go on
    int active_count;
    dc_paths *paths;     // Nullable
    const dc_tell *tell; // Nullable
} party;

static void keep_place(party *p, int e) {
    if (!p->paths) return;
    dc_path *path = &p->paths->path[e];
    const double *obs = p->obs + (int64_t)e * p->spec->family->obs;
    path->xy[2 * path->count] = (float)obs[0];
    path->xy[2 * path->count + 1] = (float)obs[1];
    path->count++;
    path->success = p->episodes[e].success;
    memcpy(path->goal, p->episodes[e].env.goal, sizeof path->goal);
}

static dc_status start(party *p, int e) {
    episode *x = &p->episodes[e];
    dc_draws draws = dc_draws_philox(&x->draws, p->seed, (uint64_t)e);
    DC_TRY(dc_env_new(&x->env, p->world, draws));
    x->env.float_actions = true; // as a float32 policy's actions are
    DC_TRY(dc_env_reset(&x->env, e / p->per_task + 1, p->goal + (int64_t)e * p->spec->goal));
    dc_env_observe(&x->env, p->obs + (int64_t)e * p->spec->family->obs);
    keep_place(p, e);
    return DC_OK;
}

static void keep_error(episode *x) {
    if (x->status == DC_OK) return;
    x->done = true;
    strncpy(x->error, dc_error(), sizeof x->error - 1);
}

static void start_block(void *ctx, int e) {
    party *p = ctx;
    p->episodes[e].status = start(p, e);
    keep_error(&p->episodes[e]);
}

// Take the action of active episode number a.
static void step_block(void *ctx, int a) {
    party *p = ctx;
    int act = p->spec->family->act, e = p->active[a];
    episode *x = &p->episodes[e];
    double action[64];
    dc_outcome outcome = {0};
    for (int c = 0; c < act; c++)
        action[c] = (double)p->actions[(int64_t)a * act + c];
    x->status = dc_env_step(&x->env, action, p->obs + (int64_t)e * p->spec->family->obs, &outcome);
    x->steps++;
    x->success = outcome.success;
    x->done = outcome.success || x->steps >= p->spec->horizon;
    keep_place(p, e);
    keep_error(x);
}

// The rows of episodes that go on, one behind the other.
static void pack(party *p) {
    int obs = p->spec->family->obs, goal = p->spec->goal;
    p->active_count = 0;
    for (int e = 0; e < p->count; e++) {
        if (p->episodes[e].done) continue;
        float *row = p->rows + (int64_t)p->active_count * (obs + goal);
        for (int c = 0; c < obs; c++)
            row[c] = (float)p->obs[(int64_t)e * obs + c];
        for (int c = 0; c < goal; c++)
            row[obs + c] = (float)p->goal[(int64_t)e * goal + c];
        p->moments[p->active_count] =
            dc_actor_moment(e / p->per_task, e % p->per_task, p->episodes[e].steps);
        p->active[p->active_count++] = e;
    }
}

static dc_status first_error(const party *p) {
    for (int e = 0; e < p->count; e++)
        if (p->episodes[e].status != DC_OK)
            return dc_fail(p->episodes[e].status, NULL, "%s", p->episodes[e].error);
    return DC_OK;
}

// Every step of those that go on, taken or possible. They are in step with one another.
static void tell_steps(const party *p, int64_t done) {
    int left = p->spec->horizon - p->episodes[p->active[0]].steps;
    if (p->tell) p->tell->fn(p->tell->ctx, done, done + (int64_t)p->active_count * left);
}

static dc_status play(party *p, dc_actor *actor, dc_pool *pool, const atomic_int *stop) {
    int64_t done = 0;
    dc_pool_run(pool, start_block, p, p->count);
    DC_TRY(first_error(p));
    for (pack(p); p->active_count; pack(p)) {
        if (stop && atomic_load(stop))
            return dc_fail(DC_INTERRUPTED, NULL, "stopped while evaluating");
        tell_steps(p, done);
        DC_TRY(dc_actor_act(actor, p->active_count, p->rows, p->moments, p->actions));
        dc_pool_run(pool, step_block, p, p->active_count);
        done += p->active_count;
        DC_TRY(first_error(p));
    }
    return DC_OK;
}

static void count_up(const party *p, dc_eval_score *score) {
    int successes = 0;
    double square = 0;
    *score = (dc_eval_score){.episodes = p->per_task};
    for (int e = 0; e < p->count; e++) {
        if (!p->episodes[e].success) continue;
        score->task[e / p->per_task] += 1.0 / p->per_task;
        score->mean_steps += p->episodes[e].steps;
        successes++;
    }
    if (successes) score->mean_steps /= successes;
    for (int t = 0; t < DC_TASKS; t++)
        score->overall += score->task[t] / DC_TASKS;
    for (int t = 0; t < DC_TASKS; t++)
        square += (score->task[t] - score->overall) * (score->task[t] - score->overall);
    score->sd = sqrt(square / (DC_TASKS - 1));
}

static dc_status allocate(party *p) {
    size_t n = (size_t)p->count, obs = (size_t)p->spec->family->obs, goal = (size_t)p->spec->goal;
    p->episodes = calloc(n, sizeof *p->episodes);
    p->obs = calloc(n * obs, sizeof *p->obs);
    p->goal = calloc(n * goal, sizeof *p->goal);
    p->rows = calloc(n * (obs + goal), sizeof *p->rows);
    p->actions = calloc(n * (size_t)p->spec->family->act, sizeof *p->actions);
    p->moments = calloc(n, sizeof *p->moments);
    p->active = calloc(n, sizeof *p->active);
    if (p->episodes && p->obs && p->goal && p->rows && p->actions && p->moments && p->active)
        return DC_OK;
    return dc_fail(DC_NO_MEMORY, "lower --episodes", "no memory for %d environments", p->count);
}

static void release(party *p) {
    for (int e = 0; p->episodes && e < p->count; e++)
        dc_env_free(&p->episodes[e].env);
    free(p->episodes);
    free(p->obs);
    free(p->goal);
    free(p->rows);
    free(p->actions);
    free(p->moments);
    free(p->active);
}

static dc_status evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                          dc_pool *pool, const atomic_int *stop, const dc_tell *tell,
                          dc_eval_score *score, dc_paths *paths) {
    const dc_env_spec *spec = dc_world_spec(world);
    DC_CHECK(episodes > 0 && episodes <= EPISODES_MAX && actor->rows >= episodes * DC_TASKS);
    DC_CHECK(spec->family->act <= 64);
    if (actor->in != spec->family->obs + spec->goal || actor->act != spec->family->act)
        return dc_fail(DC_BAD_INPUT,
                       "evaluate with the environment that it was trained for (and its -oraclerep)",
                       "the policy takes %d values and gives %d, %s has %d + %d and %d", actor->in,
                       actor->act, spec->name, spec->family->obs, spec->goal, spec->family->act);
    party p = {.world = world,
               .spec = spec,
               .count = episodes * DC_TASKS,
               .per_task = episodes,
               .seed = seed,
               .paths = paths,
               .tell = tell};
    dc_status status = allocate(&p);
    if (status == DC_OK) status = play(&p, actor, pool, stop);
    if (status == DC_OK) count_up(&p, score);
    release(&p);
    return status;
}

dc_status dc_evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                      dc_pool *pool, const atomic_int *stop, const dc_tell *tell,
                      dc_eval_score *score) {
    return evaluate(world, actor, episodes, seed, pool, stop, tell, score, NULL);
}

// --- paths ---

dc_status dc_paths_new(dc_paths *paths, const dc_env_spec *spec, int episodes) {
    size_t count = (size_t)episodes * DC_TASKS, room = ((size_t)spec->horizon + 1) * 2;
    *paths = (dc_paths){.episodes = episodes};
    paths->path = calloc(count, sizeof *paths->path);
    paths->xy = calloc(count * room, sizeof *paths->xy);
    if (!paths->path || !paths->xy) {
        dc_paths_free(paths);
        return dc_fail(DC_NO_MEMORY, "lower --episodes", "no memory for the paths of %zu episodes",
                       count);
    }
    for (size_t e = 0; e < count; e++)
        paths->path[e].xy = paths->xy + e * room;
    return DC_OK;
}

void dc_paths_free(dc_paths *paths) {
    free(paths->path);
    free(paths->xy);
    *paths = (dc_paths){0};
}

dc_status dc_evaluate_paths(const dc_world *world, dc_actor *actor, uint64_t seed, dc_pool *pool,
                            const atomic_int *stop, const dc_tell *tell, dc_eval_score *score,
                            dc_paths *paths) {
    for (int e = 0; e < paths->episodes * DC_TASKS; e++)
        paths->path[e].count = 0;
    return evaluate(world, actor, paths->episodes, seed, pool, stop, tell, score, paths);
}
