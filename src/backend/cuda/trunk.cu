// Convolutions of an encoder as two launches: which nodes of a graph they are, what memory they need, where their sums go.
#include "backend/cuda/program.cuh"
#include "backend/cuda/tensor_core.cuh"

#include "backend/cuda/trunk_kernels.cuh"

__global__ static void __launch_bounds__(TRUNK_THREADS, 1) forward_kernel(const trunk t) {
    extern __shared__ __align__(16) bits memory[];
    upstream_wait();
    downstream_start();
    trunk_forward_block(t, memory);
}

__global__ static void __launch_bounds__(TRUNK_THREADS, 1) backward_kernel(const trunk t) {
    extern __shared__ __align__(16) bits memory[];
    upstream_wait();
    downstream_start();
    trunk_backward_block(t, memory);
}

// ---- which nodes ----

// Do these two, and nobody else, read all of r? The second may be -1.
static bool read_by(const dc_program *p, dc_ref r, dc_ref one, dc_ref other) {
    return consumers(p, r, [=](const dc_node *n, int) {
        return n == node(p, one) || (other >= 0 && n == node(p, other));
    });
}

static bool is_convolution(const dc_program *p, dc_ref r, int side, int c, int d) {
    const dc_node *n = node(p, r);
    return n->op == DC_OP_conv3x3 && (int)n->a == side && (int)n->b == side &&
           node(p, n->in[1])->op == DC_OP_PARAM && node(p, n->in[2])->op == DC_OP_PARAM &&
           node(p, n->in[1])->rows == 9 * c && n->cols == side * side * d;
}

static dc_ref input_of(const dc_program *p, dc_ref r, dc_op op) {
    return r >= 0 && node(p, r)->op == op ? node(p, r)->in[0] : -1;
}

// A stage, from its sum back to what it reads. Returns that; -1: it is none.
static dc_ref trace_stage(const dc_program *p, int stage, dc_ref sum, dc_ref reader,
                          encoder_trunk *out) {
    int side = side_of(stage), d = channels_of(stage);
    if (node(p, sum)->op != DC_OP_add || !read_by(p, sum, reader, -1)) return -1;
    dc_ref pool = node(p, sum)->in[0], last = node(p, sum)->in[1];
    dc_ref middle = input_of(p, last, DC_OP_conv3x3), first = input_of(p, middle, DC_OP_relu),
           positive = input_of(p, first, DC_OP_conv3x3);
    dc_ref wide = input_of(p, pool, DC_OP_max_pool), x = input_of(p, wide, DC_OP_conv3x3);
    if (x < 0 || input_of(p, positive, DC_OP_relu) != pool) return -1;
    int c = node(p, x)->cols / (4 * side * side);
    bool fits = is_convolution(p, wide, 2 * side, c, d) && is_convolution(p, first, side, d, d) &&
                is_convolution(p, last, side, d, d) && read_by(p, last, sum, -1) &&
                read_by(p, middle, last, -1) && read_by(p, first, middle, -1) &&
                read_by(p, positive, first, -1) && read_by(p, pool, sum, positive) &&
                read_by(p, wide, pool, -1);
    if (!fits || (stage ? c != channels_of(stage - 1) : c > X_CHANNELS)) return -1;
    out->conv[3 * stage] = wide;
    out->conv[3 * stage + 1] = first;
    out->conv[3 * stage + 2] = last;
    out->inside.insert(out->inside.end(), {wide, pool, positive, first, middle, last, sum});
    return x;
}

// Are all weights trained, by these rows alone, and nothing else? Or none.
static bool trains_alike(const dc_program *p, const encoder_trunk *t) {
    const dc_node *out = node(p, t->out);
    for (dc_ref r : t->inside)
        if (node(p, r)->lo != out->lo || node(p, r)->hi != out->hi) return false;
    if (!trained(out)) return true;
    for (dc_ref r : t->conv)
        if (!wants(p, node(p, r), 1) || !wants(p, node(p, r), 2)) return false;
    return !wants(p, node(p, t->conv[0]), 0);
}

static bool trace(const dc_program *p, dc_ref out, encoder_trunk *t) {
    *t = encoder_trunk();
    t->out = out;
    if (node(p, out)->op != DC_OP_relu || node(p, out)->keep) return false;
    dc_ref at = node(p, out)->in[0], reader = out;
    for (int s = STAGES - 1; s >= 0 && at >= 0; s--) {
        dc_ref sum = at;
        at = trace_stage(p, s, sum, reader, t);
        reader = t->conv[3 * s];
    }
    if (at < 0) return false;
    t->x = at;
    return node(p, at)->e == 1 && trains_alike(p, t);
}

void dc_trunks_find(dc_program *p) {
    p->trunk_of.assign((size_t)p->g->count, -1);
    int bytes = std::max(TRUNK_FORWARD_BYTES, TRUNK_BACKWARD_BYTES);
    if (p->spec.precision != DC_BF16 || p->cuda->shared_most < bytes || dc_cuda_is_plain_only())
        return;
    for (dc_ref r = 0; r < p->g->count; r++) {
        encoder_trunk t;
        // What reads it takes bf16, as a layer does.
        if (!trace(p, r, &t) || !dc_layers_only(p, r)) continue;
        for (dc_ref i : t.inside)
            p->trunk_of[(size_t)i] = (int)p->trunks.size();
        p->trunk_of[(size_t)r] = (int)p->trunks.size();
        p->trunks.push_back(t);
    }
    for (dc_ref r = 0; r < p->g->count; r++)
        if (p->trunk_of[(size_t)r] >= 0) p->path[(size_t)r] = TRUNK_PATH;
}

// ---- memory ----

static dc_status take_stage(dc_program *p, encoder_trunk *t, int s) {
    trunk *j = &t->job;
    size_t cells = (size_t)j->rows * (size_t)cells_of_stage(s),
           trained_cells = (size_t)(j->hi - j->lo) * (size_t)cells_of_stage(s);
    DC_TRY(take(p, cells * sizeof(bits), (void **)&j->pool[s]));
    DC_TRY(take(p, cells * sizeof(bits), (void **)&j->middle[s]));
    DC_TRY(take(p, cells, (void **)&j->argmax[s]));
    if (s == STAGES - 1)
        j->out[s] = (bits *)value_of(p, t->out).p;
    else
        DC_TRY(take(p, cells * sizeof(bits), (void **)&j->out[s]));
    return trained_cells ? take(p, trained_cells * sizeof(bits), (void **)&j->grad[s]) : DC_OK;
}

static dc_status take_trunk(dc_program *p, encoder_trunk *t) {
    trunk *j = &t->job;
    const dc_node *out = node(p, t->out), *x = node(p, t->x);
    tensor rows = value_of(p, t->x);
    DC_CHECK(!rows.half && value_of(p, t->out).half && value_of(p, t->out).ld == out->cols);
    j->rows = out->rows;
    j->channels = x->cols / (SIDE * SIDE);
    j->x = (const float *)rows.p;
    j->x_step = rows.ld;
    int **used = &p->used[(size_t)t->x];
    if (x->op == DC_OP_INPUT && !*used) DC_TRY(upload(p, &x->rows, sizeof x->rows, (void **)used));
    j->used = *used;
    for (int i = 0; i < CONVS; i++) {
        j->w[i] = (const float *)value_of(p, node(p, t->conv[i])->in[1]).p;
        j->b[i] = (const float *)value_of(p, node(p, t->conv[i])->in[2]).p;
    }
    j->lo = out->lo;
    j->hi = out->hi;
    for (int s = 0; s < STAGES; s++)
        DC_TRY(take_stage(p, t, s));
    if (!trained(out)) return DC_OK;
    j->dout = (const bits *)grad_of(p, t->out).p;
    t->blocks = std::min(j->hi - j->lo, (int)MULTIPROCESSORS);
    return take(p, sizeof(float) * (size_t)t->blocks * (size_t)trunk_parts(*j), (void **)&j->parts);
}

dc_status dc_trunks_take(dc_program *p) {
    for (encoder_trunk &t : p->trunks)
        DC_TRY(take_trunk(p, &t));
    return DC_OK;
}

void dc_trunks_sums(dc_program *p) {
    for (const encoder_trunk &t : p->trunks) {
        if (!t.blocks) continue;
        int64_t stride = trunk_parts(t.job);
        for (int i = 0; i < CONVS; i++) {
            const dc_node *n = node(p, t.conv[i]);
            const float *at = t.job.parts + part_of(t.job, i);
            int d = channels_of(i / 3), weights = 9 * inputs_of(t.job, i) * d;
            dc_push_sum(p, n, 1, at, t.blocks, stride, 0, weights);
            dc_push_sum(p, n, 2, at + weights, t.blocks, stride, 0, d);
        }
    }
}

// ---- launches ----

dc_status dc_trunk_forward(dc_cuda *cuda, const encoder_trunk *t) {
    int blocks = std::min(t->job.rows, (int)MULTIPROCESSORS);
    return launch(cuda, forward_kernel, dim3((unsigned)blocks), TRUNK_THREADS, TRUNK_FORWARD_BYTES,
                  1, false, "encoder(", t->job);
}

dc_status dc_trunk_backward(dc_cuda *cuda, const encoder_trunk *t) {
    return launch(cuda, backward_kernel, dim3((unsigned)t->blocks), TRUNK_THREADS,
                  TRUNK_BACKWARD_BYTES, 1, false, "encoder(", t->job);
}
