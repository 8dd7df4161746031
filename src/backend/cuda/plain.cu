// Plain ops, see plain.cuh: from a node of a graph to a launch. The one place that knows which kernel computes which op.
#include "backend/cuda/plain.cuh"
#include "backend/cuda/program.cuh"

static plain_fn *find(dc_op op, bool back) {
    plain_fn *const kinds[] = {dc_plain_pointwise(op, back), dc_plain_reduction(op, back),
                               dc_plain_rows(op, back),      dc_plain_gather(op, back),
                               dc_plain_iqe(op, back),       dc_plain_mrn(op, back),
                               dc_plain_picture(op, back)};
    for (plain_fn *f : kinds)
        if (f) return f;
    return NULL;
}

bool dc_plain_has(dc_op op) {
    return op == DC_OP_gelu || op == DC_OP_pair_dot || (find(op, false) && find(op, true));
}

// What iqe's forward leaves for its backward, where its kernels have groups of that size in registers.
static dc_status take_marks(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    tensor values[] = {value_of(p, n->in[0]), value_of(p, n->in[1])};
    int group = (int)n->a;
    if (!trained(n) || !(group == 8 || group == 16)) return DC_OK;
    for (const tensor &t : values)
        if (!by_four(t, t.cols) || t.ld % 4) return DC_OK;
    return take(p, sizeof(uint32_t) * (size_t)n->rows * (size_t)(x->cols / group),
                (void **)&p->plain[(size_t)r].marks);
}

// What mrn_pairs keeps of each pair and chunk, if there is a gradient.
static dc_status take_pairs(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    plain_memory *m = &p->plain[(size_t)r];
    size_t count = (size_t)n->e * (size_t)n->rows * (size_t)n->cols * (size_t)n->a;
    if (!trained(n)) return DC_OK;
    DC_TRY(take(p, count * sizeof *m->kept, (void **)&m->kept));
    return take(p, count * sizeof *m->which, (void **)&m->which);
}

dc_status dc_plain_take(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    plain_memory *m = &p->plain[(size_t)r];
    if (n->op == DC_OP_mrn_pairs) return take_pairs(p, r);
    if (p->path[(size_t)r] != PLAIN || !(dc_is_reduction(n->op) || n->op == DC_OP_iqe))
        return DC_OK;
    if (n->op == DC_OP_iqe) DC_TRY(take_marks(p, r));
    DC_TRY(take(p, 2 * PLAIN_SUMS * sizeof *m->sums, (void **)&m->sums));
    DC_TRY(take(p, sizeof *m->done, (void **)&m->done));
    size_t kept = n->op == DC_OP_iqe ? (size_t)n->rows * DC_IQE_STATS : 1;
    return take(p, kept * sizeof *m->kept, (void **)&m->kept);
}

static plain new_plain(const dc_program *p, dc_ref r, int input) {
    const dc_node *n = node(p, r);
    const plain_memory *m = &p->plain[(size_t)r];
    plain j = {};
    j.op = n->op;
    j.input = input;
    j.a = (float)n->a;
    j.b = (float)n->b;
    j.in_count = n->in_count;
    j.lo = n->lo;
    j.sums = m->sums;
    j.done = m->done;
    j.kept = m->kept;
    j.marks = m->marks;
    j.which = m->which;
    return j;
}

static bool row_by_row(const dc_node *n, int i) {
    return dc_rule(n->op)->rowwise >> i & 1;
}

// Value of input i as the gradient of n's trained rows needs it.
static tensor value_for_backward(const dc_program *p, const dc_node *n, int i) {
    if (n->op == DC_OP_expected && i == 1) { // one row of it for every number of the other input
        int cols = node(p, n->in[0])->cols;
        return rows_of(value_of(p, n->in[1]), n->lo * cols, n->hi * cols);
    }
    return row_by_row(n, i) ? input_value(p, n, i) : value_of(p, n->in[i]);
}

static tensor gradient_of_input(const dc_program *p, const dc_node *n, int i) {
    return row_by_row(n, i) ? input_grad(p, n, i) : grad_of(p, n->in[i]);
}

// Gradients to both may be made at once if they lie apart, as rows of one matrix may.
bool dc_plain_pairs(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (!p->plain[(size_t)r].marks || !wants(p, n, 0) || !wants(p, n, 1)) return false;
    const dc_node *x = node(p, n->in[0]), *y = node(p, n->in[1]);
    return x->base != y->base || x->row0 + n->hi <= y->row0 + n->lo ||
           y->row0 + n->hi <= x->row0 + n->lo;
}

// ---- ops with operands of their own ----

static gelu_job new_gelu(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    gelu_job j = {};
    j.x = value_of(p, n->in[0]);
    j.y = value_of(p, r);
    if (x->op == DC_OP_linear && p->activation_of[(size_t)n->in[0]] == r)
        j.bias = (const float *)value_of(p, x->in[2]).p;
    return j;
}

static dc_status gelu_backward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    gelu_job j = new_gelu(p, r);
    j.x = input_value(p, n, 0);
    j.y = input_grad(p, n, 0);
    j.dy = grad_of(p, r);
    j.add = adds(p, n, 0);
    j.parts = p->parts[(size_t)r].p;
    return dc_gelu_bwd(p->cuda, &j);
}

// z = x y^T. In bf16 its products read copies, as those of layers do; forward makes them.
static dc_status pair_forward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor in[2];
    for (int i = 0; i < 2; i++) {
        tensor half = p->plain[(size_t)r].half[i];
        in[i] = value_of(p, n->in[i]);
        if (!half.p) continue;
        DC_TRY(dc_plain_cast(p->cuda, in[i], half));
        in[i] = half;
    }
    return dc_gemm_cuda(p->cuda, p->spec.precision, in[0], false, in[1], true, value_of(p, r),
                        false);
}

// dx = dz y, dy = dz^T x.
static dc_status pair_backward(dc_program *p, dc_ref r, int input) {
    const dc_node *n = node(p, r);
    tensor other = value_for_backward(p, n, 1 - input), half = p->plain[(size_t)r].half[1 - input],
           dz = p->cast[(size_t)r].p ? p->cast[(size_t)r] : grad_of(p, r);
    if (half.p) other = row_by_row(n, 1 - input) ? rows_of(half, n->lo, n->hi) : half;
    return dc_gemm_cuda(p->cuda, p->spec.precision, dz, input == 1, other, false,
                        gradient_of_input(p, n, input), adds(p, n, input));
}

// ---- launches ----

dc_status dc_plain_forward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op == DC_OP_gelu) {
        gelu_job j = new_gelu(p, r);
        return dc_gelu_fwd(p->cuda, &j);
    }
    if (n->op == DC_OP_pair_dot) return pair_forward(p, r);
    plain j = new_plain(p, r, -1);
    for (int i = 0; i < n->in_count; i++)
        j.x[i] = value_of(p, n->in[i]);
    j.y = value_of(p, r);
    return find(n->op, false)(p->cuda, &j);
}

dc_status dc_plain_backward(dc_program *p, dc_ref r, int input) {
    const dc_node *n = node(p, r);
    if (n->op == DC_OP_gelu) return gelu_backward(p, r);
    if (n->op == DC_OP_pair_dot) return pair_backward(p, r, input);
    plain j = new_plain(p, r, input);
    for (int i = 0; i < n->in_count; i++)
        j.x[i] = value_for_backward(p, n, i);
    j.y = gradient_of_input(p, n, input);
    j.dy = grad_of(p, r);
    j.add = adds(p, n, input);
    if (input == 0 && dc_plain_pairs(p, r)) {
        j.y1 = gradient_of_input(p, n, 1);
        j.add1 = adds(p, n, 1);
    }
    return find(n->op, true)(p->cuda, &j);
}
