// What the files of env/mujoco/ share: the world behind env/sim.h, its model, and the guard around
// MuJoCo.
#ifndef DC_MUJOCO_MODEL_H
#define DC_MUJOCO_MODEL_H

#include "env/sim.h"

#include <mujoco/mujoco.h>

struct dc_world {
    dc_env_spec spec;
    mjModel *model;
    // Of the point's worlds only:
    int walls[DC_MAZE_CELLS]; // geom of each cell's wall, -1 where it is free: (rows, cols)
    int ball;                 // geom of the point
    mjContact touch;          // what every contact of ball and wall has in common
};

// point.c: fill in the above; one physics step of a point inside the map.
void dc_point_prepare(dc_world *world);
void dc_point_step(const dc_world *world, mjData *data);

// Compose the model of a spec from OGBench's description file. Owns: *model.
dc_status dc_model_compose(const dc_env_spec *spec, mjModel **model);

// Call into MuJoCo. An error inside of it leaves the work where it is and becomes a status; so does
// a warning that `data` counts (numbers that are not finite, full buffers), while other warnings go
// to the log. Nullable: data
typedef void dc_mujoco_work(void *ctx);
dc_status dc_mujoco_guard(dc_mujoco_work *work, void *ctx, const mjData *data);

#endif
