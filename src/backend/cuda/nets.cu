// Networks whose layers mlp.cu makes: which parts of a graph they are, what memory they need, and
// where their sums go.
#include "backend/cuda/program.cuh"

// Is `reader` the only one that reads r, and as its rows? What lies inside of a network is there for nobody else.
static bool read_by(const dc_program *p, dc_ref r, dc_ref reader) {
    return consumers(p, r, [=](const dc_node *n, int i) { return n == node(p, reader) && !i; });
}

// Are a layer's numbers parameters as they lie, not rows of larger ones?
static bool has_parameters(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    for (int i = 1; i < n->in_count; i++)
        if (node(p, n->in[i])->op != DC_OP_PARAM) return false;
    return true;
}

// The hidden layers that lead to a head, last first. Returns why mlp.cu cannot do them; NULL: it can.
static const char *trace_layers(const dc_program *p, net *out) {
    auto typed = [p](dc_ref r) { return is_tf32(p) || p->half[r]; };
    dc_ref at = node(p, out->head)->in[0], above = out->head;
    out->norm = node(p, at)->op == DC_OP_gelu_layernorm;
    while (node(p, at)->op == (out->norm ? DC_OP_gelu_layernorm : DC_OP_gelu)) {
        dc_ref linear = node(p, at)->in[0];
        if (node(p, linear)->op != DC_OP_linear || !read_by(p, linear, at) ||
            !read_by(p, at, above))
            return "a hidden layer is read by others too";
        if (!has_parameters(p, linear) || !has_parameters(p, at))
            return "weights are no parameters";
        if (!typed(at) || !typed(linear)) return "a hidden layer is not bf16";
        out->activation.insert(out->activation.begin(), at);
        out->linear.insert(out->linear.begin(), linear);
        above = linear;
        at = node(p, linear)->in[0];
    }
    out->x = at;
    if (node(p, at)->op == DC_OP_gelu || node(p, at)->op == DC_OP_gelu_layernorm)
        return "hidden layers with and without LayerNorm";
    if (out->linear.empty()) return "no hidden layer";
    if (out->linear.size() > MLP_LAYERS) return "more than 8 hidden layers";
    const dc_node *x = node(p, at);
    if (!typed(at) || !p->pad[at] || x->base != at || x->e != 1)
        return "its input is no matrix of data, or is read by others than layers";
    return node(p, out->head)->lo % MLP_ROWS ? "trained rows do not begin at a multiple of 64"
                                             : NULL;
}

static std::string trace_net(const dc_program *p, dc_ref head, net *out) {
    *out = net();
    out->head = head;
    if (p->spec.precision == DC_FP32) return "fp32 is not for tensor cores";
    if (!p->cuda->hopper) return "the GPU or the build is not sm_90a";
    if (!is_head(p, head))
        return "last layer of " + std::to_string(node(p, head)->cols) + ", more than " +
               std::to_string(HEAD_MAX);
    const char *why = trace_layers(p, out);
    if (why) return why;
    if (!has_parameters(p, head)) return "weights are no parameters";
    int width = node(p, out->linear[0])->cols, in = node(p, out->x)->cols;
    for (dc_ref r : out->linear) {
        if (node(p, r)->cols != width) return "widths differ";
        if (node(p, r)->e != node(p, head)->e) return "ensembles differ";
    }
    if (in > width) return "input of " + std::to_string(in) + ", wider than its layers";
    if (!dc_mlp_fits(p->cuda, width, in))
        return "width " + std::to_string(width) + " is not 256, 512 or 1024";
    return "";
}

// Is gradient for other columns of an input asked of the same first layer by a network before this one? Those columns'
// weights are packed for one of them.
static bool other_columns(const dc_program *p, const net *n) {
    const dc_node *x = node(p, n->x), *first = node(p, n->linear[0]);
    for (const net &m : p->nets) {
        const dc_node *before = node(p, m.x), *layer = node(p, m.linear[0]);
        if (!m.back || !wants(p, layer, 0)) continue;
        bool same = node(p, layer->in[1])->offset == node(p, first->in[1])->offset;
        bool alike =
            (int)before->a == (int)x->a && node(p, before->in[1])->cols == node(p, x->in[1])->cols;
        if (same && !alike) return true;
    }
    return false;
}

// Does anybody but the network itself add to what it gives in backward, or want what it does not give? NULL: no.
static const char *other_gradients(const dc_program *p, const net *n) {
    const dc_node *first = node(p, n->linear[0]);
    if (wants(p, first, 0)) {
        if (node(p, n->x)->op != DC_OP_splice) return "its input has a gradient, and is no splice";
        if (adds(p, first, 0)) return "its input has other gradients";
        if (node(p, node(p, n->x)->in[1])->cols > THIN)
            return "more than 32 columns of its input have a gradient";
        if (other_columns(p, n))
            return "another use of its weights gives gradient to other columns";
    }
    for (dc_ref r : n->linear)
        if (wants(p, node(p, r), 1) && adds(p, node(p, r), 1))
            return "its weights are trained by more than one use";
    return NULL;
}

// Do tiles leave multiprocessors idle, whatever goes side by side? Then they had better be smaller.
static bool few_tiles(const dc_program *p) {
    int tiles = 0, programs = p->spec.beside > 1 ? p->spec.beside : 1;
    for (const net &n : p->nets)
        tiles += dc_mlp_tiles(node(p, n.head)->e, node(p, n.x)->rows, node(p, n.linear[0])->cols);
    return tiles * programs <= MULTIPROCESSORS;
}

void dc_nets_find(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        net n;
        if (node(p, r)->op != DC_OP_linear || p->activation_of[(size_t)r] >= 0) continue;
        p->reason[(size_t)r] = trace_net(p, r, &n);
        if (!p->reason[(size_t)r].empty()) continue;
        n.back = trained(node(p, r));
        n.weights = n.back && wants(p, node(p, r), 1);
        if (n.back && other_gradients(p, &n)) p->reason[(size_t)r] = other_gradients(p, &n);
        if (!p->reason[(size_t)r].empty()) continue;
        for (size_t i = 0; i < n.linear.size(); i++)
            p->net_of[(size_t)n.linear[i]] = p->net_of[(size_t)n.activation[i]] =
                (int)p->nets.size();
        p->net_of[(size_t)r] = (int)p->nets.size();
        p->nets.push_back(n);
    }
    p->few = few_tiles(p);
}

// The packed copies of a matrix; live and stopped uses share them.
static packed_matrix *packed_of(dc_program *p, const dc_node *w) {
    for (packed_matrix &m : p->matrices)
        if (m.offset == w->offset) return &m;
    p->matrices.push_back(packed_matrix{w->offset, w->e, w->rows, w->cols});
    return &p->matrices.back();
}

static dc_status take_packed(dc_program *p, void **mine, int e, int in, int out, void **seen) {
    int wide = out <= THIN ? THIN : out, lines = div_up(in, line_of(is_tf32(p)));
    if (!*mine) DC_TRY(take(p, (size_t)e * (size_t)lines * LINE * (size_t)wide, mine));
    *seen = *mine;
    return DC_OK;
}

// Of the weights that a linear layer uses.
static dc_status take_weights(dc_program *p, const dc_node *w, void **out) {
    packed_matrix *m = packed_of(p, w);
    return take_packed(p, w->use == DC_EMA ? &m->ema : &m->live, w->e, w->rows, w->cols, out);
}

static const float *vector_of(const dc_program *p, dc_ref r) {
    return (const float *)value_of(p, r).p;
}

static dc_status take_layer(dc_program *p, const net *n, int i, mlp *j) {
    const dc_node *linear = node(p, n->linear[(size_t)i]),
                  *norm = node(p, n->activation[(size_t)i]);
    const dc_node *w = node(p, linear->in[1]);
    mlp_layer *l = &j->layer[i];
    size_t width = (size_t)j->width, e = (size_t)j->e, rows = e * (size_t)j->rows,
           bytes = rows * width * (j->tf32 ? sizeof(float) : sizeof(bf16)),
           pairs = rows * (size_t)j->across * sizeof(float2);
    l->in = w->rows;
    l->in_pad = div_up(w->rows, line_of(j->tf32)) * line_of(j->tf32);
    l->b = vector_of(p, linear->in[2]);
    if (n->norm) l->scale = vector_of(p, norm->in[1]);
    if (n->norm) l->shift = vector_of(p, norm->in[2]);
    DC_TRY(take_weights(p, w, &l->w));
    if (i && n->norm) DC_TRY(take(p, e * 2 * width * sizeof(float), (void **)&l->fold));
    if (n->norm) DC_TRY(take(p, pairs, (void **)&l->stats));
    if (!n->back && i > 1) { // rows that nobody needs any more make room
        l->h = j->layer[i - 2].h;
        return DC_OK;
    }
    DC_TRY(take(p, bytes, &l->h));
    if (!n->back) return DC_OK;
    if (i) DC_TRY(take_packed(p, &packed_of(p, w)->transposed, w->e, w->cols, w->rows, &l->wt));
    if (i && n->norm) DC_TRY(take(p, pairs, (void **)&l->sums));
    DC_TRY(take(p, bytes, &l->z));
    DC_TRY(take(p, bytes, &l->d));
    if (!n->weights) return DC_OK;
    if (j->tf32) DC_TRY(take(p, bytes, &l->transposed));
    if (n->norm) DC_TRY(take(p, e * 2 * width * sizeof(float), (void **)&l->norm));
    DC_TRY(take(p, e * (size_t)j->parts * MLP_SUMS * width * sizeof(float), (void **)&l->parts));
    l->dw = (float *)grad_of(p, linear->in[1]).p;
    return DC_OK;
}

static dc_status take_net(dc_program *p, net *n) {
    const dc_node *head = node(p, n->head), *x = node(p, n->x), *first = node(p, n->linear[0]);
    mlp *j = &n->job;
    *j = mlp{head->e, (int)n->linear.size(), first->cols, x->cols, head->cols, is_tf32(p), n->norm};
    j->x = value_of(p, n->x);
    j->across = dc_mlp_across(j->width, p->few);
    int **used = &p->used[(size_t)n->x];
    if (x->op == DC_OP_INPUT && !*used) DC_TRY(upload(p, &x->rows, sizeof x->rows, (void **)used));
    j->used = *used;
    j->head_w = vector_of(p, head->in[1]);
    j->head_b = vector_of(p, head->in[2]);
    j->y = (float *)value_of(p, n->head).p;
    DC_TRY(dc_mlp_map(j));
    DC_TRY(take(p, (size_t)j->e * 2 * THIN * sizeof(float), (void **)&j->head_fold));
    DC_TRY(take_weights(p, node(p, head->in[1]), &j->head_packed));
    if (n->back) {
        j->lo = head->lo;
        j->hi = head->hi;
        j->dy = (const float *)grad_of(p, n->head).p;
        j->parts = dc_mlp_parts(j);
    }
    // Blocks of backward begin at lo.
    j->rows = div_up(x->rows, MLP_TILE) * MLP_TILE + (j->lo % MLP_TILE ? MLP_TILE : 0);
    for (int i = 0; i < j->layers; i++)
        DC_TRY(take_layer(p, n, i, j));
    if (n->back && wants(p, first, 0)) {
        j->dx_first = (int)x->a;
        j->dx_count = node(p, x->in[1])->cols;
        const dc_node *w = node(p, first->in[1]);
        packed_matrix *m = packed_of(p, w);
        DC_CHECK(!m->some || (m->some_first == j->dx_first && m->some_count == j->dx_count));
        m->some_first = j->dx_first;
        m->some_count = j->dx_count;
        DC_TRY(take_packed(p, &m->some, w->e, w->cols, THIN, &j->dx_packed));
        DC_TRY(take(p, sizeof(float) * (size_t)j->e * (size_t)(j->hi - j->lo) * (size_t)j->dx_count,
                    (void **)&j->dx));
    }
    if (n->weights && j->out == 1)
        DC_TRY(take(p, sizeof(float) * (size_t)j->e * (size_t)j->parts, (void **)&j->head_bias));
    return DC_OK;
}

dc_status dc_nets_take(dc_program *p) {
    for (net &n : p->nets)
        DC_TRY(take_net(p, &n));
    for (net &n : p->nets)
        for (size_t i = 0; i < n.linear.size() && n.weights; i++)
            n.job.layer[i].ema = packed_of(p, node(p, node(p, n.linear[i])->in[1]))->ema;
    return DC_OK;
}

// Where a network's weights begin.
static int64_t offset_of(const dc_program *p, const net *n) {
    return node(p, node(p, n->linear[0])->in[1])->offset;
}

bool dc_net_trains(const dc_program *p, const net *n, int64_t from, int64_t to) {
    return n->weights && offset_of(p, n) >= from && offset_of(p, n) < to;
}

bool dc_nets_update(const dc_program *p, int64_t offset) {
    for (const net &n : p->nets)
        for (size_t i = 1; i < n.linear.size() && n.weights && p->shares_norm; i++)
            if (node(p, node(p, n.linear[i])->in[1])->offset == offset) return true;
    return false;
}

static void list_net_sums(dc_program *p, const net *n) {
    const mlp *j = &n->job;
    int64_t width = j->width, stride = MLP_SUMS * width, step = j->parts * stride;
    auto push = [&](const dc_node *to, int input, int layer, int kind) {
        dc_push_sum(p, to, input, j->layer[layer].parts + kind * width, j->parts, stride, step,
                    j->width);
    };
    for (int i = 0; i < j->layers; i++) {
        const dc_node *norm = node(p, n->activation[(size_t)i]);
        if (n->norm) push(norm, 1, i, D_SCALE);
        if (n->norm) push(norm, 2, i, D_SHIFT);
        push(node(p, n->linear[(size_t)i]), 2, i, D_B);
    }
    if (!j->head_bias) return;
    push(node(p, n->head), 1, j->layers - 1, D_HEAD);
    dc_push_sum(p, node(p, n->head), 2, j->head_bias, j->parts, 1, j->parts, 1);
}

void dc_nets_sums(dc_program *p) {
    for (const net &n : p->nets)
        if (n.weights) list_net_sums(p, &n);
}

dc_status dc_nets_norms(dc_program *p, update_job *j) {
    int count = 0;
    double *norms;
    for (net &n : p->nets) {
        n.job.early = dc_net_trains(p, &n, 0, p->cut);
        if (n.weights) count += dc_mlp_weight_blocks(&n.job);
    }
    DC_TRY(take(p, (size_t)count * sizeof *norms, (void **)&norms));
    j->dw_norms = norms;
    j->dw_norm_count = p->shares_norm ? count : 0;
    for (net &n : p->nets) {
        if (!n.weights) continue;
        n.job.norms = norms;
        norms += dc_mlp_weight_blocks(&n.job);
    }
    return DC_OK;
}
