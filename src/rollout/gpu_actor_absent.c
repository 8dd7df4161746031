// What stands in for rollout/gpu_actor.c in a build without nvcc: it says so. The other functions need a
// dc_gpu_actor, and there is none.
#include "rollout/gpu_actor.h"

dc_status dc_gpu_actor_new(dc_gpu_actor **gpu, dc_actor *actor, int precision) {
    (void)actor;
    (void)precision;
    *gpu = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "install the CUDA toolkit (nvcc) and build again, or use --device cpu",
                   "this build has no CUDA backend (--device cuda)");
}

void dc_gpu_actor_free(dc_gpu_actor *gpu) {
    DC_CHECK(!gpu);
}

dc_status dc_gpu_actor_run(dc_gpu_actor *gpu) {
    (void)gpu;
    return dc_fail(DC_UNSUPPORTED, NULL, "this build has no CUDA backend");
}
