// The backup family, see backup.h: rows, networks, losses, acting and queries of every method whose
// settings are a dc_backup.
//
// Rows are stacked. The online critic sees [parent | propagation | grounding | children by online
// weights] as one batch, the target critic [bootstrap | children by target weights] as another. What is
// trained comes first, so that backward touches a leading part only; children come last and packed, since
// a child whose span is known needs no network (most of them: half of a tree are leaves).
#include "algo/backup.h"

#include "algo/value.h"

#include <string.h>

static dc_backup backup_of(const dc_method *m) {
    const dc_backup_family *family = m->algo->shared;
    return family->backup(m);
}

const dc_form *dc_form_find(const char *name) {
    const dc_form *forms[] = {&dc_form_distance, &dc_form_value};
    for (int i = 0; i < 2; i++)
        if (!strcmp(forms[i]->name, name)) return forms[i];
    return NULL;
}

bool dc_form_acts(const dc_form *form) {
    return form->acts;
}

int dc_backup_n(const dc_method *m, int64_t n) {
    return n ? (int)n : m->form->n;
}

// ---- rows ----

static void segment_rows(dc_row_table *r, const dc_method *m, const dc_backup *b) {
    dc_row_rule start = {.name = "segment_start",
                         .about = "start of a segment",
                         .gamma = m->gamma,
                         .order = b->order,
                         .slots = b->slots};
    if (b->segments == DC_SEG_TREE) {
        start.kind = DC_ROW_TREE;
        start.draws = DC_STREAM_SLOT;
        start.split = b->split;
        start.rebuild_every = b->rebuild_every;
    } else {
        start.kind = DC_ROW_PAIR;
        start.draws = DC_STREAM_PAIR;
        start.law = m->form->pair_law;
        start.stage_length = b->stage_length;
        start.stage_total = (uint64_t)m->steps;
    }
    dc_rows_add(r, start);
    dc_rows_add(r, DC_SPLIT("segment_split", "segment_start", b->split, "where it is split"));
    dc_rows_add(r, DC_END("segment_end", "segment_start", "its end"));
    dc_rows_add(r, DC_STEPS("first_steps", "segment_start", "segment_split",
                            "steps from its start to its split"));
    dc_rows_add(r, DC_STEPS("second_steps", "segment_split", "segment_end",
                            "steps from its split to its end"));
}

// Does the oracle critic need rows of its own?
static bool distils_goals(const dc_method *m, const dc_backup *b) {
    return m->form->acts && m->rep && !b->propagation && b->distil == DC_DISTIL_GOALS;
}

static void propagation_rows(dc_row_table *r, const dc_method *m, const dc_backup *b) {
    bool pairs = m->form->goal_pairs;
    dc_row_rule state = DC_START("state", DC_STREAM_STATE, "start of a propagation row");
    if (pairs) state.kind = DC_ROW_PAIR;
    dc_rows_add(r, state);
    dc_row_rule later = DC_AFTER("later", "state", b->n, "the state n' steps later");
    later.acted = m->form->acts && m->acted; // its action is read
    dc_rows_add(r, later);
    if (pairs)
        dc_rows_add(r, DC_END("goal", "state", "its goal"));
    else
        dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, b->goals, m->gamma, "its goal"));
    dc_rows_add(
        r, DC_STEPS("later_steps", "state", "later", "n', steps from the state to the later one"));
    dc_rows_add(r, DC_STEPS("goal_steps", "state", "goal",
                            "steps to the goal if it lies ahead in the trajectory, else -1"));
}

void dc_backup_rows(dc_row_table *r, const dc_method *m) {
    dc_backup b = backup_of(m);
    if (b.segments != DC_SEG_NONE) segment_rows(r, m, &b);
    if (b.propagation) propagation_rows(r, m, &b);
    if (distils_goals(m, &b)) {
        dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state to distil"));
        dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, b.goals, m->gamma, "its goal"));
    }
    if (b.grounding) {
        dc_rows_add(r, DC_START("step_start", DC_STREAM_GROUND, "start of a single step"));
        dc_rows_add(r, DC_AFTER("step_end", "step_start", 1, "its end"));
    }
    if (m->form->acts) dc_value_policy_rows(r, m, b.policy);
}

// ---- networks ----

dc_status dc_backup_check(const dc_method *m) {
    dc_backup b = backup_of(m);
    if (b.segments == DC_SEG_PAIRS && b.split == DC_SPLIT_MAX)
        return dc_fail(DC_USAGE, "use split=midpoint or split=random",
                       "split=max needs recursion=on");
    DC_TRY(m->form->check(m));
    return m->form->acts ? dc_policy_check(b.policy, m) : DC_OK;
}

void dc_backup_networks(dc_nets *nets, const dc_method *m) {
    dc_backup b = backup_of(m);
    m->form->networks(nets, m);
    if (m->form->acts && b.policy->kind != DC_POLICY_NONE) dc_policy_network(nets, m, b.policy);
}

int64_t dc_backup_policy_after(const dc_method *m) {
    dc_backup b = backup_of(m);
    return m->form->acts ? b.policy->after : 0;
}

// ---- stacking ----

typedef struct stack { // one stacked batch in the making
    dc_ref input;      // (total * batch, in)
    int fixed;         // parts that are always full
    int total;
    dc_ref output;
} stack;

typedef struct stacks {
    stack online, target;
} stacks;

static stack *stack_of(stacks *s, dc_use use) {
    return use == DC_EMA ? &s->target : &s->online;
}

// Feed rows [state | goal | action of the state] at a row, or as a pack; distances have no action.
static void feed_pair(dc_agent *a, dc_ref input, int row0, const char *state, const char *goal,
                      dc_pack *pack) {
    dc_field end = {DC_FIELD_NONE, 0, NULL, NULL};
    dc_field fields[] = {OBS(state), OBS(goal), a->method.form->acts ? ACT(state) : end, end};
    dc_batch_feed(a, input, row0, fields, 1, pack);
}

// Full parts, in this order; a part's number is its place in the stack.
typedef struct layout {
    int parent, prop, ground, boot; // -1: not there
} layout;

static layout place(dc_agent *a, const dc_backup *b, stacks *s) {
    bool segments = b->segments != DC_SEG_NONE;
    layout l = {-1, -1, -1, -1};
    if (segments) l.parent = s->online.fixed++;
    if (b->propagation) l.prop = s->online.fixed++;
    if (b->grounding) l.ground = s->online.fixed++;
    if (b->propagation) l.boot = s->target.fixed++;
    s->online.total = s->online.fixed;
    s->target.total = s->target.fixed;
    if (segments) {
        stack_of(s, b->first)->total++;
        stack_of(s, b->second)->total++;
    }
    int batch = a->method.batch, in = dc_nets_find(&a->nets, "critic")->in;
    s->online.input = dc_input(&a->graph, "online", s->online.total * batch, in);
    if (s->target.total)
        s->target.input = dc_input(&a->graph, "target", s->target.total * batch, in);
    if (l.parent >= 0)
        feed_pair(a, s->online.input, l.parent * batch, "segment_start", "segment_end", NULL);
    if (l.prop >= 0) feed_pair(a, s->online.input, l.prop * batch, "state", "goal", NULL);
    if (l.ground >= 0)
        feed_pair(a, s->online.input, l.ground * batch, "step_start", "step_end", NULL);
    if (l.boot >= 0) feed_pair(a, s->target.input, l.boot * batch, "later", "goal", NULL);
    return l;
}

static dc_pack *child(dc_agent *a, const dc_backup *b, stack *s, const char *name, const char *from,
                      const char *to, const char *span) {
    dc_pack *pack = dc_batch_pack(a, s->input, s->fixed * a->method.batch, name, span, b->known);
    feed_pair(a, s->input, 0, from, to, pack);
    return pack;
}

static dc_ref part(dc_agent *a, dc_ref y, int number) {
    return number < 0 ? -1 : dc_batch_part(a, y, number);
}

static void apply(dc_agent *a, const dc_backup *b, dc_backup_nodes *n) {
    *n = (dc_backup_nodes){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    stacks s = {0};
    layout l = place(a, b, &s);
    bool segments = b->segments != DC_SEG_NONE;
    dc_pack *first = NULL, *second = NULL;
    if (segments) {
        first = child(a, b, stack_of(&s, b->first), "first_index", "segment_start", "segment_split",
                      "first_steps");
        second = child(a, b, stack_of(&s, b->second), "second_index", "segment_split",
                       "segment_end", "second_steps");
    }
    s.online.output = dc_agent_net(a, "critic", s.online.input, DC_LIVE);
    if (s.target.total) s.target.output = dc_agent_net(a, "critic", s.target.input, DC_EMA);
    n->parent = part(a, s.online.output, l.parent);
    n->prop = part(a, s.online.output, l.prop);
    n->ground = part(a, s.online.output, l.ground);
    n->boot = part(a, s.target.output, l.boot);
    if (segments) {
        n->first = dc_unpack(&a->graph, first->index, stack_of(&s, b->first)->output);
        n->second = dc_unpack(&a->graph, second->index, stack_of(&s, b->second)->output);
        n->left = DC_BATCH(a, "left", STEPS("first_steps"));
        n->right = DC_BATCH(a, "right", STEPS("second_steps"));
    }
    if (b->propagation) {
        n->nsteps = DC_BATCH(a, "nsteps", STEPS("later_steps"));
        n->off = DC_BATCH(a, "off", STEPS("goal_steps"));
    }
}

// ---- losses, acting, queries ----

dc_ref dc_backup_losses(dc_agent *a, const dc_method *m) {
    dc_backup b = backup_of(m);
    dc_backup_nodes n;
    dc_ref total = -1;
    a->known = b.known;
    a->candidates = b.candidates;
    a->rows.choose = dc_choose_split;
    a->rows.choose_ctx = a;
    apply(a, &b, &n);
    if (b.segments != DC_SEG_NONE) {
        total = dc_batch_loss(a, "loss_dc", total, m->form->segment(a, &b, &n));
        if (b.segment_weight > 0) total = dc_affine(&a->graph, total, b.segment_weight, 0);
    }
    if (b.propagation)
        total = dc_batch_loss(a, "loss_prop", total, m->form->propagation(a, &b, &n));
    if (b.grounding) total = dc_batch_loss(a, "loss_ground", total, m->form->grounding(a, &n));
    return m->form->rest(a, &b, &n, total);
}

dc_ref dc_backup_act(dc_infer *q, const dc_method *m) {
    dc_backup b = backup_of(m);
    return m->form->acts ? dc_value_act(q, m, b.policy) : -1;
}

dc_ref dc_backup_query(dc_infer *q, const dc_method *m) {
    return m->form->query(q, m);
}
