// Episodes of pointmaze: draw start and goal, reset, and then act, step and record; see env/gen.h.
#include "env/gen.h"

#include <math.h>
#include <string.h>

enum { POINT = 2, STITCH_STEPS = 4 };

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
    cells corners; // where goals of `navigate` lie
    dc_env *env;
    const dc_gen_rows *out;
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
        task.goal = pick(e->env, &e->corners);
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
    put(e->out->obs, row, obs);
    put(e->out->act, row, action);
    put(e->out->qpos, row, dc_env_qpos(e->env));
    put(e->out->qvel, row, dc_env_qvel(e->env));
    e->out->terminals[row] = row + 1 == e->gen->rows;
    DC_TRY(dc_env_step(e->env, action, obs, &outcome));
    if (outcome.success && e->gen->kind == DC_DATA_NAVIGATE) {
        dc_env_near(e->env, pick(e->env, &e->corners), e->env->goal);
        dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    }
    return DC_OK;
}

static dc_status play_maze(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    double obs[POINT];
    episode e = {.gen = gen, .maze = dc_world_spec(gen->world)->maze, .env = env, .out = out};
    list_free(e.maze, false, &e.corners);
    dc_maze_task task = draw_task(&e);
    DC_TRY(dc_env_begin(env, &task, NULL));
    dc_maze_steps(e.maze, dc_maze_cell(env->goal), e.steps, NULL);
    dc_env_observe(env, obs);
    for (int64_t row = 0; row < gen->rows; row++)
        DC_TRY(play_row(&e, row, obs));
    return DC_OK;
}

// ---- sizes ----

dc_status dc_gen_init_maze(dc_gen *gen, const dc_env_spec *spec, int64_t *episodes) {
    bool stitch = gen->kind == DC_DATA_STITCH, giant = !strcmp(spec->maze->name, "giant");
    if (spec->family->robot != DC_POINT)
        return dc_fail(DC_UNSUPPORTED,
                       "bring a file of your own or OGBench's published one: dcrl data info "
                       "FILE.npz reads it, "
                       "dcrl train --data FILE.npz trains on it",
                       "data of %s needs a trained expert policy, which dcrl does not have",
                       spec->family->name);
    if (gen->kind != DC_DATA_ANY && gen->kind != DC_DATA_NAVIGATE && !stitch)
        return dc_fail(DC_USAGE, "--type navigate|stitch", "there is no %s data of %s",
                       dc_data_word(gen->kind), spec->family->name);
    gen->kind = stitch ? DC_DATA_STITCH : DC_DATA_NAVIGATE;
    gen->noise = 0.5;
    gen->rows = stitch ? 201 : giant ? 2001 : 1001;
    gen->play = play_maze;
    *episodes = stitch ? 5000 : giant ? 500 : 1000;
    return DC_OK;
}
