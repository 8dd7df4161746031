// Ops that work number by number on narrow tensors (distances, targets, weights): a few thousand
// numbers a step, so plain loops in one thread.
#include "backend/cpu/cpu.h"

#include "backend/cpu/fastmath.h"

#include <math.h>
#include <string.h>

// Walks an op: inputs and output of one (e, row-range) as flat arrays of `count` numbers.
typedef struct walk {
    const dc_real *x[DC_INPUTS];
    dc_real *y;
    int64_t count;
} walk;

static walk forward_at(const dc_exec *x, const dc_node *n, int e) {
    DC_CHECK(n->in_count > 0);
    walk w = {.count = (int64_t)n->rows * n->cols};
    for (int i = 0; i < n->in_count; i++) {
        dc_view v = dc_value(x, n->in[i]);
        w.x[i] = v.p + e * v.step;
    }
    dc_view y = dc_value(x, dc_self(x, n));
    w.y = y.p + e * y.step;
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
    DC_CHECK(x->graph->nodes[n->in[i]].e == n->e); // what all members share is data
    DC_CHECK(n->in_count > 0);
    back b = {.count = (int64_t)(n->hi - n->lo) * n->cols, .keep = dc_adds(x, n, i)};
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

void dc_cpu_unpack_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD(w.x[0][m] >= 0 ? w.x[1][(int64_t)w.x[0][m]] : 0)
}

void dc_cpu_unpack_bwd(const dc_exec *x, const dc_node *n) {
    (void)x;
    (void)n;
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
    return 1 / (1 + dc_exp(-v));
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

void dc_cpu_power_fwd(const dc_exec *x, const dc_node *n) {
    FORWARD((dc_real)pow(n->a, (double)w.x[0][m]))
}

void dc_cpu_power_bwd(const dc_exec *x, const dc_node *n) {
    (void)x;
    (void)n;
}

// The member that is least at number m; the first of equals.
static int least_at(dc_view v, int64_t m) {
    int least = 0;
    for (int e = 1; e < v.e; e++)
        if (v.p[e * v.step + m] < v.p[least * v.step + m]) least = e;
    return least;
}

void dc_cpu_ensemble_min_fwd(const dc_exec *x, const dc_node *n) {
    dc_view v = dc_value(x, n->in[0]), y = dc_value(x, dc_self(x, n));
    for (int64_t m = 0; m < (int64_t)n->rows * n->cols; m++)
        y.p[m] = v.p[least_at(v, m) * v.step + m];
}

void dc_cpu_ensemble_min_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_view v = dc_input_value(x, n, 0), dx = dc_input_gradient(x, n, 0),
            dy = dc_gradient(x, dc_self(x, n));
    bool add = dc_adds(x, n, 0);
    for (int64_t m = 0; m < (int64_t)dy.rows * dy.cols; m++) {
        int least = least_at(v, m);
        for (int e = 0; e < v.e; e++) {
            dc_real *out = &dx.p[e * dx.step + m];
            *out = (add ? *out : 0) + (e == least ? dy.p[m] : 0);
        }
    }
}

void dc_cpu_splice_fwd(const dc_exec *x, const dc_node *n) {
    dc_view from = dc_value(x, n->in[0]), part = dc_value(x, n->in[1]),
            y = dc_value(x, dc_self(x, n));
    for (int r = 0; r < n->rows; r++) {
        dc_real *row = y.p + (int64_t)r * n->cols;
        memcpy(row, from.p + (int64_t)r * n->cols, (size_t)n->cols * sizeof *row);
        memcpy(row + (int)n->a, part.p + (int64_t)r * part.cols, (size_t)part.cols * sizeof *row);
    }
}

void dc_cpu_splice_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 1)) return;
    dc_view dx = dc_input_gradient(x, n, 1), dy = dc_gradient(x, dc_self(x, n));
    bool add = dc_adds(x, n, 1);
    for (int r = 0; r < dy.rows; r++)
        for (int c = 0; c < dx.cols; c++) {
            dc_real *out = &dx.p[(int64_t)r * dx.cols + c];
            *out = (add ? *out : 0) + dy.p[(int64_t)r * dy.cols + (int)n->a + c];
        }
}
