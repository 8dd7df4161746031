// A graph compiled for the device: every node gets memory of its own, forward and backward become a
// list of launches. Networks' layers are launches each; narrow ops wait until a layer needs what they
// make, and then go together as one launch (narrow.cu). With bf16, what flows between layers is bf16,
// and matrices have bf16 copies; weights, gradients of weights, losses and Adam stay float.
#include "backend/cuda/program.cuh"

#include <cstring>

// ---- what is bf16, and which biases LayerNorm adds ----

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

// ---- memory ----

static dc_status take_tensor(dc_program *p, tensor *t, int e, int rows, int cols, bool pad,
                             bool half) {
    int unit = half ? line_of(false) : 8, ld = pad ? (cols + unit - 1) / unit * unit : cols;
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
        bool alone =
            p->net_of[(size_t)r] < 0 || n->cols > 1; // a network has sums of its own for one output
        if (n->op == DC_OP_linear && alone && trained(n) && (p->norm_of[r] < 0 || is_thin(p, r))) {
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

static tensor member(tensor t, int e) {
    if (t.e > 1) t.p = (char *)t.p + e * t.step * (t.half ? 2 : 4);
    t.e = 1;
    return t;
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
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        const part_sums *s = &p->parts[r];
        if (!s->p) continue;
        if (n->op == DC_OP_gelu_layernorm) {
            int64_t stride = 3 * n->cols, step = s->count * stride;
            dc_push_sum(p, n, 1, s->p, s->count, stride, step, n->cols);
            dc_push_sum(p, n, 2, s->p + n->cols, s->count, stride, step, n->cols);
            if (p->norm_of[n->in[0]] == r)
                dc_push_sum(p, node(p, n->in[0]), 2, s->p + 2 * n->cols, s->count, stride, step,
                            n->cols);
        } else {
            int own = part_weights(p, r);
            int64_t stride = part_length(p, r), step = s->count * stride;
            if (own) dc_push_sum(p, n, 1, s->p, s->count, stride, step, own);
            if (p->norm_of[r] < 0)
                dc_push_sum(p, n, 2, s->p + own, s->count, stride, step, n->cols);
        }
    }
}

// ---- the order of things ----

void dc_push_unit(dc_program *p, unit::kind what, dc_ref r) {
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
        if (what != unit::NET_HEAD) // which reads what forward made, as the gradient has it
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

static void order_forward(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op < DC_FIRST_COMPUTED) continue;
        if (dc_is_narrow(n->op)) {
            dc_group_forward(p, r);
            continue;
        }
        if (inside_net(p, r)) continue;
        int whole = p->net_of[(size_t)r];
        dc_group_flush(p, whole >= 0 ? std::vector<int>{p->nets[(size_t)whole].x}
                                     : dc_value_keys(p, n));
        if (whole >= 0)
            dc_push_unit(p, unit::NET, whole);
        else
            dc_push_unit(p, unit::LAYER, r);
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
            dc_group_zero(p, base);
        else
            dc_push_unit(p, unit::ZERO, base);
    }
}

// What the backward of a layer reads and adds to.
static std::vector<int> backward_keys(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    std::vector<int> keys = dc_value_keys(p, n);
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
        if (!dc_is_narrow(n->op)) dc_group_flush(p, backward_keys(p, r));
        int whole = p->net_of[(size_t)r];
        if (whole >= 0) {
            const net *n = &p->nets[(size_t)whole];
            if (n->weights && !n->job.head_bias) dc_push_unit(p, unit::NET_HEAD, whole);
            dc_push_unit(p, unit::NET_BACK, whole);
            if (n->weights && !p->shares_norm) dc_push_unit(p, unit::NET_WEIGHTS, whole);
            continue;
        }
        order_zeros(p, r);
        if (dc_is_narrow(n->op))
            dc_group_backward(p, r);
        else {
            if (n->op != DC_OP_linear || wants(p, n, 0)) dc_push_unit(p, unit::GRADIENT, r);
            if (n->op == DC_OP_linear && wants(p, n, 1)) dc_push_unit(p, unit::WEIGHTS, r);
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

// Does a unit use weights that go early?
static bool uses_early(const dc_program *p, const unit *u) {
    if (u->what == unit::GROUP || u->what == unit::ZERO) return false;
    dc_ref r = u->what >= unit::NET ? p->nets[(size_t)u->node].linear[0] : u->node;
    const dc_node *n = node(p, r);
    for (int i = 0; i < n->in_count; i++) {
        const dc_node *owner = node(p, node(p, n->in[i])->base);
        if (owner->op == DC_OP_PARAM && owner->offset < p->cut) return true;
    }
    return false;
}

// Units that neither use those weights nor lead to one that does.
static void find_late(dc_program *p, const std::vector<std::vector<int>> &needs) {
    std::vector<char> needed(p->units.size());
    for (int u = (int)p->units.size() - 1; u >= 0; u--) {
        unit *mine = &p->units[(size_t)u];
        mine->late = p->cut && !needed[(size_t)u] && !uses_early(p, mine);
        for (int v : needs[(size_t)u])
            needed[(size_t)v] = needed[(size_t)v] || !mine->late;
    }
}

// The last unit of a lane that is late, or not; -1: none.
static int last_on(const dc_program *p, int lane, bool late) {
    for (int u = (int)p->units.size() - 1; u >= 0; u--)
        if (p->units[(size_t)u].lane == lane && p->units[(size_t)u].late == late) return u;
    return -1;
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
    find_late(p, needs);
    for (int l = 0; l < LANES; l++)
        for (int late = 0; late < 2; late++) // by what comes after all
            if (last_on(p, l, late) >= 0) p->units[(size_t)last_on(p, l, late)].awaited = true;
}

// ---- building ----

// What the update walks over: matrices with panels in strips of rows, the rest in flat spans.
static void list_pieces(dc_program *p, std::vector<piece> *out) {
    std::sort(p->matrices.begin(), p->matrices.end(),
              [](const panels &a, const panels &b) { return a.offset < b.offset; });
    int64_t at = 0;
    auto span = [&](int64_t end) {
        for (; at < end; at += PIECE)
            out->push_back(piece{at, -1, 0, 0, (int)(end - at < PIECE ? end - at : PIECE)});
        at = end;
    };
    auto flat = [&](int64_t end) {
        if (at < p->cut && p->cut < end) span(p->cut);
        span(end);
    };
    for (int m = 0; m < (int)p->matrices.size(); m++) {
        const panels *f = &p->matrices[(size_t)m];
        flat(f->offset);
        for (int e = 0; e < f->e; e++)
            for (int row = 0; row < f->rows; row += strip_rows(is_tf32(p)))
                out->push_back(
                    piece{f->offset + ((int64_t)e * f->rows + row) * f->cols, m, e, row, 0});
        at = f->offset + (int64_t)f->e * f->rows * f->cols;
        at = (at + 3) / 4 * 4;
    }
    flat(p->slabs.size);
}

// Part of the update: weights in [from, to), with sums over rows that are left.
static dc_status upload_part(dc_program *p, update_job *j, int64_t from, int64_t to,
                             const std::vector<piece> &all) {
    std::vector<int2> blocks;
    std::vector<piece> pieces;
    for (int s = 0; s < (int)p->sums.size(); s++) {
        if (p->sums[(size_t)s].later) continue;
        int64_t offset = p->sums[(size_t)s].out - p->slabs.grad;
        for (int at = 0; offset >= from && offset < to && at < p->sums[(size_t)s].length;
             at += SUM_BLOCK)
            blocks.push_back(make_int2(s, at));
    }
    for (const piece &f : all)
        if (f.offset >= from && f.offset < to) pieces.push_back(f);
    auto here = [p](const piece &f) {
        return f.matrix < 0 || !dc_nets_update(p, p->matrices[(size_t)f.matrix].offset);
    };
    j->train_count =
        (int)(std::stable_partition(pieces.begin(), pieces.end(), here) - pieces.begin());
    j->sum_count = (int)blocks.size();
    j->piece_count = (int)pieces.size();
    j->norm_count = j->whole_norm ? NORM_BLOCKS : j->sum_count + 1;
    DC_TRY(take(p, (size_t)j->norm_count * sizeof(double), (void **)&j->norms));
    update_plan plan = {};
    DC_TRY(upload(p, &plan, sizeof plan, (void **)&j->plan));
    if (!pieces.empty())
        DC_TRY(upload(p, pieces.data(), pieces.size() * sizeof(piece), (void **)&j->pieces));
    if (blocks.empty()) return DC_OK;
    return upload(p, blocks.data(), blocks.size() * sizeof(int2), (void **)&j->sum_blocks);
}

static dc_status upload_parts(dc_program *p) {
    std::vector<piece> pieces;
    list_pieces(p, &pieces);
    update_job *rest = &p->job[1], *early = &p->job[0];
    if (!p->sums.empty())
        DC_TRY(
            upload(p, p->sums.data(), p->sums.size() * sizeof(column_sum), (void **)&rest->sums));
    if (!p->matrices.empty()) // which list_pieces has put in order
        DC_TRY(upload(p, p->matrices.data(), p->matrices.size() * sizeof(panels),
                      (void **)&rest->matrices));
    rest->whole_norm = !p->shares_norm;
    DC_TRY(dc_nets_norms(p, rest));
    rest->last = true;
    *early = *rest;
    early->last = false;
    if (p->cut) {
        DC_TRY(upload_part(p, early, 0, p->cut, pieces));
        rest->before = early->plan;
    }
    return upload_part(p, rest, p->cut, p->slabs.size, pieces);
}

static dc_status upload_lists(dc_program *p) {
    update_job *j = &p->job[1];
    *j = update_job{p->slabs.live,        p->slabs.ema,        p->slabs.grad,     p->slabs.m,
                    p->slabs.v,           p->slabs.size,       p->slabs.ema_size, p->spec.lr,
                    p->spec.beta1,        p->spec.beta2,       p->spec.eps,       p->spec.tau,
                    p->spec.policy_first, p->spec.policy_after};
    DC_TRY(dc_groups_upload(p));
    dc_cuda_state state = {};
    state.bad_step = -1;
    DC_TRY(upload(p, &state, sizeof state, (void **)&j->state));
    std::vector<const float *> metrics;
    for (int i = 0; i < p->spec.metric_count; i++) {
        DC_CHECK(p->scalar[(size_t)p->spec.metrics[i]]); // no unit of the next step writes it
        metrics.push_back((const float *)value_of(p, p->spec.metrics[i]).p);
    }
    j->metric_count = p->spec.metric_count;
    if (!metrics.empty())
        DC_TRY(upload(p, metrics.data(), metrics.size() * sizeof(float *), (void **)&j->metrics));
    if (p->g->loss >= 0) j->loss = (const float *)value_of(p, p->g->loss).p;
    j->tf32 = is_tf32(p);
    for (const panels &m : p->matrices)
        j->widest = m.cols > j->widest ? m.cols : j->widest;
    j->shadow_count = (int)p->shadows.size();
    if (j->shadow_count)
        DC_TRY(
            upload(p, p->shadows.data(), p->shadows.size() * sizeof(shadow), (void **)&j->shadows));
    return upload_parts(p);
}

// Does every gradient leave its share of the norm? A layer that is no part of a network does not, nor does one that is
// added to another.
static bool shares_norm(const dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op == DC_OP_PARAM && n->grad_sum) return false;
        if (n->op == DC_OP_linear && trained(n) && wants(p, n, 1) && p->net_of[(size_t)r] < 0 &&
            !is_head(p, r) && !is_thin(p, r))
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
    for (unit &u : p->units)
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
    p->norm_of.assign(count, -1);
    p->used.resize(count);
    p->view.graph = p->g;
    decide(p);
    dc_nets_find(p);
    plan_update(p);
    dc_groups_scalars(p);
    DC_TRY(take_slabs(p));
    DC_TRY(take_nodes(p));
    DC_TRY(take_shadows(p));
    DC_TRY(dc_nets_take(p));
    order_forward(p);
    order_backward(p);
    dc_group_flush_all(p);
    list_sums(p);
    choose_lanes(p);
    DC_TRY(make_events(p));
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
        DC_TRY(dc_shadows_run(p->cuda, &p->job[i]));
    return DC_OK;
}

static dc_status net_gradients(dc_program *p, const mlp *j) {
    DC_TRY(dc_mlp_weights(p->cuda, j, true, NULL));
    return dc_mlp_weights(p->cuda, j, false, NULL);
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
        return net_gradients(p, &p->nets[(size_t)u->node].job);
    case unit::NET_HEAD: {
        const net *n = &p->nets[(size_t)u->node];
        return dc_mlp_head_weights(p->cuda, &n->job, p->parts[(size_t)n->head].p);
    }
    case unit::GROUP: {
        const group *g = &p->groups[(size_t)u->node];
        return dc_narrow_run(p->cuda, &g->list);
    }
    }
    return DC_OK;
}

// May a unit start before the one before it on its lane is done? dW would only take room from who is still at work.
static bool starts_early(const unit *before, const unit *u) {
    return before && before->what != unit::ZERO && u->what != unit::NET_WEIGHTS && u->waits.empty();
}

// Start a unit on its lane, after unit last[lane].
static dc_status start_on_lane(dc_program *p, const unit *u, const unit **last) {
    cudaStream_t stream = p->cuda->lanes[u->lane];
    if (u->lane && !last[u->lane]) CU(cudaStreamWaitEvent(stream, p->begin));
    for (int v : u->waits)
        CU(cudaStreamWaitEvent(stream, p->units[(size_t)v].done));
    p->cuda->stream = stream;
    p->cuda->workspace = p->cuda->workspaces[u->lane];
    p->cuda->early = starts_early(last[u->lane], u);
    dc_status status = start(p, u);
    p->cuda->early = false;
    DC_TRY(status);
    last[u->lane] = u;
    if (u->awaited) CU(cudaEventRecord(u->done, stream));
    return DC_OK;
}

// Let a stream wait for what was started on lanes: all that is late, or all that is not.
static dc_status await_lanes(dc_program *p, cudaStream_t stream, bool late) {
    for (int l = 0; l < LANES; l++) {
        int u = last_on(p, l, late);
        if (u >= 0 && stream != p->cuda->lanes[l])
            CU(cudaStreamWaitEvent(stream, p->units[(size_t)u].done));
    }
    return DC_OK;
}

static dc_status start_units(dc_program *p, bool late, const unit **last) {
    for (unit &u : p->units)
        if (u.late == late) DC_TRY(start_on_lane(p, &u, last));
    return DC_OK;
}

// ---- the update: of weights before the cut, and of the others ----

template <typename F> static dc_status each_net(dc_program *p, int part, F start) {
    int64_t from = part ? p->cut : 0, to = part ? p->slabs.size : p->cut;
    for (net &n : p->nets)
        if (p->shares_norm && dc_net_trains(p, &n, from, to)) DC_TRY(start(&n.job));
    return DC_OK;
}

// dW of first layers, whose inputs make room for the next step's then; when sums over rows are there, all weights that
// have their gradient in memory.
static dc_status update_rest(dc_program *p, int part, cudaStream_t lane) {
    part_events *done = &p->parts_done[part];
    CU(cudaStreamWaitEvent(lane, done->begin));
    p->cuda->stream = lane;
    DC_TRY(each_net(p, part, [p](mlp *j) { return dc_mlp_weights(p->cuda, j, true, NULL); }));
    CU(cudaEventRecord(done->inputs, lane));
    CU(cudaStreamWaitEvent(lane, done->summed));
    DC_TRY(dc_update_run(p->cuda, &p->job[part]));
    CU(cudaEventRecord(done->rest, lane));
    return DC_OK;
}

// The other layers of networks: one after the other on two lanes. The first may start with its products while sums over
// rows are made.
static dc_status update_nets(dc_program *p, int part, cudaStream_t lane, cudaStream_t other) {
    part_events *done = &p->parts_done[part];
    int count = 0;
    DC_TRY(each_net(p, part, [&](mlp *j) -> dc_status {
        p->cuda->early = !count;
        if (count == 1) CU(cudaStreamWaitEvent(other, done->summed));
        p->cuda->stream = count++ % 2 ? other : lane;
        dc_status status = dc_mlp_weights(p->cuda, j, false, &p->job[part]);
        p->cuda->early = false;
        return status;
    }));
    if (count < 2) return DC_OK;
    CU(cudaEventRecord(done->more, other));
    CU(cudaStreamWaitEvent(lane, done->more));
    return DC_OK;
}

// On lanes[0], which has waited for whoever reads or makes what is updated, and two more.
static dc_status update_part(dc_program *p, int part, const cudaStream_t lanes[3]) {
    part_events *done = &p->parts_done[part];
    if (p->ticking) CU(cudaStreamWaitEvent(lanes[0], p->ticked)); // it reads what is overwritten
    CU(cudaEventRecord(done->begin, lanes[0]));
    p->cuda->stream = lanes[0];
    DC_TRY(dc_column_sums(p->cuda, &p->job[part]));
    CU(cudaEventRecord(done->summed, lanes[0]));
    DC_TRY(update_nets(p, part, lanes[0], lanes[2]));
    DC_TRY(update_rest(p, part, lanes[1]));
    CU(cudaStreamWaitEvent(lanes[0], done->rest));
    return DC_OK;
}

// ---- a step ----

// The early part of the update, beside what is late.
static dc_status start_early(dc_program *p) {
    cudaStream_t *lanes = p->cuda->lanes + EARLY_LANE;
    DC_TRY(await_lanes(p, lanes[0], false));
    DC_TRY(update_part(p, 0, lanes));
    CU(cudaEventRecord(p->early, lanes[0]));
    return DC_OK;
}

// Lane 0 has waited for all units in the end, but not for the early part of the update.
static dc_status start_all(dc_program *p, bool update) {
    const unit *last[LANES] = {};
    DC_TRY(start_units(p, false, last));
    if (update && p->cut) DC_TRY(start_early(p));
    DC_TRY(start_units(p, true, last));
    for (int late = 0; late < 2; late++)
        DC_TRY(await_lanes(p, p->cuda->lanes[0], late));
    return DC_OK;
}

static dc_status start_gradients(dc_program *p) {
    CU(cudaEventRecord(p->begin, p->cuda->lanes[0]));
    DC_TRY(start_all(p, false));
    p->cuda->stream = p->cuda->lanes[0];
    p->cuda->workspace = p->cuda->workspaces[0];
    for (int part = p->cut ? 0 : 1; part < 2; part++) {
        DC_TRY(each_net(p, part, [p](mlp *j) { return net_gradients(p, j); }));
        DC_TRY(dc_column_sums(p->cuda, &p->job[part]));
    }
    return DC_OK;
}

// Rows of the next step: drawn beside all of this one, and gathered when nobody reads this one's any more.
static dc_status draw_beside(dc_program *p, const dc_beside *beside) {
    cudaStream_t lane = p->cuda->lanes[DRAW_LANE];
    CU(cudaStreamWaitEvent(lane, p->begin));
    p->cuda->stream = lane;
    DC_TRY(beside->draw(beside->ctx));
    CU(cudaEventRecord(p->drawn, lane));
    return DC_OK;
}

// Lane 1 has nothing to do then.
static dc_status gather_beside(dc_program *p, const dc_beside *beside) {
    cudaStream_t lane = p->cuda->lanes[1];
    CU(cudaStreamWaitEvent(lane, p->drawn));
    CU(cudaStreamWaitEvent(lane, p->parts_done[1].begin));
    p->cuda->stream = lane;
    DC_TRY(beside->pack(beside->ctx));
    for (int part = p->cut ? 0 : 1; part < 2; part++)
        CU(cudaStreamWaitEvent(lane, p->parts_done[part].inputs));
    DC_TRY(beside->gather(beside->ctx));
    CU(cudaEventRecord(p->gathered, lane));
    CU(cudaStreamWaitEvent(p->cuda->lanes[0], p->gathered));
    return DC_OK;
}

// Metrics and the counter, on the lane that draws, whose rows depend on it: the next step's layers do not wait for it.
static dc_status end_step(dc_program *p, bool more) {
    cudaStream_t lane = p->cuda->lanes[DRAW_LANE];
    CU(cudaEventRecord(p->updated, p->cuda->lanes[0]));
    CU(cudaStreamWaitEvent(lane, p->updated));
    p->cuda->stream = lane;
    DC_TRY(dc_tick_run(p->cuda, &p->job[1]));
    CU(cudaEventRecord(p->ticked, lane));
    p->ticking = more;
    if (!more) CU(cudaStreamWaitEvent(p->cuda->lanes[0], p->ticked));
    return DC_OK;
}

static dc_status start_step(dc_program *p, const dc_beside *beside) {
    cudaStream_t *lanes = p->cuda->lanes, last[] = {lanes[0], lanes[2], lanes[3]};
    CU(cudaEventRecord(p->begin, lanes[0]));
    if (beside) DC_TRY(draw_beside(p, beside));
    DC_TRY(start_all(p, true));
    if (p->cut) CU(cudaStreamWaitEvent(lanes[0], p->parts_done[0].summed)); // whether it goes
    DC_TRY(update_part(p, 1, last));
    if (p->cut) CU(cudaStreamWaitEvent(lanes[0], p->early));
    if (beside) DC_TRY(gather_beside(p, beside));
    p->cuda->stream = lanes[0];
    DC_TRY(dc_shadows_copy(p->cuda, &p->job[1]));
    return end_step(p, beside != NULL);
}

// Whatever happened, lane 0 is the current one again.
static dc_status end_on_lane_0(dc_program *p, dc_status status) {
    p->cuda->stream = p->cuda->lanes[0];
    p->cuda->workspace = p->cuda->workspaces[0];
    if (status != DC_OK) p->ticking = false;
    return status;
}

extern "C" dc_status dc_program_gradients(dc_program *p) {
    return end_on_lane_0(p, start_gradients(p));
}

extern "C" dc_status dc_program_step(dc_program *p, const dc_beside *beside) {
    return end_on_lane_0(p, start_step(p, beside));
}
