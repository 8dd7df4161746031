// An episode draws its start and goal, is reset, and then acts, steps and records; see env/gen.h.
#include "env/gen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS_MAX = 64, ERROR_TEXT = 400, POINT = 2, STITCH_STEPS = 4 };

// ---- sizes ----

dc_status dc_gen_init(dc_gen *gen, const dc_env_spec *spec, dc_data_kind kind, int64_t *episodes) {
    if (!spec->maze)
        return dc_fail(DC_UNSUPPORTED,
                       "bring a file of your own or OGBench's published one: dcrl train --data "
                       "FILE.npz trains on it",
                       "data of %s cannot be made yet", spec->family->name);
    bool stitch = kind == DC_DATA_STITCH, giant = !strcmp(spec->maze->name, "giant");
    if (spec->family->robot != DC_POINT)
        return dc_fail(DC_UNSUPPORTED,
                       "bring a file of your own or OGBench's published one: dcrl data info "
                       "FILE.npz reads it, "
                       "dcrl train --data FILE.npz trains on it",
                       "data of %s needs a trained expert policy, which dcrl does not have",
                       spec->family->name);
    if (kind == DC_DATA_EXPLORE)
        return dc_fail(DC_USAGE, "--type navigate|stitch", "there is no explore data of %s",
                       spec->family->name);
    *gen = (dc_gen){.kind = stitch ? kind : DC_DATA_NAVIGATE, .noise = 0.5};
    gen->rows = stitch ? 201 : giant ? 2001 : 1001;
    *episodes = stitch ? 5000 : giant ? 500 : 1000;
    return DC_OK;
}

// ---- cells ----

typedef struct cells {
    int count;
    dc_cell at[DC_MAZE_CELLS];
} cells;

static bool wall_at(const dc_maze *maze, dc_cell c, int i, int j) {
    return dc_maze_wall(maze, (dc_cell){c.i + i, c.j + j});
}

// A free cell with walls on two opposite sides and none on the others.
static bool is_hallway(const dc_maze *maze, dc_cell c) {
    bool up = wall_at(maze, c, -1, 0), down = wall_at(maze, c, 1, 0);
    bool left = wall_at(maze, c, 0, -1), right = wall_at(maze, c, 0, 1);
    return (!up && !down && left && right) || (up && down && !left && !right);
}

// Free cells row by row; without hallways if so wished.
static void list_free(const dc_maze *maze, bool hallways, cells *out) {
    out->count = 0;
    for (int k = 0; k < maze->rows * maze->cols; k++) {
        dc_cell c = {k / maze->cols, k % maze->cols};
        if (!dc_maze_wall(maze, c) && (hallways || !is_hallway(maze, c))) out->at[out->count++] = c;
    }
}

// Cells at a distance from another, in the order in which a breadth-first search meets them.
static void list_distant(const dc_maze *maze, dc_cell from, int distance, cells *out) {
    int steps[DC_MAZE_CELLS];
    dc_cell order[DC_MAZE_CELLS];
    int met = dc_maze_steps(maze, from, steps, order);
    out->count = 0;
    for (int k = 0; k < met; k++)
        if (steps[order[k].i * maze->cols + order[k].j] == distance)
            out->at[out->count++] = order[k];
}

// ---- an episode ----

typedef struct episode {
    const dc_gen *gen;
    const dc_maze *maze;
    const cells *corners; // where goals of `navigate` lie
    dc_env *env;
    dc_gen_rows out;          // of this episode
    int steps[DC_MAZE_CELLS]; // to the goal
} episode;

static dc_cell pick(dc_env *env, const cells *from) {
    return from->at[env->draws.below(env->draws.ctx, from->count)];
}

static dc_maze_task draw_task(const episode *e) {
    cells from;
    list_free(e->maze, true, &from);
    dc_maze_task task = {.start = pick(e->env, &from)};
    if (e->gen->kind == DC_DATA_NAVIGATE) {
        task.goal = pick(e->env, e->corners);
        return task;
    }
    list_distant(e->maze, task.start, STITCH_STEPS, &from);
    task.goal = from.count ? pick(e->env, &from) : task.start;
    return task;
}

// The neighbour that is nearest to the goal; the cell itself where no way leads there.
static dc_cell next_cell(const episode *e, dc_cell at) {
    static const dc_cell around[4] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}};
    dc_cell best = at;
    if (dc_maze_wall(e->maze, at)) return at;
    for (int k = 0; k < 4; k++) {
        dc_cell c = {at.i + around[k].i, at.j + around[k].j};
        if (dc_maze_wall(e->maze, c)) continue;
        if (e->steps[c.i * e->maze->cols + c.j] < e->steps[best.i * e->maze->cols + best.j])
            best = c;
    }
    return best;
}

// Towards the next cell at full speed, plus noise.
static void act(const episode *e, double *action) {
    const double *xy = dc_env_qpos(e->env);
    double to[POINT], x, y;
    dc_maze_xy(next_cell(e, dc_maze_cell(xy)), to);
    x = to[0] - xy[0];
    y = to[1] - xy[1];
    double length = sqrt(fma(y, y, x * x)) + 1e-6;
    action[0] = x / length;
    action[1] = y / length;
    for (int k = 0; k < POINT; k++) {
        action[k] += e->gen->noise * e->env->draws.normal(e->env->draws.ctx);
        action[k] = fmin(fmax(action[k], -1), 1);
    }
}

static void put(float *to, int64_t row, const double *from) {
    for (int k = 0; k < POINT; k++)
        to[row * POINT + k] = (float)from[k];
}

static dc_status play_row(episode *e, int64_t row, double *obs) {
    double action[POINT];
    dc_outcome outcome;
    act(e, action);
    put(e->out.obs, row, obs);
    put(e->out.act, row, action);
    put(e->out.qpos, row, dc_env_qpos(e->env));
    put(e->out.qvel, row, dc_env_qvel(e->env));
    e->out.terminals[row] = row + 1 == e->gen->rows;
    DC_TRY(dc_env_step(e->env, action, obs, &outcome));
    if (outcome.success && e->gen->kind == DC_DATA_NAVIGATE) {
        dc_env_near(e->env, pick(e->env, e->corners), e->env->goal);
        dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    }
    return DC_OK;
}

static dc_status play_episode(episode *e) {
    double obs[POINT];
    dc_maze_task task = draw_task(e);
    DC_TRY(dc_env_begin(e->env, &task, NULL));
    dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    dc_env_observe(e->env, obs);
    for (int64_t row = 0; row < e->gen->rows; row++)
        DC_TRY(play_row(e, row, obs));
    return DC_OK;
}

// ---- many ----

typedef struct job {
    const dc_gen *gen;
    const dc_gen_rows *out;
    cells corners;
    int64_t first, count;
    int blocks;
    dc_status status[BLOCKS_MAX];
    char error[BLOCKS_MAX][ERROR_TEXT]; // of a block that failed: messages belong to threads
} job;

// The rows of episode k of this job.
static dc_gen_rows rows_of(const job *j, int64_t k) {
    int64_t at = k * j->gen->rows;
    const dc_gen_rows *o = j->out;
    return (dc_gen_rows){o->obs + at * POINT, o->act + at * POINT, o->qpos + at * POINT,
                         o->qvel + at * POINT, o->terminals + at};
}

static dc_status play_numbered(const job *j, dc_env *env, int64_t k) {
    const dc_gen *gen = j->gen;
    dc_philox_draws philox;
    dc_list_draws list = {0};
    env->draws = gen->draws ? dc_draws_list(&list, gen->draws + (j->first + k) * gen->draw_count,
                                            gen->draw_count)
                            : dc_draws_philox(&philox, gen->seed, (uint64_t)(j->first + k));
    episode e = {
        .gen = gen, .maze = dc_world_spec(gen->world)->maze, .corners = &j->corners, .env = env};
    e.out = rows_of(j, k);
    DC_TRY(play_episode(&e));
    if (gen->draws && list.used > list.count)
        return dc_fail(DC_BAD_INPUT, NULL, "episode %lld takes %lld draws and was given %lld",
                       (long long)(j->first + k), (long long)list.used, (long long)list.count);
    return DC_OK;
}

static dc_status play_block(const job *j, int block) {
    dc_env env;
    DC_TRY(dc_env_new(&env, j->gen->world, (dc_draws){0}));
    dc_status status = DC_OK;
    int64_t end = j->count * (block + 1) / j->blocks;
    for (int64_t k = j->count * block / j->blocks; k < end && status == DC_OK; k++)
        status = play_numbered(j, &env, k);
    dc_env_free(&env);
    return status;
}

static void run_block(void *ctx, int block) {
    job *j = ctx;
    j->status[block] = play_block(j, block);
    if (j->status[block] != DC_OK) snprintf(j->error[block], ERROR_TEXT, "%s", dc_error());
}

dc_status dc_gen_play(const dc_gen *gen, int64_t first, int64_t count, const dc_gen_rows *out,
                      dc_pool *pool) {
    job j = {.gen = gen, .out = out, .first = first, .count = count};
    j.blocks = count < BLOCKS_MAX ? (int)count : BLOCKS_MAX;
    list_free(dc_world_spec(gen->world)->maze, false, &j.corners);
    dc_pool_run(pool, run_block, &j, j.blocks);
    for (int b = 0; b < j.blocks; b++)
        if (j.status[b] != DC_OK) return dc_fail(j.status[b], NULL, "%s", j.error[b]);
    return DC_OK;
}
