// One batch on a CUDA device, see cuda_batch.h.
#include "train/cuda_batch.h"

#ifdef DC_CUDA_BUILD

#include <stdlib.h>
#include <string.h>

struct dc_cuda_batch {
    dc_agent *agent;
    dc_cuda *cuda;
    dc_program *program;
};

dc_status dc_cuda_compile(dc_program **out, dc_cuda *cuda, const dc_agent *a,
                          const dc_trainer_spec *spec, int beside, bool whole_gradients) {
    dc_ref metrics[DC_METRICS_MAX];
    for (int i = 0; i < a->metric_count; i++)
        metrics[i] = a->metrics[i].node;
    dc_adam adam = dc_agent_adam(a, spec->lr, spec->tau, 0);
    dc_program_spec program = {.graph = &a->graph,
                               .size = a->params.slabs.size,
                               .ema_size = a->params.slabs.ema_size,
                               .precision = (dc_precision)spec->precision,
                               .metrics = metrics,
                               .metric_count = a->metric_count,
                               .lr = adam.lr,
                               .beta1 = adam.beta1,
                               .beta2 = adam.beta2,
                               .eps = adam.eps,
                               .tau = adam.tau,
                               .policy_first = a->nets.policy_first,
                               .policy_after = a->policy_after,
                               .beside = beside,
                               .whole_gradients = whole_gradients};
    return dc_program_new(out, cuda, &program);
}

static uint16_t to_bf16(float x) { // to the nearest, or even; NaN stays one
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Rows (rows, cols) as the device keeps them: `ld` numbers apart, zeros between.
static void lay_out(dc_tensor from, const dc_cuda_input *to, void *raw) {
    for (int r = 0; r < from.rows; r++)
        for (int c = 0; c < from.cols; c++) {
            float x = from.p[(int64_t)r * from.cols + c];
            int64_t at = (int64_t)r * to->ld + c;
            if (to->half)
                ((uint16_t *)raw)[at] = to_bf16(x);
            else
                ((float *)raw)[at] = x;
        }
}

static dc_status send_input(const dc_cuda_batch *b, dc_ref input) {
    const dc_exec *exec = &b->agent->exec;
    dc_tensor from = dc_value(exec, input);
    dc_cuda_input to = dc_program_input(b->program, input);
    if (!to.p) return DC_OK; // nothing reads it
    size_t width = to.half ? sizeof(uint16_t) : sizeof(float),
           numbers = (size_t)from.rows * (size_t)to.ld;
    void *raw = calloc(numbers, width);
    if (!raw) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the batch");
    lay_out(from, &to, raw);
    dc_status status = dc_cuda_put(b->cuda, to.p, raw, numbers * width);
    free(raw);
    int *used = dc_program_used(b->program, input);
    if (status != DC_OK || !used) return status;
    return dc_cuda_put(b->cuda, used, &exec->used[input], sizeof *used);
}

static dc_status send(dc_cuda_batch *b) {
    dc_agent *a = b->agent;
    const dc_slabs *h = &a->params.slabs, *d = dc_program_slabs(b->program);
    dc_cuda_state state = {.bad_step = -1};
    DC_TRY(dc_cuda_put(b->cuda, d->live, h->live, (size_t)h->size * sizeof *h->live));
    DC_TRY(dc_cuda_put(b->cuda, d->ema, h->ema, (size_t)h->ema_size * sizeof *h->ema));
    DC_TRY(dc_program_refresh(b->program));
    DC_TRY(dc_cuda_put(b->cuda, dc_program_state(b->program), &state, sizeof state));
    dc_gather(&a->feeds, a->sampler, &a->exec);
    for (dc_ref r = 0; r < a->graph.count; r++)
        if (a->graph.nodes[r].op == DC_OP_INPUT) DC_TRY(send_input(b, r));
    return DC_OK;
}

static dc_status build(dc_cuda_batch *b, const dc_trainer_spec *spec) {
    DC_TRY(dc_cuda_open(&b->cuda));
    DC_TRY(dc_cuda_compile(&b->program, b->cuda, b->agent, spec, 0, true));
    return send(b);
}

dc_status dc_cuda_batch_new(dc_cuda_batch **out, dc_agent *agent, const dc_trainer_spec *spec) {
    *out = NULL;
    dc_cuda_batch *b = calloc(1, sizeof *b);
    if (!b) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    b->agent = agent;
    dc_cuda_alone();
    dc_status status = build(b, spec);
    dc_cuda_together();
    if (status != DC_OK) return dc_cuda_batch_free(b), status;
    *out = b;
    return DC_OK;
}

void dc_cuda_batch_free(dc_cuda_batch *b) {
    if (!b) return;
    dc_cuda_alone();
    dc_program_free(b->program);
    dc_cuda_close(b->cuda);
    dc_cuda_together();
    free(b);
}

dc_status dc_cuda_batch_gradients(dc_cuda_batch *b, float *values) {
    const dc_agent *a = b->agent;
    const dc_slabs *h = &a->params.slabs;
    DC_TRY(dc_program_gradients(b->program));
    DC_TRY(dc_cuda_get(b->cuda, h->grad, dc_program_slabs(b->program)->grad,
                       (size_t)h->size * sizeof *h->grad));
    for (int i = 0; i < a->metric_count; i++)
        DC_TRY(dc_program_value(b->program, a->metrics[i].node, &values[i]));
    return DC_OK;
}

dc_status dc_cuda_batch_update(dc_cuda_batch *b) {
    dc_cuda_state state;
    DC_TRY(dc_program_update(b->program));
    DC_TRY(dc_cuda_get(b->cuda, &state, dc_program_state(b->program), sizeof state));
    if (state.bad_step < 0) return DC_OK;
    return dc_fail(DC_NOT_FINITE, "look at weights and batch",
                   "NaN or Inf in loss or gradient of update %lld", (long long)state.bad_step);
}

dc_status dc_cuda_batch_fetch(dc_cuda_batch *b) {
    const dc_slabs *h = &b->agent->params.slabs, *d = dc_program_slabs(b->program);
    DC_TRY(dc_cuda_get(b->cuda, h->live, d->live, (size_t)h->size * sizeof *h->live));
    return dc_cuda_get(b->cuda, h->ema, d->ema, (size_t)h->ema_size * sizeof *h->ema);
}

#else // this build has no CUDA

dc_status dc_cuda_batch_new(dc_cuda_batch **batch, dc_agent *agent, const dc_trainer_spec *spec) {
    (void)agent;
    (void)spec;
    *batch = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "install the CUDA toolkit (nvcc) and build again, or use --device cpu",
                   "this build has no CUDA backend (--device cuda)");
}

void dc_cuda_batch_free(dc_cuda_batch *batch) {
    (void)batch;
}

dc_status dc_cuda_batch_gradients(dc_cuda_batch *batch, float *values) {
    (void)batch;
    (void)values;
    return DC_OK;
}

dc_status dc_cuda_batch_update(dc_cuda_batch *batch) {
    (void)batch;
    return DC_OK;
}

dc_status dc_cuda_batch_fetch(dc_cuda_batch *batch) {
    (void)batch;
    return DC_OK;
}

#endif
