// Which bodies of a table may touch each other in the next physics step. More than half of MuJoCo's time goes into
// looking for contacts between bodies that are far apart (docs/lab/simulation.md), such as 20 buttons of which the hand
// is near one. Before each physics step this part takes out of that search what cannot touch by then; contacts, and
// with them every bit of the state, stay the same (tests/env/test_touch.c).
//
// Three kinds are taken out, each by a bound on what can happen and not by a guess:
//
// - The floor and a part of the robot that is above it.
// - Of a grid of buttons, those whose box, at its widest, is away from all boxes around parts of the robot, and that are
//   not pressed deeper than where they would touch their own housing.
// - Pairs of the robot's own bodies (links of the gripper above all, whose meshes are dear to compare). Their distance
//   is computed now and then, and is good for as long as joints between them have not moved by as much: a joint that
//   turns by an angle moves no point by more than the angle times the point's distance from it.
#ifndef DC_ARM_TOUCH_H
#define DC_ARM_TOUCH_H

#include "env/arm/arm.h"

#include <mujoco/mujoco.h>

enum {
    DC_TOUCH_BODIES = 80,
    DC_TOUCH_PAIRS = 192,
    DC_TOUCH_PARTS = 32,
    DC_TOUCH_JOINTS = DC_ARM_THINGS
};

typedef struct dc_box { // along the world's axes
    double low[3], high[3];
} dc_box;

// Between these positions a button touches neither its housing nor a neighbour.
extern const double dc_touch_low, dc_touch_high;

// What follows from the model: part of dc_arm_world.
typedef struct dc_touch_plan {
    int bodies;                            // of the robot: 1 ... bodies - 1
    int parts[DC_TOUCH_PARTS], part_count; // its geoms that touch something
    double lever[DC_TOUCH_JOINTS];         // no point behind a joint is farther away from it
    int joint_body[DC_TOUCH_JOINTS];
    // Of its bodies, or of the floor and one, by MuJoCo's signature; third: the last body both hang on.
    int pairs[DC_TOUCH_PAIRS][3], pair_count;
    bool held[DC_TOUCH_PAIRS];              // the model itself excludes it
    int buttons, button[DC_BUTTONS_MAX][2]; // bodies of a grid's buttons: housing, button
    dc_box room[DC_BUTTONS_MAX];            // of both, as far as the button goes
    dc_box rooms;                           // all of them
} dc_touch_plan;

// What is known of an environment.
typedef struct dc_touch {
    mjModel model; // the one that is simulated, but for three arrays, which are the ones below
    int contype[DC_TOUCH_BODIES], conaffinity[DC_TOUCH_BODIES], exclude[DC_TOUCH_PAIRS];
    double joints[DC_TOUCH_JOINTS]; // after the last step
    double moved[DC_TOUCH_BODIES];  // no point of the body moved farther since geoms were placed
    double spare[DC_TOUCH_PAIRS];   // a pair is at least that far apart; 0: not known
    bool apart[DC_TOUCH_PAIRS];     // and worth to be excluded
    int wait[DC_TOUCH_PAIRS];       // steps until it is worth to measure again
    dc_box boxes[DC_TOUCH_PARTS];   // around the robot's geoms, as far as they may have moved
    double lowest[DC_TOUCH_BODIES]; // of the boxes of a body
} dc_touch;

// False for a model that does not fit.
bool dc_touch_plan_init(dc_touch_plan *plan, const mjModel *model, const dc_arm_table *table);
// Physics steps with the controls that stand in data.
void dc_touch_steps(dc_touch *touch, const dc_touch_plan *plan, const mjModel *model, mjData *data,
                    int steps);

#endif
