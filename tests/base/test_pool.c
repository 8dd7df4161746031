// Thread pool: every block exactly once, whatever the number of threads, blocks and rounds; what
// blocks wrote is seen by the caller; rounds of different work follow each other closely. Run it
// under -fsanitize=thread too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"

enum { BLOCKS_MAX = 300 };

typedef struct job {
    int counts[BLOCKS_MAX]; // plain ints: a race would show, here or in the sanitizer
    int blocks;
} job;

static void count_block(void *ctx, int block) {
    job *j = ctx;
    j->counts[block] += 1;
}

static void count_twice(void *ctx, int block) {
    job *j = ctx;
    j->counts[block] += 2;
}

static void test_once(void **state) {
    (void)state;
    static job jobs[2];
    for (int threads = 1; threads <= 8; threads++) {
        dc_pool *pool;
        assert_int_equal(dc_pool_new(&pool, threads), DC_OK);
        assert_int_equal(dc_pool_threads(pool), threads);
        memset(jobs, 0, sizeof jobs);
        int expected[2][BLOCKS_MAX] = {{0}};
        for (int round = 0; round < 4000; round++) {
            int which = round & 1, blocks = (round * 7) % (round % 50 == 0 ? BLOCKS_MAX : 20);
            dc_pool_run(pool, which ? count_twice : count_block, &jobs[which], blocks);
            for (int b = 0; b < blocks; b++)
                expected[which][b] += 1 + which;
            // Read at once: all writes of the round must be visible here.
            assert_memory_equal(jobs[which].counts, expected[which], sizeof expected[which]);
        }
        dc_pool_free(pool);
    }
}

// Blocks that take a while are shared out: no thread is left idle, and the sum is right.
typedef struct shared_job {
    pthread_t who[64];
    double sums[64];
} shared_job;

static void long_block(void *ctx, int block) {
    shared_job *j = ctx;
    j->who[block] = pthread_self();
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    for (int i = 0; i < 1000; i++)
        j->sums[block] += block;
}

static void test_shared_out(void **state) {
    (void)state;
    static shared_job j;
    dc_pool *pool;
    assert_int_equal(dc_pool_new(&pool, 4), DC_OK);
    for (int round = 0; round < 20; round++)
        dc_pool_run(pool, long_block, &j, 64);
    dc_pool_free(pool);
    int different = 0;
    for (int b = 0; b < 64; b++) {
        assert_true(j.sums[b] == 20000.0 * b);
        different += !pthread_equal(j.who[b], pthread_self());
    }
    assert_true(different > 0);
}

// Workers that went to sleep are woken, and a pool can end while they sleep or spin.
static void test_sleep(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        dc_pool *pool;
        static job j;
        memset(&j, 0, sizeof j);
        assert_int_equal(dc_pool_new(&pool, 4), DC_OK);
        for (int i = 0; i < 3; i++) {
            nanosleep(&(struct timespec){.tv_nsec = 100000L * (round % 10)}, NULL);
            dc_pool_run(pool, count_block, &j, 50);
        }
        if (round % 2) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        dc_pool_free(pool);
        for (int b = 0; b < 50; b++)
            assert_int_equal(j.counts[b], 3);
    }
    for (int i = 0; i < 100; i++) { // ends before its workers have begun
        dc_pool *pool;
        assert_int_equal(dc_pool_new(&pool, 8), DC_OK);
        dc_pool_free(pool);
    }
}

static void test_edges(void **state) {
    (void)state;
    static job j;
    dc_pool *pool;
    dc_pool_run(NULL, count_block, &j, 5);
    assert_int_equal(j.counts[4], 1);
    assert_int_equal(dc_pool_threads(NULL), 1);
    dc_pool_free(NULL);
    assert_int_equal(dc_pool_new(&pool, 0), DC_OK);
    assert_int_equal(dc_pool_threads(pool), dc_core_count());
    dc_pool_run(pool, count_block, &j, 0);
    dc_pool_run(pool, count_block, &j, 1);
    assert_int_equal(j.counts[0], 2);
    dc_pool_free(pool);
    assert_int_equal(dc_pool_new(&pool, -1), DC_USAGE);
    assert_null(pool);
    assert_int_equal(dc_pool_new(&pool, 100000), DC_USAGE);
    assert_true(dc_core_count() >= 1);
}

// Two pools at once, one inside a block of the other.
static void run_inner(void *ctx, int block) {
    job *jobs = ctx;
    dc_pool *inner;
    if (dc_pool_new(&inner, 2) != DC_OK) return;
    dc_pool_run(inner, count_block, &jobs[block], 100);
    dc_pool_free(inner);
}

static void test_two_pools(void **state) {
    (void)state;
    static job jobs[6];
    dc_pool *pool;
    assert_int_equal(dc_pool_new(&pool, 3), DC_OK);
    dc_pool_run(pool, run_inner, jobs, 6);
    dc_pool_free(pool);
    for (int i = 0; i < 6; i++)
        for (int b = 0; b < 100; b++)
            assert_int_equal(jobs[i].counts[b], 1);
}

// In a child of fork a pool has no threads: the caller does all blocks, and freeing waits for nobody.
static void test_fork(void **state) {
    (void)state;
    static job j;
    dc_pool *pool;
    assert_int_equal(dc_pool_new(&pool, 4), DC_OK);
    dc_pool_run(pool, count_block, &j, 50);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); // else it would hang
        dc_pool_run(pool, count_block, &j, 50);
        int bad = 0;
        for (int b = 0; b < 50; b++)
            bad += j.counts[b] != 2;
        dc_pool_free(pool);
        _exit(bad != 0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    dc_pool_run(pool, count_block, &j, 50); // the parent's goes on
    assert_int_equal(j.counts[49], 2);
    dc_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),      cmocka_unit_test(test_shared_out),
        cmocka_unit_test(test_sleep),     cmocka_unit_test(test_edges),
        cmocka_unit_test(test_two_pools), cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
