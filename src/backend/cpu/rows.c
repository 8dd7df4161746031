// Ops that make a row from a row of each input: row_dot, row_square, normalise. Blocks of rows go to
// threads; gradients of two inputs are separate passes, as both may be views of the same rows.
#include "backend/cpu/cpu.h"

#include <math.h>

typedef struct job {
    dc_tensor x, y, out; // inputs and output; trained rows of the inputs in backward
    dc_tensor d, dout;   // gradients of one input and of the output
    dc_real sign;        // of that input in x - y
    bool add;
} job;

static job forward_job(const dc_exec *x, const dc_node *n) {
    int last = n->in_count - 1;
    return (job){.x = dc_value(x, n->in[0]), .y = dc_value(x, n->in[last]), .out = dc_output(x, n)};
}

// For the gradient of input i.
static job backward_job(const dc_exec *x, const dc_node *n, int i) {
    int last = n->in_count - 1;
    return (job){.x = dc_input_value(x, n, 0),
                 .y = dc_input_value(x, n, last),
                 .d = dc_input_gradient(x, n, i),
                 .dout = dc_gradient(x, dc_self(x, n)),
                 .sign = i == 0 ? 1 : -1,
                 .add = dc_adds(x, n, i)};
}

static dc_real dot(const dc_real *x, const dc_real *y, int cols) {
    dc_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < cols; c++)
        sum += x[c] * y[c];
    return sum;
}

// ---- row_dot ----

static void dot_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++)
        *dc_row(j->out, e, r) = dot(dc_row(j->x, e, r), dc_row(j->y, e, r), j->x.cols);
}

void dc_cpu_row_dot_fwd(const dc_exec *x, const dc_node *n) {
    job j = forward_job(x, n);
    dc_cpu_each_block(x->pool, dot_rows, &j, j.out.e, j.out.rows);
}

static void dot_back_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++) {
        const dc_real *other = dc_row(j->sign > 0 ? j->y : j->x, e, r);
        dc_real *d = dc_row(j->d, e, r), dy = *dc_row(j->dout, e, r);
        for (int c = 0; c < j->x.cols; c++)
            d[c] = (j->add ? d[c] : 0) + dy * other[c];
    }
}

void dc_cpu_row_dot_bwd(const dc_exec *x, const dc_node *n) {
    for (int i = 0; i < 2; i++) {
        if (!dc_wants(x, n, i)) continue;
        job j = backward_job(x, n, i);
        dc_cpu_each_block(x->pool, dot_back_rows, &j, j.dout.e, j.dout.rows);
    }
}

// ---- row_square ----

static void square_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r), *y = dc_row(j->y, e, r);
        dc_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < j->x.cols; c++)
            sum += (x[c] - y[c]) * (x[c] - y[c]);
        *dc_row(j->out, e, r) = sum;
    }
}

void dc_cpu_row_square_fwd(const dc_exec *x, const dc_node *n) {
    job j = forward_job(x, n);
    dc_cpu_each_block(x->pool, square_rows, &j, j.out.e, j.out.rows);
}

static void square_back_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r), *y = dc_row(j->y, e, r);
        dc_real *d = dc_row(j->d, e, r), slope = 2 * j->sign * *dc_row(j->dout, e, r);
        for (int c = 0; c < j->x.cols; c++)
            d[c] = (j->add ? d[c] : 0) + slope * (x[c] - y[c]);
    }
}

void dc_cpu_row_square_bwd(const dc_exec *x, const dc_node *n) {
    for (int i = 0; i < 2; i++) {
        if (!dc_wants(x, n, i)) continue;
        job j = backward_job(x, n, i);
        dc_cpu_each_block(x->pool, square_back_rows, &j, j.dout.e, j.dout.rows);
    }
}

// ---- normalise ----

// At least 1e-6, so that a row of zeros stays one. NaN stays NaN.
static dc_real length(const dc_real *x, int cols) {
    double size = sqrt((double)dot(x, x, cols));
    return (dc_real)(size < 1e-6 ? 1e-6 : size);
}

static void normalise_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r);
        dc_real *y = dc_row(j->out, e, r);
        dc_real scale = (dc_real)sqrt((double)j->x.cols) / length(x, j->x.cols);
        for (int c = 0; c < j->x.cols; c++)
            y[c] = x[c] * scale;
    }
}

void dc_cpu_normalise_fwd(const dc_exec *x, const dc_node *n) {
    job j = forward_job(x, n);
    dc_cpu_each_block(x->pool, normalise_rows, &j, j.out.e, j.out.rows);
}

// With u = x / |x|: dx = sqrt(c) / |x| (dy - u (u . dy)).
static void normalise_back_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int cols = j->x.cols;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r), *dy = dc_row(j->dout, e, r);
        dc_real *d = dc_row(j->d, e, r), size = length(x, cols);
        dc_real scale = (dc_real)sqrt((double)cols) / size,
                along = dot(x, dy, cols) / (size * size);
        for (int c = 0; c < cols; c++)
            d[c] = (j->add ? d[c] : 0) + scale * (dy[c] - x[c] * along);
    }
}

void dc_cpu_normalise_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    job j = backward_job(x, n, 0);
    dc_cpu_each_block(x->pool, normalise_back_rows, &j, j.dout.e, j.dout.rows);
}
