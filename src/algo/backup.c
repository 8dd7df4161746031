// Stacking rows, see backup.h. The online critic sees [parent | propagation | grounding | children
// by online weights] as one batch, the target critic [bootstrap | children by target weights] as
// another. What is trained comes first, so that backward touches a leading part only; children come
// last and packed, since a child whose span is known needs no network (most of them: half of a tree
// are leaves).
#include "algo/backup.h"

typedef struct pile { // one stacked batch in the making
    dc_ref input;     // (total * batch, in)
    int fixed;        // blocks that are always full
    int total;
    dc_ref output;
} pile;

typedef struct piles {
    pile online, target;
} piles;

static pile *pile_of(piles *p, dc_use use) {
    return use == DC_EMA ? &p->target : &p->online;
}

// Feed rows [state | goal | action of the state] at a row, or as a pack; distances have no action.
static void feed_pair(dc_agent *a, dc_ref input, int row0, dc_stream state, dc_stream goal,
                      dc_pack *pack) {
    const dc_column *obs = dc_dataset_column(a->data, "obs");
    dc_feed feed = {.input = input, .row0 = row0, .column = obs, .stream = state, .pack = pack};
    dc_agent_feed(a, feed);
    feed.col0 = obs->width;
    feed.stream = goal;
    dc_agent_feed(a, feed);
    if (a->options.form == DC_FORM_DISTANCE) return;
    dc_agent_feed_action(a, input, row0, 2 * obs->width, state, pack);
}

static dc_ref steps(dc_agent *a, const char *name, dc_stream stream) {
    dc_ref x = dc_input(&a->graph, name, a->options.batch, 1);
    dc_agent_feed(a, (dc_feed){.input = x, .stream = stream});
    return x;
}

// Full blocks, in this order; a block's number is its place in the pile.
typedef struct layout {
    int parent, prop, ground, boot; // -1: not there
} layout;

static layout place(dc_agent *a, const dc_backup *b, piles *p) {
    bool segments = b->rows.segments != DC_SEG_NONE;
    layout l = {-1, -1, -1, -1};
    if (segments) l.parent = p->online.fixed++;
    if (b->rows.propagation) l.prop = p->online.fixed++;
    if (b->rows.grounding) l.ground = p->online.fixed++;
    if (b->rows.propagation) l.boot = p->target.fixed++;
    p->online.total = p->online.fixed;
    p->target.total = p->target.fixed;
    if (segments) {
        pile_of(p, b->first)->total++;
        pile_of(p, b->second)->total++;
    }
    int batch = a->options.batch, in = a->critic.in;
    p->online.input = dc_input(&a->graph, "online", p->online.total * batch, in);
    if (p->target.total)
        p->target.input = dc_input(&a->graph, "target", p->target.total * batch, in);
    if (l.parent >= 0) feed_pair(a, p->online.input, l.parent * batch, DC_I, DC_J, NULL);
    if (l.prop >= 0) feed_pair(a, p->online.input, l.prop * batch, DC_P, DC_G, NULL);
    if (l.ground >= 0) feed_pair(a, p->online.input, l.ground * batch, DC_A, DC_A1, NULL);
    if (l.boot >= 0) feed_pair(a, p->target.input, l.boot * batch, DC_N, DC_G, NULL);
    return l;
}

static dc_pack *child(dc_agent *a, const dc_backup *b, pile *p, const char *name, dc_stream from,
                      dc_stream to, dc_stream span) {
    dc_pack *pack = dc_agent_pack(a, p->input, p->fixed * a->options.batch, name, span, b->known);
    feed_pair(a, p->input, 0, from, to, pack);
    return pack;
}

static dc_ref block(dc_agent *a, dc_ref y, int number) {
    return number < 0 ? -1 : dc_rows(&a->graph, y, number * a->options.batch, a->options.batch);
}

void dc_backup_rows(dc_agent *a, const dc_backup *b, dc_backup_nodes *n) {
    *n = (dc_backup_nodes){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    piles p = {0};
    layout l = place(a, b, &p);
    bool segments = b->rows.segments != DC_SEG_NONE;
    dc_pack *first = NULL, *second = NULL;
    if (segments) {
        first = child(a, b, pile_of(&p, b->first), "first_index", DC_I, DC_K, DC_LEFT);
        second = child(a, b, pile_of(&p, b->second), "second_index", DC_K, DC_J, DC_RIGHT);
    }
    p.online.output = dc_mlp_apply(&a->graph, &a->critic, p.online.input, DC_LIVE);
    if (p.target.total)
        p.target.output = dc_mlp_apply(&a->graph, &a->critic, p.target.input, DC_EMA);
    n->parent = block(a, p.online.output, l.parent);
    n->prop = block(a, p.online.output, l.prop);
    n->ground = block(a, p.online.output, l.ground);
    n->boot = block(a, p.target.output, l.boot);
    if (segments) {
        n->first = dc_unpack(&a->graph, first->index, pile_of(&p, b->first)->output);
        n->second = dc_unpack(&a->graph, second->index, pile_of(&p, b->second)->output);
        n->left = steps(a, "left", DC_LEFT);
        n->right = steps(a, "right", DC_RIGHT);
    }
    if (b->rows.propagation) {
        n->nsteps = steps(a, "nsteps", DC_NSTEPS);
        n->off = steps(a, "off", DC_OFF);
    }
}
