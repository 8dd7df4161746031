// Episodes of antsoccer: an ant walks to the ball and dribbles it to a goal, by two experts; see env/gen.h.
// `navigate` walks while the ball is farther than 2, takes a new goal whenever one is reached, and makes
// a detour when it is stuck. `stitch` only walks (to the goal, without the ball) or only dribbles, by lot.
// In the arena both go straight; in a maze along shortest paths, from cell to cell.
#include "env/soccer/soccer.h"
#include "env/walker/walker.h"

#include <math.h>
#include <string.h>

enum { STUCK_ROWS = 150 };
static const double near_ball = 2, stuck_within = 2, detour_done = 0.5, far_goal = 10;

typedef enum mode { BOTH, WALK, DRIBBLE } mode;

typedef struct episode {
    const dc_gen *gen;
    const dc_maze *maze;
    dc_maze_cells cells;
    dc_env *env;
    const dc_gen_rows *out;
    mode mode;
    dc_maze_task task;
    bool detour;
    double aside[2];             // where the detour leads
    double trail[STUCK_ROWS][2]; // the last positions of observations: row r is at r % STUCK_ROWS
    double obs[DC_MAZE_OBS_MAX];
} episode;

static double distance(const double *a, const double *b) {
    double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(fma(y, y, x * x));
}

// ---- two experts ----

// Where to go first on the way to an aim: straight there, or the centre of the next cell.
static void first_stop(const episode *e, const double *from, const double *aim, double to[2]) {
    int steps[DC_MAZE_CELLS];
    memcpy(to, aim, 2 * sizeof *to);
    if (e->maze == &dc_maze_arena) return;
    dc_maze_steps(e->maze, dc_maze_cell(aim), steps, NULL);
    dc_maze_xy(dc_maze_next(e->maze, steps, dc_maze_cell(from)), to);
}

// What the ant sees of itself and the direction, as in a maze without a ball.
static void walk(const episode *e, const double *aim, double *action) {
    float in[DC_MAZE_OBS_MAX];
    double to[2], way[2];
    const double *q = e->obs, *v = q + DC_SOCCER_BALL + 7;
    int n = 0;
    first_stop(e, q, aim, to);
    dc_maze_direct(to[0] - q[0], to[1] - q[1], way);
    for (int k = 2; k < DC_SOCCER_BALL; k++)
        in[n++] = (float)q[k];
    for (int k = 0; k < DC_SOCCER_BALL - 1; k++)
        in[n++] = (float)v[k];
    for (int k = 0; k < 2; k++)
        in[n++] = (float)way[k];
    dc_walker_ask(&e->gen->experts->of[0], in, action);
}

// The goal, but no farther from the ball than it was when this was learnt.
static void cut_goal(const double *ball, double goal[2]) {
    double far = distance(goal, ball);
    if (far <= far_goal) return;
    for (int k = 0; k < 2; k++)
        goal[k] = ball[k] + far_goal * (goal[k] - ball[k]) / far;
}

// What the ant sees of itself and the ball, and where ball and goal lie.
static void dribble(const episode *e, double *action) {
    float in[DC_MAZE_OBS_MAX];
    double to[2];
    const double *q = e->obs, *ball = q + DC_SOCCER_BALL;
    int n = 0, all = dc_world_spec(e->gen->world)->family->obs;
    first_stop(e, ball, e->env->goal, to);
    if (e->maze == &dc_maze_arena) cut_goal(ball, to);
    for (int k = 2; k < DC_SOCCER_BALL; k++)
        in[n++] = (float)q[k];
    for (int k = DC_SOCCER_BALL + 2; k < all; k++)
        in[n++] = (float)q[k];
    for (int k = 0; k < 2; k++)
        in[n++] = (float)(ball[k] - q[k]);
    for (int k = 0; k < 2; k++)
        in[n++] = (float)(to[k] - ball[k]);
    dc_walker_ask(&e->gen->experts->of[1], in, action);
}

// What is done in a row, and in a trace its aim.
typedef enum aim { TO_GOAL, TO_BALL, WITH_BALL, ASIDE } aim;

static aim choose(const episode *e) {
    if (e->mode != BOTH) return e->mode == WALK ? TO_GOAL : WITH_BALL;
    if (e->detour) return ASIDE;
    return distance(e->obs, e->obs + DC_SOCCER_BALL) > near_ball ? TO_BALL : WITH_BALL;
}

static void act(const episode *e, aim what, double *action) {
    if (what == WITH_BALL)
        dribble(e, action);
    else
        walk(e,
             what == ASIDE     ? e->aside
             : what == TO_BALL ? e->obs + DC_SOCCER_BALL
                               : e->env->goal,
             action);
}

// ---- goals and detours ----

// Whether the ant is where it has been all the time, as seen from where it came to in this row.
static bool is_stuck(const episode *e, int64_t row) {
    if (row <= STUCK_ROWS || e->detour) return false;
    for (int k = 0; k < STUCK_ROWS; k++)
        if (distance(e->trail[k], e->obs) > stuck_within) return false;
    return true;
}

// After a row. The trail is that of earlier rows: the state that was acted on comes to it last.
static void look_around(episode *e, int64_t row, bool success, const double before[2]) {
    dc_env *env = e->env;
    if (e->detour && distance(e->aside, e->obs) <= detour_done) e->detour = false;
    if (success) dc_maze_near(env, dc_maze_pick(env, &e->cells), env->goal);
    if (is_stuck(e, row)) {
        dc_maze_xy(dc_maze_pick(env, &e->cells), e->aside);
        e->detour = true;
    }
    memcpy(e->trail[row % STUCK_ROWS], before, 2 * sizeof *before);
}

// ---- an episode ----

// Of cells that are left.
static dc_cell take(dc_env *env, dc_maze_cells *from) {
    int at = env->draws.below(env->draws.ctx, from->count);
    dc_cell cell = from->at[at];
    memmove(from->at + at, from->at + at + 1, (size_t)(--from->count - at) * sizeof cell);
    return cell;
}

static void draw_task(episode *e) {
    dc_env *env = e->env;
    dc_maze_cells left = e->cells;
    e->mode = BOTH;
    if (e->gen->kind == DC_DATA_STITCH)
        e->mode = env->draws.below(env->draws.ctx, 2) ? DRIBBLE : WALK;
    e->task.start = take(env, &left);
    e->task.ball = take(env, &left);
    e->task.goal = take(env, &left);
    if (e->mode == DRIBBLE) e->task.ball = e->task.start;
}

static void begin(void *ctx) {
    episode *e = ctx;
    dc_maze_begin(e->env, &dc_soccer_robot, &e->task, NULL);
}

static dc_status play_row(episode *e, int64_t row) {
    double action[DC_MAZE_ACT_MAX], before[2];
    dc_outcome outcome;
    aim what = choose(e);
    memcpy(before, e->obs, sizeof before);
    act(e, what, action);
    DC_TRY(dc_maze_row(e->gen, e->env, e->out, row, action, e->obs, &outcome));
    if (e->out->aim) e->out->aim[row] = (uint8_t)what;
    if (e->mode == BOTH) look_around(e, row, outcome.success, before);
    return DC_OK;
}

static dc_status play_once(void *ctx) {
    episode *e = ctx;
    e->detour = false;
    draw_task(e);
    DC_TRY(dc_env_guard(e->env, begin, e));
    DC_TRY(dc_env_observe(e->env, e->obs));
    for (int64_t row = 0; row < e->gen->rows; row++)
        DC_TRY(play_row(e, row));
    return DC_OK;
}

dc_status dc_soccer_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out) {
    episode e = {.gen = gen, .maze = dc_world_spec(gen->world)->maze, .env = env, .out = out};
    dc_maze_list_free(e.maze, true, &e.cells);
    return dc_maze_try(gen, play_once, &e);
}
