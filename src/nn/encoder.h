// Encoder: from a picture to a row of numbers, which a network's MLP then reads in its place. It is the small IMPALA network
// that OGBench's agents use (Espeholt et al. 2018):
//
//   three stages of 16, 32 and 32 channels, each
//     x = max_pool(conv x),   x = x + conv(relu(conv(relu x)))
//   relu, and a Dense of 512 with GELU over what is left, (h / 8, w / 8, 32) of a picture (h, w, c)
//
// It may see several pictures at once: those that stand side by side in a row become one of all their channels.
//
// Weights are NET/encoderK/convL/{w,b} and NET/encoderK/dense/{w,b} of picture number K of network NET. W of a convolution is
// (9 in, out), by rows (y, x, channel): Flax's kernel (3, 3, in, out), flattened.
#ifndef DC_ENCODER_H
#define DC_ENCODER_H

#include "nn/params.h"
#include "tensor/graph.h"

enum { DC_ENCODER_STAGES = 3, DC_ENCODER_LAYERS = 3 * DC_ENCODER_STAGES + 1, DC_ENCODER_OUT = 512 };
#define DC_ENCODER_NAME "impala_small"

typedef struct dc_picture {
    int height, width, channels; // height 0: there is none
} dc_picture;

static inline int dc_picture_cells(dc_picture p) {
    return p.height * p.width * p.channels;
}

typedef struct dc_encoder {
    const char *net;    // whose it is: "critic"
    int number;         // among the encoders of the network
    int pictures;       // that it sees at once
    dc_picture picture; // of all their channels
    struct {
        int64_t w, b; // offsets
        int in, out;  // rows and columns of w
    } layer[DC_ENCODER_LAYERS];
} dc_encoder;

// For `pictures` pictures of that size at once.
void dc_encoder_declare(dc_encoder *encoder, dc_params *params, const char *net, int number,
                        dc_picture picture, int pictures, bool has_target);
// Columns of x that an encoder sees.
static inline int dc_encoder_cells(const dc_encoder *e) {
    return dc_picture_cells(e->picture);
}
// y (1, rows, DC_ENCODER_OUT) of x (1, rows, cells), pictures side by side. Asked again for the same x and use, it gives the
// same node.
dc_ref dc_encoder_apply(dc_graph *g, const dc_encoder *encoder, dc_ref x, dc_use use);

#endif
