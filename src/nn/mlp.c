// MLP, see mlp.h.
#include "nn/mlp.h"

#include <stdio.h>

// Columns that leave layer number `layer`; -1: the input.
static int width(const dc_mlp *m, int layer) {
    if (layer < 0) return m->in;
    return layer < m->hidden.count ? (int)m->hidden.v[layer] : m->out;
}

static int64_t declare(dc_params *params, const dc_mlp *m, int layer, const char *part, int rows,
                       dc_init init, double gain, bool has_target) {
    char name[64];
    snprintf(name, sizeof name, "%s/%d/%s", m->name, layer, part);
    return dc_params_add(params, name, m->e, rows, width(m, layer), init, gain, has_target)->offset;
}

void dc_mlp_declare(dc_mlp *m, dc_params *params, const dc_mlp_spec *s) {
    *m = (dc_mlp){.name = s->name,
                  .e = s->e,
                  .in = s->in,
                  .out = s->out,
                  .layernorm = s->layernorm,
                  .relu = s->relu,
                  .hidden = *s->hidden,
                  .layers = s->hidden->count + 1};
    for (int i = 0; i < m->layers; i++) {
        bool last = i == m->layers - 1;
        double gain = last ? s->out_gain : 1;
        m->layer[i].w =
            declare(params, m, i, "w", width(m, i - 1), DC_INIT_XAVIER, gain, s->has_target);
        m->layer[i].b = declare(params, m, i, "b", 1, DC_INIT_ZERO, 0, s->has_target);
        if (last || !m->layernorm) continue;
        m->layer[i].scale = declare(params, m, i, "scale", 1, DC_INIT_ONE, 0, s->has_target);
        m->layer[i].bias = declare(params, m, i, "bias", 1, DC_INIT_ZERO, 0, s->has_target);
    }
}

static dc_ref weight(dc_graph *g, const dc_mlp *m, int layer, const char *part, int rows,
                     int64_t offset, dc_use use) {
    char name[80];
    snprintf(name, sizeof name, "%s%s/%d/%s", use == DC_EMA ? "target_" : "", m->name, layer, part);
    return dc_param(g, name, m->e, rows, width(m, layer), offset, use);
}

static dc_ref activate(dc_graph *g, const dc_mlp *m, int i, const char *name, dc_ref x,
                       dc_use use) {
    if (m->relu) return dc_relu(g, name, x);
    if (!m->layernorm) return dc_gelu(g, name, x);
    dc_ref scale = weight(g, m, i, "scale", 1, m->layer[i].scale, use);
    dc_ref bias = weight(g, m, i, "bias", 1, m->layer[i].bias, use);
    return dc_gelu_layernorm(g, name, x, scale, bias);
}

dc_ref dc_mlp_apply(dc_graph *g, const dc_mlp *m, dc_ref x, dc_use use) {
    for (int i = 0; i < m->layers; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s/%d", use == DC_EMA ? "target_" : "", m->name, i);
        dc_ref w = weight(g, m, i, "w", width(m, i - 1), m->layer[i].w, use);
        dc_ref b = weight(g, m, i, "b", 1, m->layer[i].b, use);
        x = dc_linear(g, name, x, w, b);
        if (i < m->layers - 1) x = activate(g, m, i, name, x, use);
    }
    return x;
}

void dc_mlp_declare_scalar(dc_mlp *m, dc_params *params, const char *name, bool has_target) {
    *m = (dc_mlp){.name = name, .e = 1, .in = 1, .out = 1, .layers = 1};
    m->layer[0].b = declare(params, m, 0, "b", 1, DC_INIT_ZERO, 0, has_target);
}

dc_ref dc_mlp_scalar(dc_graph *g, const dc_mlp *m, dc_use use) {
    return weight(g, m, 0, "b", 1, m->layer[0].b, use);
}
