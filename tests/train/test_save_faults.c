// A disk that fails: the Nth write, sync or rename of a save goes wrong, once or from then on. Each
// time the save must say so and name the file, the checkpoint from before must still load,
// train.csv must hold whole rows, a second attempt must succeed once the disk is well, and a resume
// must end in the bytes of a run that saw no fault.
#include "small_run.h"

#include <errno.h>

enum { WRITE, FSYNC, RENAME, KINDS, GOOD_STEPS = 3, CALLS_MAX = 60 };

static char root[] = "/tmp/dcrl_faults_XXXXXX", folder[64];
static small_bytes want;

// ---- the disk ----

static struct {
    int kind, countdown; // fails when this comes to zero
    bool for_ever;
    int fired;
} fault;

static bool fails(int kind) {
    if (kind != fault.kind || fault.countdown < 0) return false;
    if (fault.countdown > 0 && --fault.countdown > 0) return false;
    if (!fault.for_ever) fault.countdown = -1;
    fault.fired++;
    return true;
}

// A full disk takes some bytes before it refuses the rest.
static ssize_t bad_write(int fd, const void *bytes, size_t n) {
    if (!fails(WRITE)) return write(fd, bytes, n);
    if (n > 1) (void)!write(fd, bytes, n / 2);
    errno = ENOSPC;
    return -1;
}

static int bad_fsync(int fd) {
    (void)fd; // syncing a test's files to the disk would only take time
    return fails(FSYNC) ? (errno = EIO, -1) : 0;
}

static int bad_rename(const char *from, const char *to) {
    return fails(RENAME) ? (errno = EIO, -1) : rename(from, to);
}

static void set_fault(int kind, int number, bool for_ever) {
    fault.kind = kind;
    fault.countdown = number;
    fault.for_ever = for_ever;
    fault.fired = 0;
}

static void heal(void) {
    set_fault(KINDS, -1, false);
}

// ---- checks ----

static void start(dc_run *run) {
    heal();
    small_remove(folder);
    small_configure(run, "dcrl", NULL);
    assert_int_equal(dc_run_start(run, &small_data, folder), DC_OK);
}

static int64_t resume(dc_run *run) {
    small_configure(run, "dcrl", NULL);
    assert_int_equal(dc_run_resume(run, &small_data, folder), DC_OK);
    return run->step;
}

// Every line is whole and starts with its number.
static void check_csv(int64_t steps) {
    size_t n;
    char *bytes = small_file(folder, "train.csv", &n);
    int64_t row = -1; // the header
    for (char *line = bytes, *end; line < bytes + n; line = end + 1, row++) {
        end = strchr(line, '\n');
        assert_non_null(end);
        if (row >= 0) assert_int_equal(strtoll(line, NULL, 10), row + 1);
    }
    assert_int_equal(row, steps);
    free(bytes);
}

static void check_no_leftovers(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        assert_null(strstr(e->d_name, ".tmp."));
    closedir(dir);
}

// One step whose log row or save meets the fault; false when there was no such call any more.
static bool step_with_fault(dc_run *run, int kind, int number, bool for_ever) {
    start(run);
    small_steps(run, GOOD_STEPS);
    set_fault(kind, number, for_ever);
    dc_status status = dc_run_train(run);
    bool fired = fault.fired > 0;
    heal();
    if (!fired) {
        assert_int_equal(status, DC_INTERRUPTED);
        dc_run_fini(run);
        return false;
    }
    assert_int_equal(status, DC_IO);
    assert_non_null(strstr(dc_error(), folder)); // names the file ...
    assert_non_null(strchr(dc_error(), ':'));    // ... and what to do
    check_no_leftovers();
    return true;
}

static void each_call_fails(int kind, bool for_ever) {
    int number = 1;
    for (dc_run run; step_with_fault(&run, kind, number, for_ever); number++) {
        assert_true(number < CALLS_MAX);
        dc_run_fini(&run); // the process ends; a new one goes on
        dc_run next;
        int64_t step = resume(&next);
        assert_true(step == GOOD_STEPS || step == GOOD_STEPS + 1);
        check_csv(step);
        small_finish(&next);
        small_expect(folder, &want);
    }
    print_message("  %d calls, each failing %s\n", number - 1, for_ever ? "for ever" : "once");
    assert_true(number > 1);
}

static void test_writes(void **state) {
    (void)state;
    each_call_fails(WRITE, false);
    each_call_fails(WRITE, true);
}

static void test_syncs(void **state) {
    (void)state;
    each_call_fails(FSYNC, false);
    each_call_fails(FSYNC, true);
}

static void test_renames(void **state) {
    (void)state;
    each_call_fails(RENAME, false);
    each_call_fails(RENAME, true);
}

// The same process tries again when the disk is well.
static void test_second_attempt(void **state) {
    (void)state;
    dc_run run;
    start(&run);
    small_steps(&run, GOOD_STEPS);
    run.saved_step = -1; // as if this step had not been saved
    for (int kind = 0; kind < KINDS; kind++) {
        set_fault(kind, 1, false);
        assert_int_equal(dc_run_save(&run), DC_IO);
        assert_int_equal(run.saved_step, -1);
    }
    heal();
    assert_int_equal(dc_run_save(&run), DC_OK);
    assert_int_equal(run.saved_step, GOOD_STEPS);
    small_finish(&run);
    small_expect(folder, &want);
}

// Starting a run on a bad disk: an error, then the start command again or a resume.
static void test_start(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int number = 1; number < CALLS_MAX; number++) {
            dc_run run;
            small_remove(folder);
            small_configure(&run, "dcrl", NULL);
            set_fault(kind, number, false);
            dc_status status = dc_run_start(&run, &small_data, folder);
            bool fired = fault.fired > 0;
            heal();
            assert_int_equal(status, fired ? DC_IO : DC_OK);
            dc_run_fini(&run);
            char config[DC_PATH_MAX];
            assert_int_equal(dc_folder_path(config, folder, "config.json"), DC_OK);
            if (access(config, F_OK) == 0) {
                assert_int_equal(resume(&run), 0);
                small_finish(&run);
                small_expect(folder, &want);
            } else {
                start(&run);
                dc_run_fini(&run);
            }
            if (!fired) break;
        }
}

static int set_up(void **state) {
    (void)state;
    dc_file_system = (dc_file_calls){bad_write, bad_fsync, bad_rename};
    if (!mkdtemp(root)) return -1;
    snprintf(folder, sizeof folder, "%s/run", root);
    small_data_init();
    dc_run run;
    start(&run);
    small_finish(&run);
    want = small_read(folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    small_free(&want);
    dc_dataset_fini(&small_data);
    small_remove(folder);
    return rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes),  cmocka_unit_test(test_syncs),
        cmocka_unit_test(test_renames), cmocka_unit_test(test_second_attempt),
        cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
