// Midpoint trees without a tree. Bisecting a segment of L steps again and again, left half rounded
// down, gives L leaves of one step and L - 1 parents: 2L - 1 nodes. This header names the t-th of
// them, deepest level first and root last, from L and t alone, in O(log L) integer operations; a
// slot of the sampler is therefore a handful of integers, whatever the horizon. C and CUDA compile
// the same lines.
//
// A node at depth d is named by a number r of d bits; bit b of r says "right" at level b. From (a,
// n) = (0, L), left is (a, n >> 1) and right is (a + (n >> 1), n - (n >> 1)). Two facts follow:
//
//   - the length of node r at depth d is (L + r) >> d: a step adds its bit and halves, so the bits
//     add up below the binary point;
//   - with D = ceil(log2 L), all levels above D are full, and level D holds the halves of those
//     nodes at depth D - 1 that have two steps: r >= 2^D - L, which are L - 2^(D-1), two children each.
//
// So the first 2 (L - 2^(D-1)) numbers t lie on level D. Of the other 2^D - 1, counted from the end
// (1 is the root), number m lies at depth floor(log2 m), because the levels above it hold 2^d - 1.
#ifndef DC_TREE_H
#define DC_TREE_H

#include "base/philox.h"

#include <stdint.h>

// Longest segment that the sampler accepts; the formulas themselves hold up to 2^62.
#define DC_TREE_STEPS_MAX ((int64_t)1 << 40)

typedef struct dc_tree_name {
    uint64_t right; // bit b: went right at level b
    int depth;      // 0 is the root
} dc_tree_name;

typedef struct dc_tree_node {
    uint64_t offset; // first step, counted from the segment's start
    uint64_t length; // steps, at least 1; a node of one step is a leaf
} dc_tree_node;

// floor(log2 x) of x >= 1.
DC_HD int dc_log2(uint64_t x) {
#ifdef __CUDA_ARCH__
    return 63 - __clzll((long long)x);
#else
    return 63 - __builtin_clzll(x);
#endif
}

// Depth of the deepest leaf: ceil(log2 steps).
DC_HD int dc_tree_depth(uint64_t steps) {
    return steps < 2 ? 0 : dc_log2(steps - 1) + 1;
}

DC_HD uint64_t dc_tree_nodes(uint64_t steps) {
    return 2 * steps - 1;
}

// Name of node t = 0 ... 2 steps - 2, leaves first.
DC_HD dc_tree_name dc_tree_name_of(uint64_t steps, uint64_t t) {
    int depth = dc_tree_depth(steps);
    uint64_t whole = (uint64_t)1 << depth, half = whole >> 1;
    uint64_t deepest = half ? 2 * (steps - half) : 1; // one step: the root is the only leaf
    if (t < deepest) {
        dc_tree_name name = {(whole - steps + (t >> 1)) | ((t & 1) ? half : 0), depth};
        return name;
    }
    uint64_t left = whole - 1 - (t - deepest); // nodes from here to the root, this one included
    int d = dc_log2(left);
    dc_tree_name name = {((uint64_t)2 << d) - 1 - left, d};
    return name;
}

// Steps of a node.
DC_HD uint64_t dc_tree_length(uint64_t steps, dc_tree_name name) {
    return (steps + name.right) >> name.depth;
}

// One level of the walk from the root to a node: offset and length so far, and the turns to come.
// After the last turn `right` is 0 and further calls change `offset` no more, which lets a loop
// over many nodes take as many levels for each as the deepest of them needs.
DC_HD void dc_tree_turn(uint64_t *offset, uint64_t *length, uint64_t *right) {
    uint64_t bit = *right & 1;
    *offset += (*length >> 1) & (0 - bit);
    *length = (*length + bit) >> 1;
    *right >>= 1;
}

// Node t of the tree over `steps` steps.
DC_HD dc_tree_node dc_tree_find(uint64_t steps, uint64_t t) {
    dc_tree_name name = dc_tree_name_of(steps, t);
    dc_tree_node node = {0, steps};
    uint64_t right = name.right;
    for (int level = 0; level < name.depth; level++)
        dc_tree_turn(&node.offset, &node.length, &right);
    return node;
}

#endif
