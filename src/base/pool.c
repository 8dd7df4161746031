// Thread pool, see pool.h. Training hands out work every few microseconds, so a round must cost
// little: workers spin before they sleep, a block is claimed by one compare-and-swap, and the lock
// is touched only by a worker that goes to sleep and by a caller that finds sleepers.
//
// One word, `claim`, holds the round and its next block. Why a late worker can never run a block of
// one round with the function of another: a caller first closes the old round (its block number
// becomes CLOSED), then writes function, context and count with release order, then opens the new
// round. A worker reads the round, then those three with acquire order, then claims. If it read
// anything of a newer round, it also sees that the old one is closed, and claims nothing.
//
// Why no wake-up is lost: a worker counts itself among the sleepers before it looks at `claim` for
// the last time, and a caller opens the round before it looks for sleepers; both in sequential
// order, so at least one of them sees the other, and the caller's broadcast waits for the lock that
// the worker holds until it sleeps.
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SPINS = 4000, THREADS_MAX = 1024 };
static const uint32_t CLOSED = UINT32_MAX; // as block number: more than any count

struct dc_pool {
    int threads;
    unsigned process;   // number of the process that has the workers
    pthread_t *workers; // (threads - 1)
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop; // under the lock
    _Atomic int sleepers;
    _Atomic bool busy; // a run is in progress
    // The work of this round.
    _Atomic(dc_block_fn *) fn;
    _Atomic(void *) ctx;
    _Atomic uint32_t blocks;
    _Atomic uint64_t claim; // round << 32 | next block
    _Atomic uint32_t done;  // blocks finished in this round
};

// A child of fork has none of its parent's workers, and what they held is held for ever. So there every block is the
// caller's, and freeing a pool is freeing its memory. The number of a process is how many forks it is away.
static unsigned this_process;
static pthread_once_t counted = PTHREAD_ONCE_INIT;

static void count_fork(void) {
    this_process++;
}

static void count_forks(void) {
    (void)pthread_atfork(NULL, NULL, count_fork);
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static uint32_t round_of(uint64_t claim) {
    return (uint32_t)(claim >> 32);
}

// Take blocks of the given round until none is left.
static void work(dc_pool *pool, uint32_t round) {
    dc_block_fn *fn = atomic_load_explicit(&pool->fn, memory_order_acquire);
    void *ctx = atomic_load_explicit(&pool->ctx, memory_order_acquire);
    uint32_t blocks = atomic_load_explicit(&pool->blocks, memory_order_acquire);
    uint64_t seen = atomic_load_explicit(&pool->claim, memory_order_acquire);
    while (round_of(seen) == round && (uint32_t)seen < blocks) {
        if (!atomic_compare_exchange_weak_explicit(&pool->claim, &seen, seen + 1,
                                                   memory_order_acq_rel, memory_order_acquire))
            continue;
        fn(ctx, (int)(uint32_t)seen);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        seen = atomic_load_explicit(&pool->claim, memory_order_acquire);
    }
}

// Wait for another round than *last and put it there; false when the pool ends.
static bool await_round(dc_pool *pool, uint32_t *last) {
    for (int i = 0; i < SPINS; i++) {
        uint32_t round = round_of(atomic_load_explicit(&pool->claim, memory_order_acquire));
        if (round != *last) return *last = round, true;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!pool->stop && round_of(atomic_load(&pool->claim)) == *last)
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    bool stop = pool->stop;
    pthread_mutex_unlock(&pool->lock);
    *last = round_of(atomic_load(&pool->claim));
    return !stop;
}

static void *worker(void *arg) {
    dc_pool *pool = arg;
    uint32_t round = 0;
    while (await_round(pool, &round))
        work(pool, round);
    return NULL;
}

// A container's share of the processors, rounded up; 0: no limit.
static int quota(void) {
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r"); // "200000 100000", or "max 100000"
    double share = 0, period = 0;
    if (!file) return 0;
    int read = fscanf(file, "%lf %lf", &share, &period);
    fclose(file);
    if (read != 2 || !(share > 0) || !(period > 0) || share / period > THREADS_MAX) return 0;
    int whole = (int)(share / period);
    return share / period > whole ? whole + 1 : whole;
}

int dc_core_count(void) {
    cpu_set_t set;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    int most = quota();
    if (most && n > most) n = most;
    return n > THREADS_MAX ? THREADS_MAX : n > 0 ? (int)n : 1;
}

dc_status dc_pool_new(dc_pool **out, int threads) {
    *out = NULL;
    if (threads == 0) threads = dc_core_count();
    if (threads < 0 || threads > THREADS_MAX)
        return dc_fail(DC_USAGE, "give 1 to 1024, or 0 for all cores",
                       "impossible number of threads (%d)", threads);
    dc_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a thread pool");
    pthread_once(&counted, count_forks);
    pool->process = this_process;
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

static void end_workers(dc_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->threads - 1; i++)
        pthread_join(pool->workers[i], NULL); // spinners see the end when they go to sleep
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
}

void dc_pool_free(dc_pool *pool) {
    if (!pool) return;
    if (pool->process == this_process) end_workers(pool);
    free(pool->workers);
    free(pool);
}

int dc_pool_threads(const dc_pool *pool) {
    return pool ? pool->threads : 1;
}

// Publish the work of a new round, in the order that the top of this file explains; returns its
// number.
static uint32_t open_round(dc_pool *pool, dc_block_fn *fn, void *ctx, int blocks) {
    uint32_t round = round_of(atomic_load_explicit(&pool->claim, memory_order_relaxed));
    atomic_store_explicit(&pool->claim, (uint64_t)round << 32 | CLOSED, memory_order_relaxed);
    atomic_store_explicit(&pool->fn, fn, memory_order_release);
    atomic_store_explicit(&pool->ctx, ctx, memory_order_release);
    atomic_store_explicit(&pool->blocks, (uint32_t)blocks, memory_order_release);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store(&pool->claim, (uint64_t)++round << 32);
    return round;
}

static void wake_sleepers(dc_pool *pool) {
    if (!atomic_load(&pool->sleepers)) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void dc_pool_run(dc_pool *pool, dc_block_fn *fn, void *ctx, int blocks) {
    if (!pool || pool->threads == 1 || blocks <= 1 || pool->process != this_process) {
        for (int b = 0; b < blocks; b++)
            fn(ctx, b);
        return;
    }
    bool nested_or_shared = atomic_exchange(&pool->busy, true);
    DC_CHECK(!nested_or_shared);
    uint32_t round = open_round(pool, fn, ctx, blocks);
    wake_sleepers(pool);
    work(pool, round);
    // Others may still be at their last block; give way when that takes long.
    for (int i = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < (uint32_t)blocks;
         i++) {
        relax();
        if (i >= SPINS) sched_yield();
    }
    atomic_store(&pool->busy, false);
}
