// Random crops: what one is, number by number; their distribution; and that a batch's rows are cropped alike.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "sample/crop.h"
#include "train/run.h"

enum { H = 6, W = 5, C = 2, CELLS = H * W * C, ROWS = 80, BATCH = 16, PAD = 3, STEPS = 400 };
static const dc_crop crop = {.rate = 0.5f, .pad = PAD, .height = H, .width = W, .channels = C};

static int within(int at, int count) {
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

static void test_edges(void **state) {
    (void)state;
    for (int down = -PAD; down <= PAD; down++)
        for (int right = -PAD; right <= PAD; right++)
            for (int to = 0; to < CELLS; to++) {
                int y = within(to / C / W + down, H), x = within(to / C % W + right, W);
                dc_offset at = {down, right};
                assert_int_equal(dc_crop_from(&crop, at, to), (y * W + x) * C + to % C);
            }
}

// All offsets are equally likely, in as many batches as the rate says, whole ones.
static void test_distribution(void **state) {
    (void)state;
    enum { SIDE = 2 * PAD + 1 };
    int count[SIDE * SIDE] = {0}, cropped = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        int moved = 0;
        dc_offset at[BATCH];
        for (uint32_t r = 0; r < BATCH; r++) {
            at[r] = dc_crop_draw(&crop, 7, step, r);
            assert_true(abs(at[r].down) <= PAD && abs(at[r].right) <= PAD);
            moved += at[r].down || at[r].right;
        }
        cropped += moved > 0;
        for (uint32_t r = 0; moved && r < BATCH; r++)
            count[(at[r].down + PAD) * SIDE + at[r].right + PAD]++;
    }
    assert_true(fabs(cropped - STEPS * 0.5) < 5 * sqrt(STEPS * 0.25));
    double mean = (double)cropped * BATCH / (SIDE * SIDE), chi = 0;
    for (int k = 0; k < SIDE * SIDE; k++)
        chi += (count[k] - mean) * (count[k] - mean) / mean;
    double spread = sqrt(2.0 * (SIDE * SIDE - 1));
    assert_true(fabs(chi - (SIDE * SIDE - 1)) < 6 * spread);
}

// ---- what networks see ----

static void make_data(dc_dataset *data) {
    int64_t *starts;
    uint8_t *obs;
    float *act;
    *data = (dc_dataset){0};
    assert_int_equal(dc_dataset_make(data, ROWS, 1, &starts), DC_OK);
    starts[0] = 0;
    starts[1] = ROWS;
    assert_int_equal(dc_dataset_add_bytes(data, "obs", 3, (int64_t[]){H, W, C}, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(data, "act", 1, &act), DC_OK);
    for (uint32_t i = 0; i < ROWS * CELLS; i++)
        obs[i] = (uint8_t)(dc_philox(3, 78, 0, i).v[0] >> 24);
    assert_int_equal(dc_dataset_seal(data), DC_OK);
}

static void start(dc_run *run, const dc_dataset *data, const char *rate) {
    const char *const set[][2] = {{"hidden", "4"},      {"batch", "16"}, {"threads", "2"},
                                  {"picture", "6,5,2"}, {"crop", rate},  {"crop_pad", "3"}};
    assert_int_equal(dc_run_configure(run, "bc"), DC_OK);
    for (size_t s = 0; s < sizeof set / sizeof set[0]; s++)
        assert_int_equal(dc_run_set(run, set[s][0], set[s][1]), DC_OK);
    assert_int_equal(dc_run_start(run, data, NULL), DC_OK);
}

// The input [state | goal] of bc's actor: pictures moved alike and scaled.
static void check_batch(const dc_run *run, const dc_dataset *data, uint64_t step) {
    const dc_agent *a = &run->agent;
    const dc_column *obs = dc_dataset_column(data, "obs");
    const dc_feed *feed = &a->feeds.feeds[0];
    dc_tensor x = dc_value(&a->exec, feed->input);
    assert_int_equal(x.cols, 2 * CELLS);
    for (int r = 0; r < BATCH; r++) {
        dc_offset at = dc_crop_draw(&a->feeds.crop, (uint64_t)run->options.seed, step, (uint32_t)r);
        for (int part = 0; part < 2; part++) {
            int64_t row = dc_sampler_drawn(a->sampler, a->feeds.feeds[part].rule)[r];
            for (int c = 0; c < CELLS; c++) {
                float want = (float)obs->bytes[row * CELLS + dc_crop_from(&crop, at, c)] *
                             (float)(1 / 255.0);
                assert_true((float)x.p[(int64_t)r * x.cols + part * CELLS + c] == want);
            }
        }
    }
}

static void test_batches(void **state) {
    (void)state;
    dc_dataset data;
    dc_run run = DC_RUN_NONE;
    make_data(&data);
    start(&run, &data, "1");
    for (uint64_t step = 0; step < 3; step++) {
        assert_int_equal(dc_agent_gradients(&run.agent, step), DC_OK);
        check_batch(&run, &data, step);
    }
    dc_run_fini(&run);
    dc_dataset_fini(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
