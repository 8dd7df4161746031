// Ops that work number by number on tensors of few columns (distances, targets, weights): a few
// thousand numbers per step, so plain loops in one thread. gelu, which works on whole layers, has a
// file of its own.
#include "backend/cpu/cpu.h"

#include "backend/cpu/fastmath.h"

#include <math.h>

// Walks an op: inputs and output of one member as flat arrays of `count` numbers, its rows in use.
typedef struct walk {
    const dc_real *x[DC_INPUTS];
    dc_real *y;
    int64_t count;
} walk;

static walk forward_at(const dc_exec *x, const dc_node *n, int e) {
    DC_CHECK(n->in_count > 0);
    dc_view y = dc_output(x, n);
    walk w = {.y = y.p + e * y.step, .count = (int64_t)y.rows * y.cols};
    for (int i = 0; i < n->in_count; i++) {
        dc_view v = dc_value(x, n->in[i]);
        w.x[i] = v.p + e * v.step;
    }
    return w;
}

// Backward: trained rows of the inputs, the output's gradient as dy, input i's gradient as dx.
typedef struct back {
    const dc_real *x[DC_INPUTS], *dy;
    dc_real *dx;
    dc_real keep; // 1 if dx is added to, else 0
    int64_t count;
} back;

static back backward_at(const dc_exec *x, const dc_node *n, int i, int e) {
    DC_CHECK(n->in_count > 0);
    bool second = e > 0 && x->graph->nodes[n->in[i]].e < n->e; // one input for all members
    back b = {.count = (int64_t)(n->hi - n->lo) * n->cols, .keep = dc_adds(x, n, i) || second};
    for (int k = 0; k < n->in_count; k++) {
        dc_view v = dc_input_value(x, n, k);
        b.x[k] = v.p + e * v.step;
    }
    dc_view dy = dc_gradient(x, dc_self(x, n)), dx = dc_input_gradient(x, n, i);
    b.dy = dy.p + e * dy.step;
    b.dx = dx.p + e * dx.step;
    return b;
}

// The value of y (or dx) at every number m, for every ensemble member.
#define FORWARD(expression)                                                                        \
    for (int e = 0; e < n->e; e++) {                                                               \
        walk w = forward_at(x, n, e);                                                              \
        for (int64_t m = 0; m < w.count; m++)                                                      \
            w.y[m] = (expression);                                                                 \
    }
#define BACKWARD(i, expression)                                                                    \
    for (int e = 0; dc_wants(x, n, i) && e < n->e; e++) {                                          \
        back b = backward_at(x, n, i, e);                                                          \
        for (int64_t m = 0; m < b.count; m++)                                                      \
            b.dx[m] = (b.keep != 0 ? b.dx[m] : 0) + (expression);                                  \
    }

void dc_cpu_add_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(w.x[0][m] + w.x[1][m])
}

void dc_cpu_add_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.dy[m])
    BACKWARD(1, b.dy[m])
}

void dc_cpu_mul_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(w.x[0][m] * w.x[1][m])
}

void dc_cpu_mul_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.dy[m] * b.x[1][m])
    BACKWARD(1, b.dy[m] * b.x[0][m])
}

void dc_cpu_affine_fwd(const dc_exec *x, const dc_node *n) {
    dc_real scale = (dc_real)n->a, shift = (dc_real)n->b;
    FORWARD(w.x[0][m] * scale + shift)
}

void dc_cpu_affine_bwd(const dc_exec *x, const dc_node *n) {
    dc_real scale = (dc_real)n->a;
    BACKWARD(0, b.dy[m] * scale)
}

static dc_real clipped(dc_real v, dc_real least, dc_real most) {
    if (v < least) return least;
    return v > most ? most : v; // NaN stays NaN, so that the guard sees it
}

void dc_cpu_clip_fwd(const dc_exec *x, const dc_node *n) {
    dc_real least = (dc_real)n->a, most = (dc_real)n->b;
    FORWARD(clipped(w.x[0][m], least, most))
}

void dc_cpu_clip_bwd(const dc_exec *x, const dc_node *n) {
    dc_real least = (dc_real)n->a, most = (dc_real)n->b;
    BACKWARD(0, b.x[0][m] >= least && b.x[0][m] <= most ? b.dy[m] : 0)
}

static bool known(dc_real steps, dc_real n) {
    return steps >= 0 && steps <= n;
}

void dc_cpu_within_fwd(const dc_exec *x, const dc_node *n) {
    dc_real most = (dc_real)n->a;
    FORWARD(known(w.x[0][m], most) ? w.x[1][m] : w.x[2][m])
}

void dc_cpu_within_bwd(const dc_exec *x, const dc_node *n) {
    dc_real most = (dc_real)n->a;
    BACKWARD(2, known(b.x[0][m], most) ? 0 : b.dy[m])
}

static dc_real decayed(dc_real v, double lambda) {
    return (dc_real)pow(1 + (v < 0 ? 0 : (double)v), -lambda); // NaN stays NaN here too
}

void dc_cpu_decay_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(decayed(w.x[0][m], n->a))
}

void dc_cpu_decay_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.x[0][m] <= 0 ? 0 : b.dy[m] * (dc_real)-n->a * decayed(b.x[0][m], n->a + 1))
}

static dc_real logistic(dc_real v) {
    return 1 / (1 + dc_fast_exp(-v));
}

void dc_cpu_sigmoid_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(logistic(w.x[0][m]))
}

void dc_cpu_sigmoid_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.dy[m] * logistic(b.x[0][m]) * (1 - logistic(b.x[0][m])))
}

void dc_cpu_softplus_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD((dc_real)(fmax((double)w.x[0][m], 0) + log1p(exp(-fabs((double)w.x[0][m])))))
}

void dc_cpu_softplus_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.dy[m] * logistic(b.x[0][m]))
}

void dc_cpu_power_fwd(const dc_exec *x,
                      const dc_node *n){FORWARD((dc_real)pow(n->a, (double)w.x[0][m]))}

DC_CPU_NO_GRADIENT(power)

    void dc_cpu_exp_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD((dc_real)exp((double)w.x[0][m]))
}

void dc_cpu_exp_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.dy[m] * (dc_real)exp((double)b.x[0][m]))
}

void dc_cpu_relu_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(w.x[0][m] < 0 ? 0 : w.x[0][m]) // NaN stays NaN
}

void dc_cpu_relu_bwd(const dc_exec *x, const dc_node *n) {
    BACKWARD(0, b.x[0][m] > 0 ? b.dy[m] : 0)
}

void dc_cpu_side_fwd(const dc_exec *x, const dc_node *n) {
    dc_real above = (dc_real)n->a, below = (dc_real)(1 - n->a);
    FORWARD(w.x[0][m] >= 0 ? above : below)
}

DC_CPU_NO_GRADIENT(side)
