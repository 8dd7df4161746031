// Packed children: rows that need no network are left out of a batch, and the results are those of the
// full batch.
#include "../tensor/rig.h"

#include "env/lock.h"
#include "row_spec.h"
#include "sample/gather.h"

enum { HORIZON = 200, PAIRS = 280 };
enum { START, SPLIT, END, FIRST, SECOND }; // rules of i.i.d. segments, in their order (row_spec.h)

typedef struct children {
    rig rig;
    dc_feeds feeds;
    int rows[2][PAIRS];
} children;

static void feed(children *c, dc_ref input, int row0, int from, int to, dc_pack *pack,
                 const dc_column *obs) {
    dc_feed *f = &c->feeds.feeds[c->feeds.feed_count];
    f[0] = (dc_feed){.input = input, .row0 = row0, .column = obs, .rule = from, .pack = pack};
    f[1] = f[0];
    f[1].col0 = obs->width;
    f[1].rule = to;
    c->feeds.feed_count += 2;
}

static dc_ref steps_input(children *c, int rule) {
    dc_ref x = dc_input(&c->rig.graph, "steps", PAIRS, 1);
    c->feeds.feeds[c->feeds.feed_count++] = (dc_feed){.input = x, .rule = rule};
    return x;
}

// Values of both children: packed behind the parents of one stacked input, or each in an input of
// its own.
static void apply_children(children *c, bool packed, int known, const dc_column *obs,
                           dc_ref out[3]) {
    dc_graph *g = &c->rig.graph;
    const int from[] = {START, SPLIT}, to[] = {SPLIT, END}, span[] = {FIRST, SECOND};
    dc_ref x = dc_input(g, "x", packed ? 3 * PAIRS : PAIRS, 2 * obs->width), index[2] = {-1, -1};
    feed(c, x, 0, START, END, NULL, obs);
    for (int k = 0; packed && k < 2; k++) {
        index[k] = dc_input(g, "index", PAIRS, 1);
        dc_pack *p = &c->feeds.packs[c->feeds.pack_count];
        *p = (dc_pack){
            .input = x, .index = index[k], .steps = span[k], .known = known, .rows = c->rows[k]};
        c->feeds.fixed_rows[c->feeds.pack_count++] = PAIRS;
        feed(c, x, 0, from[k], to[k], p, obs);
    }
    dc_ref y = dc_mlp_apply(g, &c->rig.net, x, DC_LIVE);
    out[2] = dc_rows(g, y, 0, PAIRS);
    for (int k = 0; k < 2; k++) {
        if (packed) {
            out[k] = dc_unpack(g, index[k], y);
            continue;
        }
        dc_ref own = dc_input(g, "child", PAIRS, 2 * obs->width);
        feed(c, own, 0, from[k], to[k], NULL, obs);
        out[k] = dc_mlp_apply(g, &c->rig.net, own, DC_STOPPED);
    }
}

static void children_open(children *c, bool packed, int known, const dc_dataset *data) {
    *c = (children){.feeds = {.batch = PAIRS}};
    const dc_column *obs = dc_dataset_column(data, "obs");
    rig_open(&c->rig, 1, 2 * obs->width, &narrow);
    dc_graph *g = &c->rig.graph;
    dc_ref value[3];
    apply_children(c, packed, known, obs, value);
    dc_ref left = steps_input(c, FIRST), right = steps_input(c, SECOND);
    dc_ref target = dc_add(g, dc_within(g, left, left, value[0], known),
                           dc_within(g, right, right, value[1], known));
    rig_finish(&c->rig, dc_expectile(g, "loss", value[2], target, -1, 0.4), 10, 2);
}

static dc_real children_run(children *c, const dc_sampler *sampler) {
    dc_gather(&c->feeds, sampler, &c->rig.exec);
    return run(&c->rig);
}

static void check_packs(const dc_dataset *data, int known) {
    children packed, full;
    children_open(&packed, true, known, data);
    children_open(&full, false, known, data);
    dc_sampler *sampler;
    row_spec spec = {.seed = 4, .batch = PAIRS, .segments = SEG_PAIRS, .split = DC_SPLIT_RANDOM};
    assert_int_equal(new_sampler(&sampler, data, &spec), DC_OK);
    for (uint64_t step = 0; step < 3; step++) { // the number of packed rows goes up and down
        assert_int_equal(dc_sampler_next(sampler, step), DC_OK);
        dc_real a = children_run(&packed, sampler), b = children_run(&full, sampler);
        assert_near(&a, &b, 1, 1e-6);
        assert_near_all(&packed.rig, &full.rig, 2e-6);
        int needed = 0;
        for (int r = 0; r < PAIRS; r++)
            needed += (dc_sampler_drawn(sampler, FIRST)[r] > known) +
                      (dc_sampler_drawn(sampler, SECOND)[r] > known);
        assert_int_equal(packed.feeds.packs[0].count + packed.feeds.packs[1].count, needed);
        assert_int_equal(packed.rig.exec.used[packed.feeds.packs[0].input], PAIRS + needed);
    }
    dc_sampler_free(sampler);
    rig_close(&packed.rig);
    rig_close(&full.rig);
}

static void test_packed_children(void **state) {
    (void)state;
    dc_lock lock;
    dc_dataset data;
    assert_int_equal(dc_lock_init(&lock, HORIZON, 1), DC_OK);
    assert_int_equal(dc_lock_data(&lock, &data), DC_OK);
    const int known[] = {0, 1, 30, HORIZON}; // nearly all rows, most, some, none
    for (int k = 0; k < 4; k++)
        check_packs(&data, known[k]);
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
