// Ops that end in one number: losses and means. Sums are taken in double and in order, so that they
// are the same for any number of threads. Targets and weights of one member serve all (their step is
// 0); a gradient to such a target is the sum over members.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fastmath.h"

#include <math.h>

// Weight of a squared error: `below` where the prediction is below its target.
static dc_real side(dc_real p, dc_real t, double below) {
    return (dc_real)(p < t ? below : 1 - below);
}

void dc_cpu_expectile_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]);
    dc_tensor w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
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
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]),
              d = dc_gradient(x, n->in[input]);
    dc_tensor w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
    int64_t count = (int64_t)p.rows * p.cols;
    dc_real dy = *dc_gradient(x, dc_self(x, n)).p, scale = sign * dy * 4 / (dc_real)(p.e * count);
    bool adds = dc_adds(x, n, input);
    for (int e = 0; e < p.e; e++) {
        bool add = adds || (e > 0 && d.e < p.e);
        for (int64_t i = 0; i < count; i++) {
            dc_real pi = p.p[e * p.step + i], ti = t.p[e * t.step + i];
            dc_real wi = n->in_count > 2 ? w.p[e * w.step + i] : 1;
            dc_real *out = &d.p[e * d.step + i];
            *out = (add ? *out : 0) + scale * wi * side(pi, ti, n->a) * (pi - ti);
        }
    }
}

void dc_cpu_expectile_bwd(const dc_exec *x, const dc_node *n) {
    if (dc_wants(x, n, 0)) expectile_grad(x, n, 0, 1);
    if (dc_wants(x, n, 1)) expectile_grad(x, n, 1, -1);
}

void dc_cpu_mean_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor v = dc_value(x, n->in[0]);
    double sum = 0;
    int64_t count = (int64_t)v.rows * v.cols;
    for (int e = 0; e < v.e; e++)
        for (int64_t i = 0; i < count; i++)
            sum += (double)v.p[e * v.step + i];
    *dc_value(x, dc_self(x, n)).p = (dc_real)(sum / (double)(v.e * count));
}

void dc_cpu_mean_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor d = dc_gradient(x, n->in[0]);
    int64_t count = (int64_t)d.rows * d.cols;
    dc_real each = *dc_gradient(x, dc_self(x, n)).p / (dc_real)(d.e * count);
    bool add = dc_adds(x, n, 0);
    for (int e = 0; e < d.e; e++)
        for (int64_t i = 0; i < count; i++)
            d.p[e * d.step + i] = (add ? d.p[e * d.step + i] : 0) + each;
}

// log(1 + exp(v)) without overflow, in double: -log sigmoid(p) = softplus(-p).
static double softplus(double v) {
    return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v));
}

static double logistic(double v) {
    return 1 / (1 + exp(-v));
}

void dc_cpu_bce_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]);
    dc_tensor w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
    int64_t count = (int64_t)p.rows * p.cols;
    double sum = 0;
    for (int e = 0; e < p.e; e++)
        for (int64_t i = 0; i < count; i++) {
            double pi = (double)p.p[e * p.step + i], ti = (double)t.p[e * t.step + i];
            double weight = ti >= logistic(pi) ? n->a : 1 - n->a;
            if (n->in_count > 2) weight *= (double)w.p[e * w.step + i];
            sum += weight * (ti * softplus(-pi) + (1 - ti) * softplus(pi));
        }
    *dc_value(x, dc_self(x, n)).p = (dc_real)(n->b * sum / (double)(p.e * count));
}

void dc_cpu_bce_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]), d = dc_gradient(x, n->in[0]);
    dc_tensor w = n->in_count > 2 ? dc_value(x, n->in[2]) : p;
    int64_t count = (int64_t)p.rows * p.cols;
    double dy = (double)*dc_gradient(x, dc_self(x, n)).p, scale = dy * n->b / (double)(p.e * count);
    bool add = dc_adds(x, n, 0);
    for (int e = 0; e < p.e; e++)
        for (int64_t i = 0; i < count; i++) {
            double q = logistic((double)p.p[e * p.step + i]), ti = (double)t.p[e * t.step + i];
            double weight = ti >= q ? n->a : 1 - n->a;
            if (n->in_count > 2) weight *= (double)w.p[e * w.step + i];
            dc_real *out = &d.p[e * d.step + i];
            *out = (add ? *out : 0) + (dc_real)(scale * weight * (q - ti));
        }
}

void dc_cpu_square_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]);
    int64_t count = (int64_t)p.rows * p.cols;
    double sum = 0;
    for (int e = 0; e < p.e; e++)
        for (int64_t i = 0; i < count; i++) {
            double d = (double)(p.p[e * p.step + i] - t.p[e * t.step + i]);
            sum += d * d;
        }
    *dc_value(x, dc_self(x, n)).p = (dc_real)(n->a * sum / (double)(p.e * count));
}

static void square_grad(const dc_exec *x, const dc_node *n, int input, dc_real sign) {
    dc_tensor p = dc_value(x, n->in[0]), t = dc_value(x, n->in[1]),
              d = dc_gradient(x, n->in[input]);
    int64_t count = (int64_t)p.rows * p.cols;
    dc_real dy = *dc_gradient(x, dc_self(x, n)).p;
    dc_real scale = sign * dy * (dc_real)(2 * n->a / (double)(p.e * count));
    bool adds = dc_adds(x, n, input);
    for (int e = 0; e < p.e; e++) {
        bool add = adds || (e > 0 && d.e < p.e);
        for (int64_t i = 0; i < count; i++) {
            dc_real *out = &d.p[e * d.step + i];
            *out = (add ? *out : 0) + scale * (p.p[e * p.step + i] - t.p[e * t.step + i]);
        }
    }
}

void dc_cpu_square_bwd(const dc_exec *x, const dc_node *n) {
    if (dc_wants(x, n, 0)) square_grad(x, n, 0, 1);
    if (dc_wants(x, n, 1)) square_grad(x, n, 1, -1);
}

// Mean of |x| plus a little: what relative_mean divides by.
static double size_of(dc_tensor v) {
    double sum = 0;
    int64_t count = (int64_t)v.rows * v.cols;
    for (int e = 0; e < v.e; e++)
        for (int64_t i = 0; i < count; i++)
            sum += fabs((double)v.p[e * v.step + i]);
    return sum / (double)(v.e * count) + 1e-6;
}

void dc_cpu_relative_mean_fwd(const dc_exec *x, const dc_node *n) {
    dc_cpu_mean_fwd(x, n);
    dc_real *y = dc_value(x, dc_self(x, n)).p;
    *y = (dc_real)((double)*y / size_of(dc_value(x, n->in[0])));
}

void dc_cpu_relative_mean_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor v = dc_value(x, n->in[0]), d = dc_gradient(x, n->in[0]);
    int64_t count = (int64_t)d.rows * d.cols;
    double dy = (double)*dc_gradient(x, dc_self(x, n)).p;
    dc_real each = (dc_real)(dy / size_of(v) / (double)(d.e * count));
    bool add = dc_adds(x, n, 0);
    for (int e = 0; e < d.e; e++)
        for (int64_t i = 0; i < count; i++)
            d.p[e * d.step + i] = (add ? d.p[e * d.step + i] : 0) + each;
}
