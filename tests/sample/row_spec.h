// The rows of the family of dcrl in one struct: tests choose from it what they need, and it becomes a
// table of rules (sample/rows.h) as a method's file makes it: segments, propagation rows, single steps,
// policy rows.
#ifndef ROW_SPEC_H
#define ROW_SPEC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "sample/sampler.h"

typedef enum row_segments { // where segments come from
    SEG_NONE,
    SEG_TREE,  // slots that stream binary trees
    SEG_PAIRS, // i.i.d. pairs, split once
} row_segments;

typedef struct row_spec {
    uint64_t seed;
    int batch;
    row_segments segments;
    dc_split split;
    dc_order order;
    int slots;
    dc_law pair_law;
    int64_t stage_length;
    uint64_t stage_total;
    double gamma; // of all geometric laws
    int rebuild_every;
    dc_split_fn *choose;
    void *choose_ctx;
    bool propagation; // state, later, goal and their steps
    int n;            // steps from the state to the later one
    bool
        goal_pairs; // state and goal are a pair, uniform over pairs of one trajectory; else the mixture
    double goal_current, goal_future, goal_random, goal_next;
    dc_law goal_law;
    bool actor; // policy rows
    double actor_random;
    dc_law actor_law;
    bool grounding; // single steps
    int vias;       // states drawn so many times for every row of the batch; 0: none
} row_spec;

static inline void add_segments(dc_row_table *t, const row_spec *s) {
    bool tree = s->segments == SEG_TREE;
    dc_rows_add(t, (dc_row_rule){.name = "segment_start",
                                 .kind = tree ? DC_ROW_TREE : DC_ROW_PAIR,
                                 .draws = tree ? DC_STREAM_SLOT : DC_STREAM_PAIR,
                                 .gamma = s->gamma,
                                 .law = s->pair_law,
                                 .stage_length = s->stage_length,
                                 .stage_total = s->stage_total,
                                 .split = s->split,
                                 .order = s->order,
                                 .slots = s->slots,
                                 .rebuild_every = s->rebuild_every});
    dc_rows_add(t, (dc_row_rule){.name = "segment_split",
                                 .kind = DC_ROW_SPLIT,
                                 .of = "segment_start",
                                 .split = s->split,
                                 .draws = DC_STREAM_SUBGOAL});
    dc_rows_add(t, (dc_row_rule){"segment_end", DC_ROW_END, .of = "segment_start"});
    dc_rows_add(t, (dc_row_rule){"first_steps", DC_ROW_STEPS, .of = "segment_start",
                                 .to = "segment_split"});
    dc_rows_add(
        t, (dc_row_rule){"second_steps", DC_ROW_STEPS, .of = "segment_split", .to = "segment_end"});
}

static inline void add_propagation(dc_row_table *t, const row_spec *s) {
    dc_goal_mix mix = {s->goal_current, s->goal_future, s->goal_random, (int)s->goal_law,
                       s->goal_next};
    dc_rows_add(t, (dc_row_rule){"state", s->goal_pairs ? DC_ROW_PAIR : DC_ROW_START,
                                 .draws = DC_STREAM_STATE});
    dc_rows_add(t, (dc_row_rule){"later", DC_ROW_AFTER, .of = "state", .steps = s->n});
    if (s->goal_pairs)
        dc_rows_add(t, (dc_row_rule){"goal", DC_ROW_END, .of = "state"});
    else
        dc_rows_add(t, (dc_row_rule){"goal", DC_ROW_GOAL, .of = "state", .draws = DC_STREAM_GOAL,
                                     .mix = mix, .gamma = s->gamma});
    dc_rows_add(t, (dc_row_rule){"later_steps", DC_ROW_STEPS, .of = "state", .to = "later"});
    dc_rows_add(t, (dc_row_rule){"goal_steps", DC_ROW_STEPS, .of = "state", .to = "goal"});
}

static inline dc_row_table row_table(const row_spec *s) {
    dc_row_table t = {
        .seed = s->seed, .batch = s->batch, .choose = s->choose, .choose_ctx = s->choose_ctx};
    if (s->segments != SEG_NONE) add_segments(&t, s);
    if (s->propagation) add_propagation(&t, s);
    if (s->grounding) {
        dc_rows_add(&t, (dc_row_rule){"step_start", DC_ROW_START, .draws = DC_STREAM_GROUND});
        dc_rows_add(&t, (dc_row_rule){"step_end", DC_ROW_AFTER, .of = "step_start", .steps = 1});
    }
    if (s->vias) dc_rows_add(&t, DC_STARTS("via", s->vias, DC_STREAM_VIA, "states"));
    if (!s->actor) return t;
    dc_goal_mix mix = {0, 1 - s->actor_random, s->actor_random, (int)s->actor_law, 0};
    dc_rows_add(&t, (dc_row_rule){"actor_state", DC_ROW_START, .draws = DC_STREAM_ACTOR});
    dc_rows_add(&t, (dc_row_rule){"actor_goal", DC_ROW_GOAL, .of = "actor_state",
                                  .draws = DC_STREAM_ACTOR_GOAL, .mix = mix, .gamma = s->gamma});
    return t;
}

static inline dc_status new_sampler(dc_sampler **sampler, const dc_dataset *data,
                                    const row_spec *spec) {
    dc_row_table table = row_table(spec);
    return dc_sampler_new(sampler, data, &table);
}

// Number of a rule that must be there.
static inline int rule_of(const dc_sampler *sampler, const char *name) {
    int rule = dc_rows_find(dc_sampler_rows(sampler), name);
    assert_true(rule >= 0);
    return rule;
}

// A rule's values (batch); NULL if there is no such rule, or if it is not filled.
static inline const int64_t *values_of(const dc_sampler *sampler, const char *name) {
    int rule = dc_rows_find(dc_sampler_rows(sampler), name);
    return rule < 0 ? NULL : dc_sampler_drawn(sampler, rule);
}

#endif
