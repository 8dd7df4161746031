// Feeding a GPU from the host: a feeder (sample/feeder.h) fills pinned chunks, a copy stream takes them to
// a ring of input rows on the device, and recorded steps read them there. The host prepares what comes
// next while the device computes, and neither waits for the other unless it is the faster one.
#ifndef DC_CUDA_FEED_H
#define DC_CUDA_FEED_H

#include "algo/agent.h"
#include "backend/cuda/cuda.h"
#include "sample/gpu_sampler.h"

typedef struct dc_cuda_feed dc_cuda_feed;

// Borrows: cuda and the agents (until free).
dc_status dc_cuda_feed_new(dc_cuda_feed **feed, dc_cuda *cuda, dc_agent *const *agents, int count);
void dc_cuda_feed_free(dc_cuda_feed *feed); // Nullable
// The sampler that takes a member's rows.
dc_status dc_cuda_feed_sampler(dc_cuda_feed *feed, int member, dc_program *program,
                               dc_gpu_sampler **out);
// Begin again, for a member, where its agent's sampler stands.
dc_status dc_cuda_feed_seek(dc_cuda_feed *feed, int member);
// What is started from now on, `count` steps from `step` on, waits for its rows; they are made now if
// they were not before.
dc_status dc_cuda_feed_need(dc_cuda_feed *feed, uint64_t step, int count);
// All steps before this one have been started.
dc_status dc_cuda_feed_started(dc_cuda_feed *feed, uint64_t step);
// Make rows ahead: at most so many chunks, as far as the ring has room.
dc_status dc_cuda_feed_ahead(dc_cuda_feed *feed, int chunks);
// Bring the sampler of a member's agent to the step that was trained.
dc_status dc_cuda_feed_fetch(dc_cuda_feed *feed, int member, uint64_t step);

#endif
