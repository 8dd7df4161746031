// Building explicit trees, see forest.h. A build is a loop over levels: collect the nodes that must
// be split, ask the chooser once, append the children. Buffers only grow, and never past what the
// longest trajectory needs: 2 L - 1 nodes a tree, L / 2 splits a tree and level.
#include "sample/forest.h"

#include <stdlib.h>

enum { SPLIT_BYTES = 3 * sizeof(int64_t) + sizeof(int32_t) + sizeof(uint32_t) };

dc_status dc_forest_init(dc_forest *forest, int count) {
    size_t n = (size_t)count;
    *forest = (dc_forest){.count = count};
    forest->trees = calloc(n, sizeof *forest->trees);
    forest->levels = calloc(n, sizeof *forest->levels);
    forest->ends = calloc(n, sizeof *forest->ends);
    if (forest->trees && forest->levels && forest->ends) return DC_OK;
    dc_forest_fini(forest);
    return dc_fail(DC_NO_MEMORY, "lower slots", "no memory for %d trees", count);
}

void dc_forest_fini(dc_forest *forest) {
    for (int t = 0; forest->trees && t < forest->count; t++)
        free(forest->trees[t].nodes);
    free(forest->trees);
    free(forest->levels);
    free(forest->ends);
    free(forest->level.i);
    *forest = (dc_forest){0};
}

size_t dc_forest_bytes(const dc_forest *forest) {
    size_t bytes = (size_t)forest->count * (sizeof *forest->trees + 2 * sizeof(size_t));
    for (int t = 0; t < forest->count; t++)
        bytes += forest->trees[t].room * sizeof(dc_forest_node);
    return bytes + forest->level.room * SPLIT_BYTES;
}

static dc_status reserve_tree(dc_forest_tree *tree) {
    size_t need = 2 * (size_t)tree->steps - 1;
    if (need <= tree->room) return DC_OK;
    free(tree->nodes); // the old tree is not needed
    tree->room = 0;
    tree->nodes = malloc(need * sizeof *tree->nodes);
    if (!tree->nodes)
        return dc_fail(DC_NO_MEMORY, "use split=midpoint, which needs no memory, or fewer slots",
                       "no memory for a tree over %u steps", tree->steps);
    tree->room = need;
    return DC_OK;
}

// Room for `need` splits: one block of memory, cut into the five arrays. Old splits are not kept.
static dc_status reserve_level(dc_forest_level *level, size_t need) {
    if (need <= level->room) return DC_OK;
    free(level->i);
    *level = (dc_forest_level){0};
    level->i = need <= SIZE_MAX / SPLIT_BYTES ? malloc(need * SPLIT_BYTES) : NULL;
    if (!level->i)
        return dc_fail(DC_NO_MEMORY, "use fewer slots", "no memory for %zu splits at once", need);
    level->room = need;
    level->j = level->i + need;
    level->k = level->j + need;
    level->tree = (int32_t *)(level->k + need);
    level->node = (uint32_t *)(level->tree + need);
    return DC_OK;
}

// Roots of the trees: the first level.
static dc_status plant(dc_forest *forest, const int32_t *list, int count) {
    for (int m = 0; m < count; m++) {
        int32_t t = list[m];
        dc_forest_tree *tree = &forest->trees[t];
        DC_TRY(reserve_tree(tree));
        tree->nodes[0] = (dc_forest_node){.length = tree->steps};
        forest->levels[t] = 0;
        forest->ends[t] = 1;
    }
    return DC_OK;
}

static size_t count_splits(const dc_forest *forest, const int32_t *list, int count) {
    size_t splits = 0;
    for (int m = 0; m < count; m++) {
        const dc_forest_node *nodes = forest->trees[list[m]].nodes;
        for (size_t at = forest->levels[list[m]]; at < forest->ends[list[m]]; at++)
            splits += nodes[at].length > 1;
    }
    return splits;
}

// Write the nodes that must be split into forest->level.
static dc_status collect(dc_forest *forest, const int32_t *list, int count) {
    dc_forest_level *level = &forest->level;
    DC_TRY(reserve_level(level, count_splits(forest, list, count)));
    level->count = 0;
    for (int m = 0; m < count; m++) {
        const dc_forest_tree *tree = &forest->trees[list[m]];
        for (size_t at = forest->levels[list[m]]; at < forest->ends[list[m]]; at++) {
            if (tree->nodes[at].length < 2) continue;
            size_t q = level->count++;
            level->i[q] = tree->start + tree->nodes[at].offset;
            level->j[q] = level->i[q] + tree->nodes[at].length;
            level->tree[q] = list[m];
            level->node[q] = (uint32_t)at;
        }
    }
    return DC_OK;
}

// Store the chosen splits and append the children; what was appended is the next level.
static void divide(dc_forest *forest, const int32_t *list, int count) {
    const dc_forest_level *level = &forest->level;
    for (int m = 0; m < count; m++)
        forest->levels[list[m]] = forest->ends[list[m]];
    for (size_t q = 0; q < level->count; q++) {
        DC_CHECK(level->i[q] < level->k[q] && level->k[q] < level->j[q]);
        dc_forest_node *nodes = forest->trees[level->tree[q]].nodes, *node = &nodes[level->node[q]];
        uint32_t split = (uint32_t)(level->k[q] - level->i[q]);
        node->split = split;
        size_t at = forest->ends[level->tree[q]];
        nodes[at] = (dc_forest_node){.offset = node->offset, .length = split};
        nodes[at + 1] =
            (dc_forest_node){.offset = node->offset + split, .length = node->length - split};
        forest->ends[level->tree[q]] = at + 2;
    }
}

static dc_status build(dc_forest *forest, const int32_t *list, int count, dc_forest_chooser *choose,
                       void *ctx) {
    DC_TRY(plant(forest, list, count));
    for (;;) {
        DC_TRY(collect(forest, list, count));
        if (!forest->level.count) return DC_OK;
        DC_TRY(choose(ctx, &forest->level));
        divide(forest, list, count);
    }
}

dc_status dc_forest_build(dc_forest *forest, const int32_t *list, int count,
                          dc_forest_chooser *choose, void *ctx) {
    dc_status status = build(forest, list, count, choose, ctx);
    for (int m = 0; status != DC_OK && m < count; m++)
        forest->trees[list[m]].steps = 0;
    return status;
}
