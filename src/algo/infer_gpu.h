// A dc_infer's graph on a CUDA device: from inputs to the result is one recorded CUDA graph, copies
// included. The graph is the one that the CPU runs; the host's cells become page-locked memory.
#ifndef DC_INFER_GPU_H
#define DC_INFER_GPU_H

#include "algo/infer.h"

// Compile the graph, send the weights, and point q's cells at what is copied to and fro.
// Borrows: q (until free). Errors: no GPU, no CUDA in this build, no memory.
dc_status dc_infer_gpu_new(dc_infer_gpu **gpu, dc_infer *q, const dc_slabs *slabs, int precision);
// Send the weights again.
dc_status dc_infer_gpu_refresh(dc_infer_gpu *gpu, const dc_slabs *slabs);
void dc_infer_gpu_free(dc_infer_gpu *gpu); // Nullable
// Send the inputs, run, fetch the result, and wait.
dc_status dc_infer_gpu_run(dc_infer_gpu *gpu);

#endif
