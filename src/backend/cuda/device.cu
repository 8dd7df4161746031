// The device: opening it, its memory, errors as statuses, and recorded steps.
#include "backend/cuda/internal.cuh"

#include <cstdio>
#include <cstring>

dc_status dc_cuda_check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return DC_OK;
    const char *paren = strchr(call, '(');
    int n = paren ? (int)(paren - call) : (int)strlen(call);
    return dc_fail(error == cudaErrorMemoryAllocation ? DC_NO_MEMORY : DC_IO,
                   "look at nvidia-smi; compute-sanitizer finds the place if it is dcrl's fault",
                   "CUDA failed (%.*s: %s)", n, call, cudaGetErrorString(error));
}

extern "C" cudaStream_t dc_cuda_stream(const dc_cuda *cuda) {
    return cuda->stream;
}

extern "C" dc_status dc_cuda_started(const char *what) {
    return dc_cuda_check(cudaGetLastError(), what);
}

static dc_status open_device(dc_cuda *cuda) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return dc_fail(
            DC_UNSUPPORTED, "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu",
            "no GPU can be used (%s)", error ? cudaGetErrorString(error) : "none is there");
    cudaDeviceProp p;
    CU(cudaGetDeviceProperties(&p, 0));
    snprintf(cuda->name, sizeof cuda->name, "%s", p.name);
    if (p.major < 8)
        return dc_fail(DC_UNSUPPORTED,
                       "use a GPU of compute capability 8.0 or newer, or --device cpu",
                       "%s is too old (compute capability %d.%d)", p.name, p.major, p.minor);
    cuda->clusters = p.major >= 9;
    cuda->hopper = p.major == 9 && p.minor == 0;
    CU(cudaSetDevice(0));
    DC_TRY(dc_blas_open(cuda));
    cuda->workspace_bytes = (size_t)32 << 20;
    for (int i = 0; i < LANES; i++)
        CU(cudaStreamCreateWithFlags(&cuda->lanes[i], cudaStreamNonBlocking));
    cuda->stream = cuda->lanes[0];
    for (int i = 0; i < LANES; i++)
        DC_TRY(dc_cuda_take(cuda, cuda->workspace_bytes, "workspace", NULL, &cuda->workspaces[i]));
    cuda->workspace = cuda->workspaces[0];
    return DC_OK;
}

extern "C" dc_status dc_cuda_open(dc_cuda **out) {
    *out = NULL;
    dc_cuda *cuda = new dc_cuda();
    dc_status status = open_device(cuda);
    if (status != DC_OK)
        dc_cuda_close(cuda);
    else
        *out = cuda;
    return status;
}

extern "C" void dc_cuda_close(dc_cuda *cuda) {
    if (!cuda) return;
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
    for (void *p : cuda->memory)
        cudaFree(p);
    dc_blas_close(cuda);
    for (int i = 0; i < LANES; i++)
        if (cuda->lanes[i]) cudaStreamDestroy(cuda->lanes[i]);
    delete cuda;
}

extern "C" const char *dc_cuda_name(const dc_cuda *cuda) {
    return cuda->name;
}

extern "C" dc_status dc_cuda_take(dc_cuda *cuda, size_t bytes, const char *what, const char *remedy,
                                  void **p) {
    *p = NULL;
    size_t size = (bytes + 255) / 256 * 256 + 256;
    cudaError_t error = cudaMalloc(p, size);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); // it is told here; the device goes on
        size_t left = 0, all = 0;
        cudaMemGetInfo(&left, &all);
        return dc_fail(DC_NO_MEMORY, remedy ? remedy : "lower batch or hidden, or use a larger GPU",
                       "the GPU has no memory for %s (%.1f MiB asked, %.1f of %.1f MiB are free)",
                       what, (double)size / 1048576, (double)left / 1048576, (double)all / 1048576);
    }
    CU(error);
    cuda->memory.push_back(*p);
    CU(cudaMemsetAsync(*p, 0, size, cuda->stream));
    return DC_OK;
}

extern "C" dc_status dc_cuda_put(dc_cuda *cuda, void *device, const void *host, size_t bytes) {
    CU(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, cuda->stream));
    return dc_cuda_wait(cuda);
}

extern "C" dc_status dc_cuda_get(dc_cuda *cuda, void *host, const void *device, size_t bytes) {
    CU(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, cuda->stream));
    return dc_cuda_wait(cuda);
}

extern "C" dc_status dc_cuda_wait(dc_cuda *cuda) {
    CU(cudaStreamSynchronize(cuda->stream));
    return DC_OK;
}

// ---- recorded steps ----

struct dc_recording {
    dc_cuda *cuda;
    cudaGraphExec_t exec;
};

static dc_status record(dc_cuda *cuda, dc_enqueue_fn *enqueue, void *ctx, int repeats,
                        cudaGraph_t *graph) {
    CU(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal));
    dc_status status = DC_OK;
    for (int i = 0; i < repeats && status == DC_OK; i++)
        status = enqueue(ctx);
    cudaError_t error = cudaStreamEndCapture(cuda->stream, graph); // also after a failure
    if (status != DC_OK) return status;
    return dc_cuda_check(error, "cudaStreamEndCapture");
}

extern "C" dc_status dc_recording_new(dc_recording **out, dc_cuda *cuda, dc_enqueue_fn *enqueue,
                                      void *ctx, int repeats) {
    *out = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    DC_TRY(record(cuda, enqueue, ctx, repeats, &graph));
    cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    CU(error);
    CU(cudaGraphUpload(exec, cuda->stream));
    *out = new dc_recording{cuda, exec};
    return DC_OK;
}

extern "C" dc_status dc_recording_run(dc_recording *replay) {
    CU(cudaGraphLaunch(replay->exec, replay->cuda->stream));
    return DC_OK;
}

extern "C" void dc_recording_free(dc_recording *replay) {
    if (!replay) return;
    cudaGraphExecDestroy(replay->exec);
    delete replay;
}
