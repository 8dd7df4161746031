// A part of a batch, as GPUs of several ranks have it (dc_agent_options.part): the rows of parts are those of the whole
// batch, one behind the other, and the mean of their losses' gradients is that of the batch, up to rounding. On the CPU,
// without ranks.
#include "small_run.h"

#include <math.h>

enum { BATCH = 24, PARTS = 3, STEPS = 4 };

static dc_agent agents[1 + PARTS]; // the whole, its parts

static void open_agents(const char *name, const char *form, dc_run *run) {
    dc_agent_options options;
    small_configure(run, name, "batch", "24", "form", form, NULL);
    assert_int_equal(dc_run_agent_options(run, &options), DC_OK);
    for (int k = 0; k <= PARTS; k++) {
        options.part = k ? BATCH / PARTS : 0;
        options.first = k ? (k - 1) * options.part : 0;
        assert_int_equal(
            dc_agent_init(&agents[k], run->algo, run->config, &options, &small_data, NULL), DC_OK);
    }
}

// Rows of the batch in input r of a part are those of the whole; packs and their places differ.
static int compare_inputs(const dc_agent *whole, const dc_agent *part, int first) {
    int compared = 0;
    for (int f = 0; f < whole->feeds.feed_count; f++) {
        const dc_feed *a = &whole->feeds.feeds[f], *b = &part->feeds.feeds[f];
        if (a->pack || a->times > 1 || a->repeat > 1) continue;
        dc_tensor x = dc_value(&whole->exec, a->input), y = dc_value(&part->exec, b->input);
        for (int r = 0; r < part->feeds.batch; r++) {
            const dc_real *from = x.p + (int64_t)(a->row0 + first + r) * x.cols,
                          *to = y.p + (int64_t)(b->row0 + r) * y.cols;
            assert_memory_equal(from + a->col0, to + b->col0, sizeof *from);
            compared++;
        }
    }
    return compared;
}

// The policy's loss is divided by the size of its part's values (relative_mean), which is not the batch's.
static int64_t comparable(const dc_agent *a) {
    for (dc_ref r = 0; r < a->graph.count; r++)
        if (a->graph.nodes[r].op == DC_OP_relative_mean) return a->nets.policy_first;
    return a->params.slabs.size;
}

static void compare_gradients(void) {
    const dc_slabs *whole = &agents[0].params.slabs;
    double most = 0, off = 0;
    for (int64_t i = 0; i < comparable(&agents[0]); i++) {
        double mean = 0;
        for (int k = 1; k <= PARTS; k++)
            mean += (double)agents[k].params.slabs.grad[i] / PARTS;
        most = fmax(most, fabs((double)whole->grad[i]));
        off = fmax(off, fabs((double)whole->grad[i] - mean));
    }
    assert_true(most > 0);
    assert_true(off < 1e-5 * most);
}

static void check(const char *name, const char *form) {
    dc_run run = DC_RUN_NONE;
    open_agents(name, form, &run);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int k = 0; k <= PARTS; k++)
            assert_int_equal(dc_agent_gradients(&agents[k], step), DC_OK);
        for (int k = 1; k <= PARTS; k++)
            assert_true(compare_inputs(&agents[0], &agents[k], agents[k].feeds.first) > 0);
        compare_gradients();
    }
    for (int k = 0; k <= PARTS; k++)
        dc_agent_fini(&agents[k]);
    dc_run_fini(&run);
}

static void test_parts(void **state) {
    (void)state;
    small_data_init();
    static const char *const forms[] = {"distance", "value"};
    for (int f = 0; f < 2; f++) {
        check("dcrl", forms[f]);
        check("td-n", forms[f]);
        check("trl-n", forms[f]);
    }
    dc_dataset_fini(&small_data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
