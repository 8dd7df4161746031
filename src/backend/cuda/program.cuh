// A program as its files see it: program.cu builds it, paths.cu says how each node is computed, tasks.cu puts things in
// order, step.cu starts them. nets.cu has networks of equal layers, groups.cu has pointwise ops that go together, plain.cu
// has all that no such pass takes over.
#ifndef DC_CUDA_PROGRAM_CUH
#define DC_CUDA_PROGRAM_CUH

#include "backend/cuda/internal.cuh"
#include "backend/cuda/trunk.cuh"

#include <algorithm>
#include <string>

// How a node is computed (paths.cu). Whole networks take over LAYER nodes later (nets.cu).
enum node_path {
    NO_PATH, // data, weights and views
    LAYER,   // linear, gelu_layernorm, splice: kernels of their own
    GROUPED, // with others in one launch (groups.cu)
    DEFERRED, // a reduction, or a sum of such, at the step's end: its gradient is known when the program is built
    PLAIN,     // a launch of its own (plain.cu)
    TRUNK_PATH // part of an encoder's convolutions (trunk.cu)
};

struct task { // one thing to start
    enum kind {
        FORWARD,
        WEIGHTS,
        GRADIENT,
        CAST,
        ZERO,
        GROUP,
        NET,
        NET_BACK,
        NET_WEIGHTS,
        NET_HEAD,
        TRUNK,
        TRUNK_BACK
    } what; // WEIGHTS: a linear layer's dW, GRADIENT: the rest of backward; CAST: a gradient becomes bf16; NET: a whole
        // network; NET_HEAD: its head's dW; NET_WEIGHTS: its other dW, where those do not come with the update; TRUNK: an encoder's convolutions
    dc_ref node; // or the group's, the network's or the trunk's number
    int input;   // GRADIENT of a plain op: to this input
    std::vector<int> reads,
        writes; // keys: r is node r's value, count + r its gradient, 2 count + r its sums, 3 count + r its gradient in bf16
    std::vector<int> waits; // tasks of other streams that must be done first
    int stream;
    bool awaited; // by another stream, so it leaves an event
    bool late;    // the early part of the update need not wait for it
    cudaEvent_t done;
};

struct waiting_op { // an op that the next group of its kind will take; keys as a task has them
    small_op op;
    std::vector<int> reads, writes;
};

struct group { // of small_op ops, one launch
    std::vector<small_op> ops;
    int phase; // the first op since the last barrier
    std::vector<fused_phase> phases;
    std::vector<fused_load> loads;
    std::vector<fused_measure> measures;
    std::vector<fused_step> steps;
    std::vector<small_op> rows; // softmaxes
    std::vector<int> reads, writes;
    fused_list list;
};

// Memory of a plain op that adds up, or keeps something for backward: see struct plain.
struct plain_memory {
    double *sums;
    unsigned *done;
    float *kept;
    uint32_t *marks; // of iqe, Nullable
    int16_t *which;  // of mrn_pairs, Nullable
    tensor half[2];  // of pair_dot in bf16: its inputs as the product reads them
};

struct norm_memory {     // of a gelu_layernorm whose operands do not lie as its kernels have them
    tensor dx;           // to be added to what is there
    float *scale, *bias; // (e, cols), of rows of a larger matrix
};

struct part_sums { // of a layer's backward: where sums over rows lie until they are added up
    float *p;
    int count;
};

struct net {                                // a whole network of equal layers (mlp.cu)
    std::vector<dc_ref> linear, activation; // hidden layers
    dc_ref head, x;
    bool norm;          // activations are gelu_layernorm, else gelu
    bool back, weights; // backward is wanted; with dW
    mlp job;
};

struct encoder_trunk { // the convolutions of an encoder for some rows (trunk.cu)
    dc_ref conv[CONVS], x, out;
    std::vector<dc_ref> inside; // all nodes but the last
    int blocks;                 // of backward; 0: there is none
    trunk job;
};

// Of a part of the update: it began; column sums are done; nobody reads the inputs any more; what is not a whole network's
// is updated; the networks on the second stream are.
struct part_events {
    cudaEvent_t begin, summed, inputs, rest, more;
};

struct dc_program {
    dc_cuda *cuda;
    dc_program_spec spec;
    const dc_graph *g;
    dc_slabs slabs;                  // on the device
    dc_exec view;                    // for the helpers that know which gradients are wanted
    std::vector<tensor> value, grad; // of owners
    std::vector<tensor> copy;        // bf16 copies of matrices, by parameter node
    std::vector<float2 *> stats;     // of LayerNorm
    std::vector<part_sums> parts;
    std::vector<char> half, pad; // bf16; rows padded to 8 numbers, for products
    std::vector<node_path> path;
    std::vector<dc_ref>
        activation_of; // linear node -> its gelu_layernorm or gelu, which then adds the bias; -1
    std::vector<tensor> cast; // bf16 copies of gradients, by node: linear, pair_dot
    std::vector<plain_memory> plain;
    std::vector<norm_memory> norm;
    std::vector<std::string> reason; // why a network is not computed as a whole, by its last layer
    std::vector<net> nets;
    std::vector<int> net_of; // node -> the network that computes it, -1
    std::vector<encoder_trunk> trunks;
    std::vector<int> trunk_of; // node -> the trunk that computes it, -1
    bool few;                  // the networks' tiles are fewer than the device takes at once
    std::vector<packed_matrix> matrices;
    std::vector<task> tasks;
    std::vector<group> groups;
    std::vector<waiting_op> waiting;
    std::vector<double> scalar_grad; // of DEFERRED nodes
    std::vector<final_op> finals;
    std::vector<column_sum> sums;
    std::vector<bf16_copy> copies;
    update_job job[2]; // what goes early, if anything does; the rest
    int64_t cut;       // weights before it go early; 0: none
    // Where gradients lie, and who adds up their norm. After dc_program_gradients all lie in slabs.grad. A step with
    // shares_norm leaves out the matrices of whole networks behind the first: they are updated where their dW is made, which
    // leaves its share of the norm (update_job.dw_norms), as does the first one's. Every other number belongs to one column
    // sum (list_sums, list_written), whose block leaves its share. Without it one kernel takes the norm of the whole slab.
    // NaN or Inf in any gradient makes the norm so; the guard looks at that and at the loss.
    bool shares_norm;
    cudaEvent_t begin, drawn, gathered, early, updated, ticked;
    bool ticking; // while steps are recorded: the last one's end is not waited for yet
    part_events parts_done[2];
    std::vector<int *> used; // by input: where the count of rows in use lies, NULL: all are
};

static inline const dc_node *node(const dc_program *p, dc_ref r) {
    return &p->g->nodes[r];
}

// A last layer of few outputs.
static inline bool is_head(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    return n->op == DC_OP_linear && n->cols <= HEAD_MAX && p->activation_of[r] < 0;
}

// Not computed one by one as the graph goes.
static inline bool is_pointwise(const dc_program *p, dc_ref r) {
    return p->path[(size_t)r] == GROUPED || p->path[(size_t)r] == DEFERRED;
}

static inline bool is_deferred(const dc_program *p, dc_ref r) {
    return p->path[(size_t)r] == DEFERRED;
}

// A first layer whose inputs tensor cores would have to read number by number, since a row is no multiple of 16 bytes, or
// whose inputs are few: dW is made for the columns that pad a row too, as one part of a sum. Returns columns with padding; 0:
// the layer is none of these.
static inline int padded_inputs(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op != DC_OP_linear || p->activation_of[r] < 0 || p->spec.precision == DC_FP32) return 0;
    const dc_node *x = node(p, n->in[0]);
    bool whole = x->cols % 8 == 0 && x->cols > HEAD_MAX;
    return whole || !p->pad[x->base] ? 0 : (x->cols + 7) / 8 * 8;
}

// A first layer whose inputs are few, and not padded: sums over rows, not a product that would be mostly padding.
static inline bool is_thin(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    return n->op == DC_OP_linear && p->activation_of[r] >= 0 &&
           node(p, n->in[0])->cols <= HEAD_MAX && !padded_inputs(p, r);
}

static inline bool is_tf32(const dc_program *p) {
    return p->spec.precision == DC_TF32;
}

static inline bool trained(const dc_node *n) {
    return n->lo < n->hi;
}

static inline bool wants(const dc_program *p, const dc_node *n, int i) {
    return dc_wants(&p->view, n, i);
}

static inline bool adds(const dc_program *p, const dc_node *n, int i) {
    return dc_adds(&p->view, n, i);
}

// Do all consumers of an owner pass the test? Views count as their owner; kept values do not pass.
template <typename F> static inline bool consumers(const dc_program *p, dc_ref r, F test) {
    if (node(p, r)->keep && node(p, r)->op != DC_OP_INPUT) return false;
    bool any = false;
    for (dc_ref c = 0; c < p->g->count; c++) {
        const dc_node *n = node(p, c);
        for (int i = 0; i < n->in_count; i++) {
            if (node(p, n->in[i])->base != r || n->op == DC_OP_ROWS || n->op == DC_OP_STOP)
                continue;
            any = true;
            if (n->in[i] != r || !test(n, i)) return false;
        }
    }
    return any;
}

// Inner nodes of a network or a trunk have no memory of their own.
static inline bool is_inside(const dc_program *p, dc_ref r) {
    int n = p->net_of[(size_t)r], t = p->trunk_of[(size_t)r];
    return (n >= 0 && p->nets[(size_t)n].head != r) || (t >= 0 && p->trunks[(size_t)t].out != r);
}

static inline dc_status take(dc_program *p, size_t bytes, void **out) {
    return dc_cuda_take(p->cuda, bytes, "a training step",
                        "lower batch or hidden, or use --precision bf16", out);
}

static inline dc_status upload(dc_program *p, const void *host, size_t bytes, void **device) {
    DC_TRY(take(p, bytes, device));
    return dc_cuda_put(p->cuda, *device, host, bytes);
}

// ---- tensors of nodes ----

static inline tensor param(float *slab, const dc_node *n) {
    return tensor{slab + n->offset,           n->e, n->rows, n->cols, n->cols,
                  (int64_t)n->rows * n->cols, false};
}

static inline tensor value_of(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *owner = node(p, n->base);
    float *slab = owner->use == DC_EMA ? p->slabs.ema : p->slabs.live;
    tensor whole = owner->op == DC_OP_PARAM ? param(slab, owner) : p->value[n->base];
    return rows_of(whole, n->row0, n->row0 + n->rows);
}

// Rows [lo, hi) of a node's gradient.
static inline tensor grad_of(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *owner = node(p, n->base);
    tensor whole = owner->op == DC_OP_PARAM ? param(p->slabs.grad, owner) : p->grad[n->base];
    int first = n->row0 + n->lo - owner->lo;
    return rows_of(whole, first, first + n->hi - n->lo);
}

// Of input i of node n, at the rows that n trains.
static inline tensor input_value(const dc_program *p, const dc_node *n, int i) {
    return rows_of(value_of(p, n->in[i]), n->lo, n->hi);
}

static inline tensor input_grad(const dc_program *p, const dc_node *n, int i) {
    int lo = node(p, n->in[i])->lo;
    return rows_of(grad_of(p, n->in[i]), n->lo - lo, n->hi - lo);
}

static inline int value_key(const dc_program *p, dc_ref r) {
    return node(p, r)->base;
}

static inline int grad_key(const dc_program *p, dc_ref r) {
    return p->g->count + node(p, r)->base;
}

// ---- paths.cu ----
bool dc_cuda_is_plain_only();
void dc_paths_choose(dc_program *p);
// Pointwise ops that are done as one launch, softmaxes of few columns, and reductions that end the step.
bool dc_group_takes(const dc_program *p, dc_ref r);

// ---- plain.cu ----
bool dc_plain_has(dc_op op);
dc_status dc_plain_take(dc_program *p, dc_ref r); // memory
dc_status dc_plain_forward(dc_program *p, dc_ref r);
dc_status dc_plain_backward(dc_program *p, dc_ref r, int input);
bool dc_plain_pairs(const dc_program *p,
                    dc_ref r); // does the launch for input 0 make the gradient to input 1 as well?

// ---- tasks.cu ----
void dc_push_task(dc_program *p, task::kind what, dc_ref r, int input = -1);
void dc_tasks_order(dc_program *p); // forward, backward, and pointwise ops that nothing waits for
void dc_tasks_streams(dc_program *p);
int dc_tasks_last(const dc_program *p, int stream, bool late); // of a stream, late or not; -1: none

// ---- program.cu ----
// Do layers alone read a node, and all of it? Then it may be bf16.
bool dc_layers_only(const dc_program *p, dc_ref r);
// Sums that a layer left in `count` parts become the gradient of input i of node n.
void dc_push_sum(dc_program *p, const dc_node *n, int i, const float *parts, int count,
                 int64_t stride, int64_t member_step, int length);

// ---- nets.cu ----
void dc_nets_find(dc_program *p);
dc_status dc_nets_take(dc_program *p); // memory
void dc_nets_sums(dc_program *p);
// Does a network train weights in [from, to)? And is the matrix there updated with its dW, where the program does so?
bool dc_net_trains(const dc_program *p, const net *n, int64_t from, int64_t to);
bool dc_nets_update(const dc_program *p, int64_t offset);
dc_status dc_nets_norms(dc_program *p, update_job *j); // where dW's squares go

// ---- trunk.cu ----
void dc_trunks_find(dc_program *p);
dc_status dc_trunks_take(dc_program *p); // memory
void dc_trunks_sums(dc_program *p);
dc_status dc_trunk_forward(dc_cuda *cuda, const encoder_trunk *t);
dc_status dc_trunk_backward(dc_cuda *cuda, const encoder_trunk *t);

// ---- groups.cu ----
void dc_groups_scalars(dc_program *p); // gradients of DEFERRED nodes
// Let ops wait, until somebody needs what they make.
void dc_group_forward(dc_program *p, dc_ref r);
void dc_group_backward(dc_program *p, dc_ref r);
void dc_group_zero(dc_program *p, dc_ref owner);
void dc_group_seed(dc_program *p, dc_ref r, double gradient,
                   bool add); // what a number's gradient is, or has added to it
// A layer needs these: what makes them goes now.
void dc_group_flush(dc_program *p, std::vector<int> need);
void dc_group_flush_all(dc_program *p);
dc_status dc_groups_upload(dc_program *p);
std::vector<int> dc_value_keys(const dc_program *p, const dc_node *n);

// ---- fused_steps.cu ----
bool dc_small_reads(const small_op *n, int i); // does a number need input i at its own place?
int dc_fused_load(group *g, const float *p, int64_t count, int64_t step, int e); // a slot for it
int dc_fused_slots(group *g, int count);                                         // new ones
void dc_fused_steps(group *g, const small_op *n); // the op's, once it has its slots
void dc_fused_split(group *g, int most); // the whole group, to chains on at most so many blocks

#endif
