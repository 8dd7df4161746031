// See rewards.h. Tables are judged as env/mujoco/arm.c judges them, from the same task.
#include "env/rewards.h"

#include <math.h>

enum { THINGS = 14, CUBE = 7 }; // where things begin in qpos, numbers of a cube

static bool within(const float *is, const double *want, int n, double tolerance) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += ((double)is[k] - want[k]) * ((double)is[k] - want[k]);
    return sqrt(sum) <= tolerance;
}

static double maze_reward(const dc_env_spec *spec, const float *qpos) {
    double goal[2];
    dc_maze_xy(spec->tasks[spec->task - 1].goal, goal);
    return within(qpos + spec->family->goal_at, goal, 2, spec->family->tolerance) ? 0 : -1;
}

double dc_task_reward(const dc_env_spec *spec, const float *qpos, const float *buttons) {
    const dc_env_family *f = spec->family;
    DC_CHECK(spec->task > 0);
    if (spec->maze) return maze_reward(spec, qpos);
    const dc_things *want = &spec->manip[spec->task - 1].goal;
    const float *slides = qpos + THINGS + CUBE * f->cubes + f->buttons;
    const double to[2] = {want->drawer, want->window};
    int wrong = 0;
    for (int k = 0; k < f->cubes; k++)
        wrong += !within(qpos + THINGS + CUBE * k, want->cubes[k], 3, f->tolerance);
    for (int k = 0; k < f->buttons; k++)
        wrong += buttons[k] != (want->buttons[k] == '1' ? 1.0F : 0.0F);
    for (int k = 0; f->slides && k < 2; k++)
        wrong += !within(slides + k, &to[k], 1, f->tolerance);
    return -wrong;
}
