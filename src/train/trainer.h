// Trainer: where the steps of agents are computed, whole: drawing rows, gather, forward, backward, guard, EMA,
// Adam, metrics. One table of functions for each device; the training loop (loop.c) knows no device.
//
//   cpu    one agent after the other, each step as the sentence in trainer_cpu.c reads
//   cuda   one recorded graph per step, agents side by side (trainer_cuda.c)
//
// Several agents (members), alike but for their seeds, can be trained side by side; each has its own state, and
// trains as it would alone. The agents on the host keep the state of record: it is sent before training and
// fetched for checkpoints.
#ifndef DC_TRAINER_H
#define DC_TRAINER_H

#include "algo/agent.h"

typedef struct dc_trainer dc_trainer;

// Where rows for a device are drawn and gathered: on the device, which holds the data set, or on the host, which
// sends them ahead. The numbers are the same.
typedef enum dc_feed_source {
    DC_FEED_AUTO, // on the device if the data set leaves an eighth of its memory free and it can draw them
    DC_FEED_DEVICE,
    DC_FEED_HOST,
} dc_feed_source;

typedef struct dc_trainer_spec {
    int precision; // of matrix products: 0 fp32, 1 tf32, 2 bf16
    double lr, tau;
    dc_feed_source feed;
} dc_trainer_spec;

typedef struct dc_trainer_ops {
    const char *device; // "cpu"
    int least_steps;    // that are worth a call of train
    // Compile the agents' losses. Errors: an op or shape that the device does not have (it is named), no device,
    // no memory. Borrows: the agents (until free), not the array.
    dc_status (*compile)(dc_trainer **trainer, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec);
    void (*free)(dc_trainer *trainer);
    // Send a member's weights, targets, moments, sampler and log sums (metric_count + 1), standing at `step`.
    dc_status (*send)(dc_trainer *trainer, int member, uint64_t step, const double *sums);
    // Train all members for `steps` steps and wait. bad[member] is the first step with NaN or Inf, counted from 1,
    // or -1: it was not applied, nor were those after it (but see dc_cuda_state). sums[member] receives the sums
    // of the metrics and of the gradient's norm since they were last cleared.
    dc_status (*step)(dc_trainer *trainer, int64_t steps, int64_t *bad, double *const *sums);
    // Set the sums of all members to zero.
    dc_status (*clear)(dc_trainer *trainer);
    // Fetch a member's weights, targets, moments and sampler into its agent.
    dc_status (*fetch)(dc_trainer *trainer, int member);
    // Have the agent's own graph hold the step that went bad, so that its first bad number can be named.
    dc_status (*retrace)(dc_trainer *trainer, int member, uint64_t step);
    // One step's gradients of a member in its agent's slab, without an update; its metrics in values.
    dc_status (*gradients)(dc_trainer *trainer, int member, float *values);
    // What computes and how: the device's name, where rows come from, which path each network takes.
    dc_status (*describe)(const dc_trainer *trainer, dc_text *out);
} dc_trainer_ops;

struct dc_trainer { // every trainer begins with this
    const dc_trainer_ops *ops;
    const char *name; // of the device, as the system calls it
    bool fed;         // rows come from the host
};

typedef enum dc_device { DC_DEVICE_CPU, DC_DEVICE_CUDA } dc_device;

// Compile for a device. Errors: DC_UNSUPPORTED if this build does not have it.
dc_status dc_trainer_new(dc_trainer **trainer, dc_device device, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec);
void dc_trainer_free(dc_trainer *trainer); // Nullable

extern const dc_trainer_ops dc_trainer_cpu;
#ifdef DC_CUDA_BUILD
extern const dc_trainer_ops dc_trainer_cuda;
#endif

#endif
