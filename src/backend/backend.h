// Backend: where graphs run. One table of functions per backend; cpu/ is the reference. A run owns
// one dc_device (memory, threads), and hands ops a dc_exec: the graph with its slabs.
#ifndef DC_BACKEND_H
#define DC_BACKEND_H

#include "base/pool.h"
#include "base/ranks.h"
#include "tensor/graph.h"

// A tensor as an op sees it: (e, rows, cols), row-major, over memory that the run owns.
typedef struct dc_tensor {
    dc_real *p;
    int e, rows, cols;
    int64_t step; // reals between ensemble members; 0 when one matrix serves all
} dc_tensor;

// The parameter slabs of a run, each (size); ema covers the leading ema_size only.
typedef struct dc_slabs {
    dc_real *live, *ema, *grad, *m, *v;
    int64_t size, ema_size;
} dc_slabs;

typedef struct dc_exec {
    const dc_graph *graph;
    dc_real *temps; // (graph->temp_size): inputs, values, gradients
    const dc_slabs *slabs;
    dc_pool *pool; // Nullable
    int *used;     // (graph->count) leading rows of each node in use this step, see dc_pack
    // A row that is alone is multiplied without packing the weights first, several times as fast. Its last bits are then
    // not those that it has among other rows.
    bool quick_row;
    bool bf16;       // matrix products in bf16; only where dc_gemm_has_bf16
    dc_ranks *ranks; // Nullable: other processes that compute the same graph, see cpu/share.c
    double *times;   // Nullable: (2, DC_OPS) seconds spent, forward and backward, for benchmarks
} dc_exec;

typedef void dc_op_fn(const dc_exec *x, const dc_node *n);

typedef struct dc_adam {
    double lr, beta1, beta2, eps; // usual constants
    double tau;                   // EMA rate
    int64_t step;                 // 1 for the first update
    int64_t first, last;          // weights [first, last) to train, with targets; last 0: all
} dc_adam;

typedef struct dc_backend {
    const char *name;
    dc_op_fn *fwd[DC_OPS], *bwd[DC_OPS]; // NULL for inputs, params and views
    // Sum of squares of the gradient slab; not finite if any entry is not.
    double (*grad_norm2)(const dc_slabs *slabs, dc_pool *pool);
    // EMA from the weights before the step, then Adam: one pass over the slabs.
    void (*update)(const dc_slabs *slabs, const dc_adam *adam, dc_pool *pool);
} dc_backend;

extern const dc_backend dc_backend_cpu;

// Value and gradient of a node. The gradient covers rows [lo, hi) only.
dc_tensor dc_value(const dc_exec *x, dc_ref r);
dc_tensor dc_gradient(const dc_exec *x, dc_ref r);
// Rows [lo, hi) of a tensor, in the same memory.
dc_tensor dc_tensor_rows(dc_tensor v, int lo, int hi);
// For forward of node n: its value, the rows in use.
dc_tensor dc_output(const dc_exec *x, const dc_node *n);
// For backward of node n, row by row: input i's value and gradient at n's trained rows.
dc_tensor dc_input_value(const dc_exec *x, const dc_node *n, int i);
dc_tensor dc_input_gradient(const dc_exec *x, const dc_node *n, int i);
// A node's own index.
static inline dc_ref dc_self(const dc_exec *x, const dc_node *n) {
    return (dc_ref)(n - x->graph->nodes);
}
// Does input i of node n want its gradient?
bool dc_wants(const dc_exec *x, const dc_node *n, int i);
// Must the gradient of input i be added to what is there?
bool dc_adds(const dc_exec *x, const dc_node *n, int i);

bool dc_gemm_has_bf16(void); // whether this processor multiplies bf16

// What decides the last bits of numbers on the CPU, in words: the vectors of matrix products, the C library, and the
// vector instructions of this program. Equal words, equal bits.
enum { DC_ARITHMETIC_MAX = 256 };
void dc_cpu_arithmetic(bool bf16, char out[DC_ARITHMETIC_MAX]);

#endif
