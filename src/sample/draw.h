// Draws: from random words and the table of trajectories to rows of the data set. Everything here is
// integer arithmetic on values, without memory of its own, so that the CPU and a CUDA kernel draw the same
// rows from the same seed: both compile this header. sample/row_draw.h says which rule uses which draw.
//
// A uniform number below n comes from a product's high half (dc_below, dc_below64): exact integers,
// and a bias under n / 2^64 (two words), n / 2^48 (positions of a pair) or n / 2^32 (trajectory,
// slot).
#ifndef DC_DRAW_H
#define DC_DRAW_H

#include "base/philox.h"

#include <stdint.h>

enum { DC_GEOMETRIC_LEVELS = 40 };

// Trajectories as the draws see them. Trajectory t has rows start[t] ... start[t + 1] - 1, at
// least 2.
typedef struct dc_trajectories {
    const int64_t *start; // (count + 1)
    int64_t count;
    int64_t rows;
    int64_t each;    // rows of a trajectory when all have the same number, else 0
    int64_t longest; // rows of the longest trajectory
    // Nullable: of a table that grows, one trajectory, how many rows have an action by now (data/dataset.h)
    const int64_t *grown;
} dc_trajectories;

typedef struct dc_pair {
    int64_t i, j; // i < j, rows of one trajectory
    int64_t end;  // its last row
} dc_pair;

// A row of the data set, and the last row of its trajectory.
typedef struct dc_row_at {
    int64_t row, end;
} dc_row_at;

// Largest t with start[t] - skip * t <= x: of a row (skip 0) or of a transition's number (skip 1:
// each trajectory has one transition less than it has rows).
DC_HD int64_t dc_trajectory_of(const dc_trajectories *set, int64_t x, int64_t skip) {
    if (set->each) return x / (set->each - skip);
    int64_t low = 0;
    for (int64_t n = set->count; n > 1;) {
        int64_t half = n >> 1, t = low + half;
        low = set->start[t] - skip * t <= x ? t : low;
        n -= half;
    }
    return low;
}

DC_HD int64_t dc_transitions(const dc_trajectories *set) {
    return set->grown ? *set->grown : set->rows - set->count;
}

// A uniform number below n from words 2h and 2h + 1 of a draw.
DC_HD int64_t dc_draw_below(dc_u32x4 words, uint32_t h, int64_t n) {
    return (int64_t)dc_below64(words.v[2 * h], words.v[2 * h + 1], (uint64_t)n);
}

// Trajectory uniform, then i < j uniform over the pairs of its states: two different states in
// random order, sorted, so that every pair arises in exactly two ways.
DC_HD dc_pair dc_draw_pair(const dc_trajectories *set, dc_u32x4 words) {
    int64_t t = (int64_t)dc_below64(words.v[0], 0, (uint64_t)set->count);
    int64_t first = set->start[t], states = set->start[t + 1] - first;
    uint32_t low = words.v[3]; // 16 more bits for each of the two positions
    int64_t u = (int64_t)dc_below64(words.v[1], low & 0xFFFF0000u, (uint64_t)states);
    int64_t v = (int64_t)dc_below64(words.v[2], low << 16, (uint64_t)states - 1);
    v += v >= u;
    dc_pair pair = {first + (u < v ? u : v), first + (u < v ? v : u), first + states - 1};
    return pair;
}

// Trajectory uniform, then a length uniform in [least, most] and where it starts; a trajectory that
// is too short gives what it has.
DC_HD dc_pair dc_draw_length(const dc_trajectories *set, dc_u32x4 words, int64_t least,
                             int64_t most) {
    int64_t t = (int64_t)dc_below64(words.v[0], 0, (uint64_t)set->count);
    int64_t first = set->start[t], steps = set->start[t + 1] - first - 1;
    uint32_t low = words.v[3]; // 16 more bits for length and start
    most = most < steps ? most : steps;
    least = least < most ? least : most;
    int64_t length =
        least + (int64_t)dc_below64(words.v[1], low & 0xFFFF0000u, (uint64_t)(most - least + 1));
    int64_t i = first + (int64_t)dc_below64(words.v[2], low << 16, (uint64_t)(steps - length + 1));
    dc_pair pair = {i, i + length, first + steps};
    return pair;
}

// Segment of a slot's generation.
DC_HD dc_pair dc_draw_segment(const dc_trajectories *set, uint64_t seed, uint32_t slot,
                              uint64_t generation) {
    return dc_draw_pair(set, dc_philox(seed, DC_STREAM_SEGMENT, generation, slot));
}

// State with an action, uniform over all transitions, from words 2h and 2h + 1.
DC_HD dc_row_at dc_draw_start(const dc_trajectories *set, dc_u32x4 words, uint32_t h) {
    int64_t x = dc_draw_below(words, h, dc_transitions(set));
    int64_t t = dc_trajectory_of(set, x, 1);
    dc_row_at at = {x + t, set->start[t + 1] - 1};
    return at;
}

// Split of (i, j), uniform over the states between; i for a single step, as the midpoint gives.
DC_HD int64_t dc_draw_split(int64_t i, int64_t j, dc_u32x4 words, uint32_t h) {
    return j - i < 2 ? i : i + 1 + dc_draw_below(words, h, j - i - 1);
}

// The geometric law P(X = x) = (1 - gamma) gamma^(x - 1), x >= 1, without a logarithm: X - 1 is the
// largest x whose gamma^x still exceeds a uniform u, and that x is found bit by bit, highest first,
// from the powers gamma^(2^b) as 64-bit fractions. Squares and products keep the high half,
// truncated: the result is the same on every machine, and gamma^x is off by no more than about
// 2^-64 / (1 - gamma). Forty integers serve any horizon; a table of the distribution would grow
// with it.
typedef struct dc_geometric {
    uint64_t power[DC_GEOMETRIC_LEVELS]; // gamma^(2^b) * 2^64
    int levels;                          // bits that a trajectory of this data set can need
} dc_geometric;

// gamma in [0, 1); x is only needed exactly below `longest`.
DC_HD dc_geometric dc_geometric_of(double gamma, int64_t longest) {
    dc_geometric law;
    uint64_t power = (uint64_t)(gamma * 18446744073709551616.0); // exact: gamma has 53 bits
    law.levels = 0;
    for (int b = 0; b < DC_GEOMETRIC_LEVELS; b++) {
        law.power[b] = power;
        if (power && ((int64_t)1 << b) <= longest) law.levels = b + 1;
        power = dc_below64((uint32_t)(power >> 32), (uint32_t)power, power);
    }
    return law;
}

// X from the 64-bit fraction hi:lo. Cut it where the trajectory ends.
DC_HD int64_t dc_draw_geometric(const dc_geometric *law, uint32_t hi, uint32_t lo) {
    uint64_t u = (uint64_t)hi << 32 | lo, q = ~(uint64_t)0;
    int64_t x = 0;
    for (int b = law->levels - 1; b >= 0; b--) {
        uint64_t next = dc_below64((uint32_t)(q >> 32), (uint32_t)q, law->power[b]);
        x += next > u ? (int64_t)1 << b : 0;
        q = next > u ? next : q;
    }
    return x + 1;
}

// State after `row` by the geometric law, at most the trajectory's last.
DC_HD int64_t dc_draw_future(const dc_geometric *law, dc_row_at at, uint32_t hi, uint32_t lo) {
    int64_t steps = dc_draw_geometric(law, hi, lo), left = at.end - at.row;
    return at.row + (steps < left ? steps : left);
}

// A mixture of goals: kinds by thresholds on a 32-bit word.
typedef struct dc_goal_law {
    uint64_t current; // word < current: the state itself
    uint64_t next;    // word < next: the state after it
    uint64_t future;  // word < future: a later state of the trajectory; else any row
    int uniform;      // the later state is uniform, else geometric
} dc_goal_law;

DC_HD int64_t dc_draw_goal(const dc_trajectories *set, const dc_goal_law *law,
                           const dc_geometric *geometric, dc_row_at at, dc_u32x4 words) {
    uint32_t hi = words.v[1], lo = words.v[2];
    if (words.v[0] < law->current) return at.row;
    if (words.v[0] >= law->future)
        return (int64_t)dc_below64(hi, lo, (uint64_t)(set->grown ? *set->grown : set->rows));
    if (at.row == at.end) return at.row; // nothing lies ahead
    if (words.v[0] < law->next) return at.row + 1;
    if (!law->uniform) return dc_draw_future(geometric, at, hi, lo);
    return at.row + 1 + (int64_t)dc_below64(hi, lo, (uint64_t)(at.end - at.row));
}

#endif
