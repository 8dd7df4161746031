// The CUDA backend as the rest of the program sees it: a device, and programs on it. A program is a
// loss graph compiled to kernel launches over device memory of its own; the CPU backend is the
// reference that it is tested against.
#ifndef DC_CUDA_H
#define DC_CUDA_H

#include "backend/backend.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dc_precision { DC_FP32, DC_TF32, DC_BF16 } dc_precision; // of matrix products

typedef struct dc_cuda dc_cuda; // one GPU, one stream

// Opening, compiling, recording and closing is for one host thread at a time, between these two: what a thread loads,
// takes or frees can break what another records. Steps may run meanwhile.
void dc_cuda_alone(void);
void dc_cuda_together(void);

// Take GPU 0 (CUDA_VISIBLE_DEVICES chooses). Errors: no GPU, no driver, wrong driver.
dc_status dc_cuda_open(dc_cuda **cuda);
void dc_cuda_close(dc_cuda *cuda); // Nullable; frees everything taken
const char *dc_cuda_name(const dc_cuda *cuda);
// Zeroed device memory that lives as long as the device is open. `what` names it in errors.
dc_status dc_cuda_take(dc_cuda *cuda, size_t bytes, const char *what, const char *remedy, void **p);
dc_status dc_cuda_put(dc_cuda *cuda, void *device, const void *host, size_t bytes);
dc_status dc_cuda_get(dc_cuda *cuda, void *host, const void *device, size_t bytes);
// Zeroed page-locked memory of the host, as long as the device is open; and a copy between such memory and the
// device, or within it, that is started and not waited for.
dc_status dc_cuda_take_host(dc_cuda *cuda, size_t bytes, void **p);
dc_status dc_cuda_copy(dc_cuda *cuda, void *to, const void *from, size_t bytes);
// Wait for all that was started; reports what went wrong on the way.
dc_status dc_cuda_wait(dc_cuda *cuda);
#ifdef __CUDACC__ // for kernels of other stages
cudaStream_t dc_cuda_stream(const dc_cuda *cuda);
dc_status dc_cuda_started(const char *what); // did the last launch work?
#endif

// Bytes of the device's memory: free now, and in all.
dc_status dc_cuda_room(dc_cuda *cuda, size_t *left, size_t *all);

// Ring: chunks of host memory that travel to the device on a stream of their own, behind the arithmetic.
// A chunk goes round like this: _host, fill it, _send; _await, start what reads it, _release. The next
// _send of a chunk must come after its _release.
typedef struct dc_ring dc_ring;
dc_status dc_ring_new(dc_ring **ring, dc_cuda *cuda, int chunks, size_t chunk_bytes);
void dc_ring_free(dc_ring *ring);          // Nullable; device memory stays with the device
void *dc_ring_device(const dc_ring *ring); // (chunks, chunk_bytes) there
// A chunk's memory here; waits until what was sent from it last has left.
dc_status dc_ring_host(dc_ring *ring, int chunk, void **host);
// Copy it, as soon as nothing on the device reads its place any more. Does not wait.
dc_status dc_ring_send(dc_ring *ring, int chunk);
// What is started from now on waits for the chunk; what was started so far is the last to read it.
dc_status dc_ring_await(dc_ring *ring, int chunk);
dc_status dc_ring_release(dc_ring *ring, int chunk);

// What a step keeps on the device beside weights: read back when metrics are logged.
enum { DC_CUDA_SUMS = 32 };
typedef struct dc_cuda_state {
    uint64_t step; // updates done
    // First step with NaN or Inf in loss or gradient, -1: none. Nothing is updated from then on, except that weights
    // before policy_first may have made that step (dc_program_step), and all may if a matrix's gradient alone has it.
    int64_t bad_step;
    double sums[DC_CUDA_SUMS]; // metrics, then the gradient's norm, added up over steps
    double norm2;              // of the last gradient
} dc_cuda_state;

typedef struct dc_program dc_program; // a graph compiled for a device

typedef struct dc_program_spec {
    const dc_graph *graph;
    int64_t size, ema_size; // of the slabs
    dc_precision precision;
    const dc_ref *metrics; // (metric_count) scalars to add up
    int metric_count;
    double lr, beta1, beta2, eps, tau;
    // After so many updates of the weights before policy_first, only those from there on are trained,
    // and Adam counts anew; 0: all together.
    int64_t policy_first, policy_after;
    int beside; // how many such programs run side by side; 0: this one alone
    // Keep every gradient in slabs.grad, so that others can read or change it between dc_program_gradients and
    // dc_program_update; slower than dc_program_step, which updates some weights where their gradient is made.
    bool whole_gradients;
} dc_program_spec;

// Can all of it be computed? Errors: an op, or a use of it, that the backend has no path for, with the node's name.
dc_status dc_cuda_supports(const dc_graph *graph);
bool dc_cuda_has_op(dc_op op);
// For tests: as if there were no kernels for an op; and as if none were faster than a launch of its own.
void dc_cuda_hide_op(dc_op op, bool hide);
void dc_cuda_plain_only(bool only);

// Compile. Borrows: cuda and graph (until freed). Errors: as dc_cuda_supports, and no memory.
dc_status dc_program_new(dc_program **program, dc_cuda *cuda, const dc_program_spec *spec);
void dc_program_free(dc_program *program); // Nullable; device memory stays with the device
// The device's copies of the slabs, and the state.
const dc_slabs *dc_program_slabs(const dc_program *program);
dc_cuda_state *dc_program_state(const dc_program *program); // device pointer
// Where gather writes an input, or a kept value lies: device address, numbers between rows, and whether they
// are bf16.
typedef struct dc_cuda_input {
    void *p;
    int ld;
    bool half;
} dc_cuda_input;
dc_cuda_input dc_program_input(const dc_program *program, dc_ref input);
// Where to write how many rows of an input are wanted this time; NULL if all are computed anyway.
int *dc_program_used(const dc_program *program, dc_ref input);
// Host copy of a kept value (tests, and metrics).
dc_status dc_program_value(dc_program *program, dc_ref node, float *out);

// After the live and target slabs were written from outside: refresh what is derived from them.
dc_status dc_program_refresh(dc_program *program);
// A line for each network and way in which it is computed: as a whole, or layer by layer and why.
dc_status dc_program_describe(const dc_program *program, dc_text *out);
typedef dc_status dc_enqueue_fn(void *ctx);
// Enqueue forward and, if the graph has a loss, backward.
dc_status dc_program_gradients(dc_program *program);
// With whole_gradients: guard, EMA, Adam and metrics, from the gradients that now lie in the slab.
dc_status dc_program_update(dc_program *program);
// All of it: forward, backward, guard, EMA, Adam and metrics. Weights before policy_first may be updated before the policy's gradient is there.
// If another step follows in the same recording, `beside` makes its rows: `draw` enqueues what touches nothing of this
// step and may go beside all of it, `pack` what writes inputs that no layer reads, `gather` the others; both go beside the
// update.
typedef struct dc_beside {
    dc_enqueue_fn *draw, *pack, *gather;
    void *ctx;
} dc_beside;
dc_status dc_program_step(dc_program *program, const dc_beside *beside);

// Several ranks (base/ranks.h), a GPU each, over NCCL. Nullable: ranks (one alone, to try it). Errors: DC_UNSUPPORTED
// without NCCL.
typedef struct dc_cuda_ranks dc_cuda_ranks;
dc_status dc_cuda_ranks_new(dc_cuda_ranks **out, dc_cuda *cuda, dc_ranks *ranks);
void dc_cuda_ranks_free(dc_cuda_ranks *ranks); // Nullable
// Enqueue: `count` numbers of the device become their mean over ranks, the same bits on all.
dc_status dc_cuda_ranks_average(dc_cuda_ranks *ranks, float *numbers, int64_t count);
// Wait for all that was started, and end where another rank is gone.
dc_status dc_cuda_ranks_wait(dc_cuda_ranks *ranks);

// Let a kernel have all the shared memory that there is. A multiprocessor must be idle to give more of its memory to
// shared memory: so that large blocks can follow small ones without waiting for that, all kernels of a step want as much
// as there is. It is always the same, so that host threads do not disturb each other.
dc_status dc_cuda_want_shared(const dc_cuda *cuda, const void *kernel);

// Streams of their own for parts of a recording that do not wait for each other: made before it; within it,
// branch 0 first, then others, which start where it started; joined, all are done.
dc_status dc_cuda_branches(dc_cuda *cuda, int count);
dc_status dc_cuda_branch(dc_cuda *cuda, int number);
dc_status dc_cuda_join(dc_cuda *cuda, int count);

// Record what `enqueue` starts as one CUDA graph, and replay it.
typedef struct dc_recording dc_recording;
dc_status dc_recording_new(dc_recording **replay, dc_cuda *cuda, dc_enqueue_fn *enqueue, void *ctx);
dc_status dc_recording_run(dc_recording *replay);
void dc_recording_free(dc_recording *replay); // Nullable

#ifdef __cplusplus
}
#endif

#endif
