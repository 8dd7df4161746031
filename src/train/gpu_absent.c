// What stands in for train/gpu.c in a build without nvcc: it says so. The other functions need a
// dc_gpu, and there is none.
#include "train/gpu.h"

dc_status dc_gpu_new(dc_gpu **gpu, dc_agent *const *agents, int count, const dc_gpu_spec *spec) {
    (void)agents;
    (void)count;
    (void)spec;
    *gpu = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "install the CUDA toolkit (nvcc) and build again, or use --device cpu",
                   "this build has no CUDA backend (--device cuda)");
}

void dc_gpu_free(dc_gpu *gpu) {
    DC_CHECK(!gpu);
}

const char *dc_gpu_name(const dc_gpu *gpu) {
    (void)gpu;
    return "none";
}

bool dc_gpu_fed(const dc_gpu *gpu) {
    (void)gpu;
    return false;
}

static dc_status none(void) {
    return dc_fail(DC_UNSUPPORTED, NULL, "this build has no CUDA backend");
}

dc_status dc_gpu_send(dc_gpu *gpu, int member, uint64_t step, const double *sums) {
    (void)gpu;
    (void)member;
    (void)step;
    (void)sums;
    return none();
}

dc_status dc_gpu_train(dc_gpu *gpu, int64_t steps, int64_t *bad, double *const *sums) {
    (void)gpu;
    (void)steps;
    (void)bad;
    (void)sums;
    return none();
}

dc_status dc_gpu_clear(dc_gpu *gpu) {
    (void)gpu;
    return none();
}

dc_status dc_gpu_fetch(dc_gpu *gpu, int member) {
    (void)gpu;
    (void)member;
    return none();
}

dc_status dc_gpu_answer(dc_gpu *gpu, int member) {
    (void)gpu;
    (void)member;
    return none();
}

dc_status dc_gpu_gradients(dc_gpu *gpu, int member, float *values) {
    (void)gpu;
    (void)member;
    (void)values;
    return none();
}
