// After the first step nothing is allocated: this program counts every malloc, calloc, realloc,
// aligned_alloc and posix_memalign of all threads by standing in front of the C library's, and
// trains 200 further steps with log rows. Saves are left out: they happen rarely and give back what
// they take.
#define _GNU_SOURCE
#include "small_run.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
int main(void) {
    puts("skipped: the sanitizer owns the allocator");
    return 0;
}
#else

// ---- the allocator in front ----

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_long calls;

void *malloc(size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(n);
}

void *calloc(size_t count, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(count, n);
}

void *realloc(void *p, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(align, n);
}

void *memalign(size_t align, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n) {
    atomic_fetch_add(&calls, 1);
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}

// ---- the check ----

static char root[] = "/tmp/dcrl_allocations_XXXXXX", folder[64];
static long calls_at[2];    // after the first step, before the last
static size_t memory_at[2]; // bytes in use then

// The run tells its progress at most five times per second; steps are counted by the log instead.
static ssize_t log_write(int fd, const void *bytes, size_t n) {
    static const int64_t marks[2] = {1, 201};
    int64_t step = strtoll(bytes, NULL, 10);
    for (int i = 0; i < 2; i++)
        if (step == marks[i] && !calls_at[i]) {
            calls_at[i] = atomic_load(&calls);
            memory_at[i] = mallinfo2().uordblks;
        }
    return write(fd, bytes, n);
}

static void train(const char *agent, const char *form, const char *policy, const char *threads) {
    dc_run run;
    long before = atomic_load(&calls);
    memset(calls_at, 0, sizeof calls_at);
    small_configure(&run, agent, "steps", "205", "threads", threads, "form", form, "policy", policy,
                    NULL);
    assert_int_equal(dc_run_start(&run, &small_data, folder), DC_OK);
    assert_int_equal(dc_run_train(&run), DC_OK);
    dc_run_fini(&run);
    small_remove(folder);
    print_message("  %s %s %s, %s threads: %ld calls to build and take a step, %ld in 200 further "
                  "steps, %zu bytes\n",
                  agent, form, policy, threads, calls_at[0] - before, calls_at[1] - calls_at[0],
                  memory_at[0]);
    assert_true(calls_at[0] > 0 && calls_at[1] > 0); // both marks were passed
    assert_int_equal(calls_at[1], calls_at[0]);
    assert_int_equal(memory_at[1], memory_at[0]);
}

static void test_no_allocation(void **state) {
    (void)state;
    static const char *const agents[] = {"td-n", "trl-n", "dcrl"};
    for (int i = 0; i < 3; i++) {
        train(agents[i], "distance", "none", "1");
        train(agents[i], "distance", "none", "2");
    }
    train("dcrl", "value", "ddpgbc", "2");
    small_data.columns[1].whole = false; // the lock's actions, as if they were real numbers
    train("dcrl", "value", "ddpgbc", "2");
    train("dcrl", "value", "rejection", "2");
    small_data.columns[1].whole = true;
}

// The counter counts.
static void test_counter(void **state) {
    (void)state;
    long before = atomic_load(&calls);
    void *volatile p = malloc(10);
    p = realloc(p, 5000);
    free(p);
    p = aligned_alloc(64, 640);
    free(p);
    assert_int_equal(atomic_load(&calls), before + 3);
}

static int set_up(void **state) {
    (void)state;
    dc_file_system.write = log_write;
    if (!mkdtemp(root)) return -1;
    snprintf(folder, sizeof folder, "%s/run", root);
    small_data_init();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dc_dataset_fini(&small_data);
    return rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),
        cmocka_unit_test(test_no_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
