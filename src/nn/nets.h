// Networks of a method, by name. A method's file adds them in any order; they are placed in the
// parameter slab so that each pass of the update covers one range: networks with a target copy first,
// then the others, then those of the policy, which may be trained later than the rest. Where the policy is to act by
// averaged weights, every network has such a copy.
#ifndef DC_NETS_H
#define DC_NETS_H

#include "base/text.h"
#include "nn/encoder.h"
#include "nn/mlp.h"

enum { DC_NETS_MAX = 12, DC_ENCODERS_MAX = 3 }; // DC_PARAMS_MAX counts on it

typedef enum dc_net_kind {
    DC_NET_MLP,    // Dense -> GELU -> LayerNorm, repeated; the last Dense is plain
    DC_NET_PLAIN,  // the same without LayerNorm
    DC_NET_RELU,   // Dense -> ReLU, repeated; the last Dense is plain
    DC_NET_SCALAR, // one trained number, 0 at the start; its tensor is NAME/0/b
} dc_net_kind;

typedef struct dc_net {
    const char *name; // "critic"
    dc_net_kind kind;
    int ensemble;              // members; 0: 1
    int in, out;               // columns
    const dc_int_list *hidden; // widths of its hidden layers; NULL: those of all. Outlives the nets
    bool scaled;               // gain is meant: else it is 1
    double gain;               // factor on the initial weights of the last layer
    bool target;               // has an EMA copy
    bool policy;               // trained with the policy
    // Whole observations that its input begins with, side by side. Where observations are pictures, each of them goes through
    // an encoder of its own, or all through one (nets.concat), and the MLP reads what those give in their place; all members
    // of an ensemble share them.
    int observations;
    dc_mlp mlp; // filled by dc_nets_place, as are the encoders
    dc_encoder encoder[DC_ENCODERS_MAX];
} dc_net;

typedef struct dc_nets {
    int count;
    dc_net net[DC_NETS_MAX];
    dc_picture picture;   // that an observation is; height 0: it is none
    bool concat;          // a network has one encoder of all its pictures
    bool averaged;        // the policy acts by its EMA copy
    int64_t policy_first; // where the policy's weights begin in the slab
} dc_nets;

// Add a network. A name used twice is a bug and aborts.
void dc_nets_add(dc_nets *nets, dc_net net);
// NULL if there is none of that name.
const dc_net *dc_nets_find(const dc_nets *nets, const char *name);
// Declare all weights in the slab's order, as nets->averaged says. hidden: widths of the hidden layers of networks that have none of their own.
void dc_nets_place(dc_nets *nets, dc_params *params, const dc_int_list *hidden);
// Encoders of a network.
int dc_net_encoders(const dc_nets *nets, const dc_net *net);
// Can networks see pictures where they read observations? Errors: DC_UNSUPPORTED, with the network that cannot.
dc_status dc_nets_check(const dc_nets *nets);
// y (ensemble, rows, out) of x (1 or ensemble, rows, in); with encoders (1, rows, in).
dc_ref dc_net_apply(dc_graph *g, const dc_nets *nets, const char *name, dc_ref x, dc_use use);
// The number of a SCALAR, (1, 1, 1).
dc_ref dc_net_scalar(dc_graph *g, const dc_nets *nets, const char *name, dc_use use);
// Name, kind and shape of every network, as a checkpoint records them.
void dc_nets_describe(const dc_nets *nets, dc_text *out);

#endif
