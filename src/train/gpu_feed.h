// Feeding a GPU from the host: a feeder (sample/feeder.h) fills pinned chunks, a copy stream takes them to
// a ring of input rows on the device, and recorded steps read them there. The host prepares what comes
// next while the device computes, and neither waits for the other unless it is the faster one.
#ifndef DC_GPU_FEED_H
#define DC_GPU_FEED_H

#include "algo/agent.h"
#include "backend/cuda/cuda.h"
#include "sample/twin.h"

typedef struct dc_gpu_feed dc_gpu_feed;

// Borrows: cuda and the agents (until free).
dc_status dc_gpu_feed_new(dc_gpu_feed **feed, dc_cuda *cuda, dc_agent *const *agents, int count);
void dc_gpu_feed_free(dc_gpu_feed *feed); // Nullable
// The twin that takes a member's rows.
dc_status dc_gpu_feed_twin(dc_gpu_feed *feed, int member, dc_program *program, dc_twin **twin);
// Begin again, for a member, where its agent's sampler stands.
dc_status dc_gpu_feed_seek(dc_gpu_feed *feed, int member);
// What is started from now on, `count` steps from `step` on, waits for its rows; they are made now if
// they were not before.
dc_status dc_gpu_feed_need(dc_gpu_feed *feed, uint64_t step, int count);
// All steps before this one have been started.
dc_status dc_gpu_feed_started(dc_gpu_feed *feed, uint64_t step);
// Make rows ahead: at most so many chunks, as far as the ring has room.
dc_status dc_gpu_feed_ahead(dc_gpu_feed *feed, int chunks);
// Bring the sampler of a member's agent to the step that was trained.
dc_status dc_gpu_feed_fetch(dc_gpu_feed *feed, int member, uint64_t step);

#endif
