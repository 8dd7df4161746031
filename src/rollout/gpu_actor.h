// An actor's networks on a CUDA device: from input rows to actions is one recorded graph, copies included. The
// graphs are the actor's own, the ones that the CPU runs; the host's cells are page-locked memory.
#ifndef DC_GPU_ACTOR_H
#define DC_GPU_ACTOR_H

#include "rollout/actor.h"

// Compile the actor's graphs, send its weights, and point actor->host at what is copied to and fro.
// Borrows: actor (until free). Errors: no GPU, no CUDA in this build, no memory.
dc_status dc_gpu_actor_new(dc_gpu_actor **gpu, dc_actor *actor, int precision);
void dc_gpu_actor_free(dc_gpu_actor *gpu); // Nullable
// Send the host's rows (and noise), run, fetch actions (and their worth), and wait.
dc_status dc_gpu_actor_run(dc_gpu_actor *gpu);

#endif
