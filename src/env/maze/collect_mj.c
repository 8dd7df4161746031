// Episodes of mazes: draw start and goal, reset, and then act, step and record; see env/gen.h. A robot
// is led from cell to cell along the shortest way to a goal. `navigate` takes a new goal whenever one
// is reached; `stitch` goes to a position four cells away and stays; `explore` has no use for its goal and
// takes a new direction every ten steps. How the robot gets along is its family's business (dc_maze_act).
#include "env/maze/robots.h"

#include <math.h>
#include <string.h>

enum { STITCH_STEPS = 4, EXPLORE_STEPS = 10, TRIES = 1000 };

// ---- cells ----

static bool wall_at(const dc_maze *maze, dc_cell c, int i, int j) {
    return dc_maze_wall(maze, (dc_cell){c.i + i, c.j + j});
}

// A free cell with walls on two opposite sides and none on the others.
static bool is_hallway(const dc_maze *maze, dc_cell c) {
    bool up = wall_at(maze, c, -1, 0), down = wall_at(maze, c, 1, 0);
    bool left = wall_at(maze, c, 0, -1), right = wall_at(maze, c, 0, 1);
    return (!up && !down && left && right) || (up && down && !left && !right);
}

void dc_maze_list_free(const dc_maze *maze, bool hallways, dc_maze_cells *out) {
    out->count = 0;
    for (int k = 0; k < maze->rows * maze->cols; k++) {
        dc_cell c = {k / maze->cols, k % maze->cols};
        if (!dc_maze_wall(maze, c) && (hallways || !is_hallway(maze, c))) out->at[out->count++] = c;
    }
}

// Cells at a distance from another, in the order in which a breadth-first search meets them.
static void list_distant(const dc_maze *maze, dc_cell from, int distance, dc_maze_cells *out) {
    int steps[DC_MAZE_CELLS];
    dc_cell order[DC_MAZE_CELLS];
    int met = dc_maze_steps(maze, from, steps, order);
    out->count = 0;
    for (int k = 0; k < met; k++)
        if (steps[order[k].i * maze->cols + order[k].j] == distance)
            out->at[out->count++] = order[k];
}

dc_cell dc_maze_pick(dc_env *env, const dc_maze_cells *from) {
    return from->at[env->draws.below(env->draws.ctx, from->count)];
}

dc_cell dc_maze_next(const dc_maze *maze, const int *steps, dc_cell at) {
    static const dc_cell around[4] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}};
    dc_cell best = at;
    if (dc_maze_wall(maze, at)) return at;
    for (int k = 0; k < 4; k++) {
        dc_cell c = {at.i + around[k].i, at.j + around[k].j};
        if (dc_maze_wall(maze, c)) continue;
        if (steps[c.i * maze->cols + c.j] < steps[best.i * maze->cols + best.j]) best = c;
    }
    return best;
}

// ---- a row ----

void dc_maze_direct(double x, double y, double way[2]) {
    double length = sqrt(fma(y, y, x * x)) + 1e-6;
    way[0] = x / length;
    way[1] = y / length;
}

static void put(float *to, int64_t row, const double *from, int n) {
    for (int k = 0; k < n; k++)
        to[row * n + k] = (float)from[k];
}

static void keep(double *to, int64_t row, const double *from, int n) {
    if (to) memcpy(to + row * n, from, (size_t)n * sizeof *from);
}

dc_status dc_maze_row(const dc_gen *gen, dc_env *env, const dc_gen_rows *out, int64_t row,
                      double *action, double *obs, dc_outcome *outcome) {
    const dc_env_spec *spec = dc_world_spec(gen->world);
    const dc_env_family *f = spec->family;
    for (int k = 0; k < f->act; k++) {
        action[k] += gen->noise * env->draws.normal(env->draws.ctx);
        action[k] = fmin(fmax(action[k], -1), 1);
    }
    dc_gen_put_obs(out, spec, row, obs);
    put(out->act, row, action, f->act);
    put(out->qpos, row, dc_env_qpos(env), f->nq);
    put(out->qvel, row, dc_env_qvel(env), f->nv);
    keep(out->exact, row, dc_env_qpos(env), f->nq);
    keep(out->exact_act, row, action, f->act);
    out->terminals[row] = row + 1 == gen->rows;
    DC_TRY(dc_env_step(env, action, obs, outcome));
    if (out->success) out->success[row] = outcome->success;
    if (out->aim) out->aim[row] = 0; // there is one
    if (out->ended) out->ended[row] = outcome->success && gen->kind == DC_DATA_NAVIGATE;
    return DC_OK;
}

// Simulation breaks down now and then; recorded draws are for one episode.
dc_status dc_maze_try(const dc_gen *gen, dc_status (*play)(void *ctx), void *ctx) {
    for (int k = 0; k < TRIES; k++) {
        dc_status status = play(ctx);
        if (status != DC_NOT_FINITE || gen->draws) return status;
    }
    return dc_fail(DC_NOT_FINITE, NULL, "%d episodes of %s in a row were unusable", TRIES,
                   dc_world_spec(gen->world)->name);
}

// ---- an episode ----

typedef struct episode {
    const dc_gen *gen;
    const dc_maze *maze;
    const dc_maze_robot *robot;
    dc_maze_act *act;
    dc_maze_cells corners; // where goals of `navigate` lie
    dc_env *env;
    const dc_gen_rows *out;
    dc_maze_task task;
    int steps[DC_MAZE_CELLS]; // to the goal
    double way[2];            // where to, a unit vector
} episode;

static void draw_task(episode *e) {
    dc_maze_cells from;
    dc_maze_list_free(e->maze, true, &from);
    e->task = (dc_maze_task){.start = dc_maze_pick(e->env, &from)};
    if (e->gen->kind != DC_DATA_STITCH) {
        e->task.goal = dc_maze_pick(e->env, &e->corners);
        return;
    }
    list_distant(e->maze, e->task.start, STITCH_STEPS, &from);
    e->task.goal = from.count ? dc_maze_pick(e->env, &from) : e->task.start;
}

static double normal(dc_env *env) {
    return env->draws.normal(env->draws.ctx);
}

static void find_way(episode *e, int64_t row) {
    if (e->gen->kind == DC_DATA_EXPLORE) {
        if (row % EXPLORE_STEPS) return;
        double x = normal(e->env);
        dc_maze_direct(x, normal(e->env), e->way);
        return;
    }
    double to[2];
    const double *xy = dc_env_qpos(e->env);
    dc_maze_xy(dc_maze_next(e->maze, e->steps, dc_maze_cell(xy)), to);
    dc_maze_direct(to[0] - xy[0], to[1] - xy[1], e->way);
}

static dc_status play_row(episode *e, int64_t row, double *obs) {
    double action[DC_MAZE_ACT_MAX];
    dc_outcome outcome;
    find_way(e, row);
    e->act(e->gen, e->env, e->way, action);
    DC_TRY(dc_maze_row(e->gen, e->env, e->out, row, action, obs, &outcome));
    if (outcome.success && e->gen->kind == DC_DATA_NAVIGATE) {
        dc_maze_near(e->env, dc_maze_pick(e->env, &e->corners), e->env->goal);
        dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    }
    return DC_OK;
}

static void begin(void *ctx) {
    episode *e = ctx;
    dc_maze_begin(e->env, e->robot, &e->task, NULL);
}

static dc_status play_once(void *ctx) {
    episode *e = ctx;
    double obs[DC_OBS_MAX];
    draw_task(e);
    DC_TRY(dc_env_guard(e->env, begin, e));
    dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    DC_TRY(dc_env_observe(e->env, obs));
    for (int64_t row = 0; row < e->gen->rows; row++)
        DC_TRY(play_row(e, row, obs));
    return DC_OK;
}

dc_status dc_maze_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out,
                       const dc_maze_robot *robot, dc_maze_act *act) {
    const dc_env_spec *spec = dc_world_spec(gen->world);
    episode e = {
        .gen = gen, .maze = spec->maze, .robot = robot, .act = act, .env = env, .out = out};
    DC_CHECK(spec->family->obs <= DC_MAZE_OBS_MAX && spec->family->act <= DC_MAZE_ACT_MAX);
    dc_maze_list_free(e.maze, false, &e.corners);
    return dc_maze_try(gen, play_once, &e);
}
