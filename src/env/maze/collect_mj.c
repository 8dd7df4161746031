// Episodes of mazes: draw start and goal, reset, and then act, step and record; see env/gen.h. A robot
// is led from cell to cell along the shortest way to a goal. `navigate` takes a new goal whenever one
// is reached; `stitch` goes to a place four cells away and stays. How the robot gets to the next cell
// is its family's business (dc_maze_act).
#include "env/maze/robots.h"

#include <string.h>

enum { STITCH_STEPS = 4, ACT_MAX = 32, OBS_MAX = 128 };

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
    const dc_env_family *family;
    const dc_maze *maze;
    const dc_maze_robot *robot;
    dc_maze_act *act;
    cells corners; // where goals of `navigate` lie
    dc_env *env;
    const dc_gen_rows *out;
    dc_maze_task task;
    int steps[DC_MAZE_CELLS]; // to the goal
} episode;

static dc_cell pick(dc_env *env, const cells *from) {
    return from->at[env->draws.below(env->draws.ctx, from->count)];
}

static void draw_task(episode *e) {
    cells from;
    list_free(e->maze, true, &from);
    e->task = (dc_maze_task){.start = pick(e->env, &from)};
    if (e->gen->kind == DC_DATA_NAVIGATE) {
        e->task.goal = pick(e->env, &e->corners);
        return;
    }
    list_distant(e->maze, e->task.start, STITCH_STEPS, &from);
    e->task.goal = from.count ? pick(e->env, &from) : e->task.start;
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

static void put(float *to, int64_t row, const double *from, int n) {
    for (int k = 0; k < n; k++)
        to[row * n + k] = (float)from[k];
}

static dc_status play_row(episode *e, int64_t row, double *obs) {
    const dc_env_family *f = e->family;
    double action[ACT_MAX], to[2];
    dc_outcome outcome;
    dc_maze_xy(next_cell(e, dc_maze_cell(dc_env_qpos(e->env))), to);
    e->act(e->gen, e->env, to, action);
    put(e->out->obs, row, obs, f->obs);
    put(e->out->act, row, action, f->act);
    put(e->out->qpos, row, dc_env_qpos(e->env), f->nq);
    put(e->out->qvel, row, dc_env_qvel(e->env), f->nv);
    e->out->terminals[row] = row + 1 == e->gen->rows;
    DC_TRY(dc_env_step(e->env, action, obs, &outcome));
    if (outcome.success && e->gen->kind == DC_DATA_NAVIGATE) {
        dc_maze_near(e->env, pick(e->env, &e->corners), e->env->goal);
        dc_maze_steps(e->maze, dc_maze_cell(e->env->goal), e->steps, NULL);
    }
    return DC_OK;
}

static void begin(void *ctx) {
    episode *e = ctx;
    dc_maze_begin(e->env, e->robot, &e->task, NULL);
}

dc_status dc_maze_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out,
                       const dc_maze_robot *robot, dc_maze_act *act) {
    const dc_env_spec *spec = dc_world_spec(gen->world);
    double obs[OBS_MAX];
    episode e = {.gen = gen,
                 .family = spec->family,
                 .maze = spec->maze,
                 .robot = robot,
                 .act = act,
                 .env = env,
                 .out = out};
    DC_CHECK(spec->family->obs <= OBS_MAX && spec->family->act <= ACT_MAX);
    list_free(e.maze, false, &e.corners);
    draw_task(&e);
    DC_TRY(dc_env_guard(env, begin, &e));
    dc_maze_steps(e.maze, dc_maze_cell(env->goal), e.steps, NULL);
    dc_env_observe(env, obs);
    for (int64_t row = 0; row < gen->rows; row++)
        DC_TRY(play_row(&e, row, obs));
    return DC_OK;
}
