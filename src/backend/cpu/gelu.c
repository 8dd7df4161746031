// gelu without LayerNorm, for networks that have none.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fastmath.h"

#include <string.h>

typedef struct job {
    dc_tensor x, y, dx, dy; // dx, dy and x: trained rows in backward
    bool add;
} job;

static void fwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    const dc_real *x = dc_row(j->x, e, r0);
    dc_real *y = dc_row(j->y, e, r0);
    int64_t count = (int64_t)(r1 - r0) * j->x.cols;
#pragma omp simd
    for (int64_t m = 0; m < count; m++)
        y[m] = dc_fast_gelu(x[m]);
}

void dc_cpu_gelu_fwd(const dc_exec *x, const dc_node *n) {
    dc_span part[3];
    dc_tensor in = dc_value(x, n->in[0]), out = dc_output(x, n);
    int parts = dc_cpu_share(x, n, part);
    for (int k = 0; k < parts; k++) {
        job j = {.x = dc_tensor_rows(in, part[k].first, part[k].end),
                 .y = dc_tensor_rows(out, part[k].first, part[k].end)};
        dc_cpu_each_block(x->pool, fwd_rows, &j, j.y.e, j.y.rows);
    }
    dc_cpu_share_output(x, n);
}

static dc_real slope(dc_real x) {
    dc_real gate = dc_fast_gelu_gate(x);
    return dc_fast_gelu_slope(x, gate, x * gate);
}

static void bwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    const dc_real *x = dc_row(j->x, e, r0), *dy = dc_row(j->dy, e, r0);
    dc_real *dx = dc_row(j->dx, e, r0);
    int64_t count = (int64_t)(r1 - r0) * j->x.cols;
    if (!j->add) memset(dx, 0, (size_t)count * sizeof *dx);
#pragma omp simd
    for (int64_t m = 0; m < count; m++)
        dx[m] += dy[m] * slope(x[m]);
}

void dc_cpu_gelu_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_span own = dc_cpu_trained_share(x, n);
    job j = {.x = dc_tensor_rows(dc_input_value(x, n, 0), own.first, own.end),
             .dx = dc_tensor_rows(dc_input_gradient(x, n, 0), own.first, own.end),
             .dy = dc_tensor_rows(dc_gradient(x, dc_self(x, n)), own.first, own.end),
             .add = dc_adds(x, n, 0)};
    dc_cpu_each_block(x->pool, bwd_rows, &j, j.dy.e, j.dy.rows);
    dc_cpu_share_input_gradient(x, n);
}
