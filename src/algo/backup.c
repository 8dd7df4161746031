// Stacking rows, see backup.h. The online critic sees [parent | propagation | grounding | children by
// online weights] as one batch, the target critic [children by target weights | bootstrap] as another;
// what is trained comes first, so that backward touches a leading part only.
#include "algo/backup.h"

typedef struct pile { // one stacked batch in the making
    dc_ref input;     // (blocks * batch, in)
    int blocks;       // that were placed
    int total;        // that will be
} pile;

// Feed a (state, goal) pair of streams into the next block; returns its number.
static int place(dc_agent *a, pile *p, dc_stream state, dc_stream goal) {
    const dc_column *obs = dc_dataset_column(a->data, "obs");
    int row0 = p->blocks * a->options.batch;
    dc_agent_feed(a, (dc_feed){p->input, row0, 0, obs, state});
    dc_agent_feed(a, (dc_feed){p->input, row0, obs->width, obs, goal});
    return p->blocks++;
}

static dc_ref steps(dc_agent *a, const char *name, dc_stream stream) {
    dc_ref x = dc_input(&a->graph, name, a->options.batch, 1);
    dc_agent_feed(a, (dc_feed){x, 0, 0, NULL, stream});
    return x;
}

static dc_ref block(dc_agent *a, dc_ref y, int number) {
    return number < 0 ? -1 : dc_rows(&a->graph, y, number * a->options.batch, a->options.batch);
}

// Blocks of each pile that a method needs.
static void count(const dc_backup *b, pile *online, pile *target) {
    if (b->rows.segments != DC_SEG_NONE) {
        online->total++;
        (b->first == DC_EMA ? target : online)->total++;
        (b->second == DC_EMA ? target : online)->total++;
    }
    if (b->rows.propagation) {
        online->total++;
        target->total++;
    }
    if (b->rows.grounding) online->total++;
}

void dc_backup_rows(dc_agent *a, const dc_backup *b, dc_backup_nodes *n) {
    *n = (dc_backup_nodes){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    bool segments = b->rows.segments != DC_SEG_NONE;
    pile online = {0}, target = {0};
    count(b, &online, &target);
    online.input = dc_input(&a->graph, "online", online.total * a->options.batch, a->critic.in);
    if (target.total) target.input = dc_input(&a->graph, "target", target.total * a->options.batch, a->critic.in);

    // Trained rows first.
    int parent = segments ? place(a, &online, DC_I, DC_J) : -1;
    int prop = b->rows.propagation ? place(a, &online, DC_P, DC_G) : -1;
    int ground = b->rows.grounding ? place(a, &online, DC_A, DC_A1) : -1;
    int first = segments ? place(a, b->first == DC_EMA ? &target : &online, DC_I, DC_K) : -1;
    int second = segments ? place(a, b->second == DC_EMA ? &target : &online, DC_K, DC_J) : -1;
    int boot = b->rows.propagation ? place(a, &target, DC_N, DC_G) : -1;

    dc_ref y = dc_mlp_apply(&a->graph, &a->critic, online.input, DC_LIVE);
    dc_ref t = target.total ? dc_mlp_apply(&a->graph, &a->critic, target.input, DC_EMA) : -1;
    n->parent = block(a, y, parent);
    n->prop = block(a, y, prop);
    n->ground = block(a, y, ground);
    n->boot = block(a, t, boot);
    if (segments) {
        n->first = dc_stop(&a->graph, block(a, b->first == DC_EMA ? t : y, first));
        n->second = dc_stop(&a->graph, block(a, b->second == DC_EMA ? t : y, second));
        n->left = steps(a, "left", DC_LEFT);
        n->right = steps(a, "right", DC_RIGHT);
    }
    if (b->rows.propagation) {
        n->nsteps = steps(a, "nsteps", DC_NSTEPS);
        n->off = steps(a, "off", DC_OFF);
    }
}
