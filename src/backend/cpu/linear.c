// linear: y = x W + b, for an ensemble of e networks. Forward and backward are split into blocks of
// DC_ROW_BLOCK rows (dW: of input columns), the unit of work of the pool.
#include "backend/cpu/cpu.h"

#include <string.h>

typedef struct job {
    dc_tensor x, w, b, y;     // x (e or 1, n, in), w (e, in, out), b (e, 1, out), y (e, n, out)
    dc_tensor dx, dw, db, dy; // dx and dy cover the trained rows only, and so does x in backward
    dc_real beta_x, beta_w, beta_b;
    int row_blocks, w_blocks; // of one ensemble member
    bool want_x, want_w;
    bool shared_x;    // one input for several members
    bool quick_row;   // forward of a single row, see dc_exec
    bool bf16;        // products
    dc_real *partial; // (e, row_blocks, out): sums of dy over a block's rows
} job;

static int least(int a, int b) {
    return a < b ? a : b;
}

// Last layers have one output: a matrix product would spend its time on packing.
static void column_fwd(const dc_real *x, const dc_real *w, dc_real bias, dc_real *y, int rows,
                       int in) {
    for (int r = 0; r < rows; r++) {
        dc_real sum = 0;
        const dc_real *row = x + (int64_t)r * in;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < in; c++)
            sum += row[c] * w[c];
        y[r] = sum + bias;
    }
}

// y += x W for one row: every weight is read once, four rows of W at a time.
static void row_fwd(const dc_real *restrict x, const dc_real *restrict w, dc_real *restrict y,
                    int in, int out) {
    int c = 0;
    for (; c + 4 <= in; c += 4) {
        const dc_real *w0 = w + (int64_t)c * out, *w1 = w0 + out, *w2 = w1 + out, *w3 = w2 + out;
        for (int k = 0; k < out; k++)
            y[k] += x[c] * w0[k] + x[c + 1] * w1[k] + x[c + 2] * w2[k] + x[c + 3] * w3[k];
    }
    for (; c < in; c++)
        for (int k = 0; k < out; k++)
            y[k] += x[c] * w[(int64_t)c * out + k];
}

static void fwd_block(void *ctx, int block) {
    const job *j = ctx;
    int e = block / j->row_blocks, r0 = block % j->row_blocks * DC_ROW_BLOCK;
    int rows = least(DC_ROW_BLOCK, j->y.rows - r0), in = j->x.cols, out = j->y.cols;
    const dc_real *x = j->x.p + e * j->x.step + (int64_t)r0 * in, *w = j->w.p + e * j->w.step;
    const dc_real *b = j->b.p + e * j->b.step;
    dc_real *y = j->y.p + e * j->y.step + (int64_t)r0 * out;
    if (out == 1) {
        column_fwd(x, w, *b, y, rows, in);
        return;
    }
    for (int r = 0; r < rows; r++)
        memcpy(y + (int64_t)r * out, b, (size_t)out * sizeof *b);
    if (j->quick_row)
        row_fwd(x, w, y, in, out);
    else
        dc_gemm(j->bf16, false, false, rows, out, in, x, in, w, out, 1, y, out);
}

void dc_cpu_linear_fwd(const dc_exec *x, const dc_node *n) {
    dc_span part[3];
    dc_tensor in = dc_value(x, n->in[0]), out = dc_output(x, n);
    job j = {.w = dc_value(x, n->in[1]), .b = dc_value(x, n->in[2]), .bf16 = x->bf16};
    j.quick_row = x->quick_row && out.rows == 1;
    int parts = dc_cpu_share(x, n, part);
    for (int k = 0; k < parts; k++) {
        j.x = dc_tensor_rows(in, part[k].first, part[k].end);
        j.y = dc_tensor_rows(out, part[k].first, part[k].end);
        j.row_blocks = dc_blocks(j.y.rows);
        dc_pool_run(x->pool, fwd_block, &j, n->e * j.row_blocks);
    }
    dc_cpu_share_output(x, n);
}

// dx = dy W^T for a block of rows.
static void dx_block(const job *j, int e, int r0, int rows) {
    int in = j->x.cols, out = j->dy.cols;
    const dc_real *dy = j->dy.p + e * j->dy.step + (int64_t)r0 * out, *w = j->w.p + e * j->w.step;
    dc_real *dx = j->dx.p + e * j->dx.step + (int64_t)r0 * in;
    if (out > 1) {
        dc_gemm(j->bf16, false, true, rows, in, out, dy, out, w, out, j->beta_x, dx, in);
        return;
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < in; c++)
            dx[(int64_t)r * in + c] = (j->beta_x != 0 ? dx[(int64_t)r * in + c] : 0) + dy[r] * w[c];
}

// Column sums of dy over a block of rows.
static void db_block(const job *j, int e, int r0, int rows) {
    int out = j->dy.cols;
    const dc_real *dy = j->dy.p + e * j->dy.step + (int64_t)r0 * out;
    dc_real *sum = j->partial + ((int64_t)e * j->row_blocks + r0 / DC_ROW_BLOCK) * out;
    memset(sum, 0, (size_t)out * sizeof *sum);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < out; c++)
            sum[c] += dy[(int64_t)r * out + c];
}

// dW = x^T dy for a block of W's rows.
static void dw_block(const job *j, int e, int c0, int cols) {
    int in = j->x.cols, out = j->dy.cols, rows = j->dy.rows;
    const dc_real *x = j->x.p + e * j->x.step + c0, *dy = j->dy.p + e * j->dy.step;
    dc_real *dw = j->dw.p + e * j->dw.step + (int64_t)c0 * out;
    if (out > 1) {
        dc_gemm(j->bf16, true, false, cols, out, rows, x, in, dy, out, j->beta_w, dw, out);
        return;
    }
    if (j->beta_w == 0) memset(dw, 0, (size_t)cols * sizeof *dw);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            dw[c] += dy[r] * x[(int64_t)r * in + c];
}

enum { W_BLOCK = 128 }; // rows of W a block

// An input that all members share collects from each, in order, within one block.
static void dx_shared(const job *j, int r0, int rows) {
    job one = *j;
    for (int e = 0; e < j->dy.e; e++) {
        dx_block(&one, e, r0, rows);
        one.beta_x = 1;
    }
}

static void bwd_block(void *ctx, int block) {
    const job *j = ctx;
    int per = j->row_blocks + j->w_blocks, e = block / per, k = block % per;
    if (k < j->w_blocks) {
        int c0 = k * W_BLOCK;
        if (j->want_w) dw_block(j, e, c0, least(W_BLOCK, j->x.cols - c0));
        return;
    }
    int r0 = (k - j->w_blocks) * DC_ROW_BLOCK, rows = least(DC_ROW_BLOCK, j->dy.rows - r0);
    if (j->want_x && !j->shared_x) dx_block(j, e, r0, rows);
    if (j->want_x && j->shared_x && e == 0) dx_shared(j, r0, rows);
    if (j->want_w) db_block(j, e, r0, rows);
}

// Add up the blocks' sums, in order.
static void reduce_bias(const job *j) {
    int out = j->dy.cols;
    for (int e = 0; e < j->dy.e; e++) {
        dc_real *db = j->db.p + e * j->db.step;
        if (j->beta_b == 0) memset(db, 0, (size_t)out * sizeof *db);
        for (int k = 0; k < j->row_blocks; k++)
            for (int c = 0; c < out; c++)
                db[c] += j->partial[((int64_t)e * j->row_blocks + k) * out + c];
    }
}

// What there is to add to.
static void take_sums(const dc_exec *x, const dc_node *n, job *j) {
    j->beta_w = dc_cpu_take_sum(x, n, 1);
    j->beta_b = dc_cpu_take_sum(x, n, 2);
}

// Gradients from this rank's rows. Of several ranks dW waits for those before; dx and the blocks' sums of dy do not.
static void bwd_share(const dc_exec *x, const dc_node *n, job *j, dc_span own) {
    int w_blocks = (j->x.cols + W_BLOCK - 1) / W_BLOCK;
    j->x = dc_tensor_rows(j->x, own.first, own.end);
    j->dy = dc_tensor_rows(j->dy, own.first, own.end);
    if (j->want_x) j->dx = dc_tensor_rows(j->dx, own.first, own.end);
    j->row_blocks = dc_blocks(j->dy.rows);
    j->w_blocks = x->ranks ? 0 : w_blocks;
    dc_cpu_begin_sums(x, n);
    if (j->want_w && !x->ranks) take_sums(x, n, j);
    dc_pool_run(x->pool, bwd_block, j, n->e * (j->row_blocks + j->w_blocks));
    if (!j->want_w) return;
    if (x->ranks) {
        take_sums(x, n, j);
        job sums = *j;
        sums.w_blocks = w_blocks;
        sums.row_blocks = 0;
        dc_pool_run(x->pool, bwd_block, &sums, n->e * w_blocks);
    }
    reduce_bias(j);
    dc_cpu_pass_sum(x, n, 1);
    dc_cpu_pass_sum(x, n, 2);
}

void dc_cpu_linear_bwd(const dc_exec *x, const dc_node *n) {
    job j = {.w = dc_value(x, n->in[1]), .dy = dc_gradient(x, dc_self(x, n))};
    j.bf16 = x->bf16;
    j.x = dc_input_value(x, n, 0);
    j.want_x = dc_wants(x, n, 0);
    j.want_w = dc_wants(x, n, 1); // weights and bias are live together
    j.shared_x = x->graph->nodes[n->in[0]].e < n->e;
    if (j.want_x) j.dx = dc_input_gradient(x, n, 0);
    if (j.want_w) {
        j.dw = dc_gradient(x, n->in[1]);
        j.db = dc_gradient(x, n->in[2]);
    }
    j.beta_x = dc_adds(x, n, 0);
    j.partial = x->temps + n->scratch_offset;
    dc_span own = dc_cpu_trained_share(x, n);
    if (own.first < own.end) bwd_share(x, n, &j, own);
    dc_cpu_share_input_gradient(x, n);
}
