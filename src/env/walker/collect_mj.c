// How walking robots get along when data are made: an expert moves them, told a direction of the world.
#include "base/clock.h"
#include "env/walker/walker.h"

enum { TIMED = 20000 };

void dc_walker_ask(const dc_expert *expert, const float *in, double *action) {
    float out[DC_MAZE_ACT_MAX];
    dc_expert_act(expert, in, out);
    for (int k = 0; k < dc_expert_facts_of(expert->kind)->act; k++)
        action[k] = (double)out[k];
}

// The robot does not learn where it is: all of its observation but x and y. After a teleport that is
// not the observation of the row, which is from before the jump.
void dc_walker_act(const dc_gen *gen, dc_env *env, const double way[2], double *action) {
    const dc_expert *expert = &gen->experts->of[0];
    int rest = dc_world_spec(gen->world)->family->obs - 2;
    double obs[DC_MAZE_OBS_MAX];
    float in[DC_MAZE_OBS_MAX];
    DC_CHECK(dc_expert_facts_of(expert->kind)->obs == rest + 2);
    dc_sim_of(env)->observe(env, obs);
    for (int k = 0; k < rest; k++)
        in[k] = (float)obs[2 + k];
    in[rest] = (float)way[0];
    in[rest + 1] = (float)way[1];
    dc_walker_ask(expert, in, action);
}

dc_status dc_walker_time(const dc_gen *gen, dc_env *env, double *seconds) {
    double action[DC_MAZE_ACT_MAX], way[2] = {1, 0};
    double start = dc_now_busy();
    for (int k = 0; k < TIMED; k++)
        dc_walker_act(gen, env, way, action);
    *seconds = (dc_now_busy() - start) / TIMED;
    return DC_OK;
}
