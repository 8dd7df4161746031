// A graph compiled for the device: every node gets memory of its own, forward and backward become a
// list of launches. Networks' layers are launches each; narrow ops wait until a layer needs what they
// make, and then go together as one launch (narrow.cu). With bf16, what flows between layers is bf16,
// and matrices have bf16 copies; weights, gradients of weights, losses and Adam stay float.
#include "backend/cuda/internal.cuh"

#include <algorithm>
#include <cstring>

struct unit { // one thing to start
    enum kind {
        LAYER,
        WEIGHTS,
        GRADIENT,
        ZERO,
        GROUP,
        NET,
        NET_BACK,
        NET_WEIGHTS
    } what; // WEIGHTS: a linear layer's dW, GRADIENT: the rest of backward; NET: a whole network
    dc_ref node; // or the group's or the network's number
    std::vector<int> reads,
        writes; // keys: r is node r's value, count + r its gradient, 2 count + r its sums
    std::vector<int> waits; // units of other lanes that must be done first
    int lane;
    bool awaited; // by another lane, so it leaves an event
    cudaEvent_t done;
};

struct narrow_op { // that waits to go, with keys as a unit has them
    narrow op;
    std::vector<int> reads, writes;
    bool late; // a metric's: nothing of this step reads it
};

struct group { // of narrow ops, one launch
    std::vector<narrow> ops;
    std::vector<int> reads, writes;
    narrow_list list;
};

struct part_sums { // of a layer's backward: where sums over rows lie until they are added up
    float *p;
    int count;
};

struct net {                          // a whole network in one launch (mlp.cu)
    std::vector<dc_ref> linear, norm; // hidden layers
    dc_ref head, x;
    bool back, weights; // backward is wanted; with dW
    mlp job;
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
    std::vector<dc_ref> norm_of; // linear node -> its LayerNorm, which then adds the bias; -1
    std::vector<net> nets;
    std::vector<int> net_of; // node -> the network that computes it, -1
    std::vector<panels> matrices;
    std::vector<unit> units;
    std::vector<group> groups;
    std::vector<narrow_op> waiting;
    std::vector<double> scalar_grad; // of nodes that are one number, made of reductions alone
    std::vector<char> scalar;
    std::vector<final_op> finals;
    std::vector<column_sum> sums;
    std::vector<shadow> shadows;
    update_job job;
    cudaEvent_t begin, beside;
    std::vector<int *> used; // by input: rows that are wanted
};

static const dc_node *node(const dc_program *p, dc_ref r) {
    return &p->g->nodes[r];
}

// A last layer of few outputs.
static bool is_head(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    return n->op == DC_OP_linear && n->cols <= HEAD_MAX && p->norm_of[r] < 0;
}

// A first layer whose inputs are few: sums over rows, not a product that would be mostly padding.
static bool is_thin(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    return n->op == DC_OP_linear && p->norm_of[r] >= 0 && node(p, n->in[0])->cols <= HEAD_MAX;
}

static bool trained(const dc_node *n) {
    return n->lo < n->hi;
}

static bool wants(const dc_program *p, const dc_node *n, int i) {
    return dc_wants(&p->view, n, i);
}

static bool adds(const dc_program *p, const dc_node *n, int i) {
    return dc_adds(&p->view, n, i);
}

// ---- what is bf16, and which biases LayerNorm adds ----

// Do all consumers of an owner pass the test? Views count as their owner; kept values do not pass.
template <typename F> static bool consumers(const dc_program *p, dc_ref r, F test) {
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

static void decide(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op == DC_OP_linear &&
            consumers(p, r, [](const dc_node *c, int) { return c->op == DC_OP_gelu_layernorm; }))
            for (dc_ref c = r + 1; c < p->g->count; c++)
                if (node(p, c)->op == DC_OP_gelu_layernorm && node(p, c)->in[0] == r)
                    p->norm_of[r] = c;
        auto feeds_layer = [](const dc_node *c, int i) {
            return i == 0 && (c->op == DC_OP_linear || c->op == DC_OP_splice);
        };
        bool source = n->op == DC_OP_INPUT || n->op == DC_OP_splice;
        bool layers_only =
            (source || n->op == DC_OP_gelu_layernorm) && consumers(p, r, feeds_layer);
        p->pad[r] = source && layers_only;
        if (p->spec.precision != DC_BF16) continue;
        // What a layer reads is bf16, and so is what lies between a product and its LayerNorm.
        if (source) p->half[r] = layers_only;
        if (n->op == DC_OP_linear && !is_head(p, r))
            p->half[r] = p->norm_of[r] >= 0 && p->half[node(p, n->in[0])->base];
        if (n->op == DC_OP_gelu_layernorm) p->half[r] = layers_only && p->half[n->in[0]];
    }
    for (dc_ref r = 0; r < p->g->count; r++) // LayerNorm reads and writes one type
        if (node(p, r)->op == DC_OP_gelu_layernorm && !p->half[r]) p->half[node(p, r)->in[0]] = 0;
}

// ---- whole networks ----

// The hidden layers that lead to a head, last first; false where one launch cannot do them.
static bool trace_net(const dc_program *p, dc_ref head, net *out) {
    auto alone = [](const dc_node *, int i) { return i == 0; };
    const dc_node *last = node(p, head);
    *out = net();
    out->head = head;
    dc_ref at = last->in[0];
    while (node(p, at)->op == DC_OP_gelu_layernorm) {
        dc_ref linear = node(p, at)->in[0];
        if (node(p, linear)->op != DC_OP_linear || p->norm_of[linear] != at ||
            !consumers(p, at, alone) || !p->half[at] || !p->half[linear])
            return false;
        out->norm.insert(out->norm.begin(), at);
        out->linear.insert(out->linear.begin(), linear);
        at = node(p, linear)->in[0];
    }
    const dc_node *x = node(p, at);
    out->x = at;
    if (out->linear.empty() || out->linear.size() > MLP_LAYERS || !p->half[at] || !p->pad[at] ||
        x->base != at || x->e != 1 || last->lo % MLP_ROWS)
        return false;
    for (dc_ref r : out->linear)
        if (node(p, r)->cols != node(p, out->linear[0])->cols) return false;
    return dc_mlp_fits(p->cuda, node(p, out->linear[0])->cols, x->cols);
}

// Does anybody but the network itself add to what it gives in backward?
static bool shares_gradients(const dc_program *p, const net *n) {
    const dc_node *first = node(p, n->linear[0]);
    if (wants(p, first, 0) && (node(p, n->x)->op != DC_OP_splice || adds(p, first, 0) ||
                               node(p, node(p, n->x)->in[1])->cols > THIN))
        return true;
    for (dc_ref r : n->linear)
        if (wants(p, node(p, r), 1) && adds(p, node(p, r), 1)) return true;
    return false;
}

static void find_nets(dc_program *p) {
    p->net_of.assign((size_t)p->g->count, -1);
    for (dc_ref r = 0; p->spec.precision == DC_BF16 && r < p->g->count; r++) {
        net n;
        if (!is_head(p, r) || !trace_net(p, r, &n)) continue;
        n.back = trained(node(p, r));
        n.weights = n.back && wants(p, node(p, r), 1);
        if (n.back && shares_gradients(p, &n)) continue;
        for (size_t i = 0; i < n.linear.size(); i++)
            p->net_of[(size_t)n.linear[i]] = p->net_of[(size_t)n.norm[i]] = (int)p->nets.size();
        p->net_of[(size_t)r] = (int)p->nets.size();
        p->nets.push_back(n);
    }
}

// Inner nodes of a network have no memory of their own.
static bool inside_net(const dc_program *p, dc_ref r) {
    int n = p->net_of[(size_t)r];
    return n >= 0 && p->nets[(size_t)n].head != r;
}

// ---- memory ----

static dc_status take(dc_program *p, size_t bytes, void **out) {
    return dc_cuda_take(p->cuda, bytes, "a training step",
                        "lower batch or hidden, or use --precision bf16", out);
}

static dc_status upload(dc_program *p, const void *host, size_t bytes, void **device) {
    DC_TRY(take(p, bytes, device));
    return dc_cuda_put(p->cuda, *device, host, bytes);
}

static dc_status take_tensor(dc_program *p, tensor *t, int e, int rows, int cols, bool pad,
                             bool half) {
    int unit = half ? PANEL_IN : 8, ld = pad ? (cols + unit - 1) / unit * unit : cols;
    *t = tensor{NULL, e, rows, cols, ld, (int64_t)rows * ld, half};
    return take(p, (size_t)e * rows * ld * (half ? 2 : 4), &t->p);
}

// Numbers in one part of a linear node: dW where it is summed in parts, then db unless LayerNorm has it.
static int part_weights(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    return is_head(p, r) || is_thin(p, r) ? x->cols * n->cols : 0;
}

static int part_length(const dc_program *p, dc_ref r) {
    return part_weights(p, r) + (p->norm_of[r] < 0 ? node(p, r)->cols : 0);
}

static dc_status take_nodes(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op == DC_OP_PARAM || n->base != r || inside_net(p, r)) continue;
        DC_TRY(take_tensor(p, &p->value[r], n->e, n->rows, n->cols, p->pad[r], p->half[r]));
        if (trained(n))
            DC_TRY(
                take_tensor(p, &p->grad[r], n->e, n->hi - n->lo, n->cols, p->pad[r], p->half[r]));
        if (n->op == DC_OP_gelu_layernorm) {
            DC_TRY(take(p, sizeof(float2) * n->e * n->rows, (void **)&p->stats[r]));
            if (trained(n)) {
                p->parts[r].count = dc_layernorm_parts(n->e, n->hi - n->lo);
                DC_TRY(take(p, sizeof(float) * n->e * p->parts[r].count * 3 * n->cols,
                            (void **)&p->parts[r].p));
            }
        }
        if (n->op == DC_OP_linear && trained(n) && (p->norm_of[r] < 0 || is_thin(p, r))) {
            p->parts[r].count = dc_head_parts(n->hi - n->lo);
            DC_TRY(take(p, sizeof(float) * n->e * p->parts[r].count * (size_t)part_length(p, r),
                        (void **)&p->parts[r].p));
        }
    }
    return DC_OK;
}

static dc_status take_slabs(dc_program *p) {
    dc_slabs *s = &p->slabs;
    s->size = p->spec.size;
    s->ema_size = p->spec.ema_size;
    float **all[] = {&s->live, &s->ema, &s->grad, &s->m, &s->v};
    int count = p->g->loss < 0 ? 2 : 5; // what is not trained has weights alone
    for (int i = 0; i < count; i++)
        DC_TRY(dc_cuda_take(p->cuda, (size_t)s->size * sizeof(float), "weights", "lower hidden",
                            (void **)all[i]));
    return DC_OK;
}

// bf16 copies of the matrices that products read. Live and stopped uses share one.
static dc_status take_shadows(dc_program *p) {
    for (dc_ref r = 0; p->spec.precision == DC_BF16 && r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op != DC_OP_linear || is_head(p, r) || !p->half[n->in[0]] || inside_net(p, r))
            continue;
        const dc_node *w = node(p, n->in[1]);
        tensor *copy = &p->copy[n->in[1]];
        if (copy->p) continue;
        bool ema = w->use == DC_EMA, found = false;
        for (shadow &s : p->shadows) {
            if (s.offset != w->offset) continue;
            bf16 **mine = ema ? &s.ema : &s.live;
            if (!*mine) DC_TRY(take(p, (size_t)w->e * w->rows * s.ld * 2, (void **)mine));
            *copy = tensor{*mine, w->e, w->rows, w->cols, s.ld, (int64_t)w->rows * s.ld, true};
            found = true;
        }
        if (found) continue;
        shadow s = {w->offset, w->e, w->rows, w->cols, (w->cols + 7) / 8 * 8, NULL, NULL};
        bf16 **mine = ema ? &s.ema : &s.live;
        DC_TRY(take(p, (size_t)w->e * w->rows * s.ld * 2, (void **)mine));
        *copy = tensor{*mine, w->e, w->rows, w->cols, s.ld, (int64_t)w->rows * s.ld, true};
        p->shadows.push_back(s);
    }
    return DC_OK;
}

// ---- tensors of nodes ----

static tensor param(const dc_program *p, float *slab, const dc_node *n) {
    return tensor{slab + n->offset,           n->e, n->rows, n->cols, n->cols,
                  (int64_t)n->rows * n->cols, false};
}

static tensor value_of(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *owner = node(p, n->base);
    if (owner->op == DC_OP_PARAM)
        return param(p, owner->use == DC_EMA ? p->slabs.ema : p->slabs.live, owner);
    return rows_of(p->value[n->base], n->row0, n->row0 + n->rows);
}

// Rows [lo, hi) of a node's gradient.
static tensor grad_of(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *owner = node(p, n->base);
    if (owner->op == DC_OP_PARAM) return param(p, p->slabs.grad, owner);
    int first = n->row0 + n->lo - owner->lo;
    return rows_of(p->grad[n->base], first, first + n->hi - n->lo);
}

// Of input i of node n, at the rows that n trains.
static tensor input_value(const dc_program *p, const dc_node *n, int i) {
    return rows_of(value_of(p, n->in[i]), n->lo, n->hi);
}

static tensor input_grad(const dc_program *p, const dc_node *n, int i) {
    int lo = node(p, n->in[i])->lo;
    return rows_of(grad_of(p, n->in[i]), n->lo - lo, n->hi - lo);
}

static tensor member(tensor t, int e) {
    if (t.e > 1) t.p = (char *)t.p + e * t.step * (t.half ? 2 : 4);
    t.e = 1;
    return t;
}

// ---- networks: their memory and their launches ----

// The panels of a matrix; live and stopped uses share them.
static panels *panels_of(dc_program *p, const dc_node *w) {
    for (panels &m : p->matrices)
        if (m.offset == w->offset) return &m;
    p->matrices.push_back(panels{w->offset, w->e, w->rows, w->cols});
    return &p->matrices.back();
}

static dc_status take_panels(dc_program *p, bf16 **mine, int e, int in, int out,
                             const bf16 **seen) {
    int wide = out <= THIN ? THIN : out;
    size_t numbers = (size_t)e * (size_t)(div_up(in, PANEL_IN) * PANEL_IN) * (size_t)wide;
    if (!*mine) DC_TRY(take(p, numbers * sizeof(bf16), (void **)mine));
    *seen = *mine;
    return DC_OK;
}

// Of the weights that a linear layer uses.
static dc_status take_weights(dc_program *p, const dc_node *w, const bf16 **out) {
    panels *m = panels_of(p, w);
    return take_panels(p, w->use == DC_EMA ? &m->ema : &m->live, w->e, w->rows, w->cols, out);
}

static const float *vector_of(const dc_program *p, dc_ref r) {
    return (const float *)value_of(p, r).p;
}

static dc_status take_layer(dc_program *p, const net *n, int i, mlp *j) {
    const dc_node *linear = node(p, n->linear[(size_t)i]), *norm = node(p, n->norm[(size_t)i]);
    const dc_node *w = node(p, linear->in[1]);
    mlp_layer *l = &j->layer[i];
    size_t width = (size_t)j->width, e = (size_t)j->e, rows = (size_t)(j->hi - j->lo),
           rows_all = (size_t)j->tiles * MLP_ROWS, parts = (size_t)dc_mlp_parts(j);
    l->in = w->rows;
    l->in_pad = div_up(w->rows, PANEL_IN) * PANEL_IN;
    l->b = vector_of(p, linear->in[2]);
    l->scale = vector_of(p, norm->in[1]);
    l->shift = vector_of(p, norm->in[2]);
    DC_TRY(take_weights(p, w, &l->w));
    if (!n->back) return DC_OK;
    if (i) DC_TRY(take_panels(p, &panels_of(p, w)->turned, w->e, w->cols, w->rows, &l->wt));
    DC_TRY(take(p, e * rows_all * width * sizeof(bf16), (void **)&l->z));
    DC_TRY(take(p, e * rows_all * sizeof(float2), (void **)&l->stats));
    DC_TRY(take(p, e * parts * 3 * width * sizeof(float), (void **)&l->parts));
    if (!n->weights) return DC_OK;
    DC_TRY(take(p, e * rows * width * sizeof(bf16), (void **)&l->h));
    DC_TRY(take(p, e * rows * width * sizeof(bf16), (void **)&l->dz));
    l->dw = (float *)grad_of(p, linear->in[1]).p;
    return DC_OK;
}

static dc_status take_net(dc_program *p, net *n) {
    const dc_node *head = node(p, n->head), *x = node(p, n->x), *first = node(p, n->linear[0]);
    mlp *j = &n->job;
    *j = mlp{head->e, (int)n->linear.size(), first->cols, x->cols, head->cols};
    j->x = value_of(p, n->x);
    int **used = &p->used[(size_t)n->x];
    if (x->op == DC_OP_INPUT && !*used) DC_TRY(upload(p, &x->rows, sizeof x->rows, (void **)used));
    j->used = *used;
    j->head_w = vector_of(p, head->in[1]);
    j->head_b = vector_of(p, head->in[2]);
    j->y = (float *)value_of(p, n->head).p;
    j->tiles = div_up(x->rows, MLP_ROWS);
    DC_TRY(take_weights(p, node(p, head->in[1]), &j->head_panel));
    if (n->back) {
        j->lo = head->lo;
        j->hi = head->hi;
        j->dy = (const float *)grad_of(p, n->head).p;
    }
    for (int i = 0; i < j->layers; i++)
        DC_TRY(take_layer(p, n, i, j));
    if (n->back && wants(p, first, 0)) {
        j->dx_first = (int)x->a;
        j->dx_count = node(p, x->in[1])->cols;
        const dc_node *w = node(p, first->in[1]);
        panels *m = panels_of(p, w);
        m->some_first = j->dx_first;
        m->some_count = j->dx_count;
        DC_TRY(take_panels(p, &m->some, w->e, w->cols, THIN, &j->dx_panel));
        DC_TRY(take(p, sizeof(float) * (size_t)j->e * (size_t)(j->hi - j->lo) * (size_t)j->dx_count,
                    (void **)&j->dx));
    }
    if (n->weights && j->out == 1)
        DC_TRY(take(p,
                    sizeof(float) * (size_t)j->e * (size_t)dc_mlp_parts(j) * (size_t)(j->width + 1),
                    (void **)&j->head_parts));
    return DC_OK;
}

// dW of all layers; of a head with several outputs too.
static dc_status net_weights(dc_program *p, const net *n) {
    const mlp *j = &n->job;
    DC_TRY(dc_mlp_weights(p->cuda, j));
    if (j->head_parts) return DC_OK;
    int rows = j->hi - j->lo;
    tensor h = {j->layer[j->layers - 1].h, j->e, rows, j->width, j->width,
                (int64_t)rows * j->width,  true};
    return dc_head_dw(p->cuda, h, grad_of(p, n->head), p->parts[(size_t)n->head].p);
}

// ---- layers ----

static tensor weights(const dc_program *p, dc_ref w, bool half) {
    return half ? p->copy[w] : value_of(p, w);
}

static dc_status linear_fwd(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor x = value_of(p, n->in[0]), y = value_of(p, r);
    if (is_head(p, r))
        return dc_head_fwd(p->cuda, x, value_of(p, n->in[1]), value_of(p, n->in[2]), y);
    DC_TRY(dc_gemm_cuda(p->cuda, p->spec.precision, x, false, weights(p, n->in[1], x.half), false,
                        y, false));
    return p->norm_of[r] >= 0 ? DC_OK : dc_bias_fwd(p->cuda, y, value_of(p, n->in[2]));
}

// A shared input receives from every member, in order.
static dc_status linear_dx(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor dy = grad_of(p, r);
    tensor dx = input_grad(p, n, 0), w = weights(p, n->in[1], dy.half);
    bool add = adds(p, n, 0);
    if (is_head(p, r) && dx.e == dy.e)
        return dc_head_dx(p->cuda, dy, value_of(p, n->in[1]), dx, add);
    if (dx.e == dy.e) return dc_gemm_cuda(p->cuda, p->spec.precision, dy, false, w, true, dx, add);
    for (int e = 0; e < dy.e; e++)
        DC_TRY(dc_gemm_cuda(p->cuda, p->spec.precision, member(dy, e), false, member(w, e), true,
                            dx, add || e > 0));
    return DC_OK;
}

static dc_status linear_dw(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor dy = grad_of(p, r), x = input_value(p, n, 0);
    if (is_head(p, r)) return dc_head_dw(p->cuda, x, dy, p->parts[r].p);
    if (is_thin(p, r)) return dc_thin_dw(p->cuda, x, dy, p->parts[r].p);
    DC_TRY(dc_gemm_cuda(p->cuda, p->spec.precision, x, true, dy, false, grad_of(p, n->in[1]),
                        adds(p, n, 1)));
    if (p->norm_of[r] >= 0) return DC_OK;
    x.cols = 0; // the bias alone
    return dc_head_dw(p->cuda, x, dy, p->parts[r].p);
}

static layernorm norm_job(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    layernorm job = {};
    job.x = value_of(p, n->in[0]);
    job.scale = (const float *)value_of(p, n->in[1]).p;
    job.bias = (const float *)value_of(p, n->in[2]).p;
    job.y = value_of(p, r);
    job.stats = p->stats[r];
    job.stats_rows = n->rows;
    if (x->op == DC_OP_linear && p->norm_of[n->in[0]] == r)
        job.add = (const float *)value_of(p, x->in[2]).p;
    return job;
}

static dc_status norm_bwd(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    layernorm job = norm_job(p, r);
    job.x = input_value(p, n, 0);
    job.stats += n->lo;
    DC_CHECK(!wants(p, n, 0) || !adds(p, n, 0));
    tensor dx = {};
    if (wants(p, n, 0)) dx = input_grad(p, n, 0);
    return dc_layernorm_bwd(p->cuda, &job, grad_of(p, r), dx, p->parts[r].p);
}

static dc_status forward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op == DC_OP_linear) return linear_fwd(p, r);
    if (n->op == DC_OP_splice)
        return dc_splice_fwd(p->cuda, value_of(p, n->in[0]), value_of(p, n->in[1]), value_of(p, r),
                             (int)n->a);
    layernorm job = norm_job(p, r);
    return dc_layernorm_fwd(p->cuda, &job);
}

static dc_status backward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op == DC_OP_linear) return linear_dx(p, r);
    for (const net &user : p->nets)
        if (n->op == DC_OP_splice && user.x == r && user.job.dx)
            return dc_splice_sum(p->cuda, &user.job, input_grad(p, n, 1), adds(p, n, 1));
    if (n->op == DC_OP_splice)
        return wants(p, n, 1) ? dc_splice_bwd(p->cuda, grad_of(p, r), input_grad(p, n, 1),
                                              (int)n->a, adds(p, n, 1))
                              : DC_OK;
    return norm_bwd(p, r);
}

// ---- sums over rows that a layer's backward leaves behind ----

static void push_sum(dc_program *p, const dc_node *n, int i, const float *parts, int count,
                     int64_t stride, int64_t member_step, int length) {
    if (!wants(p, n, i)) return;
    tensor out = grad_of(p, n->in[i]);
    for (int e = 0; e < out.e; e++)
        p->sums.push_back(column_sum{parts + e * member_step, (float *)out.p + e * out.step, count,
                                     length, stride, adds(p, n, i)});
}

static void list_net_sums(dc_program *p, const net *n) {
    const mlp *j = &n->job;
    int count = dc_mlp_parts(j);
    int64_t stride = 3 * j->width, step = count * stride;
    for (int i = 0; i < j->layers; i++) {
        const float *parts = j->layer[i].parts;
        const dc_node *norm = node(p, n->norm[(size_t)i]);
        push_sum(p, norm, 1, parts, count, stride, step, j->width);
        push_sum(p, norm, 2, parts + j->width, count, stride, step, j->width);
        push_sum(p, node(p, n->linear[(size_t)i]), 2, parts + 2 * j->width, count, stride, step,
                 j->width);
    }
    if (!j->head_parts) return;
    stride = j->width + 1;
    push_sum(p, node(p, n->head), 1, j->head_parts, count, stride, count * stride, j->width);
    push_sum(p, node(p, n->head), 2, j->head_parts + j->width, count, stride, count * stride, 1);
}

static void list_sums(dc_program *p) {
    for (const net &n : p->nets)
        if (n.weights) list_net_sums(p, &n);
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        const part_sums *s = &p->parts[r];
        if (!s->p ||
            (p->net_of[(size_t)r] >= 0 && p->nets[(size_t)p->net_of[(size_t)r]].job.head_parts))
            continue;
        if (n->op == DC_OP_gelu_layernorm) {
            int64_t stride = 3 * n->cols, step = s->count * stride;
            push_sum(p, n, 1, s->p, s->count, stride, step, n->cols);
            push_sum(p, n, 2, s->p + n->cols, s->count, stride, step, n->cols);
            if (p->norm_of[n->in[0]] == r)
                push_sum(p, node(p, n->in[0]), 2, s->p + 2 * n->cols, s->count, stride, step,
                         n->cols);
        } else {
            int own = part_weights(p, r);
            int64_t stride = part_length(p, r), step = s->count * stride;
            if (own) push_sum(p, n, 1, s->p, s->count, stride, step, own);
            if (p->norm_of[r] < 0) push_sum(p, n, 2, s->p + own, s->count, stride, step, n->cols);
        }
    }
}

// ---- narrow ops ----

static int value_key(const dc_program *p, dc_ref r) {
    return node(p, r)->base;
}

static int grad_key(const dc_program *p, dc_ref r) {
    return p->g->count + node(p, r)->base;
}

static void push_unit(dc_program *p, unit::kind what, dc_ref r) {
    unit u = {};
    u.what = what;
    u.node = r;
    if (what == unit::GROUP) {
        u.reads = p->groups[(size_t)r].reads;
        u.writes = p->groups[(size_t)r].writes;
    } else if (what == unit::ZERO) {
        u.writes.push_back(grad_key(p, r));
    } else if (what >= unit::NET) {
        const net *n = &p->nets[(size_t)r];
        int inside = 2 * p->g->count + n->head; // stands for all that the network keeps to itself
        u.reads.push_back(value_key(p, n->x));
        if (what == unit::NET) u.writes.push_back(n->head);
        if (what != unit::NET) u.reads.push_back(grad_key(p, n->head));
        if (what == unit::NET_BACK && n->job.dx) u.writes.push_back(grad_key(p, n->x));
        (what == unit::NET_WEIGHTS ? u.reads : u.writes).push_back(inside);
    } else {
        const dc_node *n = node(p, r);
        for (int i = 0; i < n->in_count; i++) {
            u.reads.push_back(value_key(p, n->in[i]));
            bool weight = n->op == DC_OP_linear && i == 1, back = what != unit::LAYER;
            if (back && wants(p, n, i) && weight == (what == unit::WEIGHTS))
                u.writes.push_back(grad_key(p, n->in[i]));
        }
        if (what == unit::LAYER) u.writes.push_back(r);
        if (what != unit::LAYER) u.reads.push_back(grad_key(p, r));
        if (what != unit::LAYER && (n->op != DC_OP_linear || what == unit::WEIGHTS))
            u.writes.push_back(2 * p->g->count + r);
    }
    p->units.push_back(u);
}

static bool has(const std::vector<int> &list, int key) {
    return std::find(list.begin(), list.end(), key) != list.end();
}

static bool meets(const std::vector<int> &a, const std::vector<int> &b) {
    for (int key : a)
        if (has(b, key)) return true;
    return false;
}

// Number of the register where an earlier op of the phase left these numbers, -1 if none did.
static int find_slot(const group *g, int phase, const void *y, int64_t count, int64_t step, int e) {
    for (int i = (int)g->ops.size() - 1; i >= phase; i--) {
        const narrow *w = &g->ops[(size_t)i];
        if (w->y == y && w->count == count && w->y_slot >= 0 &&
            (e == 1 || (w->ystep == step && w->e >= e)))
            return w->y_slot;
    }
    return -1;
}

// Does the phase write to where x reads, in a way that registers do not tell?
static bool touches(const narrow_op *maker, const narrow_op *reader) {
    return meets(maker->writes, reader->reads) || meets(maker->writes, reader->writes);
}

static bool leaves_register(const narrow *n) {
    if (n->op == NARROW_ZERO || n->input < 0) return n->op == NARROW_ZERO || n->sum < 0;
    return n->op != DC_OP_expected && n->op != DC_OP_log_likelihood;
}

static bool reads_rows(const narrow *n) { // numbers of other places than its own
    return n->op == DC_OP_expected || n->op == DC_OP_log_likelihood || n->op == DC_OP_unpack ||
           (n->op == DC_OP_relative_mean && n->input >= 0);
}

// Put an op at the end of a group: find its operands in registers, or put a barrier before it.
static void append(group *g, std::vector<const narrow_op *> *made, int *phase, const narrow_op *w) {
    narrow n = w->op;
    auto place = [&]() {
        for (int i = 0; i < DC_INPUTS; i++)
            n.x_slot[i] = n.x[i] && !reads_rows(&n)
                              ? find_slot(g, *phase, n.x[i], n.count, n.step[i], n.members[i])
                              : -1;
        n.dy_slot = n.dy ? find_slot(g, *phase, n.dy, n.count, n.dystep, n.dystep ? n.e : 1) : -1;
        n.y_slot = find_slot(g, *phase, n.y, n.count, n.ystep, n.e);
        n.y_there = n.add && n.y_slot >= 0;
    };
    place();
    // Whatever the phase wrote to its operands must be in a register.
    for (size_t i = (size_t)*phase; i < g->ops.size() && !n.sync; i++) {
        if (!touches((*made)[i], w)) continue;
        const narrow *m = &g->ops[i];
        bool seen = m->y_slot >= 0 && (m->y_slot == n.dy_slot || (m->y_slot == n.y_slot && n.add));
        for (int k = 0; k < DC_INPUTS; k++)
            seen = seen || (m->y_slot >= 0 && m->y_slot == n.x_slot[k]);
        bool later = false; // by an op whose result is in the register
        for (size_t k = i + 1; k < g->ops.size(); k++)
            later = later || (g->ops[k].y_slot >= 0 && g->ops[k].y_slot == m->y_slot);
        n.sync = !seen && !later;
    }
    if (n.sync) {
        *phase = (int)g->ops.size();
        place();
    }
    if (n.y_slot < 0 && leaves_register(&n)) {
        n.y_slot = g->list.slots;
        g->list.slots += n.e;
    }
    if (n.sum >= 0) {
        n.sum = g->list.sums;
        g->list.sums += dc_narrow_sums((dc_op)n.op);
    }
    g->ops.push_back(n);
    made->push_back(w);
}

static bool full(const group *g, const narrow_op *w) {
    return (int)g->ops.size() == NARROW_MOST || g->list.slots + w->op.e > NARROW_SLOTS;
}

// Launch the waiting ops that are chosen, in their order.
static void launch_chosen(dc_program *p, const std::vector<char> &chosen) {
    group g = {};
    int phase = 0;
    std::vector<const narrow_op *> made;
    auto close = [&]() {
        if (g.ops.empty()) return;
        p->groups.push_back(g);
        push_unit(p, unit::GROUP, (dc_ref)p->groups.size() - 1);
        g = group();
        made.clear();
        phase = 0;
    };
    for (size_t i = 0; i < p->waiting.size(); i++) {
        if (!chosen[i]) continue;
        const narrow_op *w = &p->waiting[i];
        if (full(&g, w)) close();
        append(&g, &made, &phase, w);
        g.reads.insert(g.reads.end(), w->reads.begin(), w->reads.end());
        g.writes.insert(g.writes.end(), w->writes.begin(), w->writes.end());
    }
    close();
    std::vector<narrow_op> rest;
    for (size_t i = 0; i < p->waiting.size(); i++)
        if (!chosen[i]) rest.push_back(p->waiting[i]);
    p->waiting = rest;
}

// A layer needs these: what makes them goes now, and so do metrics of it if `metrics`.
static void flush(dc_program *p, std::vector<int> need, bool metrics) {
    std::vector<char> chosen(p->waiting.size());
    for (size_t i = p->waiting.size(); i-- > 0;) {
        const narrow_op *w = &p->waiting[i];
        if (!meets(w->writes, need)) continue;
        chosen[i] = 1;
        need.insert(need.end(), w->reads.begin(), w->reads.end());
    }
    for (size_t i = 0; metrics && i < p->waiting.size(); i++) {
        bool ready = p->waiting[i].late && !chosen[i];
        for (size_t k = 0; k < i && ready; k++)
            ready = chosen[k] || !meets(p->waiting[k].writes, p->waiting[i].reads);
        chosen[i] = chosen[i] || ready;
    }
    launch_chosen(p, chosen);
}

static void flush_all(dc_program *p) {
    launch_chosen(p, std::vector<char>(p->waiting.size(), 1));
}

static void push_narrow(dc_program *p, narrow n, const std::vector<int> &reads,
                        const std::vector<int> &writes, bool late) {
    p->waiting.push_back(narrow_op{n, reads, writes, late});
}

static std::vector<int> value_keys(const dc_program *p, const dc_node *n) {
    std::vector<int> keys;
    for (int i = 0; i < n->in_count; i++)
        keys.push_back(value_key(p, n->in[i]));
    return keys;
}

// ---- single numbers: reductions and what is made of them come last; their gradients are known now ----

static void find_scalars(dc_program *p) {
    p->scalar.assign((size_t)p->g->count, 0);
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        bool all = n->in_count > 0 && (n->op == DC_OP_add || n->op == DC_OP_affine);
        for (int i = 0; i < n->in_count; i++)
            all = all && p->scalar[(size_t)n->in[i]];
        p->scalar[(size_t)r] = all || (n->op >= DC_FIRST_COMPUTED && dc_is_reduction(n->op));
    }
    p->scalar_grad.assign((size_t)p->g->count, 0);
    dc_ref loss = p->g->loss;
    if (loss < 0) return;
    DC_CHECK(p->scalar[(size_t)loss]); // a loss is a sum of reductions
    p->scalar_grad[(size_t)loss] = 1;
    for (dc_ref r = loss; r >= 0; r--) {
        const dc_node *n = node(p, r);
        if (!p->scalar[(size_t)r] || dc_is_reduction(n->op)) continue;
        for (int i = 0; i < n->in_count; i++)
            p->scalar_grad[(size_t)n->in[i]] +=
                p->scalar_grad[(size_t)r] * (n->op == DC_OP_affine ? n->a : 1);
    }
}

static void list_final(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    const dc_node *x = node(p, n->in[0]);
    final_op f = {};
    f.op = n->op;
    f.a = n->a;
    f.b = n->b;
    f.out = (float *)value_of(p, r).p;
    if (dc_is_reduction(n->op)) {
        bool rows = n->op == DC_OP_log_likelihood;
        f.cells = (double)x->e * x->rows * (rows ? 1 : x->cols);
        f.blocks = dc_narrow_blocks(p->cuda);
    } else {
        f.x = (const float *)value_of(p, n->in[0]).p;
        if (n->in_count > 1) f.y = (const float *)value_of(p, n->in[1]).p;
    }
    p->finals.push_back(f);
}

static void set_inputs(const dc_program *p, const dc_node *n, narrow *out, bool back) {
    for (int i = 0; i < n->in_count; i++) {
        bool whole = dc_is_reduction(n->op) || n->op == DC_OP_unpack || n->op == DC_OP_expected;
        tensor t = back && !whole ? input_value(p, n, i) : value_of(p, n->in[i]);
        DC_CHECK(!t.half && t.ld == t.cols);
        out->x[i] = (const float *)t.p;
        out->step[i] = t.e == 1 ? 0 : t.step;
        out->members[i] = t.e;
    }
}

static narrow new_narrow(void) {
    narrow n = {};
    n.input = n.sum = n.dy_slot = n.y_slot = -1;
    n.x_slot[0] = n.x_slot[1] = n.x_slot[2] = -1;
    return n;
}

static void narrow_fwd(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    if (p->scalar[(size_t)r]) list_final(p, r);
    if (p->scalar[(size_t)r] && !dc_is_reduction(n->op)) return;
    narrow out = new_narrow();
    out.op = n->op;
    out.a = n->a;
    out.b = n->b;
    set_inputs(p, n, &out, false);
    tensor y = value_of(p, r);
    out.y = (float *)y.p;
    out.ystep = y.step;
    out.e = n->e;
    out.count = dc_is_reduction(n->op) ? (int64_t)x->rows * x->cols : (int64_t)n->rows * n->cols;
    out.cols = x->cols;
    if (n->op == DC_OP_log_likelihood) out.count = x->rows;
    if (dc_is_reduction(n->op)) out.sum = 0; // its number, when its group is known
    push_narrow(p, out, value_keys(p, n), {r}, dc_is_reduction(n->op));
}

static void narrow_zero(dc_program *p, dc_ref owner) {
    tensor t = grad_of(p, owner);
    narrow out = new_narrow();
    out.op = NARROW_ZERO;
    out.e = 1;
    out.count = (int64_t)t.e * t.rows * t.cols;
    out.y = (float *)t.p;
    push_narrow(p, out, {}, {grad_key(p, owner)}, false);
}

static void narrow_bwd(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (p->scalar[(size_t)r] && !dc_is_reduction(n->op)) return;
    for (int i = 0; i < n->in_count; i++) {
        if (!dc_flows(n, i) || !wants(p, n, i)) continue;
        bool whole = dc_is_reduction(n->op),
             softmax = n->op == DC_OP_expected || n->op == DC_OP_log_likelihood;
        DC_CHECK(!softmax || n->op == DC_OP_log_likelihood || (n->lo == 0 && n->hi == n->rows));
        narrow out = new_narrow();
        out.op = n->op;
        out.input = i;
        out.a = n->a;
        out.b = n->b;
        out.add = adds(p, n, i);
        set_inputs(p, n, &out, true);
        tensor dx = whole ? grad_of(p, n->in[i]) : input_grad(p, n, i);
        DC_CHECK(!dx.half && dx.ld == dx.cols);
        out.y = (float *)dx.p;
        out.ystep = dx.e == 1 ? 0 : dx.step;
        if (whole)
            out.g = p->scalar_grad[(size_t)r];
        else {
            tensor dy = grad_of(p, r);
            out.dy = (const float *)dy.p;
            out.dystep = dy.e == 1 ? 0 : dy.step;
        }
        out.e = whole || n->op == DC_OP_ensemble_min ? node(p, n->in[0])->e : n->e;
        out.cols = dx.cols;
        out.count = softmax ? dx.rows : (int64_t)dx.rows * dx.cols;
        std::vector<int> reads = value_keys(p, n);
        if (!whole) reads.push_back(grad_key(p, r));
        push_narrow(p, out, reads, {grad_key(p, n->in[i])}, false);
    }
}

// ---- the order of things ----

static void order_forward(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op < DC_FIRST_COMPUTED) continue;
        if (dc_is_narrow(n->op)) {
            narrow_fwd(p, r);
            continue;
        }
        if (inside_net(p, r)) continue;
        int whole = p->net_of[(size_t)r];
        flush(p, whole >= 0 ? std::vector<int>{p->nets[(size_t)whole].x} : value_keys(p, n), false);
        if (whole >= 0)
            push_unit(p, unit::NET, whole);
        else
            push_unit(p, unit::LAYER, r);
    }
}

// Owners whose gradient is summed start from zero before their first contribution.
static void order_zeros(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    for (int i = 0; i < n->in_count; i++) {
        dc_ref base = node(p, n->in[i])->base;
        const dc_node *owner = node(p, base);
        if (!owner->grad_sum || owner->grad_first != r || owner->lo == owner->hi) continue;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || node(p, n->in[k])->base == base;
        if (seen) continue;
        if (dc_is_narrow(n->op) && !p->half[base])
            narrow_zero(p, base);
        else
            push_unit(p, unit::ZERO, base);
    }
}

// What the backward of a layer reads and adds to.
static std::vector<int> backward_keys(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    std::vector<int> keys = value_keys(p, n);
    keys.push_back(grad_key(p, r));
    for (int i = 0; i < n->in_count; i++)
        keys.push_back(grad_key(p, n->in[i]));
    return keys;
}

static void order_backward(dc_program *p) {
    dc_ref loss = p->g->loss;
    if (loss < 0 || !trained(node(p, loss))) return;
    for (dc_ref r = loss; r >= 0; r--) {
        const dc_node *n = node(p, r);
        if (n->op < DC_FIRST_COMPUTED || !trained(n) || inside_net(p, r)) continue;
        if (!dc_is_narrow(n->op)) flush(p, backward_keys(p, r), true);
        int whole = p->net_of[(size_t)r];
        if (whole >= 0) {
            push_unit(p, unit::NET_BACK, whole);
            if (p->nets[(size_t)whole].weights) push_unit(p, unit::NET_WEIGHTS, whole);
            continue;
        }
        order_zeros(p, r);
        if (dc_is_narrow(n->op))
            narrow_bwd(p, r);
        else {
            if (n->op != DC_OP_linear || wants(p, n, 0)) push_unit(p, unit::GRADIENT, r);
            if (n->op == DC_OP_linear && wants(p, n, 1)) push_unit(p, unit::WEIGHTS, r);
        }
    }
}

// ---- lanes: what does not wait for each other runs side by side ----

static void add_once(std::vector<int> *list, int u) {
    for (int v : *list)
        if (v == u) return;
    list->push_back(u);
}

// Units that unit u must wait for: who wrote what it reads, and who wrote or read what it writes.
static void depend(dc_program *p, std::vector<std::vector<int>> *needs) {
    std::vector<int> writer((size_t)p->g->count * 3, -1);
    std::vector<std::vector<int>> readers((size_t)p->g->count * 3);
    for (int u = 0; u < (int)p->units.size(); u++) {
        std::vector<int> *need = &(*needs)[(size_t)u];
        for (int key : p->units[(size_t)u].reads)
            if (writer[(size_t)key] >= 0) add_once(need, writer[(size_t)key]);
        for (int key : p->units[(size_t)u].writes) {
            if (writer[(size_t)key] >= 0) add_once(need, writer[(size_t)key]);
            for (int r : readers[(size_t)key])
                if (r != u) add_once(need, r);
        }
        for (int key : p->units[(size_t)u].reads)
            readers[(size_t)key].push_back(u);
        for (int key : p->units[(size_t)u].writes) {
            writer[(size_t)key] = u;
            readers[(size_t)key].clear();
        }
    }
}

// A unit follows the latest of those it waits for, if that one is the last of its lane; else it takes
// the lane that has been idle for longest.
static void choose_lanes(dc_program *p) {
    std::vector<std::vector<int>> needs(p->units.size());
    depend(p, &needs);
    int last[LANES];
    for (int l = 0; l < LANES; l++)
        last[l] = -1;
    for (int u = 0; u < (int)p->units.size(); u++) {
        int lane = -1, latest = -1;
        for (int v : needs[(size_t)u])
            if (last[p->units[(size_t)v].lane] == v && v > latest) {
                latest = v;
                lane = p->units[(size_t)v].lane;
            }
        for (int l = 0; lane < 0 && l < LANES; l++)
            if (last[l] == -1) lane = l;
        if (lane < 0) {
            lane = 0;
            for (int l = 1; l < LANES; l++)
                if (last[l] < last[lane]) lane = l;
        }
        p->units[(size_t)u].lane = lane;
        last[lane] = u;
        for (int v : needs[(size_t)u])
            if (p->units[(size_t)v].lane != lane) {
                p->units[(size_t)u].waits.push_back(v);
                p->units[(size_t)v].awaited = true;
            }
    }
    for (int l = 0; l < LANES; l++)
        if (last[l] >= 0) p->units[(size_t)last[l]].awaited = true; // by what comes after all
}

// ---- building ----

// What the update walks over: matrices with panels in strips of 16 rows, the rest in flat spans.
static void list_pieces(dc_program *p, std::vector<piece> *out) {
    std::sort(p->matrices.begin(), p->matrices.end(),
              [](const panels &a, const panels &b) { return a.offset < b.offset; });
    int64_t at = 0;
    auto flat = [&](int64_t end) {
        for (; at < end; at += PIECE)
            out->push_back(piece{at, -1, 0, 0, (int)(end - at < PIECE ? end - at : PIECE)});
        at = end;
    };
    for (int m = 0; m < (int)p->matrices.size(); m++) {
        const panels *f = &p->matrices[(size_t)m];
        flat(f->offset);
        for (int e = 0; e < f->e; e++)
            for (int row = 0; row < f->rows; row += 16)
                out->push_back(
                    piece{f->offset + ((int64_t)e * f->rows + row) * f->cols, m, e, row, 0});
        at = f->offset + (int64_t)f->e * f->rows * f->cols;
        at = (at + 3) / 4 * 4;
    }
    flat(p->slabs.size);
}

// Reductions leave partial sums, which the finals read.
static dc_status upload_groups(dc_program *p) {
    for (group &g : p->groups) {
        narrow_list *l = &g.list;
        l->count = (int)g.ops.size();
        DC_TRY(upload(p, g.ops.data(), g.ops.size() * sizeof(narrow), (void **)&l->ops));
        int blocks = dc_narrow_blocks(p->cuda);
        if (l->sums)
            DC_TRY(take(p, sizeof(double) * (size_t)(l->sums * blocks), (void **)&l->partials));
        for (const narrow &n : g.ops)
            for (final_op &f : p->finals)
                if (n.sum >= 0 && f.out == n.y) f.partials = l->partials + n.sum * blocks;
    }
    if (p->finals.empty()) return DC_OK;
    p->job.final_count = (int)p->finals.size();
    return upload(p, p->finals.data(), p->finals.size() * sizeof(final_op),
                  (void **)&p->job.finals);
}

static dc_status upload_lists(dc_program *p) {
    update_job *j = &p->job;
    *j = update_job{p->slabs.live,        p->slabs.ema,        p->slabs.grad,     p->slabs.m,
                    p->slabs.v,           p->slabs.size,       p->slabs.ema_size, p->spec.lr,
                    p->spec.beta1,        p->spec.beta2,       p->spec.eps,       p->spec.tau,
                    p->spec.policy_first, p->spec.policy_after};
    DC_TRY(upload_groups(p));
    dc_cuda_state state = {};
    state.bad_step = -1;
    DC_TRY(upload(p, &state, sizeof state, (void **)&j->state));
    DC_TRY(take(p, NORM_BLOCKS * sizeof(double), (void **)&j->norms));
    std::vector<const float *> metrics;
    for (int i = 0; i < p->spec.metric_count; i++)
        metrics.push_back((const float *)value_of(p, p->spec.metrics[i]).p);
    j->metric_count = p->spec.metric_count;
    if (!metrics.empty())
        DC_TRY(upload(p, metrics.data(), metrics.size() * sizeof(float *), (void **)&j->metrics));
    if (p->g->loss >= 0) j->loss = (const float *)value_of(p, p->g->loss).p;
    list_sums(p);
    j->sum_count = (int)p->sums.size();
    for (const column_sum &s : p->sums)
        j->sum_longest = s.length > j->sum_longest ? s.length : j->sum_longest;
    if (j->sum_count)
        DC_TRY(upload(p, p->sums.data(), p->sums.size() * sizeof(column_sum), (void **)&j->sums));
    std::vector<piece> pieces;
    list_pieces(p, &pieces);
    j->piece_count = (int)pieces.size();
    for (const panels &m : p->matrices)
        j->widest = m.cols > j->widest ? m.cols : j->widest;
    DC_TRY(upload(p, pieces.data(), pieces.size() * sizeof(piece), (void **)&j->pieces));
    if (!p->matrices.empty())
        DC_TRY(upload(p, p->matrices.data(), p->matrices.size() * sizeof(panels),
                      (void **)&j->matrices));
    j->shadow_count = (int)p->shadows.size();
    if (j->shadow_count)
        DC_TRY(
            upload(p, p->shadows.data(), p->shadows.size() * sizeof(shadow), (void **)&j->shadows));
    return DC_OK;
}

static dc_status build(dc_program *p) {
    size_t count = (size_t)p->g->count;
    p->value.resize(count);
    p->grad.resize(count);
    p->copy.resize(count);
    p->stats.resize(count);
    p->parts.resize(count);
    p->half.resize(count);
    p->pad.resize(count);
    p->norm_of.assign(count, -1);
    p->used.resize(count);
    p->view.graph = p->g;
    decide(p);
    find_nets(p);
    find_scalars(p);
    DC_TRY(take_slabs(p));
    DC_TRY(take_nodes(p));
    DC_TRY(take_shadows(p));
    for (net &n : p->nets)
        DC_TRY(take_net(p, &n));
    order_forward(p);
    order_backward(p);
    flush_all(p);
    choose_lanes(p);
    CU(cudaEventCreateWithFlags(&p->begin, cudaEventDisableTiming));
    CU(cudaEventCreateWithFlags(&p->beside, cudaEventDisableTiming));
    for (unit &u : p->units)
        if (u.awaited) CU(cudaEventCreateWithFlags(&u.done, cudaEventDisableTiming));
    return upload_lists(p);
}

extern "C" dc_status dc_program_new(dc_program **out, dc_cuda *cuda, const dc_program_spec *spec) {
    *out = NULL;
    DC_CHECK(spec->graph->finished && spec->metric_count < DC_CUDA_SUMS);
    dc_program *p = new dc_program();
    p->cuda = cuda;
    p->spec = *spec;
    p->g = spec->graph;
    dc_status status = build(p);
    if (status != DC_OK) {
        dc_program_free(p);
        return status;
    }
    *out = p;
    return DC_OK;
}

extern "C" void dc_program_free(dc_program *p) {
    if (!p) return;
    if (p->begin) cudaEventDestroy(p->begin);
    if (p->beside) cudaEventDestroy(p->beside);
    for (unit &u : p->units)
        if (u.done) cudaEventDestroy(u.done);
    delete p;
}

extern "C" const dc_slabs *dc_program_slabs(const dc_program *p) {
    return &p->slabs;
}

extern "C" dc_cuda_state *dc_program_state(const dc_program *p) {
    return p->job.state;
}

extern "C" dc_cuda_input dc_program_input(const dc_program *p, dc_ref r) {
    const tensor *t = &p->value[r];
    return dc_cuda_input{t->p, t->ld, t->half};
}

extern "C" int *dc_program_used(const dc_program *p, dc_ref r) {
    return p->used[(size_t)r];
}

extern "C" dc_status dc_program_value(dc_program *p, dc_ref r, float *out) {
    tensor t = value_of(p, r);
    size_t width = t.half ? 2 : 4;
    std::vector<char> raw((size_t)t.rows * t.ld * width);
    for (int e = 0; e < t.e; e++) {
        DC_TRY(dc_cuda_get(p->cuda, raw.data(), (char *)t.p + e * t.step * width, raw.size()));
        for (int64_t i = 0; i < (int64_t)t.rows * t.cols; i++) {
            int64_t from = i / t.cols * t.ld + i % t.cols;
            out[(int64_t)e * t.rows * t.cols + i] =
                t.half ? __bfloat162float(((bf16 *)raw.data())[from]) : ((float *)raw.data())[from];
        }
    }
    return DC_OK;
}

extern "C" dc_status dc_program_refresh(dc_program *p) {
    return dc_shadows_run(p->cuda, &p->job);
}

static dc_status start(dc_program *p, const unit *u) {
    switch (u->what) {
    case unit::LAYER:
        return forward(p, u->node);
    case unit::GRADIENT:
        return backward(p, u->node);
    case unit::WEIGHTS:
        return linear_dw(p, u->node);
    case unit::ZERO: {
        tensor t = grad_of(p, u->node);
        CU(cudaMemsetAsync(t.p, 0, (size_t)t.e * t.rows * t.ld * (t.half ? 2 : 4),
                           p->cuda->stream));
        return DC_OK;
    }
    case unit::NET:
        return dc_mlp_forward(p->cuda, &p->nets[(size_t)u->node].job);
    case unit::NET_BACK:
        return dc_mlp_backward(p->cuda, &p->nets[(size_t)u->node].job);
    case unit::NET_WEIGHTS:
        return net_weights(p, &p->nets[(size_t)u->node]);
    case unit::GROUP: {
        const group *g = &p->groups[(size_t)u->node];
        return dc_narrow_run(p->cuda, &g->list);
    }
    }
    return DC_OK;
}

// Start a unit on its lane.
static dc_status start_on_lane(dc_program *p, const unit *u, bool *used) {
    cudaStream_t stream = p->cuda->lanes[u->lane];
    if (u->lane && !used[u->lane]) CU(cudaStreamWaitEvent(stream, p->begin));
    used[u->lane] = true;
    for (int v : u->waits)
        CU(cudaStreamWaitEvent(stream, p->units[(size_t)v].done));
    p->cuda->stream = stream;
    p->cuda->workspace = p->cuda->workspaces[u->lane];
    DC_TRY(start(p, u));
    if (u->awaited) CU(cudaEventRecord(u->done, stream));
    return DC_OK;
}

static dc_status start_all(dc_program *p) {
    bool used[LANES] = {false};
    int last[LANES];
    CU(cudaEventRecord(p->begin, p->cuda->lanes[0]));
    for (int u = 0; u < (int)p->units.size(); u++) {
        DC_TRY(start_on_lane(p, &p->units[(size_t)u], used));
        last[p->units[(size_t)u].lane] = u;
    }
    for (int l = 1; l < LANES; l++)
        if (used[l]) CU(cudaStreamWaitEvent(p->cuda->lanes[0], p->units[(size_t)last[l]].done));
    return DC_OK;
}

extern "C" dc_status dc_program_gradients(dc_program *p) {
    dc_status status = start_all(p);
    p->cuda->stream = p->cuda->lanes[0];
    p->cuda->workspace = p->cuda->workspaces[0];
    DC_TRY(status);
    return dc_column_sums(p->cuda, &p->job);
}

// Lane 1 has nothing to do then.
static dc_status start_beside(dc_program *p, dc_enqueue_fn *beside, void *ctx) {
    cudaStream_t lane = p->cuda->lanes[1];
    CU(cudaEventRecord(p->begin, p->cuda->lanes[0]));
    CU(cudaStreamWaitEvent(lane, p->begin));
    p->cuda->stream = lane;
    dc_status status = beside(ctx);
    p->cuda->stream = p->cuda->lanes[0];
    DC_TRY(status);
    CU(cudaEventRecord(p->beside, lane));
    return DC_OK;
}

extern "C" dc_status dc_program_update(dc_program *p, dc_enqueue_fn *beside, void *ctx) {
    if (beside) DC_TRY(start_beside(p, beside, ctx));
    DC_TRY(dc_update_run(p->cuda, &p->job));
    if (beside) CU(cudaStreamWaitEvent(p->cuda->lanes[0], p->beside)); // it reads the counter too
    return dc_tick_run(p->cuda, &p->job);
}
