// The ant with a ball, see soccer.c. What its files share.
#ifndef DC_SOCCER_H
#define DC_SOCCER_H

#include "env/maze/robots.h"

enum { DC_SOCCER_BALL = 15 }; // where the ball begins in qpos

extern const dc_sim dc_soccer_sim; // soccer_mj.c

#endif
