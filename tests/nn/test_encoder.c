// Encoders: ties of a pool by hand, the same bytes for any number of threads, one encoding for what is asked twice, and
// networks that cannot see pictures.
#include "../tensor/rig.h"
#include "nn/nets.h"

enum { ROWS = 19 };
static const dc_picture picture = {12, 10, 3};
static const dc_int_list hidden = {1, {7}};

// ---- max_pool ----

// Of equal numbers the first in row-major order has the gradient; an even size has its padding behind, an odd one both ways.
static void check_ties(int height, int width, const double *want) {
    rig t = {0};
    int out = dc_pooled(height) * dc_pooled(width);
    assert_int_equal(dc_graph_init(&t.graph), DC_OK);
    int64_t offset =
        dc_params_add(&t.params, "x", 1, 1, height * width, DC_INIT_ONE, 1, false)->offset;
    dc_ref x = dc_param(&t.graph, "x", 1, 1, height * width, offset, DC_LIVE);
    dc_ref w = dc_input(&t.graph, "w", 1, out);
    dc_ref y = dc_mul(&t.graph, dc_max_pool(&t.graph, "pool", x, height, width), w);
    assert_int_equal(dc_graph_finish(&t.graph, dc_mean(&t.graph, "loss", y)), DC_OK);
    assert_int_equal(dc_params_alloc(&t.params, 0), DC_OK);
    assert_int_equal(dc_exec_init(&t.exec, &t.graph, &t.params.slabs, NULL), DC_OK);
    for (int i = 0; i < out; i++)
        dc_value(&t.exec, w).p[i] = (dc_real)(out * (i + 1)); // the mean divides by out
    run(&t);
    for (int i = 0; i < height * width; i++)
        assert_true(fabs((double)grad_of(&t, "x")[i] - want[i]) < 1e-6);
    rig_close(&t);
}

static void test_ties(void **state) {
    (void)state;
    const double even[16] = {1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}, odd[9] = {1, 2, 0, 3, 4};
    check_ties(4, 4, even);
    check_ties(3, 3, odd);
}

// ---- conv3x3 ----

// One channel of ones, and weights 1 to 9: a place has the sum of the weights whose neighbour is there.
static void test_conv(void **state) {
    (void)state;
    rig t = {0};
    assert_int_equal(dc_graph_init(&t.graph), DC_OK);
    int64_t w = dc_params_add(&t.params, "w", 1, 9, 1, DC_INIT_ONE, 1, false)->offset;
    int64_t b = dc_params_add(&t.params, "b", 1, 1, 1, DC_INIT_ONE, 1, false)->offset;
    dc_ref x = dc_input(&t.graph, "x", 1, 9);
    dc_ref y = dc_conv3x3(&t.graph, "conv", x, dc_param(&t.graph, "w", 1, 9, 1, w, DC_LIVE),
                          dc_param(&t.graph, "b", 1, 1, 1, b, DC_LIVE), 3, 3);
    dc_keep(&t.graph, y);
    assert_int_equal(dc_graph_finish(&t.graph, -1), DC_OK);
    assert_int_equal(dc_params_alloc(&t.params, 0), DC_OK);
    assert_int_equal(dc_exec_init(&t.exec, &t.graph, &t.params.slabs, NULL), DC_OK);
    for (int i = 0; i < 9; i++) {
        t.params.slabs.live[w + i] = (dc_real)(i + 1);
        dc_value(&t.exec, x).p[i] = 1;
    }
    dc_exec_run(&t.exec, &dc_backend_cpu);
    const double want[9] = {29, 40, 25, 34, 46, 28, 17, 22, 13}; // and 1 for the bias
    for (int i = 0; i < 9; i++)
        assert_true(fabs((double)dc_value(&t.exec, y).p[i] - want[i]) < 1e-6);
    rig_close(&t);
}

// ---- networks ----

typedef struct seen {
    rig rig;
    dc_nets nets;
    dc_ref x;
} seen;

static int cells(void) {
    return dc_picture_cells(picture);
}

// A critic of two pictures and two more numbers, trained toward what its target copy says of other rows.
static void seen_open(seen *s, int threads) {
    *s = (seen){0};
    dc_graph *g = &s->rig.graph;
    s->nets.picture = picture;
    dc_nets_add(&s->nets, (dc_net){.name = "critic",
                                   .ensemble = 2,
                                   .in = 2 * cells() + 2,
                                   .out = 1,
                                   .observations = 2,
                                   .target = true});
    assert_int_equal(dc_nets_check(&s->nets), DC_OK);
    dc_nets_place(&s->nets, &s->rig.params, &hidden);
    assert_int_equal(dc_graph_init(g), DC_OK);
    s->x = dc_input(g, "x", ROWS, 2 * cells() + 2);
    dc_ref y = dc_net_apply(g, &s->nets, "critic", s->x, DC_LIVE);
    dc_ref bar = dc_net_apply(g, &s->nets, "critic", s->x, DC_EMA);
    rig_finish(&s->rig, dc_square(g, "loss", y, bar, 1), 5, threads);
    fill(&s->rig, s->x, 11);
}

static void test_threads(void **state) {
    (void)state;
    seen one, four;
    seen_open(&one, 1);
    seen_open(&four, 4);
    assert_true(run(&one.rig) > 0);
    assert_true(run(&one.rig) == run(&four.rig));
    const dc_slabs *a = &one.rig.params.slabs, *b = &four.rig.params.slabs;
    assert_int_equal(a->size, a->ema_size); // encoders have target copies where their network has
    assert_same_bits(a->grad, b->grad, a->size);
    for (int i = 0; i < one.rig.params.count; i++) { // every weight is trained
        const dc_param_row *row = &one.rig.params.rows[i];
        double size = 0;
        for (int64_t k = 0; k < (int64_t)row->e * row->rows * row->cols; k++)
            size += fabs((double)a->grad[row->offset + k]);
        if (!(size > 0)) fail_msg("no gradient to %s", row->name);
    }
    rig_close(&one.rig);
    rig_close(&four.rig);
}

static int convolutions(const dc_graph *g) {
    int count = 0;
    for (dc_ref r = 0; r < g->count; r++)
        count += g->nodes[r].op == DC_OP_conv3x3;
    return count;
}

// Candidates of one row, and steps of a flow, change what stands behind the pictures: they are encoded once.
static void test_encoded_once(void **state) {
    (void)state;
    seen s;
    seen_open(&s, 0);
    dc_graph g;
    assert_int_equal(dc_graph_init(&g), DC_OK);
    dc_ref x = dc_input(&g, "x", 4, 2 * cells() + 2), a = dc_input(&g, "a", 12, 1);
    dc_net_apply(&g, &s.nets, "critic", x, DC_STOPPED);
    assert_int_equal(convolutions(&g), 18);
    dc_ref many = dc_splice(&g, "many", dc_repeat(&g, x, 3), a, 2 * cells() + 1);
    dc_ref y = dc_net_apply(&g, &s.nets, "critic", many, DC_STOPPED);
    assert_int_equal(convolutions(&g), 18);
    assert_int_equal(g.nodes[y].rows, 12);
    dc_net_apply(&g, &s.nets, "critic", x, DC_EMA); // other weights
    assert_int_equal(convolutions(&g), 36);
    dc_graph_fini(&g);
    rig_close(&s.rig);
}

static double cell(int row, int column) {
    return sin(0.1 * row + 0.37 * column);
}

// One encoder of two pictures sees what one of a picture of twice the channels sees.
static void test_concat(void **state) {
    (void)state;
    const dc_picture both = {picture.height, picture.width, 2 * picture.channels};
    double losses[2] = {0};
    for (int i = 0; i < 2; i++) {
        rig t = {0};
        dc_nets nets = {.picture = i ? both : picture, .concat = !i};
        dc_nets_add(&nets, (dc_net){.name = "actor",
                                    .in = 2 * cells() + 2,
                                    .out = 1,
                                    .observations = i ? 1 : 2,
                                    .policy = true});
        assert_int_equal(dc_nets_check(&nets), DC_OK);
        dc_nets_place(&nets, &t.params, &hidden);
        assert_int_equal(dc_net_encoders(&nets, &nets.net[0]), 1);
        assert_int_equal(dc_graph_init(&t.graph), DC_OK);
        dc_ref x = dc_input(&t.graph, "x", ROWS, 2 * cells() + 2);
        dc_ref y = dc_net_apply(&t.graph, &nets, "actor", x, DC_LIVE);
        assert_true(dc_net_apply(&t.graph, &nets, "actor", x, DC_LIVE) > y);
        assert_int_equal(convolutions(&t.graph), 9); // encoded once
        rig_finish(&t, dc_mean(&t.graph, "loss", y), 5, 0);
        dc_tensor rows = dc_value(&t.exec, x);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < 2 * cells(); c++) { // of both: place by place
                int k = c / both.channels, channel = c % both.channels;
                int from = i ? channel / picture.channels * cells() + k * picture.channels +
                                   channel % picture.channels
                             : c;
                rows.p[(int64_t)r * rows.cols + c] = (dc_real)cell(r, from);
            }
        losses[i] = (double)run(&t);
        rig_close(&t);
    }
    assert_true(losses[0] == losses[1] && fabs(losses[0]) > 0);
}

static void test_refused(void **state) {
    (void)state;
    const dc_net wrong[] = {
        {.name = "critic", .in = 2 * cells(), .out = 1, .observations = 1},
        {.name = "generator", .in = cells(), .out = cells(), .observations = 1}};
    const char *const told[] = {"network critic has no encoder for its input of 12 x 10 x 3",
                                "network generator would have to paint pictures of 12 x 10 x 3"};
    for (int i = 0; i < 2; i++) {
        dc_nets nets = {.picture = picture};
        dc_nets_add(&nets, wrong[i]);
        assert_int_equal(dc_nets_check(&nets), DC_UNSUPPORTED);
        assert_non_null(strstr(dc_error(), told[i]));
        nets.picture = (dc_picture){0};
        assert_int_equal(dc_nets_check(&nets), DC_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties),    cmocka_unit_test(test_conv),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_encoded_once),
        cmocka_unit_test(test_concat),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
