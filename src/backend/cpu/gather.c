// Ops that move numbers: rows picked, repeated and put together.
#include "backend/cpu/cpu.h"

#include <string.h>

void dc_cpu_columns_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), y = dc_output(x, n);
    for (int e = 0; e < y.e; e++)
        for (int r = 0; r < y.rows; r++)
            memcpy(dc_row(y, e, r), dc_row(from, e, r) + (int)n->a, (size_t)y.cols * sizeof *y.p);
}

void dc_cpu_columns_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 0)) return;
    dc_tensor dx = dc_input_gradient(x, n, 0), dy = dc_gradient(x, dc_self(x, n));
    bool add = dc_adds(x, n, 0);
    for (int e = 0; e < dy.e; e++)
        for (int r = 0; r < dy.rows; r++) {
            dc_real *out = dc_row(dx, e, r);
            if (!add) memset(out, 0, (size_t)dx.cols * sizeof *out);
            for (int c = 0; c < dy.cols; c++)
                out[(int)n->a + c] += dc_row(dy, e, r)[c];
        }
}

void dc_cpu_unpack_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor index = dc_value(x, n->in[0]), from = dc_value(x, n->in[1]), y = dc_output(x, n);
    for (int e = 0; e < y.e; e++)
        for (int64_t r = 0; r < y.rows; r++) {
            bool given = index.p[r] >= 0;
            y.p[e * y.step + r] = given ? *dc_row(from, e, (int64_t)index.p[r]) : 0;
        }
}

DC_CPU_NO_GRADIENT(unpack)

void dc_cpu_splice_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), part = dc_value(x, n->in[1]), y = dc_output(x, n);
    for (int r = 0; r < y.rows; r++) {
        dc_real *row = dc_row(y, 0, r);
        memcpy(row, dc_row(from, 0, r), (size_t)n->cols * sizeof *row);
        memcpy(row + (int)n->a, dc_row(part, 0, r), (size_t)part.cols * sizeof *row);
    }
}

void dc_cpu_splice_bwd(const dc_exec *x, const dc_node *n) {
    if (!dc_wants(x, n, 1)) return;
    dc_tensor dx = dc_input_gradient(x, n, 1), dy = dc_gradient(x, dc_self(x, n));
    bool add = dc_adds(x, n, 1);
    for (int r = 0; r < dy.rows; r++)
        for (int c = 0; c < dx.cols; c++) {
            dc_real *out = &dx.p[(int64_t)r * dx.cols + c];
            *out = (add ? *out : 0) + dy.p[(int64_t)r * dy.cols + (int)n->a + c];
        }
}

void dc_cpu_join_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor y = dc_output(x, n);
    for (int i = 0, col = 0; i < 2; i++) {
        dc_tensor from = dc_value(x, n->in[i]);
        for (int e = 0; e < y.e; e++)
            for (int r = 0; r < y.rows; r++)
                memcpy(dc_row(y, e, r) + col, dc_row(from, e, r), (size_t)from.cols * sizeof *y.p);
        col += from.cols;
    }
}

void dc_cpu_join_bwd(const dc_exec *x, const dc_node *n) {
    dc_tensor dy = dc_gradient(x, dc_self(x, n));
    for (int i = 0, col = 0; i < 2; i++) {
        int cols = x->graph->nodes[n->in[i]].cols;
        dc_tensor dx = {0};
        if (dc_wants(x, n, i)) dx = dc_input_gradient(x, n, i);
        bool add = dc_adds(x, n, i);
        for (int e = 0; dx.p && e < dy.e; e++)
            for (int r = 0; r < dy.rows; r++)
                for (int c = 0; c < cols; c++) {
                    dc_real *out = &dc_row(dx, e, r)[c];
                    *out = (add ? *out : 0) + dc_row(dy, e, r)[col + c];
                }
        col += cols;
    }
}

// Row by row from pictures (a, places, b) to one of (places, a, b).
void dc_cpu_interleave_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), y = dc_output(x, n);
    int pictures = (int)n->a, channels = (int)n->b, places = n->cols / (pictures * channels);
    for (int r = 0; r < y.rows; r++) {
        dc_real *to = dc_row(y, 0, r);
        const dc_real *row = dc_row(from, 0, r);
        for (int p = 0; p < places; p++)
            for (int k = 0; k < pictures; k++, to += channels)
                memcpy(to, row + (k * places + p) * channels, (size_t)channels * sizeof *to);
    }
}

DC_CPU_NO_GRADIENT(interleave)

void dc_cpu_repeat_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), y = dc_output(x, n);
    int times = (int)n->a;
    for (int e = 0; e < y.e; e++)
        for (int64_t r = 0; r < y.rows; r++)
            memcpy(dc_row(y, e, r), dc_row(from, e, r / times), (size_t)y.cols * sizeof *y.p);
}

DC_CPU_NO_GRADIENT(repeat)

void dc_cpu_pick_best_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor worth = dc_value(x, n->in[0]), from = dc_value(x, n->in[1]), y = dc_output(x, n);
    int group = (int)n->a;
    for (int64_t r = 0; r < y.rows; r++) {
        int64_t best = r * group;
        for (int64_t k = best; k < (r + 1) * group; k++)
            if (worth.p[k] > worth.p[best]) best = k;
        memcpy(dc_row(y, 0, r), dc_row(from, 0, best), (size_t)y.cols * sizeof *y.p);
    }
}

DC_CPU_NO_GRADIENT(pick_best)

// A group that has a NaN becomes NaN.
void dc_cpu_group_max_fwd(const dc_exec *x, const dc_node *n) {
    dc_tensor from = dc_value(x, n->in[0]), y = dc_output(x, n);
    int group = (int)n->a;
    for (int e = 0; e < y.e; e++)
        for (int64_t r = 0; r < y.rows; r++) {
            const dc_real *of = dc_row(from, e, r * group);
            dc_real most = of[0];
            for (int k = 1; k < group; k++)
                if (!(of[k] <= most) && most == most) most = of[k];
            *dc_row(y, e, r) = most;
        }
}

DC_CPU_NO_GRADIENT(group_max)
