// Graphs on the GPU against the CPU: every op by itself, networks of many shapes, and what no agent has yet. Skipped where
// there is no GPU.
#include "op_cases.h"

#include "backend/cuda/cuda.h"

#include <time.h>

enum { ROWS = 640, OTHERS = 200, COLUMNS = 9 };

static dc_cuda *cuda; // NULL: none
static uint64_t fresh;

static int set_up(void **state) {
    (void)state;
    fresh = (uint64_t)time(NULL);
    if (dc_cuda_open(&cuda) != DC_OK) printf("%s\n", dc_error());
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dc_cuda_close(cuda);
    return 0;
}

static uint16_t to_bf16(float x) { // to the nearest, or even
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void send_input(const dc_program *p, const rig *t, dc_ref input) {
    dc_tensor v = dc_value(&t->exec, input);
    dc_cuda_input to = dc_program_input(p, input);
    size_t width = to.half ? sizeof(uint16_t) : sizeof(float),
           numbers = (size_t)v.rows * (size_t)to.ld;
    void *raw = calloc(numbers, width);
    assert_non_null(raw);
    for (int r = 0; r < v.rows; r++)
        for (int c = 0; c < v.cols; c++) {
            size_t at = (size_t)r * (size_t)to.ld + (size_t)c;
            float x = v.p[(size_t)r * (size_t)v.cols + (size_t)c];
            if (to.half)
                ((uint16_t *)raw)[at] = to_bf16(x);
            else
                ((float *)raw)[at] = x;
        }
    assert_int_equal(dc_cuda_put(cuda, to.p, raw, numbers * width), DC_OK);
    free(raw);
}

static const double lr = 3e-4, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, tau = 0.005;

// Weights from `policy` on may be updated after the others.
static dc_program *compile(const rig *t, int64_t policy, dc_precision precision) {
    const dc_slabs *s = &t->params.slabs;
    dc_program_spec spec = {.graph = &t->graph,
                            .size = s->size,
                            .ema_size = s->ema_size,
                            .precision = precision,
                            .lr = lr,
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .eps = eps,
                            .tau = tau,
                            .policy_first = policy};
    dc_program *p;
    if (dc_program_new(&p, cuda, &spec) != DC_OK) fail_msg("%s", dc_error());
    const dc_slabs *there = dc_program_slabs(p);
    size_t bytes = (size_t)s->size * sizeof(float);
    assert_int_equal(dc_cuda_put(cuda, there->live, s->live, bytes), DC_OK);
    assert_int_equal(dc_cuda_put(cuda, there->ema, s->ema, bytes), DC_OK);
    assert_int_equal(dc_program_refresh(p), DC_OK);
    return p;
}

// Copy of numbers that lie there.
static float *fetch(const float *there, int64_t count) {
    size_t bytes = (size_t)count * sizeof(float);
    float *here = malloc(bytes);
    assert_non_null(here);
    if (dc_cuda_get(cuda, here, there, bytes) != DC_OK) fail_msg("%s", dc_error());
    return here;
}

static float *gradients(dc_program *p, int64_t size) {
    assert_int_equal(dc_program_gradients(p), DC_OK);
    return fetch(dc_program_slabs(p)->grad, size);
}

// ---- ops ----

// Loss and gradients of every op's case. In float, so the CPU is no more exact than the GPU.
static void test_ops(void **state) {
    (void)state;
    if (!cuda) skip();
    for (int i = 0; i < OP_CASES; i++) {
        const op_case *c = &op_cases[i];
        rig t;
        op_build(&t, c);
        print_message("%s\n", dc_op_name(c->op));
        run(&t);
        dc_program *p = compile(&t, 0, DC_FP32);
        float *grad = gradients(p, t.params.slabs.size), loss;
        assert_int_equal(dc_program_value(p, t.graph.loss, &loss), DC_OK);
        assert_true(fabsf(loss - *dc_value(&t.exec, t.graph.loss).p) < 1e-5f);
        for (int k = 0; k < c->count; k++) {
            const dc_param_row *row = &t.params.rows[k];
            if (c->trained >> k & 1)
                assert_near(grad + row->offset, t.params.slabs.grad + row->offset,
                            (int64_t)row->e * row->rows * row->cols, 1e-5);
        }
        free(grad);
        dc_program_free(p);
        rig_close(&t);
    }
}

// ---- networks ----

typedef struct networks { // a graph of some, and what it reads and makes beside gradients
    rig rig;
    char name[96];
    dc_ref in[3], out[3];
    int ins, outs;
    int64_t policy; // first weight of a policy; 0: there is none
    double room;    // times what a network alone may be off
} networks;

typedef struct form {
    const char *name;
    dc_precision precision;
    double tolerance;
    int few; // a tensor of fewer numbers may be a small one by chance, and has four times the room
} form;

enum { FORMS = 3 };
static const form forms[FORMS] = {
    {"fp32", DC_FP32, 1e-5, 0}, {"tf32", DC_TF32, 3e-3, 0}, {"bf16", DC_BF16, 2e-2, 0}};
// Up to four layers forward and back, all that lies between them rounded to 8 bits.
static const form deep_forms[FORMS] = {
    {"fp32", DC_FP32, 1e-5, 32}, {"tf32", DC_TF32, 3e-3, 32}, {"bf16", DC_BF16, 3e-2, 32}};

typedef struct worst { // of all that was compared: off as a share of what is allowed
    double share, off;
    const char *name;
} worst;

// ||x - y|| / ||y||.
static void note(worst *w, const char *name, const float *x, const float *y, int64_t count,
                 double tolerance) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    double off = sqrt(error / size), share = off / tolerance;
    if (!isfinite(off)) share = INFINITY;
    if (share > w->share) *w = (worst){share, off, name};
}

static double room(const networks *n, const form *f, int64_t count) {
    return (count < f->few ? 4 : 1) * n->room * f->tolerance;
}

static void note_value(worst *w, const networks *n, dc_program *p, dc_ref r, const form *f) {
    dc_tensor v = dc_value(&n->rig.exec, r);
    int64_t count = (int64_t)v.e * v.rows * v.cols;
    float *got = calloc((size_t)count, sizeof *got);
    assert_non_null(got);
    assert_int_equal(dc_program_value(p, r, got), DC_OK);
    note(w, n->rig.graph.nodes[r].name, got, v.p, count, room(n, f, count));
    free(got);
}

static void note_slab(worst *w, const char *name, const float *there, const float *wanted,
                      int64_t count) {
    float *got = fetch(there, count);
    note(w, name, got, wanted, count, 1e-6);
    free(got);
}

// The first step of Adam and EMA, from this gradient, and the weights as layers read them afterwards.
static void check_step(const networks *n, dc_program *p, const float *grad) {
    const dc_slabs *s = &n->rig.params.slabs, *there = dc_program_slabs(p);
    worst off = {.name = "nothing"};
    size_t count = (size_t)s->size, bytes = count * sizeof(float);
    float *live = malloc(bytes), *ema = malloc(bytes), *m = malloc(bytes), *v = malloc(bytes);
    assert_true(live && ema && m && v);
    for (size_t i = 0; i < count; i++) {
        double g = grad[i], first = (1 - beta1) * g, second = (1 - beta2) * g * g;
        m[i] = (float)first;
        v[i] = (float)second;
        live[i] =
            (float)(s->live[i] - lr / (1 - beta1) * first / (sqrt(second / (1 - beta2)) + eps));
        ema[i] = (float)(tau * s->live[i] + (1 - tau) * s->ema[i]);
    }
    assert_int_equal(dc_program_step(p, NULL), DC_OK);
    note_slab(&off, "live", there->live, live, s->size);
    note_slab(&off, "m", there->m, m, s->size);
    note_slab(&off, "v", there->v, v, s->size);
    if (s->ema_size) note_slab(&off, "ema", there->ema, ema, s->ema_size);
    if (off.share > 1) fail_msg("%s: %s is off by %.1e after a step", n->name, off.name, off.off);
    float *after = gradients(p, s->size);
    assert_int_equal(dc_program_refresh(p), DC_OK); // panels once more, from the weights
    float *again = gradients(p, s->size);
    assert_memory_equal(after, again, bytes);
    for (void **f = (void *[]){live, ema, m, v, after, again, NULL}; *f; f++)
        free(*f);
}

// Networks of equal layers run as a whole on such GPUs, and then it can be said how many of their rows are wanted.
static void assert_whole(const networks *n, const dc_program *p, const form *f, bool whole) {
    bool hopper = strstr(dc_cuda_name(cuda), "H100") || strstr(dc_cuda_name(cuda), "H200");
    for (int i = 0; hopper && i < n->ins; i++)
        assert_int_equal(dc_program_used(p, n->in[i]) != NULL, whole && f->precision != DC_FP32);
}

static void compare(const networks *n, const form *f, bool whole) {
    const rig *t = &n->rig;
    worst values = {.name = "nothing"}, weights = values;
    dc_program *p = compile(t, n->policy, f->precision);
    for (int i = 0; i < n->ins; i++)
        send_input(p, t, n->in[i]);
    float *grad = gradients(p, t->params.slabs.size);
    for (int i = 0; i < t->params.count; i++) {
        const dc_param_row *row = &t->params.rows[i];
        int64_t count = (int64_t)row->e * row->rows * row->cols;
        note(&weights, row->name, grad + row->offset, grad_of(t, row->name), count,
             room(n, f, count));
    }
    note_value(&values, n, p, t->graph.loss, f);
    for (int i = 0; i < n->outs; i++)
        note_value(&values, n, p, n->out[i], f);
    printf("%-62s %s: gradients within %.1e (%s), values %.1e (%s)\n", n->name, f->name,
           weights.off, weights.name, values.off, values.name);
    assert_whole(n, p, f, whole);
    assert_true(weights.share <= 1 && values.share <= 1);
    check_step(n, p, grad);
    free(grad);
    dc_program_free(p);
}

static void compare_all(networks *n, const form *some, bool whole) {
    run(&n->rig);
    for (int f = 0; f < FORMS; f++)
        compare(n, &some[f], whole);
    rig_close(&n->rig);
}

// All that two uses of a network give its weights is added up.
static void test_network_used_twice(void **state) {
    (void)state;
    if (!cuda) skip();
    static const dc_int_list hidden[] = {{2, {128, 128}}, {2, {60, 100}}, {3, {512, 512, 512}}};
    for (int h = 0; h < 3; h++) {
        networks n = {.ins = 2, .room = 1};
        rig *t = &n.rig;
        rig_open(t, 2, COLUMNS, &hidden[h]);
        dc_graph *g = &t->graph;
        n.in[0] = dc_input(g, "x", ROWS, COLUMNS);
        n.in[1] = dc_input(g, "others", OTHERS, COLUMNS);
        dc_ref a = dc_mlp_apply(g, &t->net, n.in[0], DC_LIVE),
               b = dc_mlp_apply(g, &t->net, n.in[1], DC_LIVE);
        dc_ref loss = dc_add(g, dc_mean(g, "squares", dc_mul(g, a, a)), dc_mean(g, "plain", b));
        rig_finish(t, loss, 6, 0);
        fill(t, n.in[0], 33);
        fill(t, n.in[1], 34);
        snprintf(n.name, sizeof n.name, "used twice, %d wide", (int)hidden[h].v[0]);
        compare_all(&n, forms, false);
    }
}

typedef struct net_case {
    int e, in, out, act; // act: columns that another network writes; 0: none does
    dc_int_list hidden;
    int rows, lo, hi; // rows [lo, hi) are trained; lo begins a piece, and not always a tile
} net_case;

static const net_case net_cases[] = {
    {1, 9, 1, 0, {1, {256}}, 75, 0, 75},
    {2, 33, 1, 0, {3, {256, 256, 256}}, 1100, 64, 1100}, // dW by teams of four blocks
    {1, 71, 21, 0, {2, {512, 512}}, 800, 192, 789},      // by two
    {2, 130, 1, 5, {3, {512, 512, 512}}, 520, 0, 520},
    {1, 200, 5, 0, {2, {1024, 1024}}, 200, 64, 191},
    {2, 92, 1, 21, {4, {1024, 1024, 1024, 1024}}, 140, 0, 140},
    {2, 40, 1, 8, {4, {256, 256, 256, 256}}, 333, 192, 300},
};
enum { NET_CASES = sizeof net_cases / sizeof net_cases[0] };

// A policy's gradient goes through twice as many layers. Rounding the weights alone moves the CPU's by up to 4.6e-3 in TF32
// and 3.6e-2 in bf16; a critic's by 9e-4 and 7e-3.
enum { POLICY_ROOM = 3 };

// The mean square of trained rows. They are far from zero, so that sums over them are no small differences.
static dc_ref far_squares(dc_graph *g, const char *name, const net_case *c, dc_ref y) {
    dc_ref off = dc_affine(g, dc_rows(g, y, c->lo, c->hi - c->lo), 1, 8);
    return dc_mean(g, name, dc_mul(g, off, off));
}

static dc_ref new_output(networks *n, dc_ref y) {
    dc_keep(&n->rig.graph, y);
    return n->out[n->outs++] = y;
}

static dc_ref new_input(networks *n, const char *name, int rows, int cols) {
    return n->in[n->ins++] = dc_input(&n->rig.graph, name, rows, cols);
}

// As an agent has it: a critic is trained toward its target, a policy by what the critic says about its actions.
static dc_ref build_networks(networks *n, dc_mlp *actor, const net_case *c) {
    dc_graph *g = &n->rig.graph;
    dc_mlp *critic = &n->rig.net;
    dc_ref x = new_input(n, "x", c->rows, c->in), others = new_input(n, "others", c->rows, c->in);
    dc_ref y = new_output(n, dc_mlp_apply(g, critic, x, DC_LIVE)),
           target = dc_mlp_apply(g, critic, others, DC_EMA);
    dc_ref loss = far_squares(g, "loss", c, dc_add(g, y, dc_stop(g, target)));
    if (!c->act) return loss;
    dc_ref seen = new_input(n, "seen", c->rows, c->in - c->act);
    dc_ref action = new_output(n, dc_mlp_apply(g, actor, seen, DC_LIVE));
    dc_ref own = dc_splice(g, "own", others, dc_affine(g, action, 0.5, 0), (c->in - c->act) / 2);
    dc_ref q = new_output(n, dc_mlp_apply(g, critic, own, DC_STOPPED));
    return dc_add(g, loss, far_squares(g, "gain", c, q));
}

static void open_networks(networks *n, const net_case *c, uint64_t seed) {
    rig *t = &n->rig;
    dc_mlp actor = {0};
    *n = (networks){.room = c->act ? POLICY_ROOM : 1};
    dc_mlp_declare(&t->net, &t->params,
                   &(dc_mlp_spec){"critic", c->e, c->in, c->out, &c->hidden, 1, true, true});
    int critics = t->params.count;
    if (c->act)
        dc_mlp_declare(
            &actor, &t->params,
            &(dc_mlp_spec){"actor", 1, c->in - c->act, c->act, &c->hidden, 1, true, false});
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    rig_finish(t, build_networks(n, &actor, c), seed, 4);
    if (c->act) n->policy = t->params.rows[critics].offset;
    for (int64_t i = 0; i < t->params.slabs.ema_size; i++) // so that it is something else
        t->params.slabs.ema[i] *= 0.9f;
    for (int i = 0; i < n->ins; i++)
        fill(t, n->in[i], seed + 10 + (uint64_t)i);
    snprintf(n->name, sizeof n->name, "%d to %d%s, %d x %d wide, e %d, rows %d to %d of %d", c->in,
             c->out, c->act ? " with policy" : "", c->hidden.count, (int)c->hidden.v[0], c->e,
             c->lo, c->hi, c->rows);
}

// Networks of widths that run as a whole, each with others of its kind in one graph.
static void test_networks(void **state) {
    (void)state;
    if (!cuda) skip();
    printf("seed %llu\n", (unsigned long long)fresh);
    for (int i = 0; i < NET_CASES; i++) {
        networks n;
        open_networks(&n, &net_cases[i], fresh + 100 * (uint64_t)i);
        compare_all(&n, deep_forms, true);
    }
}

static dc_ref new_weight(rig *t, const char *name, int rows, int cols, dc_init init) {
    int64_t offset = dc_params_add(&t->params, name, 1, rows, cols, init, 1, true)->offset;
    return dc_param(&t->graph, name, 1, rows, cols, offset, DC_LIVE);
}

static dc_ref new_linear(rig *t, const char *w, const char *b, dc_ref x, int in, int out) {
    return dc_linear(&t->graph, w, x, new_weight(t, w, in, out, DC_INIT_XAVIER),
                     new_weight(t, b, 1, out, DC_INIT_ZERO));
}

// A layer that two heads read is inside of no network.
static void test_two_heads(void **state) {
    (void)state;
    if (!cuda) skip();
    enum { IN = 24, WIDE = 256 };
    static const net_case rows = {.rows = 150, .hi = 150};
    networks n = {.name = "two heads", .room = 1};
    rig *t = &n.rig;
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_graph *g = &t->graph;
    dc_ref x = new_input(&n, "x", rows.rows, IN), h = new_linear(t, "w", "b", x, IN, WIDE);
    h = dc_gelu_layernorm(g, "norm", h, new_weight(t, "scale", 1, WIDE, DC_INIT_ONE),
                          new_weight(t, "shift", 1, WIDE, DC_INIT_ZERO));
    dc_ref first = new_output(&n, new_linear(t, "first/w", "first/b", h, WIDE, 1)),
           second = new_output(&n, new_linear(t, "second/w", "second/b", h, WIDE, 3));
    dc_ref loss =
        dc_add(g, far_squares(g, "one", &rows, first), far_squares(g, "three", &rows, second));
    printf("seed %llu\n", (unsigned long long)fresh);
    rig_finish(t, loss, fresh, 0);
    fill(t, x, fresh + 10);
    compare_all(&n, forms, false);
}

int main(int argc, char **argv) { // with an argument only the tests that it names: "test_n*"
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops), cmocka_unit_test(test_network_used_twice),
        cmocka_unit_test(test_networks), cmocka_unit_test(test_two_heads)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
