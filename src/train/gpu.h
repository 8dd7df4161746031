// GPU: the training steps of agents on a CUDA device, whole: sampling, gather, forward, backward, guard,
// EMA, Adam and metrics are one recorded graph that is replayed. Several agents (members), alike but for
// their seeds, train side by side there; each has its own state, and trains as it would alone. The agents
// on the host keep the state of record: it is sent before training and fetched for checkpoints.
#ifndef DC_GPU_H
#define DC_GPU_H

#include "algo/agent.h"

typedef struct dc_gpu dc_gpu;

// Where rows are drawn and gathered: on the device, which holds the data set, or on the host, which
// sends them ahead. The numbers are the same.
typedef enum dc_gpu_origin {
    DC_FEED_AUTO, // on the device if the data set leaves an eighth of its memory free and it can draw them
    DC_FEED_DEVICE,
    DC_FEED_HOST,
} dc_gpu_origin;

typedef struct dc_gpu_spec {
    int precision; // 0 fp32, 1 tf32, 2 bf16
    double lr, tau;
    dc_gpu_origin feed;
} dc_gpu_spec;

// Errors: no GPU, no CUDA in this build, no memory, a sampler that only the CPU has (split=max). Borrows:
// the agents (until free), not the array.
dc_status dc_gpu_new(dc_gpu **gpu, dc_agent *const *agents, int count, const dc_gpu_spec *spec);
void dc_gpu_free(dc_gpu *gpu); // Nullable
const char *dc_gpu_name(const dc_gpu *gpu);
bool dc_gpu_fed(const dc_gpu *gpu); // rows come from the host
// Send a member's weights, targets, moments, sampler and log sums (metric_count + 1) to the device,
// standing at `step`.
dc_status dc_gpu_send(dc_gpu *gpu, int member, uint64_t step, const double *sums);
// Train all members for `steps` steps and wait. bad[member] is the first step with NaN or Inf, -1 if all
// were fine; nothing of it was updated from there on (but see dc_cuda_state). sums[member] receives its sums of the metrics and
// of the gradient's norm since they were last cleared.
dc_status dc_gpu_train(dc_gpu *gpu, int64_t steps, int64_t *bad, double *const *sums);
// Set the sums of all members to zero.
dc_status dc_gpu_clear(dc_gpu *gpu);
// Fetch a member's weights, targets, moments and sampler into its agent.
dc_status dc_gpu_fetch(dc_gpu *gpu, int member);
// From now on, while the GPU is held, it answers what a member's agent is asked (dc_agent_distances), in fp32 and
// with the weights that the host has now.
dc_status dc_gpu_answer(dc_gpu *gpu, int member);
// For tests: one step's gradients of a member into its agent's slab, without an update; metrics into
// values.
dc_status dc_gpu_gradients(dc_gpu *gpu, int member, float *values);

#endif
