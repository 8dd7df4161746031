// What small ops become: instructions for slots (fused.cu), a member of an ensemble after the other.
#include "backend/cuda/program.cuh"

// Softmaxes, unpack and relative_mean read other places, from memory.
bool dc_small_reads(const small_op *n, int i) {
    if (!n->x[i] || dc_is_softmax(n->op)) return false;
    if (n->op == DC_OP_unpack) return i == 0;
    if (n->input < 0) return true;
    switch (n->op) {
    case DC_OP_add:
    case DC_OP_affine:
    case DC_OP_mean:
    case DC_OP_relative_mean:
        return false;
    case DC_OP_mul:
        return i == 1 - n->input;
    case DC_OP_square:
    case DC_OP_bce:
    case DC_OP_expectile:
        return true;
    }
    return i == 0;
}

int dc_fused_slots(group *g, int count) {
    g->list.slots += count;
    return g->list.slots - count;
}

int dc_fused_load(group *g, const float *p, int64_t count, int64_t step, int e) {
    auto there = [&](int i) { // all members, from load i on
        for (int k = 0; k < e; k++) {
            const fused_load *l = &g->loads[(size_t)(i + k)];
            if (l->p != p + k * step || l->count != count ||
                l->slot != g->loads[(size_t)i].slot + k)
                return false;
        }
        return true;
    };
    for (int i = g->phases.back().chain[0].load; i + e <= (int)g->loads.size(); i++)
        if (there(i)) return g->loads[(size_t)i].slot;
    int slot = dc_fused_slots(g, e);
    for (int k = 0; k < e; k++)
        g->loads.push_back(fused_load{p + k * step, (int)count, slot + k});
    return slot;
}

// An op for one member: what is put into steps.
struct maker {
    group *g;
    const small_op *n;
    int e;
    int slot_of(int i) const { // of input i
        return n->x_slot[i] < 0 ? -1 : n->x_slot[i] + (n->members[i] > 1 ? e : 0);
    }
    fused_step step(int code, int a, int b, int c, double f, double k) const {
        return fused_step{(short)code, 0,        (short)a,      (short)b, (short)c,
                          (float)f,    (float)k, (int)n->count, NULL};
    }
    fused_step of_inputs(int code, double f, double k) const {
        return step(code, slot_of(0), slot_of(1), slot_of(2), f, k);
    }
    fused_step back(int code, double f, double k) const { // of the gradient and input 0
        return step(code, n->dy_slot + (n->dystep ? e : 0), slot_of(0), 0, f, k);
    }
    // A row of a softmax.
    fused_step row(int code) const {
        g->rows.push_back(*n);
        return step(code, n->dy_slot, 0, (int)g->rows.size() - 1, n->scale, 0);
    }
    int spare() const { return dc_fused_slots(g, 1); }
    int push(fused_step s, int d) const {
        s.d = (short)d;
        g->steps.push_back(s);
        return d;
    }
};

static fused_step forward(const maker &m) {
    const small_op *n = m.n;
    switch (n->op) {
    case DC_OP_add:
        return m.of_inputs(N_ADD, 0, 0);
    case DC_OP_mul:
        return m.of_inputs(N_MUL, 0, 0);
    case DC_OP_affine:
        return m.of_inputs(N_AFFINE, n->a, n->b);
    case DC_OP_clip:
        return m.of_inputs(N_CLIP, n->a, n->b);
    case DC_OP_within:
        return m.of_inputs(N_WITHIN, n->a, 0);
    case DC_OP_decay:
        return m.of_inputs(N_DECAY, -n->a, 0);
    case DC_OP_exp:
        return m.of_inputs(N_EXP, 0, 0);
    case DC_OP_tanh:
        return m.of_inputs(N_TANH, 0, 0);
    case DC_OP_abs:
        return m.of_inputs(N_ABS, 0, 0);
    case DC_OP_sigmoid:
        return m.of_inputs(N_SIGMOID, 0, 0);
    case DC_OP_softplus:
        return m.of_inputs(N_SOFTPLUS, 0, 0);
    case DC_OP_power:
        return m.of_inputs(N_POWER, n->a, 0);
    case DC_OP_ensemble_min:
        return m.step(N_LEAST, 0, n->x_slot[0], n->members[0], 0, 0);
    case DC_OP_expected:
        return m.row(N_EXPECTED);
    case SMALL_ZERO:
        return m.step(N_CONST, 0, 0, 0, 0, 0);
    }
    DC_CHECK(n->op == DC_OP_unpack);
    fused_step gather = m.step(N_GATHER, m.slot_of(0), 0, 0, 0, 0);
    gather.p = (float *)n->x[1] + m.e * n->step[1];
    return m.step(N_COPY, m.push(gather, m.spare()), 0, 0, 0, 0);
}

static fused_step backward(const maker &m) {
    const small_op *n = m.n;
    double sign = n->input == 0 ? 1 : -1;
    switch (n->op) {
    case DC_OP_add:
        return m.back(N_COPY, 0, 0);
    case DC_OP_mul: {
        fused_step s = m.back(N_MUL, 0, 0);
        s.b = (short)m.slot_of(1 - n->input);
        return s;
    }
    case DC_OP_affine:
        return m.back(N_AFFINE, n->a, 0);
    case DC_OP_clip:
        return m.back(N_CLIP_BACK, n->a, n->b);
    case DC_OP_within:
        return m.back(N_WITHIN_BACK, n->a, 0);
    case DC_OP_decay:
        return m.back(N_DECAY_BACK, -n->a, -(n->a + 1));
    case DC_OP_exp:
        return m.back(N_EXP_BACK, 0, 0);
    case DC_OP_tanh:
        return m.back(N_TANH_BACK, 0, 0);
    case DC_OP_abs:
        return m.back(N_ABS_BACK, 0, 0);
    case DC_OP_sigmoid:
        return m.back(N_SIGMOID_BACK, 0, 0);
    case DC_OP_softplus:
        return m.back(N_SOFTPLUS_BACK, 0, 0);
    case DC_OP_ensemble_min:
        return m.step(N_LEAST_BACK, n->dy_slot, n->x_slot[0], n->members[0], m.e, 0);
    case DC_OP_mean:
    case SMALL_SEED:
        return m.step(N_CONST, 0, 0, 0, n->scale, 0);
    case DC_OP_square:
        return m.of_inputs(N_SQUARE_BACK, sign * n->scale, 0);
    case DC_OP_bce:
        return m.of_inputs(N_BCE_BACK, n->scale, n->a);
    case DC_OP_expectile:
        return m.of_inputs(N_EXPECTILE_BACK, sign * n->scale, n->a);
    }
    DC_CHECK(n->op == DC_OP_relative_mean);
    int slot = m.spare();
    m.g->measures.push_back(
        fused_measure{n->x[0], n->step[0], (int)n->count, n->members[0], n->scale, slot});
    return m.step(N_COPY, slot, 0, 0, 0, 0);
}

// What a reduction adds up, of one member.
static void push_terms(const maker &m) {
    const small_op *n = m.n;
    int term = m.slot_of(0);
    if (n->op == DC_OP_square) term = m.push(m.of_inputs(N_SQUARE, 0, 0), m.spare());
    if (n->op == DC_OP_bce) term = m.push(m.of_inputs(N_BCE, n->a, 0), m.spare());
    if (n->op == DC_OP_expectile) term = m.push(m.of_inputs(N_EXPECTILE, n->a, 0), m.spare());
    if (n->op == DC_OP_log_likelihood) term = m.push(m.row(N_LIKELIHOOD), m.spare());
    m.push(m.step(N_SUM, term, 0, 0, 0, 0), n->sum);
    if (n->op == DC_OP_relative_mean) m.push(m.step(N_SUM_SIZE, term, 0, 0, 0, 0), n->sum + 1);
}

// A result goes to its slot and to memory, added to what is there if it is one of several.
static void push_result(const maker &m, fused_step s) {
    const small_op *n = m.n;
    int y = n->y_slot + (n->ystep ? m.e : 0);
    if (n->add) s = m.step(N_ADD, y, m.push(s, m.spare()), 0, 0, 0);
    s.p = n->y + m.e * n->ystep;
    m.push(s, y);
}

void dc_fused_steps(group *g, const small_op *n) {
    bool softmax = dc_is_softmax(n->op);
    maker m = {g, n, 0};
    if (n->input >= 0 && softmax)
        m.push(m.row(N_SOFTMAX_BACK), 0);
    else if (n->sum >= 0)
        for (m.e = 0; m.e < (softmax ? 1 : n->members[0]); m.e++)
            push_terms(m);
    else
        for (m.e = 0; m.e < n->e; m.e++)
            push_result(m, n->input < 0 ? forward(m) : backward(m));
}

// ---- chains: what does not depend on each other ----

// Slots that an instruction reads.
static std::vector<int> slots_read(const fused_step &s) {
    std::vector<int> read;
    auto one = [&](int slot) {
        if (slot >= 0) read.push_back(slot);
    };
    switch (s.code) {
    case N_CONST:
    case N_EXPECTED:
    case N_LIKELIHOOD:
        return read;
    case N_LEAST_BACK:
        one(s.a);
        [[fallthrough]];
    case N_LEAST:
        for (int k = 0; k < s.c; k++)
            one(s.b + k);
        return read;
    case N_WITHIN:
    case N_BCE:
    case N_EXPECTILE:
    case N_BCE_BACK:
    case N_EXPECTILE_BACK:
        one(s.c);
        [[fallthrough]];
    case N_ADD:
    case N_MUL:
    case N_SQUARE:
    case N_CLIP_BACK:
    case N_WITHIN_BACK:
    case N_DECAY_BACK:
    case N_EXP_BACK:
    case N_TANH_BACK:
    case N_ABS_BACK:
    case N_SIGMOID_BACK:
    case N_SOFTPLUS_BACK:
    case N_SQUARE_BACK:
        one(s.b);
    }
    one(s.a);
    return read;
}

static bool makes_slot(const fused_step &s) {
    return s.code != N_SUM && s.code != N_SUM_SIZE && s.code != N_SOFTMAX_BACK;
}

// Instructions of a phase by what they depend on: all that touch a slot which one of them makes belong together. The
// number of each one's component; how many components there are.
static std::vector<int> components_of(const group *g, const fused_chain &all) {
    int count = all.step_end - all.step;
    std::vector<int> component((size_t)count), owner((size_t)g->list.slots, -1);
    auto join = [&](int from, int to) {
        for (int &h : component)
            if (h == from) h = to;
    };
    for (int i = 0; i < count; i++) {
        const fused_step &s = g->steps[(size_t)(all.step + i)];
        component[(size_t)i] = i;
        if (makes_slot(s)) owner[(size_t)s.d] = i;
    }
    for (int i = 0; i < count; i++) {
        const fused_step &s = g->steps[(size_t)(all.step + i)];
        std::vector<int> touched = slots_read(s);
        if (makes_slot(s)) touched.push_back(s.d);
        for (int slot : touched)
            if (owner[(size_t)slot] >= 0)
                join(component[(size_t)i], component[(size_t)owner[(size_t)slot]]);
    }
    return component;
}

// What a chain has to do: instructions, as many times as its blocks need for all numbers.
static int64_t work_of(const fused_chain &t, int blocks) {
    return (int64_t)(t.step_end - t.step) * div_up(t.most, blocks * FUSED_THREADS);
}

// Each component goes to the chain that has least so far, large ones first.
static std::vector<int> chains_of(const group *g, const fused_chain &all,
                                  const std::vector<int> &component, int chains) {
    std::vector<int64_t> size(component.size()), load((size_t)chains);
    std::vector<int> order, chain(component.size());
    for (size_t i = 0; i < component.size(); i++)
        size[(size_t)component[i]] += g->steps[(size_t)all.step + i].count;
    for (int h = 0; h < (int)component.size(); h++)
        if (size[(size_t)h]) order.push_back(h);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return size[(size_t)a] > size[(size_t)b]; });
    for (int h : order) {
        int to = (int)(std::min_element(load.begin(), load.end()) - load.begin());
        load[(size_t)to] += size[(size_t)h];
        for (size_t i = 0; i < component.size(); i++)
            if (component[i] == h) chain[i] = to;
    }
    return chain;
}

// Its instructions in their order, and the loads that they need.
static fused_chain split_off(const group *g, const fused_chain &all, const std::vector<int> &chain,
                             int mine, std::vector<fused_load> *loads,
                             std::vector<fused_step> *steps) {
    fused_chain out = {(int)loads->size(), 0, (int)steps->size(), 0, 0};
    std::vector<char> touched((size_t)g->list.slots);
    for (int i = all.step; i < all.step_end; i++) {
        const fused_step &s = g->steps[(size_t)i];
        if (chain[(size_t)(i - all.step)] != mine) continue;
        steps->push_back(s);
        out.most = std::max(out.most, s.count);
        for (int slot : slots_read(s))
            touched[(size_t)slot] = 1;
    }
    for (int i = all.load; i < all.load_end; i++)
        if (touched[(size_t)g->loads[(size_t)i].slot]) loads->push_back(g->loads[(size_t)i]);
    out.load_end = (int)loads->size();
    out.step_end = (int)steps->size();
    return out;
}

// The group on so many chains, which share `most` blocks; how long it takes.
static int64_t split_to(group *g, int chains, int most) {
    std::vector<fused_load> loads;
    std::vector<fused_step> steps;
    int64_t numbers = 1, work = 0;
    for (fused_phase &p : g->phases) {
        fused_chain all = p.chain[0];
        std::vector<int> chain = chains_of(g, all, components_of(g, all), chains);
        for (int t = 0; t < chains; t++) {
            p.chain[t] = split_off(g, all, chain, t, &loads, &steps);
            numbers = std::max(numbers, (int64_t)p.chain[t].most);
        }
    }
    int blocks = std::min(most / chains, div_up(numbers, FUSED_THREADS));
    for (const fused_phase &p : g->phases) {
        int64_t longest = 0;
        for (int t = 0; t < chains; t++)
            longest = std::max(longest, work_of(p.chain[t], blocks));
        work += longest;
    }
    g->loads = loads;
    g->steps = steps;
    g->list.chains = chains;
    g->list.blocks = chains * blocks;
    return work;
}

// As many chains as make it shortest.
void dc_fused_split(group *g, int most) {
    int best = 1;
    int64_t least = INT64_MAX;
    for (int chains = 1; chains <= std::min<int>(most, FUSED_CHAINS); chains++) {
        group tried = *g;
        int64_t work = split_to(&tried, chains, most);
        if (work >= least) continue;
        least = work;
        best = chains;
    }
    split_to(g, best, most);
}
