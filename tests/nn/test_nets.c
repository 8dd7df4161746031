// Networks by name: where they lie in the slab whatever the order in which they were added, what their
// layers compute with and without LayerNorm, trained numbers, and the text that names them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "nn/nets.h"
#include "tensor/run.h"

enum { OBS = 5, ACT = 3, REP = 4, ROWS = 7, MEMBERS = 2 };
static const dc_int_list hidden = {2, {12, 9}};

// A method's networks, in no particular order.
static void add_all(dc_nets *nets) {
    dc_nets_add(nets, (dc_net){.name = "actor",
                               .kind = DC_NET_PLAIN,
                               .in = OBS,
                               .out = ACT,
                               .scaled = true,
                               .gain = 0.25,
                               .policy = true});
    dc_nets_add(nets, (dc_net){.name = "rep", .in = 2 * OBS, .out = REP});
    dc_nets_add(
        nets,
        (dc_net){.name = "critic", .ensemble = MEMBERS, .in = OBS + ACT, .out = 1, .target = true});
    dc_nets_add(nets, (dc_net){.name = "lagrange", .kind = DC_NET_SCALAR});
    dc_nets_add(nets, (dc_net){.name = "low_actor", .in = OBS + REP, .out = ACT, .policy = true});
    dc_nets_add(nets, (dc_net){.name = "scale", .kind = DC_NET_SCALAR, .target = true});
}

typedef struct world {
    dc_nets nets;
    dc_params params;
} world;

static void open_world(world *w, uint64_t seed) {
    *w = (world){0};
    add_all(&w->nets);
    dc_nets_place(&w->nets, &w->params, &hidden);
    assert_int_equal(dc_params_alloc(&w->params, seed), DC_OK);
}

static bool belongs(const dc_param_row *row, const char *net) {
    size_t n = strlen(net);
    return !strncmp(row->name, net, n) && row->name[n] == '/';
}

// Targets first, the policy last, and within each part as they were added.
static void test_order(void **state) {
    (void)state;
    static const char *const order[] = {"critic", "scale", "rep", "lagrange", "actor", "low_actor"};
    enum { COUNT = sizeof order / sizeof *order };
    world w;
    open_world(&w, 1);
    int at = 0;
    for (int i = 0; i < w.params.count; i++) {
        const dc_param_row *row = &w.params.rows[i];
        while (at < COUNT && !belongs(row, order[at]))
            at++;
        assert_true(at < COUNT);
        assert_int_equal(row->offset < w.params.slabs.ema_size, at < 2);
        assert_int_equal(row->offset >= w.nets.policy_first, at >= 4);
    }
    assert_int_equal(at, COUNT - 1);
    assert_int_equal(dc_params_find(&w.params, "actor/0/w")->offset, w.nets.policy_first);
    assert_true(w.nets.policy_first > w.params.slabs.ema_size);
    assert_memory_equal(w.params.slabs.ema, w.params.slabs.live,
                        (size_t)w.params.slabs.ema_size * sizeof(dc_real));
    dc_params_free(&w.params);
}

// Without a policy its part is empty, at the end.
static void test_no_policy(void **state) {
    (void)state;
    world w = {0};
    dc_nets_add(&w.nets, (dc_net){.name = "critic", .in = OBS, .out = 1, .target = true});
    dc_nets_place(&w.nets, &w.params, &hidden);
    assert_int_equal(w.nets.policy_first, w.params.slabs.size);
    assert_int_equal(dc_params_alloc(&w.params, 1), DC_OK);
    assert_int_equal(w.params.slabs.ema_size, w.params.slabs.size);
    dc_params_free(&w.params);
}

static void test_find(void **state) {
    (void)state;
    world w;
    open_world(&w, 1);
    assert_null(dc_nets_find(&w.nets, "oracle"));
    assert_null(dc_nets_find(&w.nets, "act"));
    const dc_net *critic = dc_nets_find(&w.nets, "critic");
    assert_non_null(critic);
    assert_int_equal(critic->ensemble, MEMBERS);
    assert_int_equal(critic->mlp.e, MEMBERS);
    assert_int_equal(critic->mlp.layers, 3);
    assert_int_equal(dc_nets_find(&w.nets, "rep")->ensemble, 1); // unless said otherwise
    dc_params_free(&w.params);
}

// LayerNorm has two vectors per hidden layer, PLAIN has none; a scalar is one number, 0 at the start.
static void test_tensors(void **state) {
    (void)state;
    world w;
    open_world(&w, 2);
    static const char *const there[] = {"critic/0/scale", "critic/1/bias",     "actor/0/w",
                                        "actor/2/b",      "low_actor/1/scale", "lagrange/0/b",
                                        "scale/0/b"};
    static const char *const absent[] = {"actor/0/scale", "actor/1/bias", "critic/2/scale",
                                         "lagrange/0/w", "scale/0/scale"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (!dc_params_find(&w.params, there[i])) fail_msg("no %s", there[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_null(dc_params_find(&w.params, absent[i]));
    assert_int_equal(w.params.count, 3 * 10 + 6 + 2);
    const dc_param_row *scalar = dc_params_find(&w.params, "lagrange/0/b");
    assert_true(scalar->e == 1 && scalar->rows == 1 && scalar->cols == 1);
    assert_true(w.params.slabs.live[scalar->offset] == 0);
    dc_params_free(&w.params);
}

static double most(const world *w, const char *name) {
    const dc_param_row *row = dc_params_find(&w->params, name);
    double x = 0;
    assert_non_null(row);
    for (int64_t i = 0; i < (int64_t)row->e * row->rows * row->cols; i++)
        x = fmax(x, fabs((double)w->params.slabs.live[row->offset + i]));
    return x;
}

// The gain is that of the last layer alone, and 1 unless said otherwise. It may be 0.
static void test_gain(void **state) {
    (void)state;
    world w;
    open_world(&w, 3);
    const struct {
        const char *name;
        double limit;
    } want[] = {{"actor/2/w", 0.25 * sqrt(6.0 / (9 + ACT))},
                {"actor/1/w", sqrt(6.0 / (12 + 9))},
                {"low_actor/2/w", sqrt(6.0 / (9 + ACT))}};
    for (int i = 0; i < 3; i++) {
        double x = most(&w, want[i].name);
        assert_true(x <= want[i].limit * (1 + 1e-6) && x > 0.7 * want[i].limit);
    }
    dc_params_free(&w.params);
    world zero = {0};
    dc_nets_add(&zero.nets, (dc_net){.name = "still", .in = OBS, .out = ACT, .scaled = true});
    dc_nets_place(&zero.nets, &zero.params, &hidden);
    assert_int_equal(dc_params_alloc(&zero.params, 3), DC_OK);
    assert_true(most(&zero, "still/1/w") > 0 && most(&zero, "still/2/w") <= 0);
    dc_params_free(&zero.params);
}

// ---- what they compute ----

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// Row x of member e through a network, in double.
static void by_hand(const world *w, const char *name, int e, const double *x, double *out) {
    const dc_net *n = dc_nets_find(&w->nets, name);
    const dc_mlp *m = &n->mlp;
    const dc_real *p = w->params.slabs.live;
    double in[64], y[64] = {0};
    int width = m->in;
    memcpy(in, x, (size_t)width * sizeof *in);
    for (int l = 0; l < m->layers; l++) {
        bool last = l == m->layers - 1;
        int next = last ? m->out : (int)m->hidden.v[l];
        double mean = 0, var = 0;
        for (int o = 0; o < next; o++) {
            y[o] = (double)p[m->layer[l].b + e * next + o];
            for (int i = 0; i < width; i++)
                y[o] += in[i] * (double)p[m->layer[l].w + ((int64_t)e * width + i) * next + o];
            if (!last) y[o] = n->kind == DC_NET_RELU ? fmax(y[o], 0) : gelu(y[o]);
            mean += y[o] / next;
        }
        for (int o = 0; o < next; o++)
            var += (y[o] - mean) * (y[o] - mean) / next;
        for (int o = 0; o < next && !last && n->kind == DC_NET_MLP; o++)
            y[o] = (y[o] - mean) / sqrt(var + 1e-6) * (double)p[m->layer[l].scale + e * next + o] +
                   (double)p[m->layer[l].bias + e * next + o];
        memcpy(in, y, sizeof in);
        width = next;
    }
    memcpy(out, in, (size_t)m->out * sizeof *out);
}

static void check_net(world *w, const char *name, int members) {
    dc_graph g;
    dc_exec exec;
    const dc_net *n = dc_nets_find(&w->nets, name);
    assert_int_equal(dc_graph_init(&g), DC_OK);
    dc_ref x = dc_input(&g, "x", ROWS, n->in);
    dc_ref y = dc_net_apply(&g, &w->nets, name, x, DC_STOPPED);
    dc_keep(&g, y);
    assert_int_equal(dc_graph_finish(&g, -1), DC_OK);
    assert_int_equal(dc_exec_init(&exec, &g, &w->params.slabs, NULL), DC_OK);
    dc_tensor in = dc_value(&exec, x), out = dc_value(&exec, y);
    for (int i = 0; i < ROWS * n->in; i++)
        in.p[i] = (dc_real)sin(1 + 3 * i);
    dc_exec_run(&exec, &dc_backend_cpu);
    for (int e = 0; e < members; e++)
        for (int r = 0; r < ROWS; r++) {
            double row[64], want[8];
            for (int c = 0; c < n->in; c++)
                row[c] = (double)in.p[r * n->in + c];
            by_hand(w, name, e, row, want);
            for (int c = 0; c < n->out; c++)
                assert_true(fabs((double)out.p[(e * ROWS + r) * n->out + c] - want[c]) < 1e-5);
        }
    dc_exec_fini(&exec);
    dc_graph_fini(&g);
}

static void test_values(void **state) {
    (void)state;
    world w;
    open_world(&w, 4);
    for (int i = 0; i < w.params.count; i++) // vectors that are not zero or one
        for (int k = 0; k < w.params.rows[i].e * w.params.rows[i].cols; k++)
            if (w.params.rows[i].init != DC_INIT_XAVIER)
                w.params.slabs.live[w.params.rows[i].offset + k] += (dc_real)(0.2 * cos(i + 5 * k));
    check_net(&w, "critic", MEMBERS);
    check_net(&w, "actor", 1);
    check_net(&w, "low_actor", 1);
    dc_params_free(&w.params);
}

// Widths of their own: of ReLU, and none, where a gain of 0 leaves the bias alone, whatever comes in.
static void test_own_widths(void **state) {
    (void)state;
    static const dc_int_list own = {1, {7}}, none = {0};
    world w = {0};
    dc_text text;
    dc_nets_add(&w.nets, (dc_net){.name = "short",
                                  .kind = DC_NET_RELU,
                                  .in = OBS,
                                  .out = ACT,
                                  .hidden = &own,
                                  .policy = true});
    dc_nets_add(&w.nets, (dc_net){.name = "bias",
                                  .kind = DC_NET_PLAIN,
                                  .in = 1,
                                  .out = ACT,
                                  .hidden = &none,
                                  .scaled = true,
                                  .policy = true});
    dc_nets_add(&w.nets, (dc_net){.name = "critic", .in = OBS, .out = 1, .target = true});
    dc_nets_place(&w.nets, &w.params, &hidden);
    assert_int_equal(dc_params_alloc(&w.params, 7), DC_OK);
    assert_int_equal(w.params.count, 4 + 2 + 10);
    assert_true(most(&w, "bias/0/w") <= 0 && most(&w, "bias/0/b") <= 0);
    for (int k = 0; k < ACT; k++)
        w.params.slabs.live[dc_params_find(&w.params, "bias/0/b")->offset + k] = (dc_real)(k - 1);
    check_net(&w, "short", 1);
    check_net(&w, "bias", 1);
    check_net(&w, "critic", 1);
    dc_text_init(&text);
    dc_nets_describe(&w.nets, &text);
    assert_string_equal(text.bytes, "short relu 1 x (5,7,3); bias plain 1 x (1,3); "
                                    "critic mlp 1 x (5,12,9,1) target");
    dc_text_fini(&text);
    dc_params_free(&w.params);
}

// A trained number is trained: the gradient of x (2 x + 3) lies in its place of the slab.
static void test_scalar(void **state) {
    (void)state;
    world w;
    dc_graph g;
    dc_exec exec;
    open_world(&w, 5);
    int64_t at = dc_params_find(&w.params, "lagrange/0/b")->offset;
    w.params.slabs.live[at] = (dc_real)1.5;
    assert_int_equal(dc_graph_init(&g), DC_OK);
    dc_ref x = dc_net_scalar(&g, &w.nets, "lagrange", DC_LIVE);
    dc_ref loss = dc_mean(&g, "loss", dc_mul(&g, x, dc_affine(&g, x, 2, 3)));
    assert_int_equal(dc_graph_finish(&g, loss), DC_OK);
    assert_int_equal(dc_exec_init(&exec, &g, &w.params.slabs, NULL), DC_OK);
    dc_exec_run(&exec, &dc_backend_cpu);
    assert_true(fabs((double)*dc_value(&exec, loss).p - 1.5 * 6) < 1e-6);
    assert_true(fabs((double)w.params.slabs.grad[at] - (4 * 1.5 + 3)) < 1e-6);
    dc_exec_fini(&exec);
    dc_graph_fini(&g);
    dc_params_free(&w.params);
}

static void test_describe(void **state) {
    (void)state;
    world w;
    dc_text text;
    open_world(&w, 6);
    dc_text_init(&text);
    dc_nets_describe(&w.nets, &text);
    assert_int_equal(dc_text_status(&text), DC_OK);
    assert_string_equal(text.bytes, "actor plain 1 x (5,12,9,3); rep mlp 1 x (10,12,9,4); "
                                    "critic mlp 2 x (8,12,9,1) target; lagrange scalar 1 x (1,1); "
                                    "low_actor mlp 1 x (9,12,9,3); scale scalar 1 x (1,1) target");
    dc_text_fini(&text);
    dc_params_free(&w.params);
}

// As many networks as there may be, with as many layers as an option can name, fit the table of weights.
static void test_most(void **state) {
    (void)state;
    static const char names[DC_NETS_MAX + 1] = "abcdefghijkl";
    char name[DC_NETS_MAX][2] = {{0}};
    dc_int_list deep = {.count = DC_LIST_MAX};
    static world w;
    w = (world){0};
    for (int i = 0; i < DC_LIST_MAX; i++)
        deep.v[i] = 1;
    for (int i = 0; i < DC_NETS_MAX; i++) {
        name[i][0] = names[i];
        dc_nets_add(&w.nets, (dc_net){.name = name[i], .in = 1, .out = 1});
    }
    dc_nets_place(&w.nets, &w.params, &deep);
    assert_int_equal(w.params.count, DC_NETS_MAX * (4 * DC_LIST_MAX + 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_no_policy),
        cmocka_unit_test(test_find),   cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_gain),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_scalar), cmocka_unit_test(test_describe),
        cmocka_unit_test(test_most),   cmocka_unit_test(test_own_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
