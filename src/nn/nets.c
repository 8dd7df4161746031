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

int dc_net_encoders(const dc_nets *nets, const dc_net *n) {
    if (!nets->picture.height) return 0;
    return nets->concat && n->observations ? 1 : n->observations;
}

// Columns that a network's pictures take of its input.
static int cells_of_pictures(const dc_nets *nets, const dc_net *n) {
    return n->observations * dc_picture_cells(nets->picture);
}

dc_status dc_nets_check(const dc_nets *nets) {
    int cells = dc_picture_cells(nets->picture);
    for (int i = 0; i < nets->count && cells; i++) {
        const dc_net *n = &nets->net[i];
        const char *why = n->in - cells_of_pictures(nets, n) >= cells
                              ? "has no encoder for its input"
                          : n->out >= cells ? "would have to paint pictures"
                                            : NULL;
        if (why)
            return dc_fail(DC_UNSUPPORTED, "use another method, or picture=off",
                           "network %s %s of %d x %d x %d", n->name, why, nets->picture.height,
                           nets->picture.width, nets->picture.channels);
    }
    return DC_OK;
}

static void place(const dc_nets *nets, dc_net *n, dc_params *params, const dc_int_list *hidden) {
    static const dc_int_list none;
    int encoders = dc_net_encoders(nets, n), pictures = cells_of_pictures(nets, n);
    DC_CHECK(encoders <= DC_ENCODERS_MAX);
    for (int i = 0; i < encoders; i++)
        dc_encoder_declare(&n->encoder[i], params, n->name, i, nets->picture,
                           n->observations / encoders, n->target);
    if (n->kind == DC_NET_SCALAR)
        dc_mlp_declare_scalar(&n->mlp, params, n->name, n->target);
    else
        dc_mlp_declare(&n->mlp, params,
                       &(dc_mlp_spec){.name = n->name,
                                      .e = n->ensemble,
                                      .in = n->in - pictures + encoders * DC_ENCODER_OUT,
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
        if (nets->net[i].target && !nets->net[i].policy) place(nets, &nets->net[i], params, hidden);
    for (int i = 0; i < nets->count; i++)
        if (!nets->net[i].target && !nets->net[i].policy)
            place(nets, &nets->net[i], params, hidden);
    nets->policy_first = params->slabs.size;
    for (int i = 0; i < nets->count; i++)
        if (nets->net[i].policy) place(nets, &nets->net[i], params, hidden);
}

static const dc_mlp *mlp_of(const dc_nets *nets, const char *name) {
    const dc_net *n = dc_nets_find(nets, name);
    DC_CHECK(n);
    return &n->mlp;
}

// What encoder number i of a network makes of its pictures in x (1, rows, in). What is spliced in behind the pictures changes
// none of them, and a row that is repeated needs one encoding, so that candidates of a policy share theirs.
static dc_ref encode(dc_graph *g, const dc_net *n, int i, dc_ref x, dc_use use) {
    const dc_node *node = &g->nodes[x];
    int cells = dc_encoder_cells(&n->encoder[i]),
        encoders = n->observations / n->encoder[i].pictures;
    if (node->op == DC_OP_splice && node->a >= encoders * cells)
        return encode(g, n, i, node->in[0], use);
    if (node->op == DC_OP_repeat && use != DC_LIVE)
        return dc_repeat(g, encode(g, n, i, node->in[0], use), (int)node->a);
    for (dc_ref r = x + 1; r < g->count; r++) { // one that is there
        const dc_node *c = &g->nodes[r];
        if (c->op == DC_OP_columns && c->in[0] == x && (int)c->a == i * cells && (int)c->b == cells)
            return dc_encoder_apply(g, &n->encoder[i], r, use);
    }
    return dc_encoder_apply(g, &n->encoder[i], dc_columns(g, x, i * cells, cells), use);
}

dc_ref dc_net_apply(dc_graph *g, const dc_nets *nets, const char *name, dc_ref x, dc_use use) {
    const dc_net *n = dc_nets_find(nets, name);
    DC_CHECK(n);
    int encoders = dc_net_encoders(nets, n);
    if (!encoders) return dc_mlp_apply(g, &n->mlp, x, use);
    dc_ref seen = encode(g, n, 0, x, use);
    for (int i = 1; i < encoders; i++)
        seen = dc_join(g, seen, encode(g, n, i, x, use));
    int pictures = cells_of_pictures(nets, n), rest = n->in - pictures;
    if (rest) seen = dc_join(g, seen, dc_columns(g, x, pictures, rest));
    return dc_mlp_apply(g, &n->mlp, seen, use);
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
        int encoders = dc_net_encoders(nets, n);
        dc_picture p = n->encoder[0].picture;
        if (encoders)
            dc_text_add(out, " %d " DC_ENCODER_NAME " (%d,%d,%d)", encoders, p.height, p.width,
                        p.channels);
    }
}
