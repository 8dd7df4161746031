// Which path every node of a graph takes, what the backend cannot do, and what it tells about it. There is a plain path for
// every op (plain.cu); the others take over where they are faster: a table says which ops, a test of shapes and consumers
// says which nodes.
#include "backend/cuda/program.cuh"

// ---- what there is ----

// Ops that pointwise groups take (fused.cu interprets them): number by number, or a row per thread.
enum group_kind { NOT_GROUPED, BY_NUMBER, BY_ROW, BY_SUM };
static group_kind group_kind_of(dc_op op) {
    switch (op) {
    case DC_OP_add:
    case DC_OP_mul:
    case DC_OP_affine:
    case DC_OP_clip:
    case DC_OP_within:
    case DC_OP_decay:
    case DC_OP_power:
    case DC_OP_exp:
    case DC_OP_tanh:
    case DC_OP_abs:
    case DC_OP_sigmoid:
    case DC_OP_softplus:
    case DC_OP_ensemble_min:
    case DC_OP_unpack:
        return BY_NUMBER;
    case DC_OP_expected:
    case DC_OP_log_likelihood:
        return BY_ROW;
    case DC_OP_mean:
    case DC_OP_expectile:
    case DC_OP_bce:
    case DC_OP_square:
    case DC_OP_relative_mean:
        return BY_SUM;
    default:
        return NOT_GROUPED;
    }
}

static bool is_layer(dc_op op) {
    return op == DC_OP_linear || op == DC_OP_gelu_layernorm || op == DC_OP_splice;
}

static char hidden[DC_OPS]; // by tests
static bool plain_only;

extern "C" void dc_cuda_hide_op(dc_op op, bool hide) {
    hidden[op] = hide;
}

extern "C" void dc_cuda_plain_only(bool only) {
    plain_only = only;
}

bool dc_cuda_is_plain_only() {
    return plain_only;
}

extern "C" bool dc_cuda_has_op(dc_op op) {
    return !hidden[op] && (is_layer(op) || dc_plain_has(op));
}

// ---- what cannot be done ----

static dc_status refuse(const dc_graph *g, dc_ref r, const char *why) {
    const dc_node *n = &g->nodes[r];
    return dc_fail(DC_UNSUPPORTED, "use --device cpu",
                   "op %s (node %s, shape %d x %d x %d) has no CUDA path%s%s", dc_op_name(n->op),
                   n->name, n->e, n->rows, n->cols, *why ? ": " : "", why);
}

// Gradients of biases and of LayerNorm's numbers are sums that come at the step's end, so they go to parameters alone.
static bool sums_reach_parameters(const dc_graph *g, const dc_node *n) {
    int first = n->op == DC_OP_linear ? 2 : n->op == DC_OP_gelu_layernorm ? 1 : DC_INPUTS;
    for (int i = first; i < n->in_count; i++) {
        const dc_node *x = &g->nodes[n->in[i]];
        if (x->needs && g->nodes[x->base].op != DC_OP_PARAM) return false;
    }
    return true;
}

extern "C" dc_status dc_cuda_supports(const dc_graph *g) {
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        if (n->op < DC_FIRST_COMPUTED) continue;
        if (!dc_cuda_has_op(n->op)) return refuse(g, r, "");
        if (!sums_reach_parameters(g, n))
            return refuse(g, r, "its bias or scale is computed, and not a parameter");
    }
    return DC_OK;
}

// ---- which path ----

// A group has few blocks, and keeps every member's number in shared memory.
enum { GROUP_CELLS = 1 << 16, GROUP_MEMBERS = 8, GROUP_COLUMNS = 64 };

static bool is_small(const dc_node *n) {
    return (int64_t)n->rows * n->cols <= GROUP_CELLS && n->e <= GROUP_MEMBERS;
}

// Is there an input of one member that has a gradient from several?
static bool sums_members(const dc_program *p, const dc_node *n) {
    int e = n->e;
    for (int i = 0; i < n->in_count; i++)
        e = std::max(e, node(p, n->in[i])->e);
    for (int i = 0; i < n->in_count && n->op != DC_OP_ensemble_min; i++)
        if (dc_flows(n, i) && wants(p, n, i) && node(p, n->in[i])->e < e) return true;
    return false;
}

bool dc_group_takes(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    group_kind kind = group_kind_of(n->op);
    if (plain_only || kind == NOT_GROUPED || !is_small(n) || sums_members(p, n)) return false;
    for (int i = 0; i < n->in_count; i++)
        if (!is_small(node(p, n->in[i]))) return false;
    if (kind != BY_ROW) return true;
    // Rows of an expectation are counted from the first.
    bool whole = n->op == DC_OP_log_likelihood || !trained(n) || (n->lo == 0 && n->hi == n->rows);
    return x->cols <= GROUP_COLUMNS && whole;
}

// May a node's value wait for the step's end? A reduction may, and what is a sum of single numbers, if nobody but such sums
// reads it.
static bool can_wait(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    bool sum =
        (n->op == DC_OP_add || n->op == DC_OP_affine) && n->e == 1 && n->rows == 1 && n->cols == 1;
    if (!sum && !(dc_is_reduction(n->op) && dc_group_takes(p, r))) return false;
    for (dc_ref c = r + 1; c < p->g->count; c++) {
        const dc_node *reader = node(p, c);
        if (reader->op < DC_FIRST_COMPUTED) continue;
        for (int i = 0; i < reader->in_count; i++) {
            if (node(p, reader->in[i])->base != r) continue;
            bool later = is_deferred(p, c) && !dc_is_reduction(reader->op);
            if (reader->in[i] != r || !later) return false;
        }
    }
    return true;
}

void dc_paths_choose(dc_program *p) {
    p->path.assign((size_t)p->g->count, NO_PATH);
    for (dc_ref r = p->g->count - 1; r >= 0; r--) { // who reads a node stands behind it
        dc_op op = node(p, r)->op;
        if (op < DC_FIRST_COMPUTED) continue;
        bool grouped = !dc_is_reduction(op) && dc_group_takes(p, r);
        p->path[(size_t)r] = is_layer(op)     ? LAYER
                             : can_wait(p, r) ? DEFERRED
                             : grouped        ? GROUPED
                                              : PLAIN;
    }
}

// ---- telling ----

// "critic" of "critic/0".
static std::string network_of(const dc_node *n) {
    std::string name = n->name;
    return name.substr(0, name.find('/'));
}

static const char *precision_of(const dc_program *p) {
    return is_tf32(p) ? "TF32" : p->spec.precision == DC_BF16 ? "bf16" : "fp32";
}

// What stands between a network's layers.
static const char *kernels_of(const dc_program *p, const std::string &name) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->in_count == 0 || network_of(n) != name) continue;
        if (n->op == DC_OP_gelu_layernorm) return " + LayerNorm kernel";
        if (n->op == DC_OP_gelu) return " + GELU kernel";
    }
    return "";
}

static std::string line_of_network(const dc_program *p, dc_ref last) {
    std::string name = network_of(node(p, last));
    int whole = p->net_of[(size_t)last];
    if (whole >= 0)
        return name + ": whole network (" + precision_of(p) + " tensor cores" +
               (p->nets[(size_t)whole].norm ? ")" : ", no LayerNorm)");
    return name + ": plain: cuBLASLt (" + precision_of(p) + ")" + kernels_of(p, name) + " (" +
           p->reason[(size_t)last] + ")";
}

extern "C" dc_status dc_program_describe(const dc_program *p, dc_text *out) {
    std::vector<std::string> told;
    for (dc_ref r = 0; r < p->g->count; r++) {
        if (node(p, r)->op != DC_OP_linear || p->activation_of[(size_t)r] >= 0) continue;
        std::string line = line_of_network(p, r);
        if (std::find(told.begin(), told.end(), line) != told.end()) continue;
        told.push_back(line);
        dc_text_add(out, "%s\n", line.c_str());
    }
    return dc_text_status(out);
}
