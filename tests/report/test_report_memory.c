// A report with no memory for one allocation, for each in turn: it is the page that it should be, or an error; never a page
// that lacks something. The program stands in front of the C library's allocator.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "report/html.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static long left = -1; // allocations until the one that fails; -1: none fails

static bool fails(void) {
    if (left < 0 || left-- > 0) return false;
    errno = ENOMEM;
    return true;
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

static char folder[] = "/tmp/dcrl_report_XXXXXX";

static void put(int run, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/r%d", folder, run);
    assert_int_equal(dc_folder_make(path), DC_OK);
    snprintf(path, sizeof path, "%s/r%d/%s", folder, run, name);
    assert_int_equal(dc_file_write(path, text, strlen(text)), DC_OK);
}

// Groups that differ by options, by their method and by their environment, two seeds, a lock.
static int set_up(void **state) {
    static const char result[] =
        "{\"agent\": \"td-n\", \"horizon\": 16, \"n\": 4, \"steps\": 5, \"seed\": 0, \"batch\": 8, "
        "\"slots\": null, \"hidden\": [8], \"accumulated_error\": 3.5, \"error_by_distance\": "
        "[{\"distance\": 1, \"error\": 2}], \"steps_per_second\": 9, \"seconds\": 1}";
    static const char *const configs[] = {
        "\"agent\": \"dcrl\", \"env\": \"pointmaze-medium-navigate-v0\", \"seed\": 0, \"n\": 5",
        "\"agent\": \"dcrl\", \"env\": \"pointmaze-medium-navigate-v0\", \"seed\": 1, \"n\": 5",
        "\"agent\": \"dcrl\", \"env\": \"pointmaze-medium-navigate-v0\", \"seed\": 0, \"n\": 9",
        ("\"agent\": \"iql\", \"env\": \"puzzle-4x5-play-oraclerep-v0\", \"seed\": 0, \"policy\": "
         "\"ddpgbc\", \"hidden\": [8,8], \"data\": \"x y\""),
        "\"agent\": \"td-n\", \"env\": \"lock-16\", \"seed\": 0, \"recursion\": true"};
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int r = 0; r < 5; r++) {
        char config[512];
        snprintf(config, sizeof config, "{%s, \"build\": \"b\", \"data_hash\": \"0\"}", configs[r]);
        put(r, "config.json", config);
        put(r, "train.csv", "step,loss\n10,2\n20,1\n");
        put(r, "timing.csv", "step,seconds,steps_per_second\n10,1,100\n20,2,120\n");
        if (r == 4) put(r, "result.json", result);
        if (r == 4) continue;
        put(r, "eval.csv", "step,overall_success,task1_success,episodes\n10,0.5,0.5,15\n");
        put(r, "map-a.svg", "<svg/>");
    }
    return 0;
}

static int tear_down(void **state) {
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

// Every form of the report of all runs, one behind the other.
static dc_status make(const dc_runs *runs, dc_arena *arena, dc_text *out) {
    dc_table table;
    dc_compare compare;
    dc_curves curves;
    DC_TRY(dc_table_build(&table, runs, true, arena));
    DC_TRY(dc_compare_build(&compare, &table, arena));
    DC_TRY(dc_curves_build(&curves, runs, arena));
    DC_TRY(dc_html_page(runs, &table, &compare, &curves, NULL, 0, arena, out));
    dc_table_csv(&table, out);
    dc_table_markdown(&table, runs, out);
    dc_compare_markdown(&compare, out);
    dc_compare_text(&compare, out);
    dc_compare_json(&compare, out);
    return dc_text_status(out);
}

static dc_status report(dc_text *out) {
    const char *path = folder;
    dc_runs runs;
    dc_arena arena;
    dc_text_init(out);
    DC_TRY(dc_runs_read(&runs, &path, 1));
    dc_arena_init(&arena, 0);
    dc_status status = make(&runs, &arena, out);
    dc_arena_fini(&arena);
    dc_runs_fini(&runs);
    return status;
}

static void test_every_allocation(void **state) {
    (void)state;
    dc_text want, got;
    assert_int_equal(report(&want), DC_OK);
    assert_true(want.used > 20000);
    long failed = 0, wrong = 0;
    for (long n = 0;; n++) {
        left = n;
        dc_status status = report(&got);
        bool all = left >= 0; // there was no such allocation
        left = -1;
        failed += status != DC_OK;
        if (status != DC_OK
                ? !*dc_error()
                : got.used != want.used || memcmp(got.bytes, want.bytes, want.used) != 0)
            wrong++;
        dc_text_fini(&got);
        if (all) break;
    }
    printf("%ld allocations failed, %ld reports wrong\n", failed, wrong);
    assert_true(failed > 500);
    assert_int_equal(wrong, 0);
    dc_text_fini(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
