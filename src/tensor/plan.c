// Memory plan: every temporary gets an offset in one slab; two may share bytes when their lifetimes
// do not meet. Time runs 0 ... count-1 forward and count ... 2 count - 1 backward (node r at 2
// count - 1 - r).
#include "tensor/graph.h"

#include <stdlib.h>

typedef struct item {
    int64_t size, *offset; // in reals; where the answer goes
    int birth, death;      // inclusive
} item;

enum { ALIGN_REALS = 16 };

static int backward_time(const dc_graph *g, dc_ref r) {
    return 2 * g->count - 1 - r;
}

static int64_t round_up(int64_t n) {
    return (n + ALIGN_REALS - 1) / ALIGN_REALS * ALIGN_REALS;
}

static bool is_temp(const dc_graph *g, dc_ref r) {
    return g->nodes[r].op >= DC_FIRST_COMPUTED;
}

static bool trained(const dc_node *n) {
    return n->lo < n->hi;
}

// Last time the value of owner r is read.
static int last_read(const dc_graph *g, dc_ref r) {
    if (g->nodes[r].keep) return 2 * g->count;
    int last = r;
    for (dc_ref c = r + 1; c < g->count; c++) {
        const dc_node *n = &g->nodes[c];
        if (n->op < DC_FIRST_COMPUTED) continue;
        for (int i = 0; i < n->in_count; i++) {
            if (g->nodes[n->in[i]].base != r) continue;
            bool kept = trained(n) && (dc_rule(n->op)->reads >> i & 1);
            int when = kept ? backward_time(g, c) : c;
            if (when > last) last = when;
        }
    }
    return last;
}

static int collect(dc_graph *g, item *items) {
    int count = 0;
    for (dc_ref r = 0; r < g->count; r++) {
        dc_node *n = &g->nodes[r];
        if (!is_temp(g, r)) continue;
        int64_t cells = (int64_t)n->e * n->rows * n->cols;
        items[count++] = (item){cells, &n->offset, r, last_read(g, r)};
        int back = backward_time(g, r);
        if (n->aux) items[count++] = (item){n->aux, &n->aux_offset, r, trained(n) ? back : r};
        if (!trained(n)) continue;
        int from = r == g->loss ? g->count : backward_time(g, n->grad_first);
        items[count++] =
            (item){(int64_t)n->e * (n->hi - n->lo) * n->cols, &n->grad_offset, from, back};
        if (n->scratch) items[count++] = (item){n->scratch, &n->scratch_offset, back, back};
    }
    return count;
}

static int by_size(const void *x, const void *y) {
    const item *a = x, *b = y;
    if (a->size != b->size) return a->size < b->size ? 1 : -1;
    return a->birth - b->birth;
}

// Lowest offset at which `it` meets none of the items placed before it.
static int64_t lowest(const item *items, int placed, const item *it, int64_t floor) {
    int64_t at = floor;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < placed; i++) {
            const item *o = &items[i];
            if (o->death < it->birth || it->death < o->birth) continue;
            if (*o->offset + o->size <= at || at + it->size <= *o->offset) continue;
            at = round_up(*o->offset + o->size);
            moved = true;
        }
    }
    return at;
}

dc_status dc_graph_plan(dc_graph *g) {
    int64_t inputs = 0;
    for (dc_ref r = 0; r < g->count; r++) {
        dc_node *n = &g->nodes[r];
        if (n->op != DC_OP_INPUT) continue;
        n->offset = inputs;
        inputs += round_up((int64_t)n->rows * n->cols);
    }
    g->input_size = g->temp_size = inputs;
    item *items = calloc((size_t)g->count * 4 + 1, sizeof *items);
    if (!items) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the memory plan");
    int count = collect(g, items);
    qsort(items, (size_t)count, sizeof *items, by_size);
    for (int i = 0; i < count; i++) {
        *items[i].offset = lowest(items, i, &items[i], inputs);
        int64_t end = *items[i].offset + round_up(items[i].size);
        if (end > g->temp_size) g->temp_size = end;
    }
    free(items);
    return DC_OK;
}
