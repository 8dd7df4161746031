// pair_dot: all rows of x against all rows of y, for each member: out = x y^T, dx = dout y,
// dy = dout^T x. Blocks of rows of the result go to threads; dx and dy are separate passes, as both may
// be views of the same rows.
#include "backend/cpu/cpu.h"

typedef struct job {
    dc_tensor x, y, out;    // x (e, n, d), y (e, m, d), out (e, n, m); x: trained rows in backward
    dc_tensor dx, dy, dout; // dout (e, trained rows, m)
    dc_real beta;           // 1: add
    bool bf16;              // products
} job;

static void fwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int d = j->x.cols, m = j->out.cols;
    dc_gemm(j->bf16, false, true, r1 - r0, m, d, dc_row(j->x, e, r0), d, dc_row(j->y, e, 0), d, 0,
            dc_row(j->out, e, r0), m);
}

void dc_cpu_pair_dot_fwd(const dc_exec *x, const dc_node *n) {
    job j = {.x = dc_value(x, n->in[0]),
             .y = dc_value(x, n->in[1]),
             .out = dc_output(x, n),
             .bf16 = x->bf16};
    dc_cpu_each_block(x->pool, fwd_rows, &j, j.out.e, j.out.rows);
}

static void dx_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int d = j->y.cols, m = j->dout.cols;
    dc_gemm(j->bf16, false, false, r1 - r0, d, m, dc_row(j->dout, e, r0), m, dc_row(j->y, e, 0), d,
            j->beta, dc_row(j->dx, e, r0), d);
}

static void dy_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int d = j->x.cols, m = j->dout.cols;
    dc_gemm(j->bf16, true, false, r1 - r0, d, j->x.rows, dc_row(j->dout, e, 0) + r0, m,
            dc_row(j->x, e, 0), d, j->beta, dc_row(j->dy, e, r0), d);
}

void dc_cpu_pair_dot_bwd(const dc_exec *x, const dc_node *n) {
    job j = {.x = dc_input_value(x, n, 0),
             .y = dc_value(x, n->in[1]),
             .dout = dc_gradient(x, dc_self(x, n)),
             .bf16 = x->bf16};
    if (dc_wants(x, n, 0)) {
        j.dx = dc_input_gradient(x, n, 0);
        j.beta = dc_adds(x, n, 0);
        dc_cpu_each_block(x->pool, dx_rows, &j, j.dout.e, j.dout.rows);
    }
    if (dc_wants(x, n, 1)) {
        j.dy = dc_gradient(x, n->in[1]);
        j.beta = dc_adds(x, n, 1);
        dc_cpu_each_block(x->pool, dy_rows, &j, j.dout.e, j.dout.cols);
    }
}
