// Forest: the explicit trees of slots whose splits are not midpoints. A tree lies in memory breadth
// first, root first, so that reading it backwards gives the deepest level first and the root last.
// Trees are built level by level, all trees of a call together, because a chooser that queries a
// network (max-based backup) wants one large batch per level and not many small ones.
#ifndef DC_FOREST_H
#define DC_FOREST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

// Longest segment of an explicit tree: node numbers and offsets stay in 32 bits.
#define DC_FOREST_STEPS_MAX ((int64_t)1 << 31)

typedef struct dc_forest_node {
    uint32_t offset, length; // steps from the segment's start, and of the node
    uint32_t split;          // steps from the node's start to its split; 0 in a leaf
} dc_forest_node;

typedef struct dc_forest_tree {
    int64_t start;         // first row of the segment
    uint32_t steps;        // its length; 0: no tree yet
    dc_forest_node *nodes; // (2 steps - 1), breadth first
    size_t room;           // nodes allocated, kept from tree to tree
} dc_forest_tree;

// The nodes of one level that have at least two steps, of all trees being built.
typedef struct dc_forest_level {
    size_t count, room;
    int64_t *i, *j; // (count) rows where the segments start and end; i owns all five arrays
    int64_t *k;     // (count) the chooser's answer: i < k < j
    int32_t *tree;  // (count) tree's number in the forest
    uint32_t *node; // (count) node's number in its tree
} dc_forest_level;

typedef dc_status dc_forest_chooser(void *ctx, const dc_forest_level *level);

typedef struct dc_forest {
    int count;
    dc_forest_tree *trees; // (count)
    size_t *levels;        // (count) scratch of a build: where the unfinished level starts
    size_t *ends;          // (count) and where it ends
    dc_forest_level level; // scratch of a build
} dc_forest;

dc_status dc_forest_init(dc_forest *forest, int count);
void dc_forest_fini(dc_forest *forest);
// Build anew the trees `list` (count), whose start and steps are set. After a failure they are
// empty.
dc_status dc_forest_build(dc_forest *forest, const int32_t *list, int count,
                          dc_forest_chooser *choose, void *ctx);
// Bytes taken from the system.
size_t dc_forest_bytes(const dc_forest *forest);

#endif
