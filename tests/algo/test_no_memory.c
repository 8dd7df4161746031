// Every allocation on the way to an agent fails once, for every method: its graph, networks and sampler. That is a status
// (DC_NO_MEMORY), and nothing aborts. The allocator stands in front of the C library's.
#define _GNU_SOURCE
#include "train/run.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

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

static long left = -1; // calls until the one that fails; below 0: none does

static int fails(void) {
    return left >= 0 && left-- == 0;
}

void *malloc(size_t n) {
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t n) {
    return fails() ? NULL : __libc_calloc(count, n);
}

void *realloc(void *p, size_t n) {
    return fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n) {
    return fails() ? NULL : __libc_memalign(align, n);
}

// ---- agents ----

enum { ROWS = 40, LENGTH = 10, OBS = 3, ACT = 2 };

static dc_dataset data;

static int make_data(void **state) {
    int64_t *starts;
    float *values;
    (void)state;
    if (dc_dataset_make(&data, ROWS, ROWS / LENGTH, &starts) != DC_OK) return -1;
    for (int t = 0; t <= ROWS / LENGTH; t++)
        starts[t] = (int64_t)t * LENGTH;
    for (int c = 0; c < 2; c++) {
        int width = c ? ACT : OBS;
        if (dc_dataset_add(&data, c ? "act" : "obs", width, &values) != DC_OK) return -1;
        for (int i = 0; i < ROWS * width; i++)
            values[i] = (float)(i * 7 % 11) / 11;
    }
    return dc_dataset_seal(&data) == DC_OK ? 0 : -1;
}

static int drop_data(void **state) {
    (void)state;
    dc_dataset_fini(&data);
    return 0;
}

static void configure(dc_run *run, const char *agent) {
    static const char *const options[][2] = {
        {"hidden", "8,8"}, {"batch", "16"}, {"threads", "1"}, {"steps", "1000000"}};
    *run = DC_RUN_NONE;
    assert_int_equal(dc_run_configure(run, agent), DC_OK);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        assert_int_equal(dc_run_set(run, options[i][0], options[i][1]), DC_OK);
    run->data = &data;
}

// Make the agent while the allocation of this number fails; true if there are so many.
static bool fail_at(dc_run *run, const dc_agent_options *options, long number, const char *name) {
    static dc_agent agent;
    left = number;
    dc_status status = dc_agent_init(&agent, run->algo, run->config, options, &data, NULL);
    bool failed = left < 0;
    left = -1;
    if (status == DC_OK) dc_agent_fini(&agent);
    if (status != DC_OK &&
        (!failed || status != DC_NO_MEMORY)) // the C library's qsort does without
        fail_msg("%s, allocation %ld: status %d (%s)", name, number, (int)status, dc_error());
    return failed;
}

static void test_every_method(void **state) {
    (void)state;
    static dc_run run;
    for (const dc_algo *const *algo = dc_algos; *algo; algo++) {
        dc_agent_options options;
        configure(&run, (*algo)->name);
        assert_int_equal(dc_run_agent_options(&run, &options), DC_OK);
        long number = 0;
        assert_false(fail_at(&run, &options, LONG_MAX, (*algo)->name));
        while (fail_at(&run, &options, number, (*algo)->name))
            number++;
        assert_true(number > 10);
        printf("%s: %ld allocations\n", (*algo)->name, number);
        dc_run_fini(&run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_method)};
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
#endif
