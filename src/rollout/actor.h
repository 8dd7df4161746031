// Actor: a policy from a checkpoint, ready to act for many environments at once. Comes from train/'s
// step-*.safetensors; goes to rollout/eval and to whoever drives a robot with it.
#ifndef DC_ACTOR_H
#define DC_ACTOR_H

#include "base/pool.h"
#include "nn/mlp.h"
#include "tensor/run.h"

typedef struct dc_actor {
    int in, act; // values of an input row [observation | goal] and of an action
    int rows;    // most rows a call
    dc_params params;
    dc_mlp mlp;
    dc_graph graph;
    dc_exec exec;
    dc_ref input, mean;
} dc_actor;

// Read the weights actor/... of a checkpoint. Borrows: pool (until fini). Nullable: pool
dc_status dc_actor_open(dc_actor *actor, const char *checkpoint, int rows, dc_pool *pool);
void dc_actor_fini(dc_actor *actor);
// Actions (count, act) of input rows (count, in), each clipped to [-1, 1].
void dc_actor_act(dc_actor *actor, int count, const float *rows, float *actions);

#endif
