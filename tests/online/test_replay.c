// The ring of steps, and rows that are drawn while it fills.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "online/replay.h"
#include "sample/sampler.h"

#include <string.h>

enum { ROOM = 40, BATCH = 64 };

static dc_replay replay;

// Rows whose every number says which they are.
static void add(int64_t first, int64_t count) {
    float *rows = test_calloc((size_t)(count * replay.width), sizeof *rows);
    for (int64_t k = 0; k < count * replay.width; k++)
        rows[k] = (float)(first + k / replay.width);
    dc_replay_add(&replay, rows, count);
    test_free(rows);
}

static int setup(void **state) {
    const dc_plane *plane;
    (void)state;
    return dc_plane_find(&plane, "ant") != DC_OK || dc_replay_init(&replay, plane, ROOM) != DC_OK;
}

static int teardown(void **state) {
    (void)state;
    dc_replay_fini(&replay);
    return 0;
}

static void test_ring(void **state) {
    (void)state;
    add(0, 30);
    assert_int_equal(replay.filled, 30);
    add(30, 25);
    assert_int_equal(replay.added, 55);
    assert_int_equal(replay.filled, ROOM);
    for (int c = 0; c < DC_REPLAY_COLUMNS; c++)
        for (int64_t r = 0; r < ROOM; r++) {
            float want = (float)(r < 15 ? r + ROOM : r);
            const float *row = replay.values[c] + r * replay.widths[c];
            for (int k = 0; k < replay.widths[c]; k++)
                assert_true(row[k] >= want && row[k] <= want);
        }
}

static void test_unpack(void **state) {
    (void)state;
    float row[256];
    assert_in_range(replay.width, 1, 256);
    dc_packed p = dc_replay_unpack(&replay, row);
    assert_ptr_equal(p.obs, row);
    assert_ptr_equal(p.act, row + 29);
    assert_ptr_equal(p.mask, row + replay.width - 1);
}

// States and commands come from the rows that are there, each as often as any other.
static void test_draws(void **state) {
    (void)state;
    dc_row_table rows = {.seed = 5, .batch = BATCH};
    dc_goal_mix mix = {.current = 0.5, .random = 0.5};
    dc_rows_add(&rows, DC_START("state", DC_STREAM_STATE, ""));
    dc_rows_add(&rows, DC_GOAL("command", "state", DC_STREAM_GOAL, mix, 0, ""));
    dc_sampler *sampler;
    assert_int_equal(dc_sampler_new(&sampler, &replay.data, &rows), DC_OK);
    uint64_t step = 0;
    for (int64_t filled = 10; filled <= ROOM; filled += 15) {
        int64_t seen[2][ROOM + 1] = {{0}}, own = 0, draws = 400 * BATCH;
        replay.filled = filled;
        for (int64_t d = 0; d < draws; d += BATCH) {
            assert_int_equal(dc_sampler_next(sampler, step++), DC_OK);
            for (int b = 0; b < BATCH; b++) {
                int64_t s = dc_sampler_drawn(sampler, 0)[b], g = dc_sampler_drawn(sampler, 1)[b];
                assert_in_range(s, 0, filled - 1);
                assert_in_range(g, 0, filled - 1);
                seen[0][s]++;
                seen[1][g]++;
                own += s == g;
            }
        }
        double each = (double)draws / (double)filled, half = 0.5 + 0.5 / (double)filled;
        for (int64_t r = 0; r < filled; r++)
            for (int k = 0; k < 2; k++)
                assert_true((double)seen[k][r] > 0.8 * each && (double)seen[k][r] < 1.2 * each);
        assert_true((double)own > (half - 0.02) * (double)draws);
        assert_true((double)own < (half + 0.02) * (double)draws);
    }
    dc_sampler_free(sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unpack, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draws, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
