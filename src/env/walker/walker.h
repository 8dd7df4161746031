// Walking robots, see walker.c. What its files share, and what antsoccer takes of the ant.
#ifndef DC_WALKER_H
#define DC_WALKER_H

#include "env/maze/robots.h"

extern const dc_sim dc_ant_sim, dc_humanoid_sim; // ant_mj.c, humanoid_mj.c

#define DC_ANT_FILE "locomaze/assets/ant.xml"
void dc_ant_step(dc_env *env, const double *action);
void dc_ant_observe(const dc_env *env, double *obs); // qpos, qvel

#endif
