// Robots that learn online: what the learner does differently for each. Options as text, which the user's follow;
// and by what each number that a policy sees is multiplied, so that it is of size 1 about: fixed factors, so that
// nothing is measured and the file of a trained policy has them folded in.
#ifndef DC_ROBOTS_H
#define DC_ROBOTS_H

#include "env/expert.h"
#include "env/plane.h"

enum { DC_ROBOT_OPTIONS = 24 };

typedef struct dc_robot_option {
    const char *key, *value;
} dc_robot_option;

typedef struct dc_robot {
    dc_expert_kind kind;
    const dc_robot_option *options; // ends with a NULL key
} dc_robot;

// Of a plane; each has one (tests/online/test_robots.c).
const dc_robot *dc_robot_of(const dc_plane *plane);
// rates (state + DC_COMMAND)
void dc_robot_rates(const dc_plane *plane, float *rates);

#endif
