// Softmax policies: a value's expectation over actions, and the likelihood of those taken. Rows are few columns
// wide, so each is done at once, in double.
#include "backend/cpu/cpu.h"

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
