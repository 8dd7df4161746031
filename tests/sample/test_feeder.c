// The feeder against samplers that are asked step by step: every number of every feed, from any first
// step, for several members, with the disk asked ahead or not; and the states that it gives back.
#include "base/philox.h"
#include "row_spec.h"
#include "sample/feeder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    MEMBERS = 3,
    BATCH = 45,
    ROWS = 3000,
    TRAJ = 60,
    OBS = 7,
    ACT = 2,
    TAKE = 3,
    KINDS = 11,
    VIAS = 3
};

static dc_dataset data[MEMBERS]; // the last two are the same

static void make_data(dc_dataset *d, uint64_t seed) {
    int64_t *start;
    float *obs, *act;
    assert_int_equal(dc_dataset_make(d, ROWS, ROWS / TRAJ, &start), DC_OK);
    for (int64_t t = 0; t <= ROWS / TRAJ; t++)
        start[t] = t * TRAJ;
    assert_int_equal(dc_dataset_add(d, "obs", OBS, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(d, "act", ACT, &act), DC_OK);
    for (int i = 0; i < ROWS * OBS; i++)
        obs[i] = dc_unit(dc_philox(seed, 1, 0, (uint32_t)i).v[0]);
    for (int i = 0; i < ROWS * ACT; i++)
        act[i] = (float)(i % 5);
    assert_int_equal(dc_dataset_seal(d), DC_OK);
}

static int set_up(void **state) {
    (void)state;
    make_data(&data[0], 11);
    make_data(&data[1], 12);
    data[2] = data[1];
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dc_dataset_fini(&data[0]);
    dc_dataset_fini(&data[1]);
    return 0;
}

static row_spec spec_of(row_segments segments, dc_split split, uint64_t seed) {
    return (row_spec){.seed = seed,
                      .batch = BATCH,
                      .segments = segments,
                      .split = split,
                      .slots = 6,
                      .gamma = 0.9,
                      .propagation = true,
                      .n = 4,
                      .goal_current = 0.2,
                      .goal_future = 0.5,
                      .goal_random = 0.3,
                      .actor = true,
                      .actor_random = 0.5,
                      .grounding = true,
                      .vias = VIAS};
}

// One feed of every kind, two that take the same rows, and two of a rule with several rows for each of the batch.
static void list_feeds(dc_feeds *f, const dc_dataset *d, const dc_sampler *sampler, bool mapped) {
    dc_column *obs = (dc_column *)(uintptr_t)dc_dataset_column(d, "obs");
    obs->mapped = mapped; // asks the system for pages that are there: no number changes
    const dc_column *act = dc_dataset_column(d, "act");
    const dc_feed feeds[KINDS] = {
        {.column = obs, .rule = rule_of(sampler, "segment_start")},
        {.column = obs, .rule = rule_of(sampler, "segment_end"), .skip = 2, .take = TAKE},
        {.column = act, .rule = rule_of(sampler, "state")},
        {.rule = rule_of(sampler, "first_steps")},
        {.column = act, .rule = rule_of(sampler, "actor_state"), .one_hot = 5},
        {.rule = rule_of(sampler, "actor_state"), .one_hot = 4, .repeat = 4},
        {.draw = 1, .take = 2},
        {.column = obs, .rule = rule_of(sampler, "segment_start"), .row0 = 9},
        {.column = obs, .rule = rule_of(sampler, "actor_goal")},
        {.column = obs, .rule = rule_of(sampler, "via"), .times = VIAS},
        {.column = act, .rule = rule_of(sampler, "via"), .times = VIAS, .one_hot = 5},
    };
    *f = (dc_feeds){.batch = BATCH, .feed_count = KINDS};
    memcpy(f->feeds, feeds, sizeof feeds);
    assert_int_equal(dc_feeds_draw(f, "noise", DC_DRAW_NOISE, 2), 1);
}

typedef struct rig {
    dc_feeds feeds[MEMBERS];
    dc_sampler *samplers[MEMBERS], *check[MEMBERS]; // check is asked step by step
    dc_feeder *feeder;
    dc_pool *pool;
    char *chunk;
} rig;

static void advance(dc_sampler *sampler, uint64_t step) {
    while (dc_sampler_step(sampler) < step)
        assert_int_equal(dc_sampler_next(sampler, dc_sampler_step(sampler)), DC_OK);
}

static void open_rig(rig *r, row_segments segments, dc_split split, bool mapped, uint64_t first) {
    dc_feeder_source sources[MEMBERS];
    assert_int_equal(dc_pool_new(&r->pool, 3), DC_OK);
    for (int m = 0; m < MEMBERS; m++) {
        row_spec spec = spec_of(segments, split, 100 + (uint64_t)m);
        assert_int_equal(new_sampler(&r->samplers[m], &data[m], &spec), DC_OK);
        list_feeds(&r->feeds[m], &data[m], r->samplers[m], mapped);
        assert_int_equal(new_sampler(&r->check[m], &data[m], &spec), DC_OK);
        advance(r->samplers[m], first);
        advance(r->check[m], first);
        sources[m] = (dc_feeder_source){r->samplers[m], &r->feeds[m], &data[m]};
    }
    assert_int_equal(dc_feeder_new(&r->feeder, sources, MEMBERS, r->pool), DC_OK);
    r->chunk = malloc(DC_FEEDER_STEPS * dc_feeder_bytes(r->feeder));
    assert_non_null(r->chunk);
}

static void close_rig(rig *r) {
    for (int m = 0; m < MEMBERS; m++) {
        dc_sampler_free(r->samplers[m]);
        dc_sampler_free(r->check[m]);
    }
    dc_feeder_free(r->feeder);
    dc_pool_free(r->pool);
    free(r->chunk);
}

// Numbers of a feed's block of the step that a sampler has just filled.
static void expect_feed(const rig *r, int m, int feed, const char *step) {
    const dc_feed *f = &r->feeds[m].feeds[feed];
    dc_feeder_block b = dc_feeder_find(r->feeder, m, feed);
    bool none = f->draw || (f->one_hot && !f->column);
    assert_int_equal(b.used, !none);
    if (none) return;
    assert_int_equal(b.width, !f->column || f->one_hot ? 1 : f->take ? f->take : f->column->width);
    const int64_t *rows = dc_sampler_drawn(r->check[m], f->rule);
    const float *got = (const float *)(const void *)(step + b.offset);
    for (int row = 0; row < BATCH * (f->times ? f->times : 1); row++)
        for (int c = 0; c < b.width; c++) {
            float want = f->column ? f->column->values[rows[row] * f->column->width + f->skip + c]
                                   : (float)rows[row];
            assert_true(got[row * b.width + c] == want);
        }
}

// Ask for `chunks` chunks; the first may begin in the middle of one.
static void expect_chunks(rig *r, int chunks) {
    for (int c = 0; c < chunks; c++) {
        uint64_t first = dc_feeder_step(r->feeder);
        memset(r->chunk, 0xff, DC_FEEDER_STEPS * dc_feeder_bytes(r->feeder));
        assert_int_equal(dc_feeder_fill(r->feeder, r->chunk), DC_OK);
        uint64_t after = dc_feeder_step(r->feeder);
        assert_int_equal(after, (first / DC_FEEDER_STEPS + 1) * DC_FEEDER_STEPS);
        for (uint64_t step = first; step < after; step++)
            for (int m = 0; m < MEMBERS; m++) {
                assert_int_equal(dc_sampler_next(r->check[m], step), DC_OK);
                for (int feed = 0; feed < KINDS; feed++)
                    expect_feed(r, m, feed,
                                r->chunk + step % DC_FEEDER_STEPS * dc_feeder_bytes(r->feeder));
            }
    }
}

static void expect_same_state(const dc_sampler *a, const dc_sampler *b) {
    int64_t *x, *y;
    size_t n, k;
    assert_int_equal(dc_sampler_save(a, &x, &n), DC_OK);
    assert_int_equal(dc_sampler_save(b, &y, &k), DC_OK);
    assert_int_equal(n, k);
    assert_memory_equal(x, y, n * sizeof *x);
    free(x);
    free(y);
}

static const struct {
    row_segments segments;
    dc_split split;
} laws[] = {
    {SEG_TREE, DC_SPLIT_MIDPOINT}, {SEG_TREE, DC_SPLIT_RANDOM}, {SEG_PAIRS, DC_SPLIT_MIDPOINT}};

static void test_rows(void **state) {
    (void)state;
    static const uint64_t firsts[] = {0, 3, 10, 19};
    for (int law = 0; law < 3; law++)
        for (int k = 0; k < 8; k++) {
            rig r;
            open_rig(&r, laws[law].segments, laws[law].split, k % 2, firsts[k / 2]);
            expect_chunks(&r, 14);
            close_rig(&r);
        }
}

static void test_shared_blocks(void **state) {
    (void)state;
    rig r;
    open_rig(&r, SEG_TREE, DC_SPLIT_MIDPOINT, false, 0);
    assert_int_equal(dc_feeder_find(r.feeder, 1, 0).offset, dc_feeder_find(r.feeder, 1, 7).offset);
    assert_int_not_equal(dc_feeder_find(r.feeder, 1, 0).offset,
                         dc_feeder_find(r.feeder, 1, 8).offset);
    assert_int_equal(dc_feeder_bytes(r.feeder) % 256, 0);
    close_rig(&r);
}

// States of steps far behind what was made ahead, also of those whose chunk is no longer kept.
static void test_states(void **state) {
    (void)state;
    static const uint64_t steps[] = {4, 4, 7, 30, 31, 120, 226, 227, 390, 400};
    for (int law = 0; law < 3; law++)
        for (int mapped = 0; mapped < 2; mapped++) {
            rig r;
            open_rig(&r, laws[law].segments, laws[law].split, mapped, 4);
            while (dc_feeder_step(r.feeder) < 400)
                assert_int_equal(dc_feeder_fill(r.feeder, r.chunk), DC_OK);
            for (int s = 0; s < 10; s++)
                for (int m = 0; m < MEMBERS; m++) {
                    advance(r.check[m], steps[s]);
                    assert_int_equal(dc_feeder_state(r.feeder, m, steps[s], r.samplers[m]), DC_OK);
                    expect_same_state(r.samplers[m], r.check[m]);
                }
            close_rig(&r);
        }
}

// Going back to where the samplers stand, as after a resume, gives the same rows again.
static void test_seek(void **state) {
    (void)state;
    rig r;
    open_rig(&r, SEG_TREE, DC_SPLIT_MIDPOINT, true, 6);
    for (int c = 0; c < 5; c++)
        assert_int_equal(dc_feeder_fill(r.feeder, r.chunk), DC_OK);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(dc_feeder_seek(r.feeder, m, r.samplers[m]), DC_OK);
    assert_int_equal(dc_feeder_step(r.feeder), 6);
    expect_chunks(&r, 5);
    close_rig(&r);
}

static dc_status choose(void *ctx, int64_t count, const int64_t *i, const int64_t *j, int64_t *k) {
    (void)ctx;
    for (int64_t m = 0; m < count; m++)
        k[m] = (i[m] + j[m]) / 2;
    return DC_OK;
}

static void test_chooser_refused(void **state) {
    (void)state;
    row_spec spec = spec_of(SEG_TREE, DC_SPLIT_MAX, 1);
    spec.choose = choose;
    spec.rebuild_every = 10;
    dc_sampler *sampler;
    dc_feeder *feeder;
    dc_feeds feeds;
    assert_int_equal(new_sampler(&sampler, &data[0], &spec), DC_OK);
    list_feeds(&feeds, &data[0], sampler, false);
    dc_feeder_source source = {sampler, &feeds, &data[0]};
    assert_int_equal(dc_feeder_new(&feeder, &source, 1, NULL), DC_UNSUPPORTED);
    assert_non_null(strstr(dc_error(), "split=max"));
    assert_null(feeder);
    dc_sampler_free(sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_shared_blocks),
                                       cmocka_unit_test(test_states), cmocka_unit_test(test_seek),
                                       cmocka_unit_test(test_chooser_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
