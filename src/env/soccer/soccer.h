// The ant with a ball, see soccer.c. What its files share.
#ifndef DC_SOCCER_H
#define DC_SOCCER_H

#include "env/maze/robots.h"
#include "env/plane.h"

enum { DC_SOCCER_BALL = 15 }; // where the ball begins in qpos

extern const dc_sim dc_soccer_sim; // soccer_mj.c
extern const dc_plane_sim dc_soccer_plane;
extern const dc_maze_robot dc_soccer_robot;
dc_status dc_soccer_play(const dc_gen *gen, dc_env *env, const dc_gen_rows *out); // collect_mj.c

#endif
