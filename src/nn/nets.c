// Networks by name, see nets.h.
#include "nn/nets.h"

#include <string.h>

void dc_nets_add(dc_nets *nets, dc_net net) {
    DC_CHECK(nets->count < DC_NETS_MAX && !dc_nets_find(nets, net.name));
    DC_CHECK(!(net.target && net.policy)); // targets come first in the slab, the policy last
    if (net.kind == DC_NET_SCALAR) net.in = net.out = 1;
    if (!net.ensemble) net.ensemble = 1;
    if (!net.scaled) net.gain = 1;
    nets->net[nets->count++] = net;
}

const dc_net *dc_nets_find(const dc_nets *nets, const char *name) {
    for (int i = 0; i < nets->count; i++)
        if (!strcmp(nets->net[i].name, name)) return &nets->net[i];
    return NULL;
}

static void place(dc_net *n, dc_params *params, const dc_int_list *hidden) {
    static const dc_int_list none;
    if (n->kind == DC_NET_SCALAR)
        dc_mlp_declare_scalar(&n->mlp, params, n->name, n->target);
    else
        dc_mlp_declare(&n->mlp, params,
                       &(dc_mlp_spec){.name = n->name,
                                      .e = n->ensemble,
                                      .in = n->in,
                                      .out = n->out,
                                      .hidden = n->hidden ? n->hidden
                                                : hidden  ? hidden
                                                          : &none,
                                      .out_gain = n->gain,
                                      .layernorm = n->kind == DC_NET_MLP,
                                      .relu = n->kind == DC_NET_RELU,
                                      .has_target = n->target});
}

void dc_nets_place(dc_nets *nets, dc_params *params, const dc_int_list *hidden) {
    for (int i = 0; i < nets->count; i++)
        nets->net[i].target |= nets->averaged;
    for (int i = 0; i < nets->count; i++)
        if (nets->net[i].target && !nets->net[i].policy) place(&nets->net[i], params, hidden);
    for (int i = 0; i < nets->count; i++)
        if (!nets->net[i].target && !nets->net[i].policy) place(&nets->net[i], params, hidden);
    nets->policy_first = params->slabs.size;
    for (int i = 0; i < nets->count; i++)
        if (nets->net[i].policy) place(&nets->net[i], params, hidden);
}

static const dc_mlp *mlp_of(const dc_nets *nets, const char *name) {
    const dc_net *n = dc_nets_find(nets, name);
    DC_CHECK(n);
    return &n->mlp;
}

dc_ref dc_net_apply(dc_graph *g, const dc_nets *nets, const char *name, dc_ref x, dc_use use) {
    return dc_mlp_apply(g, mlp_of(nets, name), x, use);
}

dc_ref dc_net_scalar(dc_graph *g, const dc_nets *nets, const char *name, dc_use use) {
    return dc_mlp_scalar(g, mlp_of(nets, name), use);
}

void dc_nets_describe(const dc_nets *nets, dc_text *out) {
    static const char *const kinds[] = {"mlp", "plain", "relu", "scalar"};
    for (int i = 0; i < nets->count; i++) {
        const dc_net *n = &nets->net[i];
        dc_text_add(out, "%s%s %s %d x (%d", i ? "; " : "", n->name, kinds[n->kind], n->ensemble,
                    n->in);
        for (int k = 0; k < n->mlp.hidden.count; k++)
            dc_text_add(out, ",%d", (int)n->mlp.hidden.v[k]);
        dc_text_add(out, ",%d)%s", n->out, n->target ? " target" : "");
    }
}
