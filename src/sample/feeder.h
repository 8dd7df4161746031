// Feeder: draws and gathers the rows of coming steps on the host, for a device that cannot: its memory
// does not hold the data set, or the GPU cannot draw such rows (sample/gpu_sampler.h). What a batch reads
// does not depend on weights, so samplers of their own run ahead of training here, for all members at
// once. Rows go, a chunk of steps at a time, into memory of the caller's.
//
//     a step:   member 0: block, block, ... | member 1: ... | ...
//     a block:  (batch * times, width) numbers that one or more feeds take: rows of a column, or integers
#ifndef DC_FEEDER_H
#define DC_FEEDER_H

#include "base/pool.h"
#include "sample/gather.h"
#include "sample/sampler.h"

enum { DC_FEEDER_STEPS = 10 }; // of a chunk; chunk c has the steps from c times that

typedef struct dc_feeder dc_feeder;

// A member: alike but for seeds and data.
typedef struct dc_feeder_source {
    const dc_sampler *sampler; // whose rows are drawn; split=max would have to query a network
    const dc_feeds *feeds;
    const dc_dataset *data;
} dc_feeder_source;

// Where a feed finds its rows within a step's bytes.
typedef struct dc_feeder_block {
    bool used;     // else the feed needs none: it is random, or the number of a repetition
    size_t offset; // of the first row
    int width;     // numbers of a row
} dc_feeder_block;

// Borrows: feeds and data of the sources, and the pool (until free). Nullable: pool
dc_status dc_feeder_new(dc_feeder **feeder, const dc_feeder_source *sources, int count,
                        dc_pool *pool);
void dc_feeder_free(dc_feeder *feeder); // Nullable
// Bytes of a step, all members together; a multiple of 256.
size_t dc_feeder_bytes(const dc_feeder *feeder);
dc_feeder_block dc_feeder_find(const dc_feeder *feeder, int member, int feed);
// Go on, for this member, from where a sampler stands. All members must stand at one step.
dc_status dc_feeder_seek(dc_feeder *feeder, int member, const dc_sampler *sampler);
// The step that comes next, and its chunk, from that step on: out is (DC_FEEDER_STEPS, bytes).
uint64_t dc_feeder_step(const dc_feeder *feeder);
dc_status dc_feeder_fill(dc_feeder *feeder, void *out);
// Bring a sampler of this member to `step`, for a checkpoint. It stands there or before.
dc_status dc_feeder_state(const dc_feeder *feeder, int member, uint64_t step, dc_sampler *sampler);

#endif
