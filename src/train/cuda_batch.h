// Updates on one batch that the host has, on a CUDA device: what `dcrl grad --device cuda` computes. Nothing is drawn
// there, and no gradient is used where it is made: all of them stay in the slab between gradients and update
// (dc_program_spec.whole_gradients).
#ifndef DC_CUDA_BATCH_H
#define DC_CUDA_BATCH_H

#include "train/trainer.h"

typedef struct dc_cuda_batch dc_cuda_batch;

// Compile the agent's loss; send its weights, and the rows that its sampler holds. Borrows: the agent (until freed).
// Errors: DC_UNSUPPORTED if this build has no CUDA backend; no device; an op or shape that it does not have.
dc_status dc_cuda_batch_new(dc_cuda_batch **batch, dc_agent *agent, const dc_trainer_spec *spec);
void dc_cuda_batch_free(dc_cuda_batch *batch); // Nullable
// Gradients of the weights as they are now, into the agent's slab; values (metric_count) receives the metrics.
dc_status dc_cuda_batch_gradients(dc_cuda_batch *batch, float *values);
// EMA and Adam by those gradients. Errors: DC_NOT_FINITE if there is NaN or Inf in loss or gradient.
dc_status dc_cuda_batch_update(dc_cuda_batch *batch);
// Weights and EMA weights back to the agent.
dc_status dc_cuda_batch_fetch(dc_cuda_batch *batch);

#ifdef DC_CUDA_BUILD
#include "backend/cuda/cuda.h"
// The agent's loss as a program; beside: how many such run side by side, 0: this one alone.
dc_status dc_cuda_compile(dc_program **program, dc_cuda *cuda, const dc_agent *agent,
                          const dc_trainer_spec *spec, int beside, bool whole_gradients);
#endif

#endif
