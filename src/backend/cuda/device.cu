// The device: opening it, its memory, errors as statuses, and recorded steps.
#include "backend/cuda/internal.cuh"

#include <cstdio>
#include <cstring>
#include <mutex>

dc_status dc_cuda_check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return DC_OK;
    cudaGetLastError(); // told here, and not once more by the next launch
    const char *paren = strchr(call, '(');
    int n = paren ? (int)(paren - call) : (int)strlen(call);
    return dc_fail(error == cudaErrorMemoryAllocation ? DC_NO_MEMORY : DC_IO,
                   "look at nvidia-smi; compute-sanitizer finds the place if it is dcrl's fault",
                   "CUDA failed (%.*s: %s)", n, call, cudaGetErrorString(error));
}

static std::mutex setting_up;

extern "C" void dc_cuda_alone(void) {
    setting_up.lock();
}

extern "C" void dc_cuda_together(void) {
    setting_up.unlock();
}

extern "C" cudaStream_t dc_cuda_stream(const dc_cuda *cuda) {
    return cuda->stream;
}

extern "C" dc_status dc_cuda_started(const char *what) {
    return dc_cuda_check(cudaGetLastError(), what);
}

static dc_status new_branch(dc_cuda *cuda) {
    branch *b = new branch();
    cuda->branches.push_back(b);
    CU(cudaEventCreateWithFlags(&b->done, cudaEventDisableTiming));
    int least, greatest; // an early update goes where there is room, but for its small launches
    CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < ALL_STREAMS; i++)
        CU(cudaStreamCreateWithPriority(&b->streams[i], cudaStreamNonBlocking,
                                        i < STREAMS || i == EARLY_STREAM + 1 ? greatest : least));
    if (!cuda->stream) cuda->stream = b->streams[0];
    for (int i = 0; i < STREAMS; i++)
        DC_TRY(dc_cuda_take(cuda, cuda->workspace_bytes, "the workspace of a run",
                            "train fewer seeds at once, or use a larger GPU", &b->workspaces[i]));
    return DC_OK;
}

extern "C" dc_status dc_cuda_branches(dc_cuda *cuda, int count) {
    while ((int)cuda->branches.size() < count)
        DC_TRY(new_branch(cuda));
    return DC_OK;
}

static dc_status use_branch(dc_cuda *cuda, int number) {
    DC_TRY(dc_cuda_branches(cuda, number + 1));
    branch *b = cuda->branches[(size_t)number];
    cuda->streams = b->streams;
    cuda->workspaces = b->workspaces;
    cuda->stream = b->streams[0];
    cuda->workspace = b->workspaces[0];
    return DC_OK;
}

extern "C" dc_status dc_cuda_branch(dc_cuda *cuda, int number) {
    if (number == 0) CU(cudaEventRecord(cuda->fork, cuda->branches[0]->streams[0]));
    DC_TRY(use_branch(cuda, number));
    if (number) CU(cudaStreamWaitEvent(cuda->stream, cuda->fork));
    return DC_OK;
}

extern "C" dc_status dc_cuda_join(dc_cuda *cuda, int count) {
    for (int i = 1; i < count; i++) {
        branch *b = cuda->branches[(size_t)i];
        CU(cudaEventRecord(b->done, b->streams[0]));
        CU(cudaStreamWaitEvent(cuda->branches[0]->streams[0], b->done));
    }
    return use_branch(cuda, 0);
}

// What the kernels were compiled for, which may be less than the device has: kernels that need more are empty then.
enum { ANY_CODE, CLUSTER_CODE, HOPPER_CODE };
__device__ static int code_found;

__global__ static void find_code() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    code_found = HOPPER_CODE;
#elif __CUDA_ARCH__ >= 900
    code_found = CLUSTER_CODE;
#else
    code_found = ANY_CODE;
#endif
}

static dc_status find_features(dc_cuda *cuda, const cudaDeviceProp *p) {
    int code = ANY_CODE;
    find_code<<<1, 1, 0, cuda->stream>>>();
    CU(cudaGetLastError());
    CU(cudaMemcpyFromSymbolAsync(&code, code_found, sizeof code, 0, cudaMemcpyDeviceToHost,
                                 cuda->stream));
    CU(cudaStreamSynchronize(cuda->stream));
    cuda->clusters = p->major >= 9 && code >= CLUSTER_CODE;
    cuda->hopper = p->major == 9 && p->minor == 0 && code == HOPPER_CODE;
    return DC_OK;
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
    cuda->shared_most = (int)p.sharedMemPerBlockOptin;
    CU(cudaSetDevice(0));
    DC_TRY(dc_blas_open(cuda));
    cuda->workspace_bytes = (size_t)32 << 20;
    CU(cudaEventCreateWithFlags(&cuda->fork, cudaEventDisableTiming));
    DC_TRY(use_branch(cuda, 0));
    return find_features(cuda, &p);
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
    for (void *p : cuda->host_memory)
        cudaFreeHost(p);
    dc_blas_close(cuda);
    if (cuda->fork) cudaEventDestroy(cuda->fork);
    for (branch *b : cuda->branches) {
        for (int i = 0; i < ALL_STREAMS; i++)
            if (b->streams[i]) cudaStreamDestroy(b->streams[i]);
        if (b->done) cudaEventDestroy(b->done);
        delete b;
    }
    delete cuda;
}

extern "C" dc_status dc_cuda_want_shared(const dc_cuda *cuda, const void *kernel) {
    cudaFuncAttributes has;
    CU(cudaFuncGetAttributes(&has, kernel));
    CU(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                            cuda->shared_most - (int)has.sharedSizeBytes));
    CU(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                            cudaSharedmemCarveoutMaxShared));
    return DC_OK;
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

extern "C" dc_status dc_cuda_take_host(dc_cuda *cuda, size_t bytes, void **p) {
    *p = NULL;
    cudaError_t error = cudaMallocHost(p, bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); // it is told here; the device goes on
        return dc_fail(DC_NO_MEMORY, "lower batch, train fewer seeds, or raise ulimit -l",
                       "the host has no %.1f MiB of page-locked memory", (double)bytes / 1048576);
    }
    CU(error);
    cuda->host_memory.push_back(*p);
    memset(*p, 0, bytes);
    return DC_OK;
}

extern "C" dc_status dc_cuda_copy(dc_cuda *cuda, void *to, const void *from, size_t bytes) {
    CU(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda->stream));
    return DC_OK;
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

static dc_status record(dc_cuda *cuda, dc_enqueue_fn *enqueue, void *ctx, cudaGraph_t *graph) {
    cudaStream_t stream = cuda->stream;
    CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    dc_status status = enqueue(ctx);
    cudaError_t error = cudaStreamEndCapture(stream, graph); // also after a failure
    if (status == DC_OK) status = dc_cuda_check(error, "cudaStreamEndCapture");
    if (status != DC_OK && *graph) cudaGraphDestroy(*graph);
    return status;
}

extern "C" dc_status dc_recording_new(dc_recording **out, dc_cuda *cuda, dc_enqueue_fn *enqueue,
                                      void *ctx) {
    *out = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    DC_TRY(record(cuda, enqueue, ctx, &graph));
    cudaError_t error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    CU(error);
    error = cudaGraphUpload(exec, cuda->stream);
    if (error != cudaSuccess) cudaGraphExecDestroy(exec);
    CU(error);
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

// ---- rows that travel ----

struct dc_ring {
    dc_cuda *cuda;
    cudaStream_t stream; // of copies
    size_t chunk_bytes;
    char *host, *device; // (chunks, chunk_bytes)
    std::vector<cudaEvent_t> sent, read;
};

extern "C" dc_status dc_cuda_room(dc_cuda *cuda, size_t *left, size_t *all) {
    (void)cuda;
    CU(cudaMemGetInfo(left, all));
    return DC_OK;
}

static dc_status make_ring(dc_ring *r, int chunks) {
    size_t bytes = (size_t)chunks * r->chunk_bytes;
    CU(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
    for (int c = 0; c < chunks; c++) {
        cudaEvent_t event;
        CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        r->sent.push_back(event);
        CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        r->read.push_back(event);
    }
    DC_TRY(dc_cuda_take(r->cuda, bytes, "rows on their way", "lower batch, or train fewer seeds",
                        (void **)&r->device));
    cudaError_t error = cudaMallocHost((void **)&r->host, bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return dc_fail(DC_NO_MEMORY, "lower batch, or train fewer seeds",
                       "no host memory for rows on their way (%.1f MiB that stay in memory asked)",
                       (double)bytes / 1048576);
    }
    CU(error);
    return dc_cuda_wait(r->cuda); // the device's part is zeroed
}

extern "C" dc_status dc_ring_new(dc_ring **out, dc_cuda *cuda, int chunks, size_t chunk_bytes) {
    *out = NULL;
    dc_ring *r = new dc_ring();
    r->cuda = cuda;
    r->chunk_bytes = chunk_bytes;
    dc_status status = make_ring(r, chunks);
    if (status != DC_OK)
        dc_ring_free(r);
    else
        *out = r;
    return status;
}

extern "C" void dc_ring_free(dc_ring *r) {
    if (!r) return;
    if (r->stream) cudaStreamSynchronize(r->stream);
    for (cudaEvent_t event : r->sent)
        cudaEventDestroy(event);
    for (cudaEvent_t event : r->read)
        cudaEventDestroy(event);
    if (r->host) cudaFreeHost(r->host);
    if (r->stream) cudaStreamDestroy(r->stream);
    delete r;
}

extern "C" void *dc_ring_device(const dc_ring *r) {
    return r->device;
}

extern "C" dc_status dc_ring_host(dc_ring *r, int chunk, void **host) {
    *host = r->host + (size_t)chunk * r->chunk_bytes;
    CU(cudaEventSynchronize(r->sent[(size_t)chunk]));
    return DC_OK;
}

extern "C" dc_status dc_ring_send(dc_ring *r, int chunk) {
    size_t at = (size_t)chunk * r->chunk_bytes;
    CU(cudaStreamWaitEvent(r->stream, r->read[(size_t)chunk]));
    CU(cudaMemcpyAsync(r->device + at, r->host + at, r->chunk_bytes, cudaMemcpyHostToDevice,
                       r->stream));
    CU(cudaEventRecord(r->sent[(size_t)chunk], r->stream));
    return DC_OK;
}

extern "C" dc_status dc_ring_await(dc_ring *r, int chunk) {
    CU(cudaStreamWaitEvent(r->cuda->stream, r->sent[(size_t)chunk]));
    return DC_OK;
}

extern "C" dc_status dc_ring_release(dc_ring *r, int chunk) {
    CU(cudaEventRecord(r->read[(size_t)chunk], r->cuda->stream));
    return DC_OK;
}
