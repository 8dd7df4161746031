// Walking robots, see walker.c. What its files share, and what antsoccer takes of the ant.
#ifndef DC_WALKER_H
#define DC_WALKER_H

#include "env/maze/robots.h"
#include "env/plane.h"

extern const dc_sim dc_ant_sim, dc_humanoid_sim; // ant_mj.c, humanoid_mj.c
extern const dc_plane_sim dc_ant_plane, dc_humanoid_plane;

#define DC_ANT_FILE "locomaze/assets/ant.xml"
void dc_ant_step(dc_env *env, const double *action);
void dc_ant_observe(const dc_env *env, double *obs); // qpos, qvel

// Data (collect_mj.c): the expert's action of what it sees; of a walker that is to go in a direction; and
// the time that takes.
void dc_walker_ask(const dc_expert *expert, const float *in, double *action);
void dc_walker_act(const dc_gen *gen, dc_env *env, const double way[2], double *action);
dc_status dc_walker_time(const dc_gen *gen, dc_env *env, double *seconds);

#endif
