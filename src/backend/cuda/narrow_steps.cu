// What narrow ops become: instructions for slots (narrow.cu), a member of an ensemble after the other.
#include "backend/cuda/program.cuh"

// Softmaxes, unpack and relative_mean read other places, from memory.
bool dc_narrow_reads(const narrow *n, int i) {
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

int dc_narrow_slots(group *g, int count) {
    g->list.slots += count;
    return g->list.slots - count;
}

int dc_narrow_load(group *g, const float *p, int64_t count, int64_t step, int e) {
    auto there = [&](int i) { // all members, from load i on
        for (int k = 0; k < e; k++) {
            const narrow_load *l = &g->loads[(size_t)(i + k)];
            if (l->p != p + k * step || l->count != count ||
                l->slot != g->loads[(size_t)i].slot + k)
                return false;
        }
        return true;
    };
    for (int i = g->phases.back().load; i + e <= (int)g->loads.size(); i++)
        if (there(i)) return g->loads[(size_t)i].slot;
    int slot = dc_narrow_slots(g, e);
    for (int k = 0; k < e; k++)
        g->loads.push_back(narrow_load{p + k * step, (int)count, slot + k});
    return slot;
}

// An op for one member: what is put into steps.
struct maker {
    group *g;
    const narrow *n;
    int e;
    int slot_of(int i) const { // of input i
        return n->x_slot[i] < 0 ? -1 : n->x_slot[i] + (n->members[i] > 1 ? e : 0);
    }
    narrow_step step(int code, int a, int b, int c, double f, double k) const {
        return narrow_step{(short)code, 0,        (short)a,      (short)b, (short)c,
                           (float)f,    (float)k, (int)n->count, NULL};
    }
    narrow_step of_inputs(int code, double f, double k) const {
        return step(code, slot_of(0), slot_of(1), slot_of(2), f, k);
    }
    narrow_step back(int code, double f, double k) const { // of the gradient and input 0
        return step(code, n->dy_slot + (n->dystep ? e : 0), slot_of(0), 0, f, k);
    }
    // A row of a softmax.
    narrow_step row(int code) const {
        g->rows.push_back(*n);
        return step(code, n->dy_slot, 0, (int)g->rows.size() - 1, n->scale, 0);
    }
    int spare() const { return dc_narrow_slots(g, 1); }
    int push(narrow_step s, int d) const {
        s.d = (short)d;
        g->steps.push_back(s);
        return d;
    }
};

static narrow_step forward(const maker &m) {
    const narrow *n = m.n;
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
    case NARROW_ZERO:
        return m.step(N_CONST, 0, 0, 0, 0, 0);
    }
    DC_CHECK(n->op == DC_OP_unpack);
    narrow_step gather = m.step(N_GATHER, m.slot_of(0), 0, 0, 0, 0);
    gather.p = (float *)n->x[1] + m.e * n->step[1];
    return m.step(N_COPY, m.push(gather, m.spare()), 0, 0, 0, 0);
}

static narrow_step backward(const maker &m) {
    const narrow *n = m.n;
    double sign = n->input == 0 ? 1 : -1;
    switch (n->op) {
    case DC_OP_add:
        return m.back(N_COPY, 0, 0);
    case DC_OP_mul: {
        narrow_step s = m.back(N_MUL, 0, 0);
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
    case DC_OP_sigmoid:
        return m.back(N_SIGMOID_BACK, 0, 0);
    case DC_OP_softplus:
        return m.back(N_SOFTPLUS_BACK, 0, 0);
    case DC_OP_ensemble_min:
        return m.step(N_LEAST_BACK, n->dy_slot, n->x_slot[0], n->members[0], m.e, 0);
    case DC_OP_mean:
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
        narrow_measure{n->x[0], n->step[0], (int)n->count, n->members[0], n->scale, slot});
    return m.step(N_COPY, slot, 0, 0, 0, 0);
}

// What a reduction adds up, of one member.
static void push_terms(const maker &m) {
    const narrow *n = m.n;
    int term = m.slot_of(0);
    if (n->op == DC_OP_square) term = m.push(m.of_inputs(N_SQUARE, 0, 0), m.spare());
    if (n->op == DC_OP_bce) term = m.push(m.of_inputs(N_BCE, n->a, 0), m.spare());
    if (n->op == DC_OP_expectile) term = m.push(m.of_inputs(N_EXPECTILE, n->a, 0), m.spare());
    if (n->op == DC_OP_log_likelihood) term = m.push(m.row(N_LIKELIHOOD), m.spare());
    m.push(m.step(N_SUM, term, 0, 0, 0, 0), n->sum);
    if (n->op == DC_OP_relative_mean) m.push(m.step(N_SUM_SIZE, term, 0, 0, 0, 0), n->sum + 1);
}

// A result goes to its slot and to memory, added to what is there if it is one of several.
static void push_result(const maker &m, narrow_step s) {
    const narrow *n = m.n;
    int y = n->y_slot + (n->ystep ? m.e : 0);
    if (n->add) s = m.step(N_ADD, y, m.push(s, m.spare()), 0, 0, 0);
    s.p = n->y + m.e * n->ystep;
    m.push(s, y);
}

void dc_narrow_steps(group *g, const narrow *n) {
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
