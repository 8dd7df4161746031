// Graphs on the GPU against the CPU: every op by itself, and what no agent has yet. Skipped where there is no GPU.
#include "op_cases.h"

#include "backend/cuda/cuda.h"

enum { ROWS = 640, OTHERS = 200, COLUMNS = 9 };

static dc_cuda *cuda; // NULL: none

static int set_up(void **state) {
    (void)state;
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
    dc_view v = dc_value(&t->exec, input);
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

static dc_program *compile(const dc_graph *graph, const dc_slabs *s, dc_precision precision) {
    dc_program_spec spec = {.graph = graph,
                            .size = s->size,
                            .ema_size = s->ema_size,
                            .precision = precision,
                            .lr = 3e-4,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8};
    dc_program *p;
    if (dc_program_new(&p, cuda, &spec) != DC_OK) fail_msg("%s", dc_error());
    size_t bytes = (size_t)s->size * sizeof(float);
    assert_int_equal(dc_cuda_put(cuda, dc_program_slabs(p)->live, s->live, bytes), DC_OK);
    assert_int_equal(dc_program_refresh(p), DC_OK);
    return p;
}

static float *gradients(dc_program *p, int64_t size) {
    float *grad = calloc((size_t)size, sizeof *grad);
    assert_non_null(grad);
    assert_int_equal(dc_program_gradients(p), DC_OK);
    if (dc_cuda_wait(cuda) != DC_OK) fail_msg("%s", dc_error());
    size_t bytes = (size_t)size * sizeof(float);
    assert_int_equal(dc_cuda_get(cuda, grad, dc_program_slabs(p)->grad, bytes), DC_OK);
    return grad;
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
        dc_program *p = compile(&t.graph, &t.params.slabs, DC_FP32);
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

static void compare(const rig *t, const dc_ref *inputs, int count) {
    static const struct {
        const char *name;
        dc_precision precision;
        double tolerance;
    } forms[] = {{"fp32", DC_FP32, 1e-5}, {"tf32", DC_TF32, 3e-3}, {"bf16", DC_BF16, 2e-2}};
    for (int f = 0; f < 3; f++) {
        dc_program *p = compile(&t->graph, &t->params.slabs, forms[f].precision);
        for (int i = 0; i < count; i++)
            send_input(p, t, inputs[i]);
        float *grad = gradients(p, t->params.slabs.size);
        for (int i = 0; i < t->params.count; i++) {
            const dc_param_row *row = &t->params.rows[i];
            print_message("%s %s\n", forms[f].name, row->name);
            assert_near(grad + row->offset, grad_of(t, row->name),
                        (int64_t)row->e * row->rows * row->cols, forms[f].tolerance);
        }
        free(grad);
        dc_program_free(p);
    }
}

// All that two uses of a network give its weights is added up.
static void test_network_used_twice(void **state) {
    (void)state;
    if (!cuda) skip();
    static const dc_int_list hidden[] = {{2, {128, 128}}, {2, {60, 100}}, {3, {512, 512, 512}}};
    for (int h = 0; h < 3; h++) {
        rig t;
        rig_open(&t, 2, COLUMNS, &hidden[h]);
        dc_graph *g = &t.graph;
        dc_ref x[] = {dc_input(g, "x", ROWS, COLUMNS), dc_input(g, "others", OTHERS, COLUMNS)};
        dc_ref a = dc_mlp_apply(g, &t.net, x[0], DC_LIVE),
               b = dc_mlp_apply(g, &t.net, x[1], DC_LIVE);
        dc_ref loss = dc_add(g, dc_mean(g, "squares", dc_mul(g, a, a)), dc_mean(g, "plain", b));
        rig_finish(&t, loss, 6, 0);
        fill(&t, x[0], 33);
        fill(&t, x[1], 34);
        run(&t);
        compare(&t, x, 2);
        rig_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ops),
                                       cmocka_unit_test(test_network_used_twice)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
