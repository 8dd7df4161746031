// Thread pool, see pool.h. Training hands out work every few microseconds, so workers spin briefly
// before they sleep; a block is claimed by one atomic add.
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { SPINS = 4000, THREADS_MAX = 1024 };

struct dc_pool {
    int threads;
    pthread_t *workers; // (threads - 1)
    pthread_mutex_t lock;
    pthread_cond_t wake;
    dc_block_fn *fn;
    void *ctx;
    int blocks;
    bool stop;
    // Work is published by raising `round`; a block is claimed from (round, block) as one word, so
    // that a late worker can never claim a block of a later round with an old function.
    _Atomic uint64_t claim; // round << 32 | next block
    _Atomic uint32_t round;
    _Atomic int done; // blocks finished in this round
    _Atomic int sleepers;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Take blocks of the given round until none is left.
static void work(dc_pool *pool, uint32_t round, dc_block_fn *fn, void *ctx, int blocks) {
    uint64_t seen = atomic_load_explicit(&pool->claim, memory_order_acquire);
    while ((uint32_t)(seen >> 32) == round && (int)(uint32_t)seen < blocks) {
        if (!atomic_compare_exchange_weak_explicit(&pool->claim, &seen, seen + 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        fn(ctx, (int)(uint32_t)seen);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        seen = atomic_load_explicit(&pool->claim, memory_order_acquire);
    }
}

static void *worker(void *arg) {
    dc_pool *pool = arg;
    uint32_t last = 0;
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            if (atomic_load_explicit(&pool->round, memory_order_acquire) != last) break;
            relax();
        }
        pthread_mutex_lock(&pool->lock);
        atomic_fetch_add(&pool->sleepers, 1);
        while (!pool->stop && atomic_load(&pool->round) == last)
            pthread_cond_wait(&pool->wake, &pool->lock);
        atomic_fetch_sub(&pool->sleepers, 1);
        bool stop = pool->stop;
        uint32_t round = atomic_load(&pool->round);
        dc_block_fn *fn = pool->fn;
        void *ctx = pool->ctx;
        int blocks = pool->blocks;
        pthread_mutex_unlock(&pool->lock);
        if (stop) return NULL;
        last = round;
        work(pool, round, fn, ctx, blocks);
    }
}

int dc_core_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

dc_status dc_pool_new(dc_pool **out, int threads) {
    *out = NULL;
    if (threads == 0) threads = dc_core_count();
    if (threads < 0 || threads > THREADS_MAX)
        return dc_fail(DC_USAGE, "give 1 to 1024, or 0 for all cores",
                       "impossible number of threads (%d)", threads);
    dc_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a thread pool");
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->threads = 1;
    while (pool->workers && pool->threads < threads &&
           pthread_create(&pool->workers[pool->threads - 1], NULL, worker, pool) == 0)
        pool->threads++;
    if (pool->threads < threads) {
        int got = pool->threads;
        dc_pool_free(pool);
        return dc_fail(DC_NO_MEMORY, "lower --threads", "only %d of %d threads could be started",
                       got, threads);
    }
    *out = pool;
    return DC_OK;
}

void dc_pool_free(dc_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    atomic_fetch_add(&pool->round, 1); // wakes spinners
    for (int i = 0; i < pool->threads - 1; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int dc_pool_threads(const dc_pool *pool) {
    return pool ? pool->threads : 1;
}

void dc_pool_run(dc_pool *pool, dc_block_fn *fn, void *ctx, int blocks) {
    if (!pool || pool->threads == 1 || blocks <= 1) {
        for (int b = 0; b < blocks; b++)
            fn(ctx, b);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    uint32_t round = atomic_load(&pool->round) + 1;
    pool->fn = fn;
    pool->ctx = ctx;
    pool->blocks = blocks;
    atomic_store(&pool->done, 0);
    atomic_store(&pool->claim, (uint64_t)round << 32);
    atomic_store(&pool->round, round);
    if (atomic_load(&pool->sleepers)) pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    work(pool, round, fn, ctx, blocks);
    while (atomic_load_explicit(&pool->done, memory_order_acquire) < blocks)
        relax();
}
