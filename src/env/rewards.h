// Rewards of a single task for states that were recorded without one: files of data know no task, so
// their rows are judged afterwards, as OGBench's relabelling does.
#ifndef DC_REWARDS_H
#define DC_REWARDS_H

#include "env/spec.h"

// Minus the number of the task's conditions that do not hold in a state; 0 means that it is solved
// (and its mask is 0). A maze has one condition. `spec` is in single-task form; qpos (nq), extra
// (extra). Nullable: extra, where there are no such numbers.
double dc_task_reward(const dc_env_spec *spec, const float *qpos, const float *extra);

#endif
