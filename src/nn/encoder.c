// Encoder, see encoder.h.
#include "nn/encoder.h"

#include <math.h>
#include <stdio.h>

static const int channels[DC_ENCODER_STAGES] = {16, 32, 32};

static bool is_dense(int layer) {
    return layer == DC_ENCODER_LAYERS - 1;
}

static void name_layer(const dc_encoder *e, int layer, const char *before, const char *part,
                       char name[96]) {
    char own[16];
    snprintf(own, sizeof own, is_dense(layer) ? "dense" : "conv%d", layer);
    snprintf(name, 96, "%s%s/encoder%d/%s%s", before, e->net, e->number, own, part);
}

// Xavier counts what a number of the input reaches: 9 places of each channel, where W has rows for them and columns for one.
static double gain_of(int layer, int in, int out) {
    return is_dense(layer) ? 1 : sqrt((in + out) / (in + 9.0 * out));
}

static void declare(dc_encoder *e, dc_params *params, int layer, int in, int out, bool has_target) {
    char name[96];
    e->layer[layer].in = in;
    e->layer[layer].out = out;
    name_layer(e, layer, "", "/w", name);
    e->layer[layer].w =
        dc_params_add(params, name, 1, in, out, DC_INIT_XAVIER, gain_of(layer, in, out), has_target)
            ->offset;
    name_layer(e, layer, "", "/b", name);
    e->layer[layer].b = dc_params_add(params, name, 1, 1, out, DC_INIT_ZERO, 0, has_target)->offset;
}

void dc_encoder_declare(dc_encoder *e, dc_params *params, const char *net, int number,
                        dc_picture picture, int pictures, bool has_target) {
    picture.channels *= pictures;
    *e = (dc_encoder){.net = net, .number = number, .pictures = pictures, .picture = picture};
    int in = picture.channels, height = picture.height, width = picture.width;
    for (int s = 0; s < DC_ENCODER_STAGES; s++) {
        for (int k = 0; k < 3; k++, in = channels[s])
            declare(e, params, 3 * s + k, 9 * in, channels[s], has_target);
        height = dc_pooled(height);
        width = dc_pooled(width);
    }
    declare(e, params, DC_ENCODER_LAYERS - 1, height * width * in, DC_ENCODER_OUT, has_target);
}

// An op that is there over these inputs, or a new one.
static dc_ref op(dc_graph *g, dc_op kind, const char *name, const dc_ref *in, int count, int a,
                 int b) {
    for (dc_ref r = 0; r < g->count; r++) {
        const dc_node *n = &g->nodes[r];
        bool same = n->op == kind && (int)n->a == a && (int)n->b == b;
        for (int i = 0; same && i < count; i++)
            same = n->in[i] == in[i];
        if (same) return r;
    }
    return dc_apply(g, kind, name, in, count, a, b);
}

static dc_ref layer(dc_graph *g, const dc_encoder *e, int number, dc_ref x, dc_use use, int height,
                    int width) {
    char name[96];
    const char *before = use == DC_EMA ? "target_" : "";
    int in = e->layer[number].in, out = e->layer[number].out;
    name_layer(e, number, before, "/w", name);
    dc_ref w = dc_param(g, name, 1, in, out, e->layer[number].w, use);
    name_layer(e, number, before, "/b", name);
    dc_ref b = dc_param(g, name, 1, 1, out, e->layer[number].b, use);
    name_layer(e, number, before, "", name);
    if (is_dense(number)) return op(g, DC_OP_linear, name, (dc_ref[]){x, w, b}, 3, 0, 0);
    return op(g, DC_OP_conv3x3, name, (dc_ref[]){x, w, b}, 3, height, width);
}

static dc_ref relu(dc_graph *g, dc_ref x) {
    return op(g, DC_OP_relu, "encoder_relu", &x, 1, 0, 0);
}

dc_ref dc_encoder_apply(dc_graph *g, const dc_encoder *e, dc_ref x, dc_use use) {
    int h = e->picture.height, w = e->picture.width;
    if (e->pictures > 1)
        x = op(g, DC_OP_interleave, "encoder_pictures", &x, 1, e->pictures,
               e->picture.channels / e->pictures);
    for (int s = 0; s < DC_ENCODER_STAGES; s++) {
        dc_ref wide = layer(g, e, 3 * s, x, use, h, w);
        x = op(g, DC_OP_max_pool, "encoder_pool", &wide, 1, h, w);
        h = dc_pooled(h);
        w = dc_pooled(w);
        dc_ref y = layer(g, e, 3 * s + 1, relu(g, x), use, h, w);
        y = layer(g, e, 3 * s + 2, relu(g, y), use, h, w);
        x = op(g, DC_OP_add, "encoder_add", (dc_ref[]){x, y}, 2, 0, 0);
    }
    dc_ref y = layer(g, e, DC_ENCODER_LAYERS - 1, relu(g, x), use, 0, 0);
    return op(g, DC_OP_gelu, "encoder_gelu", &y, 1, 0, 0);
}
