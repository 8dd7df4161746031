// Running a finished graph on a backend.
#ifndef DC_RUN_H
#define DC_RUN_H

#include "backend/backend.h"

// Zeroed memory for a graph's inputs and temporaries.
dc_status dc_exec_init(dc_exec *x, const dc_graph *graph, const dc_slabs *slabs, dc_pool *pool);
void dc_exec_fini(dc_exec *x);
// Forward, then backward if the graph has a loss: the gradient slab then holds d loss / d params.
void dc_exec_run(const dc_exec *x, const dc_backend *backend);
// Forward. Where its turn comes, `fn` is called with each node that `watched` (nodes) is true for: it reads the value, or, if
// those are given, writes what is read of it.
typedef void dc_node_fn(void *ctx, dc_ref r);
void dc_exec_run_watched(const dc_exec *x, const dc_backend *backend, const bool *watched,
                         bool given, dc_node_fn *fn, void *ctx);
// Name of the first node with a NaN or Inf in its inputs, values or weights; NULL if all are
// finite. Temporaries share memory, so this runs the graph again, node by node.
const char *dc_exec_find_bad(const dc_exec *x, const dc_backend *backend);

#endif
