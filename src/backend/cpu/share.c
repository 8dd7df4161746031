// Ranks that compute one graph together (base/ranks.h), to the bytes of one process. Layers (linear, gelu_layernorm,
// gelu) are nearly all of the work and go row by row, so each rank computes its part of their rows. All the rest, losses
// and what brings rows together, is computed by every rank for all rows.
//
//   forward    A layer's output that anything but the next layer reads is gathered: the last layer's, few columns.
//   backward   A rank has whole blocks of DC_ROW_BLOCK trained rows, counted from the first trained row, as one process
//              does. A gradient to rows that no layer made (an action that goes into a critic) is gathered.
//   weights    A gradient is the sum of the blocks' parts in order; a product's part for a block is summed by itself
//              (DEPTH in gemm_kernel.h). So the sum goes from rank to rank: each adds its blocks, in order, to what
//              the ranks before came to. The last rank of them has the result. Layers follow each other like work
//              in a pipeline: while a rank adds to one layer's sum, the rank before is at the next layer.
//
// The last rank always has a block, so at the end of a step it has all gradients, which go to all.
#include "backend/cpu/cpu.h"

#include <string.h>

static bool is_layer(const dc_node *n) {
    return n->op == DC_OP_linear || n->op == DC_OP_gelu_layernorm || n->op == DC_OP_gelu;
}

// Where part `rank` of `count` begins.
static int part_of(int n, int rank, int count) {
    return (int)((int64_t)n * rank / count);
}

// A rank's blocks of n rows.
static dc_span blocks_of(int n, int rank, int count) {
    int blocks = dc_blocks(n), end = part_of(blocks, rank + 1, count) * DC_ROW_BLOCK;
    return (dc_span){part_of(blocks, rank, count) * DC_ROW_BLOCK, end < n ? end : n};
}

static dc_span trained_of(const dc_node *n, int rank, int count) {
    return blocks_of(n->hi - n->lo, rank, count);
}

static int add_span(dc_span spans[3], int count, int first, int end) {
    if (first < end) spans[count++] = (dc_span){first, end};
    return count;
}

// Rows before the trained ones, trained ones, and rows behind them are each shared out.
static int share_of(const dc_node *n, int rows, int rank, int count, dc_span spans[3]) {
    int lo = n->lo, hi = n->hi, have = 0;
    if (lo == hi) lo = hi = 0;
    dc_span own = trained_of(n, rank, count);
    have = add_span(spans, have, part_of(lo, rank, count), part_of(lo, rank + 1, count));
    have = add_span(spans, have, lo + own.first, lo + own.end);
    return add_span(spans, have, hi + part_of(rows - hi, rank, count),
                    hi + part_of(rows - hi, rank + 1, count));
}

int dc_cpu_share(const dc_exec *x, const dc_node *n, dc_span spans[3]) {
    int rows = x->used[dc_self(x, n)];
    if (x->ranks)
        return share_of(n, rows, dc_ranks_rank(x->ranks), dc_ranks_count(x->ranks), spans);
    spans[0] = (dc_span){0, rows};
    return 1;
}

dc_span dc_cpu_trained_share(const dc_exec *x, const dc_node *n) {
    return trained_of(n, dc_ranks_rank(x->ranks), dc_ranks_count(x->ranks));
}

// ---- rows that all need ----

// The layer that alone reads layer r, and reads the rows that a rank has made itself; -1: there is none.
static dc_ref next_layer(const dc_graph *g, dc_ref r) {
    const dc_node *n = &g->nodes[r];
    dc_ref found = -1;
    if (n->keep) return -1;
    for (dc_ref c = r + 1; c < g->count; c++) {
        const dc_node *reader = &g->nodes[c];
        for (int i = 0; i < reader->in_count; i++) {
            if (g->nodes[reader->in[i]].base != r) continue;
            if (found >= 0 || i > 0 || reader->in[0] != r || !is_layer(reader)) return -1;
            found = c;
        }
    }
    if (found < 0) return -1;
    const dc_node *next = &g->nodes[found];
    return next->rows == n->rows && next->lo == n->lo && next->hi == n->hi ? found : -1;
}

typedef struct rows_of {
    dc_tensor v;
    const dc_node *n;
    bool trained; // v is a gradient of the trained rows
} rows_of;

static int spans_of(const rows_of *t, int rank, int count, dc_span spans[3]) {
    if (!t->trained) return share_of(t->n, t->v.rows, rank, count, spans);
    dc_span own = trained_of(t->n, rank, count);
    return add_span(spans, 0, own.first, own.end);
}

// A rank's rows to bytes that lie together, or back; how many reals.
static int64_t move_rows(const rows_of *t, int rank, int count, dc_real *packed, bool pack) {
    dc_span spans[3];
    int have = spans_of(t, rank, count, spans);
    int64_t done = 0;
    for (int e = 0; e < t->v.e; e++)
        for (int k = 0; k < have; k++) {
            int64_t n = (int64_t)(spans[k].end - spans[k].first) * t->v.cols;
            dc_real *rows = dc_row(t->v, e, spans[k].first);
            if (packed)
                memcpy(pack ? packed + done : rows, pack ? rows : packed + done,
                       (size_t)n * sizeof *rows);
            done += n;
        }
    return done;
}

static void share_rows(const dc_exec *x, const rows_of *t) {
    int rank = dc_ranks_rank(x->ranks), count = dc_ranks_count(x->ranks);
    int64_t all = (int64_t)t->v.e * t->v.rows * t->v.cols, reals = (int64_t)sizeof(dc_real);
    int64_t *sizes = dc_ranks_buffer(x->ranks, 0, (int64_t)sizeof *sizes * count + 2 * all * reals);
    dc_real *own = (dc_real *)(sizes + count), *from = own + all;
    for (int k = 0; k < count; k++)
        sizes[k] = move_rows(t, k, count, NULL, false) * reals;
    move_rows(t, rank, count, own, true);
    dc_ranks_gather(x->ranks, own, from, sizes);
    for (int k = 0; k < count; k++) {
        if (k != rank) move_rows(t, k, count, from, false);
        from += sizes[k] / reals;
    }
}

void dc_cpu_share_output(const dc_exec *x, const dc_node *n) {
    if (!x->ranks || next_layer(x->graph, dc_self(x, n)) >= 0) return;
    rows_of t = {.v = dc_output(x, n), .n = n};
    share_rows(x, &t);
}

void dc_cpu_share_input_gradient(const dc_exec *x, const dc_node *n) {
    if (!x->ranks || !dc_wants(x, n, 0)) return;
    const dc_node *in = &x->graph->nodes[n->in[0]];
    if (is_layer(in) && next_layer(x->graph, n->in[0]) == dc_self(x, n)) return;
    rows_of t = {.v = dc_input_gradient(x, n, 0), .n = n, .trained = true};
    share_rows(x, &t);
}

// ---- sums over blocks ----

// The next rank with blocks of node n in direction `step`; -1: there is none.
static int next_rank(const dc_exec *x, const dc_node *n, int from, int step) {
    int count = dc_ranks_count(x->ranks);
    for (int k = from + step; k >= 0 && k < count; k += step) {
        dc_span own = trained_of(n, k, count);
        if (own.first < own.end) return k;
    }
    return -1;
}

static int64_t bytes_of(dc_tensor v) {
    return (int64_t)v.e * v.rows * v.cols * (int64_t)sizeof(dc_real);
}

// Where layers with the same weights came before, the last rank has what they came to.
static bool goes_on(const dc_exec *x, const dc_node *n, int i) {
    return dc_adds(x, n, i) && x->graph->nodes[n->in[i]].grad_first != dc_self(x, n);
}

// The first rank with blocks here, to which the last one gives what it has; -1: nothing is given.
static int given_to(const dc_exec *x, const dc_node *n, int i) {
    int first = next_rank(x, n, -1, 1);
    return goes_on(x, n, i) && first < dc_ranks_count(x->ranks) - 1 ? first : -1;
}

void dc_cpu_begin_sums(const dc_exec *x, const dc_node *n) {
    if (!x->ranks || dc_ranks_rank(x->ranks) < dc_ranks_count(x->ranks) - 1) return;
    for (int i = 1; i < n->in_count; i++) {
        if (!dc_wants(x, n, i) || given_to(x, n, i) < 0) continue;
        dc_tensor sum = dc_gradient(x, n->in[i]);
        dc_ranks_send(x->ranks, given_to(x, n, i), sum.p, bytes_of(sum));
    }
}

bool dc_cpu_take_sum(const dc_exec *x, const dc_node *n, int i) {
    if (!x->ranks) return dc_adds(x, n, i);
    int rank = dc_ranks_rank(x->ranks), last = dc_ranks_count(x->ranks) - 1;
    int before = next_rank(x, n, rank, -1);
    dc_tensor sum = dc_gradient(x, n->in[i]);
    if (given_to(x, n, i) == rank) dc_ranks_receive(x->ranks, last, sum.p, bytes_of(sum));
    if (before < 0) return dc_adds(x, n, i);
    dc_ranks_receive(x->ranks, before, sum.p, bytes_of(sum));
    return true;
}

void dc_cpu_pass_sum(const dc_exec *x, const dc_node *n, int i) {
    if (!x->ranks) return;
    int next = next_rank(x, n, dc_ranks_rank(x->ranks), 1);
    dc_tensor sum = dc_gradient(x, n->in[i]);
    if (next >= 0) dc_ranks_send(x->ranks, next, sum.p, bytes_of(sum));
}

void dc_cpu_share_gradients(const dc_exec *x) {
    if (!x->ranks) return;
    dc_ranks_flush(x->ranks);
    dc_ranks_broadcast(x->ranks, dc_ranks_count(x->ranks) - 1, x->slabs->grad,
                       x->slabs->size * (int64_t)sizeof *x->slabs->grad);
}
