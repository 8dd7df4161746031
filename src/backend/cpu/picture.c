// Ops on pictures: conv3x3 and max_pool. A row of a tensor is a picture (height, width, channels).
//
// A convolution is a matrix product: a tile has the nine neighbours of each of some places in a row of 9 c numbers, those
// beyond the edge being 0, and W has a row for each of them. So
//
//   forward   y = tile W + b
//   W         sum over places of tile^T dy: blocks of DC_CONV_PICTURES pictures, then blocks in their order
//   x         dx = (tile of dy) W', where W'(-ky, -kx, out, in) = W(ky, kx, in, out)
//
// Tiles lie on the stack of the thread that makes them.
#include "backend/cpu/cpu.h"

#include <string.h>

typedef struct size {
    int h, w, c; // of a picture
} size;

static int64_t cells(size s) {
    return (int64_t)s.h * s.w * s.c;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

// ---- conv3x3 ----

typedef struct job {
    size in, out;         // of a picture of x, of y; dx and dy are like those
    dc_tensor x, y;       // forward: all rows in use; backward: x at the trained rows
    dc_tensor dx, dw, dy; // backward, at those rows
    const dc_real *w, *b; // (9 c, d), (d)
    dc_real *turned;      // (9 d, c): W'
    dc_real *parts;       // (blocks, 9 c + 1, d): sums of dW and, last, db over a block's pictures
    bool want_x, want_w, add_x, bf16;
} job;

// Neighbours of `count` places from number `first` on, (count, 9 c).
static void make_tile(size s, const dc_real *picture, int first, int count, dc_real *tile) {
    for (int p = first; p < first + count; p++)
        for (int y = p / s.w - 1; y <= p / s.w + 1; y++, tile += 3 * s.c) {
            int x = p % s.w, from = x ? x - 1 : 0, to = least(x + 2, s.w);
            if (y < 0 || y >= s.h || to - from < 3) memset(tile, 0, 3 * (size_t)s.c * sizeof *tile);
            if (y < 0 || y >= s.h) continue;
            memcpy(tile + (from - (x - 1)) * s.c, picture + ((int64_t)y * s.w + from) * s.c,
                   (size_t)(to - from) * (size_t)s.c * sizeof *tile);
        }
}

static int tile_places(size s) {
    return least(DC_CONV_TILE / (9 * s.c), s.h * s.w);
}

// A picture (h, w, s.c) to (h, w, d) by weights (9 s.c, d). Nullable: bias; without one, `add` says whether out is added to.
static void convolve(const job *j, size s, const dc_real *picture, int d, const dc_real *w,
                     const dc_real *bias, bool add, dc_real *out) {
    dc_real tile[DC_CONV_TILE];
    int step = tile_places(s), k = 9 * s.c;
    for (int first = 0; first < s.h * s.w; first += step) {
        int count = least(step, s.h * s.w - first);
        dc_real *to = out + (int64_t)first * d;
        for (int p = 0; bias && p < count; p++)
            memcpy(to + (int64_t)p * d, bias, (size_t)d * sizeof *to);
        make_tile(s, picture, first, count, tile);
        dc_gemm(j->bf16, false, false, count, d, k, tile, k, w, d, bias || add, to, d);
    }
}

static void convolve_row(void *ctx, int r) {
    const job *j = ctx;
    convolve(j, j->in, dc_row(j->x, 0, r), j->out.c, j->w, j->b, false, dc_row(j->y, 0, r));
}

static job new_job(const dc_exec *x, const dc_node *n) {
    dc_tensor w = dc_value(x, n->in[1]);
    job j = {.w = w.p, .b = dc_value(x, n->in[2]).p, .bf16 = x->bf16};
    j.in = (size){(int)n->a, (int)n->b, w.rows / 9};
    j.out = (size){(int)n->a, (int)n->b, w.cols};
    return j;
}

void dc_cpu_conv3x3_fwd(const dc_exec *x, const dc_node *n) {
    job j = new_job(x, n);
    j.x = dc_value(x, n->in[0]);
    j.y = dc_output(x, n);
    dc_pool_run(x->pool, convolve_row, &j, j.y.rows);
}

static void turn_weights(const job *j) {
    int c = j->in.c, d = j->out.c;
    for (int k = 0; k < 9; k++)
        for (int i = 0; i < c; i++)
            for (int o = 0; o < d; o++)
                j->turned[((int64_t)(8 - k) * d + o) * c + i] = j->w[((int64_t)k * c + i) * d + o];
}

// Add what one picture gives to dW (9 c, d) and db (d).
static void weigh(const job *j, const dc_real *picture, const dc_real *dy, dc_real *dw,
                  dc_real *db) {
    dc_real tile[DC_CONV_TILE];
    int step = tile_places(j->in), places = j->in.h * j->in.w, k = 9 * j->in.c, d = j->out.c;
    for (int first = 0; first < places; first += step) {
        int count = least(step, places - first);
        make_tile(j->in, picture, first, count, tile);
        dc_gemm(j->bf16, true, false, k, d, count, tile, k, dy + (int64_t)first * d, d, 1, dw, d);
    }
    for (int p = 0; p < places; p++)
        for (int o = 0; o < d; o++)
            db[o] += dy[(int64_t)p * d + o];
}

static void backward_block(void *ctx, int block) {
    const job *j = ctx;
    int64_t weights = 9 * (int64_t)j->in.c * j->out.c;
    dc_real *dw = j->parts + block * (weights + j->out.c);
    int first = block * DC_CONV_PICTURES, last = least(first + DC_CONV_PICTURES, j->dy.rows);
    if (j->want_w) memset(dw, 0, (size_t)(weights + j->out.c) * sizeof *dw);
    for (int r = first; r < last; r++) {
        const dc_real *dy = dc_row(j->dy, 0, r);
        if (j->want_w) weigh(j, dc_row(j->x, 0, r), dy, dw, dw + weights);
        if (j->want_x)
            convolve(j, j->out, dy, j->in.c, j->turned, NULL, j->add_x, dc_row(j->dx, 0, r));
    }
}

// Blocks in their order.
static void add_parts(const dc_real *parts, int64_t step, int blocks, int64_t count, bool add,
                      dc_real *out) {
    if (!add) memset(out, 0, (size_t)count * sizeof *out);
    for (int k = 0; k < blocks; k++)
        for (int64_t i = 0; i < count; i++)
            out[i] += parts[k * step + i];
}

void dc_cpu_conv3x3_bwd(const dc_exec *x, const dc_node *n) {
    job j = new_job(x, n);
    j.x = dc_input_value(x, n, 0);
    j.dy = dc_gradient(x, dc_self(x, n));
    j.want_x = dc_wants(x, n, 0);
    bool want_w = dc_wants(x, n, 1), want_b = dc_wants(x, n, 2);
    j.want_w = want_w || want_b;
    int64_t weights = 9 * (int64_t)j.in.c * j.out.c;
    int blocks = dc_conv_blocks(j.dy.rows);
    j.turned = x->temps + n->scratch_offset;
    j.parts = j.turned + weights;
    j.add_x = dc_adds(x, n, 0);
    if (j.want_x) {
        j.dx = dc_input_gradient(x, n, 0);
        turn_weights(&j);
    }
    dc_pool_run(x->pool, backward_block, &j, blocks);
    if (want_w)
        add_parts(j.parts, weights + j.out.c, blocks, weights, dc_adds(x, n, 1),
                  dc_gradient(x, n->in[1]).p);
    if (want_b)
        add_parts(j.parts + weights, weights + j.out.c, blocks, j.out.c, dc_adds(x, n, 2),
                  dc_gradient(x, n->in[2]).p);
}

// ---- max_pool ----

typedef struct pool_job {
    size in, out;
    dc_tensor x, y; // backward: x at the trained rows
    dc_tensor dx, dy;
    bool add;
} pool_job;

static pool_job new_pool(const dc_exec *x, const dc_node *n) {
    int h = (int)n->a, w = (int)n->b, c = x->graph->nodes[n->in[0]].cols / (h * w);
    return (pool_job){.in = {h, w, c}, .out = {dc_pooled(h), dc_pooled(w), c}};
}

// Where a window begins, and where it ends, within n places.
static void window(int at, int n, int *from, int *to) {
    int first = 2 * at - dc_pool_before(n);
    *from = first < 0 ? 0 : first;
    *to = least(first + 3, n);
}

// A window that has a NaN becomes NaN.
static void pool_row(void *ctx, int r) {
    const pool_job *j = ctx;
    const dc_real *picture = dc_row(j->x, 0, r);
    dc_real *out = dc_row(j->y, 0, r);
    int c = j->in.c, y0, y1, x0, x1;
    for (int at = 0; at < j->out.h * j->out.w; at++, out += c) {
        window(at / j->out.w, j->in.h, &y0, &y1);
        window(at % j->out.w, j->in.w, &x0, &x1);
        memcpy(out, picture + ((int64_t)y0 * j->in.w + x0) * c, (size_t)c * sizeof *out);
        for (int y = y0; y < y1; y++)
            for (int x = x0; x < x1; x++) {
                const dc_real *v = picture + ((int64_t)y * j->in.w + x) * c;
                for (int i = 0; i < c; i++)
                    out[i] = !(v[i] <= out[i]) && out[i] == out[i] ? v[i] : out[i];
            }
    }
}

void dc_cpu_max_pool_fwd(const dc_exec *x, const dc_node *n) {
    pool_job j = new_pool(x, n);
    j.x = dc_value(x, n->in[0]);
    j.y = dc_output(x, n);
    dc_pool_run(x->pool, pool_row, &j, j.y.rows);
}

enum { CHANNELS = 64 }; // that are looked at together

// The window at place number `at`: of `count` channels from `first` on the place of the largest number, the first of equals
// in row-major order, takes the gradient.
static void pool_back_window(const pool_job *j, const dc_real *picture, int at, int first,
                             int count, const dc_real *dy, dc_real *dx) {
    dc_real most[CHANNELS];
    int32_t where[CHANNELS];
    int y0, y1, x0, x1, c = j->in.c;
    window(at / j->out.w, j->in.h, &y0, &y1);
    window(at % j->out.w, j->in.w, &x0, &x1);
    for (int i = 0; i < count; i++) {
        where[i] = y0 * j->in.w + x0;
        most[i] = picture[(int64_t)where[i] * c + first + i];
    }
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            int32_t here = y * j->in.w + x;
            const dc_real *v = picture + (int64_t)here * c + first;
            for (int i = 0; i < count; i++) {
                bool more = v[i] > most[i];
                most[i] = more ? v[i] : most[i];
                where[i] = more ? here : where[i];
            }
        }
    for (int i = 0; i < count; i++)
        dx[(int64_t)where[i] * c + first + i] += dy[first + i];
}

static void pool_back_row(void *ctx, int r) {
    const pool_job *j = ctx;
    const dc_real *picture = dc_row(j->x, 0, r), *dy = dc_row(j->dy, 0, r);
    dc_real *dx = dc_row(j->dx, 0, r);
    if (!j->add) memset(dx, 0, (size_t)cells(j->in) * sizeof *dx);
    for (int at = 0; at < j->out.h * j->out.w; at++, dy += j->in.c)
        for (int first = 0; first < j->in.c; first += CHANNELS)
            pool_back_window(j, picture, at, first, least(CHANNELS, j->in.c - first), dy, dx);
}

void dc_cpu_max_pool_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    pool_job j = new_pool(x, n);
    j.x = dc_input_value(x, n, 0);
    j.dx = dc_input_gradient(x, n, 0);
    j.dy = dc_gradient(x, dc_self(x, n));
    j.add = dc_adds(x, n, 0);
    dc_pool_run(x->pool, pool_back_row, &j, j.dy.rows);
}
