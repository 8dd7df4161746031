// Value map, see map.h. Positions in free cells are queried in blocks: the policy first, then its value
// about what it would do there.
#include "rollout/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OBS_MAX = 256 };

typedef struct block { // positions that are queried together
    int count;
    int at[DC_MAP_ROWS];           // positions in the grid
    float *rows, *actions;         // (DC_MAP_ROWS, obs + goal), (DC_MAP_ROWS, act)
    uint64_t moments[DC_MAP_ROWS]; // positions again: what a policy's noise is drawn by
    float steps[DC_MAP_ROWS];      // the answers
} block;

typedef struct scene {
    const dc_env_spec *spec;
    double obs[OBS_MAX],
        goal[OBS_MAX]; // a state to move around, and the goal as the policy sees it
    dc_actor *actor;
} scene;

// Of a position of the grid.
static void grid_xy(const dc_value_map *map, int row, int col, double xy[2]) {
    xy[0] = -6 + 4 * (col + 0.5) / map->fine;
    xy[1] = -6 + 4 * (row + 0.5) / map->fine;
}

// The state after a reset to the task, and the goal of it moved to its cell's centre.
static dc_status set_scene(scene *s, const dc_world *world, int task, const double goal[2]) {
    dc_philox_draws state;
    dc_env env;
    DC_TRY(dc_env_new(&env, world, dc_draws_philox(&state, 0, 0)));
    dc_status status = dc_env_reset(&env, task, s->goal);
    if (status == DC_OK) status = dc_env_observe(&env, s->obs);
    dc_env_free(&env);
    memcpy(s->goal, goal, 2 * sizeof *goal);
    if (!s->spec->oracle) memcpy(s->goal + s->spec->family->goal_at, goal, 2 * sizeof *goal);
    return status;
}

static void add_place(block *b, const scene *s, int at, const double xy[2]) {
    int obs = s->spec->family->obs, width = obs + s->spec->goal;
    float *row = b->rows + (ptrdiff_t)b->count * width;
    for (int c = 0; c < width; c++)
        row[c] = (float)(c < 2 ? xy[c] : c < obs ? s->obs[c] : s->goal[c - obs]);
    b->moments[b->count] = (uint64_t)at;
    b->at[b->count++] = at;
}

static dc_status ask(block *b, const scene *s, dc_value_map *map) {
    DC_TRY(dc_actor_act(s->actor, b->count, b->rows, b->moments, b->actions));
    DC_TRY(dc_actor_steps(s->actor, b->count, b->rows, b->actions, b->steps));
    for (int i = 0; i < b->count; i++)
        map->steps[b->at[i]] = b->steps[i];
    b->count = 0;
    return DC_OK;
}

static dc_status ask_all(block *b, const scene *s, dc_value_map *map) {
    for (int at = 0; at < map->rows * map->cols; at++) {
        int row = at / map->cols, col = at % map->cols;
        double xy[2];
        map->steps[at] = NAN;
        if (dc_maze_wall(map->maze, (dc_cell){row / map->fine, col / map->fine})) continue;
        grid_xy(map, row, col, xy);
        add_place(b, s, at, xy);
        if (b->count == DC_MAP_ROWS) DC_TRY(ask(b, s, map));
    }
    return b->count ? ask(b, s, map) : DC_OK;
}

static dc_status check(const scene *s) {
    const dc_env_family *f = s->spec->family;
    int width = f->obs + s->spec->goal;
    DC_CHECK(!s->spec->visual && f->obs <= OBS_MAX && s->spec->goal <= OBS_MAX &&
             s->actor->rows >= DC_MAP_ROWS);
    if (s->actor->in == width && s->actor->act == f->act) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "take the environment that it was trained for",
                   "the policy takes %d values and gives %d, %s needs %d and %d", s->actor->in,
                   s->actor->act, s->spec->name, width, f->act);
}

static dc_status fill(dc_value_map *map, const scene *s) {
    size_t width = (size_t)(s->spec->family->obs + s->spec->goal),
           act = (size_t)s->spec->family->act;
    float *rows = calloc(DC_MAP_ROWS * width, sizeof *rows);
    float *actions = calloc(DC_MAP_ROWS * act, sizeof *actions);
    map->steps = calloc((size_t)(map->rows * map->cols), sizeof *map->steps);
    bool there = rows && actions && map->steps;
    block b = {.rows = rows, .actions = actions};
    dc_status status =
        there ? ask_all(&b, s, map) : dc_fail(DC_NO_MEMORY, NULL, "no memory for a map");
    free(rows);
    free(actions);
    return status;
}

dc_status dc_value_map_make(dc_value_map *map, const dc_world *world, dc_actor *actor, int task,
                            int fine) {
    scene s = {.spec = dc_world_spec(world), .actor = actor};
    DC_CHECK(task >= 0 && task < DC_TASKS && fine > 0);
    const dc_maze_task *t = dc_maze_task_of(s.spec, task);
    *map = (dc_value_map){.maze = s.spec->maze, .fine = fine};
    map->rows = map->maze->rows * fine;
    map->cols = map->maze->cols * fine;
    dc_maze_xy(t->start, map->start);
    dc_maze_xy(t->goal, map->goal);
    DC_TRY(check(&s));
    DC_TRY(set_scene(&s, world, task + 1, map->goal));
    dc_status status = fill(map, &s);
    if (status != DC_OK) dc_value_map_free(map);
    return status;
}

void dc_value_map_free(dc_value_map *map) {
    free(map->steps);
    *map = (dc_value_map){0};
}
