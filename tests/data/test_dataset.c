// Tests of data/dataset: the layout that is accepted, the message for each that is not, clipping,
// the builder for environments, and what the hash does and does not depend on.
#include "data/dataset.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 10 };

static char folder[] = "/tmp/dcrl-data-XXXXXX", path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.npz", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

// What goes into a file; tests change what they are about.
typedef struct sample {
    const char *obs_name, *act_name, *end_name, *other_name;
    float obs[ROWS][2][2], act[ROWS][3], end[ROWS];
    int64_t other[ROWS];
    int64_t act_rows, end_width;
    int level;
    bool other_first;
} sample;

static sample plain(void) {
    sample s = {.obs_name = "observations", .act_name = "actions", .end_name = "terminals"};
    s.other_name = "button_states";
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 4; k++)
            s.obs[i][k / 2][k % 2] = (float)(10 * i + k);
        for (int k = 0; k < 3; k++)
            s.act[i][k] = (float)(k - 1) * (float)i / 4;
        s.other[i] = i * i;
    }
    s.end[3] = s.end[ROWS - 1] = 1;
    s.act_rows = ROWS;
    s.end_width = 1;
    return s;
}

static void put(dc_npz_writer *w, const char *name, dc_dtype type, int64_t a, int64_t b, int64_t c,
                const void *values) {
    int64_t shape[] = {a, b, c};
    if (name)
        assert_int_equal(dc_npz_writer_put(w, name, type, c ? 3 : b ? 2 : 1, shape, values), DC_OK);
}

static void save(const sample *s) {
    dc_npz_writer *w;
    assert_int_equal(dc_npz_writer_new(&w, path, s->level), DC_OK);
    if (s->other_first) put(w, s->other_name, DC_I8, ROWS, 0, 0, s->other);
    put(w, s->obs_name, DC_F4, ROWS, 2, 2, s->obs);
    put(w, s->act_name, DC_F4, s->act_rows, 3, 0, s->act);
    put(w, s->end_name, DC_F4, ROWS / s->end_width, s->end_width, 0, s->end);
    if (!s->other_first) put(w, s->other_name, DC_I8, ROWS, 0, 0, s->other);
    put(w, "seed", DC_U4, 1, 0, 0, &(uint32_t){7}); // fewer rows: not a column
    assert_int_equal(dc_npz_writer_save(w), DC_OK);
    dc_npz_writer_free(w);
}

static void test_load(void **state) {
    (void)state;
    sample s = plain();
    save(&s);
    dc_dataset data;
    assert_int_equal(dc_dataset_load(&data, path), DC_OK);
    assert_int_equal(data.rows, ROWS);
    assert_int_equal(data.traj_count, 2);
    assert_int_equal(data.traj_start[0], 0);
    assert_int_equal(data.traj_start[1], 4);
    assert_int_equal(data.traj_start[2], ROWS);
    assert_int_equal(data.column_count, 3);
    const dc_column *obs = dc_dataset_column(&data, "obs"), *act = dc_dataset_column(&data, "act");
    const dc_column *other = dc_dataset_column(&data, "button_states");
    assert_int_equal(obs->width, 4);
    assert_memory_equal(obs->values, s.obs, sizeof s.obs);
    assert_int_equal(act->width, 3);
    for (int i = 0; i < ROWS * 3; i++)
        assert_true(act->values[i] == fmaxf(-0.99999f, fminf(0.99999f, (&s.act[0][0])[i])));
    assert_int_equal(other->width, 1);
    assert_true(other->values[9] == 81);
    assert_null(dc_dataset_column(&data, "seed"));
    assert_null(dc_dataset_column(&data, "terminals"));
    dc_dataset_fini(&data);
    dc_dataset_fini(&data);
}

static void expect(const sample *s, const char *message) {
    save(s);
    dc_dataset data;
    dc_status status = dc_dataset_load(&data, path);
    if (status != DC_BAD_INPUT || !strstr(dc_error(), message) || !strstr(dc_error(), path))
        fail_msg("wanted '%s', got %d '%s'", message, (int)status, dc_error());
    dc_dataset_fini(&data);
}

static void test_refused(void **state) {
    (void)state;
    sample s;
#define REFUSE(edit, message) (s = plain(), (edit), expect(&s, message))
    REFUSE(s.obs_name = NULL, "no array 'observations'");
    REFUSE(s.act_name = NULL, "no array 'actions'");
    REFUSE(s.end_name = "timeouts", "no array 'terminals'");
    REFUSE(s.act_rows = 9, "'observations' has 10 rows but 'actions' has 9");
    REFUSE(s.act_rows = 0, "'actions' has no rows");
    REFUSE(s.end_width = 5, "'terminals' has 2");
    REFUSE(s.obs[6][1][0] = NAN, "'observations' at row 6");
    REFUSE(s.act[7][2] = -INFINITY, "'actions' at row 7");
    REFUSE(s.end[9] = 0, "0 at row 9");
    REFUSE(s.end[5] = 0.5f, "0.5 at row 5");
    REFUSE(s.end[4] = 1, "row 4");
    REFUSE(s.other_name = "obs", "two columns of one name");
}

static uint64_t hash_of(const sample *s) {
    save(s);
    dc_dataset data;
    assert_int_equal(dc_dataset_load(&data, path), DC_OK);
    uint64_t hash = data.hash;
    assert_true(hash == dc_dataset_hash(&data));
    dc_dataset_fini(&data);
    return hash;
}

static void test_hash(void **state) {
    (void)state;
    sample s = plain();
    uint64_t hash = hash_of(&s);
#define SAME(edit)  (s = plain(), (edit), assert_true(hash_of(&s) == hash))
#define OTHER(edit) (s = plain(), (edit), assert_true(hash_of(&s) != hash))
    SAME(s.level = 1);
    SAME(s.other_first = true);
    OTHER(s.obs[0][0][0] = 0.5f);
    OTHER(s.obs[9][1][1] = 0.5f);
    OTHER(s.act[9][1] = 0.25f);
    OTHER(s.end[5] = 1);
    OTHER(s.other[0] = 1);
    OTHER(s.other_name = "button_statez");
    OTHER(s.other_name = NULL);
}

// Whole numbers are discrete actions: not clipped.
static void test_discrete_actions(void **state) {
    (void)state;
    dc_npz_writer *w;
    dc_dataset data;
    int32_t act[] = {0, 5, 3, 9};
    float obs[4] = {0}, end[] = {0, 0, 0, 1};
    assert_int_equal(dc_npz_writer_new(&w, path, 0), DC_OK);
    put(w, "observations", DC_F4, 4, 0, 0, obs);
    put(w, "actions", DC_I4, 4, 0, 0, act);
    put(w, "terminals", DC_F4, 4, 1, 0, end);
    assert_int_equal(dc_npz_writer_save(w), DC_OK);
    dc_npz_writer_free(w);
    assert_int_equal(dc_dataset_load(&data, path), DC_OK);
    const float *values = dc_dataset_column(&data, "act")->values;
    for (int i = 0; i < 4; i++)
        assert_true(values[i] == (float)act[i]);
    dc_dataset_fini(&data);
}

// A data set made in memory equals the same one loaded from a file.
static void test_make(void **state) {
    (void)state;
    sample s = plain();
    dc_dataset data;
    int64_t *start;
    float *obs, *act, *other;
    assert_int_equal(dc_dataset_make(&data, ROWS, 2, &start), DC_OK);
    assert_int_equal(dc_dataset_add(&data, "button_states", 1, &other), DC_OK);
    assert_int_equal(dc_dataset_add(&data, "act", 3, &act), DC_OK);
    assert_int_equal(dc_dataset_add(&data, "obs", 4, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(&data, "obs", 4, &obs), DC_BAD_INPUT);
    assert_int_equal(dc_dataset_add(&data, "none", 0, &other), DC_BAD_INPUT);
    obs = (float *)dc_dataset_column(&data, "obs")->values;
    other = (float *)dc_dataset_column(&data, "button_states")->values;
    memcpy(obs, s.obs, sizeof s.obs);
    for (int i = 0; i < ROWS * 3; i++)
        act[i] = fmaxf(-0.99999f, fminf(0.99999f, (&s.act[0][0])[i]));
    for (int i = 0; i < ROWS; i++)
        other[i] = (float)s.other[i];
    start[1] = 4;
    start[2] = ROWS;
    assert_int_equal(dc_dataset_seal(&data), DC_OK);
    assert_true(data.hash == hash_of(&s));
    start[1] = ROWS - 1;
    assert_int_equal(dc_dataset_seal(&data), DC_BAD_INPUT);
    dc_dataset_fini(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hash), cmocka_unit_test(test_discrete_actions),
        cmocka_unit_test(test_make),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
