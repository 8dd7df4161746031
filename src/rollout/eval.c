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

typedef struct evaluation { // all episodes together
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
    dc_paths *paths;                  // Nullable
    dc_ranks *ranks;                  // Nullable
    const dc_eval_progress *progress; // Nullable
} evaluation;

static void keep_position(evaluation *v, int e) {
    if (!v->paths) return;
    dc_path *path = &v->paths->path[e];
    const double *obs = v->obs + (int64_t)e * v->spec->obs;
    path->xy[2 * path->count] = (float)obs[0];
    path->xy[2 * path->count + 1] = (float)obs[1];
    path->count++;
    path->success = v->episodes[e].success;
    memcpy(path->goal, v->episodes[e].env.goal, sizeof path->goal);
}

static dc_status start(evaluation *v, int e) {
    episode *x = &v->episodes[e];
    dc_draws draws = dc_draws_philox(&x->draws, v->seed, (uint64_t)e);
    DC_TRY(dc_env_new(&x->env, v->world, draws));
    x->env.float_actions = true; // as a float32 policy's actions are
    DC_TRY(dc_env_reset(&x->env, e / v->per_task + 1, v->goal + (int64_t)e * v->spec->goal));
    DC_TRY(dc_env_observe(&x->env, v->obs + (int64_t)e * v->spec->obs));
    keep_position(v, e);
    return dc_env_check(&x->env, v->obs + (int64_t)e * v->spec->obs);
}

static void keep_error(episode *x) {
    if (x->status == DC_OK) return;
    x->done = true;
    strncpy(x->error, dc_error(), sizeof x->error - 1);
}

static void start_block(void *ctx, int e) {
    evaluation *v = ctx;
    if (e % dc_ranks_count(v->ranks) != dc_ranks_rank(v->ranks)) { // another's
        v->episodes[e].done = true;
        return;
    }
    v->episodes[e].status = start(v, e);
    keep_error(&v->episodes[e]);
}

// Take the action of active episode number a.
static void step_block(void *ctx, int a) {
    evaluation *v = ctx;
    int act = v->spec->family->act, e = v->active[a];
    episode *x = &v->episodes[e];
    double action[64];
    dc_outcome outcome = {0};
    for (int c = 0; c < act; c++)
        action[c] = (double)v->actions[(int64_t)a * act + c];
    x->status = dc_env_step(&x->env, action, v->obs + (int64_t)e * v->spec->obs, &outcome);
    x->steps++;
    x->success = outcome.success;
    x->done = outcome.success || x->steps >= v->spec->horizon;
    keep_position(v, e);
    keep_error(x);
}

// The rows of episodes that go on, one behind the other.
static void pack(evaluation *v) {
    int obs = v->spec->obs, goal = v->spec->goal;
    v->active_count = 0;
    for (int e = 0; e < v->count; e++) {
        if (v->episodes[e].done) continue;
        float *row = v->rows + (int64_t)v->active_count * (obs + goal);
        for (int c = 0; c < obs; c++)
            row[c] = (float)v->obs[(int64_t)e * obs + c];
        for (int c = 0; c < goal; c++)
            row[obs + c] = (float)v->goal[(int64_t)e * goal + c];
        v->moments[v->active_count] =
            dc_actor_moment(e / v->per_task, e % v->per_task, v->episodes[e].steps);
        v->active[v->active_count++] = e;
    }
}

static dc_status first_error(const evaluation *v) {
    for (int e = 0; e < v->count; e++)
        if (v->episodes[e].status != DC_OK)
            return dc_fail(v->episodes[e].status, NULL, "%s", v->episodes[e].error);
    return DC_OK;
}

// Every step of those that go on, taken or possible. They are in step with one another.
static void show_progress(const evaluation *v, int64_t done) {
    int left = v->spec->horizon - v->episodes[v->active[0]].steps;
    if (v->progress)
        v->progress->fn(v->progress->ctx, done, done + (int64_t)v->active_count * left);
}

static dc_status play(evaluation *v, dc_actor *actor, dc_pool *pool, const atomic_int *stop) {
    int64_t done = 0;
    dc_pool_run(pool, start_block, v, v->count);
    DC_TRY(first_error(v));
    for (pack(v); v->active_count; pack(v)) {
        if (stop && atomic_load(stop))
            return dc_fail(DC_INTERRUPTED, NULL, "stopped while evaluating");
        show_progress(v, done);
        DC_TRY(dc_actor_act(actor, v->active_count, v->rows, v->moments, v->actions));
        dc_pool_run(pool, step_block, v, v->active_count);
        done += v->active_count;
        DC_TRY(first_error(v));
    }
    return DC_OK;
}

// What an episode came to, for other ranks.
typedef struct end {
    int32_t episode, steps, success;
} end;

static void share_ends(evaluation *v) {
    int ranks = dc_ranks_count(v->ranks), own = 0;
    int64_t sizes = (int64_t)sizeof(int64_t) * ranks, ends = (int64_t)sizeof(end) * v->count;
    int64_t *size = dc_ranks_buffer(v->ranks, 0, sizes + ends);
    end *ours = (end *)(size + ranks), *all = dc_ranks_buffer(v->ranks, 1, ends);
    for (int k = 0; k < ranks; k++)
        size[k] = ((v->count - k + ranks - 1) / ranks) * (int64_t)sizeof(end);
    for (int e = dc_ranks_rank(v->ranks); e < v->count; e += ranks)
        ours[own++] = (end){e, v->episodes[e].steps, v->episodes[e].success};
    dc_ranks_gather(v->ranks, ours, all, size);
    for (int k = 0; k < v->count; k++) {
        episode *x = &v->episodes[all[k].episode];
        x->steps = all[k].steps;
        x->success = all[k].success;
    }
}

// Ranks stop together. One that failed does not come here.
static dc_status meet(evaluation *v, dc_status status) {
    if (!v->ranks || (status != DC_OK && status != DC_INTERRUPTED)) return status;
    if (dc_ranks_any(v->ranks, status != DC_OK))
        return dc_fail(DC_INTERRUPTED, NULL, "stopped while evaluating");
    share_ends(v);
    return DC_OK;
}

static void count_up(const evaluation *v, dc_eval_score *score) {
    int successes = 0;
    double square = 0;
    *score = (dc_eval_score){.episodes = v->per_task};
    for (int e = 0; e < v->count; e++) {
        if (!v->episodes[e].success) continue;
        score->task[e / v->per_task] += 1.0 / v->per_task;
        score->mean_steps += v->episodes[e].steps;
        successes++;
    }
    if (successes) score->mean_steps /= successes;
    for (int t = 0; t < DC_TASKS; t++)
        score->overall += score->task[t] / DC_TASKS;
    for (int t = 0; t < DC_TASKS; t++)
        square += (score->task[t] - score->overall) * (score->task[t] - score->overall);
    score->sd = sqrt(square / (DC_TASKS - 1));
}

static dc_status allocate(evaluation *v) {
    size_t n = (size_t)v->count, obs = (size_t)v->spec->obs, goal = (size_t)v->spec->goal;
    v->episodes = calloc(n, sizeof *v->episodes);
    v->obs = calloc(n * obs, sizeof *v->obs);
    v->goal = calloc(n * goal, sizeof *v->goal);
    v->rows = calloc(n * (obs + goal), sizeof *v->rows);
    v->actions = calloc(n * (size_t)v->spec->family->act, sizeof *v->actions);
    v->moments = calloc(n, sizeof *v->moments);
    v->active = calloc(n, sizeof *v->active);
    if (v->episodes && v->obs && v->goal && v->rows && v->actions && v->moments && v->active)
        return DC_OK;
    return dc_fail(DC_NO_MEMORY, "lower --episodes", "no memory for %d environments", v->count);
}

static void release(evaluation *v) {
    for (int e = 0; v->episodes && e < v->count; e++)
        dc_env_free(&v->episodes[e].env);
    free(v->episodes);
    free(v->obs);
    free(v->goal);
    free(v->rows);
    free(v->actions);
    free(v->moments);
    free(v->active);
}

static dc_status evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                          dc_pool *pool, const atomic_int *stop, const dc_eval_progress *progress,
                          dc_ranks *ranks, dc_eval_score *score, dc_paths *paths) {
    const dc_env_spec *spec = dc_world_spec(world);
    DC_CHECK(episodes > 0 && episodes <= EPISODES_MAX && actor->rows >= episodes * DC_TASKS);
    DC_CHECK(spec->family->act <= 64);
    if (actor->in != spec->obs + spec->goal || actor->act != spec->family->act)
        return dc_fail(DC_BAD_INPUT,
                       "evaluate with the environment that it was trained for (and its -oraclerep)",
                       "the policy takes %d values and gives %d, %s has %d + %d and %d", actor->in,
                       actor->act, spec->name, spec->obs, spec->goal, spec->family->act);
    evaluation v = {.world = world,
                    .spec = spec,
                    .count = episodes * DC_TASKS,
                    .per_task = episodes,
                    .seed = seed,
                    .paths = paths,
                    .ranks = ranks,
                    .progress = progress};
    dc_status status = allocate(&v);
    if (status == DC_OK) status = meet(&v, play(&v, actor, pool, stop));
    if (status == DC_OK) count_up(&v, score);
    release(&v);
    return status;
}

dc_status dc_evaluate(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                      dc_pool *pool, const atomic_int *stop, const dc_eval_progress *progress,
                      dc_eval_score *score) {
    return evaluate(world, actor, episodes, seed, pool, stop, progress, NULL, score, NULL);
}

dc_status dc_evaluate_on_ranks(const dc_world *world, dc_actor *actor, int episodes, uint64_t seed,
                               dc_pool *pool, const atomic_int *stop,
                               const dc_eval_progress *progress, dc_ranks *ranks,
                               dc_eval_score *score) {
    return evaluate(world, actor, episodes, seed, pool, stop, progress, ranks, score, NULL);
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
                            const atomic_int *stop, const dc_eval_progress *progress,
                            dc_eval_score *score, dc_paths *paths) {
    for (int e = 0; e < paths->episodes * DC_TASKS; e++)
        paths->path[e].count = 0;
    return evaluate(world, actor, paths->episodes, seed, pool, stop, progress, NULL, score, paths);
}
