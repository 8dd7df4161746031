// Every row of a batch counts, as a framework without packs (algo/batch.h) would compute it; dcrl leaves out children of known
// span, so it does less. A product of n rows takes 2 n in out operations forward, and as many again for each of the two
// gradients that somebody needs. Bytes: each number of an op's inputs and output once forward, and of trained rows
// twice backward, four bytes each. Caches and fused kernels save some of that; this is what the graph says.
#include "step_count.h"

#include <stdlib.h>

enum { FORWARD, BACKWARD };

static double size_of(const dc_node *n) {
    return (double)n->e * n->rows * n->cols;
}

static double trained(const dc_node *n) { // part of its rows
    return n->needs ? (double)(n->hi - n->lo) / n->rows : 0;
}

// Multiplications and additions of a number of the output.
static double work_of(const dc_graph *g, const dc_node *n) {
    const dc_node *x = &g->nodes[n->in[0]];
    if (n->op == DC_OP_linear || n->op == DC_OP_pair_dot) return 2.0 * x->cols;
    if (n->op == DC_OP_conv3x3) return 2.0 * g->nodes[n->in[1]].rows;
    return 1;
}

static bool is_product(const dc_node *n) {
    return n->op == DC_OP_linear || n->op == DC_OP_pair_dot || n->op == DC_OP_conv3x3;
}

static void add_node(const dc_graph *g, const dc_node *n, cli_step_count *c) {
    if (n->op < DC_FIRST_COMPUTED) return;
    double numbers = size_of(n), flops = size_of(n) * work_of(g, n);
    int gradients = 0;
    for (int i = 0; i < n->in_count; i++)
        numbers += size_of(&g->nodes[n->in[i]]);
    for (int i = 0; i < n->in_count && i < 2; i++)
        gradients += g->nodes[n->in[i]].needs;
    c->flops[FORWARD] += flops;
    c->flops[BACKWARD] += flops * gradients * trained(n);
    c->bytes[FORWARD] += 4 * numbers;
    c->bytes[BACKWARD] += 8 * numbers * trained(n);
    c->products += is_product(n);
    c->steps++;
}

// The longest way to a node, counting products, and the part of it that gradients go back on.
static int longest_chain(const dc_graph *g) {
    int *ahead = calloc((size_t)g->count, sizeof *ahead),
        *back = calloc((size_t)g->count, sizeof *back);
    int most = 0;
    for (dc_ref r = 0; ahead && back && r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        dc_ref first = n->op < DC_FIRST_COMPUTED ? n->base : r;
        if (first != r) ahead[r] = ahead[first], back[r] = n->op == DC_OP_STOP ? 0 : back[first];
        for (int i = 0; i < n->in_count; i++) {
            if (ahead[n->in[i]] > ahead[r]) ahead[r] = ahead[n->in[i]];
            if (n->needs && back[n->in[i]] > back[r]) back[r] = back[n->in[i]];
        }
        if (is_product(n)) {
            ahead[r]++;
            back[r] += n->needs;
        }
        if (n->needs && ahead[r] + back[r] > most) most = ahead[r] + back[r];
    }
    free(ahead);
    free(back);
    return most;
}

cli_step_count cli_count_step(const dc_graph *g) {
    cli_step_count c = {.chain = longest_chain(g)};
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        add_node(g, n, &c);
        if (n->op == DC_OP_INPUT) {
            c.batch_rows += n->rows;
            c.batch_bytes += 4 * size_of(n);
        }
        if (n->op == DC_OP_PARAM && n->use == DC_LIVE) c.weights += size_of(n);
    }
    return c;
}

void cli_count_print(const dc_graph *g, dc_text *out) {
    cli_step_count all = cli_count_step(g);
    dc_text_add(out,
                "\"weights\": %.0f, \"batch_rows\": %.0f, \"batch_bytes\": %.0f, \"chain\": %d, "
                "\"products\": %d, \"flops\": %.0f, \"bytes\": %.0f, \"ops\": [",
                all.weights, all.batch_rows, all.batch_bytes, all.chain, all.products,
                all.flops[0] + all.flops[1], all.bytes[0] + all.bytes[1]);
    const char *comma = "";
    for (int op = DC_FIRST_COMPUTED; op < DC_OPS; op++) {
        cli_step_count c = {0};
        for (dc_ref r = 0; r < g->count; r++)
            if (g->nodes[r].op == (dc_op)op) add_node(g, &g->nodes[r], &c);
        if (!c.steps) continue;
        dc_text_add(
            out,
            "%s{\"op\": \"%s\", \"nodes\": %d, \"flops\": [%.0f, %.0f], \"bytes\": [%.0f, %.0f]}",
            comma, dc_op_name((dc_op)op), c.steps, c.flops[0], c.flops[1], c.bytes[0], c.bytes[1]);
        comma = ", ";
    }
    dc_text_add(out, "]");
}
