// GPU: an agent's training step on a CUDA device, whole: sampling, gather, forward, backward, guard,
// EMA, Adam and metrics are one recorded graph that is replayed. The agent on the host keeps the
// state of record: it is sent before training and fetched for checkpoints.
#ifndef DC_GPU_H
#define DC_GPU_H

#include "algo/agent.h"

typedef struct dc_gpu dc_gpu;

typedef struct dc_gpu_spec {
    int precision; // 0 fp32, 1 tf32, 2 bf16
    double lr, tau;
} dc_gpu_spec;

// Errors: no GPU, no CUDA in this build, no memory, a sampler that only the CPU has. Borrows: agent (until free).
dc_status dc_gpu_new(dc_gpu **gpu, dc_agent *agent, const dc_gpu_spec *spec);
void dc_gpu_free(dc_gpu *gpu); // Nullable
const char *dc_gpu_name(const dc_gpu *gpu);
// Send weights, targets, moments, sampler and the log sums (metric_count + 1) to the device, standing at `step`.
dc_status dc_gpu_send(dc_gpu *gpu, uint64_t step, const double *sums);
// Train `count` steps and wait. `bad` is the first step with NaN or Inf, -1 if all were fine; nothing
// was updated from there on.
dc_status dc_gpu_train(dc_gpu *gpu, int64_t count, int64_t *bad);
// Sums of the metrics and of the gradient's norm since the last reset.
dc_status dc_gpu_sums(dc_gpu *gpu, double *sums, bool reset);
// Fetch weights, targets, moments and sampler into the agent.
dc_status dc_gpu_fetch(dc_gpu *gpu);
// For tests: one step's gradients into the agent's slab, without an update; metrics into values.
dc_status dc_gpu_gradients(dc_gpu *gpu, float *values);

#endif
