// Gradients of several GPUs, averaged by NCCL. Its library is loaded when ranks train on GPUs; the few functions are
// declared here by its documented binary form (NCCL 2.10 and later, whose averages these are), so a build needs none of it.
// What is enqueued can be recorded in a CUDA graph like a kernel.
#include "backend/cuda/internal.cuh"

#include <dlfcn.h>

namespace {

struct unique_id { // ncclUniqueId; given by value
    char internal[128];
};
typedef void *communicator; // ncclComm_t
typedef int result;         // ncclResult_t; 0: success
enum { FLOAT32 = 7, AVERAGE = 4 };

struct library {
    result (*GetUniqueId)(unique_id *id);
    result (*CommInitRank)(communicator *comm, int count, unique_id id, int rank);
    result (*AllReduce)(const void *from, void *to, size_t count, int type, int op,
                        communicator comm, cudaStream_t stream);
    result (*CommAbort)(communicator comm);
    const char *(*GetErrorString)(result error);
};

library nccl;

template <typename F> bool find(void *from, const char *name, F *out) {
    *out = (F)dlsym(from, name);
    return *out != NULL;
}

dc_status load(void) {
    static void *from;
    if (from) return DC_OK;
    const char *hint = "install NCCL 2.10 or later (libnccl2), or train on one GPU";
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dc_fail(DC_UNSUPPORTED, hint,
                       "several GPUs need NCCL, and libnccl.so.2 is not there");
    bool good = find(library, "ncclGetUniqueId", &nccl.GetUniqueId) &&
                find(library, "ncclCommInitRank", &nccl.CommInitRank) &&
                find(library, "ncclAllReduce", &nccl.AllReduce) &&
                find(library, "ncclCommAbort", &nccl.CommAbort) &&
                find(library, "ncclGetErrorString", &nccl.GetErrorString);
    if (!good) return dc_fail(DC_UNSUPPORTED, hint, "libnccl.so.2 lacks a function");
    from = library;
    return DC_OK;
}

dc_status check(result error, const char *what) {
    if (!error) return DC_OK;
    return dc_fail(DC_IO, "NCCL_DEBUG=WARN tells more", "NCCL failed (%s: %s)", what,
                   nccl.GetErrorString(error));
}

} // namespace

struct dc_cuda_ranks {
    dc_cuda *cuda;
    dc_ranks *ranks;
    communicator comm;
};

extern "C" dc_status dc_cuda_ranks_new(dc_cuda_ranks **out, dc_cuda *cuda, dc_ranks *ranks) {
    unique_id id = {};
    *out = NULL;
    dc_status status = load(); // alike on every rank, or the first has said why not
    if (status == DC_OK && dc_ranks_rank(ranks) == 0)
        status = check(nccl.GetUniqueId(&id), "finding an address");
    DC_TRY(status);
    dc_ranks_broadcast(ranks, 0, &id, sizeof id);
    dc_cuda_ranks *t = new dc_cuda_ranks();
    t->cuda = cuda;
    t->ranks = ranks;
    status = check(nccl.CommInitRank(&t->comm, dc_ranks_count(ranks), id, dc_ranks_rank(ranks)),
                   "meeting");
    if (status != DC_OK) {
        t->comm = NULL;
        dc_cuda_ranks_free(t);
        return status;
    }
    *out = t;
    return DC_OK;
}

// Nothing is under way on this rank by then; others may be gone.
extern "C" void dc_cuda_ranks_free(dc_cuda_ranks *t) {
    if (t && t->comm) nccl.CommAbort(t->comm);
    delete t;
}

extern "C" dc_status dc_cuda_ranks_average(dc_cuda_ranks *t, float *numbers, int64_t count) {
    return check(nccl.AllReduce(numbers, numbers, (size_t)count, FLOAT32, AVERAGE, t->comm,
                                dc_cuda_stream(t->cuda)),
                 "averaging gradients");
}

// A copy from the device would wait without looking whether the others are there.
extern "C" dc_status dc_cuda_ranks_wait(dc_cuda_ranks *t) {
    for (int64_t asked = 1;; asked++) {
        cudaError_t state = cudaStreamQuery(dc_cuda_stream(t->cuda));
        if (state == cudaSuccess) return DC_OK;
        if (state != cudaErrorNotReady) return dc_cuda_check(state, "cudaStreamQuery(steps)");
        if (asked % 4096 == 0) dc_ranks_look(t->ranks);
    }
}
