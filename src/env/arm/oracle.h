// Scripted hands for tables with a robot arm, which data is collected with: they move one thing to
// where it is wanted and go away. As OGBench's oracles, in the same order of draws.
//
//     play:  a plan of places in time is made at the start, shaken by smooth noise, and followed
//     noisy: each action follows from what is seen
//
//     dc_arm_see -> dc_oracle_begin, dc_oracle_act -> collect_mj.c -> dc_env_step
#ifndef DC_ORACLE_H
#define DC_ORACLE_H

#include "env/arm/arm.h"

enum { DC_HAND = 5, DC_PLAN_MAX = 256 }; // numbers of an action: xyz, yaw, opening; rows of a plan

// What an oracle is told of a table.
typedef struct dc_thing {
    double at[3], yaw;    // a cube, the top of a button, the handle of drawer or window
    double to[3], to_yaw; // where it should be
    bool right;           // a button that has the state it should have
} dc_thing;

typedef struct dc_sight {
    dc_aim_kind aim;
    double time;
    double hand[3], yaw, opening, contact; // of the gripper
    dc_thing things[DC_AIMS];              // by kind of aim
} dc_sight;

typedef struct dc_oracle {
    bool plans;            // play; else noisy
    bool closed;           // the gripper never opens, as in a puzzle
    const dc_reach *reach; // where it goes in the end
    dc_aim_kind aim;
    bool done;
    double leave[3], leave_yaw; // where it goes in the end
    // Plans:
    double start; // time
    int rows;
    double plan[DC_PLAN_MAX][DC_HAND]; // place, yaw and opening every control step
    // Without:
    int steps;
} dc_oracle;

// A hand for the data of a kind (DC_DATA_PLAY, DC_DATA_NOISY) on a table.
dc_oracle dc_oracle_of(const dc_arm_table *table, dc_data_kind kind);
// Start to serve the aim that is seen.
void dc_oracle_begin(dc_oracle *oracle, const dc_sight *sight, const dc_draws *draws);
// The next action, in [-1, 1].
void dc_oracle_act(dc_oracle *oracle, const dc_sight *sight, double action[DC_HAND]);

// oracle_plan.c, oracle_markov.c: the two kinds, which oracle.c chooses from.
void dc_plan_begin(dc_oracle *oracle, const dc_sight *sight, const dc_draws *draws);
void dc_plan_act(dc_oracle *oracle, const dc_sight *sight, double action[DC_HAND]);
void dc_markov_act(dc_oracle *oracle, const dc_sight *sight, double action[DC_HAND]);
// Of the angles that look alike, `folds` in a turn, the one next to the hand's.
double dc_nearest_yaw(double hand, double thing, int folds);

#endif
