// Softmax over columns. Of policies: a value's expectation over actions, and the likelihood of those taken, whose rows
// are few columns wide, so each is done at once, in double. And logsumexp, whose rows are a batch wide: blocks of them go
// to threads.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fastmath.h"

#include <math.h>

// log of the sum of exp over a row, without overflow.
static double log_sum(const dc_real *x, int cols) {
    double most = (double)x[0], sum = 0;
    for (int c = 1; c < cols; c++)
        most = fmax(most, (double)x[c]);
    for (int c = 0; c < cols; c++)
        sum += exp((double)x[c] - most);
    return most + log(sum);
}

static double expectation(const dc_real *x, const dc_real *q, int cols) {
    double total = log_sum(x, cols), sum = 0;
    for (int c = 0; c < cols; c++)
        sum += exp((double)x[c] - total) * (double)q[c];
    return sum;
}

void dc_cpu_expected_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor v = dc_value(x, n->in[0]), q = dc_value(x, n->in[1]), y = dc_output(x, n);
    for (int64_t r = 0; r < y.rows; r++)
        y.p[r] = (dc_real)expectation(v.p + r * v.cols, q.p + r * v.cols, v.cols);
}

// d y / d x_c = p_c (q_c - y)
void dc_cpu_expected_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor v = dc_input_value(x, n, 0), q = dc_value(x, n->in[1]),
              d = dc_input_gradient(x, n, 0);
    const dc_real *dy = dc_gradient(x, dc_self(x, n)).p; // rows [lo, hi)
    bool add = dc_adds(x, n, 0);
    for (int64_t r = 0; r < v.rows; r++) {
        const dc_real *xs = v.p + r * v.cols, *qs = q.p + (n->lo + r) * v.cols;
        double total = log_sum(xs, v.cols), mean = expectation(xs, qs, v.cols);
        for (int c = 0; c < v.cols; c++) {
            double p = exp((double)xs[c] - total);
            dc_real *out = &d.p[r * v.cols + c];
            *out = (add ? *out : 0) + (dc_real)((double)dy[r] * p * ((double)qs[c] - mean));
        }
    }
}

void dc_cpu_log_likelihood_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor v = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]);
    double sum = 0;
    for (int64_t r = 0; r < v.rows; r++) {
        const dc_real *xs = v.p + r * v.cols, *ts = t.p + r * v.cols;
        double total = log_sum(xs, v.cols);
        for (int c = 0; c < v.cols; c++)
            sum += (double)ts[c] * ((double)xs[c] - total);
    }
    *dc_value(x, dc_self(x, n)).p = (dc_real)(sum / v.rows);
}

// d y / d x_c = (t_c - p_c sum t) / rows
void dc_cpu_log_likelihood_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor v = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]), d = dc_gradient(x, n->in[0]);
    double dy = (double)*dc_gradient(x, dc_self(x, n)).p / v.rows;
    bool add = dc_adds(x, n, 0);
    for (int64_t r = 0; r < v.rows; r++) {
        const dc_real *xs = v.p + r * v.cols, *ts = t.p + r * v.cols;
        double total = log_sum(xs, v.cols), mass = 0;
        for (int c = 0; c < v.cols; c++)
            mass += (double)ts[c];
        for (int c = 0; c < v.cols; c++) {
            dc_real *out = &d.p[r * v.cols + c];
            double slope = (double)ts[c] - mass * exp((double)xs[c] - total);
            *out = (add ? *out : 0) + (dc_real)(dy * slope);
        }
    }
}

// ---- logsumexp ----

typedef struct job {
    dc_tensor x, y;  // y: forward
    dc_tensor d, dy; // backward, trained rows, as x then
    bool add;
} job;

static dc_real most_of(const dc_real *x, int cols) {
    dc_real most = x[0];
#pragma omp simd reduction(max : most)
    for (int c = 1; c < cols; c++)
        most = x[c] > most ? x[c] : most;
    return most;
}

static dc_real sum_exp(const dc_real *x, int cols, dc_real most) {
    dc_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < cols; c++)
        sum += dc_fast_exp(x[c] - most);
    return sum;
}

static void logsumexp_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r);
        dc_real most = most_of(x, j->x.cols), sum = sum_exp(x, j->x.cols, most);
        *dc_row(j->y, e, r) = most + (dc_real)log((double)sum);
    }
}

void dc_cpu_logsumexp_fwd(const dc_exec *x, const dc_node *n) {
    job j = {.x = dc_value(x, n->in[0]), .y = dc_output(x, n)};
    dc_cpu_each_block(x->pool, logsumexp_rows, &j, j.y.e, j.y.rows);
}

// dx = dy softmax(x)
static void logsumexp_back_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int cols = j->x.cols;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r);
        dc_real *d = dc_row(j->d, e, r), most = most_of(x, cols);
        dc_real scale = *dc_row(j->dy, e, r) / sum_exp(x, cols, most);
        for (int c = 0; c < cols; c++)
            d[c] = (j->add ? d[c] : 0) + scale * dc_fast_exp(x[c] - most);
    }
}

void dc_cpu_logsumexp_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    job j = {.x = dc_input_value(x, n, 0),
             .d = dc_input_gradient(x, n, 0),
             .dy = dc_gradient(x, dc_self(x, n)),
             .add = dc_adds(x, n, 0)};
    dc_cpu_each_block(x->pool, logsumexp_back_rows, &j, j.dy.e, j.dy.rows);
}
