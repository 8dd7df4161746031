// Drawing a table of rules (sample/rows.h, to be read first). dc_row_laws is that table compiled for one data
// set: each rule became a law, a distribution of rows, with indices in place of names and numbers in place of
// options. dc_draw_rows goes through it rule by rule for one row of a batch. Nothing is shared between rows, so
// the CPU's sampler gives rows to threads and a CUDA kernel gives each a thread; both compile this header and
// draw the same numbers.
//
// All randomness is Philox (base/philox.h): four 32-bit words as a function of (seed, stream, step, index),
// the columns below. A rule has a stream of its own unless another is named:
//
//   rule            stream   step                     index       words
//   TREE            SLOT     step                     row >> 2    word (row & 3): which slot (sample/slots.h:
//                                                                 a tree in flight) the row takes a node of
//                   SEGMENT  generation               slot        segment of the slot's next tree
//                   SPLIT    slot << 40 | generation  node >> 1   two words per node of a random tree
//   START           own      step                     row >> 1    two words; with `times`: (row times + k) >> 1
//   PAIR            own      step                     row         uniform or staged: all four; else START's two
//                                                                 (words 0, 1) and the steps (words 2, 3)
//   SPLIT, random   own      step                     row >> 1    two words; BETWEEN likewise
//   GOAL            own      step                     row         word 0: kind of goal; words 1, 2: which one
//
// Where a row needs only one or two words, neighbouring rows share a counter: row >> 2 or row >> 1. The other
// rules draw nothing.
//
// Trees are the only state that lasts from step to step. So rules on the tree, whose node the slots hand out
// in order, can be drawn apart from the others, which depend on the step alone (dc_row_part): the feeder
// of a GPU (sample/feeder.h) draws the latter for several steps at once.
#ifndef DC_ROW_DRAW_H
#define DC_ROW_DRAW_H

#include "sample/draw.h"
#include "sample/rows.h"
#include "sample/tree.h"

enum { DC_GEOMETRICS_MAX = 2 }; // different discounts in one table

typedef struct dc_rule_law { // a rule as numbers
    dc_row_kind kind;
    int of, to;       // indices of the rules that it builds on, -1: none
    int origin;       // rule whose trajectory this one lies in: itself, or that of `of`
    bool inside;      // STEPS: `to` lies in the trajectory of `of` by construction
    bool on_tree;     // it is the TREE rule, or builds on it
    bool serves_tree; // not on the tree, but a rule there builds on it, so that both parts draw it
    bool uniform, random_split;
    int times; // numbers for a row of the batch
    uint32_t stream;
    int geometric; // index into dc_row_laws.geometric
    dc_goal_law goals;
    int64_t steps;
    bool acted;                   // AFTER: not to the trajectory's last row
    int64_t stage_length, stages; // above 0: lengths of pairs grow by stages
    uint64_t stage_steps;         // of one stage
} dc_rule_law;

typedef struct dc_row_laws {
    dc_trajectories set;
    uint64_t seed;
    int count;
    int tree;  // index of the TREE rule, -1: none
    int slots; // of that rule
    bool down; // its nodes come root first; else leaves first
    dc_rule_law rule[DC_RULES_MAX];
    dc_geometric geometric[DC_GEOMETRICS_MAX];
} dc_row_laws;

// The laws of a table for the trajectories of a data set (rows.c).
void dc_row_laws_init(dc_row_laws *laws, const dc_row_table *rows, const dc_trajectories *set);

typedef struct dc_segment {
    int64_t i, k, j; // start, split, end
} dc_segment;

// Which rules of a table are drawn: those on the tree need the slots' state, the others only the step.
typedef enum dc_row_part { DC_ROWS_ALL, DC_ROWS_ON_TREE, DC_ROWS_OFF_TREE } dc_row_part;

// What the rules gave so far for one row of the batch; later rules look at earlier ones.
typedef struct dc_drawn {
    int64_t row[DC_RULES_MAX]; // a row of the data set, or a count of steps
    int64_t end[DC_RULES_MAX]; // of origins: last row of the trajectory; -1: not looked up yet
    int64_t far[DC_RULES_MAX]; // TREE and PAIR: end of the segment that begins at `row`
} dc_drawn;

// The row of a rule, and the last row of its trajectory.
DC_HD dc_row_at dc_drawn_at(const dc_row_laws *laws, dc_drawn *d, int rule) {
    int origin = laws->rule[rule].origin;
    if (d->end[origin] < 0) {
        int64_t t = dc_trajectory_of(&laws->set, d->row[origin], 0);
        d->end[origin] = laws->set.start[t + 1] - 1;
    }
    dc_row_at at = {d->row[rule], d->end[origin]};
    return at;
}

// A pair of the stage that `step` belongs to.
DC_HD dc_pair dc_draw_staged(const dc_row_laws *laws, const dc_rule_law *rule, uint64_t step,
                             dc_u32x4 words) {
    uint64_t stage = step / (rule->stage_steps ? rule->stage_steps : 1);
    int64_t s = stage < (uint64_t)rule->stages ? (int64_t)stage : rule->stages - 1;
    return dc_draw_length(&laws->set, words, s * rule->stage_length + 1,
                          (s + 1) * rule->stage_length);
}

DC_HD dc_pair dc_draw_any_pair(const dc_row_laws *laws, const dc_rule_law *rule, uint64_t step,
                               uint32_t row) {
    dc_u32x4 words = dc_philox(laws->seed, rule->stream, step, row);
    if (rule->stage_length > 0) return dc_draw_staged(laws, rule, step, words);
    if (rule->uniform) return dc_draw_pair(&laws->set, words);
    dc_row_at at = dc_draw_start(&laws->set, words, 0);
    dc_pair pair = {at.row,
                    dc_draw_future(&laws->geometric[rule->geometric], at, words.v[2], words.v[3]),
                    at.end};
    return pair;
}

// Where rows i <= j are split by a rule's law.
DC_HD int64_t dc_split_at(const dc_row_laws *laws, const dc_rule_law *rule, int64_t i, int64_t j,
                          uint64_t step, uint32_t row) {
    if (!rule->random_split) return i + ((j - i) >> 1);
    return dc_draw_split(i, j, dc_philox(laws->seed, rule->stream, step, row >> 1), row & 1);
}

// Where the segment of rule `of` is split.
DC_HD int64_t dc_draw_split_of(const dc_row_laws *laws, const dc_rule_law *rule, const dc_drawn *d,
                               dc_segment tree, uint64_t step, uint32_t row) {
    if (laws->rule[rule->of].kind == DC_ROW_TREE) return tree.k;
    return dc_split_at(laws, rule, d->row[rule->of], d->far[rule->of], step, row);
}

// The row `steps` after `from`: not past row `goal` if that lies ahead in the trajectory (-1: no goal), nor
// past the trajectory's end.
DC_HD int64_t dc_step_toward(dc_row_at from, int64_t steps, int64_t goal) {
    int64_t last = goal >= from.row && goal < from.end ? goal : from.end;
    return from.row + (steps < last - from.row ? steps : last - from.row);
}

// STEPS: from rule `of` to rule `to`; -1 unless that lies at or after it in the same trajectory.
DC_HD int64_t dc_steps_between(const dc_row_laws *laws, const dc_rule_law *rule, dc_drawn *d) {
    int64_t steps = d->row[rule->to] - d->row[rule->of];
    if (steps < 0) return -1;
    if (rule->inside) return steps;
    return d->row[rule->to] <= dc_drawn_at(laws, d, rule->of).end ? steps : -1;
}

// BETWEEN: of rules `of` and `to`.
DC_HD int64_t dc_draw_between(const dc_row_laws *laws, const dc_rule_law *rule, dc_drawn *d,
                              uint64_t step, uint32_t row) {
    int64_t i = d->row[rule->of], j = d->row[rule->to];
    bool ahead = j > i && j <= dc_drawn_at(laws, d, rule->of).end;
    return dc_split_at(laws, rule, i, ahead ? j : i, step, row);
}

// One rule for one row of the batch, or one of several for it, which have numbers of their own. The rules that it
// builds on are drawn already.
DC_HD void dc_draw_rule(const dc_row_laws *laws, int number, uint64_t step, uint32_t row,
                        dc_segment tree, dc_drawn *d) {
    const dc_rule_law *rule = &laws->rule[number];
    dc_row_at at = {0, -1}, from;
    dc_u32x4 words;
    dc_pair pair;
    d->far[number] = 0;
    switch (rule->kind) {
    case DC_ROW_START:
        words = dc_philox(laws->seed, rule->stream, step, row >> 1);
        at = dc_draw_start(&laws->set, words, row & 1);
        break;
    case DC_ROW_TREE:
        at.row = tree.i;
        d->far[number] = tree.j;
        break;
    case DC_ROW_PAIR:
        pair = dc_draw_any_pair(laws, rule, step, row);
        at.row = pair.i;
        at.end = pair.end;
        d->far[number] = pair.j;
        break;
    case DC_ROW_SPLIT:
        at.row = dc_draw_split_of(laws, rule, d, tree, step, row);
        break;
    case DC_ROW_END:
        at.row = d->far[rule->of];
        break;
    case DC_ROW_AFTER:
        from = dc_drawn_at(laws, d, rule->of);
        from.end -= rule->acted;
        at.row = dc_step_toward(from, rule->steps, -1);
        break;
    case DC_ROW_TOWARD:
        at.row = dc_step_toward(dc_drawn_at(laws, d, rule->of), rule->steps, d->row[rule->to]);
        break;
    case DC_ROW_BETWEEN:
        at.row = dc_draw_between(laws, rule, d, step, row);
        break;
    case DC_ROW_GOAL:
        words = dc_philox(laws->seed, rule->stream, step, row);
        at.row = dc_draw_goal(&laws->set, &rule->goals, &laws->geometric[rule->geometric],
                              dc_drawn_at(laws, d, rule->of), words);
        break;
    case DC_ROW_STEPS:
        at.row = dc_steps_between(laws, rule, d);
        break;
    }
    d->row[number] = at.row;
    d->end[number] = at.end;
}

// All rules of a part, for one row of a batch: out[rule][row times + k]. tree: the node that the row's slot hands
// out; not read for the part off the tree.
DC_HD void dc_draw_rows(const dc_row_laws *laws, dc_row_part part, uint64_t step, uint32_t row,
                        dc_segment tree, int64_t *const *out) {
    dc_drawn d;
    for (int r = 0; r < laws->count; r++) {
        const dc_rule_law *rule = &laws->rule[r];
        bool wanted = part == DC_ROWS_ALL || rule->on_tree == (part == DC_ROWS_ON_TREE);
        if (!wanted && !(part == DC_ROWS_ON_TREE && rule->serves_tree)) continue;
        for (uint32_t times = (uint32_t)rule->times, k = 0; k < times; k++) {
            dc_draw_rule(laws, r, step, row * times + k, tree, &d);
            if (wanted) out[r][row * times + k] = d.row[r];
        }
    }
}

// Slot that a row takes.
DC_HD uint32_t dc_draw_slot(const dc_row_laws *laws, uint64_t step, uint32_t row) {
    uint32_t word = dc_philox(laws->seed, laws->rule[laws->tree].stream, step, row >> 2).v[row & 3];
    return dc_below(word, (uint32_t)laws->slots);
}

// Node number t, in the order in which they are handed out, of a midpoint tree over rows start ... start +
// length. It has 2 length - 1 nodes; tree.h finds one without building the tree.
DC_HD dc_segment dc_tree_segment(const dc_row_laws *laws, int64_t start, int64_t length,
                                 int64_t t) {
    int64_t number = laws->down ? 2 * length - 2 - t : t;
    dc_tree_node node = dc_tree_find((uint64_t)length, (uint64_t)number);
    int64_t first = start + (int64_t)node.offset;
    dc_segment s = {first, first + (int64_t)(node.length >> 1), first + (int64_t)node.length};
    return s;
}

#endif
