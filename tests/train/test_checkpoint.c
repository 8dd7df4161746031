// Hostile checkpoints: files cut short, flipped, with wrong shapes, types, names, numbers, sampler
// words, of another agent. A resume must pass each over with one warning and go on from the older
// checkpoint to the bytes of a run that never met it; with no older one it must fail with one
// error. Never a crash.
#include "edit.h"
#include "small_run.h"

#include "base/log.h"
#include "base/philox.h"

#include <math.h>

enum { NEW_STEP = 8, OLD_STEP = 7, FLIPS = 300 };

static char root[] = "/tmp/dcrl_checkpoint_XXXXXX", folder[64], newest[128], older[128];
static char *new_bytes, *old_bytes; // of the two good checkpoints
static size_t new_size, old_size;
static small_bytes want;
static int warnings;
static char warning[1024];

static void count_warning(void *ctx, dc_level level, const char *line) {
    (void)ctx;
    warnings += level == DC_WARN;
    snprintf(warning, sizeof warning, "%s", line);
}

static int no_sync(int fd) { // hundreds of files; the disk need not see them
    (void)fd;
    return 0;
}

static void put(const char *path, const void *bytes, size_t n) {
    assert_int_equal(dc_file_write(path, bytes, n), DC_OK);
}

static dc_status resume(dc_run *run) {
    warnings = 0;
    small_configure(run, "dcrl", NULL);
    return dc_run_resume(run, &small_data, folder);
}

// Remove what the last step wrote, so that the next resume has work to do.
static void remove_end(void) {
    static const char *const names[] = {"DONE", "step-0000000012.safetensors"};
    for (int i = 0; i < 2; i++) {
        char path[DC_PATH_MAX];
        assert_int_equal(dc_folder_path(path, folder, names[i]), DC_OK);
        assert_int_equal(unlink(path), 0);
    }
}

static void to_the_end(dc_run *run) {
    small_finish(run);
    small_expect(folder, &want);
    remove_end();
}

// With `bytes` as newest checkpoint: refused for the older one, or (a flip that changes nothing)
// taken.
static bool refused(const void *bytes, size_t n) {
    dc_run run;
    put(newest, bytes, n);
    put(older, old_bytes, old_size);
    assert_int_equal(resume(&run), DC_OK);
    bool fell_back = run.step == OLD_STEP;
    assert_int_equal(run.step, fell_back ? OLD_STEP : NEW_STEP);
    assert_int_equal(warnings, fell_back);
    if (fell_back) assert_non_null(strstr(warning, newest));
    to_the_end(&run);
    return fell_back;
}

// The same alone in the folder: one error that names the folder and a remedy.
static void refused_alone(const void *bytes, size_t n) {
    dc_run run;
    put(newest, bytes, n);
    unlink(older);
    assert_int_not_equal(resume(&run), DC_OK);
    assert_int_equal(warnings, 0);
    assert_non_null(strstr(dc_error(), folder));
    assert_non_null(strstr(dc_error(), "begin again"));
    dc_run_fini(&run);
}

static void expect_refused(const char *what, const void *bytes, size_t n) {
    if (!refused(bytes, n)) fail_msg("%s was not refused", what);
    refused_alone(bytes, n);
}

static void test_good(void **state) {
    (void)state;
    assert_false(refused(new_bytes, new_size));
    assert_int_equal(warnings, 0);
}

static void test_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < 24; i++)
        expect_refused("a cut file", new_bytes,
                       i < 16 ? i : new_size - 1 - (i - 16) * new_size / 9);
    char *longer = calloc(1, new_size + 8);
    memcpy(longer, new_bytes, new_size);
    expect_refused("a file with bytes behind its end", longer, new_size + 8);
    free(longer);
}

// One byte changed anywhere. What is not refused must have changed nothing (a space of the header's
// padding turned into another blank): to_the_end compares the bytes of the finished run.
static void test_flips(void **state) {
    (void)state;
    size_t header = 0;
    memcpy(&header, new_bytes, 8);
    int taken = 0;
    for (uint32_t i = 0; i < FLIPS; i++) {
        dc_u32x4 word = dc_philox(1, 0, 0, i);
        size_t room = i % 2 ? new_size : header + 8; // every second one in the header
        size_t at = dc_below(word.v[0], (uint32_t)room);
        char keep = new_bytes[at];
        unsigned mask = i % 3 ? 1u << word.v[1] % 8 : 1 + word.v[2] % 255;
        new_bytes[at] = (char)((unsigned char)keep ^ mask);
        taken += !refused(new_bytes, new_size);
        new_bytes[at] = keep;
    }
    print_message("  %d flips, %d of them harmless\n", FLIPS, taken);
    assert_true(taken < FLIPS / 20);
}

// ---- files that are whole, but say something else ----

static int64_t *words(parts *p) {
    return (int64_t *)(uintptr_t)find_tensor(p, "sampler")->bytes;
}

static void nan_weight(parts *p) {
    floats_of(p, "critic/0/w")[3] = NAN;
}
static void inf_target(parts *p) {
    floats_of(p, "target_critic/0/w")[0] = INFINITY;
}
static void inf_moment(parts *p) {
    floats_of(p, "adam_v/critic/0/w")[1] = -INFINITY;
}
static void nan_log(parts *p) {
    floats_of(p, "log")[1] = NAN;
}
static void other_agent(parts *p) {
    set_meta(p, "agent", "trl-n");
}
static void other_format(parts *p) {
    set_meta(p, "format", "dcrl checkpoint 3");
}
static void older_format(parts *p) {
    set_meta(p, "format", "dcrl checkpoint 1");
}
static void no_metas(parts *p) {
    p->meta_count = 0;
}
static void step_word(parts *p) {
    set_meta(p, "step", "eight");
}
static void step_empty(parts *p) {
    set_meta(p, "step", "");
}
static void step_negative(parts *p) {
    set_meta(p, "step", "-8");
}
static void step_past(parts *p) {
    set_meta(p, "step", "13");
}
static void step_other(parts *p) {
    set_meta(p, "step", "9");
}
static void step_huge(parts *p) {
    set_meta(p, "step", "99999999999999999999999");
}
static void no_sampler(parts *p) {
    drop_tensor(p, "sampler");
}
static void no_log(parts *p) {
    drop_tensor(p, "log");
}
static void no_weight(parts *p) {
    drop_tensor(p, "critic/1/w");
}
static void no_moment(parts *p) {
    drop_tensor(p, "adam_m/critic/1/w");
}
static void only_sampler(parts *p) {
    p->count = 1;
}
static void sampler_type(parts *p) {
    find_tensor(p, "sampler")->dtype = DC_ST_F64;
}
static void swap_shape(parts *p) {
    dc_st_tensor *t = find_tensor(p, "critic/0/w"); // (1, in, out)
    int64_t in = t->shape[1];
    t->shape[1] = t->shape[2];
    t->shape[2] = in;
}
static void flat_shape(parts *p) {
    dc_st_tensor *t = find_tensor(p, "critic/0/w");
    t->shape[0] = t->shape[0] * t->shape[1] * t->shape[2];
    t->ndim = 1;
}
static void weight_type(parts *p) {
    find_tensor(p, "critic/0/w")->dtype = DC_ST_I32;
}
static void short_sampler(parts *p) {
    dc_st_tensor *t = find_tensor(p, "sampler");
    t->shape[0]--;
    t->size -= 8;
}
static void empty_sampler(parts *p) {
    dc_st_tensor *t = find_tensor(p, "sampler");
    t->shape[0] = 0;
    t->size = 0;
}
static void log_count(parts *p) {
    double *log = (double *)(uintptr_t)find_tensor(p, "log")->bytes;
    log[0] = 5; // with a row a step there is never an open sum
}

// Build a whole file from the good one with one thing changed; the caller frees.
static char *rebuild(void (*change)(parts *), size_t *n) {
    static char path[128];
    parts p;
    take_apart(&p, new_bytes, new_size);
    change(&p);
    set_hash(&p);
    snprintf(path, sizeof path, "%s/changed", root);
    put_together(&p, path);
    char *bytes;
    assert_int_equal(dc_file_read(path, 1 << 24, &bytes, n), DC_OK);
    unlink(path);
    return bytes;
}

static void test_changed(void **state) {
    (void)state;
#define CHANGE(name)                                                                               \
    { #name, name }
    static const struct {
        const char *name;
        void (*change)(parts *);
    } changes[] = {
        CHANGE(nan_weight),    CHANGE(inf_target),   CHANGE(inf_moment),    CHANGE(nan_log),
        CHANGE(other_agent),   CHANGE(other_format), CHANGE(older_format),  CHANGE(no_metas),
        CHANGE(step_word),     CHANGE(step_empty),   CHANGE(step_negative), CHANGE(step_past),
        CHANGE(step_other),    CHANGE(step_huge),    CHANGE(no_sampler),    CHANGE(no_log),
        CHANGE(no_weight),     CHANGE(no_moment),    CHANGE(only_sampler),  CHANGE(sampler_type),
        CHANGE(swap_shape),    CHANGE(flat_shape),   CHANGE(weight_type),   CHANGE(short_sampler),
        CHANGE(empty_sampler), CHANGE(log_count),
    };
#undef CHANGE
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        size_t n;
        char *bytes = rebuild(changes[i].change, &n);
        expect_refused(changes[i].name, bytes, n);
        free(bytes);
    }
}

// One letter of the metadata's text changed, and the hash left as it was.
static void test_edited_metadata(void **state) {
    (void)state;
    static const char *const places[] = {"dcrl checkpoint 2", "lock-32",   "gamma", "hidden",
                                         "critic mlp",        "\"step\":", "agent"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t at = 8, n = strlen(places[i]);
        while (at + n < new_size && memcmp(new_bytes + at, places[i], n) != 0)
            at++;
        assert_true(at + n < new_size);
        new_bytes[at + n - 1] ^= 1;
        expect_refused(places[i], new_bytes, new_size);
        new_bytes[at + n - 1] ^= 1;
    }
}

// Every word of the sampler in turn takes values that no honest state has. A slot's word may by
// chance be a state that some other run could have; then training must go on without a crash.
static size_t word_at;
static int64_t word_value;
static void one_word(parts *p) {
    words(p)[word_at] = word_value;
}

static void test_sampler_words(void **state) {
    (void)state;
    static const int64_t values[] = {-1, INT64_MAX, INT64_MIN, 1 << 20, 77};
    enum { HEADER = 9, SOME = 40 };
    for (word_at = 0; word_at < SOME; word_at++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            size_t n;
            word_value = values[v];
            char *bytes = rebuild(one_word, &n);
            if (word_at < HEADER) {
                expect_refused("a word of the sampler's header", bytes, n);
            } else {
                dc_run run;
                put(newest, bytes, n);
                put(older, old_bytes, old_size);
                assert_int_equal(resume(&run), DC_OK);
                small_finish(&run);
                remove_end();
            }
            free(bytes);
        }
}

// A newer file that cannot be read must not count among those that are kept.
static void test_keep(void **state) {
    (void)state;
    put(newest, new_bytes, new_size / 2);
    put(older, old_bytes, old_size);
    dc_run run;
    small_configure(&run, "dcrl", "keep", "1", "save_every", "1", NULL);
    assert_int_equal(dc_run_resume(&run, &small_data, folder), DC_OK);
    assert_int_equal(run.step, OLD_STEP);
    run.saved_step = -1;
    assert_int_equal(dc_run_save(&run), DC_OK); // the same step again
    assert_true(access(older, F_OK) == 0);
    to_the_end(&run);
}

// Names of our own pattern go, all others stay.
static void test_leftovers(void **state) {
    (void)state;
    static const char *const ours[] = {"step-0000000008.safetensors.tmp.123.0",
                                       "train.csv.tmp.1.22", "config.json.tmp.99999.4",
                                       "DONE.tmp.5.6"};
    static const char *const others[] = {"notes.tmp.1.2",         "train.csv.tmp",
                                         "train.csv.tmp.1",       "train.csv.tmp.x.1",
                                         "train.csv.tmp.1.2.bak", "step-8.safetensors.tmp.1.2"};
    char path[DC_PATH_MAX];
    put(newest, new_bytes, new_size);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (dc_folder_path(path, folder, ours[i]) == DC_OK) put(path, "x", 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (dc_folder_path(path, folder, others[i]) == DC_OK) put(path, "x", 1);
    dc_run run;
    assert_int_equal(resume(&run), DC_OK);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        assert_int_equal(dc_folder_path(path, folder, ours[i]), DC_OK);
        assert_false(access(path, F_OK) == 0);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(dc_folder_path(path, folder, others[i]), DC_OK);
        assert_true(access(path, F_OK) == 0);
        unlink(path);
    }
    to_the_end(&run);
}

// What eval and map write meanwhile stays while they live: process 1 does, the other number is too large for any.
static void test_leftovers_of_others(void **state) {
    (void)state;
    static const char *const names[] = {
        "eval.csv.tmp.1.0",         "map-task1.svg.tmp.1.7",         "lock.svg.tmp.1.2",
        "eval.csv.tmp.999999999.0", "map-task1.svg.tmp.999999999.7", "lock.svg.tmp.999999999.2"};
    char path[DC_PATH_MAX];
    for (int i = 0; i < 6; i++)
        if (dc_folder_path(path, folder, names[i]) == DC_OK) put(path, "x", 1);
    dc_folder_sweep(folder);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(dc_folder_path(path, folder, names[i]), DC_OK);
        assert_int_equal(access(path, F_OK) == 0, i < 3);
        unlink(path);
    }
}

// A state with NaN in it is not written, and the error names the tensor.
static void test_nan_is_not_saved(void **state) {
    (void)state;
    put(newest, new_bytes, new_size);
    dc_run run;
    assert_int_equal(resume(&run), DC_OK);
    const dc_slabs *slabs = &run.agent.params.slabs;
    float *places[] = {slabs->live, slabs->ema, slabs->m, slabs->v};
    static const char *const names[] = {"critic/", "target_critic/", "adam_m/critic/",
                                        "adam_v/critic/"};
    for (int i = 0; i < 4; i++) {
        float keep = places[i][2];
        places[i][2] = i % 2 ? NAN : INFINITY;
        run.saved_step = OLD_STEP;
        assert_int_equal(dc_run_save(&run), DC_NOT_FINITE);
        assert_non_null(strstr(dc_error(), names[i]));
        assert_non_null(strstr(dc_error(), "step-0000000007.safetensors is intact"));
        places[i][2] = keep;
    }
    to_the_end(&run);
}

static int set_up(void **state) {
    (void)state;
    dc_file_system.fsync = no_sync;
    dc_log_set(count_warning, NULL);
    if (!mkdtemp(root)) return -1;
    snprintf(folder, sizeof folder, "%s/run", root);
    snprintf(newest, sizeof newest, "%s/step-%010d.safetensors", folder, NEW_STEP);
    snprintf(older, sizeof older, "%s/step-%010d.safetensors", folder, OLD_STEP);
    small_data_init();
    dc_run run;
    small_configure(&run, "dcrl", "keep", "2", NULL);
    assert_int_equal(dc_run_start(&run, &small_data, folder), DC_OK);
    small_steps(&run, NEW_STEP);
    assert_int_equal(dc_file_read(newest, 1 << 24, &new_bytes, &new_size), DC_OK);
    assert_int_equal(dc_file_read(older, 1 << 24, &old_bytes, &old_size), DC_OK);
    small_finish(&run);
    want = small_read(folder);
    char path[DC_PATH_MAX];
    assert_int_equal(dc_folder_path(path, folder, "step-0000000012.safetensors"), DC_OK);
    return unlink(path);
}

static int tear_down(void **state) {
    (void)state;
    free(new_bytes);
    free(old_bytes);
    small_free(&want);
    dc_dataset_fini(&small_data);
    small_remove(folder);
    return rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_edited_metadata),
        cmocka_unit_test(test_sampler_words),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_leftovers_of_others),
        cmocka_unit_test(test_nan_is_not_saved),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
