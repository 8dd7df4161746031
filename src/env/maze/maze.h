// Mazes: maps, positions and tasks. Cell (i, j) is a square of 4 x 4 whose centre is x = 4j - 4, y = 4i - 4, so
// that cell (1, 1) lies at the origin; maps are written top row first, as OGBench does.
#ifndef DC_MAZE_H
#define DC_MAZE_H

#include "env/spec.h"

enum { DC_MAZE_CELLS = 256, DC_PADS_MAX = 3 };

typedef struct dc_cell {
    int i, j; // row, column
} dc_cell;

typedef struct dc_maze_task {
    dc_cell start, goal, ball; // ball: antsoccer only
} dc_maze_task;

typedef struct dc_maze {
    const char *name;
    int rows, cols;
    const char *cells;       // (rows, cols) '1' is a wall, '0' is free
    int in_count, out_count; // teleport pads
    dc_cell in[DC_PADS_MAX], out[DC_PADS_MAX];
} dc_maze;

extern const dc_maze dc_maze_arena, dc_maze_medium, dc_maze_large, dc_maze_giant, dc_maze_teleport;
extern const dc_maze dc_maze_plane; // without a wall (env/plane.h); no environment of its own
// Of every robot that only has to get somewhere.
extern const dc_maze_task dc_maze_medium_tasks[DC_TASKS], dc_maze_large_tasks[DC_TASKS],
    dc_maze_giant_tasks[DC_TASKS], dc_maze_teleport_tasks[DC_TASKS];

const dc_maze_task *dc_maze_task_of(const dc_env_spec *spec, int task); // 0 ... 4

// ---- geometry ----

bool dc_maze_wall(const dc_maze *maze, dc_cell cell); // true outside of the map, too
void dc_maze_xy(dc_cell cell, double xy[2]);
// The cell of a position; rounds towards zero, as the reference does.
dc_cell dc_maze_cell(const double xy[2]);
// Steps from every cell to `goal` by the shortest way: steps (rows, cols), -1 where there is none; to a goal outside of
// the map there is none. Returns how many cells have a way, and lists them nearest first: order (rows * cols).
// Nullable: order
int dc_maze_steps(const dc_maze *maze, dc_cell goal, int *steps, dc_cell *order);

#endif
