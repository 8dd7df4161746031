// GPU, see gpu.h: puts together backend/cuda (the loss graph), sample/twin (the rows) and replay. A
// member is a program and its twin; a recorded step is theirs, one member after the other.
#include "train/gpu.h"

#include "backend/cuda/cuda.h"
#include "sample/twin.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNROLL = 10
}; // steps of a recorded graph: the gap between two launches is paid once for all

typedef struct member {
    dc_agent *agent;
    dc_program *program;
    dc_twin *twin;
} member;

struct dc_gpu {
    dc_cuda *cuda;
    dc_twin_data *data; // what the twins share
    member *members;    // (count)
    int count;
    dc_recording *one, *many;
    int metrics;
};

static dc_status enqueue(void *ctx) {
    dc_gpu *gpu = ctx;
    for (int i = 0; i < gpu->count; i++) {
        DC_TRY(dc_twin_next(gpu->members[i].twin));
        DC_TRY(dc_program_gradients(gpu->members[i].program));
        DC_TRY(dc_program_update(gpu->members[i].program));
    }
    return DC_OK;
}

static dc_status build_member(dc_gpu *gpu, member *m, const dc_gpu_spec *spec) {
    dc_agent *a = m->agent;
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
    DC_TRY(dc_program_new(&m->program, gpu->cuda, &program));
    return dc_twin_new(&m->twin, gpu->data, m->program, a->sampler, &a->feeds, a->data);
}

static dc_status build(dc_gpu *gpu, dc_agent *const *agents, const dc_gpu_spec *spec) {
    double none[DC_CUDA_SUMS] = {0};
    gpu->metrics = agents[0]->metric_count;
    DC_TRY(dc_cuda_open(&gpu->cuda));
    DC_TRY(dc_twin_data_new(&gpu->data, gpu->cuda));
    for (int i = 0; i < gpu->count; i++) {
        gpu->members[i].agent = agents[i];
        DC_TRY(build_member(gpu, &gpu->members[i], spec));
        DC_TRY(dc_gpu_send(gpu, i, dc_sampler_step(agents[i]->sampler), none));
    }
    DC_TRY(dc_recording_new(&gpu->one, gpu->cuda, enqueue, gpu, 1));
    return dc_recording_new(&gpu->many, gpu->cuda, enqueue, gpu, UNROLL);
}

dc_status dc_gpu_new(dc_gpu **out, dc_agent *const *agents, int count, const dc_gpu_spec *spec) {
    *out = NULL;
    dc_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu) gpu->members = calloc((size_t)count, sizeof *gpu->members);
    if (!gpu || !gpu->members) return dc_gpu_free(gpu), dc_fail(DC_NO_MEMORY, NULL, "no memory");
    gpu->count = count;
    dc_status status = build(gpu, agents, spec);
    if (status != DC_OK) return dc_gpu_free(gpu), status;
    *out = gpu;
    return DC_OK;
}

void dc_gpu_free(dc_gpu *gpu) {
    if (!gpu) return;
    dc_recording_free(gpu->one);
    dc_recording_free(gpu->many);
    for (int i = 0; i < gpu->count; i++) {
        dc_twin_free(gpu->members[i].twin);
        dc_program_free(gpu->members[i].program);
    }
    dc_twin_data_free(gpu->data);
    dc_cuda_close(gpu->cuda);
    free(gpu->members);
    free(gpu);
}

const char *dc_gpu_name(const dc_gpu *gpu) {
    return dc_cuda_name(gpu->cuda);
}

// Pairs of host and device slabs that make up the state.
static int slab_pairs(const member *m, dc_real *host[4], dc_real *device[4], int64_t size[4]) {
    const dc_slabs *h = &m->agent->params.slabs, *d = dc_program_slabs(m->program);
    dc_real *hosts[] = {h->live, h->m, h->v, h->ema}, *devices[] = {d->live, d->m, d->v, d->ema};
    for (int i = 0; i < 4; i++) {
        host[i] = hosts[i];
        device[i] = devices[i];
        size[i] = i < 3 ? h->size : h->ema_size;
    }
    return 4;
}

dc_status dc_gpu_send(dc_gpu *gpu, int number, uint64_t step, const double *sums) {
    member *m = &gpu->members[number];
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(m, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, device[i], host[i], (size_t)size[i] * sizeof(dc_real)));
    DC_TRY(dc_program_refresh(m->program));
    dc_cuda_state state = {.step = step, .bad_step = -1};
    memcpy(state.sums, sums, (size_t)(gpu->metrics + 1) * sizeof *sums);
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(m->program), &state, sizeof state));
    return dc_twin_put(m->twin, m->agent->sampler);
}

static dc_status read_state(dc_gpu *gpu, const member *m, dc_cuda_state *state) {
    return dc_cuda_get(gpu->cuda, state, dc_program_state(m->program), sizeof *state);
}

dc_status dc_gpu_train(dc_gpu *gpu, int64_t steps, int64_t *bad, double *const *sums) {
    for (; steps >= UNROLL; steps -= UNROLL)
        DC_TRY(dc_recording_run(gpu->many));
    for (; steps > 0; steps--)
        DC_TRY(dc_recording_run(gpu->one));
    for (int i = 0; i < gpu->count; i++) {
        dc_cuda_state state;
        DC_TRY(read_state(gpu, &gpu->members[i], &state));
        bad[i] = state.bad_step;
        memcpy(sums[i], state.sums, (size_t)(gpu->metrics + 1) * sizeof *state.sums);
    }
    return DC_OK;
}

dc_status dc_gpu_clear(dc_gpu *gpu) {
    static const double none[DC_CUDA_SUMS];
    for (int i = 0; i < gpu->count; i++)
        DC_TRY(dc_cuda_put(gpu->cuda, dc_program_state(gpu->members[i].program)->sums, none,
                           sizeof none));
    return DC_OK;
}

dc_status dc_gpu_fetch(dc_gpu *gpu, int number) {
    member *m = &gpu->members[number];
    dc_real *host[4], *device[4];
    int64_t size[4];
    for (int i = 0, n = slab_pairs(m, host, device, size); i < n; i++)
        DC_TRY(dc_cuda_get(gpu->cuda, host[i], device[i], (size_t)size[i] * sizeof(dc_real)));
    dc_cuda_state state;
    DC_TRY(read_state(gpu, m, &state));
    return dc_twin_get(m->twin, m->agent->sampler, state.step);
}

dc_status dc_gpu_gradients(dc_gpu *gpu, int number, float *values) {
    member *m = &gpu->members[number];
    dc_agent *a = m->agent;
    DC_TRY(dc_twin_next(m->twin));
    DC_TRY(dc_program_gradients(m->program));
    DC_TRY(dc_cuda_get(gpu->cuda, a->params.slabs.grad, dc_program_slabs(m->program)->grad,
                       (size_t)a->params.slabs.size * sizeof(dc_real)));
    for (int i = 0; i < a->metric_count; i++)
        DC_TRY(dc_program_value(m->program, a->metrics[i].node, &values[i]));
    return DC_OK;
}
