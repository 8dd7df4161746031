// GPU, see gpu.h: puts together backend/cuda (the loss graph), sample/twin (the rows) and replay.
#include "train/gpu.h"

#include "backend/cuda/cuda.h"
#include "sample/twin.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNROLL = 10
}; // steps of a recorded graph: the gap between two launches is paid once for all

struct dc_gpu {
    dc_agent *agent;
    dc_cuda *cuda;
    dc_program *program;
    dc_twin *twin;
    dc_recording *one, *many;
    int metrics;
};

static dc_status enqueue(void *ctx) {
    dc_gpu *gpu = ctx;
    DC_TRY(dc_twin_next(gpu->twin));
    DC_TRY(dc_program_gradients(gpu->program));
    return dc_program_update(gpu->program);
}

static dc_status build(dc_gpu *gpu, const dc_gpu_spec *spec) {
    dc_agent *a = gpu->agent;
    dc_ref metrics[DC_METRICS_MAX];
    for (int i = 0; i < a->metric_count; i++)
        metrics[i] = a->metrics[i].node;
    dc_program_spec program = {.graph = &a->graph,
                               .size = a->params.slabs.size,
                               .ema_size = a->params.slabs.ema_size,
                               .precision = (dc_precision)spec->precision,
                               .metrics = metrics,
                               .metric_count = a->metric_count,
                               .lr = spec->lr,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .tau = spec->tau,
                               .policy_first = a->policy_first,
                               .policy_after = a->policy_after};
    gpu->metrics = a->metric_count;
    DC_TRY(dc_cuda_open(&gpu->cuda));
    DC_TRY(dc_program_new(&gpu->program, gpu->cuda, &program));
    DC_TRY(dc_twin_new(&gpu->twin, gpu->cuda, gpu->program, a->sampler, &a->feeds, a->data));
    double none[DC_CUDA_SUMS] = {0};
    DC_TRY(dc_gpu_send(gpu, dc_sampler_step(a->sampler), none));
    DC_TRY(dc_recording_new(&gpu->one, gpu->cuda, enqueue, gpu, 1));
    return dc_recording_new(&gpu->many, gpu->cuda, enqueue, gpu, UNROLL);
}

dc_status dc_gpu_new(dc_gpu **out, dc_agent *agent, const dc_gpu_spec *spec) {
    *out = NULL;
    dc_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    gpu->agent = agent;
    dc_status status = build(gpu, spec);
    if (status != DC_OK) return dc_gpu_free(gpu), status;
    *out = gpu;
    return DC_OK;
}

void dc_gpu_free(dc_gpu *gpu) {
    if (!gpu) return;
    dc_recording_free(gpu->one);
    dc_recording_free(gpu->many);
    dc_twin_free(gpu->twin);
    dc_program_free(gpu->program);
    dc_cuda_close(gpu->cuda);
    free(gpu);
}

const char *dc_gpu_name(const dc_gpu *gpu) {
    return dc_cuda_name(gpu->cuda);
}

// Pairs of host and device slabs that make up the state.
static int slab_pairs(dc_gpu *gpu, dc_real *host[4], dc_real *device[4], int64_t size[4]) {
    const dc_slabs *h = &gpu->agent->params.slabs, *d = dc_program_slabs(gpu->program);
    dc_real *hosts[] = {h->live, h->m, h->v, h->ema}, *devices[] = {d->live, d->m, d->v, d->ema};
    for (int i = 0; i < 4; i++) {
        host[i] = hosts[i];
        device[i] = devices[i];
        size[i] = i < 3 ? h->size : h->ema_size;
    }
    return 4;
}

dc_status dc_gpu_send(dc_gpu *gpu, uint64_t step, const double *sums) {
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(gpu, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, device[i], host[i], (size_t)size[i] * sizeof(dc_real)));
    DC_TRY(dc_program_refresh(gpu->program));
    dc_cuda_state state = {.step = step, .bad_step = -1};
    memcpy(state.sums, sums, (size_t)(gpu->metrics + 1) * sizeof *sums);
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(gpu->program), &state, sizeof state));
    return dc_twin_put(gpu->twin, gpu->agent->sampler);
}

static dc_status read_state(dc_gpu *gpu, dc_cuda_state *state) {
    return dc_cuda_get(gpu->cuda, state, dc_program_state(gpu->program), sizeof *state);
}

dc_status dc_gpu_train(dc_gpu *gpu, int64_t count, int64_t *bad) {
    for (; count >= UNROLL; count -= UNROLL)
        DC_TRY(dc_recording_run(gpu->many));
    for (; count > 0; count--)
        DC_TRY(dc_recording_run(gpu->one));
    dc_cuda_state state;
    DC_TRY(read_state(gpu, &state));
    *bad = state.bad_step;
    return DC_OK;
}

dc_status dc_gpu_sums(dc_gpu *gpu, double *sums, bool reset) {
    dc_cuda_state state;
    DC_TRY(read_state(gpu, &state));
    memcpy(sums, state.sums, (size_t)(gpu->metrics + 1) * sizeof *sums);
    if (!reset) return DC_OK;
    memset(state.sums, 0, sizeof state.sums);
    return dc_cuda_put(gpu->cuda, dc_program_state(gpu->program), &state, sizeof state);
}

dc_status dc_gpu_fetch(dc_gpu *gpu) {
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(gpu, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_get(gpu->cuda, host[i], device[i], (size_t)size[i] * sizeof(dc_real)));
    dc_cuda_state state;
    DC_TRY(read_state(gpu, &state));
    return dc_twin_get(gpu->twin, gpu->agent->sampler, state.step);
}

dc_status dc_gpu_gradients(dc_gpu *gpu, float *values) {
    dc_agent *a = gpu->agent;
    DC_TRY(dc_twin_next(gpu->twin));
    DC_TRY(dc_program_gradients(gpu->program));
    DC_TRY(dc_cuda_get(gpu->cuda, a->params.slabs.grad, dc_program_slabs(gpu->program)->grad,
                       (size_t)a->params.slabs.size * sizeof(dc_real)));
    for (int i = 0; i < a->metric_count; i++)
        DC_TRY(dc_program_value(gpu->program, a->metrics[i].node, &values[i]));
    return DC_OK;
}
