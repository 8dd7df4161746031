// Actors on a GPU, see gpu_actor.h: puts backend/cuda's programs in the order of an environment's step. A flow's
// Euler steps are one program, replayed with its result copied to its input, so memory does not grow with them.
#include "rollout/gpu_actor.h"

#include "backend/cuda/cuda.h"

#include <stdlib.h>

enum { PORTS = 4 };

typedef struct port { // a matrix that lies on both sides
    void *device, *host;
    size_t bytes;
} port;

struct dc_gpu_actor {
    const dc_actor *actor;
    dc_cuda *cuda;
    dc_program *policy, *judge; // judge NULL: the policy acts by its mean
    port in[PORTS], out[PORTS];
    int ins, outs;
    dc_recording *act;
};

static dc_status compile(dc_gpu_actor *gpu, const dc_net *net, int precision, dc_program **out) {
    const dc_slabs *slabs = &gpu->actor->params.slabs;
    dc_program_spec spec = {.graph = &net->graph,
                            .size = slabs->size,
                            .ema_size = slabs->ema_size,
                            .precision = (dc_precision)precision};
    DC_TRY(dc_program_new(out, gpu->cuda, &spec));
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_slabs(*out)->live, slabs->live,
                       (size_t)slabs->size * sizeof *slabs->live));
    return dc_program_refresh(*out);
}

static size_t bytes_of(const dc_program *program, const dc_net *net, dc_ref r) {
    return (size_t)net->graph.nodes[r].rows * (size_t)dc_program_input(program, r).ld *
           sizeof(float);
}

// Give a value of a program a twin in the host's memory.
static dc_status pair(dc_gpu_actor *gpu, const dc_program *program, const dc_net *net, dc_ref r,
                      port *p, dc_cells *cells) {
    dc_cuda_input value = dc_program_input(program, r);
    DC_CHECK(!value.half);
    p->device = value.p;
    p->bytes = bytes_of(program, net, r);
    DC_TRY(dc_cuda_take_host(gpu->cuda, p->bytes, &p->host));
    *cells = (dc_cells){p->host, value.ld};
    return DC_OK;
}

static dc_status pair_in(dc_gpu_actor *gpu, const dc_program *program, const dc_net *net, dc_ref r,
                         dc_cells *cells) {
    DC_CHECK(gpu->ins < PORTS);
    return pair(gpu, program, net, r, &gpu->in[gpu->ins++], cells);
}

static dc_status pair_out(dc_gpu_actor *gpu, const dc_program *program, const dc_net *net, dc_ref r,
                          dc_cells *cells) {
    DC_CHECK(gpu->outs < PORTS);
    return pair(gpu, program, net, r, &gpu->out[gpu->outs++], cells);
}

static dc_status pair_all(dc_gpu_actor *gpu, dc_actor *a) {
    const dc_net *policy = &a->policy, *judge = &a->judge;
    dc_cells zero; // steps done at the start: never written
    DC_TRY(pair_in(gpu, gpu->policy, policy, policy->rows, &a->host.rows));
    if (!gpu->judge) return pair_out(gpu, gpu->policy, policy, policy->action, &a->host.action);
    DC_TRY(pair_in(gpu, gpu->policy, policy, policy->x, &a->host.x));
    DC_TRY(pair_in(gpu, gpu->policy, policy, policy->step, &zero));
    DC_TRY(pair_in(gpu, gpu->judge, judge, judge->rows, &a->host.judged));
    DC_TRY(pair_out(gpu, gpu->judge, judge, judge->action, &a->host.action));
    return pair_out(gpu, gpu->judge, judge, judge->worth, &a->host.worth);
}

// Copy a value of one program to an input of the same shape of another, or of itself.
static dc_status pass(dc_gpu_actor *gpu, dc_program *to, dc_ref x, const dc_program *from,
                      const dc_net *net, dc_ref y) {
    dc_cuda_input in = dc_program_input(to, x), out = dc_program_input(from, y);
    DC_CHECK(in.ld == out.ld);
    return dc_cuda_copy(gpu->cuda, in.p, out.p, bytes_of(from, net, y));
}

static dc_status enqueue_flow(dc_gpu_actor *gpu) {
    const dc_actor *a = gpu->actor;
    const dc_net *policy = &a->policy;
    for (int i = 0; i < a->flow_steps; i++) {
        DC_TRY(dc_program_gradients(gpu->policy)); // forward alone: there is no loss
        DC_TRY(pass(gpu, gpu->policy, policy->x, gpu->policy, policy, policy->moved));
        DC_TRY(pass(gpu, gpu->policy, policy->step, gpu->policy, policy, policy->next));
    }
    DC_TRY(pass(gpu, gpu->judge, a->judge.x, gpu->policy, policy, policy->x));
    return dc_program_gradients(gpu->judge);
}

static dc_status enqueue(void *ctx) {
    dc_gpu_actor *gpu = ctx;
    for (int i = 0; i < gpu->ins; i++)
        DC_TRY(dc_cuda_copy(gpu->cuda, gpu->in[i].device, gpu->in[i].host, gpu->in[i].bytes));
    DC_TRY(gpu->judge ? enqueue_flow(gpu) : dc_program_gradients(gpu->policy));
    for (int i = 0; i < gpu->outs; i++)
        DC_TRY(dc_cuda_copy(gpu->cuda, gpu->out[i].host, gpu->out[i].device, gpu->out[i].bytes));
    return DC_OK;
}

static dc_status build(dc_gpu_actor *gpu, dc_actor *a, int precision) {
    DC_TRY(dc_cuda_open(&gpu->cuda));
    DC_TRY(compile(gpu, &a->policy, precision, &gpu->policy));
    if (a->judge.mlp.layers) DC_TRY(compile(gpu, &a->judge, precision, &gpu->judge));
    DC_TRY(pair_all(gpu, a));
    return dc_recording_new(&gpu->act, gpu->cuda, enqueue, gpu);
}

dc_status dc_gpu_actor_new(dc_gpu_actor **out, dc_actor *actor, int precision) {
    *out = NULL;
    DC_CHECK(precision == DC_FP32 || precision == DC_TF32); // actions leave as floats
    dc_gpu_actor *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    gpu->actor = actor;
    dc_cuda_alone();
    dc_status status = build(gpu, actor, precision);
    dc_cuda_together();
    if (status != DC_OK) return dc_gpu_actor_free(gpu), status;
    *out = gpu;
    return DC_OK;
}

void dc_gpu_actor_free(dc_gpu_actor *gpu) {
    if (!gpu) return;
    dc_cuda_alone();
    dc_recording_free(gpu->act);
    dc_program_free(gpu->policy);
    dc_program_free(gpu->judge);
    dc_cuda_close(gpu->cuda);
    dc_cuda_together();
    free(gpu);
}

dc_status dc_gpu_actor_run(dc_gpu_actor *gpu) {
    DC_TRY(dc_recording_run(gpu->act));
    return dc_cuda_wait(gpu->cuda);
}
