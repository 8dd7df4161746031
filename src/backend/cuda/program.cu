// A graph compiled for the device: every node gets memory of its own, the update its lists. With bf16, what flows between
// layers is bf16, and matrices have bf16 copies; weights, gradients of weights, losses and Adam stay float. tasks.cu has
// forward and backward as tasks, step.cu starts them.
#include "backend/cuda/plain.cuh"
#include "backend/cuda/program.cuh"

// ---- what is bf16, and which biases the activation adds ----

// The node that reads all of r, if that is one, and reads it once; else -1.
static dc_ref only_reader(const dc_program *p, dc_ref r) {
    dc_ref found = -1;
    if (node(p, r)->keep) return -1;
    for (dc_ref c = r + 1; c < p->g->count; c++) {
        const dc_node *n = node(p, c);
        for (int i = 0; i < n->in_count && n->op >= DC_FIRST_COMPUTED; i++) {
            if (node(p, n->in[i])->base != r) continue;
            if (n->in[i] != r || found >= 0) return -1;
            found = c;
        }
    }
    return found;
}

static bool is_activation(dc_op op) {
    return op == DC_OP_gelu_layernorm || op == DC_OP_gelu;
}

// Does a product or a splice read it? Products of bf16 need a copy of the weights in bf16, which parameters alone have.
static bool feeds_layer(const dc_program *p, const dc_node *reader, int i) {
    bool product = reader->op == DC_OP_linear && node(p, reader->in[1])->op == DC_OP_PARAM;
    return i == 0 && (product || reader->op == DC_OP_splice);
}

bool dc_layers_only(const dc_program *p, dc_ref r) {
    return consumers(p, r, [p](const dc_node *c, int i) { return feeds_layer(p, c, i); });
}

static void find_activations(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op != DC_OP_linear || node(p, n->in[2])->op != DC_OP_PARAM) continue;
        dc_ref reader = only_reader(p, r);
        if (reader >= 0 && is_activation(node(p, reader)->op) && node(p, reader)->in[0] == r)
            p->activation_of[r] = reader;
    }
}

static void decide(dc_program *p) {
    find_activations(p);
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        bool source = n->op == DC_OP_INPUT || n->op == DC_OP_splice;
        bool trunk = p->trunk_of[(size_t)r] >= 0 && !is_inside(p, r);
        bool layers_only = (source || trunk || is_activation(n->op)) && dc_layers_only(p, r);
        p->pad[r] = source && layers_only;
        if (p->spec.precision != DC_BF16) continue;
        // What a layer reads is bf16, and so is what lies between a product and its activation.
        if (source || trunk || n->op == DC_OP_gelu) p->half[r] = layers_only;
        if (n->op == DC_OP_linear && !is_head(p, r))
            p->half[r] = p->activation_of[r] >= 0 && p->half[node(p, n->in[0])->base];
        if (n->op == DC_OP_gelu_layernorm) p->half[r] = layers_only && p->half[n->in[0]];
    }
    for (dc_ref r = 0; r < p->g->count; r++) // LayerNorm reads and writes one type
        if (node(p, r)->op == DC_OP_gelu_layernorm && !p->half[r]) p->half[node(p, r)->in[0]] = 0;
}

// ---- memory ----

static dc_status take_tensor(dc_program *p, tensor *t, int e, int rows, int cols, bool pad,
                             bool half) {
    int multiple = half ? line_of(false) : 8,
        ld = pad ? (cols + multiple - 1) / multiple * multiple : cols;
    *t = tensor{NULL, e, rows, cols, ld, (int64_t)rows * ld, half};
    return take(p, (size_t)e * rows * ld * (half ? 2 : 4), &t->p);
}

// Numbers in one part of a linear node: dW where it is summed in parts, then db unless LayerNorm has it.
static int part_weights(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    return is_head(p, r) || is_thin(p, r) || padded_inputs(p, r) ? x->cols * n->cols : 0;
}

static int part_length(const dc_program *p, dc_ref r) {
    if (padded_inputs(p, r)) return padded_inputs(p, r) * node(p, r)->cols;
    return part_weights(p, r) + (p->activation_of[r] < 0 ? node(p, r)->cols : 0);
}

// A linear layer whose input is bf16 and whose output is not: its products need the gradient in bf16 as well.
static dc_status take_cast(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op != DC_OP_linear || p->net_of[(size_t)r] >= 0 || is_head(p, r) || !trained(n) ||
        !p->half[node(p, n->in[0])->base] || p->half[r])
        return DC_OK;
    return take_tensor(p, &p->cast[r], n->e, n->hi - n->lo, n->cols, true, true);
}

// What pair_dot's products read in bf16.
static dc_status take_pair(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op != DC_OP_pair_dot || p->spec.precision != DC_BF16) return DC_OK;
    for (int i = 0; i < 2; i++) {
        const dc_node *x = node(p, n->in[i]);
        DC_TRY(take_tensor(p, &p->plain[(size_t)r].half[i], x->e, x->rows, x->cols, true, true));
    }
    if (!trained(n)) return DC_OK;
    return take_tensor(p, &p->cast[(size_t)r], n->e, n->hi - n->lo, n->cols, true, true);
}

// Numbers for every column, members one after the other; NULL where they lie like that anyway.
static dc_status take_columns(dc_program *p, dc_ref from, float **out) {
    tensor t = value_of(p, from);
    if (t.e == 1 || t.step == t.cols) return DC_OK;
    return take(p, sizeof(float) * (size_t)t.e * (size_t)t.cols, (void **)out);
}

static dc_status take_norm(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    norm_memory *m = &p->norm[r];
    part_sums *s = &p->parts[r];
    DC_TRY(take(p, sizeof(float2) * n->e * n->rows, (void **)&p->stats[r]));
    DC_TRY(take_columns(p, n->in[1], &m->scale));
    DC_TRY(take_columns(p, n->in[2], &m->bias));
    if (!trained(n)) return DC_OK;
    if (wants(p, n, 0) && adds(p, n, 0))
        DC_TRY(take_tensor(p, &m->dx, n->e, n->hi - n->lo, n->cols, false, p->half[n->in[0]]));
    s->count = dc_layernorm_parts(n->e, n->hi - n->lo);
    return take(p, sizeof(float) * n->e * s->count * 3 * n->cols, (void **)&s->p);
}

// A GELU that adds the bias of the layer before it leaves sums for the bias's gradient.
static dc_status take_gelu(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *linear = node(p, n->in[0]);
    part_sums *s = &p->parts[r];
    if (!trained(n) || linear->op != DC_OP_linear || p->activation_of[n->in[0]] != r ||
        !wants(p, linear, 2))
        return DC_OK;
    s->count = dc_gelu_parts(n->e, n->hi - n->lo);
    return take(p, sizeof(float) * n->e * s->count * n->cols, (void **)&s->p);
}

static dc_status take_nodes(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op == DC_OP_PARAM || n->base != r || is_inside(p, r)) continue;
        DC_TRY(take_tensor(p, &p->value[r], n->e, n->rows, n->cols, p->pad[r], p->half[r]));
        if (trained(n))
            DC_TRY(
                take_tensor(p, &p->grad[r], n->e, n->hi - n->lo, n->cols, p->pad[r], p->half[r]));
        if (n->op == DC_OP_gelu_layernorm) DC_TRY(take_norm(p, r));
        if (n->op == DC_OP_gelu) DC_TRY(take_gelu(p, r));
        DC_TRY(take_cast(p, r));
        DC_TRY(take_pair(p, r));
        DC_TRY(dc_plain_take(p, r));
        bool alone =
            p->net_of[(size_t)r] < 0 || n->cols > 1; // a network has sums of its own for one output
        if (n->op == DC_OP_linear && alone && trained(n) &&
            (p->activation_of[r] < 0 || part_weights(p, r))) {
            p->parts[r].count = padded_inputs(p, r) ? 1 : dc_head_parts(n->hi - n->lo);
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
static dc_status take_copies(dc_program *p) {
    for (dc_ref r = 0; p->spec.precision == DC_BF16 && r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op != DC_OP_linear || is_head(p, r) || !p->half[n->in[0]] || is_inside(p, r))
            continue;
        const dc_node *w = node(p, n->in[1]);
        tensor *copy = &p->copy[n->in[1]];
        if (copy->p) continue;
        bool ema = w->use == DC_EMA, found = false;
        for (bf16_copy &s : p->copies) {
            if (s.offset != w->offset) continue;
            bf16 **mine = ema ? &s.ema : &s.live;
            if (!*mine) DC_TRY(take(p, (size_t)w->e * w->rows * s.ld * 2, (void **)mine));
            *copy = tensor{*mine, w->e, w->rows, w->cols, s.ld, (int64_t)w->rows * s.ld, true};
            found = true;
        }
        if (found) continue;
        bf16_copy s = {w->offset, w->e, w->rows, w->cols, (w->cols + 7) / 8 * 8, NULL, NULL};
        bf16 **mine = ema ? &s.ema : &s.live;
        DC_TRY(take(p, (size_t)w->e * w->rows * s.ld * 2, (void **)mine));
        *copy = tensor{*mine, w->e, w->rows, w->cols, s.ld, (int64_t)w->rows * s.ld, true};
        p->copies.push_back(s);
    }
    return DC_OK;
}

// ---- sums over rows that a layer's backward leaves behind ----

void dc_push_sum(dc_program *p, const dc_node *n, int i, const float *parts, int count,
                 int64_t stride, int64_t member_step, int length) {
    if (!wants(p, n, i)) return;
    tensor out = grad_of(p, n->in[i]);
    for (int e = 0; e < out.e; e++) {
        column_sum mine = {parts + e * member_step,
                           (float *)out.p + e * out.step,
                           count,
                           length,
                           stride,
                           adds(p, n, i),
                           -1,
                           false};
        for (column_sum &s : p->sums)
            if (s.out == mine.out && s.next < 0) {
                s.next = (int)p->sums.size();
                mine.later = true;
            }
        p->sums.push_back(mine);
    }
}

static void list_sums(dc_program *p) {
    dc_nets_sums(p);
    dc_trunks_sums(p);
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        const part_sums *s = &p->parts[r];
        if (!s->p) continue;
        if (n->op == DC_OP_gelu_layernorm) {
            int64_t stride = 3 * n->cols, step = s->count * stride;
            dc_push_sum(p, n, 1, s->p, s->count, stride, step, n->cols);
            dc_push_sum(p, n, 2, s->p + n->cols, s->count, stride, step, n->cols);
            if (p->activation_of[n->in[0]] == r)
                dc_push_sum(p, node(p, n->in[0]), 2, s->p + 2 * n->cols, s->count, stride, step,
                            n->cols);
        } else if (n->op == DC_OP_gelu) {
            dc_push_sum(p, node(p, n->in[0]), 2, s->p, s->count, n->cols,
                        (int64_t)s->count * n->cols, n->cols);
        } else {
            int own = part_weights(p, r);
            int64_t stride = part_length(p, r), step = s->count * stride;
            if (own) dc_push_sum(p, n, 1, s->p, s->count, stride, step, own);
            if (p->activation_of[r] < 0)
                dc_push_sum(p, n, 2, s->p + own, s->count, stride, step, n->cols);
        }
    }
}

struct span { // of the slab of gradients
    int64_t from, to;
};

// What leaves its share of the norm where it is made: sums over rows, and dW of networks.
static std::vector<span> spans_with_share(const dc_program *p) {
    std::vector<span> all;
    for (const column_sum &s : p->sums)
        if (!s.later) all.push_back(span{s.out - p->slabs.grad, s.out - p->slabs.grad + s.length});
    for (const net &n : p->nets)
        for (size_t i = 0; i < n.linear.size() && n.weights; i++) {
            const dc_node *w = node(p, node(p, n.linear[i])->in[1]);
            all.push_back(span{w->offset, w->offset + (int64_t)w->e * w->rows * w->cols});
        }
    std::sort(all.begin(), all.end(), [](span a, span b) { return a.from < b.from; });
    return all;
}

// The others were written into the slab by a task. A sum of nothing that is added to them gives their share.
static void push_written(dc_program *p, int64_t from, int64_t to) {
    if (from >= to) return;
    p->sums.push_back(
        column_sum{p->slabs.grad, p->slabs.grad + from, 0, (int)(to - from), 0, true, -1, false});
}

static void list_written(dc_program *p) {
    std::vector<span> with_share = spans_with_share(p);
    for (dc_ref r = 0; r < p->g->count && p->shares_norm; r++) {
        const dc_node *n = node(p, r);
        if (n->op != DC_OP_PARAM || n->use != DC_LIVE || !trained(n)) continue;
        int64_t at = n->offset, end = n->offset + (int64_t)n->e * n->rows * n->cols;
        for (const span &s : with_share) {
            if (s.to <= at || s.from >= end) continue;
            push_written(p, at, s.from);
            at = s.to;
        }
        push_written(p, at, end);
    }
}

// ---- building ----

// Can a bf16 copy be written number by number as its matrix is updated? Else it is loose.
static bool is_loose(const dc_program *p, const bf16_copy &s) {
    for (const packed_matrix &m : p->matrices)
        if (m.offset == s.offset) return true;
    return s.ld != s.cols || s.offset % 4 != 0;
}

static int64_t end_of(const bf16_copy &s) {
    return s.offset + (int64_t)s.e * s.rows * s.cols;
}

// The flat span that begins at `at` and ends at `end` at the latest: inside of one bf16 copy, or of none.
static update_span flat_span(const dc_program *p, int64_t at, int64_t end) {
    int which = -1;
    end = std::min(end, at + SPAN_MOST);
    for (int i = p->job[1].loose_count; i < (int)p->copies.size(); i++) {
        const bf16_copy &s = p->copies[(size_t)i];
        if (s.offset > at) end = std::min(end, s.offset);
        if (s.offset > at || end_of(s) <= at) continue;
        which = i;
        end = std::min(end, end_of(s));
    }
    return update_span{at, -1, 0, 0, (int)(end - at), which};
}

// What the update walks over: matrices with packed copies in strips of rows, the rest in flat spans.
static void list_spans(dc_program *p, std::vector<update_span> *out) {
    std::sort(p->matrices.begin(), p->matrices.end(),
              [](const packed_matrix &a, const packed_matrix &b) { return a.offset < b.offset; });
    int64_t at = 0;
    auto span = [&](int64_t end) {
        for (; at < end; at += out->back().count)
            out->push_back(flat_span(p, at, end));
        at = end;
    };
    auto flat = [&](int64_t end) {
        if (at < p->cut && p->cut < end) span(p->cut);
        span(end);
    };
    for (int m = 0; m < (int)p->matrices.size(); m++) {
        const packed_matrix *f = &p->matrices[(size_t)m];
        flat(f->offset);
        for (int e = 0; e < f->e; e++)
            for (int row = 0; row < f->rows; row += strip_rows(is_tf32(p)))
                out->push_back(update_span{f->offset + ((int64_t)e * f->rows + row) * f->cols, m, e,
                                           row, 0, -1});
        at = f->offset + (int64_t)f->e * f->rows * f->cols;
        at = (at + 3) / 4 * 4;
    }
    flat(p->slabs.size);
}

// Part of the update: weights in [from, to), with sums over rows that are left.
static dc_status upload_part(dc_program *p, update_job *j, int64_t from, int64_t to,
                             const std::vector<update_span> &all) {
    std::vector<int2> blocks;
    std::vector<update_span> spans;
    for (int s = 0; s < (int)p->sums.size(); s++) {
        if (p->sums[(size_t)s].later) continue;
        int64_t offset = p->sums[(size_t)s].out - p->slabs.grad;
        for (int at = 0; offset >= from && offset < to && at < p->sums[(size_t)s].length;
             at += SUM_BLOCK)
            blocks.push_back(make_int2(s, at));
    }
    for (const update_span &f : all)
        if (f.offset >= from && f.offset < to) spans.push_back(f);
    auto here = [p](const update_span &f) {
        return f.matrix < 0 || !dc_nets_update(p, p->matrices[(size_t)f.matrix].offset);
    };
    j->train_count = (int)(std::stable_partition(spans.begin(), spans.end(), here) - spans.begin());
    j->sum_count = (int)blocks.size();
    j->span_count = (int)spans.size();
    j->norm_count = j->whole_norm ? NORM_BLOCKS : j->sum_count + 1;
    DC_TRY(take(p, (size_t)j->norm_count * sizeof(double), (void **)&j->norms));
    update_plan plan = {};
    DC_TRY(upload(p, &plan, sizeof plan, (void **)&j->plan));
    if (!spans.empty())
        DC_TRY(upload(p, spans.data(), spans.size() * sizeof(update_span), (void **)&j->spans));
    if (blocks.empty()) return DC_OK;
    return upload(p, blocks.data(), blocks.size() * sizeof(int2), (void **)&j->sum_blocks);
}

static dc_status upload_parts(dc_program *p) {
    std::vector<update_span> spans;
    list_spans(p, &spans);
    update_job *rest = &p->job[1], *early = &p->job[0];
    if (!p->sums.empty())
        DC_TRY(
            upload(p, p->sums.data(), p->sums.size() * sizeof(column_sum), (void **)&rest->sums));
    if (!p->matrices.empty()) // which list_spans has put in order
        DC_TRY(upload(p, p->matrices.data(), p->matrices.size() * sizeof(packed_matrix),
                      (void **)&rest->matrices));
    rest->whole_norm = !p->shares_norm;
    DC_TRY(dc_nets_norms(p, rest));
    rest->last = true;
    *early = *rest;
    early->last = false;
    if (p->cut) {
        DC_TRY(upload_part(p, early, 0, p->cut, spans));
        rest->before = early->plan;
    }
    return upload_part(p, rest, p->cut, p->slabs.size, spans);
}

// Metrics are read while the next step's tasks are at work, so what a task makes is copied at the step's end.
static dc_status list_metrics(dc_program *p, std::vector<const float *> *out) {
    for (int i = 0; i < p->spec.metric_count; i++) {
        dc_ref r = p->spec.metrics[i];
        const float *value = (const float *)value_of(p, r).p;
        DC_CHECK(node(p, r)->e * node(p, r)->rows * node(p, r)->cols == 1);
        if (!is_deferred(p, r)) {
            final_op copy = {};
            copy.op = DC_OP_affine;
            copy.a = 1;
            copy.x = value;
            DC_TRY(take(p, sizeof(float), (void **)&copy.out));
            p->finals.push_back(copy);
            value = copy.out;
        }
        out->push_back(value);
    }
    return DC_OK;
}

static dc_status upload_lists(dc_program *p) {
    update_job *j = &p->job[1];
    *j = update_job{p->slabs.live,        p->slabs.ema,        p->slabs.grad,     p->slabs.m,
                    p->slabs.v,           p->slabs.size,       p->slabs.ema_size, p->spec.lr,
                    p->spec.beta1,        p->spec.beta2,       p->spec.eps,       p->spec.tau,
                    p->spec.policy_first, p->spec.policy_after};
    std::vector<const float *> metrics;
    DC_TRY(list_metrics(p, &metrics));
    DC_TRY(dc_groups_upload(p));
    dc_cuda_state state = {};
    state.bad_step = -1;
    DC_TRY(upload(p, &state, sizeof state, (void **)&j->state));
    j->metric_count = p->spec.metric_count;
    if (!metrics.empty())
        DC_TRY(upload(p, metrics.data(), metrics.size() * sizeof(float *), (void **)&j->metrics));
    if (p->g->loss >= 0) j->loss = (const float *)value_of(p, p->g->loss).p;
    j->tf32 = is_tf32(p);
    for (const packed_matrix &m : p->matrices)
        j->widest = m.cols > j->widest ? m.cols : j->widest;
    auto loose = [p](const bf16_copy &s) { return is_loose(p, s); };
    j->copy_count = (int)p->copies.size();
    j->loose_count =
        (int)(std::stable_partition(p->copies.begin(), p->copies.end(), loose) - p->copies.begin());
    if (j->copy_count)
        DC_TRY(
            upload(p, p->copies.data(), p->copies.size() * sizeof(bf16_copy), (void **)&j->copies));
    return upload_parts(p);
}

// See dc_program. Not if products write matrices into the slab, as layers do that are no part of a network, nor if they
// add to each other there.
static bool shares_norm(const dc_program *p) {
    if (p->spec.whole_gradients) return false;
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op == DC_OP_linear && wants(p, n, 1) && adds(p, n, 1)) return false;
        if (n->op == DC_OP_linear && trained(n) && wants(p, n, 1) && p->net_of[(size_t)r] < 0 &&
            !part_weights(p, r))
            return false;
    }
    return true;
}

static void plan_update(dc_program *p) {
    int64_t first = p->spec.policy_first;
    p->shares_norm = p->g->loss >= 0 && shares_norm(p);
    if (p->shares_norm && first > 0 && first < p->spec.size) p->cut = first;
}

static std::vector<cudaEvent_t *> events_of(dc_program *p) {
    std::vector<cudaEvent_t *> all = {&p->begin, &p->drawn,   &p->gathered,
                                      &p->early, &p->updated, &p->ticked};
    for (part_events &e : p->parts_done)
        all.insert(all.end(), {&e.begin, &e.summed, &e.inputs, &e.rest, &e.more});
    for (task &u : p->tasks)
        if (u.awaited) all.push_back(&u.done);
    return all;
}

static dc_status make_events(dc_program *p) {
    for (cudaEvent_t *e : events_of(p))
        CU(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
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
    p->activation_of.assign(count, -1);
    p->cast.resize(count);
    p->plain.resize(count);
    p->norm.resize(count);
    p->reason.resize(count);
    p->used.resize(count);
    p->view.graph = p->g;
    p->net_of.assign(count, -1);
    dc_paths_choose(p);
    dc_trunks_find(p);
    decide(p);
    dc_nets_find(p);
    plan_update(p);
    dc_groups_scalars(p);
    DC_TRY(take_slabs(p));
    DC_TRY(take_nodes(p));
    DC_TRY(take_copies(p));
    DC_TRY(dc_nets_take(p));
    DC_TRY(dc_trunks_take(p));
    dc_tasks_order(p);
    list_sums(p);
    list_written(p);
    dc_tasks_streams(p);
    DC_TRY(make_events(p));
    return upload_lists(p);
}

extern "C" dc_status dc_program_new(dc_program **out, dc_cuda *cuda, const dc_program_spec *spec) {
    *out = NULL;
    DC_CHECK(spec->graph->finished && spec->metric_count < DC_CUDA_SUMS);
    DC_TRY(dc_cuda_supports(spec->graph));
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
    for (cudaEvent_t *e : events_of(p))
        if (*e) cudaEventDestroy(*e);
    delete p;
}

extern "C" const dc_slabs *dc_program_slabs(const dc_program *p) {
    return &p->slabs;
}

extern "C" dc_cuda_state *dc_program_state(const dc_program *p) {
    return p->job[1].state;
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
    for (int i = p->cut ? 0 : 1; i < 2; i++)
        DC_TRY(dc_copies_refresh(p->cuda, &p->job[i]));
    return DC_OK;
}
