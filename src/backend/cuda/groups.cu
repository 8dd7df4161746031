// Pointwise ops, reductions and softmaxes of few numbers (paths.cu says which) wait until another kernel needs what they
// make, and then go together as one launch (fused.cu). Numbers that a thread made and reads again stay in its slots.
#include "backend/cuda/program.cuh"

#include <cstring>

// Bytes of a block: that are not asked for; that a group takes at most, so that it finds a place beside others.
enum { FIXED_SHARED = 2048, MOST_SHARED = 144 * 1024 };

static bool has(const std::vector<int> &list, int key) {
    return std::find(list.begin(), list.end(), key) != list.end();
}

static bool meets(const std::vector<int> &a, const std::vector<int> &b) {
    for (int key : a)
        if (has(b, key)) return true;
    return false;
}

// Number of the slot where an earlier op of the phase left these numbers, -1 if none did.
static int find_slot(const group *g, const void *y, int64_t count, int64_t step, int e) {
    for (int i = (int)g->ops.size() - 1; i >= g->phase; i--) {
        const small_op *w = &g->ops[(size_t)i];
        if (w->y == y && w->count == count && w->y_slot >= 0 &&
            (e == 1 || (w->ystep == step && w->e >= e)))
            return w->y_slot;
    }
    return -1;
}

// Does the phase write to where x reads, in a way that slots do not tell?
static bool touches(const waiting_op *maker, const waiting_op *reader) {
    return meets(maker->writes, reader->reads) || meets(maker->writes, reader->writes);
}

static bool leaves_slot(const small_op *n) {
    if (n->op == SMALL_ZERO || n->input < 0) return n->op == SMALL_ZERO || n->sum < 0;
    return !dc_is_softmax(n->op);
}

static void open_phase(group *g) {
    int load = (int)g->loads.size(), measure = (int)g->measures.size(), step = (int)g->steps.size();
    g->phase = (int)g->ops.size();
    g->phases.push_back(fused_phase{{{load, load, step, step, 0}}, measure, measure});
}

static void close_phase(group *g) {
    fused_phase *p = &g->phases.back();
    p->chain[0].load_end = (int)g->loads.size();
    p->measure_end = (int)g->measures.size();
    p->chain[0].step_end = (int)g->steps.size();
}

// Slots that earlier ops of the phase left for it.
static void find_slots(const group *g, small_op *n) {
    for (int i = 0; i < DC_INPUTS; i++)
        n->x_slot[i] =
            dc_small_reads(n, i) ? find_slot(g, n->x[i], n->count, n->step[i], n->members[i]) : -1;
    n->dy_slot = n->dy ? find_slot(g, n->dy, n->count, n->dystep, n->dystep ? n->e : 1) : -1;
    n->y_slot = leaves_slot(n) ? find_slot(g, n->y, n->count, n->ystep, n->ystep ? n->e : 1) : -1;
}

// Whatever the phase wrote to its operands must be in a slot; otherwise there is a barrier first.
static bool needs_barrier(const group *g, const std::vector<const waiting_op *> &made,
                          const waiting_op *w, const small_op *n) {
    for (size_t i = (size_t)g->phase; i < g->ops.size(); i++) {
        if (!touches(made[i], w)) continue;
        int slot = g->ops[i].y_slot;
        bool seen = slot >= 0 && (slot == n->dy_slot || (slot == n->y_slot && n->add));
        for (int k = 0; k < DC_INPUTS; k++)
            seen = seen || (slot >= 0 && slot == n->x_slot[k]);
        bool later = false; // by an op whose result is in the slot
        for (size_t k = i + 1; k < g->ops.size(); k++)
            later = later || (g->ops[k].y_slot >= 0 && g->ops[k].y_slot == slot);
        if (!seen && !later) return true;
    }
    return false;
}

// Slots for what it reads from memory, and for what it makes.
static void take_slots(group *g, small_op *n) {
    int own = n->ystep ? n->e : 1;
    for (int i = 0; i < DC_INPUTS; i++)
        if (dc_small_reads(n, i) && n->x_slot[i] < 0)
            n->x_slot[i] = dc_fused_load(g, n->x[i], n->count, n->step[i], n->members[i]);
    if (n->dy && n->dy_slot < 0)
        n->dy_slot = dc_fused_load(g, n->dy, n->count, n->dystep, n->dystep ? n->e : 1);
    if (n->y_slot < 0 && leaves_slot(n))
        n->y_slot =
            n->add ? dc_fused_load(g, n->y, n->count, n->ystep, own) : dc_fused_slots(g, own);
    if (n->sum < 0) return;
    n->sum = g->list.sums;
    g->list.sums += dc_small_sums((dc_op)n->op);
}

// Put an op at the end of a group.
static void append(group *g, std::vector<const waiting_op *> *made, const waiting_op *w) {
    small_op n = w->op;
    if (g->ops.empty()) open_phase(g);
    find_slots(g, &n);
    if (needs_barrier(g, *made, w, &n)) {
        close_phase(g);
        open_phase(g);
        find_slots(g, &n);
    }
    take_slots(g, &n);
    dc_fused_steps(g, &n);
    g->ops.push_back(n);
    made->push_back(w);
}

static int word_count(const group *g) {
    size_t bytes = g->phases.size() * sizeof(fused_phase) +
                   g->loads.size() * sizeof(fused_load) * FUSED_CHAINS + // if all need them
                   g->measures.size() * sizeof(fused_measure) +
                   g->steps.size() * sizeof(fused_step) + g->rows.size() * sizeof(small_op);
    return (int)(bytes / sizeof(uint4));
}

// Would one more op be too much for a block's shared memory?
static bool full(const dc_program *p, const group *g, const waiting_op *w) {
    int e = std::max(w->op.e, w->op.members[0]),
        slots = 4 * e + 2; // at most, with all it puts aside
    for (int i = 0; i < DC_INPUTS; i++)
        slots += w->op.members[i];
    int words = word_count(g) + 4 * slots + (int)(sizeof(small_op) / sizeof(uint4));
    return dc_fused_bytes(words, g->list.sums + 2, g->list.slots + slots) >
           (size_t)std::min(p->cuda->shared_most - FIXED_SHARED, (int)MOST_SHARED);
}

// Launch the waiting ops that are chosen, in their order.
static void launch_chosen(dc_program *p, const std::vector<char> &chosen) {
    group g = {};
    std::vector<const waiting_op *> made;
    auto close = [&]() {
        if (g.ops.empty()) return;
        close_phase(&g);
        p->groups.push_back(g);
        dc_push_task(p, task::GROUP, (dc_ref)p->groups.size() - 1);
        g = group();
        made.clear();
    };
    for (size_t i = 0; i < p->waiting.size(); i++) {
        if (!chosen[i]) continue;
        const waiting_op *w = &p->waiting[i];
        if (full(p, &g, w)) close();
        append(&g, &made, w);
        g.reads.insert(g.reads.end(), w->reads.begin(), w->reads.end());
        g.writes.insert(g.writes.end(), w->writes.begin(), w->writes.end());
    }
    close();
    std::vector<waiting_op> rest;
    for (size_t i = 0; i < p->waiting.size(); i++)
        if (!chosen[i]) rest.push_back(p->waiting[i]);
    p->waiting = rest;
}

void dc_group_flush(dc_program *p, std::vector<int> need) {
    std::vector<char> chosen(p->waiting.size());
    for (size_t i = p->waiting.size(); i-- > 0;) {
        const waiting_op *w = &p->waiting[i];
        if (!meets(w->writes, need)) continue;
        chosen[i] = 1;
        need.insert(need.end(), w->reads.begin(), w->reads.end());
    }
    launch_chosen(p, chosen);
}

void dc_group_flush_all(dc_program *p) {
    launch_chosen(p, std::vector<char>(p->waiting.size(), 1));
}

static void push_small(dc_program *p, small_op n, const std::vector<int> &reads,
                       const std::vector<int> &writes) {
    p->waiting.push_back(waiting_op{n, reads, writes});
}

std::vector<int> dc_value_keys(const dc_program *p, const dc_node *n) {
    std::vector<int> keys;
    for (int i = 0; i < n->in_count; i++)
        keys.push_back(value_key(p, n->in[i]));
    return keys;
}

// ---- single numbers that wait for the step's end: their gradients are known now ----

void dc_groups_scalars(dc_program *p) {
    dc_ref loss = p->g->loss;
    p->scalar_grad.assign((size_t)p->g->count, 0);
    if (loss < 0) return;
    p->scalar_grad[(size_t)loss] = 1;
    for (dc_ref r = loss; r >= 0; r--) {
        const dc_node *n = node(p, r);
        if (!is_deferred(p, r) || dc_is_reduction(n->op)) continue;
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
    } else {
        f.x = (const float *)value_of(p, n->in[0]).p;
        if (n->in_count > 1) f.y = (const float *)value_of(p, n->in[1]).p;
    }
    p->finals.push_back(f);
}

static void set_inputs(const dc_program *p, const dc_node *n, small_op *out, bool back) {
    for (int i = 0; i < n->in_count; i++) {
        bool whole = dc_is_reduction(n->op) || n->op == DC_OP_unpack || n->op == DC_OP_expected;
        tensor t = back && !whole ? input_value(p, n, i) : value_of(p, n->in[i]);
        DC_CHECK(!t.half && t.ld == t.cols);
        out->x[i] = (const float *)t.p;
        out->step[i] = t.e == 1 ? 0 : t.step;
        out->members[i] = t.e;
    }
}

static small_op new_small(void) {
    small_op n = {};
    n.input = n.sum = n.dy_slot = n.y_slot = -1;
    n.x_slot[0] = n.x_slot[1] = n.x_slot[2] = -1;
    return n;
}

void dc_group_forward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    if (is_deferred(p, r)) list_final(p, r);
    if (is_deferred(p, r) && !dc_is_reduction(n->op)) return;
    small_op out = new_small();
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
    push_small(p, out, dc_value_keys(p, n), {r});
}

void dc_group_zero(dc_program *p, dc_ref owner) {
    tensor t = grad_of(p, owner);
    small_op out = new_small();
    out.op = SMALL_ZERO;
    out.e = 1;
    out.count = (int64_t)t.e * t.rows * t.cols;
    out.y = (float *)t.p;
    push_small(p, out, {}, {grad_key(p, owner)});
}

void dc_group_seed(dc_program *p, dc_ref r, double gradient, bool add) {
    tensor t = grad_of(p, r);
    small_op out = new_small();
    out.op = SMALL_SEED;
    out.input = 0;
    out.e = 1;
    out.count = 1;
    out.y = (float *)t.p;
    out.add = add;
    out.scale = (float)gradient;
    push_small(p, out, {}, {grad_key(p, r)});
}

// A sum at the step's end gives its inputs gradients that are known; those that do not wait have them in memory.
static void seed_inputs(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    for (int i = 0; i < n->in_count; i++)
        if (wants(p, n, i) && !is_deferred(p, n->in[i]))
            dc_group_seed(p, n->in[i],
                          p->scalar_grad[(size_t)r] * (n->op == DC_OP_affine ? n->a : 1),
                          adds(p, n, i));
}

// What the numbers of a reduction's gradient have in common, if g is its own.
static float reduction_scale(const small_op *n, double g) {
    double cells = (double)(n->members[0] * n->count);
    if (n->op == DC_OP_bce) return (float)(g * n->b / cells);
    if (n->op == DC_OP_square) return (float)(g * 2 * n->a / cells);
    if (n->op == DC_OP_expectile) return (float)(g * 4 / cells);
    return (float)(g / cells);
}

void dc_group_backward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (is_deferred(p, r) && !dc_is_reduction(n->op)) return seed_inputs(p, r);
    for (int i = 0; i < n->in_count; i++) {
        if (!dc_flows(n, i) || !wants(p, n, i)) continue;
        bool whole = dc_is_reduction(n->op), softmax = dc_is_softmax(n->op);
        DC_CHECK(!softmax || n->op == DC_OP_log_likelihood || (n->lo == 0 && n->hi == n->rows));
        small_op out = new_small();
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
        if (!whole) {
            tensor dy = grad_of(p, r);
            out.dy = (const float *)dy.p;
            out.dystep = dy.e == 1 ? 0 : dy.step;
        }
        out.e = whole || n->op == DC_OP_ensemble_min ? node(p, n->in[0])->e : n->e;
        out.cols = dx.cols;
        out.count = softmax ? dx.rows : (int64_t)dx.rows * dx.cols;
        if (whole) out.scale = reduction_scale(&out, p->scalar_grad[(size_t)r]);
        std::vector<int> reads = dc_value_keys(p, n);
        if (!whole) reads.push_back(grad_key(p, r));
        push_small(p, out, reads, {grad_key(p, n->in[i])});
    }
}

template <typename T> static void add_words(std::vector<uint4> *words, const std::vector<T> &list) {
    static_assert(sizeof(T) % sizeof(uint4) == 0, "copied in words");
    size_t at = words->size();
    words->resize(at + list.size() * sizeof(T) / sizeof(uint4));
    if (!list.empty()) memcpy(words->data() + at, list.data(), list.size() * sizeof(T));
}

static dc_status upload_group(dc_program *p, group *g) {
    fused_list *l = &g->list;
    std::vector<uint4> words;
    dc_fused_split(g, dc_fused_blocks(p->cuda, g->phases.size() > 1));
    add_words(&words, g->phases);
    add_words(&words, g->loads);
    add_words(&words, g->measures);
    add_words(&words, g->steps);
    add_words(&words, g->rows);
    l->word_count = (int)words.size();
    l->phases = (int)g->phases.size();
    l->loads = (int)g->loads.size();
    l->measures = (int)g->measures.size();
    l->steps = (int)g->steps.size();
    l->rows = (int)g->rows.size();
    l->slots = std::max(l->slots, 1); // instructions read some slot, whatever they do with it
    if (l->sums)
        DC_TRY(take(p, sizeof(double) * (size_t)(l->sums * l->blocks), (void **)&l->partials));
    return upload(p, words.data(), words.size() * sizeof(uint4), (void **)&l->words);
}

// Reductions leave partial sums, which the finals read.
dc_status dc_groups_upload(dc_program *p) {
    for (group &g : p->groups) {
        DC_TRY(upload_group(p, &g));
        for (const small_op &n : g.ops)
            for (final_op &f : p->finals) {
                if (n.sum < 0 || f.out != n.y) continue;
                f.blocks = g.list.blocks;
                f.partials = g.list.partials + n.sum * f.blocks;
            }
    }
    if (p->finals.empty()) return DC_OK;
    p->job[1].final_count = (int)p->finals.size();
    return upload(p, p->finals.data(), p->finals.size() * sizeof(final_op),
                  (void **)&p->job[1].finals);
}
