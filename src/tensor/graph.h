// Graph: an algorithm describes its loss once, as nodes over tensors of shape (e, rows, cols); the
// engine differentiates it (grad.c), plans its memory (plan.c) and replays it every step (run.c).
// Nothing is allocated after dc_graph_finish. Wrong shapes are bugs of the caller and abort.
//
// Where a node's numbers lie:
//   input   written by gather before each run
//   param   a matrix of the run's parameter slab: live (gradient), stopped (same weights, no
//           gradient) or ema (target weights)
//   temp    computed; memory is shared with others whose lifetimes do not overlap
//   view    some rows of another node, at no cost
#ifndef DC_GRAPH_H
#define DC_GRAPH_H

#include "base/arena.h"
#include "base/status.h"
#include "tensor/real.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum dc_op {
    DC_OP_INPUT,
    DC_OP_PARAM,
    DC_OP_ROWS, // view of some rows
    DC_OP_STOP, // view of all rows that passes no gradient
#define OP(name, ...) DC_OP_##name,
#include "tensor/ops.def"
#undef OP
    DC_OPS
} dc_op;

typedef enum dc_use { DC_LIVE, DC_STOPPED, DC_EMA } dc_use; // how a call uses weights

enum { DC_INPUTS = 3 };
#define DC_FIRST_COMPUTED ((dc_op)(DC_OP_STOP + 1)) // ops of ops.def

// What kind of loop computes an op.
typedef enum dc_op_class {
    DC_CLASS_VIEW,      // none: inputs, weights and views of them
    DC_CLASS_PRODUCT,   // matrix products
    DC_CLASS_LAYER,     // rows with parameters for every column
    DC_CLASS_POINTWISE, // a number from the same number of each input, or of each member
    DC_CLASS_ROWS,      // a row from a row of each input
    DC_CLASS_PAIRS,     // a number from each row of one input and each row of the other
    DC_CLASS_GATHER,    // numbers moved, none computed
    DC_CLASS_REDUCTION, // everything to one number
} dc_op_class;

typedef int dc_ref; // index of a node

// The two forms of mrn: which half of a chunk has the largest difference, and how the length of the
// other, the root of a sum of squares s, is kept from having no slope at 0.
typedef enum dc_mrn_form {
    DC_MRN_TMD = 1, // the first; sqrt(s + 1e-6)
    DC_MRN_QRL      // the second; sqrt(max(s, 1e-12))
} dc_mrn_form;

typedef struct dc_node {
    dc_op op;
    const char *name; // "critic/0/linear"; used by errors and metrics
    int in_count;
    dc_ref in[DC_INPUTS];
    int e, rows, cols;
    double a, b;     // attributes
    dc_use use;      // PARAM
    dc_ref base;     // node that owns the memory: itself, or what a view looks at
    int row0;        // views: first row within base
    int64_t offset;  // of the value in its slab, in reals
    bool keep;       // value must survive the whole run (metrics, outputs)
    int64_t aux;     // reals that forward leaves for backward
    int64_t scratch; // reals that backward borrows
    // Filled by grad.c.
    bool needs;          // some live parameter is upstream
    int lo, hi;          // rows [lo, hi) that receive gradient; empty if lo == hi
    bool grad_sum;       // more than one contribution: zero first, then add
    dc_ref grad_first;   // the consumer whose backward runs first (it zeroes)
    int64_t grad_offset; // of rows [lo, hi), in the slab of temps (params: in the gradient slab)
    int64_t aux_offset, scratch_offset;
} dc_node;

typedef struct dc_graph {
    dc_arena arena;
    dc_node *nodes;
    int count, room;
    dc_ref loss;        // -1: forward only
    int64_t input_size; // reals of the slab that inputs and temps share; inputs come first
    int64_t temp_size;
    bool finished;
    dc_status status; // first failure to take memory
} dc_graph;

dc_status dc_graph_init(dc_graph *graph);
void dc_graph_fini(dc_graph *graph);

// Description. Names are copied.
dc_ref dc_input(dc_graph *g, const char *name, int rows, int cols);
dc_ref dc_param(dc_graph *g, const char *name, int e, int rows, int cols, int64_t offset,
                dc_use use);
dc_ref dc_rows(dc_graph *g, dc_ref x, int row0, int rows);
dc_ref dc_stop(dc_graph *g, dc_ref x);

// Ops, in the order of ops.def, which says what they compute. Where two inputs are combined number by
// number, one of them may have one member (e = 1) for all members of the other; its gradient is then
// the sum over members.
dc_ref dc_linear(dc_graph *g, const char *name, dc_ref x, dc_ref w, dc_ref b);
dc_ref dc_gelu_layernorm(dc_graph *g, const char *name, dc_ref x, dc_ref scale, dc_ref bias);
dc_ref dc_conv3x3(dc_graph *g, const char *name, dc_ref x, dc_ref w, dc_ref b, int height,
                  int width);
dc_ref dc_pair_dot(dc_graph *g, const char *name, dc_ref x, dc_ref y);
dc_ref dc_add(dc_graph *g, dc_ref x, dc_ref y);
dc_ref dc_mul(dc_graph *g, dc_ref x, dc_ref y);
dc_ref dc_affine(dc_graph *g, dc_ref x, double scale, double shift);
dc_ref dc_clip(dc_graph *g, dc_ref x, double least, double most);
dc_ref dc_within(dc_graph *g, dc_ref steps, dc_ref exact, dc_ref x, double most);
dc_ref dc_decay(dc_graph *g, dc_ref x, double rate);
dc_ref dc_power(dc_graph *g, dc_ref x, double base);
dc_ref dc_exp(dc_graph *g, dc_ref x);
dc_ref dc_tanh(dc_graph *g, dc_ref x);
dc_ref dc_abs(dc_graph *g, dc_ref x);
dc_ref dc_sigmoid(dc_graph *g, dc_ref x);
dc_ref dc_softplus(dc_graph *g, dc_ref x);
dc_ref dc_gelu(dc_graph *g, const char *name, dc_ref x);
dc_ref dc_linex(dc_graph *g, dc_ref d, dc_ref n, double most, double rate);
dc_ref dc_relu(dc_graph *g, const char *name, dc_ref x);
dc_ref dc_side(dc_graph *g, dc_ref x, double above);
dc_ref dc_ensemble_min(dc_graph *g, dc_ref x);
dc_ref dc_ensemble_mean(dc_graph *g, dc_ref x);
dc_ref dc_row_dot(dc_graph *g, dc_ref x, dc_ref y);
dc_ref dc_row_square(dc_graph *g, dc_ref x, dc_ref y);
dc_ref dc_normalise(dc_graph *g, dc_ref x);
dc_ref dc_iqe(dc_graph *g, dc_ref x, dc_ref y, dc_ref rho, int group);
dc_ref dc_mrn(dc_graph *g, dc_ref x, dc_ref y, int chunks, dc_mrn_form form);
dc_ref dc_max_pool(dc_graph *g, const char *name, dc_ref x, int height, int width);
dc_ref dc_logsumexp(dc_graph *g, dc_ref x);
dc_ref dc_expected(dc_graph *g, dc_ref logits, dc_ref q);
dc_ref dc_mrn_pairs(dc_graph *g, const char *name, dc_ref x, dc_ref y, int chunks,
                    dc_mrn_form form);
dc_ref dc_columns(dc_graph *g, dc_ref x, int first, int count);
dc_ref dc_unpack(dc_graph *g, dc_ref index, dc_ref y);
dc_ref dc_splice(dc_graph *g, const char *name, dc_ref x, dc_ref y, int column);
dc_ref dc_join(dc_graph *g, dc_ref x, dc_ref y);
dc_ref dc_interleave(dc_graph *g, const char *name, dc_ref x, int pictures, int channels);
dc_ref dc_repeat(dc_graph *g, dc_ref x, int times);
dc_ref dc_pick_best(dc_graph *g, dc_ref worth, dc_ref x, int group);
dc_ref dc_group_max(dc_graph *g, dc_ref x, int group);
dc_ref dc_mean(dc_graph *g, const char *name, dc_ref x);
// weight -1: none. `below` weighs rows whose prediction is below the target, 1 - below the others.
dc_ref dc_expectile(dc_graph *g, const char *name, dc_ref p, dc_ref t, dc_ref weight, double below);
dc_ref dc_bce(dc_graph *g, const char *name, dc_ref logit, dc_ref t, double above, double scale);
// The same with a weight per row; -1: none.
dc_ref dc_bce_weighted(dc_graph *g, const char *name, dc_ref logit, dc_ref t, dc_ref weight,
                       double above, double scale);
dc_ref dc_square(dc_graph *g, const char *name, dc_ref x, dc_ref y, double scale);
dc_ref dc_log_likelihood(dc_graph *g, const char *name, dc_ref logits, dc_ref t);
dc_ref dc_relative_mean(dc_graph *g, const char *name, dc_ref x);
// Any op by its number, for tests that walk the list.
dc_ref dc_apply(dc_graph *g, dc_op op, const char *name, const dc_ref *in, int count, double a,
                double b);

// Keep a value readable after a run.
void dc_keep(dc_graph *g, dc_ref x);
// Differentiate toward loss (-1: forward only) and plan memory. After it the graph is read-only.
dc_status dc_graph_finish(dc_graph *g, dc_ref loss);

// A row of ops.def; ops.c has the table.
typedef struct dc_op_rule {
    const char *name;
    // Fills in e, rows, cols, aux and scratch of node n; aborts on inputs of wrong shapes.
    void (*shape)(dc_node *n, const dc_node **inputs);
    const char *attributes; // names of a and b, "least, most"; "" if it has none
    const char *text;
    int least, most; // inputs
    dc_op_class op_class;
    unsigned reads, flows, rowwise; // bit i: input i, see ops.def
} dc_op_rule;

const dc_op_rule *dc_rule(dc_op op);
// Writes a node with its shapes and attributes, for messages.
void dc_op_describe(const dc_graph *g, dc_ref r, char *text, size_t size);

static inline const char *dc_op_name(dc_op op) {
    return dc_rule(op)->name;
}

// May gradient flow from node n to its input number i?
static inline bool dc_flows(const dc_node *n, int i) {
    return dc_rule(n->op)->flows >> i & 1;
}

enum { DC_IQE_GROUP_MAX = 64, DC_IQE_STATS = 3 }; // columns of a group; stats of a row, see iqe.c

// conv3x3: pictures whose part of a weight's gradient is added up as one, and numbers of a tile (a place needs 9 per channel).
enum { DC_CONV_PICTURES = 8, DC_CONV_TILE = 16384 };
static inline int dc_conv_blocks(int rows) {
    return (rows + DC_CONV_PICTURES - 1) / DC_CONV_PICTURES;
}
// max_pool: places that are left of n, and how far the first window reaches out before them. As "SAME" of JAX: what a window
// of 3 at every second place lacks is half before and half after, the odd one after.
static inline int dc_pooled(int n) {
    return (n + 1) / 2;
}
static inline int dc_pool_before(int n) {
    return n % 2;
}

// mrn_pairs transposes its inputs in panels of so many rows.
enum { DC_MRN_LANES = 64 };
static inline int dc_mrn_panels(int rows) {
    return (rows + DC_MRN_LANES - 1) / DC_MRN_LANES;
}

// grad.c and plan.c, called by dc_graph_finish.
void dc_graph_grad(dc_graph *g);
dc_status dc_graph_plan(dc_graph *g);

// Rows are handled in blocks of this many, whatever the number of threads.
enum { DC_ROW_BLOCK = 256 };
static inline int dc_blocks(int rows) {
    return (rows + DC_ROW_BLOCK - 1) / DC_ROW_BLOCK;
}

#endif
