// The memory plan: random graphs against the same graph run the plain way, every number in memory of
// its own, every gradient zeroed beforehand and added to, all rows trained. Whatever grad.c and plan.c
// save must not show in the results.
#include "rig.h"

enum { NODES = 40, ROWS = 6, COLS = 8, WEIGHTS = 3 };

typedef struct garden { // a graph in the making: nodes to choose from, by their number of rows
    rig rig;
    dc_ref x, whole[NODES], half[NODES];
    int whole_count, half_count;
    uint64_t seed, draws;
} garden;

static int pick(garden *s, int n) {
    return (int)dc_below(dc_philox(s->seed, 91, 0, (uint32_t)s->draws++).v[0], (uint32_t)n);
}

static dc_ref weight(garden *s, const char *part, int number) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", part, number);
    const dc_param_row *row = dc_params_find(&s->rig.params, name);
    dc_use use = pick(s, 4) ? DC_LIVE : DC_EMA;
    return dc_param(&s->rig.graph, name, 1, row->rows, row->cols, row->offset, use);
}

static dc_ref layer(garden *s, dc_ref x) {
    dc_graph *g = &s->rig.graph;
    if (pick(s, 2))
        return dc_gelu_layernorm(g, "norm", x, weight(s, "s", pick(s, WEIGHTS)), weight(s, "b", 0));
    int use = pick(s, WEIGHTS); // weights and bias of a linear are used alike
    dc_use kind = pick(s, 4) ? DC_LIVE : DC_STOPPED;
    char w[8], b[8];
    snprintf(w, sizeof w, "w%d", use);
    snprintf(b, sizeof b, "b%d", use);
    return dc_linear(g, "linear", x,
                     dc_param(g, w, 1, COLS, COLS, dc_params_find(&s->rig.params, w)->offset, kind),
                     dc_param(g, b, 1, 1, COLS, dc_params_find(&s->rig.params, b)->offset, kind));
}

// One more node over others of the same number of rows.
static dc_ref grow(garden *s, const dc_ref *from, int count) {
    dc_graph *g = &s->rig.graph;
    dc_ref x = from[pick(s, count)], y = from[pick(s, count)];
    switch (pick(s, 13)) {
    case 0:
        return dc_add(g, x, y);
    case 1:
        return dc_mul(g, x, y);
    case 2:
        return dc_affine(g, x, 0.7, 0.1);
    case 3:
        return dc_clip(g, x, -0.8, 0.9);
    case 4:
        return dc_decay(g, x, 0.6);
    case 5:
        return pick(s, 3) ? dc_affine(g, x, -1.1, 0) : dc_stop(g, x);
    case 6:
        return dc_gelu(g, "gelu", x);
    case 7:
        return dc_relu(g, "relu", dc_add(g, x, y));
    case 8:
        return dc_normalise(g, dc_affine(g, x, 1, 0.3));
    case 9:
        return dc_side(g, x, 0.7);
    default:
        return layer(s, x);
    }
}

static void add_node(garden *s) {
    if (pick(s, 4) == 0) {
        dc_ref x = s->whole[pick(s, s->whole_count)];
        s->half[s->half_count++] = dc_rows(&s->rig.graph, x, pick(s, ROWS / 2 + 1), ROWS / 2);
    } else if (s->half_count && pick(s, 2)) {
        dc_ref x = grow(s, s->half, s->half_count);
        s->half[s->half_count++] = x;
    } else {
        dc_ref x = grow(s, s->whole, s->whole_count);
        s->whole[s->whole_count++] = x;
    }
}

// The same graph for the same seed.
static void plant(garden *s, uint64_t seed) {
    *s = (garden){.seed = seed};
    dc_graph *g = &s->rig.graph;
    assert_int_equal(dc_graph_init(g), DC_OK);
    for (int i = 0; i < WEIGHTS; i++)
        for (int part = 0; part < 3; part++) {
            char name[8];
            snprintf(name, sizeof name, "%c%d", "wbs"[part], i);
            dc_params_add(&s->rig.params, name, 1, part ? 1 : COLS, COLS,
                          part == 0 ? DC_INIT_XAVIER : DC_INIT_ZERO, 1, true);
        }
    s->x = s->whole[s->whole_count++] = dc_input(g, "x", ROWS, COLS);
    s->whole[s->whole_count++] = layer(s, s->x);
    for (int i = 0; i < NODES - 3; i++)
        add_node(s);
    dc_ref loss = dc_mean(g, "loss", s->whole[s->whole_count - 1]);
    if (s->half_count) loss = dc_add(g, loss, dc_mean(g, "half", s->half[s->half_count - 1]));
    for (int i = 0; i < 2; i++)
        loss = dc_add(g, loss, dc_mean(g, "more", s->whole[pick(s, s->whole_count)]));
    dc_mean(g, "metric", s->whole[pick(s, s->whole_count)]); // after the loss, as metrics are
    rig_finish(&s->rig, loss, seed, 0);
    fill(&s->rig, s->x, seed);
}

// Give every number memory of its own, let every gradient be added to, and train all rows.
static void make_plain(dc_graph *g) {
    int64_t next = g->input_size;
    for (dc_ref r = 0; r < g->count; r++) {
        dc_node *n = &g->nodes[r];
        if (n->lo < n->hi) {
            n->lo = 0;
            n->hi = n->rows;
        }
        n->grad_sum = true;
        n->grad_first = -1; // nothing is zeroed on the way
        if (n->op < DC_FIRST_COMPUTED) continue;
        int64_t *places[] = {&n->offset, &n->grad_offset, &n->aux_offset, &n->scratch_offset};
        int64_t cells = (int64_t)n->e * n->rows * n->cols;
        int64_t sizes[] = {cells, cells, n->aux, n->scratch};
        for (int k = 0; k < 4; k++) {
            *places[k] = next;
            next += (sizes[k] + 15) / 16 * 16;
        }
    }
    g->temp_size = next;
}

static void make_rig_plain(garden *s) {
    dc_exec_fini(&s->rig.exec);
    make_plain(&s->rig.graph);
    assert_int_equal(dc_exec_init(&s->rig.exec, &s->rig.graph, &s->rig.params.slabs, NULL), DC_OK);
    fill(&s->rig, s->x, s->seed);
}

// Fill what is not input with a number that would show.
static void poison(const rig *t, dc_real with) {
    for (int64_t i = t->graph.input_size; i < t->graph.temp_size; i++)
        t->exec.temps[i] = with;
}

static void test_plan_does_not_show(void **state) {
    (void)state;
    int trained = 0, smaller = 0;
    enum { GRAPHS = 400 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        garden planned, plain;
        plant(&planned, seed);
        plant(&plain, seed);
        make_rig_plain(&plain);
        poison(&planned.rig, NAN); // nothing may be read before it is written
        dc_real a = run(&planned.rig), b = run(&plain.rig);
        assert_same_bits(&a, &b, 1);
        assert_true(is_finite(a));
        const dc_slabs *p = &planned.rig.params.slabs, *q = &plain.rig.params.slabs;
        for (int64_t i = 0; i < p->size; i++) {
            double size = fabs((double)q->grad[i]);
            assert_true(fabs((double)p->grad[i] - (double)q->grad[i]) <= 1e-5 * (1 + size));
            trained += q->grad[i] != 0;
        }
        assert_true(planned.rig.graph.temp_size <= plain.rig.graph.temp_size);
        smaller += 10 * planned.rig.graph.temp_size < 7 * plain.rig.graph.temp_size;
        rig_close(&planned.rig);
        rig_close(&plain.rig);
    }
    assert_true(trained > 50 * GRAPHS); // of 240 weights a graph
    assert_true(smaller > GRAPHS * 9 / 10);
}

// The same for the step that trains, where the plan is made of large pieces; bit for bit.
static void test_plan_of_training(void **state) {
    (void)state;
    rig shared, kept;
    build_training(&shared, 0);
    poison(&shared, NAN);
    build_training(&kept, 0);
    dc_exec_fini(&kept.exec);
    kept.graph.temp_size = 0; // plan again, every value kept
    for (dc_ref r = 0; r < kept.graph.count; r++)
        kept.graph.nodes[r].keep = true;
    assert_int_equal(dc_graph_plan(&kept.graph), DC_OK);
    assert_int_equal(dc_exec_init(&kept.exec, &kept.graph, &kept.params.slabs, NULL), DC_OK);
    fill(&kept, 0, 11);
    fill(&kept, 1, 12);
    dc_real a = run(&shared), b = run(&kept);
    assert_same_bits(&a, &b, 1);
    assert_same_bits(shared.params.slabs.grad, kept.params.slabs.grad, kept.params.slabs.size);
    assert_true(4 * shared.graph.temp_size < 3 * kept.graph.temp_size);
    rig_close(&shared);
    rig_close(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_does_not_show),
        cmocka_unit_test(test_plan_of_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
