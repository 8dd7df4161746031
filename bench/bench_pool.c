// What does handing out work cost? Rounds of 16 blocks of about a microsecond each, for 1 to N
// threads (N: first argument, default all cores); one JSON line.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pool.h"

enum { TRIES = 20, ROUNDS = 1000, BLOCKS = 16, WORK = 1000 };

static volatile unsigned results[BLOCKS][16]; // a cache line a block

static void block(void *ctx, int b) {
    unsigned x = *(const unsigned *)ctx + (unsigned)b;
    for (int i = 0; i < WORK; i++)
        x = x * 1664525u + 1013904223u;
    results[b][0] = x;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Microseconds a round.
static double measure(dc_pool *pool) {
    double best = 1e9;
    for (int t = 0; t < TRIES; t++) {
        double start = seconds();
        for (unsigned round = 0; round < ROUNDS; round++)
            dc_pool_run(pool, block, &round, BLOCKS);
        double us = 1e6 * (seconds() - start) / ROUNDS;
        if (us < best) best = us;
    }
    return best;
}

int main(int argc, char **argv) {
    int most = argc > 1 ? atoi(argv[1]) : dc_core_count();
    printf("{\"bench\": \"pool\", \"blocks\": %d, \"us_per_round\": [", BLOCKS);
    for (int threads = 1; threads <= most; threads++) {
        dc_pool *pool;
        if (dc_pool_new(&pool, threads) != DC_OK) return fprintf(stderr, "%s\n", dc_error()), 1;
        printf("%s%.2f", threads > 1 ? ", " : "", measure(pool));
        dc_pool_free(pool);
    }
    puts("]}");
    return 0;
}
