// mrn: metric residual network, a quasimetric by construction. A row's columns come in K chunks of two halves:
//     d(x, y) = mean over chunks of max(0, largest x_c - y_c of one half) + length of x - y in the other
// The first part has a direction, the second is a metric. Each row is done at once; backward finds the
// largest differences again.
#include "backend/cpu/mrn.h"

typedef struct job {
    dc_mrn_shape s;
    dc_tensor x, y, out; // trained rows of x and y in backward
    dc_tensor d, dout;   // gradients of x or y and of the output
    dc_real sign;        // of that input in x - y
    bool add;
} job;

// Column of the largest x - y, the first of equals; adds NaN to *total if any is.
static int largest(const dc_real *x, const dc_real *y, int count, dc_real *total) {
    int first = 0;
    for (int c = 0; c < count; c++) {
        *total += 0 * (x[c] - y[c]);
        if (x[c] - y[c] > x[first] - y[first]) first = c;
    }
    return first;
}

static dc_real squares(const dc_real *x, const dc_real *y, int count) {
    dc_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < count; c++)
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
}

static dc_real distance(const dc_mrn_shape *s, const dc_real *x, const dc_real *y) {
    dc_real total = 0;
    for (int k = 0; k < s->chunks; k++, x += s->chunk, y += s->chunk) {
        int c = s->most + largest(x + s->most, y + s->most, s->half, &total);
        total += x[c] - y[c] > 0 ? x[c] - y[c] : 0;
        total += dc_mrn_length(s, squares(x + s->square, y + s->square, s->half));
    }
    return total / (dc_real)s->chunks;
}

static void fwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r++)
        *dc_row(j->out, e, r) = distance(&j->s, dc_row(j->x, e, r), dc_row(j->y, e, r));
}

void dc_cpu_mrn_fwd(const dc_exec *x, const dc_node *n) {
    job j = {.x = dc_value(x, n->in[0]), .y = dc_value(x, n->in[1]), .out = dc_output(x, n)};
    j.s = dc_mrn_shape_of(n, j.x.cols);
    dc_cpu_each_block(x->pool, fwd_rows, &j, j.out.e, j.out.rows);
}

// d += g times the gradient of one chunk.
static void add_chunk(const dc_mrn_shape *s, const dc_real *x, const dc_real *y, dc_real g,
                      dc_real *d) {
    dc_real unused = 0;
    int c = s->most + largest(x + s->most, y + s->most, s->half, &unused);
    if (x[c] - y[c] > 0) d[c] += g;
    x += s->square, y += s->square, d += s->square;
    dc_real slope = g * dc_mrn_slope(s, squares(x, y, s->half));
    for (c = 0; c < s->half; c++)
        d[c] += slope * (x[c] - y[c]);
}

static void bwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int cols = j->x.cols;
    for (int r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r), *y = dc_row(j->y, e, r);
        dc_real *d = dc_row(j->d, e, r), g = j->sign * *dc_row(j->dout, e, r);
        for (int c = 0; c < cols; c++)
            d[c] = j->add ? d[c] : 0;
        for (int c = 0; c < cols; c += j->s.chunk)
            add_chunk(&j->s, x + c, y + c, g / (dc_real)j->s.chunks, d + c);
    }
}

void dc_cpu_mrn_bwd(const dc_exec *x, const dc_node *n) {
    for (int i = 0; i < 2; i++) {
        if (!dc_wants(x, n, i)) continue;
        job j = {.x = dc_input_value(x, n, 0),
                 .y = dc_input_value(x, n, 1),
                 .d = dc_input_gradient(x, n, i),
                 .dout = dc_gradient(x, dc_self(x, n)),
                 .sign = i == 0 ? 1 : -1,
                 .add = dc_adds(x, n, i)};
        j.s = dc_mrn_shape_of(n, j.x.cols);
        dc_cpu_each_block(x->pool, bwd_rows, &j, j.dout.e, j.dout.rows);
    }
}
