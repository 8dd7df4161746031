// Laws: what a spec means for a data set, as plain numbers, and the rows of a step drawn by them. The
// CPU's sampler and the CUDA kernel both compile this header, so they draw the same rows.
#ifndef DC_LAWS_H
#define DC_LAWS_H

#include "sample/rows.h"
#include "sample/tree.h"

#include <stdbool.h>

typedef struct dc_laws {
    dc_trajectories set;
    dc_goal_law goals, actor_goals;
    dc_geometric pairs;   // j - i of geometric pairs
    int64_t stage_length; // above 0: lengths of pairs grow by stages
    int64_t stages;
    uint64_t stage_steps; // steps of a stage
    uint64_t seed;
    int n;
    bool goal_pairs, pairs_uniform, split_random, down;
} dc_laws;

typedef struct dc_segment {
    int64_t i, k, j;
} dc_segment;

// A pair of the stage that `step` belongs to.
DC_HD dc_pair dc_row_staged(const dc_laws *laws, uint64_t step, dc_u32x4 words) {
    uint64_t stage = step / (laws->stage_steps ? laws->stage_steps : 1);
    int64_t s = stage < (uint64_t)laws->stages ? (int64_t)stage : laws->stages - 1;
    return dc_draw_length(&laws->set, words, s * laws->stage_length + 1,
                          (s + 1) * laws->stage_length);
}

// An i.i.d. pair, split once.
DC_HD dc_segment dc_row_pair(const dc_laws *laws, uint64_t step, uint32_t row) {
    dc_u32x4 words = dc_philox(laws->seed, DC_STREAM_PAIR, step, row);
    dc_pair pair;
    if (laws->stage_length > 0) {
        pair = dc_row_staged(laws, step, words);
    } else if (laws->pairs_uniform) {
        pair = dc_draw_pair(&laws->set, words);
    } else {
        dc_place place = dc_draw_start(&laws->set, words, 0);
        pair.i = place.row;
        pair.j = dc_draw_future(&laws->pairs, place, words.v[2], words.v[3]);
    }
    dc_segment s = {pair.i, pair.i + ((pair.j - pair.i) >> 1), pair.j};
    if (laws->split_random)
        s.k = dc_draw_split(s.i, s.j, dc_philox(laws->seed, DC_STREAM_SUBGOAL, step, row >> 1),
                            row & 1);
    return s;
}

// Start and goal of a propagation row; returns the start.
DC_HD dc_place dc_row_propagation(const dc_laws *laws, uint64_t step, uint32_t row, int64_t *goal) {
    if (laws->goal_pairs) {
        dc_pair pair = dc_draw_pair(&laws->set, dc_philox(laws->seed, DC_STREAM_PROP, step, row));
        dc_place place = {pair.i, pair.end};
        *goal = pair.j;
        return place;
    }
    dc_place place =
        dc_draw_start(&laws->set, dc_philox(laws->seed, DC_STREAM_PROP, step, row >> 1), row & 1);
    *goal = dc_draw_goal(&laws->set, &laws->goals, place,
                         dc_philox(laws->seed, DC_STREAM_GOAL, step, row));
    return place;
}

// State and goal of a policy row.
DC_HD dc_place dc_row_actor(const dc_laws *laws, uint64_t step, uint32_t row, int64_t *goal) {
    dc_place place =
        dc_draw_start(&laws->set, dc_philox(laws->seed, DC_STREAM_ACTOR, step, row >> 1), row & 1);
    *goal = dc_draw_goal(&laws->set, &laws->actor_goals, place,
                         dc_philox(laws->seed, DC_STREAM_ACTOR_GOAL, step, row));
    return place;
}

// Start of a single step.
DC_HD int64_t dc_row_ground(const dc_laws *laws, uint64_t step, uint32_t row) {
    dc_u32x4 words = dc_philox(laws->seed, DC_STREAM_GROUND, step, row >> 1);
    return dc_draw_start(&laws->set, words, row & 1).row;
}

// Slot that a row takes.
DC_HD uint32_t dc_row_slot(const dc_laws *laws, uint64_t step, uint32_t row, uint32_t slots) {
    return dc_below(dc_philox(laws->seed, DC_STREAM_SLOT, step, row >> 2).v[row & 3], slots);
}

// Node number t of a midpoint tree over rows start ... start + length.
DC_HD dc_segment dc_tree_segment(const dc_laws *laws, int64_t start, int64_t length, int64_t t) {
    int64_t number = laws->down ? 2 * length - 2 - t : t;
    dc_tree_node node = dc_tree_find((uint64_t)length, (uint64_t)number);
    int64_t first = start + (int64_t)node.offset;
    dc_segment s = {first, first + (int64_t)(node.length >> 1), first + (int64_t)node.length};
    return s;
}

#endif
