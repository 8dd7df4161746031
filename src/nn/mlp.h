// MLP: Dense -> GELU -> LayerNorm, repeated; the last Dense is plain. A network is declared once in
// the parameter table and applied as often as needed, each call saying how it uses the weights.
#ifndef DC_MLP_H
#define DC_MLP_H

#include "base/options.h"
#include "nn/params.h"
#include "tensor/graph.h"

typedef struct dc_mlp {
    const char *name; // "critic"
    int e;            // ensemble
    int layers;       // hidden layers + 1
    int in, out;
    dc_int_list hidden;
    struct {
        int64_t w, b, scale, bias; // offsets; scale and bias of hidden layers only
    } layer[DC_LIST_MAX + 1];
} dc_mlp;

// Declare the weights. out_gain scales the last layer's initial weights.
void dc_mlp_declare(dc_mlp *mlp, dc_params *params, const char *name, int e, int in,
                    const dc_int_list *hidden, int out, double out_gain, bool has_target);
// y (e, rows, out) of x (1, rows, in).
dc_ref dc_mlp_apply(dc_graph *g, const dc_mlp *mlp, dc_ref x, dc_use use);

#endif
