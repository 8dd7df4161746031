// An arm in MuJoCo: what arm_mj.c, aim_mj.c, model_mj.c and ik_mj.c share.
#ifndef DC_ARM_MOTION_H
#define DC_ARM_MOTION_H

#include "env/arm/arm.h"
#include "env/arm/pose.h"
#include "env/arm/touch.h"
#include "env/mujoco/engine.h"

enum { DC_LOCKS = 4 };

// What all copies of a table share beside the model: dc_world.own.
typedef struct dc_arm_world {
    mjModel *alone;           // the arm alone, for inverse kinematics
    mjModel *locks[DC_LOCKS]; // scene: the model by states of its two buttons
    int pinch, pad, flange;   // sites of gripper and of the arm alone, body of a finger's pad
    int tops[DC_BUTTONS_MAX]; // sites of buttons
    int handles[2], marks[2]; // sites of drawer and window: handle, and where it should be
    dc_pose pinch_to_flange;
    dc_touch_plan touch;
} dc_arm_world;

static inline const dc_arm_world *dc_arm_world_of(const dc_env *env) {
    return env->world->own;
}

static inline const dc_arm_table *dc_arm_of(const dc_env *env) {
    return env->world->spec.family->own;
}

// world_mj.c: make and free the above; the pose of a site.
dc_status dc_arm_prepare(dc_world *world);
void dc_arm_release(dc_world *world);
dc_pose dc_arm_site(const mjData *data, int site);

// model_mj.c: the model of a table, slim (what is simulated) or whole; the arm alone. Owns: *model.
dc_status dc_arm_model(const dc_env_spec *spec, bool whole, mjModel **model);
dc_status dc_arm_model_alone(mjModel **model);

// ik_mj.c: joint angles (6) that bring the arm's flange to a pose, from angles (6) nearby. d: of
// world->alone.
void dc_arm_solve(const dc_arm_world *world, mjData *d, const dc_pose *to, const double *from,
                  double *joints);

// arm_mj.c, for aim_mj.c.
const mjModel *dc_arm_now(const dc_env *env);  // the model as its locks are now
double *dc_arm_cube(const dc_env *env, int k); // in qpos
double *dc_arm_slides(const dc_env *env);      // drawer and window in qpos
double dc_arm_opening(const dc_env *env);
double dc_arm_contact(const dc_env *env); // force on a finger, 0 ... 1
void dc_arm_rest(dc_env *env);            // the model's rest state, with the arm at home
void dc_arm_place(dc_env *env);           // the gripper somewhere above the table
void dc_arm_throw(dc_env *env, int k);    // a cube somewhere on it
void dc_arm_ready(dc_env *env);           // what follows when all things have been put

#endif
