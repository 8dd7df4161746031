// Tests of data/dataset: the layout that is accepted, the message for each that is not, clipping,
// columns of bytes, the builder for environments, what the hash does and does not depend on, and
// the mean and deviation of a column.
#include "base/philox.h"
#include "base/pool.h"
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
    const char *obs_name, *act_name, *end_name, *cut_name, *other_name;
    float obs[ROWS][2][2], act[ROWS][3], end[ROWS], cut[ROWS];
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
            s.act[i][k] = (float)(k - 1) * (float)i / 8.992f; // up to 1.0009
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
    put(w, s->cut_name, DC_F4, ROWS, 0, 0, s->cut);
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

// Actions with units of their own stay as they are, and their bounds are known; noise above 1 is cut.
static void test_bounds(void **state) {
    (void)state;
    for (int large = 0; large <= 1; large++) {
        sample s = plain();
        dc_dataset data;
        if (large) s.act[4][1] = 3;
        save(&s);
        assert_int_equal(dc_dataset_load(&data, path), DC_OK);
        const float *act = dc_dataset_column(&data, "act")->values;
        assert_true(data.actions.low == s.act[9][0] && s.act[9][0] < -1.0005f);
        assert_true(data.actions.high == (large ? 3 : s.act[9][2]));
        assert_true(dc_layout_in_range(data.actions) == !large);
        for (int i = 0; i < ROWS * 3; i++)
            assert_true(!large || act[i] == (&s.act[0][0])[i]);
        assert_true(large || act[29] == 0.99999f);
        dc_dataset_fini(&data);
    }
}

// Flags of timeouts end trajectories, and so does the end of a file that has some.
static void test_timeouts(void **state) {
    (void)state;
    sample s = plain();
    dc_dataset data;
    memset(s.end, 0, sizeof s.end);
    s.cut_name = "timeouts";
    s.end[1] = s.cut[3] = s.cut[6] = 1;
    save(&s);
    assert_int_equal(dc_dataset_load(&data, path), DC_OK);
    const int64_t start[] = {0, 2, 4, 7, ROWS};
    assert_int_equal(data.traj_count, 4);
    assert_memory_equal(data.traj_start, start, sizeof start);
    assert_null(dc_dataset_column(&data, "timeouts"));
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
    REFUSE(s.end[9] = 0, "'terminals' is 0 at row 9");
    REFUSE(memset(s.end, 0, sizeof s.end), "no trajectory ends: 'terminals' is 0 at every row");
    REFUSE((s.cut_name = "timeouts", memset(s.end, 0, sizeof s.end)),
           "'terminals' and 'timeouts' are 0 at every row");
    REFUSE((s.cut_name = "timeouts", s.cut[2] = 2), "'timeouts' holds 2 at row 2");
    REFUSE((s.cut_name = "timeouts", s.end[9] = 0, s.cut[8] = 1), "row 9");
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

// ---- bytes ----

enum { H = 5, W = 3, C = 2, PIXELS = H * W * C };

static uint8_t pictures[ROWS][H][W][C], keys[ROWS];
static float ends[ROWS];

// Pictures, keys as other bytes, and actions of type `type`.
static void save_pictures(int level, dc_dtype type, const void *act) {
    dc_npz_writer *w;
    for (int i = 0; i < ROWS * PIXELS; i++)
        (&pictures[0][0][0][0])[i] = (uint8_t)(7 * i + i / 256);
    for (int i = 0; i < ROWS; i++)
        keys[i] = (uint8_t)(255 - i);
    ends[ROWS - 1] = 1;
    assert_int_equal(dc_npz_writer_new(&w, path, level), DC_OK);
    assert_int_equal(
        dc_npz_writer_put(w, "observations", DC_U1, 4, (int64_t[]){ROWS, H, W, C}, pictures),
        DC_OK);
    put(w, "actions", type, ROWS, 0, 0, act);
    put(w, "terminals", DC_F4, ROWS, 0, 0, ends);
    put(w, "keys", DC_U1, ROWS, 0, 0, keys);
    assert_int_equal(dc_npz_writer_save(w), DC_OK);
    dc_npz_writer_free(w);
}

static void check_pictures(const dc_dataset *data) {
    const dc_column *obs = dc_dataset_column(data, "obs");
    const int64_t shape[] = {H, W, C};
    assert_int_equal(obs->type, DC_TYPE_U8);
    assert_null(obs->values);
    assert_memory_equal(obs->bytes, pictures, sizeof pictures);
    assert_int_equal(obs->width, PIXELS);
    assert_int_equal(obs->ndim, 3);
    assert_memory_equal(obs->shape, shape, sizeof shape);
    assert_int_equal(dc_column_row_size(obs), PIXELS);
    assert_ptr_equal(dc_column_at(obs, 2, 3), obs->bytes + 2 * PIXELS + 3);
    float row[PIXELS];
    dc_column_floats(obs, 9, 4, PIXELS - 4, row);
    for (int i = 4; i < PIXELS; i++) {
        assert_true(row[i - 4] == (float)(&pictures[9][0][0][0])[i]);
        assert_true(dc_column_value(obs, 9, i) == row[i - 4]);
    }
}

// Arrays of uint8 stay bytes; actions of uint8 are whole numbers like any others.
static void test_bytes(void **state) {
    (void)state;
    uint8_t act[ROWS] = {0, 5, 3, 255};
    for (int level = 0; level <= 1; level++) {
        dc_dataset data;
        save_pictures(level, DC_U1, act);
        assert_int_equal(dc_dataset_load(&data, path), DC_OK);
        check_pictures(&data);
        const dc_column *other = dc_dataset_column(&data, "keys"),
                        *actions = dc_dataset_column(&data, "act");
        assert_int_equal(other->type, DC_TYPE_U8);
        assert_int_equal(other->ndim, 0);
        assert_memory_equal(other->bytes, keys, sizeof keys);
        assert_int_equal(actions->type, DC_TYPE_F32);
        assert_true(actions->whole && actions->values[3] == 255);
        assert_ptr_equal(dc_column_at(actions, 3, 0), actions->values + 3);
        dc_dataset_fini(&data);
    }
}

// The hash tells bytes from floats of the same values; made in memory, bytes equal those of a file.
static void test_make_bytes(void **state) {
    (void)state;
    static float act[ROWS], *values;
    dc_dataset file, data;
    int64_t *start;
    uint8_t *bytes;
    save_pictures(1, DC_F4, act);
    assert_int_equal(dc_dataset_load(&file, path), DC_OK);
    for (int as_floats = 0; as_floats <= 1; as_floats++) {
        assert_int_equal(dc_dataset_make(&data, ROWS, 1, &start), DC_OK);
        assert_int_equal(dc_dataset_add(&data, "act", 1, &values), DC_OK);
        assert_int_equal(dc_dataset_add_bytes(&data, "obs", 3, (int64_t[]){H, W, C}, &bytes),
                         DC_OK);
        memcpy(bytes, pictures, sizeof pictures);
        if (as_floats) {
            assert_int_equal(dc_dataset_add(&data, "keys", 1, &values), DC_OK);
            for (int i = 0; i < ROWS; i++)
                values[i] = (float)keys[i];
        } else {
            assert_int_equal(dc_dataset_add_bytes(&data, "keys", 0, NULL, &bytes), DC_OK);
            memcpy(bytes, keys, sizeof keys);
        }
        start[1] = ROWS;
        assert_int_equal(dc_dataset_seal(&data), DC_OK);
        check_pictures(&data);
        assert_true((data.hash == file.hash) == !as_floats);
        bytes = (uint8_t *)dc_dataset_column(&data, "obs")->bytes;
        bytes[sizeof pictures - 1] ^= 1;
        assert_true(data.hash != dc_dataset_hash(&data));
        dc_dataset_fini(&data);
    }
    dc_dataset_fini(&file);
}

static void test_impossible_bytes(void **state) {
    (void)state;
    dc_dataset data;
    int64_t *start;
    uint8_t *bytes;
    assert_int_equal(dc_dataset_make(&data, ROWS, 1, &start), DC_OK);
    assert_int_equal(dc_dataset_add_bytes(&data, "a", 2, (int64_t[]){3, 0}, &bytes), DC_BAD_INPUT);
    assert_int_equal(dc_dataset_add_bytes(&data, "a", 1, (int64_t[]){-3}, &bytes), DC_BAD_INPUT);
    assert_int_equal(dc_dataset_add_bytes(&data, "a", 2, (int64_t[]){5000, 5000}, &bytes),
                     DC_BAD_INPUT);
    assert_int_equal(dc_dataset_add_bytes(&data, "a", 2, (int64_t[]){INT64_MAX, INT64_MAX}, &bytes),
                     DC_BAD_INPUT);
    assert_int_equal(data.column_count, 0);
    dc_dataset_fini(&data);
}

// ---- moments ----

enum { LONG = 300000, WIDTH = 6 }; // more than one wave of blocks

// Columns of different kinds: around 0, far from 0, large steps, constant, one single other value.
static float number(int64_t row, int column) {
    dc_u32x4 words = dc_philox(5, 1, (uint64_t)row, (uint32_t)column);
    float x = (float)words.v[0] * 0x1p-32f - 0.5f;
    switch (column) {
    case 0:
        return x;
    case 1:
        return 1000.0f + x;
    case 2:
        return x * 1e30f;
    case 3:
        return 0.1f;
    case 4:
        return row == LONG - 1 ? 1.0f : 0.0f;
    default:
        return (float)row;
    }
}

static void make_long(dc_dataset *data, float **values) {
    int64_t *start;
    assert_int_equal(dc_dataset_make(data, LONG, 1, &start), DC_OK);
    assert_int_equal(dc_dataset_add(data, "obs", WIDTH, values), DC_OK);
    start[1] = LONG;
    for (int64_t r = 0; r < LONG; r++)
        for (int c = 0; c < WIDTH; c++)
            (*values)[r * WIDTH + c] = number(r, c);
}

static void near(double got, long double want, double most) {
    if (fabsl((long double)got - want) > most * (1 + fabsl(want)))
        fail_msg("%.17g is not %.17Lg", got, want);
}

static void test_moments(void **state) {
    (void)state;
    dc_dataset data;
    float *values;
    double mean[WIDTH], deviation[WIDTH];
    make_long(&data, &values);
    assert_int_equal(dc_dataset_moments(&data, "obs", NULL, mean, deviation), DC_OK);
    for (int c = 0; c < WIDTH; c++) {
        long double sum = 0, square = 0;
        for (int64_t r = 0; r < LONG; r++)
            sum += values[r * WIDTH + c];
        sum /= LONG;
        for (int64_t r = 0; r < LONG; r++)
            square += (values[r * WIDTH + c] - sum) * (values[r * WIDTH + c] - sum);
        near(mean[c], sum, 1e-12);
        near(deviation[c], c == 3 ? 1 : sqrtl(square / LONG), 1e-12);
    }
    assert_true(mean[3] == (double)0.1f && deviation[3] == 1);
    for (int threads = 1; threads <= 5; threads++) {
        double again[WIDTH], spread[WIDTH];
        dc_pool *pool;
        assert_int_equal(dc_pool_new(&pool, threads), DC_OK);
        assert_int_equal(dc_dataset_moments(&data, "obs", pool, again, spread), DC_OK);
        assert_memory_equal(again, mean, sizeof mean);
        assert_memory_equal(spread, deviation, sizeof deviation);
        dc_pool_free(pool);
    }
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        values[(int64_t)i * LONG / 2 * WIDTH - (i == 2) * WIDTH + 4] =
            wrong[i]; // first to last row
        assert_int_equal(dc_dataset_moments(&data, "obs", NULL, mean, deviation), DC_BAD_INPUT);
        assert_non_null(strstr(dc_error(), "value 4 of 'obs'"));
        values[(int64_t)i * LONG / 2 * WIDTH - (i == 2) * WIDTH + 4] = 0;
    }
    assert_int_equal(dc_dataset_moments(&data, "act", NULL, mean, deviation), DC_BAD_INPUT);
    dc_dataset_fini(&data);
}

// The widest deviation beside that of the narrower values; what does not vary does not count.
static void test_variation(void **state) {
    (void)state;
    sample s = plain();
    dc_dataset data;
    dc_variation v;
    for (int wide = 0; wide <= 1; wide++) {
        for (int i = 0; i < ROWS; i++) {
            s.obs[i][0][0] = (float)(i % 2);
            s.obs[i][0][1] = 1e6f;
            s.obs[i][1][0] = (float)(i % 2) * (wide ? 500 : 50);
            s.obs[i][1][1] = 0;
        }
        save(&s);
        assert_int_equal(dc_dataset_load(&data, path), DC_OK);
        assert_int_equal(dc_dataset_variation(&data, &v), DC_OK);
        assert_int_equal(v.wide, 2);
        assert_int_equal(v.narrow, 0);
        assert_true(fabs(v.least - 0.5) < 1e-12 && fabs(v.most - (wide ? 250 : 25)) < 1e-9);
        assert_true(dc_variation_uneven(&v) == wide);
        // Of a store, whose values nobody has checked:
        ((float *)dc_dataset_column(&data, "obs")->values)[3] = NAN;
        assert_int_equal(dc_dataset_variation(&data, &v), DC_OK);
        assert_int_equal(v.wide, 2);
        dc_dataset_fini(&data);
    }
}

// Bytes are scaled to 0 to 1, whatever is in them.
static void test_moments_of_bytes(void **state) {
    (void)state;
    dc_dataset data;
    double mean[PIXELS], deviation[PIXELS];
    save_pictures(0, DC_F4, ends);
    assert_int_equal(dc_dataset_load(&data, path), DC_OK);
    assert_int_equal(dc_dataset_moments(&data, "obs", NULL, mean, deviation), DC_OK);
    for (int i = 0; i < PIXELS; i++)
        assert_true(mean[i] == 0 && deviation[i] == 255);
    dc_dataset_fini(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hash),       cmocka_unit_test(test_discrete_actions),
        cmocka_unit_test(test_make),       cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_make_bytes), cmocka_unit_test(test_impossible_bytes),
        cmocka_unit_test(test_moments),    cmocka_unit_test(test_moments_of_bytes),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_variation),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
