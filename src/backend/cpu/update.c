// One pass over the parameter slabs: EMA from the weights before the step, then Adam. Split into
// fixed blocks; the norm's partial sums are added in order.
#include "backend/cpu/cpu.h"

#include <math.h>

enum { SLAB_BLOCK = 1 << 15, BLOCKS_MAX = 1 << 13 };

// Blocks of the slab, and the size of each: large slabs get larger blocks, not more than
// BLOCKS_MAX.
static int64_t block_size(int64_t size) {
    int64_t least = (size + BLOCKS_MAX - 1) / BLOCKS_MAX;
    return least > SLAB_BLOCK ? least : SLAB_BLOCK;
}

typedef struct norm_job {
    const dc_real *g;
    int64_t size, block;
    double *sums;
} norm_job;

static void norm_block(void *ctx, int block) {
    const norm_job *j = ctx;
    int64_t from = block * j->block, to = from + j->block < j->size ? from + j->block : j->size;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = from; i < to; i++)
        sum += (double)j->g[i] * (double)j->g[i];
    j->sums[block] = sum;
}

double dc_cpu_grad_norm2(const dc_slabs *slabs, dc_pool *pool) {
    double sums[BLOCKS_MAX], total = 0;
    norm_job j = {slabs->grad, slabs->size, block_size(slabs->size), sums};
    int blocks = (int)((slabs->size + j.block - 1) / j.block);
    dc_pool_run(pool, norm_block, &j, blocks);
    for (int b = 0; b < blocks; b++)
        total += sums[b];
    return total;
}

typedef struct update_job {
    const dc_slabs *s;
    int64_t block, first, last;
    dc_real tau, rate, beta1, beta2, eps,
        inv_c2; // rate = lr / (1 - beta1^t), inv_c2 = 1 / (1 - beta2^t)
    dc_real rest_tau, rest1,
        rest2; // 1 - tau, 1 - beta1, 1 - beta2: of 0.999f only 5 digits would be left
} update_job;

static void update_block(void *ctx, int block) {
    const update_job *j = ctx;
    const dc_slabs *s = j->s;
    int64_t from = j->first + block * j->block;
    int64_t to = from + j->block < j->last ? from + j->block : j->last;
    dc_real *restrict p = s->live, *restrict ema = s->ema, *restrict m = s->m, *restrict v = s->v;
    const dc_real *restrict g = s->grad;
    int64_t ema_to = to < s->ema_size ? to : s->ema_size;
#pragma omp simd
    for (int64_t i = from; i < ema_to; i++)
        ema[i] = j->tau * p[i] + j->rest_tau * ema[i];
#pragma omp simd
    for (int64_t i = from; i < to; i++) {
        m[i] = j->beta1 * m[i] + j->rest1 * g[i];
        v[i] = j->beta2 * v[i] + j->rest2 * g[i] * g[i];
#ifdef DC_DOUBLE
        p[i] -= j->rate * m[i] / (sqrt(v[i] * j->inv_c2) + j->eps);
#else
        p[i] -= j->rate * m[i] / (sqrtf(v[i] * j->inv_c2) + j->eps);
#endif
    }
}

void dc_cpu_update(const dc_slabs *slabs, const dc_adam *adam, dc_pool *pool) {
    double t = (double)adam->step, c1 = 1 - pow(adam->beta1, t), c2 = 1 - pow(adam->beta2, t);
    int64_t last = adam->last ? adam->last : slabs->size, count = last - adam->first;
    update_job j = {slabs,
                    block_size(count),
                    adam->first,
                    last,
                    (dc_real)adam->tau,
                    (dc_real)(adam->lr / c1),
                    (dc_real)adam->beta1,
                    (dc_real)adam->beta2,
                    (dc_real)adam->eps,
                    (dc_real)(1 / c2),
                    (dc_real)(1 - adam->tau),
                    (dc_real)(1 - adam->beta1),
                    (dc_real)(1 - adam->beta2)};
    dc_pool_run(pool, update_block, &j, (int)((count + j.block - 1) / j.block));
}
