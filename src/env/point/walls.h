// The point at a wall, see walls_mj.c.
#ifndef DC_POINT_WALLS_H
#define DC_POINT_WALLS_H

#include "env/maze/robots.h"
#include "env/mujoco/engine.h"

typedef struct dc_point_walls {
    int walls[DC_MAZE_CELLS]; // geom of each cell's wall, -1 where it is free: (rows, cols)
    int ball;                 // geom of the point
    mjContact touch;          // what every contact of ball and wall has in common
} dc_point_walls;

// Fill in the above for a world; touch.dim stays 0 without memory. Runs in the guard.
void dc_point_look(const dc_world *world, dc_point_walls *walls);
// One physics step of a point inside the map.
void dc_point_push(const dc_world *world, const dc_point_walls *walls, mjData *data);

#endif
