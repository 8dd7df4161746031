// Ops that work number by number. Each is an expression for the output and one for the gradient of an input, in
//     X(0) X(1) X(2)   the number of each input
//     DY               the gradient of the output
//     i                the input that gradient is for
//     a, b             the attributes
// Large tensors go to threads in blocks of rows. gelu, which works on whole layers, has a file and
// compiler flags of its own.
#include "backend/cpu/cpu.h"

#include "backend/cpu/fastmath.h"

#include <math.h>

enum { SMALL = 1 << 14 }; // numbers that are done sooner than threads wake up

typedef struct job {
    const dc_exec *x;
    const dc_node *n;
    int input; // backward: the one that gradient is for
    bool sum;  // its one member has gradient from all of the op's
} job;

// Some rows of one member as flat arrays; in backward, of the trained rows.
typedef struct span {
    const dc_real *x[DC_INPUTS], *dy;
    dc_real *out; // the output or an input's gradient
    bool add;
    int64_t count;
} span;

static span forward_span(const job *j, int e, int r0, int r1) {
    const dc_node *n = j->n;
    DC_CHECK(n->in_count > 0);
    span s = {.out = dc_row(dc_output(j->x, n), e, r0), .count = (int64_t)(r1 - r0) * n->cols};
    for (int k = 0; k < n->in_count; k++)
        s.x[k] = dc_row(dc_value(j->x, n->in[k]), e, r0);
    return s;
}

static span backward_span(const job *j, int e, int r0, int r1) {
    const dc_node *n = j->n;
    DC_CHECK(n->in_count > 0);
    span s = {.out = dc_row(dc_input_gradient(j->x, n, j->input), e, r0),
              .dy = dc_row(dc_gradient(j->x, dc_self(j->x, n)), e, r0),
              .add = dc_adds(j->x, n, j->input) || (j->sum && e > 0),
              .count = (int64_t)(r1 - r0) * n->cols};
    for (int k = 0; k < n->in_count; k++)
        s.x[k] = dc_row(dc_input_value(j->x, n, k), e, r0);
    return s;
}

static void each_block(const job *j, dc_rows_fn *fn, int members, int rows) {
    bool small = (int64_t)members * rows * j->n->cols <= SMALL;
    dc_cpu_each_block(small ? NULL : j->x->pool, fn, j, members, rows);
}

static void forward(const dc_exec *x, const dc_node *n, dc_rows_fn *fn) {
    job j = {.x = x, .n = n};
    each_block(&j, fn, n->e, dc_output(x, n).rows);
}

static void backward(const dc_exec *x, const dc_node *n, dc_rows_fn *fn) {
    for (int i = 0; i < n->in_count; i++) {
        if (!dc_flows(n, i) || !dc_wants(x, n, i)) continue;
        job j = {.x = x, .n = n, .input = i, .sum = x->graph->nodes[n->in[i]].e < n->e};
        each_block(&j, fn, j.sum ? 1 : n->e, n->hi - n->lo);
    }
}

#define X(k) s.x[k][m]
#define DY   s.dy[m]

#define FORWARD(op, expression)                                                                    \
    static void op##_fwd_rows(const void *ctx, int e, int r0, int r1) {                            \
        const job *j = ctx;                                                                        \
        const double a = j->n->a, b = j->n->b;                                                     \
        (void)a, (void)b;                                                                          \
        span s = forward_span(j, e, r0, r1);                                                       \
        for (int64_t m = 0; m < s.count; m++)                                                      \
            s.out[m] = (expression);                                                               \
    }                                                                                              \
    void dc_cpu_##op##_fwd(const dc_exec *x, const dc_node *n) {                                   \
        forward(x, n, op##_fwd_rows);                                                              \
    }

#define BACKWARD(op, expression)                                                                   \
    static void op##_bwd_rows(const void *ctx, int first, int r0, int r1) {                        \
        const job *j = ctx;                                                                        \
        const double a = j->n->a, b = j->n->b;                                                     \
        const int i = j->input, end = j->sum ? j->n->e : first + 1;                                \
        (void)a, (void)b, (void)i;                                                                 \
        for (int e = first; e < end; e++) {                                                        \
            span s = backward_span(j, e, r0, r1);                                                  \
            for (int64_t m = 0; m < s.count; m++)                                                  \
                s.out[m] = (s.add ? s.out[m] : 0) + (expression);                                  \
        }                                                                                          \
    }                                                                                              \
    void dc_cpu_##op##_bwd(const dc_exec *x, const dc_node *n) {                                   \
        backward(x, n, op##_bwd_rows);                                                             \
    }

// clang-format off

FORWARD(add, X(0) + X(1))
BACKWARD(add, DY)

FORWARD(mul, X(0) * X(1))
BACKWARD(mul, DY * X(1 - i))

FORWARD(affine, X(0) * (dc_real)a + (dc_real)b)
BACKWARD(affine, DY * (dc_real)a)

static dc_real clipped(dc_real v, dc_real least, dc_real most) {
    if (v < least) return least;
    return v > most ? most : v; // NaN stays NaN, so that the guard sees it
}

FORWARD(clip, clipped(X(0), (dc_real)a, (dc_real)b))
BACKWARD(clip, X(0) >= (dc_real)a && X(0) <= (dc_real)b ? DY : 0)

static bool known(dc_real steps, dc_real most) {
    return steps >= 0 && steps <= most;
}

FORWARD(within, known(X(0), (dc_real)a) ? X(1) : X(2))
BACKWARD(within, known(X(0), (dc_real)a) ? 0 : DY)

static dc_real decayed(dc_real v, double rate) {
    return (dc_real)pow(1 + (v < 0 ? 0 : (double)v), -rate); // NaN stays NaN here too
}

FORWARD(decay, decayed(X(0), a))
BACKWARD(decay, X(0) <= 0 ? 0 : DY * (dc_real)-a * decayed(X(0), a + 1))

FORWARD(power, (dc_real)pow(a, (double)X(0)))
DC_CPU_NO_GRADIENT(power)

FORWARD(exp, (dc_real)exp((double)X(0)))
BACKWARD(exp, DY * (dc_real)exp((double)X(0)))

FORWARD(tanh, (dc_real)tanh((double)X(0)))
BACKWARD(tanh, DY * (dc_real)(1 - tanh((double)X(0)) * tanh((double)X(0))))

FORWARD(abs, (dc_real)fabs((double)X(0)))
BACKWARD(abs, X(0) > 0 ? DY : X(0) < 0 ? -DY : 0)

static dc_real logistic(dc_real v) {
    return 1 / (1 + dc_fast_exp(-v));
}

FORWARD(sigmoid, logistic(X(0)))
BACKWARD(sigmoid, DY *logistic(X(0)) * (1 - logistic(X(0))))

static dc_real softplus(double v) {
    return (dc_real)(fmax(v, 0) + log1p(exp(-fabs(v))));
}

FORWARD(softplus, softplus((double)X(0)))
BACKWARD(softplus, DY *logistic(X(0)))

static dc_real linex(dc_real d, dc_real n, dc_real most, dc_real rate) {
    return d - n > most ? d - n : rate * dc_fast_exp(d - n) - d;
}

static dc_real linex_slope(dc_real gap, dc_real most, dc_real rate) {
    return gap > most ? 1 : rate * dc_fast_exp(gap) - 1;
}

FORWARD(linex, linex(X(0), X(1), (dc_real)a, (dc_real)b))
BACKWARD(linex, DY *linex_slope(X(0) - X(1), (dc_real)a, (dc_real)b))

FORWARD(relu, X(0) < 0 ? 0 : X(0)) // NaN stays NaN
BACKWARD(relu, X(0) > 0 ? DY : 0)

FORWARD(side, (dc_real)(X(0) >= 0 ? a : 1 - a))
DC_CPU_NO_GRADIENT(side)

// clang-format on
