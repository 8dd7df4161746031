// Started by tests/train/test_ranks.py under mpirun: graphs that ranks compute together, against the same graph in one
// process, to the bit. Networks that are used twice, on inputs of several blocks of rows and of less than one; ensembles
// with an input of their own that another network made, and that wants its gradient; and views of stacked rows of which
// some are not trained.
#include "backend/cpu/cpu.h"
#include "base/philox.h"
#include "nn/mlp.h"
#include "tensor/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rig {
    dc_params params;
    dc_mlp first, second; // networks; the second has three members
    dc_graph graph;
    dc_exec exec;
} rig;

static void need(dc_status status) {
    if (status == DC_OK) return;
    fprintf(stderr, "tool_ranks: %s\n", dc_error());
    exit(1);
}

static double uniform(uint64_t seed, uint64_t index) {
    return (double)dc_philox(seed, 90, index >> 32, (uint32_t)index).v[0] / 2147483648.0 - 1;
}

static void declare(rig *t, bool layernorm) {
    static const dc_int_list hidden = {2, {150, 40}};
    dc_mlp_declare(&t->first, &t->params,
                   &(dc_mlp_spec){"first", 1, 7, 5, &hidden, 1, layernorm, false, false});
    dc_mlp_declare(&t->second, &t->params,
                   &(dc_mlp_spec){"second", 3, 5, 1, &hidden, 1, layernorm, false, false});
}

// `rows` of one input and `more` of another, `trained` of which have gradient.
static dc_ref describe(rig *t, int rows, int more, int skip) {
    dc_graph *g = &t->graph;
    dc_ref x = dc_input(g, "x", rows, 7), y = dc_input(g, "y", more, 7);
    dc_ref a = dc_mlp_apply(g, &t->first, x, DC_LIVE), b = dc_mlp_apply(g, &t->first, y, DC_LIVE);
    dc_ref values = dc_mlp_apply(g, &t->second, a, DC_LIVE); // e = 1 into three members
    dc_ref again = dc_mlp_apply(g, &t->second, dc_rows(g, b, skip, more - skip), DC_STOPPED);
    dc_ref part = dc_rows(g, values, skip, rows - skip);
    dc_ref loss = dc_mean(g, "one", dc_mul(g, part, part));
    loss = dc_add(g, loss, dc_mean(g, "two", dc_mul(g, again, again)));
    return dc_add(g, loss, dc_mean(g, "three", dc_mul(g, b, b)));
}

static void open_rig(rig *t, bool layernorm, int rows, int more, int skip, dc_ranks *ranks) {
    *t = (rig){.first = {0}};
    declare(t, layernorm);
    need(dc_graph_init(&t->graph));
    need(dc_graph_finish(&t->graph, describe(t, rows, more, skip)));
    need(dc_params_alloc(&t->params, 3));
    need(dc_exec_init(&t->exec, &t->graph, &t->params.slabs, NULL));
    t->exec.ranks = ranks;
    for (dc_ref r = 0; r < 2; r++) {
        dc_tensor v = dc_value(&t->exec, r);
        for (int64_t i = 0; i < (int64_t)v.rows * v.cols; i++)
            v.p[i] = (dc_real)uniform((uint64_t)r, (uint64_t)i);
    }
}

static void close_rig(rig *t) {
    dc_exec_fini(&t->exec);
    dc_graph_fini(&t->graph);
    dc_params_free(&t->params);
}

static void check(bool layernorm, int rows, int more, int skip, dc_ranks *ranks) {
    rig one, many;
    open_rig(&one, layernorm, rows, more, skip, NULL);
    open_rig(&many, layernorm, rows, more, skip, ranks);
    for (int step = 0; step < 2; step++) {
        dc_exec_run(&one.exec, &dc_backend_cpu);
        dc_exec_run(&many.exec, &dc_backend_cpu);
        dc_cpu_share_gradients(&many.exec);
        size_t bytes = (size_t)one.params.slabs.size * sizeof(dc_real);
        bool same =
            !memcmp(one.params.slabs.grad, many.params.slabs.grad, bytes) &&
            *dc_value(&one.exec, one.graph.loss).p == *dc_value(&many.exec, many.graph.loss).p;
        if (same) continue;
        fprintf(stderr, "tool_ranks: rank %d differs: %d + %d rows, %d left out\n",
                dc_ranks_rank(ranks), rows, more, skip);
        exit(1);
    }
    close_rig(&one);
    close_rig(&many);
}

static void on_lost(int rank, bool tells) {
    if (tells) fprintf(stderr, "tool_ranks: rank %d is gone\n", rank);
    _exit(1);
}

int main(void) {
    static const int sizes[][3] = {{7, 5, 2}, {600, 7, 0}, {300, 1500, 256}, {1100, 700, 333}};
    dc_ranks *ranks;
    need(dc_ranks_join(&ranks, on_lost));
    for (int k = 0; k < 4; k++)
        for (int layernorm = 0; layernorm < 2; layernorm++)
            check(layernorm, sizes[k][0], sizes[k][1], sizes[k][2], ranks);
    if (dc_ranks_rank(ranks) == 0) printf("%d ranks: same bits\n", dc_ranks_count(ranks));
    dc_ranks_leave(ranks);
    return 0;
}
