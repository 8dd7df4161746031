// Graphs on the GPU against the CPU: every op by itself, networks of many shapes, and what no agent has yet. Skipped where
// there is no GPU.
#include "op_cases.h"

#include "backend/cuda/cuda.h"
#include "base/text.h"
#include "nn/encoder.h"

#include <time.h>

enum { ROWS = 640, OTHERS = 200, COLUMNS = 9 };

static dc_cuda *cuda;             // NULL: none
static bool present;              // a GPU
static uint64_t fresh = 20260101; // then a fresh one, unless DCRL_SEED says which

static int set_up(void **state) {
    (void)state;
    present = dc_cuda_open(&cuda) == DC_OK;
    if (!present) printf("%s\n", dc_error());
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
static dc_program *compile_with(const rig *t, int64_t policy, dc_precision precision,
                                const dc_ref *metrics, int metric_count, bool whole_gradients) {
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
                            .policy_first = policy,
                            .metrics = metrics,
                            .metric_count = metric_count,
                            .whole_gradients = whole_gradients};
    dc_program *p;
    if (dc_program_new(&p, cuda, &spec) != DC_OK) fail_msg("%s", dc_error());
    const dc_slabs *there = dc_program_slabs(p);
    size_t bytes = (size_t)s->size * sizeof(float);
    assert_int_equal(dc_cuda_put(cuda, there->live, s->live, bytes), DC_OK);
    assert_int_equal(dc_cuda_put(cuda, there->ema, s->ema, bytes), DC_OK);
    assert_int_equal(dc_program_refresh(p), DC_OK);
    return p;
}

static dc_program *compile(const rig *t, int64_t policy, dc_precision precision) {
    return compile_with(t, policy, precision, NULL, 0, false);
}

static dc_cuda_state state_of(const dc_program *p) {
    dc_cuda_state state;
    assert_int_equal(dc_cuda_get(cuda, &state, dc_program_state(p), sizeof state), DC_OK);
    return state;
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

// Shapes that no group takes, or no kernel of few columns.
static const op_case large_cases[] = {
    {DC_OP_add, 2, {{2, 700, 100}, {1, 700, 100}}, 0, 0, 3, -1, 1},
    {DC_OP_mul, 2, {{1, 1000, 67}, {3, 1000, 67}}, 0, 0, 3, -1, 1},
    {DC_OP_affine, 1, {{9, 20, 3}}, 1.7, -0.3, 1, -1, 1},
    {DC_OP_within, 3, {{1, 1000, 68}, {1, 1000, 68}, {2, 1000, 68}}, 0.5, 0, 4, -1, 1},
    {DC_OP_sigmoid, 1, {{2, 1000, 67}}, 0, 0, 1, -4, 4},
    {DC_OP_exp, 1, {{1, 512, 256}}, 0, 0, 1, -2, 1},
    {DC_OP_tanh, 1, {{1, 512, 256}}, 0, 0, 1, -3, 3},
    {DC_OP_abs, 1, {{1, 512, 255}}, 0, 0, 1, -1, 1},
    {DC_OP_columns, 1, {{2, 300, 70}}, 30, 33, 1, -1, 1},
    {DC_OP_ensemble_min, 1, {{10, 9, 2}}, 0, 0, 1, -1, 1},
    {DC_OP_expectile, 3, {{2, 300, 300}, {1, 300, 300}, {1, 300, 300}}, 0.7, 0, 3, 0.1, 1},
    {DC_OP_bce, 2, {{2, 300, 300}, {1, 300, 300}}, 0.5, 2, 1, 0.01, 0.99},
    {DC_OP_square, 2, {{1, 300, 300}, {1, 300, 300}}, 1.5, 0, 3, -1, 1},
    {DC_OP_relative_mean, 1, {{2, 300, 300}}, 0, 0, 1, -1, 1},
    {DC_OP_mean, 1, {{2, 257, 300}}, 0, 0, 1, 0.5, 1},
    {DC_OP_log_likelihood, 2, {{1, 90, 100}, {1, 90, 100}}, 0, 0, 1, 0.1, 1},
    {DC_OP_expected, 2, {{1, 20, 100}, {1, 2000, 1}}, 0, 0, 1, -2, 2},
    {DC_OP_gelu, 1, {{2, 300, 512}}, 0, 0, 1, -3, 3},
    {DC_OP_gelu, 1, {{1, 70, 1030}}, 0, 0, 1, -3, 3},
    {DC_OP_gelu_layernorm, 3, {{2, 40, 1500}, {2, 1, 1500}, {2, 1, 1500}}, 0, 0, 7, -2, 2},
    {DC_OP_linear, 3, {{1, 300, 70}, {2, 70, 90}, {2, 1, 90}}, 0, 0, 7, -1, 1},
    {DC_OP_pair_dot, 2, {{2, 130, 64}, {2, 100, 64}}, 0, 0, 3, -1, 1},
    {DC_OP_row_dot, 2, {{2, 100, 512}, {2, 100, 512}}, 0, 0, 3, -1, 1},
    {DC_OP_iqe, 3, {{1, 100, 512}, {1, 100, 512}, {1, 1, 1}}, 8, 0, 7, -1, 1},
    {DC_OP_iqe, 3, {{1, 30, 64}, {1, 30, 64}, {1, 1, 1}}, 32, 0, 7, -1, 1},
    {DC_OP_iqe, 3, {{1, 30, 64}, {1, 30, 64}, {1, 1, 1}}, 16, 0, 7, -1, 1},
    {DC_OP_linex, 2, {{2, 300, 300}, {2, 300, 300}}, 0.5, 0.9, 1, -1, 1},
    {DC_OP_linex, 2, {{2, 301, 67}, {1, 301, 67}}, 0.5, 0.9, 1, -1, 1},
    {DC_OP_logsumexp, 1, {{2, 100, 700}}, 0, 0, 1, -4, 4},
    {DC_OP_mrn, 2, {{2, 100, 512}, {2, 100, 512}}, 8, DC_MRN_TMD, 3, -1, 1},
    {DC_OP_mrn, 2, {{2, 30, 140}, {2, 30, 140}}, 1, DC_MRN_QRL, 3, -1, 1},
    {DC_OP_mrn_pairs, 2, {{2, 128, 512}, {2, 128, 512}}, 8, DC_MRN_TMD, 3, -1, 1},
    {DC_OP_mrn_pairs, 2, {{2, 150, 200}, {2, 70, 200}}, 2, DC_MRN_TMD, 3, -1, 1},
    {DC_OP_mrn_pairs, 2, {{1, 63, 140}, {1, 129, 140}}, 1, DC_MRN_QRL, 3, -1, 1},
};
enum { LARGE_CASES = sizeof large_cases / sizeof large_cases[0] };

// How an op's inputs lie: as parameters; as some rows of larger ones, of which others are trained by something else; as
// such rows of values (weights stay parameters). In a stack, the first and the last row of the output have no gradient.
typedef enum layout { WHOLE, PARTS, VALUES, LAYOUTS } layout;
static const char *const layout_names[] = {"whole", "parts", "values"};

enum { BEFORE = 2, AFTER = 3 }; // rows of a larger parameter that the op does not see

static dc_ref stacked_input(rig *t, const op_case *c, int i, layout how, dc_ref *loss) {
    dc_graph *g = &t->graph;
    const int *shape = c->shape[i];
    int rows = BEFORE + shape[1] + AFTER;
    char name[16];
    snprintf(name, sizeof name, "x%d", i);
    int64_t offset =
        dc_params_add(&t->params, name, shape[0], rows, shape[2], DC_INIT_ZERO, 0, true)->offset;
    dc_ref p = dc_param(g, name, shape[0], rows, shape[2], offset, DC_LIVE);
    dc_ref other = dc_rows(g, p, rows - AFTER - 1, AFTER + 1); // one row is the op's too
    *loss = dc_add(g, *loss, dc_mean(g, "square", dc_mul(g, other, other)));
    bool weight = i > 0 && (c->op == DC_OP_linear || c->op == DC_OP_gelu_layernorm);
    if (how == PARTS || weight) return dc_rows(g, p, BEFORE, shape[1]);
    return dc_rows(g, dc_affine(g, p, 0.9, 0), BEFORE, shape[1]);
}

static void build_stack(rig *t, const op_case *c, layout how) {
    *t = (rig){0};
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_graph *g = &t->graph;
    int64_t offset = dc_params_add(&t->params, "one", 1, 1, 1, DC_INIT_ZERO, 0, true)->offset;
    dc_ref in[3], loss = dc_mean(g, "one", dc_param(g, "one", 1, 1, 1, offset, DC_LIVE));
    for (int i = 0; i < c->count; i++)
        in[i] = stacked_input(t, c, i, how, &loss);
    dc_ref y = dc_apply(g, c->op, "op", in, c->count, c->a, c->b);
    const dc_node *n = &g->nodes[y];
    if (n->rows > 2) y = dc_rows(g, y, 1, n->rows - 2);
    n = &g->nodes[y];
    if (n->e * n->rows * n->cols > 1) {
        offset =
            dc_params_add(&t->params, "w", n->e, n->rows, n->cols, DC_INIT_ZERO, 0, true)->offset;
        y = dc_mul(g, y, dc_param(g, "w", n->e, n->rows, n->cols, offset, DC_STOPPED));
        y = dc_mean(g, "part", y);
    }
    loss = dc_add(g, loss, dc_affine(g, y, OP_WEIGHT, 0));
    assert_int_equal(dc_graph_finish(g, loss), DC_OK);
    assert_int_equal(dc_params_alloc(&t->params, 0), DC_OK);
    op_fill(t, c);
    assert_int_equal(dc_exec_init(&t->exec, g, &t->params.slabs, NULL), DC_OK);
}

static void fail_op(const op_case *c, layout how, dc_precision precision, const char *what,
                    double off) {
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    const int *s = c->shape[0];
    fail_msg("%s (%d, %d, %d) %s, %s: %s is off by %.1e", dc_op_name(c->op), s[0], s[1], s[2],
             layout_names[how], names[precision], what, off);
}

// ||x - y|| / ||y||; 0 for what is 0 in both.
static double distance(const float *x, const float *y, int64_t count) {
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    return error == 0 ? 0 : sqrt(error / size);
}

static void compare_op(const op_case *c, layout how, dc_precision precision) {
    rig t;
    if (how == WHOLE)
        op_build(&t, c);
    else
        build_stack(&t, c, how);
    double want = run(&t), product = precision == DC_FP32 ? 1e-5 : 3e-3;
    double tolerance = dc_rule(c->op)->op_class == DC_CLASS_PRODUCT ? product : 1e-5;
    dc_program *p = compile(&t, 0, precision);
    float *grad = gradients(p, t.params.slabs.size), loss;
    assert_int_equal(dc_program_value(p, t.graph.loss, &loss), DC_OK);
    double off = fabs(loss - want) / (1 + fabs(want));
    if (!(off < tolerance)) fail_op(c, how, precision, "loss", off);
    for (int k = 0; k < t.params.count; k++) {
        const dc_param_row *row = &t.params.rows[k];
        int64_t count = (int64_t)row->e * row->rows * row->cols;
        if (row->name[0] == 'w' || (how == WHOLE && !(c->trained >> k & 1))) continue;
        off = distance(grad + row->offset, t.params.slabs.grad + row->offset, count);
        if (!(off < tolerance)) fail_op(c, how, precision, row->name, off);
    }
    free(grad);
    dc_program_free(p);
    rig_close(&t);
}

static void compare_ops(const op_case *cases, int count) {
    for (int i = 0; i < count; i++)
        for (layout how = WHOLE; how < LAYOUTS; how++)
            for (int precision = DC_FP32; precision <= DC_BF16; precision++)
                compare_op(&cases[i], how, (dc_precision)precision);
}

// Loss and gradients of every op's cases. In float, so the CPU is no more exact than the GPU.
static void test_ops(void **state) {
    (void)state;
    if (!cuda) skip();
    compare_ops(op_cases, OP_CASES);
}

// The same, each by a launch of its own.
static void test_plain_ops(void **state) {
    (void)state;
    if (!cuda) skip();
    dc_cuda_plain_only(true);
    compare_ops(op_cases, OP_CASES);
    dc_cuda_plain_only(false);
}

static void test_large_ops(void **state) {
    (void)state;
    if (!cuda) skip();
    compare_ops(large_cases, LARGE_CASES);
}

// Needs no GPU.
static void test_every_op_has_a_path(void **state) {
    (void)state;
    for (dc_op op = DC_FIRST_COMPUTED; op < DC_OPS; op++)
        if (!dc_cuda_has_op(op)) fail_msg("%s has no CUDA path", dc_op_name(op));
}

static void test_absent_op(void **state) {
    (void)state;
    rig t;
    const op_case c = {DC_OP_relu, 1, {{2, 9, 3}}, 0, 0, 1, -1, 1};
    op_build(&t, &c);
    assert_int_equal(dc_cuda_supports(&t.graph), DC_OK);
    dc_cuda_hide_op(DC_OP_relu, true);
    assert_int_equal(dc_cuda_supports(&t.graph), DC_UNSUPPORTED);
    assert_string_equal(dc_error(), "op relu (node op, shape 2 x 9 x 3) has no CUDA path: use "
                                    "--device cpu");
    if (cuda) {
        dc_program *p;
        dc_program_spec spec = {.graph = &t.graph, .size = t.params.slabs.size};
        assert_int_equal(dc_program_new(&p, cuda, &spec), DC_UNSUPPORTED);
        assert_null(p);
    }
    dc_cuda_hide_op(DC_OP_relu, false);
    assert_int_equal(dc_cuda_supports(&t.graph), DC_OK);
    rig_close(&t);
}

// ---- networks ----

typedef struct networks { // a graph of some, and what it reads and makes beside gradients
    rig rig;
    char name[96];
    dc_ref in[4], out[4];
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
    double norm2 = 0;
    float *live = malloc(bytes), *ema = malloc(bytes), *m = malloc(bytes), *v = malloc(bytes);
    assert_true(live && ema && m && v);
    for (size_t i = 0; i < count; i++) {
        norm2 += (double)grad[i] * (double)grad[i];
        double g = grad[i], first = (1 - beta1) * g, second = (1 - beta2) * g * g;
        m[i] = (float)first;
        v[i] = (float)second;
        live[i] =
            (float)(s->live[i] - lr / (1 - beta1) * first / (sqrt(second / (1 - beta2)) + eps));
        ema[i] = (float)(tau * s->live[i] + (1 - tau) * s->ema[i]);
    }
    assert_int_equal(dc_program_step(p, NULL), DC_OK);
    dc_cuda_state state = state_of(p);
    assert_true(state.bad_step < 0 && state.step == 1);
    assert_true(fabs(state.norm2 - norm2) <= 1e-5 * norm2);
    note_slab(&off, "live", there->live, live, s->size);
    note_slab(&off, "m", there->m, m, s->size);
    note_slab(&off, "v", there->v, v, s->size);
    if (s->ema_size) note_slab(&off, "ema", there->ema, ema, s->ema_size);
    if (off.share > 1) fail_msg("%s: %s is off by %.1e after a step", n->name, off.name, off.off);
    float *after = gradients(p, s->size);
    assert_int_equal(dc_program_refresh(p), DC_OK); // packed weights once more
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
    {2, 33, 1, 0, {3, {256, 256, 256}}, 1100, 64, 1100}, // dW by clusters of four blocks
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

static void open_networks_of(networks *n, const net_case *c, uint64_t seed, bool norm) {
    rig *t = &n->rig;
    dc_mlp actor = {0};
    *n = (networks){.room = c->act ? POLICY_ROOM : 1};
    dc_mlp_declare(&t->net, &t->params,
                   &(dc_mlp_spec){"critic", c->e, c->in, c->out, &c->hidden, 1, norm, true, false});
    int critics = t->params.count;
    if (c->act)
        dc_mlp_declare(
            &actor, &t->params,
            &(dc_mlp_spec){"actor", 1, c->in - c->act, c->act, &c->hidden, 1, norm, false, false});
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    rig_finish(t, build_networks(n, &actor, c), seed, 4);
    if (c->act) n->policy = t->params.rows[critics].offset;
    for (int64_t i = 0; i < t->params.slabs.ema_size; i++) // so that it is something else
        t->params.slabs.ema[i] *= 0.9f;
    for (int i = 0; i < n->ins; i++)
        fill(t, n->in[i], seed + 10 + (uint64_t)i);
    snprintf(n->name, sizeof n->name, "%d to %d%s%s, %d x %d wide, e %d, rows %d to %d of %d",
             c->in, c->out, c->act ? " with policy" : "", norm ? "" : ", no norm", c->hidden.count,
             (int)c->hidden.v[0], c->e, c->lo, c->hi, c->rows);
}

static void open_networks(networks *n, const net_case *c, uint64_t seed) {
    open_networks_of(n, c, seed, true);
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

static const net_case bare_cases[] = {
    // without LayerNorm
    {1, 29, 8, 0, {3, {512, 512, 512}}, 1024, 0, 1024},
    {2, 33, 1, 0, {3, {256, 256, 256}}, 1100, 64, 1100},
    {2, 130, 1, 5, {2, {512, 512}}, 520, 0, 520},
    {1, 200, 5, 0, {2, {1024, 1024}}, 200, 64, 191},
    {2, 40, 1, 8, {1, {256}}, 333, 192, 300},
};
enum { BARE_CASES = sizeof bare_cases / sizeof bare_cases[0] };

static void test_bare_networks(void **state) {
    (void)state;
    if (!cuda) skip();
    for (int i = 0; i < BARE_CASES; i++) {
        networks n;
        open_networks_of(&n, &bare_cases[i], fresh + 100 * (uint64_t)(NET_CASES + i), false);
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

// An encoder of pictures, live and with target weights, and twice with the same ones; in bf16 its convolutions are two
// launches. Rounding makes equals of a pool's numbers, whose gradient then goes to another.
static const form picture_forms[FORMS] = {
    {"fp32", DC_FP32, 1e-3, 0}, {"tf32", DC_TF32, 2e-2, 0}, {"bf16", DC_BF16, 0.2, 0}};

static void test_encoder(void **state) {
    (void)state;
    if (!cuda) skip();
    for (int pictures = 1; pictures <= 2; pictures++) {
        static const net_case rows = {.rows = 140, .lo = 64, .hi = 133};
        dc_picture size = {64, 64, 3};
        networks n = {.name = "encoder", .room = 1};
        rig *t = &n.rig;
        dc_encoder encoder;
        dc_encoder_declare(&encoder, &t->params, "critic", 0, size, pictures, true);
        assert_int_equal(dc_graph_init(&t->graph), DC_OK);
        dc_graph *g = &t->graph;
        dc_ref x = new_input(&n, "x", rows.rows, dc_encoder_cells(&encoder)),
               y = new_input(&n, "y", rows.hi - rows.lo, dc_encoder_cells(&encoder));
        dc_ref a = new_output(&n, dc_encoder_apply(g, &encoder, x, DC_LIVE)),
               b = new_output(&n, dc_encoder_apply(g, &encoder, y, DC_EMA)),
               c = new_output(&n, dc_encoder_apply(g, &encoder, y, DC_LIVE));
        dc_ref loss =
            dc_add(g, far_squares(g, "squares", &rows, a), dc_mean(g, "dot", dc_row_dot(g, b, c)));
        rig_finish(t, loss, fresh, 2);
        fill(t, x, fresh + 1);
        fill(t, y, fresh + 2);
        run(t);
        for (int f = 0; f < FORMS; f++)
            compare(&n, &picture_forms[f], pictures == 1 && picture_forms[f].precision == DC_BF16);
        rig_close(t);
    }
}

// ---- what no network, group or sum at the step's end takes ----

// A network by hand, with LayerNorm or without; names are "name/0/w" and so on.
static dc_ref new_network(rig *t, const char *name, dc_ref x, int in, const dc_int_list *hidden,
                          int out, bool norm) {
    char text[4][40];
    for (int i = 0; i <= hidden->count; i++) {
        int width = i < hidden->count ? (int)hidden->v[i] : out;
        static const char *const parts[] = {"w", "b", "scale", "bias"};
        for (int k = 0; k < 4; k++)
            snprintf(text[k], sizeof text[k], "%s/%d/%s", name, i, parts[k]);
        x = new_linear(t, text[0], text[1], x, in, width);
        if (i == hidden->count) return x;
        in = width;
        if (norm)
            x = dc_gelu_layernorm(&t->graph, text[0], x,
                                  new_weight(t, text[2], 1, width, DC_INIT_ONE),
                                  new_weight(t, text[3], 1, width, DC_INIT_ZERO));
        else
            x = dc_gelu(&t->graph, text[0], x);
    }
    return x;
}

static dc_ref new_number(rig *t, const char *name) {
    return new_weight(t, name, 1, 1, DC_INIT_ZERO);
}

enum { QRL_ROWS = 150, OBS = 9, ACT = 3, LATENT = 64, IQE_GROUP = 8 };

// Gradients of iqe jump where another interval comes to close a piece, so that rounding shows in few large differences.
static const form rough_forms[FORMS] = {
    {"fp32", DC_FP32, 3e-4, 0}, {"tf32", DC_TF32, 0.1, 0}, {"bf16", DC_BF16, 0.4, 0}};

// QRL's losses: numbers that are trained, multiplied and held; a network that is used three times, whose 64 outputs are
// read by rows and by another network.
static dc_ref build_qrl(networks *n, dc_mlp *phi, dc_mlp *dynamics, dc_ref *over_mean,
                        dc_ref *lam) {
    rig *t = &n->rig;
    dc_graph *g = &t->graph;
    dc_ref s = new_input(n, "s", QRL_ROWS, OBS), next = new_input(n, "next", QRL_ROWS, OBS),
           goal = new_input(n, "goal", QRL_ROWS, OBS),
           act = new_input(n, "act", QRL_ROWS, LATENT + ACT);
    dc_ref rho = new_number(t, "rho"), l = new_number(t, "l");
    dc_ref at_s = dc_mlp_apply(g, phi, s, DC_LIVE), at_next = dc_mlp_apply(g, phi, next, DC_LIVE),
           at_goal = dc_mlp_apply(g, phi, goal, DC_LIVE);
    dc_ref far = new_output(n, dc_iqe(g, at_s, at_goal, rho, IQE_GROUP)),
           near = new_output(n, dc_iqe(g, at_s, at_next, rho, IQE_GROUP));
    dc_ref apart = dc_mean(g, "apart", dc_softplus(g, dc_affine(g, far, -0.5, 2)));
    dc_ref over = dc_relu(g, "over", dc_affine(g, near, 1, -0.5));
    *over_mean = dc_mean(g, "over", dc_mul(g, over, over));
    *lam = dc_exp(g, l);
    dc_ref held = dc_mul(g, dc_stop(g, *lam), *over_mean);
    dc_ref pull = dc_mul(g, *lam, dc_affine(g, dc_stop(g, *over_mean), -1, 0.05));
    dc_ref step = dc_mlp_apply(g, dynamics, dc_splice(g, "pair", act, at_s, 0), DC_LIVE);
    dc_ref z = new_output(n, dc_add(g, at_s, step));
    dc_ref there = dc_mean(g, "there", dc_iqe(g, at_next, z, rho, IQE_GROUP)),
           back = dc_mean(g, "back", dc_iqe(g, z, at_next, rho, IQE_GROUP));
    dc_ref loss = dc_add(g, dc_affine(g, apart, 3, 0), dc_add(g, held, pull));
    return dc_add(g, loss, dc_affine(g, dc_add(g, there, back), 0.5, 0));
}

static void open_qrl(networks *n, dc_ref *over_mean, dc_ref *lam) {
    static const dc_int_list hidden = {2, {100, 60}};
    rig *t = &n->rig;
    dc_mlp dynamics;
    *n = (networks){.name = "QRL's losses", .room = 1};
    dc_mlp_declare(&t->net, &t->params,
                   &(dc_mlp_spec){"phi", 1, OBS, LATENT, &hidden, 1, true, true, false});
    dc_mlp_declare(
        &dynamics, &t->params,
        &(dc_mlp_spec){"dynamics", 1, LATENT + ACT, LATENT, &hidden, 1, true, true, false});
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    rig_finish(t, build_qrl(n, &t->net, &dynamics, over_mean, lam), fresh, 2);
    for (int i = 0; i < n->ins; i++)
        fill(t, n->in[i], fresh + 10 + (uint64_t)i);
}

static void test_qrl(void **state) {
    (void)state;
    if (!cuda) skip();
    networks n;
    dc_ref over, lam;
    printf("seed %llu\n", (unsigned long long)fresh);
    open_qrl(&n, &over, &lam);
    compare_all(&n, rough_forms, false);
}

// Metrics that launches make and that sums at the step's end make; a parameter that an op reads itself stops the run.
static void test_numbers(void **state) {
    (void)state;
    if (!cuda) skip();
    networks n;
    dc_ref metrics[3];
    open_qrl(&n, &metrics[1], &metrics[2]);
    rig *t = &n.rig;
    metrics[0] = t->graph.loss;
    double loss = run(t), lam = exp(t->params.slabs.live[dc_params_find(&t->params, "l")->offset]);
    dc_program *p = compile_with(t, 0, DC_FP32, metrics, 3, false);
    for (int i = 0; i < n.ins; i++)
        send_input(p, t, n.in[i]);
    assert_int_equal(dc_program_step(p, NULL), DC_OK);
    dc_cuda_state s = state_of(p);
    assert_true(s.step == 1 && fabs(s.sums[0] - loss) < 1e-3 && fabs(s.sums[2] - lam) < 1e-5);
    assert_true(s.sums[1] > 0 && fabs(s.sums[3] - sqrt(s.norm2)) < 1e-6);
    float big = 100, before, after; // its exp is Inf in float
    const dc_slabs *there = dc_program_slabs(p);
    int64_t l = dc_params_find(&t->params, "l")->offset,
            rho = dc_params_find(&t->params, "rho")->offset;
    assert_int_equal(dc_cuda_put(cuda, there->live + l, &big, sizeof big), DC_OK);
    assert_int_equal(dc_cuda_get(cuda, &before, there->live + rho, sizeof before), DC_OK);
    assert_int_equal(dc_program_step(p, NULL), DC_OK);
    assert_int_equal(dc_cuda_get(cuda, &after, there->live + rho, sizeof after), DC_OK);
    assert_true(state_of(p).bad_step == 2 && before == after);
    dc_program_free(p);
    rig_close(t);
}

// Parameters that ops read themselves, before and after the first weight of a policy: their gradients, which launches write,
// count in the norm, and those before are updated early.
static void test_own_parameters(void **state) {
    (void)state;
    if (!cuda) skip();
    enum { OWN_ROWS = 90 };
    networks n = {.name = "own parameters", .room = 1};
    rig *t = &n.rig;
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_graph *g = &t->graph;
    dc_ref x = new_input(&n, "x", OWN_ROWS, OBS), y = new_input(&n, "y", OWN_ROWS, 3);
    dc_ref table = new_weight(t, "table", OWN_ROWS, 3, DC_INIT_XAVIER), l = new_number(t, "l");
    dc_ref out = new_output(&n, new_linear(t, "value/0/w", "value/0/b", x, OBS, 3));
    int policy = t->params.count;
    dc_ref scale = new_number(t, "scale"),
           own = new_output(&n, new_linear(t, "policy/0/w", "policy/0/b", x, OBS, 3));
    dc_ref error = dc_square(g, "error", dc_add(g, out, dc_mul(g, table, y)), y, 1);
    dc_ref loss = dc_mul(g, dc_exp(g, l), error);
    dc_ref unit = dc_normalise(g, dc_add(g, own, dc_affine(g, y, 1, 2)));
    dc_ref near = dc_row_dot(g, unit, dc_stop(g, out)); // alone its mean may be next to nothing
    dc_ref worth = dc_mean(g, "worth", dc_affine(g, near, 1, 10));
    loss = dc_add(g, loss, dc_mul(g, dc_softplus(g, scale), worth));
    rig_finish(t, loss, fresh, 1);
    n.policy = t->params.rows[policy].offset;
    fill(t, x, fresh + 1);
    fill(t, y, fresh + 2);
    compare_all(&n, forms, false);
}

// CRL: every row against every row, more numbers than a group takes, by two members; then its policy's loss.
static void test_crl(void **state) {
    (void)state;
    if (!cuda) skip();
    static const dc_int_list hidden = {2, {300, 300}};
    enum { CRL_ROWS = 260 };
    networks n = {.name = "CRL's losses", .room = 1};
    rig *t = &n.rig;
    dc_mlp psi;
    dc_mlp_declare(&t->net, &t->params,
                   &(dc_mlp_spec){"phi", 2, OBS, 40, &hidden, 1, true, true, false});
    dc_mlp_declare(&psi, &t->params,
                   &(dc_mlp_spec){"psi", 2, OBS, 40, &hidden, 1, true, true, false});
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_graph *g = &t->graph;
    dc_ref s = new_input(&n, "s", CRL_ROWS, OBS), goal = new_input(&n, "goal", CRL_ROWS, OBS),
           eye = new_input(&n, "eye", CRL_ROWS, CRL_ROWS);
    dc_ref x = dc_mlp_apply(g, &t->net, s, DC_LIVE), y = dc_mlp_apply(g, &psi, goal, DC_LIVE);
    dc_ref all = new_output(&n, dc_affine(g, dc_pair_dot(g, "f", x, y), 0.2, 0));
    dc_ref own = new_output(&n, dc_ensemble_mean(g, dc_row_dot(g, x, y)));
    dc_ref unit = dc_normalise(g, x), far = dc_mean(g, "square", dc_row_square(g, unit, y));
    dc_ref loss = dc_add(g, dc_bce(g, "nce", all, eye, 0.5, 2), dc_mean(g, "own", own));
    rig_finish(t, dc_add(g, loss, dc_affine(g, far, 0.01, 0)), fresh, 2);
    fill(t, s, fresh + 1);
    fill(t, goal, fresh + 2);
    for (int i = 0; i < CRL_ROWS; i++)
        dc_value(&t->exec, eye).p[i * CRL_ROWS + i] = 1;
    compare_all(&n, deep_forms, false);
}

static const char *line_of(const dc_text *text, const char *name) {
    const char *found = strstr(text->bytes, name);
    if (!found) fail_msg("no line of %s in: %s", name, text->bytes);
    return found;
}

static void assert_told(const dc_program *p, const char *name, const char *path,
                        const char *reason) {
    dc_text text;
    dc_text_init(&text);
    assert_int_equal(dc_program_describe(p, &text), DC_OK);
    printf("%s", text.bytes);
    const char *line = line_of(&text, name);
    bool hopper = strstr(dc_cuda_name(cuda), "H100") || strstr(dc_cuda_name(cuda), "H200");
    assert_true(!hopper || (strstr(line, path) && strstr(line, reason)));
    dc_text_fini(&text);
}

// Three steps of Adam, against the CPU: how far weights are from each other, as a share of how far they went.
static void train_beside_cpu(const dc_int_list *hidden, bool norm, const form *f) {
    enum { STEPS = 3, TRAIN_ROWS = 200 };
    networks n = {.room = 1};
    rig *t = &n.rig;
    assert_int_equal(dc_graph_init(&t->graph), DC_OK);
    dc_graph *g = &t->graph;
    dc_ref x = new_input(&n, "x", TRAIN_ROWS, OBS), y = new_input(&n, "y", TRAIN_ROWS, 2);
    dc_ref out = new_network(t, "policy", x, OBS, hidden, 2, norm);
    rig_finish(t, dc_square(g, "loss", out, dc_affine(g, y, 3, 1), 1), fresh, 2);
    fill(t, x, fresh + 1);
    fill(t, y, fresh + 2);
    dc_slabs *s = &t->params.slabs;
    int64_t count = s->size;
    float *start = malloc((size_t)count * sizeof *start);
    assert_non_null(start);
    memcpy(start, s->live, (size_t)count * sizeof *start);
    dc_program *p = compile(t, 0, f->precision);
    assert_told(p, "policy: ", "plain: cuBLASLt",
                f->precision == DC_FP32 ? "fp32" : "is not 256, 512 or 1024");
    send_input(p, t, x);
    send_input(p, t, y);
    for (int i = 1; i <= STEPS; i++) {
        dc_adam adam = {
            .lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .tau = tau, .step = i};
        run(t);
        dc_backend_cpu.update(s, &adam, t->pool);
        assert_int_equal(dc_program_step(p, NULL), DC_OK);
    }
    float *live = fetch(dc_program_slabs(p)->live, count);
    for (int64_t i = 0; i < count; i++) {
        live[i] -= start[i];
        start[i] = s->live[i] - start[i];
    }
    double off = distance(live, start, count);
    printf("%d x %d %s LayerNorm, %s: %d steps within %.1e\n", (int)hidden->v[0], hidden->count,
           norm ? "with" : "without", f->name, STEPS, off);
    assert_true(off <= f->tolerance);
    free(start);
    free(live);
    dc_program_free(p);
    rig_close(t);
}

// Adam's first steps are of equal length for large and small gradients, so that a sign that is lost in rounding counts in
// full.
static const form step_forms[FORMS] = {
    {"fp32", DC_FP32, 1e-2, 0}, {"tf32", DC_TF32, 0.1, 0}, {"bf16", DC_BF16, 0.3, 0}};

static void test_any_width(void **state) {
    (void)state;
    if (!cuda) skip();
    static const dc_int_list hidden[] = {{2, {300, 300}}, {1, {1100}}, {2, {37, 37}}};
    for (int k = 0; k < 3; k++)
        for (int f = 0; f < FORMS; f++) {
            train_beside_cpu(&hidden[k], true, &step_forms[f]);
            train_beside_cpu(&hidden[k], false, &step_forms[f]);
        }
}

// All gradients stay in the slab, and an update from there is the update of a step.
static void test_whole_gradients(void **state) {
    (void)state;
    if (!cuda) skip();
    for (int f = 0; f < FORMS; f++) {
        networks n;
        open_networks(&n, &net_cases[3], fresh);
        run(&n.rig);
        int64_t count = n.rig.params.slabs.size;
        dc_program *p = compile_with(&n.rig, n.policy, deep_forms[f].precision, NULL, 0, true);
        dc_program *q = compile(&n.rig, n.policy, deep_forms[f].precision);
        for (int i = 0; i < n.ins; i++) {
            send_input(p, &n.rig, n.in[i]);
            send_input(q, &n.rig, n.in[i]);
        }
        float *whole = gradients(p, count), *other = gradients(q, count);
        assert_true(distance(whole, other, count) < 1e-5);
        assert_int_equal(dc_program_update(p), DC_OK);
        assert_int_equal(dc_program_step(q, NULL), DC_OK);
        float *a = fetch(dc_program_slabs(p)->live, count),
              *b = fetch(dc_program_slabs(q)->live, count);
        assert_true(distance(a, b, count) < 1e-5 && state_of(p).step == 1);
        assert_told(q, "critic: ", f ? "whole network" : "plain", f ? "tensor cores" : "fp32");
        for (void **m = (void *[]){whole, other, a, b, NULL}; *m; m++)
            free(*m);
        dc_program_free(p);
        dc_program_free(q);
        rig_close(&n.rig);
    }
}

int main(int argc, char **argv) { // with an argument only the tests that it names: "test_n*"
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_path),
        cmocka_unit_test(test_absent_op),
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_plain_ops),
        cmocka_unit_test(test_large_ops),
        cmocka_unit_test(test_network_used_twice),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_bare_networks),
        cmocka_unit_test(test_two_heads),
        cmocka_unit_test(test_encoder),
        cmocka_unit_test(test_qrl),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_own_parameters),
        cmocka_unit_test(test_crl),
        cmocka_unit_test(test_any_width),
        cmocka_unit_test(test_whole_gradients),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const char *given = getenv("DCRL_SEED");
    if (given) fresh = strtoull(given, NULL, 10);
    int bad = cmocka_run_group_tests(tests, set_up, tear_down);
    if (given || !present) return bad;
    fresh = (uint64_t)time(NULL);
    return bad + cmocka_run_group_tests_name("by a fresh seed", tests, set_up, tear_down);
}
