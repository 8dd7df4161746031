// Ops that end in one number: losses and means. Sums are taken in double and in order, so that they
// are the same for any number of threads.
#include "backend/cpu/cpu.h"

// Weight of a squared error: `below` where the prediction is below its target.
static dc_real side(dc_real p, dc_real t, double below) {
    return (dc_real)(p < t ? below : 1 - below);
}

void dc_cpu_expectile_fwd(const dc_exec *x, const dc_node *n) {
    dc_view p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]);
    dc_view w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
    double sum = 0;
    int64_t count = (int64_t)p.rows * p.cols;
    for (int e = 0; e < p.e; e++)
        for (int64_t i = 0; i < count; i++) {
            dc_real pi = p.p[e * p.step + i], ti = t.p[e * t.step + i], d = pi - ti;
            dc_real wi = n->in_count > 2 ? w.p[e * w.step + i] : 1;
            sum += (double)(wi * side(pi, ti, n->a) * d * d);
        }
    // Twice the sides' weights, so that the symmetric case (one half each) is the plain squared
    // error.
    *dc_value(x, dc_self(x, n)).p = (dc_real)(2 * sum / (double)(p.e * count));
}

// d/dp of input 0 (sign 1) or d/dt of input 1 (sign -1).
static void expectile_grad(const dc_exec *x, const dc_node *n, int input, dc_real sign) {
    dc_view p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]), d = dc_gradient(x, n->in[input]);
    dc_view w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
    int64_t count = (int64_t)p.rows * p.cols;
    dc_real dy = *dc_gradient(x, dc_self(x, n)).p, scale = sign * dy * 4 / (dc_real)(p.e * count);
    bool add = dc_adds(x, n, input);
    for (int e = 0; e < p.e; e++)
        for (int64_t i = 0; i < count; i++) {
            dc_real pi = p.p[e * p.step + i], ti = t.p[e * t.step + i];
            dc_real wi = n->in_count > 2 ? w.p[e * w.step + i] : 1;
            dc_real *out = &d.p[e * d.step + i];
            *out = (add ? *out : 0) + scale * wi * side(pi, ti, n->a) * (pi - ti);
        }
}

void dc_cpu_expectile_bwd(const dc_exec *x, const dc_node *n) {
    if (dc_wants(x, n, 0)) expectile_grad(x, n, 0, 1);
    if (dc_wants(x, n, 1)) expectile_grad(x, n, 1, -1);
}

void dc_cpu_mean_fwd(const dc_exec *x, const dc_node *n) {
    dc_view v = dc_value(x, n->in[0]);
    double sum = 0;
    int64_t count = (int64_t)v.rows * v.cols;
    for (int e = 0; e < v.e; e++)
        for (int64_t i = 0; i < count; i++)
            sum += (double)v.p[e * v.step + i];
    *dc_value(x, dc_self(x, n)).p = (dc_real)(sum / (double)(v.e * count));
}

void dc_cpu_mean_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_view d = dc_gradient(x, n->in[0]);
    int64_t count = (int64_t)d.rows * d.cols;
    dc_real each = *dc_gradient(x, dc_self(x, n)).p / (dc_real)(d.e * count);
    bool add = dc_adds(x, n, 0);
    for (int e = 0; e < d.e; e++)
        for (int64_t i = 0; i < count; i++)
            d.p[e * d.step + i] = (add ? d.p[e * d.step + i] : 0) + each;
}
