// Trainer: a device that computes whole training steps: it draws rows, gathers them, runs forward and
// backward, checks for NaN and Inf, averages the EMA weights, updates by Adam and sums up metrics. One table of
// functions per device, so the training loop (loop.c) is the same for all of them.
//
//   cpu    trainer_cpu.c: one agent after the other; train_step there is one step, line by line
//   cuda   trainer_cuda.c: a step is recorded once as a CUDA graph and replayed, agents side by side
//
// Several agents (members: one per seed, else alike) can be trained together; each has its own state, and
// trains as it would alone. Each agent on the host holds the state that counts. A device works on a copy:
//
//   compile -> send each member -> step, step, ... -> fetch each member (for a checkpoint) -> step ... -> free
#ifndef DC_TRAINER_H
#define DC_TRAINER_H

#include "algo/agent.h"

typedef struct dc_trainer dc_trainer;

// Where a GPU's rows are drawn and gathered: on the device, which then holds the data set, or on the host, which
// sends the rows of coming steps. The numbers are the same. The CPU ignores this.
typedef enum dc_feed_place {
    DC_FEED_AUTO, // the device, if the data set leaves an eighth of its memory free and it can draw such rows
    DC_FEED_DEVICE,
    DC_FEED_HOST,
} dc_feed_place;

typedef struct dc_trainer_spec {
    int precision;  // of matrix products: 0 fp32, 1 tf32, 2 bf16
    double lr, tau; // of Adam; of the EMA
    dc_feed_place feed;
    dc_ranks *
        ranks; // Nullable: whose gradients are averaged by a GPU; on the CPU the agents' graphs know of them
} dc_trainer_spec;

typedef struct dc_trainer_ops {
    const char *device; // "cpu"
    int least_steps; // fewer than these per call of `step` are slow: the CUDA graph holds so many
    // Compile the agents' losses. Errors: an op or shape that the device does not have (it is named), no device,
    // no memory. Borrows: the agents (until free), not the array.
    dc_status (*compile)(dc_trainer **trainer, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec);
    void (*free)(dc_trainer *trainer);
    // Copy a member's weights, EMA weights, Adam's moments and sampler from its agent to the device, with the log's
    // sums (metric_count + 1: each metric, then the gradient's norm). `step` updates are done.
    dc_status (*send)(dc_trainer *trainer, int member, uint64_t step, const double *sums);
    // Train all members for `steps` steps and wait. bad[member]: the first step with NaN or Inf in loss or gradient,
    // counted from 1 at the start of training, or -1. That step was not applied, nor those after it (CUDA may have
    // applied a part of it, see dc_cuda_state; the run ends then). sums[member] receives the sums (metric_count + 1)
    // since they were last cleared.
    dc_status (*step)(dc_trainer *trainer, int64_t steps, int64_t *bad, double *const *sums);
    // Rows first ... first + count - 1 of the data set, which all members share, have changed, and how many there are
    // (dc_dataset.grown). Errors: DC_UNSUPPORTED where rows are fed by the host, which draws ahead.
    dc_status (*renew)(dc_trainer *trainer, int64_t first, int64_t count);
    // Set the sums of all members to zero.
    dc_status (*clear)(dc_trainer *trainer);
    // Copy a member's state back into its agent.
    dc_status (*fetch)(dc_trainer *trainer, int member);
    // After a bad step: compute it again in the agent's own graph on the host, where loop.c looks for the node
    // with the first NaN or Inf.
    dc_status (*retrace)(dc_trainer *trainer, int member, uint64_t step);
    // One step's gradients of a member, written to its agent's slab, without an update; values (metric_count)
    // receives the metrics. For tests: a batch that is given goes through train/cuda_batch.h.
    dc_status (*gradients)(dc_trainer *trainer, int member, float *values);
    // What computes and how: the device's name, where rows come from, which path each network takes.
    dc_status (*describe)(const dc_trainer *trainer, dc_text *out);
} dc_trainer_ops;

struct dc_trainer { // every trainer begins with this
    const dc_trainer_ops *ops;
    const char *name; // of the device, as its driver calls it
    bool fed;         // rows are drawn on the host (DC_FEED_HOST, or AUTO chose it)
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
