// MLP: Dense -> GELU -> LayerNorm (or none), or Dense -> ReLU, repeated; the last Dense is plain. A network is declared
// once in the parameter table and applied as often as needed, each call saying how it uses the weights.
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
    bool layernorm, relu;
    dc_int_list hidden;
    struct {
        int64_t w, b, scale, bias; // offsets; scale and bias of hidden layers with LayerNorm only
    } layer[DC_LIST_MAX + 1];
} dc_mlp;

typedef struct dc_mlp_spec {
    const char *name;
    int e, in, out;
    const dc_int_list *hidden;
    double out_gain; // scales the last layer's initial weights
    bool layernorm, has_target;
    bool relu; // instead of GELU, without LayerNorm
} dc_mlp_spec;

void dc_mlp_declare(dc_mlp *mlp, dc_params *params, const dc_mlp_spec *spec);
// y (e, rows, out) of x (1 or e, rows, in).
dc_ref dc_mlp_apply(dc_graph *g, const dc_mlp *mlp, dc_ref x, dc_use use);
// A single trained number, 0 at the start: declared as the bias of a layer without inputs.
void dc_mlp_declare_scalar(dc_mlp *mlp, dc_params *params, const char *name, bool has_target);
dc_ref dc_mlp_scalar(dc_graph *g, const dc_mlp *mlp, dc_use use);

#endif
