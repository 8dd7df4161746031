// iqe: interval quasimetric embedding, the distance of QRL. Columns come in groups. A group's component
// is the length of the union of its intervals [x_i, y_i], those with x_i < y_i; with K components
//     d = m mean_k + (1 - m) max_k,   m = sigmoid(rho).
// A component's gradient is +1 for each y_i that closes a piece of the union and -1 for each x_i that
// opens one. Forward leaves these marks, and per row the mean, the largest and its number, so that
// backward sorts nothing.
#include "backend/cpu/cpu.h"

#include <math.h>

enum { OPENS = 1, CLOSES = 2 };        // marks of a column
enum { MEAN, MOST, WHICH, ROW_STATS }; // what stands before the marks of a row
_Static_assert((int)ROW_STATS == (int)DC_IQE_STATS, "the size of aux");

typedef struct job {
    dc_tensor x, y, out;
    dc_tensor d, dout; // gradients of x or y and of the output, trained rows
    dc_real *aux;      // (rows, ROW_STATS + cols), from row lo in backward
    dc_real m;
    int group, mark; // mark: OPENS for the gradient of x, CLOSES for that of y
    bool add;
} job;

// Columns of nonempty intervals, in the order of their x; returns how many. NaN makes *total NaN.
static int sort_intervals(const dc_real *x, const dc_real *y, int group, int *order,
                          dc_real *total) {
    int count = 0;
    for (int i = 0; i < group; i++) {
        *total += 0 * (y[i] - x[i]);
        if (!(x[i] < y[i])) continue;
        int at = count++;
        for (; at > 0 && x[order[at - 1]] > x[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return count;
}

// Length of the union of a group's intervals; adds marks to columns that open or close its pieces.
static dc_real union_length(const dc_real *x, const dc_real *y, int group, dc_real *marks) {
    int order[DC_IQE_GROUP_MAX];
    dc_real total = 0;
    int count = sort_intervals(x, y, group, order, &total);
    for (int k = 0; k < count;) {
        int first = order[k], last = first; // of a piece: the interval that opens, that closes it
        for (k++; k < count && x[order[k]] <= y[last]; k++)
            if (y[order[k]] > y[last]) last = order[k];
        marks[first] += OPENS;
        marks[last] += CLOSES;
        total += y[last] - x[first];
    }
    return total;
}

static void fwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int cols = j->x.cols, group = j->group, groups = cols / group;
    for (int64_t r = r0; r < r1; r++) {
        const dc_real *x = dc_row(j->x, e, r), *y = dc_row(j->y, e, r);
        dc_real *stats = j->aux + r * (ROW_STATS + cols), *marks = stats + ROW_STATS;
        dc_real sum = 0, most = -1;
        stats[WHICH] = 0;
        for (int c = 0; c < cols; c++)
            marks[c] = 0;
        for (int k = 0; k < groups; k++) {
            dc_real part = union_length(x + k * group, y + k * group, group, marks + k * group);
            sum += part;
            if (part > most) {
                most = part;
                stats[WHICH] = (dc_real)k;
            }
        }
        stats[MEAN] = sum / (dc_real)groups;
        stats[MOST] = most;
        *dc_row(j->out, e, r) = j->m * stats[MEAN] + (1 - j->m) * most;
    }
}

static dc_real share_of_mean(const dc_exec *x, const dc_node *n) {
    return (dc_real)(1 / (1 + exp(-(double)*dc_value(x, n->in[2]).p)));
}

void dc_cpu_iqe_fwd(const dc_exec *x, const dc_node *n) {
    job j = {.x = dc_value(x, n->in[0]),
             .y = dc_value(x, n->in[1]),
             .out = dc_output(x, n),
             .aux = x->temps + n->aux_offset,
             .m = share_of_mean(x, n),
             .group = (int)n->a};
    dc_cpu_each_block(x->pool, fwd_rows, &j, 1, j.out.rows);
}

static void bwd_rows(const void *ctx, int e, int r0, int r1) {
    const job *j = ctx;
    int cols = j->d.cols, groups = cols / j->group;
    for (int64_t r = r0; r < r1; r++) {
        const dc_real *stats = j->aux + r * (ROW_STATS + cols), *marks = stats + ROW_STATS;
        dc_real *d = dc_row(j->d, e, r), dy = *dc_row(j->dout, e, r);
        if (j->mark == OPENS) dy = -dy;
        for (int k = 0; k < groups; k++) {
            dc_real most = k == (int)stats[WHICH] ? 1 - j->m : 0;
            dc_real each = dy * (j->m / (dc_real)groups + most);
            for (int c = k * j->group; c < (k + 1) * j->group; c++)
                d[c] = (j->add ? d[c] : 0) + ((int)marks[c] & j->mark ? each : 0);
        }
    }
}

// d / d rho = m (1 - m) times the sum over rows of dy (mean - max).
static void rho_grad(const dc_exec *x, const dc_node *n, const job *j, int cols) {
    double sum = 0, m = (double)j->m;
    for (int64_t r = 0; r < j->dout.rows; r++) {
        const dc_real *stats = j->aux + r * (ROW_STATS + cols);
        sum += (double)j->dout.p[r] * ((double)stats[MEAN] - (double)stats[MOST]);
    }
    dc_real *d = dc_gradient(x, n->in[2]).p;
    *d = (dc_adds(x, n, 2) ? *d : 0) + (dc_real)(m * (1 - m) * sum);
}

void dc_cpu_iqe_bwd(const dc_exec *x, const dc_node *n) {
    int cols = x->graph->nodes[n->in[0]].cols;
    job j = {.dout = dc_gradient(x, dc_self(x, n)),
             .aux = x->temps + n->aux_offset + (int64_t)n->lo * (ROW_STATS + cols),
             .m = share_of_mean(x, n),
             .group = (int)n->a};
    for (int i = 0; i < 2; i++) {
        if (!dc_wants(x, n, i)) continue;
        j.d = dc_input_gradient(x, n, i);
        j.mark = i == 0 ? OPENS : CLOSES;
        j.add = dc_adds(x, n, i);
        dc_cpu_each_block(x->pool, bwd_rows, &j, 1, j.dout.rows);
    }
    if (dc_wants(x, n, 2)) rho_grad(x, n, &j, cols);
}
