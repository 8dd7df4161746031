// gelu_layernorm: h = gelu(x), y = (h - mean) / sqrt(var + 1e-6) * scale + bias over each row.
// Forward leaves mean and 1/std of every row; backward computes h again, which is cheaper than
// storing it.
#include "backend/cpu/cpu.h"
#include "backend/cpu/fastmath.h"

#include <string.h>

enum { COLUMNS_MAX = 8192 }; // widest layer: a row of h fits on the stack

typedef struct job {
    dc_tensor x, scale, bias, y;
    dc_tensor dx, dscale, dbias, dy; // dx, dy and x: trained rows in backward
    dc_real *stats;                  // (e, rows, 2): mean, 1/std
    dc_real *partial;                // (e, blocks, 2, cols): sums for scale and bias
    int blocks, rows, lo; // blocks per member; rows of the whole node; the first row here
    bool want_x, want_w, add_x;
} job;

static int least(int a, int b) {
    return a < b ? a : b;
}

static void fwd_row(const dc_real *x, const dc_real *scale, const dc_real *bias, dc_real *y,
                    dc_real *stats, int cols) {
    dc_real sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < cols; c++) {
        dc_real h = dc_fast_gelu(x[c]);
        y[c] = h;
        sum += h;
    }
    dc_real mean = sum / (dc_real)cols;
#pragma omp simd reduction(+ : square)
    for (int c = 0; c < cols; c++)
        square += (y[c] - mean) * (y[c] - mean);
    dc_real inv = 1 / (dc_real)sqrt((double)(square / (dc_real)cols) + 1e-6);
#pragma omp simd
    for (int c = 0; c < cols; c++)
        y[c] = (y[c] - mean) * inv * scale[c] + bias[c];
    stats[0] = mean;
    stats[1] = inv;
}

static void fwd_block(void *ctx, int block) {
    const job *j = ctx;
    int e = block / j->blocks, r0 = block % j->blocks * DC_ROW_BLOCK, cols = j->x.cols;
    int end = least(r0 + DC_ROW_BLOCK, j->x.rows);
    const dc_real *scale = j->scale.p + e * j->scale.step, *bias = j->bias.p + e * j->bias.step;
    for (int r = r0; r < end; r++) {
        int64_t at = (int64_t)r * cols;
        fwd_row(j->x.p + e * j->x.step + at, scale, bias, j->y.p + e * j->y.step + at,
                j->stats + 2 * ((int64_t)e * j->rows + j->lo + r), cols);
    }
}

void dc_cpu_gelu_layernorm_fwd(const dc_exec *x, const dc_node *n) {
    dc_span part[3];
    dc_tensor in = dc_value(x, n->in[0]), out = dc_output(x, n);
    job j = {.scale = dc_value(x, n->in[1]), .bias = dc_value(x, n->in[2]), .rows = n->rows};
    j.stats = x->temps + n->aux_offset;
    int parts = dc_cpu_share(x, n, part);
    for (int k = 0; k < parts; k++) {
        j.x = dc_tensor_rows(in, part[k].first, part[k].end);
        j.y = dc_tensor_rows(out, part[k].first, part[k].end);
        j.lo = part[k].first;
        j.blocks = dc_blocks(j.x.rows);
        dc_pool_run(x->pool, fwd_block, &j, n->e * j.blocks);
    }
    dc_cpu_share_output(x, n);
}

// With z = (h - mean) / std and q = dy * scale: dh = (q - mean(q) - z mean(q z)) / std, dx = dh
// gelu'(x).
static void bwd_row(const job *j, const dc_real *x, const dc_real *dy, const dc_real *scale,
                    const dc_real *stats, dc_real *sums, dc_real *dx) {
    int cols = j->x.cols;
    dc_real z[COLUMNS_MAX], slope[COLUMNS_MAX], mean = stats[0], inv = stats[1], q1 = 0, q2 = 0;
    dc_real *sum_scale = sums, *sum_bias = sums + cols;
#pragma omp simd reduction(+ : q1, q2)
    for (int c = 0; c < cols; c++) {
        dc_real s = dc_fast_gelu_gate(x[c]), h = x[c] * s;
        slope[c] = dc_fast_gelu_slope(x[c], s, h);
        z[c] = (h - mean) * inv;
        sum_scale[c] += dy[c] * z[c];
        sum_bias[c] += dy[c];
        q1 += dy[c] * scale[c];
        q2 += dy[c] * scale[c] * z[c];
    }
    if (!j->want_x) return;
    q1 /= (dc_real)cols;
    q2 /= (dc_real)cols;
    dc_real add = j->add_x;
#pragma omp simd
    for (int c = 0; c < cols; c++) {
        dc_real dh = (dy[c] * scale[c] - q1 - z[c] * q2) * inv;
        dx[c] = (add != 0 ? dx[c] : 0) + dh * slope[c];
    }
}

static void bwd_block(void *ctx, int block) {
    const job *j = ctx;
    int e = block / j->blocks, r0 = block % j->blocks * DC_ROW_BLOCK, cols = j->x.cols;
    int end = least(r0 + DC_ROW_BLOCK, j->dy.rows);
    const dc_real *scale = j->scale.p + e * j->scale.step;
    dc_real *sums = j->partial + (int64_t)block * 2 * cols;
    memset(sums, 0, (size_t)cols * 2 * sizeof *sums);
    for (int r = r0; r < end; r++) {
        int64_t at = (int64_t)r * cols;
        bwd_row(j, j->x.p + e * j->x.step + at, j->dy.p + e * j->dy.step + at, scale,
                j->stats + 2 * ((int64_t)e * j->rows + j->lo + r), sums,
                j->want_x ? j->dx.p + e * j->dx.step + at : NULL);
    }
}

// Add up the blocks' sums, in order: part 0 for scale, 1 for bias.
static void reduce(const job *j, dc_tensor out, int part, bool add) {
    int cols = j->x.cols;
    for (int e = 0; e < out.e; e++) {
        dc_real *d = out.p + e * out.step;
        if (!add) memset(d, 0, (size_t)cols * sizeof *d);
        for (int k = 0; k < j->blocks; k++) {
            const dc_real *sums = j->partial + (((int64_t)e * j->blocks + k) * 2 + part) * cols;
            for (int c = 0; c < cols; c++)
                d[c] += sums[c];
        }
    }
}

// Gradients from this rank's rows.
static void bwd_share(const dc_exec *x, const dc_node *n, job *j, dc_span own) {
    j->x = dc_tensor_rows(j->x, own.first, own.end);
    j->dy = dc_tensor_rows(j->dy, own.first, own.end);
    if (j->want_x) j->dx = dc_tensor_rows(j->dx, own.first, own.end);
    j->lo = n->lo + own.first;
    dc_cpu_begin_sums(x, n);
    j->blocks = dc_blocks(j->dy.rows);
    dc_pool_run(x->pool, bwd_block, j, n->e * j->blocks);
    for (int i = 1; i <= 2; i++) {
        if (!dc_wants(x, n, i)) continue;
        reduce(j, dc_gradient(x, n->in[i]), i - 1, dc_cpu_take_sum(x, n, i));
        dc_cpu_pass_sum(x, n, i);
    }
}

void dc_cpu_gelu_layernorm_bwd(const dc_exec *x, const dc_node *n) {
    DC_CHECK(n->cols <= COLUMNS_MAX);
    job j = {.x = dc_input_value(x, n, 0), .scale = dc_value(x, n->in[1])};
    j.dy = dc_gradient(x, dc_self(x, n));
    j.stats = x->temps + n->aux_offset;
    j.partial = x->temps + n->scratch_offset;
    j.rows = n->rows;
    j.want_x = dc_wants(x, n, 0);
    j.add_x = dc_adds(x, n, 0);
    if (j.want_x) j.dx = dc_input_gradient(x, n, 0);
    dc_span own = dc_cpu_trained_share(x, n);
    if (own.first < own.end) bwd_share(x, n, &j, own);
    dc_cpu_share_input_gradient(x, n);
}
