// Value map: how many steps a trained agent predicts between every position of a maze and a task's
// goal when its policy acts. Comes from a checkpoint's policy and value; report/maze_plot
// draws it.
#ifndef DC_VALUE_MAP_H
#define DC_VALUE_MAP_H

#include "env/maze/maze.h"
#include "env/sim.h"
#include "rollout/actor.h"

enum { DC_MAP_ROWS = 1024 }; // rows that the actor must take at a time

typedef struct dc_value_map {
    const dc_maze *maze;
    double start[2], goal[2]; // xy: centres of the task's cells
    int fine;                 // positions per cell, along each axis
    int rows, cols;           // of the grid: maze's times fine
    float *steps;             // (rows, cols) predicted steps to the goal; NaN in walls
} dc_value_map;

// Query every position in free cells. Everything but the position is as it is after a reset: xy are the
// first two columns of an observation. The actor must have a value.
// Errors: DC_BAD_INPUT if the actor is of another environment.
dc_status dc_value_map_make(dc_value_map *map, const dc_world *world, dc_actor *actor, int task,
                            int fine);
void dc_value_map_free(dc_value_map *map); // safe on a zeroed struct

#endif
