// Ops that bring the members of an ensemble together, number by number.
#include "backend/cpu/cpu.h"

// The member that is least at number m; the first of equals, or the first that is NaN.
static int least_at(dc_tensor v, int64_t m) {
    int least = 0;
    for (int e = 1; e < v.e; e++) {
        dc_real so_far = v.p[least * v.step + m], next = v.p[e * v.step + m];
        if (so_far == so_far && !(next >= so_far)) least = e;
    }
    return least;
}

void dc_cpu_ensemble_min_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor v = dc_value(x, n->in[0]), y = dc_output(x, n);
    for (int64_t m = 0; m < (int64_t)y.rows * y.cols; m++)
        y.p[m] = v.p[least_at(v, m) * v.step + m];
}

void dc_cpu_ensemble_min_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor v = dc_input_value(x, n, 0), dx = dc_input_gradient(x, n, 0),
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

void dc_cpu_ensemble_mean_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor v = dc_value(x, n->in[0]), y = dc_output(x, n);
    for (int64_t m = 0; m < (int64_t)y.rows * y.cols; m++) {
        dc_real sum = 0;
        for (int e = 0; e < v.e; e++)
            sum += v.p[e * v.step + m];
        y.p[m] = sum / (dc_real)v.e;
    }
}

void dc_cpu_ensemble_mean_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor dx = dc_input_gradient(x, n, 0), dy = dc_gradient(x, dc_self(x, n));
    bool add = dc_adds(x, n, 0);
    for (int64_t m = 0; m < (int64_t)dy.rows * dy.cols; m++)
        for (int e = 0; e < dx.e; e++) {
            dc_real *out = &dx.p[e * dx.step + m];
            *out = (add ? *out : 0) + dy.p[m] / (dc_real)dx.e;
        }
}
