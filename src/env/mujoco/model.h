// What the files of env/mujoco/ share: the world behind env/sim.h, its model, and the guard around
// MuJoCo.
#ifndef DC_MUJOCO_MODEL_H
#define DC_MUJOCO_MODEL_H

#include "env/pose.h"
#include "env/sim.h"

#include <mujoco/mujoco.h>

enum { DC_LOCKS = 4, DC_ARM_OBS_MAX = 128 };

struct dc_world {
    dc_env_spec spec;
    mjModel *model;
    // Of the point's worlds only:
    int walls[DC_MAZE_CELLS]; // geom of each cell's wall, -1 where it is free: (rows, cols)
    int ball;                 // geom of the point
    mjContact touch;          // what every contact of ball and wall has in common
    // Of tables with an arm only:
    mjModel *arm;             // the arm alone, for inverse kinematics
    mjModel *locks[DC_LOCKS]; // scene: the model by states of its two buttons
    int pinch, pad, flange;   // sites of gripper and of the arm alone, body of a finger's pad
    int tops[DC_BUTTONS_MAX]; // sites of buttons
    int handles[2], marks[2]; // sites of drawer and window: handle, and where it should be
    dc_pose pinch_to_flange;
};

// point.c: fill in the above; one physics step of a point inside the map.
void dc_point_prepare(dc_world *world);
void dc_point_step(const dc_world *world, mjData *data);

// Compose the model of a maze from OGBench's description file. Owns: *model.
dc_status dc_model_compose(const dc_env_spec *spec, mjModel **model);
// The place of a folder of OGBench's descriptions; a file that must be there; sizes that must fit.
dc_status dc_model_folder(const char *name, char *path, size_t size);
dc_status dc_model_need(const char *path);
dc_status dc_model_check(const mjModel *model, const dc_env_family *family, int controls,
                         const char *path);

// arm_model.c: the model of a table, slim (what is simulated) or whole; the arm alone. Owns: *model.
dc_status dc_arm_compose(const dc_env_spec *spec, bool slim, mjModel **model);
dc_status dc_arm_compose_alone(mjModel **model);

// ik.c: joint angles (6) that bring the arm's flange to a pose, from angles (6) nearby. d: of
// world->arm.
void dc_arm_solve(const dc_world *world, mjData *d, const dc_pose *to, const double *from,
                  double *joints);

// arm.c: what sim.c calls for tables.
dc_status dc_arm_prepare(dc_world *world);
const mjModel *dc_arm_model(const dc_env *env); // as its locks are now
void dc_arm_observe(const dc_env *env, double *obs);
dc_outcome dc_arm_judge(const dc_env *env);
void dc_arm_step(dc_env *env, const double *action);
void dc_arm_physics(dc_env *env, int steps);
void dc_arm_reset(dc_env *env, const dc_manip_task *task, double *goal);
void dc_arm_set(dc_env *env, const double *qpos, const double *qvel, const double *buttons);

// arm_collect.c: starts, targets and sights of data collection.
void dc_arm_collect(dc_env *env);
void dc_arm_aim(dc_env *env, double stack);
void dc_arm_see(const dc_env *env, dc_sight *sight);

// arm.c, for arm_collect.c. Where things begin in qpos: cube k, drawer and window.
double *dc_arm_cube(const dc_env *env, int k);
double *dc_arm_slides(const dc_env *env);
dc_pose dc_arm_site(const mjData *data, int site);
double dc_arm_opening(const dc_env *env);
double dc_arm_contact(const dc_env *env); // force on a finger, 0 ... 1
void dc_arm_rest(dc_env *env);            // the model's rest state, with the arm at home
void dc_arm_place(dc_env *env);           // the gripper somewhere above the table
void dc_arm_throw(dc_env *env, int k);    // a cube somewhere on it
void dc_arm_ready(dc_env *env);           // what follows when all things have been put

// Call into MuJoCo. An error inside of it leaves the work where it is and becomes a status; so does
// a warning that `data` counts (numbers that are not finite, full buffers), while other warnings go
// to the log. Nullable: data
typedef void dc_mujoco_work(void *ctx);
dc_status dc_mujoco_guard(dc_mujoco_work *work, void *ctx, const mjData *data);

#endif
