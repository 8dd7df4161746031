// Thread pool: runs numbered blocks of work on all its threads, the caller's included. The number
// of blocks is the caller's choice and must not depend on the number of threads: that is what makes
// results the same for 1 thread and for 16.
#ifndef DC_POOL_H
#define DC_POOL_H

#include "base/status.h"

typedef struct dc_pool dc_pool;
typedef void dc_block_fn(void *ctx, int block);

// threads counts the caller's own; 0 means one for every core.
dc_status dc_pool_new(dc_pool **pool, int threads);
void dc_pool_free(dc_pool *pool); // Nullable: pool
int dc_pool_threads(const dc_pool *pool);
// Run fn(ctx, 0) ... fn(ctx, blocks - 1) in any order; returns when all are done. Nullable: pool
// (runs here). One run at a time: neither from two threads nor from inside a block of the same pool
// (a bug, and aborts).
void dc_pool_run(dc_pool *pool, dc_block_fn *fn, void *ctx, int blocks);
// Cores this process may use.
int dc_core_count(void);

#endif
