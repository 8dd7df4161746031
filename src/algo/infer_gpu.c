// Inference on a GPU, see infer_gpu.h.
#include "algo/infer_gpu.h"

#ifdef DC_CUDA_BUILD

#include "backend/cuda/cuda.h"

#include <stdlib.h>

enum { PORTS = DC_INFER_INPUTS + DC_INFER_NOISES };

typedef struct port { // a matrix that lies on both sides
    void *device, *host;
    size_t bytes;
} port;

struct dc_infer_gpu {
    dc_cuda *cuda;
    dc_program *program;
    port in[PORTS], out;
    int ins;
    dc_recording *recording;
};

// Give a value of the program memory on the host, and name it.
static dc_status pair(dc_infer_gpu *gpu, const dc_infer *q, dc_ref r, port *p, dc_cells *cells) {
    dc_cuda_input value = dc_program_input(gpu->program, r);
    const dc_node *n = &q->graph.nodes[r];
    DC_CHECK(!value.half); // fp32 and tf32 programs have floats alone
    p->device = value.p;
    p->bytes = (size_t)n->e * (size_t)n->rows * (size_t)value.ld * sizeof(float);
    DC_TRY(dc_cuda_take_host(gpu->cuda, p->bytes, &p->host));
    *cells = (dc_cells){p->host, value.ld};
    return DC_OK;
}

static dc_status pair_all(dc_infer_gpu *gpu, dc_infer *q) {
    for (int i = 0; i < q->inputs; i++)
        DC_TRY(pair(gpu, q, q->input[i].node, &gpu->in[gpu->ins++], &q->input[i].cells));
    for (int i = 0; i < q->noises; i++)
        DC_TRY(pair(gpu, q, q->noise[i].node, &gpu->in[gpu->ins++], &q->noise[i].cells));
    return pair(gpu, q, q->out, &gpu->out, &q->out_cells);
}

static dc_status enqueue(void *ctx) {
    dc_infer_gpu *gpu = ctx;
    for (int i = 0; i < gpu->ins; i++)
        DC_TRY(dc_cuda_copy(gpu->cuda, gpu->in[i].device, gpu->in[i].host, gpu->in[i].bytes));
    DC_TRY(dc_program_gradients(gpu->program)); // forward alone: there is no loss
    return dc_cuda_copy(gpu->cuda, gpu->out.host, gpu->out.device, gpu->out.bytes);
}

dc_status dc_infer_gpu_refresh(dc_infer_gpu *gpu, const dc_slabs *slabs) {
    DC_TRY(dc_cuda_put(gpu->cuda, dc_program_slabs(gpu->program)->live, slabs->live,
                       (size_t)slabs->size * sizeof *slabs->live));
    return dc_program_refresh(gpu->program);
}

static dc_status build(dc_infer_gpu *gpu, dc_infer *q, const dc_slabs *slabs, int precision) {
    DC_TRY(dc_cuda_open(&gpu->cuda));
    dc_program_spec spec = {.graph = &q->graph,
                            .size = slabs->size,
                            .ema_size = slabs->ema_size,
                            .precision = (dc_precision)precision};
    DC_TRY(dc_program_new(&gpu->program, gpu->cuda, &spec));
    DC_TRY(dc_infer_gpu_refresh(gpu, slabs));
    DC_TRY(pair_all(gpu, q));
    return dc_recording_new(&gpu->recording, gpu->cuda, enqueue, gpu);
}

dc_status dc_infer_gpu_new(dc_infer_gpu **out, dc_infer *q, const dc_slabs *slabs, int precision) {
    *out = NULL;
    DC_CHECK(precision == DC_FP32 || precision == DC_TF32); // actions leave as floats
    dc_infer_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    dc_cuda_alone();
    dc_status status = build(gpu, q, slabs, precision);
    dc_cuda_together();
    if (status != DC_OK) return dc_infer_gpu_free(gpu), status;
    *out = gpu;
    return DC_OK;
}

void dc_infer_gpu_free(dc_infer_gpu *gpu) {
    if (!gpu) return;
    dc_cuda_alone();
    dc_recording_free(gpu->recording);
    dc_program_free(gpu->program);
    dc_cuda_close(gpu->cuda);
    dc_cuda_together();
    free(gpu);
}

dc_status dc_infer_gpu_run(dc_infer_gpu *gpu) {
    DC_TRY(dc_recording_run(gpu->recording));
    return dc_cuda_wait(gpu->cuda);
}

#else // this build has no CUDA

dc_status dc_infer_gpu_new(dc_infer_gpu **gpu, dc_infer *q, const dc_slabs *slabs, int precision) {
    (void)q;
    (void)slabs;
    (void)precision;
    *gpu = NULL;
    return dc_fail(DC_UNSUPPORTED,
                   "install the CUDA toolkit (nvcc) and build again, or use --device cpu",
                   "this build has no CUDA backend (--device cuda)");
}

dc_status dc_infer_gpu_refresh(dc_infer_gpu *gpu, const dc_slabs *slabs) {
    (void)gpu;
    (void)slabs;
    return DC_OK;
}

void dc_infer_gpu_free(dc_infer_gpu *gpu) {
    (void)gpu;
}

dc_status dc_infer_gpu_run(dc_infer_gpu *gpu) {
    (void)gpu;
    return DC_OK;
}

#endif
