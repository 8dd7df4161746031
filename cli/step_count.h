// What one training step computes, counted from its graph and not measured: `dcrl bench train --part count`.
#ifndef CLI_STEP_COUNT_H
#define CLI_STEP_COUNT_H

#include "base/text.h"
#include "tensor/graph.h"

typedef struct cli_step_count {
    double flops[2], bytes[2];      // of all ops, forward and backward
    double weights;                 // numbers that are trained
    double batch_rows, batch_bytes; // what a step is fed with
    int products, steps;            // nodes that multiply matrices; all nodes that compute
    int chain; // products that wait for each other, the longest way forward and back
} cli_step_count;

cli_step_count cli_count_step(const dc_graph *graph);
// The same and a row for every op that the graph has, as members of a JSON object.
void cli_count_print(const dc_graph *graph, dc_text *out);

#endif
