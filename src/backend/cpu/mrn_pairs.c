// mrn_pairs: mrn (mrn.c) from every row of x to every row of y. That is a difference for every pair and column, and
// two more for gradients, so no array has pairs and columns at once: registers hold what one row's differences to
// many have come to.
//
//   panel   LANES rows of a matrix, transposed: column c of them lies side by side, at c * LANES. Times `sign`, by
//           which own rows are multiplied as well: sign own - panel is always x - y
//   own     the rows that a block of work makes numbers for, one after the other
//   other   the rows that they meet, a panel at a time, of it a chunk at a time, which stays in the cache
//
// Forward: own rows are y's, and x is in panels, which are kept. Backward makes the gradients to x and y in
// separate passes (both may be views of the same rows), each of which finds the largest differences and the
// lengths again, which for K chunks would be 2 K numbers to keep of each pair. A row's sums are taken in the order of
// the others, whatever the threads.
#include "backend/cpu/mrn.h"

enum { LANES = DC_MRN_LANES, ROWS = 64 }; // ROWS: own ones to a panel, in backward

typedef struct job {
    dc_mrn_shape s;
    dc_tensor own, other;
    dc_real *panels; // of other
    dc_tensor out;   // forward
    dc_tensor d, dy; // backward: gradients of own, (e, own rows, cols), and of the pairs
    dc_real sign;    // 1: own rows are x's; -1: y's
    bool add;
} job;

// Panel number p of a tensor's member e.
static dc_real *panel_at(dc_real *panels, const dc_tensor *t, int e, int p) {
    return panels + ((int64_t)e * dc_mrn_panels(t->rows) + p) * t->cols * LANES;
}

// ---- panels ----

// Lanes without a row are zeros.
static void panel_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1; r += LANES) {
        dc_real *to = panel_at(j->panels, &j->other, e, r / LANES);
        for (int l = 0; l < LANES; l++)
            for (int c = 0; c < j->other.cols; c++)
                to[c * LANES + l] = r + l < r1 ? j->sign * dc_row(j->other, e, r + l)[c] : 0;
    }
}

static void make_panels(const dc_exec *x, const job *j) {
    dc_cpu_each_block(x->pool, panel_rows, j, j->other.e, j->other.rows);
}

// ---- one row against a panel ----

// most = the largest of 0 and x - y over `count` columns.
static void largest(const dc_real *own, dc_real sign, const dc_real *panel, int count,
                    dc_real *most) {
    dc_real best[LANES] = {0};
    for (int c = 0; c < count; c++) {
        dc_real x = sign * own[c];
        const dc_real *p = panel + c * LANES;
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            best[l] = x - p[l] > best[l] ? x - p[l] : best[l];
    }
    for (int l = 0; l < LANES; l++)
        most[l] = best[l];
}

// In which column it is, the first of equals; -1: there is none above 0.
static void find_largest(const dc_real *own, dc_real sign, const dc_real *panel, int count,
                         dc_real *which) {
    dc_real best[LANES] = {0}, at[LANES];
    for (int l = 0; l < LANES; l++)
        at[l] = -1;
    for (int c = 0; c < count; c++) {
        dc_real x = sign * own[c], column = (dc_real)c;
        const dc_real *p = panel + c * LANES;
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            dc_real v = x - p[l], more = v > best[l];
            at[l] += more * (column - at[l]); // as a condition it would become a branch
            best[l] = v > best[l] ? v : best[l];
        }
    }
    for (int l = 0; l < LANES; l++)
        which[l] = at[l];
}

static void squares_of(const dc_real *own, dc_real sign, const dc_real *panel, int count,
                       dc_real *squares) {
    dc_real sum[LANES] = {0};
    for (int c = 0; c < count; c++) {
        dc_real x = sign * own[c];
        const dc_real *p = panel + c * LANES;
#pragma omp simd
        for (int l = 0; l < LANES; l++)
            sum[l] += (x - p[l]) * (x - p[l]);
    }
    for (int l = 0; l < LANES; l++)
        squares[l] = sum[l];
}

static int lanes_of(const job *j, int p) {
    int left = j->other.rows - p * LANES;
    return left < LANES ? left : LANES;
}

// ---- forward ----

// A comparison loses NaN; what this adds to a distance does not.
static dc_real bad_number(const dc_real *x, int count, int step) {
    dc_real sum = 0;
    for (int c = 0; c < count; c++)
        sum += 0 * x[c * step];
    return sum;
}

// out (+)= a chunk's part of the distances of row r to a panel's rows, `chunk` of which is given.
static void add_part(const job *j, const dc_real *own, const dc_real *chunk, bool first, int lanes,
                     dc_real *out) {
    const dc_mrn_shape *s = &j->s;
    dc_real most[LANES], squares[LANES];
    largest(own + s->most, j->sign, chunk + s->most * LANES, s->half, most);
    squares_of(own + s->square, j->sign, chunk + s->square * LANES, s->half, squares);
    for (int l = 0; l < lanes; l++)
        out[l] = (first ? 0 : out[l]) + most[l] + dc_mrn_length(s, squares[l]);
}

static void meet_panel(const job *j, int e, int r0, int r1, int p) {
    int cols = j->own.cols, lanes = lanes_of(j, p), at = p * LANES;
    const dc_real *panel = panel_at(j->panels, &j->other, e, p);
    dc_real bad[LANES];
    for (int l = 0; l < LANES; l++)
        bad[l] = bad_number(panel + l, cols, LANES);
    for (int c = 0; c < cols; c += j->s.chunk)
        for (int r = r0; r < r1; r++)
            add_part(j, dc_row(j->own, e, r) + c, panel + c * LANES, c == 0, lanes,
                     dc_row(j->out, e, r) + at);
    for (int r = r0; r < r1; r++) {
        dc_real *out = dc_row(j->out, e, r) + at, own = bad_number(dc_row(j->own, e, r), cols, 1);
        for (int l = 0; l < lanes; l++)
            out[l] = out[l] / (dc_real)j->s.chunks + bad[l] + own;
    }
}

static void fwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int p = 0; p < dc_mrn_panels(j->other.rows); p++)
        meet_panel(j, e, r0, r1, p);
}

void dc_cpu_mrn_pairs_fwd(const dc_exec *x, const dc_node *n) {
    job j = {.own = dc_value(x, n->in[1]),
             .other = dc_value(x, n->in[0]),
             .panels = x->temps + n->aux_offset,
             .out = dc_output(x, n),
             .sign = -1};
    j.s = dc_mrn_shape_of(n, j.own.cols);
    make_panels(x, &j);
    dc_cpu_each_block(x->pool, fwd_rows, &j, j.out.e, j.out.rows);
}

// ---- backward ----

// Gradients of the distances between `rows` own rows from r0 on and a panel's, a chunk's share.
static void load_gradients(const job *j, int e, int r0, int rows, int p, dc_real g[ROWS][LANES]) {
    int lanes = lanes_of(j, p), at = p * LANES;
    dc_real share = 1 / (dc_real)j->s.chunks;
    for (int r = 0; r < rows; r++)
        for (int l = 0; l < LANES; l++)
            g[r][l] = 0;
    if (j->sign > 0) {
        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < rows; r++)
                g[r][l] = share * dc_row(j->dy, e, at + l)[r0 + r];
    } else {
        for (int r = 0; r < rows; r++)
            for (int l = 0; l < lanes; l++)
                g[r][l] = share * dc_row(j->dy, e, r0 + r)[at + l];
    }
}

// d += of the largest differences.
static void add_largest(const job *j, const dc_real *own, const dc_real *chunk, const dc_real *g,
                        dc_real *d) {
    const dc_mrn_shape *s = &j->s;
    dc_real which[LANES];
    find_largest(own + s->most, j->sign, chunk + s->most * LANES, s->half, which);
    d += s->most;
    for (int l = 0; l < LANES; l++) // lanes without a row have no gradient
        if (which[l] >= 0) d[(int)which[l]] += j->sign * g[l];
}

// d += of the lengths: each pulls own and other together. other: rows of `lanes` of them.
static void add_lengths(const job *j, const dc_real *own, const dc_real *chunk,
                        const dc_real *other, int lanes, const dc_real *g, dc_real *d) {
    const dc_mrn_shape *s = &j->s;
    int step = j->other.cols;
    dc_real w[LANES];
    own += s->square, other += s->square, d += s->square;
    squares_of(own, j->sign, chunk + s->square * LANES, s->half, w);
    for (int l = 0; l < LANES; l++)
        w[l] = g[l] * dc_mrn_slope(s, w[l]);
    int l = 0;
    for (; l + 4 <= lanes; l += 4) {
        const dc_real *x0 = other + (int64_t)l * step, *x1 = x0 + step, *x2 = x1 + step,
                      *x3 = x2 + step;
#pragma omp simd
        for (int c = 0; c < s->half; c++)
            d[c] += w[l] * (own[c] - x0[c]) + w[l + 1] * (own[c] - x1[c]) +
                    w[l + 2] * (own[c] - x2[c]) + w[l + 3] * (own[c] - x3[c]);
    }
    for (; l < lanes; l++)
        for (int c = 0; c < s->half; c++)
            d[c] += w[l] * (own[c] - other[(int64_t)l * step + c]);
}

static void meet_panel_back(const job *j, int e, int r0, int rows, int p) {
    int cols = j->own.cols, lanes = lanes_of(j, p);
    const dc_real *panel = panel_at(j->panels, &j->other, e, p),
                  *other = dc_row(j->other, e, p * LANES);
    dc_real g[ROWS][LANES];
    load_gradients(j, e, r0, rows, p, g);
    for (int c = 0; c < cols; c += j->s.chunk)
        for (int r = 0; r < rows; r++) {
            const dc_real *own = dc_row(j->own, e, r0 + r) + c;
            dc_real *d = dc_row(j->d, e, r0 + r) + c;
            add_largest(j, own, panel + c * LANES, g[r], d);
            add_lengths(j, own, panel + c * LANES, other + c, lanes, g[r], d);
        }
}

static void bwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    for (int r = r0; r < r1 && !j->add; r++)
        for (int c = 0; c < j->d.cols; c++)
            dc_row(j->d, e, r)[c] = 0;
    for (int r = r0; r < r1; r += ROWS)
        for (int p = 0; p < dc_mrn_panels(j->other.rows); p++)
            meet_panel_back(j, e, r, r1 - r < ROWS ? r1 - r : ROWS, p);
}

void dc_cpu_mrn_pairs_bwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), to = dc_input_value(x, n, 1);
    job j = {.s = dc_mrn_shape_of(n, from.cols), .dy = dc_gradient(x, dc_self(x, n))};
    if (dc_wants(x, n, 0)) {
        j.sign = 1;
        j.own = from, j.other = to, j.d = dc_gradient(x, n->in[0]);
        j.add = dc_adds(x, n, 0);
        j.panels = x->temps + n->scratch_offset;
        make_panels(x, &j);
        dc_cpu_each_block(x->pool, bwd_rows, &j, j.d.e, j.d.rows);
    }
    if (dc_wants(x, n, 1)) {
        j.sign = -1;
        j.own = to, j.other = from, j.d = dc_input_gradient(x, n, 1);
        j.add = dc_adds(x, n, 1);
        j.panels = x->temps + n->aux_offset; // as forward left them
        dc_cpu_each_block(x->pool, bwd_rows, &j, j.d.e, j.d.rows);
    }
}
