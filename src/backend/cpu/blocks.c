// Rows in blocks of DC_ROW_BLOCK, the unit of work of the pool.
#include "backend/cpu/cpu.h"

typedef struct job {
    dc_rows_fn *fn;
    const void *ctx;
    int blocks, rows; // of one member
} job;

static void run_block(void *ctx, int block) {
    const job *j = ctx;
    int r0 = block % j->blocks * DC_ROW_BLOCK, r1 = r0 + DC_ROW_BLOCK;
    j->fn(j->ctx, block / j->blocks, r0, r1 < j->rows ? r1 : j->rows);
}

void dc_cpu_each_block(dc_pool *pool, dc_rows_fn *fn, const void *ctx, int members, int rows) {
    job j = {fn, ctx, dc_blocks(rows), rows};
    dc_pool_run(pool, run_block, &j, members * j.blocks);
}
