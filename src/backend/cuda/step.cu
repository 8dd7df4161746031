// A step as launches on streams: layers and tasks, then the update, in two parts where some weights can go early, with the
// rows of the next step made beside it. What there is to start, program.cu and tasks.cu have found out.
#include "backend/cuda/plain.cuh"
#include "backend/cuda/program.cuh"

// ---- layers ----

static tensor member(tensor t, int e) {
    if (t.e > 1) t.p = (char *)t.p + e * t.step * (t.half ? 2 : 4);
    t.e = 1;
    return t;
}

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
    return p->activation_of[r] >= 0 ? DC_OK : dc_bias_fwd(p->cuda, y, value_of(p, n->in[2]));
}

// As products read it, if their other factor is bf16.
static tensor grad_for_products(const dc_program *p, dc_ref r) {
    return p->cast[(size_t)r].p ? p->cast[(size_t)r] : grad_of(p, r);
}

// A shared input receives from every member, in order.
static dc_status linear_dx(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor dy = grad_for_products(p, r);
    tensor dx = input_grad(p, n, 0), w = weights(p, n->in[1], dy.half);
    bool add = adds(p, n, 0);
    auto to_dx = [&](tensor g, tensor by, bool adding) {
        if (is_head(p, r)) return dc_head_dx(p->cuda, g, by, dx, adding);
        return dc_gemm_cuda(p->cuda, p->spec.precision, g, false, by, true, dx, adding);
    };
    if (dx.e == dy.e) return to_dx(dy, w, add);
    for (int e = 0; e < dy.e; e++)
        DC_TRY(to_dx(member(dy, e), member(w, e), add || e > 0));
    return DC_OK;
}

// dW of an input whose rows are padded, and of the padding: one part of a sum.
static dc_status padded_dw(dc_program *p, dc_ref r, tensor x) {
    tensor dy = grad_for_products(p, r);
    x.cols = padded_inputs(p, r);
    tensor dw = {p->parts[r].p, dy.e, x.cols, dy.cols, dy.cols, (int64_t)x.cols * dy.cols, false};
    return dc_gemm_cuda(p->cuda, p->spec.precision, x, true, dy, false, dw, false);
}

static dc_status linear_dw(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    tensor dy = grad_of(p, r), x = input_value(p, n, 0);
    if (is_head(p, r)) return dc_head_dw(p->cuda, x, dy, p->parts[r].p);
    if (padded_inputs(p, r)) return wants(p, n, 1) ? padded_dw(p, r, x) : DC_OK;
    if (is_thin(p, r)) return dc_thin_dw(p->cuda, x, dy, p->parts[r].p);
    if (wants(p, n, 1))
        DC_TRY(dc_gemm_cuda(p->cuda, p->spec.precision, x, true, grad_for_products(p, r), false,
                            grad_of(p, n->in[1]), adds(p, n, 1)));
    if (p->activation_of[r] >= 0) return DC_OK;
    x.cols = 0; // the bias alone
    return dc_head_dw(p->cuda, x, dy, p->parts[r].p);
}

// Numbers for every column as the kernels have them: `packed`, where members do not follow each other.
static dc_status columns_of(dc_program *p, dc_ref from, float *packed, const float **out) {
    tensor t = value_of(p, from);
    size_t row = (size_t)t.cols * sizeof(float);
    *out = packed ? packed : (const float *)t.p;
    if (packed) p->cuda->early = false; // the kernel follows a copy
    if (packed)
        CU(cudaMemcpy2DAsync(packed, row, t.p, (size_t)t.step * sizeof(float), row, (size_t)t.e,
                             cudaMemcpyDeviceToDevice, p->cuda->stream));
    return DC_OK;
}

static dc_status norm_job(dc_program *p, dc_ref r, layernorm *job) {
    const dc_node *n = node(p, r), *x = node(p, n->in[0]);
    *job = {};
    job->x = value_of(p, n->in[0]);
    job->y = value_of(p, r);
    job->stats = p->stats[r];
    job->stats_rows = n->rows;
    if (x->op == DC_OP_linear && p->activation_of[n->in[0]] == r)
        job->add = (const float *)value_of(p, x->in[2]).p;
    DC_TRY(columns_of(p, n->in[1], p->norm[(size_t)r].scale, &job->scale));
    return columns_of(p, n->in[2], p->norm[(size_t)r].bias, &job->bias);
}

static dc_status norm_bwd(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    layernorm job;
    DC_TRY(norm_job(p, r, &job));
    job.x = input_value(p, n, 0);
    job.stats += n->lo;
    tensor dx = p->norm[(size_t)r].dx; // to be added to what is there
    bool add = dx.p != NULL;
    if (wants(p, n, 0) && !add) dx = input_grad(p, n, 0);
    DC_TRY(dc_layernorm_bwd(p->cuda, &job, grad_of(p, r), dx, p->parts[r].p));
    return add ? dc_plain_copy(p->cuda, dx, input_grad(p, n, 0), true) : DC_OK;
}

static dc_status forward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (p->path[(size_t)r] == PLAIN) return dc_plain_forward(p, r);
    if (n->op == DC_OP_linear) return linear_fwd(p, r);
    if (n->op == DC_OP_splice)
        return dc_splice_fwd(p->cuda, value_of(p, n->in[0]), value_of(p, n->in[1]), value_of(p, r),
                             (int)n->a);
    layernorm job;
    DC_TRY(norm_job(p, r, &job));
    return dc_layernorm_fwd(p->cuda, &job);
}

static dc_status backward(dc_program *p, dc_ref r, int input) {
    const dc_node *n = node(p, r);
    if (p->path[(size_t)r] == PLAIN) return dc_plain_backward(p, r, input);
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

// ---- tasks ----

static dc_status net_gradients(dc_program *p, const mlp *j) {
    DC_TRY(dc_mlp_weights(p->cuda, j, true, NULL));
    return dc_mlp_weights(p->cuda, j, false, NULL);
}

static dc_status start(dc_program *p, const task *u) {
    switch (u->what) {
    case task::FORWARD:
        return forward(p, u->node);
    case task::GRADIENT:
        return backward(p, u->node, u->input);
    case task::WEIGHTS:
        return linear_dw(p, u->node);
    case task::CAST:
        return dc_plain_cast(p->cuda, grad_of(p, u->node), p->cast[(size_t)u->node]);
    case task::ZERO: {
        tensor t = grad_of(p, u->node);
        CU(cudaMemsetAsync(t.p, 0, (size_t)t.e * t.rows * t.ld * (t.half ? 2 : 4),
                           p->cuda->stream));
        return DC_OK;
    }
    case task::NET:
        return dc_mlp_forward(p->cuda, &p->nets[(size_t)u->node].job);
    case task::NET_BACK:
        return dc_mlp_backward(p->cuda, &p->nets[(size_t)u->node].job);
    case task::NET_WEIGHTS:
        return net_gradients(p, &p->nets[(size_t)u->node].job);
    case task::NET_HEAD: {
        const net *n = &p->nets[(size_t)u->node];
        return dc_mlp_head_weights(p->cuda, &n->job, p->parts[(size_t)n->head].p);
    }
    case task::TRUNK:
        return dc_trunk_forward(p->cuda, &p->trunks[(size_t)u->node]);
    case task::TRUNK_BACK:
        return dc_trunk_backward(p->cuda, &p->trunks[(size_t)u->node]);
    case task::GROUP: {
        const group *g = &p->groups[(size_t)u->node];
        return dc_fused_run(p->cuda, &g->list);
    }
    }
    return DC_OK;
}

// May a task start before the one before it on its stream is done? dW would only take room from who is still at work.
static bool starts_early(const task *before, const task *u) {
    return before && before->what != task::ZERO && u->what != task::NET_WEIGHTS && u->waits.empty();
}

// Start a task on its stream, after task last[stream].
static dc_status start_on_stream(dc_program *p, const task *u, const task **last) {
    cudaStream_t stream = p->cuda->streams[u->stream];
    if (u->stream && !last[u->stream]) CU(cudaStreamWaitEvent(stream, p->begin));
    for (int v : u->waits)
        CU(cudaStreamWaitEvent(stream, p->tasks[(size_t)v].done));
    p->cuda->stream = stream;
    p->cuda->workspace = p->cuda->workspaces[u->stream];
    p->cuda->early = starts_early(last[u->stream], u);
    dc_status status = start(p, u);
    p->cuda->early = false;
    DC_TRY(status);
    last[u->stream] = u;
    if (u->awaited) CU(cudaEventRecord(u->done, stream));
    return DC_OK;
}

// Let a stream wait for what was started on streams: all that is late, or all that is not.
static dc_status await_streams(dc_program *p, cudaStream_t stream, bool late) {
    for (int l = 0; l < STREAMS; l++) {
        int u = dc_tasks_last(p, l, late);
        if (u >= 0 && stream != p->cuda->streams[l])
            CU(cudaStreamWaitEvent(stream, p->tasks[(size_t)u].done));
    }
    return DC_OK;
}

static dc_status start_tasks(dc_program *p, bool late, const task **last) {
    for (task &u : p->tasks)
        if (u.late == late) DC_TRY(start_on_stream(p, &u, last));
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
static dc_status update_rest(dc_program *p, int part, cudaStream_t stream) {
    part_events *done = &p->parts_done[part];
    CU(cudaStreamWaitEvent(stream, done->begin));
    p->cuda->stream = stream;
    DC_TRY(each_net(p, part, [p](mlp *j) { return dc_mlp_weights(p->cuda, j, true, NULL); }));
    CU(cudaEventRecord(done->inputs, stream));
    CU(cudaStreamWaitEvent(stream, done->summed));
    DC_TRY(dc_update_run(p->cuda, &p->job[part]));
    CU(cudaEventRecord(done->rest, stream));
    return DC_OK;
}

// The other layers of networks: one after the other on two streams. The first may start with its products while sums over
// rows are made.
static dc_status update_nets(dc_program *p, int part, cudaStream_t stream, cudaStream_t other) {
    part_events *done = &p->parts_done[part];
    int count = 0;
    DC_TRY(each_net(p, part, [&](mlp *j) -> dc_status {
        p->cuda->early = !count;
        if (count == 1) CU(cudaStreamWaitEvent(other, done->summed));
        p->cuda->stream = count++ % 2 ? other : stream;
        dc_status status = dc_mlp_weights(p->cuda, j, false, &p->job[part]);
        p->cuda->early = false;
        return status;
    }));
    if (count < 2) return DC_OK;
    CU(cudaEventRecord(done->more, other));
    CU(cudaStreamWaitEvent(stream, done->more));
    return DC_OK;
}

// On streams[0], which has waited for whoever reads or makes what is updated, and two more.
static dc_status update_part(dc_program *p, int part, const cudaStream_t streams[3]) {
    part_events *done = &p->parts_done[part];
    if (p->ticking) CU(cudaStreamWaitEvent(streams[0], p->ticked)); // it reads what is overwritten
    CU(cudaEventRecord(done->begin, streams[0]));
    p->cuda->stream = streams[0];
    DC_TRY(dc_column_sums(p->cuda, &p->job[part]));
    CU(cudaEventRecord(done->summed, streams[0]));
    DC_TRY(update_nets(p, part, streams[0], streams[2]));
    DC_TRY(update_rest(p, part, streams[1]));
    CU(cudaStreamWaitEvent(streams[0], done->rest));
    return DC_OK;
}

// ---- a step ----

// The early part of the update, beside what is late.
static dc_status start_early(dc_program *p) {
    cudaStream_t *streams = p->cuda->streams + EARLY_STREAM;
    DC_TRY(await_streams(p, streams[0], false));
    DC_TRY(update_part(p, 0, streams));
    CU(cudaEventRecord(p->early, streams[0]));
    return DC_OK;
}

// Stream 0 has waited for all tasks in the end, but not for the early part of the update.
static dc_status start_all(dc_program *p, bool update) {
    const task *last[STREAMS] = {};
    DC_TRY(start_tasks(p, false, last));
    if (update && p->cut) DC_TRY(start_early(p));
    DC_TRY(start_tasks(p, true, last));
    for (int late = 0; late < 2; late++)
        DC_TRY(await_streams(p, p->cuda->streams[0], late));
    return DC_OK;
}

static dc_status start_gradients(dc_program *p) {
    CU(cudaEventRecord(p->begin, p->cuda->streams[0]));
    DC_TRY(start_all(p, false));
    p->cuda->stream = p->cuda->streams[0];
    p->cuda->workspace = p->cuda->workspaces[0];
    for (int part = p->cut ? 0 : 1; part < 2; part++) {
        DC_TRY(each_net(p, part, [p](mlp *j) { return net_gradients(p, j); }));
        DC_TRY(dc_column_sums(p->cuda, &p->job[part]));
    }
    return DC_OK;
}

// Rows of the next step: drawn beside all of this one, and gathered when nobody reads this one's any more.
static dc_status draw_beside(dc_program *p, const dc_beside *beside) {
    cudaStream_t stream = p->cuda->streams[DRAW_STREAM];
    CU(cudaStreamWaitEvent(stream, p->begin));
    p->cuda->stream = stream;
    DC_TRY(beside->draw(beside->ctx));
    CU(cudaEventRecord(p->drawn, stream));
    return DC_OK;
}

// Stream 1 has nothing to do then.
static dc_status gather_beside(dc_program *p, const dc_beside *beside) {
    cudaStream_t stream = p->cuda->streams[1];
    CU(cudaStreamWaitEvent(stream, p->drawn));
    CU(cudaStreamWaitEvent(stream, p->parts_done[1].begin));
    p->cuda->stream = stream;
    DC_TRY(beside->pack(beside->ctx));
    for (int part = p->cut ? 0 : 1; part < 2; part++)
        CU(cudaStreamWaitEvent(stream, p->parts_done[part].inputs));
    DC_TRY(beside->gather(beside->ctx));
    CU(cudaEventRecord(p->gathered, stream));
    CU(cudaStreamWaitEvent(p->cuda->streams[0], p->gathered));
    return DC_OK;
}

// Metrics and the counter, on the stream that draws, whose rows depend on it: the next step's layers do not wait for it.
static dc_status end_step(dc_program *p, bool more) {
    cudaStream_t stream = p->cuda->streams[DRAW_STREAM];
    CU(cudaEventRecord(p->updated, p->cuda->streams[0]));
    CU(cudaStreamWaitEvent(stream, p->updated));
    p->cuda->stream = stream;
    DC_TRY(dc_tick_run(p->cuda, &p->job[1]));
    CU(cudaEventRecord(p->ticked, stream));
    p->ticking = more;
    if (!more) CU(cudaStreamWaitEvent(p->cuda->streams[0], p->ticked));
    return DC_OK;
}

static dc_status start_step(dc_program *p, const dc_beside *beside) {
    cudaStream_t *streams = p->cuda->streams, last[] = {streams[0], streams[2], streams[3]};
    CU(cudaEventRecord(p->begin, streams[0]));
    if (beside) DC_TRY(draw_beside(p, beside));
    DC_TRY(start_all(p, true));
    if (p->cut) CU(cudaStreamWaitEvent(streams[0], p->parts_done[0].summed)); // whether it goes
    DC_TRY(update_part(p, 1, last));
    if (p->cut) CU(cudaStreamWaitEvent(streams[0], p->early));
    if (beside) DC_TRY(gather_beside(p, beside));
    p->cuda->stream = streams[0];
    DC_TRY(dc_copies_loose(p->cuda, &p->job[1]));
    return end_step(p, beside != NULL);
}

// What comes after the gradients, where all of them lie in the slab.
static dc_status start_update(dc_program *p) {
    cudaStream_t stream = p->cuda->streams[0];
    p->cuda->stream = stream;
    if (p->ticking) CU(cudaStreamWaitEvent(stream, p->ticked));
    DC_TRY(dc_update_run(p->cuda, &p->job[1]));
    DC_TRY(dc_copies_loose(p->cuda, &p->job[1]));
    return end_step(p, false);
}

// Whatever happened, stream 0 is the current one again.
static dc_status end_on_stream_0(dc_program *p, dc_status status) {
    p->cuda->stream = p->cuda->streams[0];
    p->cuda->workspace = p->cuda->workspaces[0];
    if (status != DC_OK) p->ticking = false;
    return status;
}

extern "C" dc_status dc_program_gradients(dc_program *p) {
    return end_on_stream_0(p, start_gradients(p));
}

extern "C" dc_status dc_program_update(dc_program *p) {
    DC_CHECK(p->spec.whole_gradients);
    return end_on_stream_0(p, start_update(p));
}

extern "C" dc_status dc_program_step(dc_program *p, const dc_beside *beside) {
    return end_on_stream_0(p, start_step(p, beside));
}
